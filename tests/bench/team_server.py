"""The cost of a grant of the team's server: ``--part team``. Needs the packages of ``make team``.

`CLIENTS` processes, each a machine of its own, ask for locks in one repository and release them without a pause, in
turns of a few seconds with

- *bare*: the least work of any such server, ``BEGIN; SELECT ... FOR UPDATE; INSERT; COMMIT`` over one row of a table
  beside ours, by as many processes, statement
  by statement, as programs do it; and once more sent as one message, the absolute minimum;
- *grant*: ours;
- *settled*: the same grants, and until each counts: two mirrors listen, and acknowledge.

Milliseconds of one grant in its asker's view, and the number of them (with their releases) a second. A release is not
within a grant's time. *lag*: from a grant's answer until a mirror has it, negative if it has it sooner.

*crowd*: `CROWD` machines with a session each, as their agents are to the server (a beat each third of a lease, one more
after each notification and one as acknowledgement), while another is granted a lock and releases it, once a second. 200
machines would take that many times as much: more of them do not fit on one small machine.

Limits, of medians: a grant 3 times the bare one by statements, a settled one 4 times; lag 150 ms (99 %).
"""

import contextlib
import importlib.util
import multiprocessing
import os
import queue
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from team.history.engine import Engine, programs

from swarm_hook_core import clock
from swarm_mcp.team import TeamUnreachable

from .team_machine import TeamMachine

CLIENTS, MIRRORS = 8, 2
TURNS, TURN_SECONDS = 4, 3.0
CROWD, CROWD_PROCESSES, CROWD_SECONDS = 40, 4, 20.0
MANY = 200
KINDS = ("bare", "bare, one message", "grant", "settled")
GRANT_RATIO, SETTLED_RATIO, LAG_MS = 3.0, 4.0, 150.0
REPOSITORY = "measured"
PATIENCE = 30.0  # seconds: slow answers are to be measured
BEAT_SECONDS = 0.5  # of clients; a beat brings their news


class Sample(NamedTuple):
    """One of a `kind`: how long it took, in seconds; of a grant its version, and when it was answered (``clock.now``)."""

    kind: str
    seconds: float
    version: int = 0
    at: float = 0.0


class TeamServers:
    """The measurements; missed limits are in `missed`."""

    def __init__(self, root: Path):
        self._root = root
        self.missed: list[str] = []

    def measure(self) -> None:
        """Measure everything and print it."""
        if programs() is None or importlib.util.find_spec("psycopg") is None:
            print("not measured: `make team` installs PostgreSQL and psycopg")
            return
        from swarm_mcp.team import server as team_server
        from swarm_mcp.team.server import connect

        self._engine = Engine(self._root / "postgresql" / "data").create()
        with (self._engine.data / "postgresql.conf").open("a") as settings:
            settings.write("\nmax_connections = 200\n")
        self._engine.start()
        try:
            server = self._engine.dsn()
            team_server.init(server)
            with connect(server) as admin:
                admin.execute("CREATE TABLE bare (id int PRIMARY KEY, version bigint); INSERT INTO bare VALUES (1, 0)")
                admin.execute("CREATE TABLE bare_rows (version bigint PRIMARY KEY, path text, at timestamptz)")
            self._show(*self._run(server))
            self._crowd(server)
            machine = TeamMachine(self._root, f"postgresql://postgres@127.0.0.1:{self._engine.port}/postgres")
            machine.measure()
            self.missed += machine.missed
        finally:
            self._engine.stop()

    def _run(self, server: str) -> tuple[list[Sample], list[tuple[int, float]]]:
        """Return every sample, and each mirror's versions by time."""
        fork = multiprocessing.get_context("fork")
        told: Any = fork.Queue()
        start = time.monotonic() + 3
        end = start + TURNS * len(KINDS) * TURN_SECONDS
        makers = [fork.Process(target=_mirror, args=(server, number, end + 1, told)) for number in range(MIRRORS)]
        makers += [fork.Process(target=_client, args=(server, number, start, end, told)) for number in range(CLIENTS)]
        for one in makers:
            one.start()
        samples, seen = [], []
        for _ in makers:
            try:
                some, versions = told.get(timeout=end - time.monotonic() + 60)
            except queue.Empty:
                raise AssertionError("a client of the team's server has not come to an end") from None
            samples += some
            seen += versions
        for one in makers:
            one.join()
        return samples, seen

    def _show(self, samples: list[Sample], seen: list[tuple[int, float]]) -> None:
        by_kind = {kind: [one for one in samples if one.kind == kind] for kind in KINDS}
        assert all(by_kind.values()), {kind: len(found) for kind, found in by_kind.items()}
        base = median(one.seconds for one in by_kind["bare"])
        print(f"{CLIENTS} clients, one repository     p50     p99  a second  ratio")
        for kind, found in by_kind.items():
            taken = sorted(one.seconds for one in found)
            ratio, rate = median(taken) / base, len(taken) / (TURNS * TURN_SECONDS)
            limit = {"grant": GRANT_RATIO, "settled": SETTLED_RATIO}.get(kind)
            over = limit is not None and ratio > limit
            print(f"{kind:25} {1000 * median(taken):7.1f} {1000 * _at(taken, 0.99):7.1f} {rate:9.0f} {ratio:6.2f}"
                  f"{'  <-- over' if over else ''}", flush=True)  # fmt: skip
            if over:
                self.missed.append(f"{kind}: {ratio:.2f} times the bare transaction, limit {limit}")
        granted = {one.version: one.at for one in by_kind["settled"]}
        lags = sorted(at - granted[version] for version, at in seen if version in granted)
        print(
            f"lag of a mirror           {1000 * median(lags):7.1f} {1000 * _at(lags, 0.99):7.1f}  ({len(lags)} times)"
        )
        if 1000 * _at(lags, 0.99) > LAG_MS:
            self.missed.append(f"lag of a mirror: {1000 * _at(lags, 0.99):.0f} ms (99 %), limit {LAG_MS:g}")
        print()

    def _crowd(self, server: str) -> None:
        from swarm_mcp.team.protocol import want
        from swarm_mcp.team.server import TeamServer

        fork = multiprocessing.get_context("fork")
        told: Any = fork.Queue()
        start = time.monotonic() + 12
        end = start + CROWD_SECONDS
        each = CROWD // CROWD_PROCESSES
        makers = [
            fork.Process(target=_agents, args=(server, number, each, start, end, told))
            for number in range(CROWD_PROCESSES)
        ]
        for one in makers:
            one.start()
        asker = TeamServer(server, "asker")
        news = asker.hello(REPOSITORY, mirror_lease=0, seconds=PATIENCE)["news"]
        sessions = [{"session": "asker", "label": "", "lease": 60}]
        time.sleep(max(0.0, start - time.monotonic()))
        cpu, granted = self._spent(), {}
        while time.monotonic() < end:
            news = asker.beat(REPOSITORY, news["version"], news["mark"], sessions, seconds=PATIENCE)["news"]
            wanted = [want("told.py")]
            answer = asker.acquire(REPOSITORY, "asker", wanted, news["version"], news["mark"], seconds=PATIENCE)
            if answer["ok"]:
                granted[answer["version"]] = clock.now()
                time.sleep(0.5)
                asker.release(REPOSITORY, [(answer["locks"][0], answer["fences"][0])], seconds=PATIENCE)
            time.sleep(0.5)
        cpu = (self._spent() - cpu) / CROWD_SECONDS
        asker.close()
        beats, seen = 0, []
        for _ in makers:
            some, versions = told.get(timeout=60)
            beats, seen = beats + some, seen + versions
        for one in makers:
            one.join()
        rate = beats / CROWD_SECONDS
        lags = sorted(at - granted[version] for version, at in seen if version in granted)
        print(f"{CROWD} machines: {rate:.0f} beats a second, the server's processes take {100 * cpu:.0f} % of a processor"
              f" ({1000 * cpu / rate:.2f} ms a beat); lag {1000 * median(lags):.1f} ms, {1000 * _at(lags, 0.99):.1f} (99 %)")  # fmt: skip
        print(
            f"{MANY} machines would be {rate * MANY / CROWD:.0f} beats a second and {100 * cpu * MANY / CROWD:.0f} % of a processor"
        )
        print()

    def _spent(self) -> float:
        """Return the processor time that the server and its processes have taken so far, those that ended as well."""
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:  # the process has ended
                continue
            if int(stat.parent.name) == self._engine.pid:
                ticks += sum(map(int, fields[11:15]))
            elif int(fields[1]) == self._engine.pid:
                ticks += sum(map(int, fields[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _mirror(server: str, number: int, end: float, told: Any) -> None:
    """Follow the log as an agent does, and report the times of versions."""
    from swarm_mcp.team.server import TeamServer

    one = TeamServer(server, f"mirror-{number}")
    news = one.hello(REPOSITORY, seconds=PATIENCE)["news"]
    one.listen(0)
    seen = []
    while time.monotonic() < end:
        news = one.beat(REPOSITORY, news["version"], news["mark"], seconds=PATIENCE)["news"]
        at = clock.now()
        seen += [(change["version"], at) for change in news["changes"] if change["kind"] == "lock"]
        if not news["changes"] and not news["more"]:
            one.listen(1.0)
    one.close()
    told.put(([], seen))


def _agents(server: str, number: int, count: int, start: float, end: float, told: Any) -> None:
    """Be `count` machines, each in a thread; report the number of beats, and their news by time."""
    kept: list[tuple[int, list[tuple[int, float]]]] = []
    threads = [
        threading.Thread(target=_agent, args=(server, f"{number}-{at}", start, end, kept)) for at in range(count)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    told.put((sum(beats for beats, _ in kept), [version for _, seen in kept for version in seen]))


def _agent(server: str, name: str, start: float, end: float, kept: list) -> None:
    from swarm_mcp.team.protocol import MIRROR_LEASE, SESSION_LEASE
    from swarm_mcp.team.server import TeamServer

    one, beats, seen, renewed = TeamServer(server, f"machine-{name}"), 0, [], 0.0
    told = [{"session": f"session-{name}", "label": "platform:cli", "lease": SESSION_LEASE}]
    news = one.hello(REPOSITORY, seconds=PATIENCE)["news"]
    while (now := time.monotonic()) < end:
        sessions, renewed = (told, now) if now - renewed > SESSION_LEASE / 4 else ([], renewed)
        news = one.beat(REPOSITORY, news["version"], news["mark"], sessions, seconds=PATIENCE)["news"]
        beats += now >= start
        at = clock.now()
        seen += [(change["version"], at) for change in news["changes"] if change["kind"] == "lock"]
        if not news["changes"]:
            with contextlib.suppress(TeamUnreachable):  # so many that connect at once may take too long
                one.listen(MIRROR_LEASE / 3)
    one.close()
    kept.append((beats, seen))


def _client(server: str, number: int, start: float, end: float, told: Any) -> None:
    from swarm_mcp.team.protocol import want
    from swarm_mcp.team.server import TeamServer, connect

    one, session = TeamServer(server, f"client-{number}"), f"session-{number}"
    sessions = [{"session": session, "label": "", "lease": 60}]
    news = one.hello(REPOSITORY, mirror_lease=0, seconds=PATIENCE)["news"]
    news = one.beat(REPOSITORY, news["version"], news["mark"], sessions, seconds=PATIENCE)["news"]
    bare, samples, beaten, count = connect(server), [], 0.0, 0
    time.sleep(max(0.0, start - time.monotonic()))
    while (now := time.monotonic()) < end:
        kind = KINDS[int((now - start) / TURN_SECONDS) % len(KINDS)]
        count += 1
        if kind.startswith("bare"):
            samples.append(Sample(kind, _bare(bare, kind == "bare", f"client-{number}/{count}")))
            continue
        if now - beaten > BEAT_SECONDS:
            news = one.beat(REPOSITORY, news["version"], news["mark"], sessions, seconds=PATIENCE)["news"]
            beaten = now
        begun = time.perf_counter()
        wanted = [want(f"client-{number}/file-{count}.py", note="measured")]
        answer = one.acquire(REPOSITORY, session, wanted, news["version"], news["mark"], seconds=PATIENCE)
        assert answer["ok"], answer
        at = clock.now()
        if kind == "settled":
            assert one.settle(REPOSITORY, answer["version"], 10)
        samples.append(Sample(kind, time.perf_counter() - begun, answer["version"], at))
        one.release(REPOSITORY, [(answer["locks"][0], answer["fences"][0])], seconds=PATIENCE)
    one.close()
    bare.close()
    told.put((samples, []))


def _bare(connection: Any, is_each: bool, path: str) -> float:
    begun = time.perf_counter()
    steps = (
        "BEGIN",
        "SELECT version FROM bare WHERE id = 1 FOR UPDATE",
        f"INSERT INTO bare_rows SELECT coalesce(max(version), 0) + 1, '{path}', now() FROM bare_rows",
        "COMMIT",
    )
    if is_each:
        for step in steps:
            connection.execute(step)
    else:
        connection.execute("; ".join(steps))
    return time.perf_counter() - begun
