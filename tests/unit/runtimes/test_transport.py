"""The check asked of the session's MCP server: wired by choice, the hook's own answers, and a stand-in for it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.fixtures import SWARM, Ground, Sleeper, wait_for
from support.serving import Server
from support.sessions import (
    FOLDERS,
    PAYLOADS,
    ROOT,
    RUNTIMES,
    captured,
    fault_lines,
    hook_core,
    hooks_by_tool,
    instances,
    mistakes,
    new_session,
    peer_locks,
    ready_store,
    run,
    start,
    write_payload,
)

from swarm_hook_core import repeated_denials
from swarm_hook_core.denial import Denial
from swarm_hook_core.hooks import Verdict
from swarm_hook_core.process import start_time
from swarm_mcp.runtimes import bundle, transport
from swarm_mcp.runtimes.owned_folder import read_record
from swarm_mcp.server.tools import all_tools
from swarm_mcp.server.tools.check import Check
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

SCRATCH = {"claude-code": "swarm-cc", "codex": "swarm-codex"}
SERVE = [*SWARM, "serve", "--transport", "mcp_tool"]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    ready_store()
    (tmp_path / "checkout" / ".git").mkdir(parents=True)
    return tmp_path / "checkout"


def asked(runtime: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Return the wired hook's input for this payload, as the client makes it: Claude Code sends all values as text."""
    (hook,) = [hook for hook in hooks_by_tool(runtime) if hook["type"] == "mcp_tool"]
    sent: dict[str, Any] = {}
    for name, value in hook["input"].items():
        found = payload.get(value[2:-1]) if value.startswith("${") else value
        sent[name] = json.dumps(found) if runtime == "claude-code" and isinstance(found, (dict, list)) else found
    return sent


# -- the same answers --------------------------------------------------------------------------------


def payload_names() -> list[tuple[str, str]]:
    return [
        (runtime, path.stem)
        for runtime, folder in FOLDERS.items()
        for path in sorted((PAYLOADS / folder).glob("PreToolUse.*.json"))
    ]


@pytest.mark.parametrize(("runtime", "name"), payload_names())
def test_every_captured_call_gets_the_hook_s_own_answer(runtime: str, name: str, repo: Path) -> None:
    me = new_session()
    start(runtime, me, repo)
    payload = {**captured(runtime, name, repo), "session_id": me}
    paths = hook_core(runtime).write_paths_for_tool(payload["tool_name"], payload["tool_input"], str(repo))
    for state in ("free", "mine", "held") if paths else ("free",):
        for path in paths:
            with Store() as store:
                own = store.instances.of_session(runtime, me) or {}
                if state == "mine":
                    store.locks.acquire(own, path, "")
                elif state == "held":
                    store.locks.release(own, path)
            if state == "held":
                peer_locks(repo, path, f"at {path}", "identity:x peer")
        let_time_pass()
        by_command = run(runtime, "pre_tool_use", payload).out.strip()
        by_tool = Check(asked(runtime, payload)).text
        assert by_tool == by_command
        assert bool(by_tool) is (state == "held")
        assert mistakes() == []


def let_time_pass() -> None:
    """Make all locks ten minutes old, so that two askers a second apart are told the same age."""
    with Store() as store, store.database.writing():
        store.database.change("UPDATE context SET created_at = created_at - 630")


def test_what_the_session_holds_itself_passes_also_where_nobody_registered_it(runtime: str, repo: Path) -> None:
    peer_locks(repo, repo / "f")
    me = new_session()
    check = Check(asked(runtime, write_payload(runtime, me, repo, str(repo / "f"))))
    assert "swarm lock blocked" in check.text
    wait_for(lambda: [row for row in instances() if row["session_id"] == me])
    (row,) = [row for row in instances() if row["session_id"] == me]
    assert (row["runtime"], row["scope"]) == (runtime, str(repo))


# -- calls that do not name their writes ----------------------------------------------------------------


def unseen(runtime: str, me: str, repo: Path, tool: str, tool_input: Any) -> dict[str, Any]:
    payload = {**captured(runtime, "PreToolUse.Bash", repo), "session_id": me, "cwd": str(repo)}
    return {**payload, "tool_name": tool, "tool_input": tool_input}


PATCH = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n+x\n*** Add File: f\n+x\n*** End Patch\nEOF\n"
UNSEEN: list[tuple[str, Any, str]] = [
    ("Bash", {"command": PATCH}, "deny"),
    ("Bash", {"command": PATCH.replace("f\n", "g\n")}, ""),
    ("Bash", {"command": "sed -i s/x/y/ f"}, "deny"),
    ("Bash", {"command": "cat f | grep x > g"}, ""),
    ("Bash", {"command": "find . -name 'f*' -delete"}, "deny"),
    ("Bash", {"command": "git clean -f"}, "deny"),
    ("Bash", {"command": "./build"}, "notice"),
    ("Bash", {"command": ["bash", "-lc", "echo > f"]}, "deny"),
    ("Bash", {"command": 3}, ""),
    ("mcp__filesystem__write_file", {"path": "f", "content": "x"}, "deny"),
    ("mcp__filesystem__write_file", {"content": "x"}, "notice"),
    ("mcp__filesystem__read_file", {"path": "f"}, ""),
]


@pytest.mark.parametrize("strict", ["", "1"])
def test_what_is_found_out_gets_the_hook_s_own_answer(
    runtime: str, strict: str, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    (repo / "f").write_text("x\n")
    (repo / "build").write_text("\0no script\n")
    monkeypatch.setenv("SWARM_STRICT", strict)
    me = new_session()
    start(runtime, me, repo)
    peer_locks(repo, repo / "f", "why not")
    let_time_pass()
    for tool, tool_input, expected in UNSEEN:
        payload = unseen(runtime, me, repo, tool, tool_input)
        answer = Check(asked(runtime, payload)).text
        Path(repeated_denials.path()).unlink(missing_ok=True)  # a third denial has other words
        assert answer == run(runtime, "pre_tool_use", payload).out.strip(), tool_input
        Path(repeated_denials.path()).unlink(missing_ok=True)
        wanted = "deny" if strict and expected == "notice" else expected
        assert ("deny" if '"deny"' in answer else "notice" if answer else "") == wanted, tool_input
    assert mistakes() == []


def test_what_the_server_watches_the_hooks_compare(runtime: str, repo: Path) -> None:
    me = new_session()
    start(runtime, me, repo)
    (repo / "f").write_text("x\n")
    peer_locks(repo, repo / "f")
    payload = unseen(runtime, me, repo, "Bash", {"command": "./build", "timeout": 1000})
    assert "additionalContext" in Check(asked(runtime, payload)).text
    (repo / "f").write_text("overwritten\n")
    ended = {**payload, "hook_event_name": "PostToolUse", "tool_response": {}}
    ran = run(runtime, "post_tool_use", ended)
    assert str(repo / "f") in ran.out and "changed" in ran.out and (ran.code, ran.err) == (0, "")


def test_the_server_tells_what_earlier_calls_did_whose_end_nobody_told(
    runtime: str, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from swarm_hook_core.watching import watch

    monkeypatch.setattr(watch, "FRESH_SECONDS", 0)
    me = new_session()
    start(runtime, me, repo)
    (repo / "f").write_text("x\n")
    peer_locks(repo, repo / "f")
    Check(asked(runtime, unseen(runtime, me, repo, "Bash", {"command": "./build"})))
    (repo / "f").write_text("overwritten\n")
    text = Check(asked(runtime, unseen(runtime, me, repo, "Bash", {"command": "cat f"}))).text
    assert "since your command began" in text and str(repo / "f") in text


def test_a_refusal_by_another_process_is_its_own_to_note(
    runtime: str, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarm_hook_core.core.HookCore.check", lambda *_: Verdict(Denial("", None, "no")))
    check = Check(asked(runtime, unseen(runtime, new_session(), repo, "Bash", {"command": "x"})))
    check.follow_up()
    assert '"no"' in check.text and mistakes() == []


# -- afterwards --------------------------------------------------------------------------------------


def test_a_refusal_is_noted_once_the_answer_is_out(runtime: str, repo: Path) -> None:
    me = new_session()
    start(runtime, me, repo)
    holder = peer_locks(repo, repo / "f")
    check = Check(asked(runtime, write_payload(runtime, me, repo, str(repo / "f"))))
    with Store() as store:
        assert store.database.rows("SELECT * FROM swarm_denials") == []
        check.follow_up()
        (noted,) = store.database.rows("SELECT * FROM swarm_denials")
        assert (noted["file"], noted["holder_id"]) == (str(repo / "f"), holder["id"])
    assert mistakes() == []


@pytest.mark.parametrize(
    "change",
    [
        {"runtime": "cobol"}, {"runtime": None}, {"runtime": ["codex"]}, {"tool_input": 5}, {"tool_input": "{"},
        {"tool_input": None}, {"tool_input": "[" * 100_000}, {"cwd": 7}, {"session_id": {}}, {"tool_name": None},
    ],
)  # fmt: skip
def test_odd_questions_let_the_write_pass(runtime: str, repo: Path, change: dict[str, Any]) -> None:
    arguments = {**asked(runtime, write_payload(runtime, new_session(), repo, str(repo / "f"))), **change}
    check = Check(arguments)
    check.follow_up()
    assert check.text == ""


def test_faults_let_the_write_pass_and_are_recorded(runtime: str, repo: Path) -> None:
    path = Path(os.environ["SWARM_DB_PATH"])
    path.write_bytes(b"no database at all\n" * 100)
    check = Check(asked(runtime, write_payload(runtime, new_session(), repo, str(repo / "f"))))
    assert check.text == ""
    assert [(fault["runtime"], fault["hook"]) for fault in fault_lines()][-1:] == [(runtime, "check_write")]


def test_a_server_that_fails_hands_over_to_the_stand_in(runtime: str, repo: Path) -> None:
    me = new_session()
    start(runtime, me, repo)
    question = asked(runtime, write_payload(runtime, me, repo, str(repo / "f")))
    word = Path(os.environ["SWARM_STATE_DIR"], SCRATCH[runtime], me, "server")
    Check(question).follow_up()
    assert word.read_text() == f"{os.getpid()} {start_time(os.getpid())}\n"
    Path(os.environ["SWARM_DB_PATH"]).write_bytes(b"no database at all\n" * 100)
    Check(question).follow_up()
    assert not word.exists()


def test_words_of_dead_servers_are_removed(runtime: str, repo: Path) -> None:
    base = Path(os.environ["SWARM_STATE_DIR"], SCRATCH[runtime])
    with Sleeper() as dead, Sleeper() as alive:
        for name, process in (("dead", dead), ("alive", alive), ("kept", dead)):
            (base / name).mkdir(parents=True)
            (base / name / "server").write_text(f"{process.pid} {process.started}\n")
        (base / "kept" / "meta.json").write_text("{}")
        start(runtime, "me", repo)  # in passing a session may not be registered in time
        dead.end()
        Check(asked(runtime, write_payload(runtime, "me", repo, str(repo / "f")))).follow_up()
        assert sorted(path.name for path in base.iterdir()) == ["alive", "kept", "me"]
        assert [(base / name / "server").exists() for name in ("alive", "kept", "me")] == [True, False, True]


# -- through a server --------------------------------------------------------------------------------


def test_the_tools_of_the_contract_stay_what_they_are() -> None:
    assert "check_write" not in all_tools()


def test_a_server_answers_hooks(ground: Ground, runtime: str, repo: Path) -> None:
    me = new_session()
    start(runtime, me, repo)
    peer_locks(repo, repo / "f", "why not")
    let_time_pass()
    with Server(ground, SERVE) as server:
        held, free = (asked(runtime, write_payload(runtime, me, repo, str(repo / name))) for name in ("f", "g"))
        result = server.call("check_write", held)
        (block,) = result["content"]
        assert block["text"] == Check(held).text and "why not" in block["text"] and not result.get("isError")
        assert "".join(block["text"] for block in server.call("check_write", free)["content"]) == ""
        marker = Path(os.environ["SWARM_STATE_DIR"], SCRATCH[runtime], me, "server")
        wait_for(marker.exists)
        assert marker.read_text() == f"{server.process.pid} {start_time(server.process.pid)}\n"
        with Store() as store:
            assert wait_for(lambda: store.database.rows("SELECT * FROM swarm_denials"))
    assert mistakes() == []


def test_a_check_waits_for_nobody(ground: Ground, repo: Path) -> None:
    """A call that lasts must not keep a write waiting until the client's patience ends."""
    me = new_session()
    start("codex", me, repo)
    peer_locks(repo, repo / "f")
    with Server(ground, SERVE) as server:
        server.call("register", {"directory": str(repo)})
        wait = {"name": "wait_for_activity", "arguments": {"timeout_seconds": 30}}
        for _ in range(8):
            server.begin("tools/call", wait)
        question = asked("codex", write_payload("codex", me, repo, "f"))
        number = server.begin("tools/call", {"name": "check_write", "arguments": question})
        assert "swarm lock blocked" in server.answer_to(number, 4)["content"][0]["text"]
        assert [message for message in server.notifications if "result" in message] == [], "they all still wait"


# -- the bundle --------------------------------------------------------------------------------------


def hooks_of(folder: Path, runtime: str) -> dict[str, Any]:
    return dict(json.loads((folder / "integrations" / runtime / "hooks.json").read_text())["hooks"])


@pytest.mark.parametrize("local", [False, True], ids=["portable", "local"])
def test_only_the_check_of_the_chosen_client_is_wired_anew(local: bool, runtime: str, tmp_path: Path) -> None:
    (other,) = set(RUNTIMES) - {runtime}
    bundle.write(tmp_path / "usual", local)
    bundle.write(tmp_path / "chosen", local, transports={runtime: "mcp_tool", other: "command"})
    assert hooks_of(tmp_path / "chosen", other) == hooks_of(tmp_path / "usual", other)
    before, after = hooks_of(tmp_path / "usual", runtime), hooks_of(tmp_path / "chosen", runtime)
    assert {event for event in before if before[event] != after[event]} == {"PreToolUse"} and set(before) == set(after)
    ((old,), (new,)) = before["PreToolUse"], after["PreToolUse"]
    assert new["matcher"] == old["matcher"]
    tool, command = new["hooks"]
    assert (tool["type"], tool["tool"], tool["timeout"]) == ("mcp_tool", "check_write", 5)
    guard, _, started = old["hooks"][0]["command"].partition(" && exec ")
    assert command["command"].startswith(guard) and command["command"].endswith(started)
    assert transport.STAND_IN in command["command"]
    assert (tmp_path / "chosen" / transport.STAND_IN).read_text() == (ROOT / transport.STAND_IN).read_text()
    record = read_record(tmp_path / "chosen")
    assert bundle.transports_of(record) == {runtime: "mcp_tool"} and transport.STAND_IN in record["files"]


def test_going_back_leaves_nothing_of_it(tmp_path: Path) -> None:
    bundle.write(tmp_path / "a", transports=dict.fromkeys(RUNTIMES, "mcp_tool"))
    bundle.write(tmp_path / "a", transports=dict.fromkeys(RUNTIMES, "command"))
    bundle.write(tmp_path / "b")
    assert bundle.write(tmp_path / "a") is False
    for path in (tmp_path / "b").rglob("*"):
        assert path.is_dir() or (tmp_path / "a" / path.relative_to(tmp_path / "b")).read_bytes() == path.read_bytes()
    assert not (tmp_path / "a" / transport.STAND_IN).exists()


@pytest.mark.parametrize("chosen", [None, 5, {"codex": "pigeon"}, {"codex": []}])
def test_a_record_that_makes_no_sense_means_the_command(chosen: Any) -> None:
    assert bundle.transports_of({"transports": chosen}) == bundle.transports_of({}) == {}


def fake_clients(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("claude", "codex"):
        path = folder / name
        path.write_text("#!/bin/sh\nexit 1\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_install_keeps_what_was_chosen(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_clients(tmp_path, monkeypatch)

    def planned(*flags: str) -> dict[str, str]:
        done = ground.swarm("install", "--dry-run", "--json", *flags).json
        return {result["client"]: result["transport"] for result in done["results"]}

    def installed(*flags: str) -> None:
        ground.swarm("install", "--json", *flags)  # the clients refuse; the folder is written all the same

    assert planned() == {"claude-code": "command", "codex": "command"}
    assert planned("--transport", "mcp_tool") == {"claude-code": "mcp_tool", "codex": "mcp_tool"}
    installed("--client", "codex", "--transport", "mcp_tool")
    assert planned() == {"claude-code": "command", "codex": "mcp_tool"}
    installed()
    assert planned("--client", "codex") == {"codex": "mcp_tool"}
    installed("--transport", "command")
    assert planned() == {"claude-code": "command", "codex": "command"}


@pytest.mark.parametrize("verb", [("install",), ("bundle", "x"), ("serve",)])
def test_an_unknown_transport_is_refused(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    fake_clients(tmp_path, monkeypatch)
    done = ground.swarm(*verb, "--transport", "pigeon")
    assert done.code == 1 and "command, mcp_tool" in done.err and done.err.count("\n") == 1
