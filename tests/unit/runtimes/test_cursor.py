"""Cursor, from its documentation: payloads, its files, and the hook commands in them."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.sessions import PAYLOADS, ROOT, hook_core, new_session, peer_locks, ready_store, said_by

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.mcp_writers import is_writer
from swarm_mcp.errors import ClientFailed
from swarm_mcp.runtimes.base import Steps
from swarm_mcp.runtimes.in_users_file import Cursor
from swarm_mcp.server.tools import all_tools

pytestmark = pytest.mark.thorough

WRITES = {
    "preToolUse.Write": REPLACE, "preToolUse.StrReplace": EDIT, "preToolUse.Delete": REMOVE,
    "preToolUse.EditNotebook": EDIT, "preToolUse.ApplyPatch": EDIT,
}  # fmt: skip
SHELLS = ("preToolUse.Shell", "preToolUse.Shell.empty_cwd", "preToolUse.Shell.below")
# The documented keys of an entry: with any other key Cursor may throw the whole file away.
DOCUMENTED = {"command", "timeout", "matcher"}


class Client:
    """The client's files, and its hooks, started as it would: in a shell, in its own folder."""

    def __init__(self, home: Path, repo: Path):
        self.folder, self.repo, self.me = home / ".cursor", repo, new_session()
        (repo / ".git").mkdir(parents=True)

    def payload(self, name: str, **more: Any) -> dict[str, Any]:
        text = (PAYLOADS / "cursor" / f"{name}.json").read_text().replace("/repo", str(self.repo))
        told = {**json.loads(text), "conversation_id": self.me, **more}
        return {**told, "session_id": self.me} if "session_id" in told else told

    def asked(self, name: str, **more: Any) -> dict[str, Any]:
        """The answers of all hooks that would run, as one object; each has to end with 0."""
        payload = self.payload(name, **more)
        event, tool = payload["hook_event_name"], payload.get("tool_name")
        answer: dict[str, Any] = {}
        for hook in json.loads((self.folder / "hooks.json").read_text())["hooks"].get(event, []):
            if tool and not re.search(hook.get("matcher", ""), tool):
                continue
            environment = {**os.environ, "CURSOR_VERSION": "3.18.0", "CURSOR_PROJECT_DIR": str(self.repo)}
            given = "\ufeff" + json.dumps(payload)  # as it sends them on Windows
            done = subprocess.run(["/bin/sh", "-c", hook["command"]], input=given, env=environment, cwd=self.folder,
                                  capture_output=True, text=True, timeout=30, check=False)  # fmt: skip
            assert (done.returncode, done.stderr) == (0, ""), done
            answer.update(json.loads(done.stdout or "{}"))
        return answer


@pytest.fixture
def client(home: Path, tmp_path: Path, plugin: Path) -> Client:
    ready_store()
    made = Client(home, tmp_path / "repo")
    Cursor().install(plugin, Steps())
    return made


@pytest.mark.parametrize("name", sorted([*WRITES, *SHELLS, "preToolUse.MCP"]))
@pytest.mark.slow
def test_a_write_to_a_peers_file_is_denied(client: Client, name: str):
    assert client.asked(name) == {}
    peer_locks(client.repo, client.repo / "f", "mine", "the peer")
    answer = client.asked(name)
    assert set(answer) == {"permission", "user_message", "agent_message"} and answer["permission"] == "deny"
    assert answer["user_message"] == answer["agent_message"]
    assert answer["user_message"].startswith("swarm lock blocked ") and "the peer" in answer["user_message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "hook", "name", "answer"),
    [
        ("PreToolUse", "pre_tool_use", "preToolUse.Write", {"permission", "user_message", "agent_message"}),
        ("SessionStart", "session_start", "sessionStart", {"additional_context"}),
    ],
)
def test_hooks_of_claude_codes_plugin_stand_back_where_it_has_its_own(
    client: Client, plugin: Path, event: str, hook: str, name: str, answer: set[str]
):
    """Cursor runs those as well, with its own payloads, and takes its own answers from them."""
    tree = json.loads((plugin / "integrations/claude-code/hooks.json").read_text())
    command = tree["hooks"][event][0]["hooks"][0]["command"]
    assert hook in command
    peer_locks(client.repo, client.repo / "f", "mine", "the peer")

    def said() -> dict[str, Any]:
        environment = {**os.environ, "CLAUDE_PLUGIN_ROOT": str(plugin), "CURSOR_VERSION": "3.18.0"}
        return dict(json.loads(said_by(command, client.payload(name), env=environment) or "{}"))

    assert said() == {}
    Cursor().uninstall(Steps())
    assert set(said()) == answer, "nobody else would do it: they act as its own"


@pytest.mark.slow
def test_a_session_is_greeted_works_and_leaves(client: Client):
    greeting = client.asked("sessionStart")
    assert set(greeting) == {"additional_context"} and "is registered as" in greeting["additional_context"]
    assert set(client.asked("beforeSubmitPrompt")) <= {"continue", "additional_context"}
    peer_locks(client.repo, client.repo / "f", "mine", "the peer")
    for quiet in ("preToolUse.Read", "postToolUse.Shell", "stop", "sessionEnd"):
        assert client.asked(quiet) == {}, quiet


def test_what_is_told_with_a_prompt_lets_it_go_on():
    words = hook_core("cursor").config.dialect.words
    assert words("UserPromptSubmit", "news", "") == {"continue": True, "additional_context": "news"}
    assert words("PreToolUse", "news", "") == {"additional_context": "news"}, (
        "'allow' would spare the user's own question"
    )


@pytest.mark.parametrize("name", sorted(WRITES))
def test_what_a_write_does_to_the_file(name: str):
    tool_input = json.loads((PAYLOADS / "cursor" / f"{name}.json").read_text())["tool_input"]
    assert list(hook_core("cursor").config.extract_changes(tool_input)) == [("/repo/f", WRITES[name])]


@pytest.mark.parametrize("tool_input", [None, "x", {}, {"file_path": ""}, {"patch": "no envelope"}])
def test_an_input_without_a_path_is_an_error(tool_input: object):
    with pytest.raises(ValueError, match=r"."):
        hook_core("cursor").config.extract_paths(tool_input)


def test_our_own_servers_tools_are_not_taken_for_writers():
    """Cursor names a server's tool without the server: ``MCP:update_task`` sounds like writing."""
    config = hook_core("cursor").config
    names = {f"MCP:{name}" for name in all_tools()}
    assert {name for name in names if is_writer(name)} <= config.harmless_tools
    assert {name for name in config.harmless_tools if name.startswith("MCP:")} <= names


def test_odd_payloads_are_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CURSOR_PROJECT_DIR", "/elsewhere")
    read = hook_core("cursor").config.dialect.read
    assert read({})["cwd"] == "/elsewhere/" and read({"workspace_roots": [1, "/a"]})["cwd"] == "/a/"
    assert read({"workspace_roots": None, "tool_input": 1, "cwd": 2})["cwd"] == "/elsewhere/"
    assert read({"workspace_roots": ["/a"], "cwd": "/b", "tool_input": {"cwd": "/c"}})["cwd"] == "/b"


def test_entries_have_only_what_is_documented(client: Client):
    tree = json.loads((client.folder / "hooks.json").read_text())
    assert tree["version"] == 1 and set(tree) == {"version", "hooks"}
    assert set(tree["hooks"]) == set(hook_core("cursor").config.dialect.events)
    for hook in (hook for hooks in tree["hooks"].values() for hook in hooks):
        assert set(hook) <= DOCUMENTED and {"command", "timeout"} <= set(hook)
    (check,) = tree["hooks"]["preToolUse"]
    for tool, reaches in {"Write": True, "Shell": True, "MCP:x": True, "NewTool": True, "Read": False, "Grep": False,
                          "ReadAndWrite": True}.items():  # fmt: skip
        assert bool(re.search(check["matcher"], tool)) == bool(re.fullmatch(check["matcher"], tool)) == reaches, tool


def test_its_hooks_are_of_all_events_and_its_skill_names_the_bundle(client: Client, plugin: Path):
    installed = Cursor().look(plugin, Steps()).installed
    assert installed and {hook.event for hook in installed.commands()} == set(
        hook_core("cursor").config.dialect.events.values()
    )
    skill = (client.folder / "skills" / "swarm" / "SKILL.md").read_text()
    assert str(plugin) in skill and "two above" not in skill


def test_the_editor_is_found_without_a_command(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", os.defpath)
    (home / ".cursor").mkdir()
    assert Cursor().program() == "", "the folder may be that of our hooks alone"
    (home / ".cursor" / "extensions").mkdir()
    assert Cursor().program() == str(home / ".cursor")


def test_files_that_are_not_as_they_should_be_are_left(home: Path, plugin: Path):
    folder, client = home / ".cursor", Cursor()
    (folder / "skills" / "swarm").mkdir(parents=True)
    (folder / "skills" / "swarm" / "SKILL.md").write_text("mine")
    (folder / "mcp.json").write_text('{"mcpServers": {"swarm": {"url": "http://127.0.0.1:1"}}}')
    steps = Steps()
    client.install(plugin, steps)
    assert "could not be added" in steps.done[1] and "could not be copied" in steps.done[2]
    assert [finding.status for finding in client.look(plugin, Steps()).findings] == ["ok", "warn", "warn"]
    client.uninstall(Steps())
    assert (folder / "skills" / "swarm" / "SKILL.md").read_text() == "mine" and not (folder / "hooks.json").exists()
    (folder / "hooks.json").write_text("{")
    with pytest.raises(ClientFailed, match=r"hooks\.json is not valid JSON"):
        client.install(plugin, Steps())
    assert (folder / "hooks.json").read_text() == "{"


def test_where_no_hook_can_run_the_answers_are_its_own(tmp_path: Path):
    """The greeting holds the words for the model alone, because Cursor shows users nothing."""
    script = 'event=$1; shift; printf "$(sed -n "s/^$event //p" "$0")" "$@"'

    def filled_in(*words: str) -> Any:
        answers = str(ROOT / "integrations" / "cursor" / "answers.txt")
        return json.loads(subprocess.check_output(["/bin/sh", "-c", script, answers, *words], text=True))

    assert filled_in("pre_tool_use", "why") == {"permission": "deny", "user_message": "why"}
    assert filled_in("session_start", "user", "model") == {"additional_context": "model"}
