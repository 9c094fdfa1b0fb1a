"""Waiting for locks: the order, the exceptions, the end of a wait, and the notices."""

import json
import os
import signal
import subprocess
import time

import pytest
from support import many_processes as crowd
from support.altered import Clocks
from support.fixtures import SWARM, Ground, wait_for
from support.serving import Server
from support.sessions import write

from swarm_hook_core import clock, paths
from swarm_hook_core.process import is_stopped
from swarm_mcp.errors import Deadlock, LockRefused, SwarmError
from swarm_mcp.locking.acquisition import LONGEST_NAP, SIGN_SECONDS, LockWait, acquire
from swarm_mcp.store import Store
from swarm_mcp.store.lock_listing import SILENT_SECONDS
from swarm_mcp.store.lock_request import request

pytestmark = pytest.mark.slow

WAITER = """
from swarm_mcp.store.lock_listing import SILENT_SECONDS
from swarm_mcp.store.lock_request import request
from swarm_mcp.locking.acquisition import LockWait
store = Store(arguments["path"])
client = (os.getpid(), arguments.get("start", ""))
me = store.instances.register(Registration(arguments["scope"], label=arguments["name"], runtime="codex",
                                           session_id=arguments["name"], lease_seconds=86400))
gate()
wait, ticket = LockWait(me, request(me, arguments["files"]), 30), 0
with store.changes() as changes:
    while (rows := wait.advance(store)) is None:
        ticket = wait.wanted.ticket
        changes.wait(wait.left())
report([ticket, rows[0]["fence"]])
for row in rows:
    store.locks.release(me, row["file"])
"""


class Line:
    """Sessions in one process, each with a wait of its own."""

    def __init__(self, ground: Ground, *names: str):
        self.store = ground.store()
        self.rows = {name: ground.session(name, name) for name in names}
        self.waits: dict[str, LockWait] = {}

    def take(self, who: str, *files: str, **given) -> list[dict]:
        """Lock without waiting."""
        return self.store.locks.acquire_all(self.rows[who], request(self.rows[who], files, **given))

    def wait(self, who: str, *files: str, seconds: float = 60, **given) -> list[dict] | None:
        """Begin to wait; the rows where there was nothing to wait for."""
        self.waits[who] = LockWait(self.rows[who], request(self.rows[who], files, **given), seconds)
        return self.waits[who].advance(self.store)

    def look(self, who: str) -> list[dict] | None:
        """Return the rows granted to `who` after a wait, or None before its time."""
        return self.waits[who].advance(self.store)

    def free(self, who: str, *files: str) -> None:
        for file in files:
            self.store.locks.release(self.rows[who], file)

    def told(self, who: str) -> list[str]:
        """Return the messages to `who`."""
        return [mail["content"] for mail in self.store.messages.take(self.rows[who])]


@pytest.fixture
def line(ground: Ground):
    line = Line(ground, "a", "b", "c", "d")
    yield line
    line.store.close()


def waiting(ground: Ground) -> int:
    return ground.sql("SELECT count(*) AS n FROM swarm_waiters")[0]["n"]


def test_first_come_first_served_across_processes(ground: Ground):
    holder = ground.session("holder")
    ground.lock(holder, "f")
    given = [{"path": ground.database, "scope": ground.scope, "name": f"w{n}", "files": ["f"]} for n in range(5)]
    with crowd.Crowd(WAITER, given) as members:
        members.start()
        wait_for(lambda: waiting(ground) == 5)
        with ground.store() as store:
            store.locks.release(holder, "f")
        done = members.finish()
    assert [member.code for member in done] == [0] * 5, done
    order = sorted(member.reports[0] for member in done)
    assert [ticket for ticket, _ in order] == [1, 2, 3, 4, 5]
    assert [fence for _, fence in order] == [2, 3, 4, 5, 6]
    assert waiting(ground) == 0 and ground.sql("SELECT id FROM context") == []


def test_a_holder_passes_those_that_wait_for_it_but_not_again_and_again(line: Line):
    """It waits for itself otherwise. A lock from such a pass allows no second one."""
    line.take("a", "one")
    assert line.wait("b", "one", "two") is None
    line.take("a", "two")
    line.free("a", "one")
    with pytest.raises(LockRefused):
        line.take("a", "one")
    with pytest.raises(Deadlock):
        line.wait("a", "one")
    line.take("a", "two", note="renewed")
    line.free("a", "two")
    assert line.look("b")


@pytest.fixture
def caseless(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """Letter case counts in the folder ``B``, and not in the folder ``B/sub``."""
    (ground.repo / "B" / "sub").mkdir(parents=True)
    (ground.repo / "a").mkdir()
    monkeypatch.setattr(paths, "ignores_case", lambda path: "/B/sub/" in path)


def test_who_waits_for_an_older_lock_is_passed_whatever_letter_case_counts_in_there(line: Line, caseless):
    """A wanted lock is found under a lock on the folder over it, though their keys are of two kinds."""
    assert line.wait("a", "B/")
    assert line.wait("b", "a/**", "B/sub/x.py") is None
    rows = line.wait("a", "x.py", "a/x.py") or []
    assert [row["fence"] for row in rows] == [2, 3]
    line.free("a", "B", "x.py", "a/x.py")
    assert line.look("b")


def test_a_circle_is_seen_whatever_letter_case_counts_in_there(line: Line, caseless):
    """A lock that is newer than a place does not let pass: waiting behind that place would have no end."""
    line.take("c", "B/")
    assert line.wait("a", "B/") is None and line.wait("b", "a/**", "B/sub/x.py") is None
    line.free("c", "B")
    assert line.look("a")
    with pytest.raises(LockRefused):
        line.take("a", "a/x.py")
    with pytest.raises(Deadlock) as told:
        line.wait("a", "x.py", "a/x.py")
    assert [name.split()[0] for name in told.value.circle] == ["a", "b"]


def test_a_circle_of_three_is_told_to_the_last_to_join(line: Line, ground: Ground):
    for who in "abc":
        line.take(who, f"of-{who}")
    assert line.wait("a", "of-b") is None and line.wait("b", "of-c") is None
    with pytest.raises(Deadlock) as deadlock:
        line.wait("c", "of-a")
    circle = deadlock.value.circle
    assert [name.split()[0] for name in circle] == ["c", "a", "b"]
    assert "{0} for {1}, {1} for {2}, {2} for {0}".format(*circle) in str(deadlock.value)
    assert deadlock.value.answer == {"error": str(deadlock.value), "circle": circle}
    assert waiting(ground) == 2
    (event,) = ground.sql("SELECT payload FROM events WHERE type = 'context.lock_deadlock'")
    assert len(json.loads(event["payload"])["circle"]) == 3
    line.free("c", "of-c")
    assert line.look("b")


def test_a_circle_that_a_hand_over_closes_is_found(line: Line, ground: Ground, after):
    line.take("a", "one")
    line.take("b", "two")
    assert line.wait("c", "one") is None and line.wait("a", "two") is None
    ground.sql("UPDATE context SET instance_id = ? WHERE instance_id = ?", line.rows["c"]["id"], line.rows["b"]["id"])
    after(SIGN_SECONDS)
    assert line.look("c") is None, "the last one to join is told"
    with pytest.raises(Deadlock):
        line.look("a")


def test_a_wait_ends_when_its_time_is_over(line: Line, ground: Ground):
    line.take("a", "f")
    began = time.monotonic()
    wanted = request(line.rows["b"], ["f"])
    with pytest.raises(LockRefused) as refused:
        acquire(line.store, line.rows["b"], wanted, 0.2)
    assert time.monotonic() - began >= 0.2 and refused.value.active["owner"]["label"] == "a"
    assert waiting(ground) == 0
    line.free("a", "f")
    (text,) = line.told("b")
    assert "f is free" in text, "as anybody who was refused"


def test_one_s_own_lock_is_not_waited_for(line: Line):
    line.take("a", "f")
    with pytest.raises(LockRefused):
        line.wait("a", "f", once=True)


def test_a_session_that_ends_waits_no_more(line: Line, after):
    line.take("a", "f")
    assert line.wait("b", "f") is None and line.wait("c", "f") is None
    line.store.instances.remove(line.rows["b"]["id"])
    line.free("a", "f")
    after(LONGEST_NAP)
    assert line.look("c")
    after(SIGN_SECONDS)
    with pytest.raises(SwarmError):
        line.look("b")


def test_a_place_that_was_swept_is_taken_anew(line: Line, ground: Ground):
    line.take("a", "f")
    assert line.wait("b", "f") is None
    ground.sql("DELETE FROM swarm_waiters")
    line.free("a", "f")
    assert line.look("b")


def test_a_stopped_waiter_keeps_its_place_for_a_while_and_a_killed_one_loses_it(ground: Ground, line: Line):
    line.take("a", "f")
    given = [{"path": ground.database, "scope": ground.scope, "name": "stopped", "files": ["f"]}]
    with crowd.Crowd(WAITER, given) as members:
        members.start()
        wait_for(lambda: waiting(ground) == 1)
        os.kill(members.processes[0].pid, signal.SIGSTOP)
        assert line.wait("b", "f") is None
        line.free("a", "f")
        time.sleep(0.1)
        assert line.look("b") is None
        members.processes[0].kill()
        members.processes[0].wait()
        assert wait_for(lambda: line.look("b"), 2.0), "soon, without anybody's committing anything"


@pytest.fixture
def after(clocks: Clocks):
    """Sets the clocks of this process forward by so many seconds."""
    clocks.stop("boot", "awake")
    return lambda seconds: clocks.ahead(boot=seconds, awake=seconds)


def test_a_process_that_is_stopped_in_line_keeps_nobody_off_a_free_file(ground: Ground, line: Line, after):
    line.take("a", "f")
    stopped = subprocess.Popen([*SWARM, "hold", "f", "--wait", "300", "--", "true"], cwd=ground.repo)
    try:
        wait_for(lambda: waiting(ground) == 1)
        os.kill(stopped.pid, signal.SIGSTOP)
        wait_for(lambda: is_stopped(stopped.pid))
        ground.sql("UPDATE swarm_waiters SET seen = ?", clock.awake())  # by the clock of this test
        line.free("a", "f")
        after(SILENT_SECONDS - 1)
        with pytest.raises(LockRefused):
            line.take("b", "f")
        after(SILENT_SECONDS + 1)
        assert "so the lock goes to the next one" in ground.swarm("why", "f").out
        assert line.take("b", "f") and waiting(ground) == 0
        os.kill(stopped.pid, signal.SIGCONT)
        line.free("b", "f")
        assert stopped.wait(60) == 0, "it has had the file after all"
    finally:
        stopped.kill()
        stopped.wait()


def test_who_was_silent_waits_again_behind_all_others(line: Line, after):
    line.take("a", "f")
    assert line.wait("b", "f", seconds=500) is None and line.wait("c", "f", seconds=500) is None
    after(SILENT_SECONDS)
    assert line.look("c") is None, "it is awake"
    line.free("a", "f")
    with pytest.raises(LockRefused):
        line.take("a", "f")
    assert line.look("c")
    assert line.look("b") is None, "and joins again"
    after(2 * SILENT_SECONDS - 1)
    line.free("c", "f")
    with pytest.raises(LockRefused):
        line.take("a", "f")
    assert line.look("b")


def test_nobody_is_silent_by_the_clock_of_another_machine(line: Line, ground: Ground, after):
    line.take("a", "f")
    assert line.wait("b", "f", seconds=500) is None
    ground.sql("UPDATE swarm_waiters SET host = 'another/start/here'")
    line.free("a", "f")
    after(10 * SILENT_SECONDS)
    with pytest.raises(LockRefused):
        line.take("a", "f")


def test_a_file_that_only_the_silent_wait_for_is_told_to_be_free(line: Line, after):
    line.take("a", "f")
    assert line.wait("b", "f", seconds=500) is None
    with pytest.raises(LockRefused):
        line.take("c", "f")
    after(SILENT_SECONDS)
    line.free("a", "f")
    assert any("is free" in text for text in line.told("c"))


def test_a_machine_that_slept_has_made_nobody_silent(line: Line, clocks: Clocks):
    """The clock of leases has gone on, while no process could send a heartbeat."""
    line.take("a", "f")
    assert line.wait("b", "f", seconds=None) is None
    clocks.ahead(boot=3600)
    line.free("a", "f")
    with pytest.raises(LockRefused):
        line.take("c", "f")


def test_who_waits_keeps_its_own_leases(line: Line):
    line.take("a", "f")
    line.take("b", "own", ttl=1.0)
    with pytest.raises(LockRefused):
        acquire(line.store, line.rows["b"], request(line.rows["b"], ["f"]), 1.6)
    assert line.store.locks.on(f"{line.rows['b']['scope']}/own")


def test_free_means_that_nobody_is_in_line(line: Line):
    line.take("a", "f")
    with pytest.raises(LockRefused):
        line.take("d", "f")
    assert line.wait("b", "f") is None
    line.free("a", "f")
    assert line.told("d") == [], "b is about to take it"
    line.look("b")
    line.free("b", "f")
    (text,) = line.told("d")
    assert "f is free: b" in text and line.told("b") == []


def test_a_waiter_that_gives_up_lets_the_refused_hear_that_the_file_is_free(line: Line):
    line.take("a", "f")
    with pytest.raises(LockRefused):
        line.take("d", "f")
    assert line.wait("b", "f") is None
    line.free("a", "f")
    line.waits["b"].give_up(line.store)
    assert len(line.told("d")) == 1


def test_a_denied_write_says_how_long_the_line_is(ground: Ground, line: Line, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWARM_DB_PATH", ground.database)
    line.take("a", "f", note="mine")
    who = ("claude-code", "d", ground.repo, f"{ground.scope}/f")
    begin, _, end = write(*who).reason.partition("; note: ")
    assert "(wait in line for it: `swarm-mcp lock f --wait 60`" in begin
    assert "or wait in line for it (lock_file with wait_seconds)" in end
    assert line.wait("b", "f") is None and line.wait("c", ".") is None
    assert "join the 2 who wait for it (" in write(*who).reason
    line.waits["c"].give_up(line.store)
    assert "join the 1 who waits for it (" in write(*who).reason


def test_the_command_waits_and_answers_in_full(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWARM_DB_PATH", ground.database)
    one, two = ground.session("1", "one"), ground.session("2", "two")
    done = ground.swarm("lock", "a", "b", "--shared", "--ttl", "60", "--expect", "5", "--as", one["id"], "--json").json
    assert [lock["mode"] for lock in done["locks"]] == ["shared", "shared"] and done["id"] == done["locks"][0]["id"]
    assert done["locks"][0]["ttl"] == 60 and done["locks"][0]["expected_end"] >= time.time()
    refused = ground.swarm("lock", "a", "c", "--as", two["id"], "--json")
    assert refused.code == 1 and refused.json["queue"] == {"waiting": 0, "join": "--wait SECONDS"}
    assert [row["instance_id"] for row in ground.sql("SELECT instance_id FROM context")] == [one["id"]] * 2
    argv = [*SWARM, "lock", "a", "c", "--wait", "20", "--as", two["id"], "--json"]
    with subprocess.Popen(argv, cwd=ground.repo, stdout=subprocess.PIPE) as waiter:
        wait_for(lambda: waiting(ground) == 1)
        late = ground.swarm("lock", "a", "--as", one["id"], "--exclusive")
        assert "1 in the queue; --wait SECONDS joins the queue" in late.err
        assert ground.swarm("unlock", "a", "b", "--as", one["id"]).out.count("unlocked") == 2
        answer = json.loads(waiter.communicate(timeout=60)[0])
    assert waiter.returncode == 0
    assert [lock["file"] for lock in answer["locks"]] == [f"{ground.scope}/{n}" for n in "ac"]
    fence = answer["fence"]
    stale = ground.swarm("unlock", "a", "--fence", str(fence - 1), "--as", two["id"], "--json")
    assert stale.code == 1 and f"fence {fence - 1} is no longer good" in stale.json["error"]
    assert ground.swarm("unlock", "a", "--fence", str(fence), "--as", two["id"]).code == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("a", "--shared", "--exclusive"), "exclude each other"),
        (("a", "--pattern", "--path"), "exclude each other"),
        (("a", "--wait", "soon"), "--wait wants seconds"),
        (("a", "--ttl", "0.5"), "a lease lasts from 1 second"),
        (("a", "--ttl", "1e9"), "a lease lasts from 1 second"),
        (("a", "b", "--git"), "--git is not for"),
    ],
)
def test_flags_that_mean_nothing(ground: Ground, monkeypatch: pytest.MonkeyPatch, words, why):
    monkeypatch.setenv("SWARM_DB_PATH", ground.database)
    ground.plain()
    done = ground.swarm("lock", *words)
    code = 2 - ("lease" in why)  # the store refuses a short lease
    assert done.code == code and why in done.err and done.err.count("\n") == 1


@pytest.fixture
def server(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWARM_DB_PATH", ground.database)
    with Server(ground) as server:
        server.call("register", {"directory": ground.scope, "label": "served"})
        yield server


def test_the_server_waits_and_goes_on_answering(ground: Ground, server: Server, store: Store):
    holder = ground.session("holder", "holder")
    ground.lock(holder, "f")
    asked = {"file": "f", "files": ["g"], "wait_seconds": 3600}
    number = server.begin("tools/call", {"name": "lock_file", "arguments": asked})
    wait_for(lambda: waiting(ground) == 1)
    assert server.value("get_file_lock", {"file": "f"})["active"]["owner"]["label"] == "holder"
    store.locks.release(holder, "f")
    answer = server.answer_to(number)["structuredContent"]
    assert answer["ok"] and [lock["file"] for lock in answer["locks"]] == [f"{ground.scope}/{n}" for n in "fg"]
    assert server.text("unlock_file", {"file": "f", "fence": answer["fence"]}) == "Unlocked f"
    assert "no longer good" in server.value("unlock_file", {"file": "f", "fence": answer["fence"]})["error"]
    # A cancelled call gives up its place, and a lock granted at that very moment.
    ground.lock(holder, "f")
    number = server.begin("tools/call", {"name": "lock_file", "arguments": {"file": "f", "wait_seconds": 20}})
    wait_for(lambda: waiting(ground) == 1)
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    wait_for(lambda: waiting(ground) == 0)
    # A time that is over.
    refused = server.value("lock_file", {"file": "f", "wait_seconds": 0.2})
    assert refused["error"] == "File is already locked" and refused["queue"]["waiting"] == 0
    assert waiting(ground) == 0
    store.locks.release(holder, "f")
    assert ground.lock(ground.session("next"), "f")
