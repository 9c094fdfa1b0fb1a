"""Calls captured from the clients: a write is denied beside a peer's lock, and made elsewhere."""

from pathlib import Path

import pytest
from support.sessions import captured, instances, new_session, peer_locks, run

from swarm_mcp.runtimes import hook_config
from swarm_mcp.runtimes.base import with_fields

pytestmark = pytest.mark.slow

OPENCODE = {
    "PreToolUse.write": "new.md",
    "PreToolUse.write.subagent": "sub.md",
    "PreToolUse.edit": "notes.md",
    "PreToolUse.apply_patch": "moved.md other.md",
    "PreToolUse.bash": "notes.md",  # with a working directory of its own
    "PreToolUse.mcp__files__write_file": "n.md",
}
# Client -> its captured calls, and the files that each of them writes.
WRITES = {
    "auggie": {
        "PreToolUse.save-file": "free.md",
        "PreToolUse.str-replace-editor": "notes.md",
        "PreToolUse.remove-files": "gone.md",
        "PreToolUse.apply_patch": "p.md",
        "PreToolUse.launch-process.cwd": "sub/sh.txt",
        "PreToolUse.write_file_files": "srv.md",
    },
    "cline": {
        "PreToolUse.editor": "free.md",
        "PreToolUse.editor.subagent": "notes.md",
        "PreToolUse.apply_patch": "other.md",
        "PreToolUse.run_commands": "a.txt",
    },
    "kimi": {
        "PreToolUse.Write": "notes2.md",
        "PreToolUse.Write.append": "rel.md",
        "PreToolUse.Edit": "notes2.md",
        "PreToolUse.Bash.cwd": "sub/here.md",
        "PreToolUse.Bash.background": "bg.md",
        "PreToolUse.Bash.subagent": "sub.txt",
        "PreToolUse.mcp__files__write_file": "srv.md",
    },
    "letta": {
        "PreToolUse.Write": "free.md",
        "PreToolUse.Edit": "notes.md",
        "PreToolUse.ApplyPatch": "p.md",
        "PreToolUse.Bash": "shell.txt",
    },
    "omp": {
        "PreToolUse.write": "new.md",
        "PreToolUse.write.subagent": "sub.md",
        "PreToolUse.edit": "notes.md",
        "PreToolUse.edit.sections": "notes.md",
        "PreToolUse.edit.patch": "p.md",
        "PreToolUse.ast_edit": "a.py",
        "PreToolUse.bash": "shell.txt",
        "PreToolUse.mcp__files_write_file": "mcp.md",
    },
    "qwen": {
        "PreToolUse.edit": "notes.md",
        "PreToolUse.write_file.subagent": "sub.md",
        "PreToolUse.run_shell_command.directory": "sub/here.md",
        "PreToolUse.run_shell_command.background": "bg.md",
        "PreToolUse.mcp__files__write_file": "srv.md",
    },
    "opencode": OPENCODE,
    "kilo": OPENCODE,
}
CAPTURED_FROM = {"kilo": "opencode"}
CASES = [(name, call, file) for name, calls in WRITES.items() for call in calls for file in calls[call].split()]


@pytest.mark.parametrize(("name", "call", "file"), CASES)
def test_a_write_is_denied_beside_a_lock_and_made_elsewhere(repo: Path, name: str, call: str, file: str):
    dialect = hook_config(name).dialect
    payload = with_fields(captured(CAPTURED_FROM.get(name, name), call, repo), dialect, {"session_id": new_session()})
    passed = run(name, "pre_tool_use", payload)
    assert (passed.code, passed.out) == (0, "")
    peer_locks(repo, repo / file)
    denied = run(name, "pre_tool_use", payload)
    assert denied.code == dialect.denial_status
    assert "swarm lock blocked" in denied.out and str(repo / file) in denied.out


@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        ("omp", "SessionStart.startup", "PostToolUse.bash"),
        ("opencode", "SessionStart.startup", "PostToolUse.bash"),
        ("kilo", "SessionStart.startup", "PostToolUse.bash"),
        ("cline", "SessionStart", "PostToolUse.run_commands"),
    ],
)
def test_a_session_comes_and_goes_with_its_sub_agents(repo: Path, name: str, start: str, end: str):
    session, source = new_session(), CAPTURED_FROM.get(name, name)

    def told(hook: str, payload: str) -> str:
        ran = run(name, hook, {**captured(source, payload, repo), "session_id": session}, patient=True)
        assert (ran.code, ran.err) == (0, "")
        return ran.out

    assert f"is registered as `{name} " in told("session_start", start)
    assert captured(source, "SubagentStart", repo)["agent_id"] in told("subagent", "SubagentStart")
    assert told("turn", "UserPromptSubmit") == told("post_tool_use", end) == ""
    assert told("subagent", "SubagentStop") == told("turn", "Stop") == ""
    assert [row["session_id"] for row in instances()] == [session]
    assert told("session_end", "SessionEnd") == "" and instances() == []
