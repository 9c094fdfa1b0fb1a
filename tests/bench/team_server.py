"""What a grant of the team's server costs: ``--part team``. Needs what ``make team`` installs.

`CLIENTS` processes, each a machine of its own, ask for locks in one repository and give them back, for as long as it
takes, in turns of a few seconds with

- *bare*: what any such server has to do at least, ``BEGIN; SELECT ... FOR UPDATE; INSERT; COMMIT`` over one row of a
  table beside ours, by as many processes, statement by statement, as programs do it; and once more sent as one
  message, which is the least there can be;
- *grant*: ours;
- *settled*: the same grants, and until each counts: two mirrors listen, and say that they have it.

Milliseconds of one grant, as its asker sees it, and how many of them (with their releases) there are a second. A release
is not within a grant's time. *lag*: from a grant's answer until a mirror has it, which is less than nothing where it
has it sooner.

Limits, of medians: a grant 3 times the bare one by statements, a settled one 4 times; lag 150 ms (99 %).
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import queue
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from team.history.engine import Engine, programs

from swarm_hook_core import clock

CLIENTS, MIRRORS = 8, 2
TURNS, TURN_SECONDS = 4, 3.0
KINDS = ("bare", "bare, one message", "grant", "settled")
GRANT_RATIO, SETTLED_RATIO, LAG_MS = 3.0, 4.0, 150.0
REPOSITORY = "measured"
BEAT_SECONDS = 0.5  # of clients, which know by it what they have seen


class Sample(NamedTuple):
    """One of a `kind`: how long it took, in seconds; of a grant its version, and when it was answered (``clock.now``)."""

    kind: str
    seconds: float
    version: int = 0
    at: float = 0.0


class TeamServers:
    """The measurements; what misses its limit is in `missed`."""

    def __init__(self, root: Path):
        self._root = root
        self.missed: list[str] = []

    def measure(self) -> None:
        """Measure everything and print it."""
        if programs() is None or importlib.util.find_spec("psycopg") is None:
            print("not measured: `make team` installs PostgreSQL and psycopg")
            return
        from swarm_mcp.team import migrations
        from swarm_mcp.team.connection import connect

        self._engine = Engine(self._root / "postgresql" / "data").create().start()
        try:
            server = self._engine.dsn()
            migrations.init(server)
            with connect(server) as admin:
                admin.execute("CREATE TABLE bare (id int PRIMARY KEY, version bigint); INSERT INTO bare VALUES (1, 0)")
                admin.execute("CREATE TABLE bare_rows (version bigint PRIMARY KEY, path text, at timestamptz)")
            self._show(*self._run(server))
        finally:
            self._engine.stop()

    def _run(self, server: str) -> tuple[list[Sample], list[tuple[int, float]]]:
        """Return every sample, and of each mirror at what time it had which version."""
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


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _mirror(server: str, number: int, end: float, told: Any) -> None:
    """Follow the log as an agent does, and say which version was there when."""
    from swarm_mcp.team.server import TeamServer

    one = TeamServer(server, f"mirror-{number}")
    news = one.hello(REPOSITORY)["news"]
    one.listen(0)
    seen = []
    while time.monotonic() < end:
        news = one.beat(REPOSITORY, news["version"], news["mark"])["news"]
        at = clock.now()
        seen += [(change["version"], at) for change in news["changes"] if change["kind"] == "lock"]
        if not news["changes"] and not news["more"]:
            one.listen(1.0)
    one.close()
    told.put(([], seen))


def _client(server: str, number: int, start: float, end: float, told: Any) -> None:
    from swarm_mcp.team.connection import connect
    from swarm_mcp.team.protocol import want
    from swarm_mcp.team.server import TeamServer

    one, session = TeamServer(server, f"client-{number}"), f"session-{number}"
    sessions = [{"session": session, "label": "", "lease": 60}]
    news = one.hello(REPOSITORY, mirror_lease=0)["news"]
    news = one.beat(REPOSITORY, news["version"], news["mark"], sessions)["news"]
    bare, samples, beaten, count = connect(server), [], 0.0, 0
    time.sleep(max(0.0, start - time.monotonic()))
    while (now := time.monotonic()) < end:
        kind = KINDS[int((now - start) / TURN_SECONDS) % len(KINDS)]
        count += 1
        if kind.startswith("bare"):
            samples.append(Sample(kind, _bare(bare, kind == "bare", f"client-{number}/{count}")))
            continue
        if now - beaten > BEAT_SECONDS:
            news, beaten = one.beat(REPOSITORY, news["version"], news["mark"], sessions)["news"], now
        begun = time.perf_counter()
        wanted = [want(f"client-{number}/file-{count}.py", note="measured")]
        answer = one.acquire(REPOSITORY, session, wanted, news["version"], news["mark"], seconds=10)
        assert answer["ok"], answer
        at = clock.now()
        if kind == "settled":
            assert one.settle(REPOSITORY, answer["version"], 10)
        samples.append(Sample(kind, time.perf_counter() - begun, answer["version"], at))
        one.release(REPOSITORY, [(answer["locks"][0], answer["fences"][0])], seconds=10)
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
