"""Gemini CLI: its extension in a bundle, its installation, its words, and the paths that it mends."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.files import program_at, text_at
from support.fixtures import wait_for
from support.sessions import PAYLOADS, captured, instances, mistakes, new_session, peer_locks, ready_store, said_by
from support.toml_reader import reader

import swarm_mcp
from swarm_hook_core.check import Writes
from swarm_hook_core.hooks import tool_call
from swarm_mcp.doctor import enforcement
from swarm_mcp.runtimes import bundle, hook_config, runtime
from swarm_mcp.runtimes.base import Finding, Steps

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

GEMINI, CONFIG = runtime("gemini"), hook_config("gemini")
FOLDER = "integrations/gemini"
CAPTURED = sorted(path.stem for path in (PAYLOADS / "gemini").glob("*.json"))


class Place:
    """A repository, and a bundle in a folder with an odd name. Its hooks run as in the client."""

    def __init__(self, folder: Path):
        ready_store()
        self.repo, self.root = folder / "repo", folder / 'a "bundle" of $HOME'
        (self.repo / ".git").mkdir(parents=True)
        text_at(self.repo / "sub" / "deep.md", "deep\n")
        bundle.write(self.root, local=True)
        self.me = new_session()

    def extension(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.root / FOLDER / name).read_text()))

    def command(self, event: str) -> str:
        """The command of the client's hook for an event."""
        ((hook,),) = [group["hooks"] for group in self.extension("hooks/hooks.json")["hooks"][event]]
        return str(hook["command"])

    def ask(self, name: str, before: str = "", env: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
        """Return the output of the hook for a captured payload. It ends with status 0, and prints nothing else.

        `before`: words of a shell that come before the hook's own.
        """
        payload = captured("gemini", name, self.repo, session_id=self.me, **more)
        command, given = before + self.command(name.partition(".")[0]), {**os.environ, **(env or {})}
        return dict(json.loads(said_by(command, payload, "bash", cwd=self.repo, env=given) or "{}"))

    def is_proven(self) -> bool:
        """Return True if doctor, with another shell, finds that a lock holds."""
        return enforcement.prove(GEMINI, GEMINI.install(self.root, Steps())).status == "ok"

    def write(self, path: str, before: str = "", tool: str = "write_file", **env: str) -> dict[str, Any]:
        """Return the client's answer to a write."""
        change = {"content": "x"} if tool == "write_file" else {"old_string": "deep", "new_string": "x"}
        return self.ask(f"BeforeTool.{tool}", before, env, tool_input={"file_path": path, **change})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


@pytest.mark.parametrize("local", [False, True], ids=["portable", "local"])
def test_a_bundle_holds_an_extension(local: bool, tmp_path: Path) -> None:
    bundle.write(tmp_path / "b", local=local)
    extension = tmp_path / "b" / FOLDER
    manifest = json.loads((extension / "gemini-extension.json").read_text())
    assert (manifest["name"], manifest["version"]) == ("swarm", swarm_mcp.__version__)
    assert "swarm" in manifest["mcpServers"] and "SWARM_PLUGIN_ROOT" not in json.dumps(manifest)
    assert reader().loads((extension / "commands" / "swarm.toml").read_text())["prompt"].startswith("# /swarm\n")
    assert b"the folder four above" in (extension / "skills" / "swarm" / "SKILL.md").read_bytes()
    assert not (tmp_path / "b" / "hooks").exists(), "Claude Code would load them, too"
    wired = json.loads((extension / "hooks" / "hooks.json").read_text())["hooks"]
    assert set(wired) == {"SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"}
    hooks = [hook for groups in wired.values() for group in groups for hook in group["hooks"]]
    for hook in hooks:
        assert hook["command"].endswith("; exit 0") and 3000 <= hook["timeout"] <= 10_000, "milliseconds"
        assert local or "${extensionPath}/../../integrations/hook.sh" in hook["command"]


def everything(folder: Path) -> dict[str, bytes | None]:
    """Each file and folder below `folder`, by its path."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def theirs(home: Path) -> Path:
    """The client's folder, with a person's settings in it."""
    text_at(home / ".gemini" / "settings.json", '{ // mine\n  "hooksConfig": {"enabled": true},\n}\n')
    return home / ".gemini"


def found(marketplace: Path) -> Finding:
    return GEMINI.look(marketplace, Steps()).findings[0]


@pytest.mark.parametrize(
    ("file", "text", "status", "said"),
    [
        ("settings.json", '{"security": {"allowedExtensions": ["x"]}}', "warn", "allows some extensions alone"),
        ("extensions/extension-enablement.json", '{"swarm": {"overrides": ["!HOME/*"]}}', "fail", "disabled"),
        ("extensions/extension-enablement.json", '{"swarm": {"overrides": ["!HOME/*", "HOME/*"]}}', "ok", "version"),
        ("extensions/extension-enablement.json", '{"swarm": {"overrides": ["!HOME/a/"]}}', "ok", "version"),
    ],
)
def test_what_keeps_it_from_working_is_found(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, status: str, said: str
) -> None:
    monkeypatch.chdir(theirs.parent)
    bundle.write(tmp_path / "b", local=True)
    GEMINI.install(tmp_path / "b", Steps())
    (theirs / file).write_text(text.replace("HOME", str(theirs.parent)))
    assert (found(tmp_path / "b").status, said in found(tmp_path / "b").message) == (status, True)


def test_it_denies_in_its_own_words_and_speaks_through_a_session(place: Place) -> None:
    assert place.ask("SessionStart.startup") == {}, "a prompt with words before it would be no command any more"
    greeting = place.ask("BeforeAgent")
    assert "is registered as `gemini " in greeting["hookSpecificOutput"]["additionalContext"]
    assert ["origin:gemini" in row["label"] for row in instances()] == [True]
    locked = place.repo / "notes.md"
    peer = peer_locks(place.repo, locked, "mine", "the peer")
    told = place.write(str(locked))
    assert list(told) == ["decision", "reason"] and told["decision"] == "deny"
    who = f'"the peer" {peer["id"][:8]}'
    assert told["reason"].startswith(
        f"swarm lock blocked write_file for notes.md: held by {who} (wait in line for it: "
    )
    assert '`swarm-mcp lock notes.md --wait 60`; note: "mine";' in told["reason"]
    for name, words in {
        "BeforeTool.run_shell_command": {"command": "echo x > notes.md"},
        "BeforeTool.run_shell_command.folder": {"command": "echo x > ../notes.md", "dir_path": "sub"},
        "BeforeTool.run_shell_command ": {"command": "echo x > ../notes.md", "directory": "sub"},
        "BeforeTool.mcp_files_write_file": {"path": str(locked), "content": "x"},
    }.items():
        assert place.ask(name.strip(), tool_input=words)["decision"] == "deny", name
    assert place.write(str(place.repo / "free.md")) == {} and place.is_proven()
    assert place.ask("BeforeTool.run_shell_command", tool_input={"command": "cat notes.md"}) == {}
    assert place.ask("BeforeTool.invoke_agent") == {}, "an unknown tool"
    assert place.ask("BeforeAgent") == place.ask("AfterAgent") == place.ask("SessionEnd.exit") == {}
    assert [row["label"] for row in instances()] == ["the peer"] and mistakes() == []


def test_what_it_drops_is_told_at_the_next_event_that_it_hears(place: Place) -> None:
    place.ask("SessionStart.startup")
    place.ask("BeforeAgent")
    peer_locks(place.repo, place.repo / "notes.md")
    assert place.ask("BeforeTool.run_shell_command", tool_input={"command": "./build"}) == {}
    after = place.ask("AfterTool.run_shell_command", tool_input={"command": "./build"})
    assert "other sessions hold" in after["hookSpecificOutput"]["additionalContext"]
    assert place.ask("AfterTool.run_shell_command", tool_input={"command": "ls"}) == {}, "told once"
    assert place.ask("SessionStart.clear") == {}
    assert "is registered as" in place.ask("BeforeAgent")["hookSpecificOutput"]["additionalContext"]
    place.ask("SessionStart.clear")
    place.ask("SessionEnd.exit")
    assert not (Path(os.environ["SWARM_STATE_DIR"]) / "unheard").exists() and mistakes() == []


@pytest.mark.parametrize("name", [name for name in CAPTURED if "Tool" in name])
def test_every_call_is_understood(name: str, tmp_path: Path) -> None:
    call = tool_call(CONFIG.dialect.read(captured("gemini", name, tmp_path)))
    assert call.name in ("PreToolUse", "PostToolUse") and call.session_id
    assert call.folder == str(tmp_path / "sub" if ".folder" in name else tmp_path)
    assert call.goes_on is (".background" in name)
    expected = {"run_shell_command": "Bash", "mcp_files_write_file": "mcp__files__write_file"}
    assert call.tool == expected.get(name.split(".")[1], name.split(".")[1])
    assert bool(Writes(CONFIG, call).paths) is (call.tool in CONFIG.write_tools)


def test_whatever_is_broken_passes_with_status_0(place: Place) -> None:
    place.ask("SessionStart.startup")
    peer_locks(place.repo, place.repo / "notes.md")
    assert place.write("notes.md", "ulimit -f 0; ")["decision"] == "deny", "a full disk is no reason not to deny"
    events = ("SessionStart.startup", "BeforeAgent", "BeforeTool.write_file", "AfterTool.write_file", "AfterAgent")
    for name in (*events, "SessionEnd.exit"):
        place.ask(name, "ulimit -f 0; ")
        assert place.ask(name, "exec >/dev/full; ") == {}
    python = json.loads((place.root / "install.json").read_text())["python"]
    hooks = place.root / FOLDER / "hooks" / "hooks.json"
    wired = hooks.read_text()
    hooks.write_text(wired.replace(python, "/no/python"))
    for name in (*events, "SessionEnd.exit"):
        place.ask(name)
    assert place.write("notes.md") == {}
    told = place.write("notes.md", SWARM_FAIL="closed")
    assert list(told) == ["decision", "reason"] and "could not be checked" in told["reason"]
    dying = program_at(place.root.parent / "dying", "#!/bin/sh\nkill -9 $$\n")
    hooks.write_text(wired.replace(python, str(dying)))
    assert place.write("notes.md") == {}
    for name in (*events, "SessionEnd.exit"):
        place.ask(name)
    hooks.write_text(wired)
    shutil.rmtree(place.root / "swarm_hook_core")
    for part in ("hook.py", "hook.sh"):
        (place.root / "integrations" / part).rename(place.root / part)
        assert place.write("notes.md") == {}
        for name in (*events, "SessionEnd.exit"):
            place.ask(name)


def test_a_hook_that_hangs_ends_when_it_is_asked_to(place: Place, tmp_path: Path) -> None:
    """The client asks the shell that it has started, and waits until its output is closed everywhere."""
    python = json.loads((place.root / "install.json").read_text())["python"]
    program_at(tmp_path / "hangs", "#!/bin/sh\necho >begun\nexec sleep 60\n")
    command = place.command("BeforeTool").replace(python, str(tmp_path / "hangs"))
    (tmp_path / "payload").write_text("{}")
    started = ["bash", "-c", f"exec <payload; {command}"]
    with subprocess.Popen(started, stdout=subprocess.PIPE, cwd=tmp_path) as hook:
        assert wait_for((tmp_path / "begun").exists, 20)
        hook.terminate()
        assert hook.communicate(timeout=60) == (b"", None)
    assert hook.returncode == 0


# -- the paths that it mends: each of these was seen to be written by release 0.61.0


@pytest.mark.parametrize("path", ["notes.md", "./notes.md", "sub/../notes.md", "@notes.md", "notes%2Emd", "no\0tes.md"])
def test_a_path_is_checked_as_it_is_opened(path: str, place: Place) -> None:
    peer_locks(place.repo, place.repo / "notes.md")
    assert place.write(path)["decision"] == "deny"


@pytest.mark.parametrize("path", ["deep.md", "repo/sub/deep.md", "ub/deep.md", "@deep.md"])
def test_a_file_that_is_not_there_is_sought_below(path: str, place: Place) -> None:
    peer_locks(place.repo, place.repo / "sub" / "deep.md")
    assert place.write(path, tool="replace")["decision"] == "deny"
    assert place.write(path) == {}, "where it would be made"
    (place.repo / "deep.md").write_text("another\n")
    assert (place.write(path, tool="replace") == {}) is (path in ("deep.md", "@deep.md"))
