"""Liveness of sessions, the moment from which a grant counts, and the losses of a restarted server."""

import threading
import time

import psycopg
import pytest

from swarm_hook_core import clock
from swarm_mcp.team import TeamUnreachable, protocol, server
from swarm_mcp.team.protocol import want
from swarm_mcp.team.server import connect
from team.history.faults import SwallowingProxy
from team.homes import wait_for
from team.machines import Machine


@pytest.fixture
def machine_of(repository):
    """Makes machines of one repository."""
    made = []

    def make(server, name, *sessions, **more):
        made.append(Machine(server, name, repository, *sessions, **more))
        return made[-1]

    yield make
    for one in made:
        one.server.close()


@pytest.fixture
def machine(machine_of, team):
    return lambda *names, **more: machine_of(team, *names, **more)


def set_clock(team, repository, seconds):
    """Pretend that the server's clock was set forward by that much, or back: its leases are that much older."""
    with connect(team) as admin:
        for table in ("machines", "sessions"):
            admin.execute(
                f"UPDATE swarm_team.{table} SET until = until - make_interval(secs => %s) WHERE repository ="
                " (SELECT key FROM swarm_team.repositories WHERE name = %s)",
                (seconds, repository),
            )
        admin.execute("UPDATE swarm_team.server SET started = started - make_interval(secs => %s)", (seconds,))


def later(monkeypatch, seconds):
    """Pretend that `seconds` have passed on this machine."""
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + seconds)


def in_touch(machine, monkeypatch):
    """Pretend that a session's whole lease has passed on this machine, in contact with the server."""
    for _ in range(13):
        later(monkeypatch, protocol.MIRROR_LEASE - 0.1)
        machine.beat()


def shorten(machine, session, seconds):
    """Give a session a short lease from this beat on: its earlier deeds had time."""
    machine.lease = seconds
    machine.beat(session)


def await_a_wait(team, call):
    """Until a call of the server's waits for a row that another transaction has."""
    asked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"
    with connect(team) as admin:
        wait_for(lambda: admin.execute(asked, (f"%swarm_team.{call}(%",)).fetchone())


def test_a_session_is_reaped_where_both_clocks_say_so(machine, team, repository, monkeypatch):
    one, other = machine("one", "s1"), machine("other", "s2")
    one.get("s1", "a")
    one.stand("s1", "t", "b")
    set_clock(team, repository, 100)
    other.beat()  # it hears of the silence only now
    assert other.server.reap(repository) == []
    in_touch(other, monkeypatch)
    assert other.server.reap(repository) == ["s1"]
    other.beat()
    assert [change["kind"] for change in other.changes[-3:]] == ["unlock", "leave", "gone"]
    assert {change["body"]["reason"] for change in other.changes[-3:]} == {"lapsed"}


def test_a_session_that_beats_meanwhile_is_not(machine, team, repository, monkeypatch):
    one, other = machine("one", "s1"), machine("other")
    one.get("s1", "a")
    set_clock(team, repository, 100)
    other.beat()
    monkeypatch.setattr(server, "clock", _Later(70))
    one.beat("s1")  # another count: earlier observations of it are no evidence
    set_clock(team, repository, 100)
    assert other.server.reap(repository) == [] and one.held() == ["a"]


class _Later:
    def __init__(self, seconds):
        self._seconds = seconds

    def now(self):
        return clock.now() + self._seconds


def test_only_the_askers_clock_does_not_end_a_lease(machine, team, repository, monkeypatch):
    one, other = machine("one", "s1", lease=3600.0), machine("other")
    one.get("s1", "a")
    shorten(one, "s1", protocol.SESSION_LEASE)
    set_clock(team, repository, 27)  # quiet enough to be told of, not over
    other.beat()
    in_touch(other, monkeypatch)
    assert other.server._greeted[repository].evidence("session") != "{}"
    assert other.server.reap(repository) == [] and one.held() == ["a"]


def test_time_without_the_server_is_no_evidence(machine, team, repository, monkeypatch):
    one, other = machine("one", "s1"), machine("other")
    one.get("s1", "a")
    set_clock(team, repository, 100)
    other.beat()
    later(monkeypatch, 3600)  # it slept, or was cut off; so may the holder have been
    other.beat()
    assert other.server.reap(repository) == []


def test_who_comes_back_after_its_lease_is_told_that_it_joined_anew(machine, team, repository, monkeypatch):
    one, other = machine("one", "s1"), machine("other", "s2")
    one.get("s1", "a")
    shorten(one, "s1", 1.0)
    before = one.joined["s1"]
    assert _reaped(other, repository) == ["s1"]
    assert one.acquire("s1", "a")["why"] == protocol.UNKNOWN_SESSION
    one.beat("s1")
    assert one.joined["s1"] > before and one.held() == []


def _reaped(machine, repository):
    return wait_for(lambda: machine.beat() and machine.server.reap(repository))


def test_where_the_servers_clock_was_put_back_a_lease_ends_nevertheless(machine, team, repository):
    one, other = machine("one", "s1"), machine("other")
    one.get("s1", "a")
    shorten(one, "s1", 1.0)
    set_clock(team, repository, -3600)
    assert _reaped(other, repository) == ["s1"]


def test_a_dead_holder_gives_way_to_a_thief_and_the_living_not(machine, repository):
    one, other = machine("one", "s1"), machine("other", "s2")
    (lock,), (fence,) = (one.get("s1", "a")[name] for name in ("locks", "fences"))
    assert other.server.steal(repository, lock, fence, "s2")["why"] == protocol.HELD
    shorten(one, "s1", 1.0)
    answers = []

    def is_taken():
        other.beat("s2")
        answers.append(other.server.steal(repository, lock, fence, "s2"))
        return answers[-1]["ok"]

    wait_for(is_taken)
    assert answers[-1]["fence"] > fence and {one["why"] for one in answers[:-1]} == {protocol.HELD}


def test_a_grant_counts_when_every_mirror_has_it(machine, repository):
    one = machine("one", "s1")
    assert one.get("s1", "a")["settled"]  # there is no other machine
    other = machine("other")
    answer = one.get("s1", "b")
    assert not answer["settled"] and not one.server.settle(repository, answer["version"], 0.1)
    other.beat()
    assert one.server.settle(repository, answer["version"], 0.1)
    assert one.beat()["settled"] >= answer["version"]


def test_what_counts_while_nobody_else_is_there_says_nothing_of_later_grants(machine, repository):
    one = machine("one", "s1")
    known = one.beat()["settled"]
    assert known == one.version
    machine("other")
    answer = one.get("s1", "b")
    assert not answer["settled"] and answer["version"] > known


def test_settling_ends_as_soon_as_the_mirror_has_it(machine, repository):
    one, other = machine("one", "s1"), machine("other", mirror=60.0)
    answer = one.get("s1", "b")
    begun = []
    beat = threading.Timer(0.3, lambda: (begun.append(True), other.beat()))
    beat.start()
    assert one.server.settle(repository, answer["version"], 50) and begun
    beat.join()


def test_a_dead_mirror_is_waited_for_for_its_lease_and_no_longer(machine, repository):
    one = machine("one", "s1")
    begun = time.monotonic()
    machine("other", mirror=1.0)
    answer = one.get("s1", "b")
    assert one.server.settle(repository, answer["version"], 60)
    assert 1.0 <= time.monotonic() - begun < 60


def test_the_servers_clock_alone_does_not_end_a_mirror(machine, team, repository):
    one = machine("one", "s1")
    machine("other", mirror=30.0)
    answer = one.get("s1", "b")
    set_clock(team, repository, 1000)
    assert not one.server.settle(repository, answer["version"], 1)


def test_a_machine_without_a_mirror_is_not_waited_for(machine, repository):
    one, other = machine("one", "s1"), machine("other", mirror=30.0)
    other.server.rest(repository)
    assert one.get("s1", "b")["settled"]


def test_a_beat_under_way_is_waited_for_before_its_mirror_counts_as_dead(machine, team, repository, monkeypatch):
    """Else it would be fresh again without the grant: its answer was made before."""
    one, other = machine("one", "s1"), machine("other", mirror=1.0)
    answer = one.get("s1", "b")
    wait_for(lambda: one.beat() and one.server._greeted[repository].evidence("mirror") != "{}")  # we know of it, too
    other.server._asking.close()
    with connect(team) as late:
        who = other.server._asking.spoken(other.server._who(repository))
        with late.transaction():
            sent = late.execute(
                "SELECT swarm_team.beat(%s, %s, %s, %s, %s, %s, '[]')", (*who, other.version, other.mark)
            ).fetchone()[0]
            assert sent["ok"]
            found = []
            asker = threading.Thread(target=lambda: found.append(one.server.settle(repository, answer["version"], 0.1)))
            asker.start()
            await_a_wait(team, "settle")
            assert found == []
        asker.join()
    assert found == [False]  # it lives, and has not said that it has it
    assert sent["news"]["version"] >= answer["version"]  # and this one was told, as every beat after the grant is


def test_a_beat_under_way_keeps_a_session_from_being_reaped_or_robbed(machine, team, repository):
    one, other = machine("one", "s1"), machine("other", "s2")
    (lock,), (fence,) = (one.get("s1", "a")[name] for name in ("locks", "fences"))
    shorten(one, "s1", 1.0)

    def has_lapsed():
        """Return True if both clocks agree: a member silent for us for a lease is so for the server."""
        other.beat("s2")
        return other.server._greeted[repository].evidence("session") != "{}"

    told = '[{"session": "s1", "label": "name:s1", "lease": 1.0}]'
    for call, ask in {
        "reap": lambda: other.server.reap(repository),
        "steal": lambda: other.server.steal(repository, lock, fence, "s2").get("why"),
    }.items():
        wait_for(has_lapsed)
        with connect(team) as late:
            who = one.server._asking.spoken(one.server._who(repository))
            found = []
            asker = threading.Thread(target=lambda ask=ask, found=found: found.append(ask()))
            with late.transaction():
                values = (*who, one.version, one.mark, told)
                late.execute("SELECT swarm_team.beat(%s, %s, %s, %s, %s, %s, %s)", values)
                asker.start()
                await_a_wait(team, call)
                assert found == []
            asker.join()
        assert found in ([[]], [protocol.HELD]) and one.held() == ["a"]
    assert _reaped(other, repository) == ["s1"]


def test_changes_are_kept_while_a_live_mirror_lacks_them(machine, team, repository):
    one, slow = machine("one", "s1"), machine("slow", mirror=60.0)
    slow.beat()
    answer = one.get("s1", "a")
    pair = [(answer["locks"][0], answer["fences"][0])]
    with connect(team) as admin:
        key = admin.execute("SELECT key FROM swarm_team.repositories WHERE name = %s", (repository,)).fetchone()[0]
        admin.execute(  # a long history, without the hours
            "INSERT INTO swarm_team.changes SELECT %s, n, 1, 'later', 's1', 'one', 'me', NULL, NULL, '{}'"
            " FROM generate_series(%s, 2558) n", (key, one.version + 2),
        )  # fmt: skip
        admin.execute("UPDATE swarm_team.repositories SET version = 2558, mark = 1 WHERE key = %s", (key,))
        one.beat()
        assert one.version == 2558 and one.changes[-1]["kind"] == "later"
        one.server.release(repository, pair)
        one.get("s1", "a")  # 2560: old changes are removed
        (floor,) = admin.execute("SELECT floor FROM swarm_team.repositories WHERE key = %s", (key,)).fetchone()
        assert floor == slow.version
        answer = slow.server.beat(repository, slow.version, slow.mark)["news"]
        assert len(answer["changes"]) == protocol.MOST_CHANGES and answer["more"] and "all" not in answer
        slow.server.rest(repository)
        for _ in range(260):
            admin.execute("SELECT swarm_team.log(%s, 'later', s, NULL, NULL, '{}') FROM swarm_team.sessions s WHERE s.session = 's1' AND s.repository = %s", (key, key))  # fmt: skip
        one.beat()
        with admin.transaction():
            (floor,) = admin.execute("SELECT floor FROM swarm_team.repositories WHERE key = %s", (key,)).fetchone()
    assert slow.version < floor < one.version - 900
    answer = slow.hello()
    assert [row["place"] for row in answer["news"]["all"]["locks"]] == ["a"]


def test_a_restart_loses_nothing_and_new_grants_wait_for_those_who_were_there(new_engine, machine_of, repository):
    server_ = new_engine.dsn()
    one, other = machine_of(server_, "one", "s1"), machine_of(server_, "other", "s2")
    first = one.get("s1", "a")
    other.beat()
    one.beat()
    new_engine.restart()
    assert one.beat("s1")["grace"] > 0
    answer = one.acquire("s1", "b")
    assert answer["why"] == protocol.GRACE and 0 < answer["seconds"] <= 30
    assert one.acquire("s1", "a")["fences"] == first["fences"]  # existing locks stay
    other.beat()
    assert one.beat("s1")["grace"] == 0
    assert one.acquire("s1", "b")["ok"]


def test_a_server_that_was_put_back_is_found_out_by_the_first_who_knows_more(
    new_engine, machine_of, repository, tmp_path
):
    server_ = new_engine.dsn()
    one, other = machine_of(server_, "one", "s1"), machine_of(server_, "other", "s2", "s3")
    other.beat()
    one.get("s1", "kept")
    old = new_engine.copy(tmp_path / "old" / "data")
    lost = other.get("s2", "lost")
    other.beat()
    seen = one.version
    new_engine.kill()
    old.start()
    try:
        one.version, one.mark = seen, one.mark
        assert one.acquire("s1", "lost")["why"] == protocol.GRACE  # before the other is heard of
        told = [{"session": "s2", "label": "", "lease": 60}]
        answer = other.server.beat(repository, other.version, other.mark, told)
        assert (answer["ok"], answer["why"]) == (False, protocol.EPOCH)
        assert one.acquire("s1", "b")["why"] == protocol.EPOCH  # void for all
        assert one.server.hello(repository, one.version, one.mark, one.epoch)["why"] == protocol.EPOCH
        one.hello()
        assert one.acquire("s1", "lost")["why"] == protocol.GRACE
        assert one.acquire("s1", want("kept", again=True))["ok"]
        other.hello()
        again = other.get("s2", want("lost", again=True))
        assert again["fences"][0] > lost["fences"][0]
        assert not one.server.settle(repository, again["version"], 0.1)
    finally:
        old.stop()


def test_where_the_servers_clock_was_put_back_new_grants_do_not_wait_for_as_long(machine, team, repository):
    one = machine("one", "s1")
    with connect(team) as admin:
        key = admin.execute("SELECT key FROM swarm_team.repositories WHERE name = %s", (repository,)).fetchone()[0]
        hour = "clock_timestamp() + interval '1 hour'"
        admin.execute(f"UPDATE swarm_team.repositories SET grace_until = {hour} WHERE key = %s", (key,))
        admin.execute(f"UPDATE swarm_team.machines SET awaited_until = {hour} WHERE repository = %s", (key,))
    answer = one.acquire("s1", "a")
    assert answer["why"] == "grace" and 0 < answer["seconds"] <= 60


def test_a_promoted_replica_makes_all_void_at_once(new_engine, machine_of, repository, tmp_path):
    server_ = new_engine.dsn()
    one = machine_of(server_, "one", "s1")
    one.get("s1", "a")
    standby = new_engine.copy(tmp_path / "standby" / "data")
    new_engine.kill()
    standby.promote()
    try:
        assert one.acquire("s1", "b")["why"] == protocol.EPOCH  # nothing shows that nothing is lost
        before = one.version
        one.hello()
        assert one.version > before and one.held() == []
        assert one.acquire("s1", want("a", again=True))["ok"]
    finally:
        standby.stop()


def test_a_server_that_is_away_or_silent_is_told(new_engine, machine_of, repository):
    with SwallowingProxy("127.0.0.1", new_engine.port) as link:
        one = machine_of(new_engine.dsn(port=link.port), "one", "s1")
        link.cut()
        with pytest.raises(TeamUnreachable, match="has not answered"):
            one.server.acquire(repository, "s1", [want("a")], one.version, one.mark, seconds=server.SECONDS)
        with pytest.raises(TeamUnreachable):
            one.server.settle(repository, 1, 0.1)
        link.heal()
        one.beat("s1")
        assert one.acquire("s1", "a")["ok"]
        link.break_all()
        one.beat("s1")  # on a new connection
        new_engine.kill()
        with pytest.raises(TeamUnreachable):
            one.server.beat(repository, one.version, one.mark, seconds=server.SECONDS)


def test_a_call_waits_for_others_no_longer_than_its_caller_for_it(machine, team, repository):
    machine("one")
    row = "SELECT 1 FROM swarm_team.repositories WHERE name = %s FOR UPDATE"
    with connect(team) as holder, connect(team) as late, holder.transaction():
        holder.execute(row, (repository,))
        with pytest.raises(psycopg.errors.LockNotAvailable):
            late.execute(row, (repository,))


def test_listening_tells_of_changes_of_others(machine, repository):
    one, other = machine("one", "s1"), machine("other")
    other.server.listen(0)
    version = one.get("s1", "a")["version"]
    assert wait_for(lambda: other.server.listen(1)) == {repository: version}
