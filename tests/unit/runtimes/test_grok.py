"""Grok Build: the links and entries of an installation, its payloads, and hooks wired for Claude Code that it runs."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.files import text_at
from support.sessions import captured, instances, mistakes, new_session, peer_locks, ready_store, said_by

from swarm_hook_core.check import Writes
from swarm_hook_core.hooks import tool_call
from swarm_mcp.doctor import enforcement
from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes import bundle, hook_config, runtime, users_file
from swarm_mcp.runtimes.base import Steps
from swarm_mcp.runtimes.grok import home

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

GROK, CONFIG = runtime("grok"), hook_config("grok")
PERSONS = [
    "",
    "# mine\n",
    "# mine\n[models]\ndefault = 'x'  # why",
    "\ufeff# a mark\r\n[models]\r\ndefault = 'x'\r\n\r\n",
    "[mcp_servers.other]\ncommand = 'true'\n\n\n",
]


class Place:
    """A repository, and a bundle in a folder with an odd name. Its hooks run as in the client."""

    def __init__(self, folder: Path):
        ready_store()
        self.repo, self.root = folder / "repo", folder / 'a "bundle" of `it` \\ \'s'
        (self.repo / ".git").mkdir(parents=True)
        bundle.write(self.root, local=True)
        self.me = new_session()

    def ask(self, name: str, client: str = "grok", env: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
        """Return the output of the hook of `client` for a captured payload. It ends with status 0, and prints nothing
        else.
        """
        tree = json.loads((self.root / "integrations" / client / "hooks.json").read_text())
        ((hook,),) = [group["hooks"] for group in tree["hooks"][name.partition(".")[0]]]
        payload = captured("grok", name, self.repo, **{"session_id": self.me, **more})
        given = {**os.environ, "GROK_HOOK_EVENT": "x", "CLAUDE_PLUGIN_ROOT": str(self.root), **(env or {})}
        said = said_by(hook["command"], payload, cwd=self.repo, env=given)
        return dict(json.loads(said or "{}").get("hookSpecificOutput", {}))

    def write(self, file: str, **more: Any) -> dict[str, Any]:
        return self.ask("PreToolUse.write", tool_input={"file_path": file, "content": "x"}, **more)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def settings() -> Path:
    path = home() / "config.toml"
    path.parent.mkdir(exist_ok=True)
    return path


def test_what_is_installed_holds_is_in_place_and_goes_again(place: Place) -> None:
    settings().write_text(PERSONS[2])
    text_at(home() / "hooks" / "mine.json", "{}")
    for _again in range(2):
        installed = GROK.install(place.root, Steps())
    assert enforcement.prove(GROK, installed).status == "ok" and GROK.traces()
    assert (home() / "hooks" / "swarm.json").resolve().is_relative_to(place.root.resolve())
    assert (home() / "skills" / "swarm" / "SKILL.md").is_file()
    assert settings().read_text().count("[mcp_servers.swarm]") == 1
    look = GROK.look(place.root, Steps())
    assert [finding.status for finding in look.findings] == ["ok"] and look.installed is not None
    (home() / "disabled-hooks").write_text("global/swarm:pre_tool_use[0].hooks[0]\n")
    assert GROK.look(place.root, Steps()).findings[0].status == "fail"
    GROK.uninstall(Steps())
    assert settings().read_text() == PERSONS[2] and not GROK.traces()
    assert [path.name for path in (home() / "hooks").iterdir()] == ["mine.json"]
    assert GROK.look(place.root, Steps()).findings[0].status == "warn"


def test_hooks_hold_although_the_server_cannot_be_added(place: Place) -> None:
    settings().write_text("mcp_servers = {}\n")
    steps = Steps()
    assert enforcement.prove(GROK, GROK.install(place.root, steps)).status == "ok"
    assert any("could not be added" in step for step in steps.done)
    assert settings().read_text() == "mcp_servers = {}\n"
    assert "not in" in GROK.look(place.root, Steps()).findings[-1].message


@pytest.mark.parametrize("before", PERSONS)
def test_the_file_is_as_it_was_byte_for_byte(before: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(before.encode())
    assert users_file.put(file, "a.b", 'x = "sign"\n', "sign") and not users_file.put(
        file, "a.b", 'x = "sign"\n', "sign"
    )
    assert users_file.put(file, "a.b", 'x = "sign 2"\n', "sign") and users_file.has(file, "a.b", "sign")
    assert users_file.take_out(file, "a.b", "sign") and not users_file.take_out(file, "a.b", "sign")
    assert file.read_bytes() == before.encode()


def test_a_file_of_ours_goes_and_what_others_have_added_stays(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    users_file.put(file, "a.b", 'x = "sign"\n', "sign")
    assert users_file.take_out(file, "a.b", "sign") and not file.exists()
    file.write_text("[models]\nx = 1")
    users_file.put(file, "a.b", 'x = "sign"\n', "sign")
    with open(file, "a") as more:
        more.write("# theirs\n[c]\ny = 1\n")
    users_file.take_out(file, "a.b", "sign")
    assert file.read_text() == "[models]\nx = 1\n# theirs\n[c]\ny = 1\n"
    # Grok drops comments, ours as well, and adds its defaults.
    file.write_text('[models]\nx = 1\n\n[a.b]\nx = "sign"\nenabled = true\n\n[c]\ny = 1\n')
    assert not users_file.put(file, "a.b", 'x = "sign"\n', "sign")
    assert users_file.take_out(file, "a.b", "sign") and file.read_text() == "[models]\nx = 1\n\n[c]\ny = 1\n"


@pytest.mark.parametrize("text", ["[a.b]\nx = 1\n", "[a.b.c]\nx = 1\n", "a.b = 1\n", "a = {}\n", '["a"."b"]\n'])
def test_somebody_else_s_table_stays(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(SwarmError, match="not ours"):
        users_file.put(file, "a.b", 'x = "sign"\n', "sign")
    assert not users_file.take_out(file, "a.b", "sign") and file.read_text() == text


def test_a_session_from_its_start_to_the_stop_that_follows_its_end(place: Place) -> None:
    assert place.ask("SessionStart") == place.ask("UserPromptSubmit") == {}, "nothing is passed on there"
    assert "is registered as" in place.write("free")["additionalContext"]
    assert place.write("free") == {}
    peer_locks(place.repo, place.repo / "notes.md", label="the peer")
    denied = place.ask("PreToolUse.search_replace", tool_input={"file_path": "notes.md"})
    assert denied["permissionDecisionReason"].startswith("swarm lock blocked search_replace for notes.md: held by")
    assert len(denied["permissionDecisionReason"]) <= 256
    shell = place.ask("PreToolUse.run_terminal_command", tool_input={"command": "echo x > notes.md"})
    assert shell["permissionDecision"] == "deny"
    tool = {"tool_name": "files__write_file", "tool_input": {"path": str(place.repo / "notes.md"), "content": "x"}}
    assert place.ask("PreToolUse.files__write_file", tool_input=tool)["permissionDecision"] == "deny"
    assert place.ask("Stop") == place.ask("SessionEnd") == place.ask("Stop.shutdown") == {}
    assert [row for row in instances() if row["runtime"] == "grok"] == [] and mistakes() == []


def test_a_sub_agent_is_an_agent_of_the_session_that_started_it(place: Place) -> None:
    payload = captured("grok", "PreToolUse.search_replace.subagent", place.repo)
    child, transcript = payload["session_id"], Path(payload["transcript_path"])
    alone = tool_call(CONFIG.dialect.read(dict(payload)))
    assert (alone.session_id, alone.agent) == (child, ""), "nobody knows who has started it"
    elsewhere = transcript.parents[2] / "another project"  # a sub-agent may have a worktree of its own
    for session in ("00000000-old", "01a20a00-parent", "zz-new"):
        (elsewhere / session / "subagents").mkdir(parents=True)
    (elsewhere / "01a20a00-parent" / "subagents" / child).mkdir()
    call = tool_call(CONFIG.dialect.read(dict(payload)))
    assert (call.session_id, call.agent) == ("01a20a00-parent", child)
    for name in ("SessionEnd.subagent", "UserPromptSubmit.subagent"):
        assert CONFIG.dialect.read(captured("grok", name, place.repo))["session_id"] == "", (
            "it is not the session's own"
        )
    ended = CONFIG.dialect.read(captured("grok", "SubagentStop", place.repo, session_id=child))
    assert (ended["session_id"], ended["agent_id"]) == ("01a20a00-parent", child)


def test_what_is_cut_short_is_no_whole(tmp_path: Path) -> None:
    def read(tool: str, text: str) -> Any:
        more = {"tool_name": tool, "toolName": tool, "tool_input": text + " [truncated]", "toolInputTruncated": True}
        return tool_call(CONFIG.dialect.read(captured("grok", "PreToolUse.write", tmp_path, **more)))

    call = read("write", '{"file_path": "/x", "content": "abc')
    assert call.is_cut and Writes(CONFIG, call).paths == ["/x"]
    with pytest.raises(ValueError, match="no path"):
        CONFIG.extract_paths(read("write", '{"content": "abc').input)
    shell = read("run_terminal_command", '{"command": "echo \\"a')
    assert (shell.tool, shell.input, shell.is_cut) == ("Bash", {"command": 'echo "a'}, True)
    other = read("files__write_file", '{"tool_name": "files__write_file", "tool_input": {"path": "p", "content": "x')
    assert (other.tool, other.input) == ("mcp__files__write_file", {"path": "p"})


def test_a_command_in_the_background_goes_on(tmp_path: Path) -> None:
    assert tool_call(
        CONFIG.dialect.read(captured("grok", "PostToolUse.run_terminal_command.background", tmp_path))
    ).goes_on
    assert not tool_call(CONFIG.dialect.read(captured("grok", "PostToolUse.run_terminal_command", tmp_path))).goes_on


def test_paths_as_the_client_opens_them(home: Path) -> None:
    for given, opened in {
        " a b.md ": ["a b.md"], "\"' c.md '\"": ["c.md"], "\u00a0d\u3000": ["d"], "\x1fe": ["\x1fe"], "@f": ["@f"],
        'in"side': ['in"side'], " ~/g ": [f"{home}/g", "~/g"], "~user/h": ["~user/h"],
    }.items():  # fmt: skip
        assert CONFIG.extract_paths({"file_path": given}) == opened


def test_hooks_wired_for_claude_code_act_as_its_own_and_stand_back_beside_them(place: Place) -> None:
    ready = {"source": "new"}
    place.ask("SessionStart", client="claude-code", **ready)
    assert [row["runtime"] for row in instances()] == ["grok"]
    peer_locks(place.repo, place.repo / "notes.md")
    assert place.write("notes.md", client="claude-code")["permissionDecision"] == "deny"
    GROK.install(place.root, Steps())
    assert place.write("notes.md", client="claude-code") == {}
    assert place.write("notes.md")["permissionDecision"] == "deny"
    text_at(Path.home() / ".claude" / "settings.json", '{"enabledPlugins": {"swarm@swarm": true}}')
    assert "stand back" in GROK.look(place.root, Steps()).findings[1].message
