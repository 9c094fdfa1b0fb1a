"""A store locked by another process: for a moment, as by a commit, and for good."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.altered import Limits
from support.sessions import fault_lines, hook_core, new_session, peer_locks, start, write, write_payload

from swarm_hook_core import process
from swarm_hook_core.hooks import tool_call
from swarm_hook_core.lookup import glance
from swarm_hook_core.lookup import sqlite as lookup
from swarm_hook_core.state import state_dir, store_path

pytestmark = pytest.mark.slow

MUCH_LATER = 1000.0  # seconds: no test waits for it


class Holder:
    """A process that has the store for itself alone, as the rollback journal's commits and a closing log have it."""

    SCRIPT = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30);"
        "c.execute('PRAGMA journal_mode = DELETE'); c.execute('BEGIN EXCLUSIVE'); print('held', flush=True); input();"
        "c.execute('UPDATE instances SET heartbeat = heartbeat + 1'); c.execute('COMMIT'); print('free', flush=True)"
    )

    def __init__(self, path: str):
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.SCRIPT, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout and self.process.stdout.readline() == "held\n"

    def let_go(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "free\n"


@contextmanager
def held() -> Iterator[Holder]:
    holder = Holder(store_path())
    try:
        yield holder
    finally:
        holder.process.kill()
        holder.process.communicate()


@pytest.fixture(autouse=True)
def nothing_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glance, "_in_vain", {})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, limits: Limits) -> list[float]:
    """The pauses of this process's checks so far, without real waiting; nor does SQLite itself wait."""
    pauses: list[float] = []
    limits(glance, BUSY_SECONDS=0.0)
    clock = SimpleNamespace(time=time.time, monotonic=time.monotonic, sleep=pauses.append)
    monkeypatch.setattr(glance, "time", clock)  # its own: this process sleeps elsewhere too
    return pauses


def test_a_commit_that_is_under_way_is_waited_for(runtime: str, repo: Path) -> None:
    me = new_session()
    start(runtime, me, repo)
    peer_locks(repo, repo / "f")
    with held() as holder:
        commit = threading.Timer(0.4, holder.let_go)
        commit.start()
        begun = time.monotonic()
        ran = write(runtime, me, repo, repo / "f")
        commit.join()
        assert ran.reason and time.monotonic() - begun >= 0.4
    assert fault_lines() == [] and not os.path.exists(os.path.join(state_dir(), "busy"))


def test_every_question_is_asked_until_it_is_answered(
    repo: Path, asked: list[float], monkeypatch: pytest.MonkeyPatch, limits: Limits
) -> None:
    """With a rollback journal each statement may meet a commit, and not only the first."""
    row = peer_locks(repo, repo / "f")
    limits(glance, SECONDS=MUCH_LATER)
    with held() as holder:
        holder.let_go()  # from now on there is no log
    reader = lookup.StoreReader(store_path(), waits=True)
    for question, answer in (
        (lambda: reader.others_hold("me"), True),
        (lambda: [lock.instance_id for lock in reader.locks_on([str(repo / "f")])], [row["id"]]),
        (lambda: reader.patterns_over([str(repo / "f")]), []),
        (lambda: reader.holder("codex", "nobody"), None),
    ):
        asked.clear()
        with held() as holder:
            monkeypatch.setattr(glance.time, "sleep", _third_time(asked, holder.let_go))
            assert question() == answer
            assert len(asked) == 3


def _third_time(asked: list[float], do):
    def sleep(seconds: float) -> None:
        asked.append(seconds)
        if len(asked) == 3:
            do()

    return sleep


@pytest.mark.sampled
def test_a_store_that_is_kept_is_waited_for_once(runtime: str, repo: Path) -> None:
    me = new_session()
    start(runtime, me, repo)
    peer_locks(repo, repo / "f")
    with held():
        first, *_more = ran = [write(runtime, me, repo, repo / "f") for _ in range(3)]
    assert [(one.code, one.out) for one in ran] == [(0, "")] * 3
    assert first.took >= glance.SECONDS
    assert len(fault_lines()) == 3 and all("database is locked" in line["fault"] for line in fault_lines())
    assert write(runtime, me, repo, repo / "f").reason, "it is free again"


class TestInOneProcess:
    """As in a server that answers one check after another."""

    @pytest.fixture(autouse=True)
    def kept(self, repo: Path, asked: list[float], limits: Limits) -> Iterator[None]:
        limits(glance, SECONDS=0.05)
        self.core, self.asked = hook_core("codex"), asked
        self.me = new_session()
        start("codex", self.me, repo)
        peer_locks(repo, repo / "f")
        self.call = tool_call(write_payload("codex", self.me, repo, str(repo / "f")))
        with held():
            yield

    def waits(self) -> bool:
        self.asked.clear()
        with pytest.raises(Exception, match="locked"):
            self.core.check(self.call)
        return bool(self.asked)

    def test_it_waits_once(self) -> None:
        assert [self.waits() for _ in range(3)] == [True, False, False]

    def test_other_processes_do_not_wait_either(self) -> None:
        assert self.waits()
        glance._in_vain.clear()
        assert not self.waits()

    def test_it_waits_again_a_while_later(self) -> None:
        assert self.waits()
        glance._in_vain.clear()
        note, long_ago = os.path.join(state_dir(), "busy"), time.time() - glance.IN_VAIN_SECONDS - 1
        os.utime(note, (long_ago, long_ago))
        assert self.waits()
        glance._in_vain[store_path()] = time.monotonic() - glance.IN_VAIN_SECONDS - 1
        os.utime(note, (long_ago, long_ago))
        assert self.waits()

    def test_a_note_from_the_future_or_of_another_store_counts_for_nothing(self) -> None:
        assert self.waits()
        note, one_day = Path(state_dir(), "busy"), time.time() + 86400
        os.utime(note, (one_day, one_day))
        glance._in_vain.clear()
        assert self.waits()
        note.write_text("/another/store")
        glance._in_vain.clear()
        assert self.waits()

    def test_where_nothing_can_be_noted_this_process_remembers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SWARM_STATE_DIR", "/dev/null/nowhere")
        assert [self.waits() for _ in range(2)] == [True, False]

    def test_who_needs_no_answer_does_not_wait(self) -> None:
        with pytest.raises(glance.sqlite_driver().OperationalError, match="locked"):
            lookup.StoreReader(store_path())
        assert self.asked == []


def test_a_client_waits_longer_for_a_check_than_that_for_the_store() -> None:
    assert glance.SECONDS + 4 * glance.BUSY_SECONDS + 1 < 5


def test_a_checker_asks_for_locks_anew_once_the_store_has_changed(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "is_answering", lambda: True)
    asked: list[object] = []
    look = lookup.StoreReader._locks_under
    monkeypatch.setattr(lookup.StoreReader, "_locks_under", lambda *given: (asked.append(given), look(*given))[1])

    def locked() -> list[str]:
        reader = lookup.StoreReader(store_path())
        found = reader.locks_under([str(repo)], "me", 9)
        names = sorted(os.path.basename(held.file) for held in found)
        found.clear()  # the caller's own
        reader.close()
        return names

    try:
        peer_locks(repo, repo / "f")
        assert locked() == locked() == ["f"] and len(asked) == 1
        peer_locks(repo, repo / "g", label="other")
        assert locked() == locked() == ["f", "g"] and len(asked) == 2
        monkeypatch.setattr(glance, "LONGEST_ANSWER", 1)
        peer_locks(repo, repo / "h", label="third")
        assert locked() == locked() == ["f", "g", "h"] and len(asked) == 4
    finally:
        glance.forget_connection()
