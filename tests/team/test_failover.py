"""A primary that is lost and a replica that is promoted, an old server that comes back, and backups put in its place."""

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from swarm_mcp.team import TeamRefused, TeamUnreachable, protocol, server
from swarm_mcp.team.protocol import want
from swarm_mcp.team.server import connect, init
from team.history.engine import Engine
from team.history.faults import ServerClock, stopped
from team.homes import wait_for
from team.machines import Machine
from team.test_liveness import in_touch

MachineOf = Callable[..., Machine]


@pytest.fixture
def machine_of(repository: str) -> Iterator[MachineOf]:
    """Makes machines of one repository."""
    made: list[Machine] = []

    def make(conninfo: str, name: str, *sessions: str, **more: float) -> Machine:
        made.append(Machine(conninfo, name, repository, *sessions, **more))
        return made[-1]

    yield make
    for one in made:
        one.server.close()


@pytest.fixture
def at_end() -> Iterator[list[Engine]]:
    """Servers to be stopped."""
    left: list[Engine] = []
    yield left
    for one in left:
        one.kill()


def both(first: Engine, second: Engine) -> str:
    """Return the address of two servers, a leader and its replica, as a machine is given it."""
    return f"host=127.0.0.1,127.0.0.1 port={first.port},{second.port} user=postgres dbname=postgres"


def standby_of(primary: Engine, folder: Path, at_end: list[Engine], is_synchronous: bool) -> Engine:
    """Return a replica that follows, and has been acknowledged as synchronous where it is to be."""
    made = primary.standby(folder / "standby" / "data")
    at_end.append(made)
    primary.await_replica(is_synchronous)
    return made


def receiver_of(replica: Engine) -> int:
    """Return the process of a replica that receives the log."""
    asked = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walreceiver'"
    return int(wait_for(lambda: replica.ask(asked))[0][0])


def test_a_machine_that_knows_both_servers_finds_the_one_that_leads(
    new_engine: Engine, machine_of: MachineOf, tmp_path: Path, at_end: list[Engine]
) -> None:
    standby = standby_of(new_engine, tmp_path, at_end, False)
    one = machine_of(both(standby, new_engine), "one", "s1")
    one.get("s1", "a")
    wait_for(lambda: standby.ask("SELECT 1 FROM swarm_team.locks"))
    with pytest.raises(TeamUnreachable, match="read-only|recovery"):
        connect(standby.dsn())
    new_engine.kill()
    standby.lead()
    assert one.acquire("s1", "b")["why"] == protocol.EPOCH
    one.hello()
    assert one.acquire("s1", want("a", again=True))["ok"]


def test_synchronous_what_is_acknowledged_is_on_the_replica_and_nothing_else_is_acknowledged(
    new_engine: Engine, machine_of: MachineOf, repository: str, tmp_path: Path, at_end: list[Engine]
) -> None:
    standby = standby_of(new_engine, tmp_path, at_end, True)
    one = machine_of(both(new_engine, standby), "one", "s1")
    one.get("s1", "a")
    assert one.put(protocol.TASK, "t", 0, {"status": "pending"})["ok"]
    with stopped(receiver_of(standby)):
        with pytest.raises(TeamUnreachable, match="has not answered"):
            one.server.acquire(repository, "s1", [want("b")], one.version, one.mark, seconds=server.SECONDS)
        new_engine.kill()
    standby.lead()
    assert one.acquire("s1", "c")["why"] == protocol.EPOCH
    one.hello()
    with connect(standby.dsn()) as admin:
        assert admin.execute("SELECT kind, key FROM swarm_team.documents").fetchall() == [("task", "t")]
    assert one.acquire("s1", want("a", again=True))["ok"]


def test_synchronous_a_wait_that_is_given_up_is_no_acknowledgement(
    new_engine: Engine, machine_of: MachineOf, repository: str, tmp_path: Path, at_end: list[Engine]
) -> None:
    """An administrator ends the wait for the replica: PostgreSQL then commits with no more than a warning."""
    standby = standby_of(new_engine, tmp_path, at_end, True)
    one = machine_of(new_engine.dsn(), "one", "s1")
    one.beat()
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    found: list[object] = []

    def ask() -> None:
        try:
            found.append(one.server.acquire(repository, "s1", [want("a")], one.version, one.mark, seconds=30))
        except TeamUnreachable as error:
            found.append(error)

    with stopped(receiver_of(standby)):
        asker = threading.Thread(target=ask)
        asker.start()
        with connect(new_engine.dsn()) as admin:
            first = wait_for(lambda: admin.execute(waiting).fetchone())[0]
            admin.execute("SELECT pg_cancel_backend(%s)", (first,))
            wait_for(lambda: found or admin.execute(waiting + " AND pid <> %s", (first,)).fetchone())
        assert found == []
    asker.join()
    assert isinstance(found[0], dict) and found[0]["ok"]  # asked once more, when the replica was there again


def test_asynchronous_a_grant_that_the_replica_lacks_is_void_and_nobody_else_gets_it_meanwhile(
    new_engine: Engine, machine_of: MachineOf, repository: str, tmp_path: Path, at_end: list[Engine]
) -> None:
    standby = standby_of(new_engine, tmp_path, at_end, False)
    one, other = (machine_of(both(new_engine, standby), name, name[0]) for name in ("one", "2nd"))
    other.beat()
    wait_for(lambda: len(standby.ask("SELECT 1 FROM swarm_team.machines")) == 2)
    standby.stop()
    lost = one.get("o", "lost")
    new_engine.kill()
    standby.start()
    standby.lead()
    assert other.acquire("2", "x")["why"] == protocol.EPOCH
    other.hello()
    assert other.acquire("2", "lost")["why"] == protocol.GRACE
    assert one.acquire("o", want("lost", again=True))["why"] == protocol.EPOCH
    one.hello()
    again = one.get("o", want("lost", again=True))
    assert again["fences"][0] > lost["fences"][0]


def test_an_old_primary_that_comes_back_is_refused_by_who_knows_the_new_one(
    new_engine: Engine, machine_of: MachineOf, repository: str, tmp_path: Path, at_end: list[Engine]
) -> None:
    standby = standby_of(new_engine, tmp_path, at_end, False)
    one = machine_of(both(new_engine, standby), "one", "s1")
    one.get("s1", "a")
    wait_for(lambda: standby.ask("SELECT 1 FROM swarm_team.locks"))
    new_engine.kill()
    standby.lead()
    assert one.acquire("s1", "b")["why"] == protocol.EPOCH
    one.hello()
    new_engine.start()
    late = Machine(new_engine.dsn(), "late", repository)
    with pytest.raises(TeamRefused, match="older than one that this machine knows"):
        late.server.hello(repository, one.version, one.mark, one.epoch)
    init(new_engine.dsn(), new_epoch=True)  # an administrator says that it is the right one
    assert late.server.hello(repository, one.version, one.mark, one.epoch)["why"] == protocol.EPOCH
    late.hello()
    late.server.close()


def put_back(engine: Engine, backup: Engine, folder: Path) -> Engine:
    """Replace a server by its backup, and keep that for another time. Returns the running server."""
    engine.kill()
    made = Engine(folder / "data", engine.port, engine.environment)
    shutil.copytree(backup.data, made.data)
    return made.start()


def test_a_backup_may_be_put_back_twice(
    new_engine: Engine, machine_of: MachineOf, repository: str, tmp_path: Path, at_end: list[Engine]
) -> None:
    """The second time the backup has not heard of the first: its versions and counts begin where they had begun."""
    conninfo = new_engine.dsn()
    one, cut_off = machine_of(conninfo, "one", "s1"), machine_of(conninfo, "off", "s2")
    one.beat()
    backup = new_engine.copy(tmp_path / "backup" / "data")
    one.get("s1", "a")
    one.beat()
    running, greatest = new_engine, 0
    for number in range(2):
        running = put_back(running, backup, tmp_path / str(number))
        at_end.append(running)
        told = one.server.hello(repository, one.version, one.mark, one.epoch)
        assert told["why"] == protocol.EPOCH
        one.hello()
        cut_off.server.close()
        answer = one.acquire("s1", "held")
        assert answer.get("why") == protocol.GRACE, answer  # this server may not have heard of a lock
        cut_off.hello()
        held = cut_off.get("s2", want("held", again=True))
        assert held["fences"][0] > greatest
        greatest = held["fences"][0]
        one.beat()
        assert one.acquire("s1", "held").get("why") in (protocol.GRACE, protocol.HELD)


@pytest.mark.skipif(bool(ServerClock.missing()), reason=ServerClock.missing())
def test_where_the_clock_of_a_promoted_server_is_set_forward_its_grace_lasts_nevertheless(
    machine_of: MachineOf, repository: str, tmp_path: Path, at_end: list[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ServerClock(tmp_path)
    first = Engine(tmp_path / "postgresql" / "data", environment=clock.environment).create().start()
    at_end.append(first)
    init(first.dsn())
    one, cut_off = machine_of(first.dsn(), "one", "s1"), machine_of(first.dsn(), "off", "s2")
    cut_off.get("s2", "held")
    one.beat()
    standby = first.copy(tmp_path / "standby" / "data")
    first.kill()
    at_end.append(standby)
    standby.promote()
    assert one.acquire("s1", "b")["why"] == protocol.EPOCH
    one.hello()
    assert one.beat()["grace"] > 0
    clock.move(3600)
    one.beat("s1")
    answer = one.acquire("s1", "held")
    assert not answer["ok"] and answer["why"] == protocol.GRACE, answer
    assert one.beat()["grace"] > 0
    in_touch(one, monkeypatch)  # its own clock says so, too: the holder no longer believes
    assert one.acquire("s1", "held")["ok"]


def test_who_joined_after_a_backup_is_waited_for_though_the_server_does_not_know_it(
    new_engine: Engine, machine_of: MachineOf, repository: str, tmp_path: Path, at_end: list[Engine]
) -> None:
    one = machine_of(new_engine.dsn(), "one", "s1", mirror=0.5)
    one.beat()
    backup = new_engine.copy(tmp_path / "backup" / "data")
    late = machine_of(new_engine.dsn(), "late", "s2", mirror=0.5)
    late.get("s2", "held")
    one.beat()
    late.server.close()  # cut off: it believes for the lease of its session
    at_end.append(put_back(new_engine, backup, tmp_path / "again"))
    assert one.server.hello(repository, one.version, one.mark, one.epoch)["why"] == protocol.EPOCH
    one.hello(0.5)
    wait_for(lambda: one.beat("s1") and _until_granted_or_patient(one))


def _until_granted_or_patient(one: Machine) -> bool:
    """Return True once more time has gone by than a mirror's lease, with nothing granted meanwhile."""
    answer = one.acquire("s1", "held")
    assert answer.get("why") == protocol.GRACE, answer
    return bool(answer["seconds"] < one.lease - 2)
