"""Strict mode and the kernel: a command that cannot be parsed may run if all locks of others are held for it."""

import errno
import os
from pathlib import Path

import pytest
from support.altered import Failing
from support.kernel_calls import OPAQUE, Caller, says
from support.sessions import fault_lines, join, peer_locks

from swarm_hook_core.kernel import plans
from swarm_hook_core.state import has_plans, watched_dir
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request


@pytest.fixture
def caller(work: Path, monkeypatch: pytest.MonkeyPatch) -> Caller:
    says()
    monkeypatch.setenv("SWARM_STRICT", "1")
    return Caller(work, monkeypatch)


def test_it_passes_where_all_is_held(caller: Caller, work: Path) -> None:
    peer_locks(work, work / "notes.md")
    assert not caller.denied() and caller.plan().is_strict and caller.held() == ["notes.md"]


def test_it_is_denied_where_not_all_can_be_held(caller: Caller, work: Path) -> None:
    peer_locks(work, work / "notes.md")
    peer_locks(work, work / "to-come.md")
    assert "SWARM_STRICT" in caller.denied() and caller.plan() is None


def test_it_is_denied_where_a_pattern_is_locked(caller: Caller, work: Path) -> None:
    with Store() as store:
        peer = join(store, work)
        store.locks.acquire_all(peer, request(peer, ["*.md"], as_pattern=True))
    assert "SWARM_STRICT" in caller.denied() and not has_plans(caller.session_id)


def test_it_is_denied_where_the_kernel_cannot_or_the_command_may_not_enter(caller: Caller, work: Path) -> None:
    peer_locks(work, work / "notes.md")
    assert "SWARM_STRICT" in caller.denied(f"{OPAQUE}; swarm-mcp locks")
    says("Operation not permitted")
    assert "SWARM_STRICT" in caller.denied() and not has_plans(caller.session_id)


def test_what_is_certain_is_denied_as_ever(caller: Caller, work: Path) -> None:
    peer_locks(work, work / "notes.md")
    said = caller.denied(f"{OPAQUE}; echo x > notes.md")
    assert said.startswith("swarm lock blocked Bash (") and "SWARM_STRICT" not in said
    assert not has_plans(caller.session_id)


@pytest.mark.parametrize("is_strict", [True, False])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), UnicodeEncodeError("utf-8", "x", 0, 1, "no")]
)
def test_a_plan_that_cannot_be_left_is_none(
    caller: Caller, work: Path, monkeypatch: pytest.MonkeyPatch, failing: Failing, error: Exception, is_strict: bool
) -> None:
    """The disk is full: the call is judged as if the kernel could hold nothing, and denied means not watched either."""
    monkeypatch.setenv("SWARM_STRICT", "1" if is_strict else "0")
    peer_locks(work, work / "notes.md")

    failing(plans, "_write", error)
    verdict = caller.check()
    assert verdict.plan is None and (verdict.denial is not None) is is_strict
    assert "The kernel" not in verdict.notice and bool(verdict.notice) is not is_strict
    assert os.path.isdir(watched_dir()) is not is_strict
    (line,) = fault_lines()
    assert line["hook"] == "kernel" and type(error).__name__ in line["fault"]
    Path(os.environ["SWARM_STATE_DIR"], "faults.jsonl").unlink()


def test_a_lone_surrogate_in_a_command_is_judged_as_ever(caller: Caller, work: Path) -> None:
    peer_locks(work, work / "notes.md")
    assert "SWARM_STRICT" in caller.denied(f"{OPAQUE} '\ud800'")
    Path(os.environ["SWARM_STATE_DIR"], "faults.jsonl").unlink()
