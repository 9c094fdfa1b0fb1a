"""The calls that get a plan, and its way into the shell of the call."""

import io
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.files import program_at
from support.kernel_calls import OPAQUE, Caller, says
from support.sessions import fault_lines, hook_core, mistakes, peer_locks

from swarm_hook_core import environment, session_events, settings
from swarm_hook_core.hooks import SessionEvent, tool_call
from swarm_hook_core.kernel import namespace, planning, plans
from swarm_hook_core.state import config_path, has_plans


@pytest.fixture
def held(work: Path) -> Path:
    """A file that a peer holds, where the kernel can hold it."""
    says()
    peer_locks(work, work / "notes.md")
    return work / "notes.md"


@pytest.fixture
def caller(work: Path, held: Path, monkeypatch: pytest.MonkeyPatch) -> Caller:
    return Caller(work, monkeypatch)


def test_a_call_that_cannot_be_told_has_a_plan(caller: Caller, held: Path) -> None:
    verdict = caller.check(agent="a1")
    assert verdict.denial is None and verdict.notice.endswith("The kernel keeps them read-only for this call.")
    plan = caller.plan()
    assert (plan.runtime, plan.session, plan.instance, plan.agent) == (
        "claude-code", caller.session_id, caller.row["id"], "a1",
    )  # fmt: skip
    assert (plan.paths, plan.roots, plan.is_strict) == ([str(held)], [str(caller.folder)], False)
    assert plan.command == "python3fix.py" and plan.store == os.environ["SWARM_DB_PATH"]


def test_what_can_be_told_and_what_is_far_from_locks_has_none(caller: Caller) -> None:
    assert "notes.md" in caller.denied("echo x > notes.md")
    for command in ("ls", "echo x > other.md", "git status"):
        assert not caller.denied(command) and not has_plans(caller.session_id), command


def test_a_guess_elsewhere_reaches_what_is_locked_there(caller: Caller, tmp_path: Path) -> None:
    (tmp_path / "second" / ".git").mkdir(parents=True)
    (tmp_path / "second" / "f").write_text("x")
    (tmp_path / "second" / "fix.py").write_text((caller.folder / "fix.py").read_text())
    peer_locks(tmp_path / "second", tmp_path / "second" / "f")
    assert not caller.denied(f"cd {tmp_path}/second && {OPAQUE}")
    assert str(tmp_path.resolve() / "second" / "f") in caller.plan().paths


@pytest.mark.sampled
@pytest.mark.parametrize(
    "command", ["ssh host make", "sudo make", "make; docker build .", "git push && make", "tmux new"]
)
@pytest.mark.parametrize("user", [0, 1000])
def test_what_a_user_namespace_breaks(caller: Caller, monkeypatch: pytest.MonkeyPatch, command: str, user: int) -> None:
    """Root needs no user namespace."""
    monkeypatch.setattr(os, "geteuid", lambda: user)
    says()  # results for one user are not valid for the other
    assert not caller.denied(f"{OPAQUE}; {command}")
    assert bool(caller.plan()) is (user == 0)


def test_what_it_lives_on_runs_outside(caller: Caller) -> None:
    assert not caller.denied(f"{OPAQUE}; swarm-mcp locks")
    assert caller.plan() is None


def test_where_the_kernel_cannot(caller: Caller) -> None:
    says("Operation not permitted")
    verdict = caller.check()
    assert verdict.denial is None and "The kernel" not in verdict.notice and caller.plan() is None


def test_shells_that_were_not_told_where_to_look(work: Path, held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = Caller(work, monkeypatch, wired=False)
    assert not caller.denied() and caller.plan() is None
    caller.wire(monkeypatch)
    assert not caller.denied() and caller.held() == ["notes.md"]


def test_a_client_whose_commands_nobody_gets_into(work: Path, held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = Caller(work, monkeypatch, "gemini")
    assert caller.core.config.kernel == "" and not caller.denied() and not has_plans(caller.session_id)


def test_nothing_of_it_happens_unless_a_person_wants_it(caller: Caller, tmp_path: Path, monkeypatch) -> None:
    """The runtime's own variable, the general one, the checkout's word, the user's."""
    file = Path(config_path())
    file.parent.mkdir(parents=True, exist_ok=True)

    def is_on(config: Any = None, **env: str) -> bool:
        settings._last = (None, None)
        file.write_text(json.dumps(config or {}))
        with monkeypatch.context() as patched:
            patched.delenv("SWARM_KERNEL")
            for name, value in env.items():
                patched.setenv(name, value)
            assert not caller.denied()
        plan = caller.plan()
        plans.drop(caller.session_id)
        assert bool(plan) is bool(plan and plan.paths)
        return plan is not None

    try:
        assert not is_on()
        assert is_on(SWARM_KERNEL="1") and is_on(SWARM_CC_KERNEL="true", SWARM_KERNEL="0")
        assert not is_on({"kernel": True}, SWARM_CC_KERNEL="0", SWARM_KERNEL="1")
        assert is_on({"kernel": True}) and not is_on({"kernel": True}, SWARM_KERNEL="0")
        assert is_on({"checkouts": {str(caller.folder): {"kernel": True}}})
        assert not is_on({"kernel": True, "checkouts": {str(caller.folder): {"kernel": False}}})
        assert not is_on({"checkouts": {str(tmp_path / "other"): {"kernel": True}}})
        assert mistakes() == []
        assert not is_on({"kernel": "yes"})
    finally:
        file.unlink()
        settings._last = (None, None)
    (line,) = mistakes()
    assert "kernel is neither true nor false" in line["fault"]
    Path(os.environ["SWARM_STATE_DIR"], "faults.jsonl").unlink()


def test_a_session_s_shells_are_told_once_where_to_look(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    caller.env_file.write_text("export OF_ANOTHER_HOOK=1\n")
    for _again in range(2):
        caller.wire(monkeypatch)
    first, line = caller.env_file.read_text().splitlines()
    assert first == "export OF_ANOTHER_HOOK=1" and line.startswith("if [ -d ")
    assert plans.wired_file(caller.session_id) in line
    assert subprocess.run(["sh", "-c", line], capture_output=True, check=True).stderr == b""


def test_the_start_of_a_session_tells_them(work: Path, held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = Caller(work, monkeypatch, wired=False)
    event = SessionEvent(caller.session_id, str(work), "SessionStart", source="startup")
    session_events._wire(caller.core, event)
    assert not os.path.exists(plans.wired_file(caller.session_id)), "the client has no such file"
    monkeypatch.setenv("CLAUDE_ENV_FILE", str(caller.env_file))
    monkeypatch.setenv("SWARM_KERNEL", "0")
    session_events._wire(caller.core, event)
    assert not os.path.exists(plans.wired_file(caller.session_id)), "nobody wants it"
    monkeypatch.setenv("SWARM_KERNEL", "1")
    session_events._wire(hook_core("codex"), event)
    assert not os.path.exists(plans.wired_file(caller.session_id)), "another client"
    session_events._wire(caller.core, event)
    assert os.path.exists(plans.wired_file(caller.session_id)) and caller.env_file.read_text()


def test_an_end_of_a_session_leaves_nothing(caller: Caller) -> None:
    assert not caller.denied() and caller.plan()
    session_events.ends(caller.core, SessionEvent(caller.session_id, str(caller.folder), "SessionEnd"))
    assert not has_plans(caller.session_id) and not os.path.exists(plans.wired_file(caller.session_id))


def test_at_a_turn_old_plans_go(caller: Caller, capsys: pytest.CaptureFixture[str]) -> None:
    assert not caller.denied(id="old") and not caller.denied("make -C sub", id="new")
    os.utime(os.path.join(plans.folder_of(caller.session_id), "old"), (1000, 1000))
    session_events.takes_turn(caller.core, SessionEvent(caller.session_id, str(caller.folder), "UserPromptSubmit"))
    assert caller.plan("old") is None and caller.plan("new")


@pytest.fixture
def codex(work: Path, held: Path, monkeypatch: pytest.MonkeyPatch) -> Caller:
    return Caller(work, monkeypatch, "codex")


def payload(caller: Caller, command: str, event: str = "PreToolUse") -> dict[str, Any]:
    given = {"session_id": caller.session_id, "cwd": str(caller.folder), "hook_event_name": event}
    return {**given, "tool_name": "Bash", "tool_input": {"command": command, "timeout": 5}, "tool_use_id": "call-1"}


def answered(caller: Caller, command: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the answer to the client before a call."""
    assert caller.core.run_pre_tool_use_hook(io.StringIO(json.dumps(payload(caller, command)))) == 0
    out = capsys.readouterr().out
    return dict(json.loads(out)["hookSpecificOutput"]) if out else {}


def test_a_statement_is_put_in_front_of_the_command(codex: Caller, capsys: pytest.CaptureFixture[str]) -> None:
    told = answered(codex, OPAQUE, capsys)
    entry = os.path.join(plans.folder_of(codex.session_id), "call-1.sh")
    assert told == {
        "hookEventName": "PreToolUse", "permissionDecision": "allow",
        "updatedInput": {"command": f". '{entry}'; {OPAQUE}", "timeout": 5},
    }  # fmt: skip
    assert os.path.exists(entry) and "held by" in codex.plan().words, "what it would drop comes afterwards"
    for command in ("ls", "echo x > other.md"):
        assert "updatedInput" not in answered(codex, command, capsys)
    assert answered(codex, "echo x > notes.md", capsys)["permissionDecision"] == "deny"


@pytest.mark.parametrize("command", [OPAQUE, "# a comment\nmake", ". ./env; make", "cat <<'E' | python3\nx\nE"])
def test_after_the_call_its_command_is_what_it_was(codex: Caller, command: str) -> None:
    entry = plans.leave(plans.Plan("codex", codex.session_id), "call-1", alone=True)
    put = planning.preceded({"command": command}, entry)["command"]
    after = tool_call(codex.core.config.dialect.read(payload(codex, put, "PostToolUse")))
    assert after.input == {"command": command, "timeout": 5}
    before = tool_call(codex.core.config.dialect.read(payload(codex, put)))
    assert before.input["command"] == put, "before it, all of it is its model's"


@pytest.mark.parametrize("rest", ["/call.sh; make", "/call.sh'", "/../../x.sh'; make", "", "/a/b/c.sh'; make"])
def test_what_is_no_statement_of_ours_stays(codex: Caller, rest: str) -> None:
    command = f". '{plans.folder_of(codex.session_id)}{rest}"
    after = tool_call(codex.core.config.dialect.read(payload(codex, command, "PostToolUse")))
    assert after.input["command"] == command


def test_a_state_folder_with_a_quote_in_its_name(work: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SWARM_STATE_DIR", str(tmp_path / "it's swarm"))
    says()
    codex = Caller(work, monkeypatch, "codex")
    entry = plans.leave(plans.Plan("codex", codex.session_id), "call-1", alone=True)
    put = planning.preceded({"command": OPAQUE}, entry)["command"]
    after = tool_call(codex.core.config.dialect.read(payload(codex, put, "PostToolUse")))
    assert after.input["command"] == OPAQUE


def test_only_where_a_release_was_seen_to_keep_its_rules(codex: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    for version, shell, has_plan in (
        ("0.169.0", "zsh", True), ("0.171.0", "bash", True), ("0.169.0", "fish", False),
        ("0.170.0", "bash", False), ("", "bash", False),
    ):  # fmt: skip
        monkeypatch.setattr(planning, "_shell", lambda shell=shell: shell)
        monkeypatch.setattr(environment, "client_version", lambda config, version=version: version)
        assert not codex.denied()
        assert bool(codex.plan()) is has_plan, (version, shell)
        plans.drop(codex.session_id)


@pytest.mark.parametrize(
    "command",
    [
        "apply_patch <<'E'\n*** Begin Patch\n*** End Patch\nE\n" + OPAQUE,
        f"{OPAQUE} && applypatch 'x'",
        ["bash", "-lc", OPAQUE],
    ],
)
def test_never_in_front_of_a_patch_or_of_what_is_no_text(codex: Caller, command: Any) -> None:
    assert not codex.denied(command) and codex.plan() is None


def test_a_client_s_version_is_asked_once(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_at(tmp_path / "client", f"#!/bin/sh\necho asked >> {tmp_path}/asked\necho client 1.2.3\n")
    sleeper = subprocess.Popen(["sleep", "600"])
    monkeypatch.setattr("swarm_hook_core.environment.client_process", lambda marks=(): (sleeper.pid, ""))
    monkeypatch.setattr(os, "readlink", lambda path: str(program))
    try:
        config = hook_core("codex").config
        assert [environment.client_version(config) for _ in range(3)] == ["1.2.3"] * 3
        assert (tmp_path / "asked").read_text() == "asked\n"
    finally:
        sleeper.kill()
        sleeper.wait()
    assert environment.client_version(config) == "", "it has gone"


def test_what_was_found_counts_for_this_start_of_the_machine_and_this_user(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []
    monkeypatch.setattr(namespace, "_tried", lambda: tries.append(1) or "")
    assert [namespace.works() for _ in range(3)] == [True] * 3 and len(tries) == 1
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert namespace.works() and len(tries) == 2
    says("Operation not permitted (user.max_user_namespaces is 0)")
    assert not namespace.works() and len(tries) == 2
    assert namespace.mend("Operation not permitted (user.max_user_namespaces is 0)").startswith("sudo sysctl")
    assert namespace.mend("something else") == "" and namespace.again() == "" and namespace.works()


def test_what_is_tried_is_tried_by_a_process_that_leaves_nothing() -> None:
    before = Path("/proc/self/mountinfo").read_text() if os.path.exists("/proc/self/mountinfo") else ""
    why = namespace.again()
    assert namespace.works() is (why == "")
    assert not [name for name in os.listdir(plans.kernel_dir()) if name.startswith("canary")]
    assert not before or Path("/proc/self/mountinfo").read_text() == before
    assert fault_lines() == []
