"""Faults in our own files: the call goes ahead, and the fault is recorded."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.kernel_calls import Caller, says
from support.kernel_ground import USERS, KernelGround, grounds
from support.sessions import fault_lines, peer_locks

from swarm_hook_core.kernel import plans, reach, refused

pytestmark = pytest.mark.slow


@pytest.fixture
def ground(monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelGround]:
    yield from grounds(USERS[0], monkeypatch)


@pytest.fixture
def caller(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Caller:
    says()
    (repo / "held").write_text("theirs\n")
    peer_locks(repo, repo / "held")
    return Caller(repo, monkeypatch)


def recorded(text: str) -> None:
    """Check that one fault with this text was recorded."""
    found = [line["fault"] for line in fault_lines()]
    assert len(found) == 1 and text in found[0], found


@pytest.mark.parametrize("data", [b"", b"\xff\0\xfe", b"session=s\0path=\0path=relative\0", b"path=/etc/passwd\0"])
def test_a_broken_plan_holds_nothing(ground: KernelGround, data: bytes) -> None:
    place = ground.folder / "broken"
    place.write_bytes(data)
    done = ground.bash(place, "echo x > free; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "") and (ground.repo / "free").exists()


def test_without_our_modules_the_command_runs(ground: KernelGround) -> None:
    alone = ground.folder / "alone" / "swarm_hook_core" / "kernel" / "enter.py"
    alone.parent.mkdir(parents=True)
    shutil.copy(ground.core / "kernel" / "enter.py", alone)
    held = ground.locked("held.txt")
    ground.core = alone.parent.parent
    assert ground.bash(ground.plan(held), "echo x > held.txt; exit 3").returncode == 3 and held.read_text() == "x\n"


def test_a_folder_of_plans_that_is_a_file(caller: Caller) -> None:
    Path(plans.folder_of(caller.session_id)).write_text("")
    verdict = caller.check()
    assert verdict.denial is None and verdict.plan is None and "held by" in verdict.notice
    recorded("belongs to somebody else")


def test_where_nothing_can_be_written_it_is_as_if_the_kernel_held_nothing(caller: Caller) -> None:
    """A file is in the place of the folder of all plans."""
    shutil.rmtree(plans.kernel_dir())
    Path(plans.kernel_dir()).write_text("")
    verdict = caller.check()
    assert verdict.denial is None and verdict.plan is None and "held by" in verdict.notice and not verdict.failed


def test_what_goes_wrong_while_a_plan_is_made(caller: Caller, monkeypatch: pytest.MonkeyPatch, failing) -> None:
    failing(reach, "paths_of", RuntimeError("no luck"))
    verdict = caller.check()
    assert verdict.denial is None and verdict.plan is None and "held by" in verdict.notice and not verdict.failed
    recorded("no luck")
    monkeypatch.setenv("SWARM_STRICT", "1")
    assert "SWARM_STRICT" in caller.denied()


def test_what_goes_wrong_after_a_call(caller: Caller, failing) -> None:
    assert not caller.denied()
    failing(refused, "_words", RuntimeError("no luck"))
    assert caller.after("Read-only file system") == ""
    recorded("no luck")
