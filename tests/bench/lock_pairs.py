"""The number of locks and unlocks a second, by 1, 8 and 32 processes: rows of ``--part locks``.

Each process has a file of its own in one store, and counts its pairs of acquire and release. Beside that, in turn, it
runs a bare loop of two transactions (one insert, one delete) on a file with the settings of a store, the plainest
possible use of SQLite: a pair is compared with its figure, in the same run.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from swarm_hook_core.process import start_time
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration

RATIOS = {1: 8.0, 8: 10.0, 32: 10.0}  # processes -> how many pairs of the bare loop one of ours may take
FAIR = 0.5  # the slowest process against the fastest, of the most processes
LONGEST_SECONDS = 0.25  # a single acquire or release
ACQUIRE_STATEMENTS, RELEASE_STATEMENTS = 6, 5
ROUNDS, SECONDS = 3, 1.0

_MEMBER = """\
import json, os, sys, time
sys.path[:0] = json.loads(sys.argv[1])
path, checkout, name = json.loads(sys.argv[2])
from swarm_hook_core.process import start_time
from swarm_mcp.store import Store
from swarm_mcp.store.schema import PAGE_BYTES
from swarm_mcp.store.sessions import Registration
store = Store(path)
facts = {"runtime": "codex", "session_id": name, "client": (os.getpid(), start_time(os.getpid()))}
me = store.instances.register(Registration(checkout, label=name, lease_seconds=86400, **facts))
bare = store.database.driver.connect(path + ".bare", isolation_level=None, timeout=15)
bare.execute(f"PRAGMA page_size = {PAGE_BYTES}")
bare.execute("PRAGMA journal_mode = WAL")
bare.execute("PRAGMA synchronous = NORMAL")
bare.execute("CREATE TABLE IF NOT EXISTS held (file TEXT PRIMARY KEY, holder TEXT)")

def pair():
    row = store.locks.acquire(me, "src/" + name)
    middle = time.perf_counter()
    store.locks.release(me, "src/" + name, "", row["fence"])
    return middle

def bare_pair():
    bare.execute("BEGIN IMMEDIATE")
    bare.execute("INSERT INTO held VALUES (?, ?)", (name, me["id"]))
    bare.execute("COMMIT")
    middle = time.perf_counter()
    bare.execute("BEGIN IMMEDIATE")
    bare.execute("DELETE FROM held WHERE file = ?", (name,))
    bare.execute("COMMIT")
    return middle

print("ready", flush=True)
for line in sys.stdin:
    kind, seconds = line.split()
    once, done, longest = {"pairs": pair, "bare": bare_pair}[kind], 0, 0.0
    cpu, begun = time.process_time(), time.perf_counter()
    end = begun + float(seconds)
    while begun < end:
        middle = once()
        after = time.perf_counter()
        longest = max(longest, middle - begun, after - middle)
        begun, done = after, done + 1
    print(json.dumps([done, longest, time.process_time() - cpu]), flush=True)
"""


class Run(NamedTuple):
    """One process's turn: pairs, seconds of its longest transaction, processor seconds."""

    pairs: int
    longest: float
    cpu: float


class LockPairs:
    """The measurements; missed goals are in `missed`."""

    def __init__(self, path: str, checkout: str, env: dict[str, str]):
        self.path = path
        self.checkout = checkout
        self.env = {**env, "SWARM_DB_PATH": path}
        self.missed: list[str] = []

    def measure(self) -> None:
        """Measure everything and print it."""
        print(
            "lock and unlock, pairs per second      pairs    bare  ratio  slowest/fastest  longest s  CPU us a pair, bare"
        )
        for processes in RATIOS:
            self._crowd(processes)
        acquire, release = self.statements()
        print(f"statements: {acquire} of an acquire, {release} of a release")
        if acquire > ACQUIRE_STATEMENTS or release > RELEASE_STATEMENTS:
            goal = f"{ACQUIRE_STATEMENTS} and {RELEASE_STATEMENTS}"
            self.missed.append(f"statements of an acquire and a release: {acquire} and {release}, limit {goal}")

    def statements(self) -> tuple[int, int]:
        """Count the statements of an acquire and of a release, with BEGIN and COMMIT, as SQLite traces them."""
        with Store(self.path) as store:
            facts = {"runtime": "codex", "session_id": "counted", "client": (os.getpid(), start_time(os.getpid()))}
            me = store.instances.register(Registration(self.checkout, label="counted", lease_seconds=86400, **facts))
            seen: list[str] = []
            store.database.connection.set_trace_callback(seen.append)
            store.locks.acquire(me, "src/counted")
            acquire = len(seen)
            store.locks.release(me, "src/counted")
            return acquire, len(seen) - acquire

    def _crowd(self, processes: int) -> None:
        names = [f"m{processes}-{number}" for number in range(processes)]
        for name in names:
            (Path(self.checkout) / "src" / name).touch()
        members = [self._member(name) for name in names]
        try:
            for member in members:
                if member.stdout.readline() != "ready\n":  # type: ignore[union-attr]
                    raise RuntimeError("a process could not begin")
            _once(members, "pairs", SECONDS / 5)  # warms caches
            rounds: dict[str, list[list[Run]]] = {"bare": [], "pairs": []}
            for _ in range(ROUNDS):
                for kind, runs in rounds.items():
                    runs.append(_once(members, kind, SECONDS))
        finally:
            for member in members:
                member.kill()
                member.communicate()
        self._judge(processes, rounds["pairs"], rounds["bare"])

    def _judge(self, processes: int, ours: list[list[Run]], bare: list[list[Run]]) -> None:
        pairs, plain = (sum(run.pairs for one in runs for run in one) / ROUNDS / SECONDS for runs in (ours, bare))
        each = [sum(one[number].pairs for one in ours) for number in range(processes)]
        fair = min(each) / max(each)
        longest = max(run.longest for one in ours for run in one)
        cpu, plain_cpu = (
            sum(run.cpu for one in runs for run in one) / sum(run.pairs for one in runs for run in one) * 1e6
            for runs in (ours, bare)
        )
        name = f"{processes} process{'es' if processes > 1 else ''}"
        print(
            f"{name:36} {pairs:7.0f} {plain:7.0f} {plain / pairs:6.1f} {fair:16.2f} {longest:10.3f} {cpu:14.0f} {plain_cpu:5.0f}"
        )
        if plain / pairs > RATIOS[processes]:
            self.missed.append(f"pairs of {name}: 1/{plain / pairs:.1f} of a bare loop, limit 1/{RATIOS[processes]:g}")
        if processes == max(RATIOS) and fair < FAIR:
            self.missed.append(f"pairs of {name}: the slowest did {fair:.2f} of the fastest, limit {FAIR}")
        if processes == max(RATIOS) and longest > LONGEST_SECONDS:
            self.missed.append(f"pairs of {name}: {longest:.2f} s for one, limit {LONGEST_SECONDS}")

    def _member(self, name: str) -> subprocess.Popen:
        given = json.dumps([self.path, self.checkout, name])
        folders = json.dumps([folder for folder in map(os.path.abspath, sys.path) if os.path.isdir(folder)])
        argv = [sys.executable, "-I", "-S", "-B", "-c", _MEMBER, folders, given]
        return subprocess.Popen(argv, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _once(members: list[subprocess.Popen], kind: str, seconds: float) -> list[Run]:
    """Let all members do one kind of pair for so long, at once."""
    for member in members:
        member.stdin.write(f"{kind} {seconds}\n")  # type: ignore[union-attr]
        member.stdin.flush()  # type: ignore[union-attr]
    return [Run(*json.loads(member.stdout.readline())) for member in members]  # type: ignore[union-attr]
