"""Two machines of a team: a lock on one holds on the other, through all interruptions.

Run against the server in memory (tests/unit/team) and against PostgreSQL (tests/team).
"""

from functools import partial
from typing import Any

import pytest

from support import turns
from swarm_hook_core import clock
from swarm_mcp.errors import Deadlock, LockRefused, Refused
from swarm_mcp.locking.acquisition import SIGN_SECONDS, LockWait
from swarm_mcp.store import reactions
from swarm_mcp.store.lock_request import request
from swarm_mcp.team import TeamUnreachable, protocol
from swarm_mcp.team.parts import TeamRows


def test_a_lock_is_confirmed_and_holds_on_the_other_machine(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    answer = laptop.take(one, "src/a.py", note="mine")
    assert answer["answer"] == "granted"
    row = laptop.row("src/a.py")
    assert list(answer["fences"].values()) == [row["team_fence"]] and row["machine"] is None
    sandbox.follow()
    mirrored = sandbox.row("src/a.py")
    assert (mirrored["machine"], mirrored["team_fence"], mirrored["content"]) == ("laptop", row["team_fence"], "mine")
    assert mirrored["instance_id"] == one["id"]
    with pytest.raises(LockRefused):
        sandbox.lock(other, "src/a.py")
    with pytest.raises(LockRefused):
        sandbox.lock(other, "src/")
    sandbox.lock(other, "src/b.py")


def test_released_here_it_is_free_there_and_who_was_refused_hears_of_it(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    laptop.take(one, "a.py")
    sandbox.follow()
    with pytest.raises(LockRefused):
        sandbox.lock(other, "a.py")
    laptop.give_back(one, "a.py")
    sandbox.follow()
    assert sandbox.held() == []
    (told,) = sandbox.mail(other)
    assert "a.py is free" in told
    assert sandbox.take(other, "a.py")["answer"] == "granted"


def test_the_slower_of_two_gives_way_and_hears_who_has_it(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    rows = sandbox.lock(other, "a.py")
    laptop.take(one, "a.py")
    answer = sandbox.confirm(rows)
    assert (answer["answer"], answer["by"]["session"]) == ("held", one["id"])
    assert sandbox.held() == [("a.py", "laptop")]
    assert sandbox.mail(other) == []  # it was answered
    with pytest.raises(LockRefused):
        sandbox.lock(other, "a.py")


def test_of_several_that_are_wanted_together_none_is_left(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    rows = sandbox.lock(other, "a.py", "b.py", "c.py")
    laptop.take(one, "b.py")
    assert sandbox.confirm(rows)["answer"] == "held"
    sandbox.follow()
    assert sandbox.held() == [("b.py", "laptop")]
    laptop.follow()
    assert laptop.held() == [("b.py", "here")]


def test_what_gives_way_while_its_session_is_made_known_is_refused(machines: tuple[Any, Any]) -> None:
    laptop, sandbox = machines
    one = laptop.session("one")
    sandbox.follow()
    rows = sandbox.lock(sandbox.session("other"), "a.py", "b.py")
    laptop.take(one, "b.py")

    sandbox.server.after["beat"] = partial(laptop.give_back, one, "b.py")
    assert sandbox.confirm(rows)["answer"] == "held"
    sandbox.follow()
    assert sandbox.held() == sandbox.there() == []


def test_patterns_meet_by_python_alone(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    rows = sandbox.lock(other, "src/*.md")
    assert laptop.take(one, "src/*.py")["answer"] == "granted"
    assert sandbox.confirm(rows)["answer"] == "granted"  # the same folder, but they never meet
    rows = sandbox.lock(other, "docs/*.md")
    assert laptop.take(one, "docs/index.md")["answer"] == "granted"
    assert sandbox.confirm(rows)["answer"] == "held"
    sandbox.follow()
    laptop.follow()
    assert sorted(laptop.held()) == sorted([("docs/index.md", "here"), ("src/*.md", "sandbox"), ("src/*.py", "here")])
    with pytest.raises(LockRefused):
        laptop.lock(one, "src/new.md")


def test_shared_locks_are_shared_with_other_machines(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    assert laptop.take(one, "a.py", mode="shared")["answer"] == "granted"
    sandbox.follow()
    assert sandbox.take(other, "a.py", mode="shared")["answer"] == "granted"
    laptop.follow()
    with pytest.raises(LockRefused):
        laptop.lock(one, "a.py")
    assert sorted(laptop.held()) == [("a.py", "here"), ("a.py", "sandbox")]


def test_a_shared_lock_that_may_not_become_exclusive_stays_shared(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    laptop.take(one, "a.py", mode="shared")
    fence = laptop.row("a.py")["team_fence"]
    sandbox.follow()
    sandbox.take(other, "a.py", mode="shared")  # still unknown to the laptop
    assert laptop.take(one, "a.py")["answer"] == "held"
    (own,) = laptop.ground.sql("SELECT mode, team_fence FROM context WHERE type = 'lock' AND machine IS NULL")
    assert own == {"mode": "shared", "team_fence": fence}
    assert laptop.take(one, "a.py", mode="shared")["answer"] == "granted"


def test_or_given_up_where_somebody_else_was_faster_and_its_holder_is_told(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    laptop.server.cut = True
    with pytest.raises(TeamUnreachable):
        laptop.take(one, "a.py")
    assert sandbox.take(other, "a.py")["answer"] == "granted"
    laptop.server.cut = False
    laptop.following.mirror.lose()
    laptop.follow()
    assert laptop.held() == [("a.py", "sandbox")]
    (told,) = laptop.mail(one)
    assert "held on this machine only" in told and "on sandbox" in told


def test_a_session_that_ends_leaves_nothing_behind(machines):
    laptop, sandbox = machines
    one = laptop.session("one")
    laptop.take(one, "a.py")
    laptop.take(one, "b.py")
    sandbox.follow()
    assert len(sandbox.held()) == 2
    laptop.store.instances.remove(one["id"])
    laptop.follow()
    sandbox.follow()
    assert sandbox.held() == [] and sandbox.ground.sql("SELECT * FROM instances") == []
    assert laptop.there("sessions") == []


def test_a_process_that_was_killed_leaves_its_locks_to_nobody(machines):
    laptop, sandbox = machines
    one = laptop.session("one")
    laptop.take(one, "a.py")
    laptop.ground.sql("UPDATE swarm_sessions SET client_pid = 4194305, client_start = '1'")
    laptop.follow()
    sandbox.follow()
    assert sandbox.held() == laptop.held() == []


def test_a_lock_is_handed_to_another_session_of_the_same_machine(machines):
    laptop, sandbox = machines
    one, two = laptop.session("one"), laptop.session("two")
    laptop.take(one, "a.py")
    sandbox.follow()
    before = laptop.row("a.py")["team_fence"]
    laptop.store.transfers.transfer(one, "a.py", two["id"])
    laptop.follow()
    sandbox.follow()
    row = laptop.row("a.py")
    assert (row["instance_id"], row["machine"]) == (two["id"], None) and row["team_fence"] > before
    assert sandbox.row("a.py")["instance_id"] == two["id"]
    assert sandbox.row("a.py")["team_fence"] == row["team_fence"]


def test_a_lock_is_handed_to_a_session_of_another_machine(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    laptop.take(one, "a.py")
    sandbox.follow()
    laptop.follow()
    laptop.store.transfers.transfer(one, "a.py", other["id"], note="over to you")
    laptop.follow()
    sandbox.follow()
    laptop.follow()
    row = sandbox.row("a.py")
    assert (row["instance_id"], row["machine"]) == (other["id"], None) and row["team_fence"]
    assert (laptop.row("a.py")["instance_id"], laptop.row("a.py")["machine"]) == (other["id"], "sandbox")
    assert any("handed the lock" in text for text in sandbox.mail(other))
    assert sandbox.store.locks.release(other, "a.py") == 1
    sandbox.follow()
    laptop.follow()
    assert laptop.held() == sandbox.held() == []


CALLS = ["hello", "beat", "acquire", "release", "mine", "transfer", "end"]


class Killed(Exception):
    pass


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("call", CALLS)
def test_whatever_a_crash_interrupts_the_next_process_mends(machines, call, moment):
    laptop, sandbox = machines
    one, two, gone = laptop.session("one"), laptop.session("two"), laptop.session("gone")
    laptop.take(one, "released.py")
    laptop.take(one, "handed.py")
    laptop.take(one, "kept.py")
    laptop.take(gone, "left.py")
    laptop.store.locks.release(one, "released.py")
    laptop.store.transfers.transfer(one, "handed.py", two["id"])
    laptop.store.instances.remove(gone["id"])
    laptop.lock(two, "new.py")

    def die():
        raise Killed

    getattr(laptop.server, moment)[call] = die
    laptop.following.mirror.lose()
    try:
        laptop.follow()
    except Killed:
        pass
    laptop.begin()
    laptop.follow()
    sandbox.follow()
    wanted = [("handed.py", two["id"]), ("kept.py", one["id"]), ("new.py", two["id"])]
    for place, holder in wanted:
        here, there = laptop.row(place), sandbox.row(place)
        assert here["instance_id"] == there["instance_id"] == holder
        assert here["team_fence"] == there["team_fence"] is not None
    assert len(sandbox.held()) == len(laptop.held()) == len(laptop.there()) == 3


def test_what_was_taken_while_the_server_was_away_is_confirmed_afterwards(machines):
    laptop, sandbox = machines
    one = laptop.session("one")
    laptop.server.cut = True
    with pytest.raises(TeamUnreachable):
        laptop.take(one, "a.py")
    assert laptop.row("a.py")["team_fence"] is None
    laptop.server.cut = False
    laptop.following.mirror.lose()
    laptop.follow()
    sandbox.follow()
    assert laptop.row("a.py")["team_fence"] and sandbox.held() == [("a.py", "laptop")]
    assert laptop.mail(one) == []


def test_a_replica_is_fresh_for_its_lease_from_when_it_asked(machines):
    laptop, _ = machines
    before = clock.now()
    laptop.follow()
    (known,) = TeamRows(laptop.store).repositories().values()
    assert before < known.fresh_until <= clock.now() + protocol.MIRROR_LEASE * (1 - protocol.MARGIN)
    assert known.booted == clock.boot(laptop.store.here) and known.state == "following"
    laptop.server.cut = True
    with pytest.raises(TeamUnreachable):
        laptop.follow()
    assert TeamRows(laptop.store).repositories()[laptop.repository].fresh_until == known.fresh_until


def waiting(machine, session, *files: str, **given) -> LockWait:
    """Put a session of this machine into the queue, and look once."""
    wait = LockWait(session, request(session, list(files), **given), 60)
    assert wait.advance(machine.store) is None
    return wait


def again(machine, wait: LockWait):
    """Look once more for a waiter, as after a change to the store."""
    wait._next_look = 0.0
    return wait.advance(machine.store)


def test_whoever_has_waited_longest_is_next_on_whatever_machine(machines):
    laptop, sandbox = machines
    holder, late, first = laptop.session("holder"), laptop.session("late"), sandbox.session("first")
    laptop.take(holder, "a.py")
    sandbox.follow()
    theirs = waiting(sandbox, first, "a.py")
    sandbox.follow()
    laptop.follow()
    ours = waiting(laptop, late, "a.py")
    laptop.follow()
    sandbox.follow()
    laptop.store.locks.release(holder, "a.py")
    assert again(laptop, ours) is None  # a session on the other machine is before it
    laptop.follow()
    sandbox.follow()
    rows = again(sandbox, theirs)
    assert rows and sandbox.confirm(rows)["answer"] == "granted"
    sandbox.follow()
    laptop.follow()
    assert again(laptop, ours) is None
    sandbox.give_back(first, "a.py")
    laptop.follow()
    rows = again(laptop, ours)
    assert rows and laptop.confirm(rows)["answer"] == "granted"
    laptop.follow()
    sandbox.follow()
    assert laptop.there("waits") == []
    for one in machines:
        assert one.ground.sql("SELECT * FROM swarm_waiters") == []


def test_of_two_who_join_at_once_the_second_to_be_numbered_goes_behind(machines):
    laptop, sandbox = machines
    holder, late, first = laptop.session("holder"), laptop.session("late"), sandbox.session("first")
    laptop.take(holder, "a.py")
    sandbox.follow()
    ours = waiting(laptop, late, "a.py")
    theirs = waiting(sandbox, first, "a.py")
    sandbox.follow()
    laptop.follow()  # the other's place has come first: ours is given up, and joined again behind it
    laptop.store.locks.release(holder, "a.py")
    assert again(laptop, ours) is None
    for _ in range(2):
        laptop.follow()
        sandbox.follow()
    assert again(laptop, ours) is None
    places = laptop.ground.sql("SELECT machine FROM swarm_waiters ORDER BY ticket")
    assert places == [{"machine": "sandbox"}, {"machine": None}]
    assert again(sandbox, theirs)


def test_who_has_given_up_waiting_keeps_nobody_out(machines):
    laptop, sandbox = machines
    holder, late, first = laptop.session("holder"), laptop.session("late"), sandbox.session("first")
    laptop.take(holder, "a.py")
    sandbox.follow()
    theirs = waiting(sandbox, first, "a.py")
    sandbox.follow()
    laptop.follow()
    laptop.store.locks.release(holder, "a.py")
    with pytest.raises(LockRefused):
        laptop.lock(late, "a.py")
    theirs.give_up(sandbox.store)
    sandbox.follow()
    laptop.follow()
    assert laptop.take(late, "a.py")["answer"] == "granted"


def test_a_circle_over_two_machines_is_found(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    laptop.take(one, "a.py")
    sandbox.follow()
    sandbox.take(other, "b.py")
    laptop.follow()
    waiting(laptop, one, "b.py")
    laptop.follow()
    sandbox.follow()
    with pytest.raises(Deadlock):
        waiting(sandbox, other, "a.py")


def test_a_lock_here_holds_in_the_other_clones_of_this_machine(machines, tmp_path):
    laptop, sandbox = machines
    second = tmp_path / "second clone"
    (second / ".git").mkdir(parents=True)
    laptop.tops.append(str(second))
    laptop.begin()
    laptop.follow()
    one, two, other = laptop.session("one"), laptop.session("two", directory=str(second)), sandbox.session("other")
    sandbox.take(other, "theirs.py")
    laptop.take(one, "src/*.py")
    laptop.take(one, "a.py")
    laptop.follow()
    for file in ("theirs.py", "src/x.py", "a.py"):
        with pytest.raises(LockRefused):
            laptop.lock(two, file)
    laptop.give_back(one, "a.py")
    assert laptop.take(two, "a.py")["answer"] == "granted"
    laptop.follow()
    sandbox.follow()
    assert sandbox.row("a.py")["instance_id"] == two["id"]
    assert len(sandbox.held()) == 3 and len(laptop.there()) == 3


def test_two_clones_of_one_machine_race_for_the_same(machines, tmp_path):
    laptop, _ = machines
    second = tmp_path / "second clone"
    (second / ".git").mkdir(parents=True)
    laptop.tops.append(str(second))
    laptop.begin()
    laptop.follow()
    one, two = laptop.session("one"), laptop.session("two", directory=str(second))
    mine, theirs = laptop.lock(one, "src/*.py"), laptop.lock(two, "src/x.py")
    assert laptop.confirm(mine)["answer"] == "granted"
    assert laptop.confirm(theirs)["answer"] == "held"


def test_a_file_of_a_work_tree_inside_of_this_one_is_none_of_it(machines):
    laptop, sandbox = machines
    (laptop.ground.repo / "inner" / ".git").mkdir(parents=True)
    one = laptop.session("one")
    rows = laptop.lock(one, "inner/a.py", "b.py")
    assert laptop.confirm(rows[:1])["answer"] == "local"
    laptop.follow()
    assert [row["place"] for row in laptop.there()] == ["b.py"]
    sandbox.follow()
    assert sandbox.held() == [("b.py", "laptop")]


def test_what_another_machine_has_is_removed_by_nobody_here(machines):
    laptop, sandbox = machines
    one = laptop.session("one")
    laptop.take(one, "a.py", ttl=1.0)
    sandbox.follow()
    sandbox.session("other")
    sandbox.ground.sql("UPDATE instances SET heartbeat = 0")
    sandbox.ground.sql("UPDATE swarm_sessions SET last_seen = 0 WHERE runtime = 'team'")
    sandbox.store.cleanup.clean()
    assert sandbox.held() == [("a.py", "laptop")]
    with pytest.raises(Refused):
        sandbox.store.instances.remove(one["id"])
    assert sandbox.store.locks.on(f"{sandbox.tops[0]}/a.py")


def test_a_lock_taken_by_force_from_another_machine_is_lost_there(machines):
    laptop, sandbox = machines
    one, other, third = laptop.session("one"), sandbox.session("other"), sandbox.session("third")
    laptop.take(one, "src/")
    laptop.take(one, "src/kept.py")
    sandbox.follow()
    with pytest.raises(LockRefused):
        sandbox.lock(third, "src/a.py")
    row = sandbox.store.transfers.steal(other, "src/a.py", "its holder sleeps", force=True)["lock"]
    answer = sandbox.confirm([row])
    assert answer["answer"] == "granted"
    for _ in range(2):
        sandbox.follow()
        laptop.follow()
    assert sorted(sandbox.held()) == [("src/a.py", "here"), ("src/kept.py", "laptop")]
    assert sorted(laptop.held()) == [("src/a.py", "sandbox"), ("src/kept.py", "here")]
    (told,) = laptop.mail(one)
    assert "was taken by" in told and "on sandbox" in told and "its holder sleeps" in told


def test_what_could_not_be_taken_by_force_is_where_it_was(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    laptop.take(one, "a.py")
    sandbox.follow()
    row = sandbox.store.transfers.steal(other, "a.py", "because", force=True)["lock"]
    sandbox.ground.sql("UPDATE context SET takes = NULL")  # as where the server does not let us
    assert sandbox.confirm([row])["answer"] == "held"
    assert sandbox.held() == [("a.py", "laptop")]


@pytest.mark.parametrize("was_known", [False, True])
def test_what_kept_a_lock_out_and_has_gone_since_is_not_left_here(machines, was_known):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    if was_known:  # and removed here before
        laptop.take(one, "a.py")
        sandbox.follow()
        sandbox.ground.sql("DELETE FROM context")
        rows = sandbox.lock(other, "a.py")
    else:
        sandbox.follow()  # the server knows its session
        rows = sandbox.lock(other, "a.py")
        laptop.take(one, "a.py")

    sandbox.server.after["acquire"] = partial(laptop.give_back, one, "a.py")
    assert sandbox.confirm(rows)["answer"] == "held"
    sandbox.follow()
    assert sandbox.held() == laptop.held() == []


def test_an_agent_of_a_session_holds_as_such_on_the_other_machine(machines):
    laptop, sandbox = machines
    one = laptop.session("one")
    laptop.take(one, "a.py", agent="reviewer")
    sandbox.follow()
    assert sandbox.row("a.py")["agent"] == "reviewer"
    laptop.store.locks.release_of_agent(one, "reviewer")
    laptop.follow()
    sandbox.follow()
    assert sandbox.held() == []


def test_automatic_locks_and_those_elsewhere_stay_here(machines, tmp_path):
    laptop, _ = machines
    one = laptop.session("one")
    rows = laptop.lock(one, str(tmp_path / "elsewhere.py"))
    assert laptop.confirm(rows)["answer"] == "local"
    turns.write(("claude-code", f"{laptop.name}-one"), str(laptop.ground.repo / "a.py"))
    assert [row.mode for row in laptop.store.locks.on(str(laptop.ground.repo / "a.py"))] == ["auto"]
    laptop.follow()
    assert laptop.there() == []


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("call", ["wait", "leave", "steal"])
def test_whatever_a_crash_interrupts_in_lines_and_thefts_is_mended_too(machines, call, moment):
    laptop, sandbox = machines
    one, two, other = laptop.session("one"), laptop.session("two"), sandbox.session("other")
    sandbox.take(other, "theirs.py")
    sandbox.take(other, "stolen.py")
    laptop.follow()
    over = waiting(laptop, one, "theirs.py")
    laptop.follow()
    over.give_up(laptop.store)
    waiting(laptop, two, "theirs.py")
    laptop.store.transfers.steal(one, "stolen.py", "because", force=True)

    def die():
        raise Killed

    getattr(laptop.server, moment)[call] = die
    with pytest.raises(Killed):
        laptop.follow()
    laptop.begin()
    for _ in range(2):
        laptop.follow()
        sandbox.follow()
    assert [row["session"] for row in laptop.there("waits")] == [two["id"]]
    assert {row["place"]: row["session"] for row in laptop.there()} == {
        "theirs.py": other["id"],
        "stolen.py": one["id"],
    }
    assert sorted(laptop.held()) == [("stolen.py", "here"), ("theirs.py", "sandbox")]
    assert sorted(sandbox.held()) == [("stolen.py", "laptop"), ("theirs.py", "here")]
    assert len(sandbox.ground.sql("SELECT 1 FROM swarm_waiters")) == 1


def test_a_work_tree_that_is_added_knows_what_others_hold(machines):
    laptop, sandbox = machines
    laptop.take(laptop.session("one"), "a.py")
    sandbox.follow()
    added = sandbox.ground.folder / "added"
    (added / ".git").mkdir(parents=True)
    sandbox.tops.append(str(added))
    with TeamRows(sandbox.store).writing():
        sandbox.replica.forget()
    sandbox.begin()
    sandbox.follow()
    assert sandbox.store.locks.on(str(added / "a.py")) and len(sandbox.held()) == 2


def test_a_lock_that_is_again_what_it_was_is_told_of(machines):
    """It was released, and taken in another way, before the team had heard of it: the lock is told, though no request
    waits.
    """
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    laptop.take(one, "a.py", mode="shared")
    sandbox.follow()
    laptop.store.locks.release(one, "a.py")
    sandbox.take(other, "a.py", mode="shared")
    assert laptop.take(one, "a.py")["answer"] == "held"
    (told,) = laptop.mail(one)
    assert "a.py is shared, as it was" in told and "on sandbox has a lock there" in told
    assert [lock.mode for lock in laptop.store.locks.of(one.id)] == ["shared"]
    laptop.give_back(one, "a.py")
    sandbox.follow()
    assert sandbox.held() == [("a.py", "here")]


def test_who_was_silent_for_long_stands_behind_all_others_on_every_machine(machines, monkeypatch, clocks):
    laptop, sandbox = machines
    began = laptop.store.now()
    # The lease ends at a second of this clock, however long the steps before it take.
    monkeypatch.setattr(laptop.store.database, "now", lambda: began)
    holder, other = laptop.session("holder"), sandbox.session("other")
    silent = laptop.session("silent", lease_seconds=600)
    laptop.take(holder, "a.py")
    sandbox.follow()
    first = LockWait(silent, request(silent, ["a.py"]), None)
    second = LockWait(other, request(other, ["a.py"]), None)
    for machine, wait in ((laptop, first), (sandbox, second)):
        assert wait.advance(machine.store) is None
        for one in (*machines, *machines):
            one.follow()
    assert [[row.instance_id for row in one.store.queue.waiting()] for one in machines] == [[silent.id, other.id]] * 2
    monkeypatch.setattr(laptop.store.database, "now", lambda: began + 601)
    for one in (*machines, *machines):
        one.follow()
    with laptop.store.database.writing():
        reactions.require(laptop.store.database, silent.id)  # it is back
    for one in (*machines, *machines):
        one.follow()
    clocks.ahead(boot=SIGN_SECONDS)
    assert first.advance(laptop.store) is None
    for one in (*machines, *machines):
        one.follow()
    assert [[row.instance_id for row in one.store.queue.waiting()] for one in machines] == [[other.id, silent.id]] * 2
