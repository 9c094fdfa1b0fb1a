"""The cost of taking one lock among many: ``--part conflicts``.

A process of its own opens the store, joins, and asks for one lock. The figures are the cost of the request alone beyond
the same beside an empty store: processor time (median of `RUNS`), and the rise of the process's peak memory.
``granted`` and ``refused`` are checked. If the many are the asker's own, they lie below the wanted folder.

Limits, beside 100,000: 50 ms, 30 MB.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple

from swarm_mcp.store import Store

from . import stores
from .plugin import WrongAnswer

MANY = 100_000
CPU_MS, MEMORY_MB = 50.0, 30.0
RUNS = 3

_ASKER = """\
import json, os, resource, sys
sys.path[:0] = json.loads(sys.argv[1])
from swarm_hook_core.process import start_time
from swarm_mcp.errors import LockRefused
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request
from swarm_mcp.store.sessions import Registration
path, checkout, name, wanted = json.loads(sys.argv[2])

def spent():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

def peak():
    try:
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6

with Store(path) as store:
    client = (os.getpid(), start_time(os.getpid()))
    facts = {"runtime": "codex", "session_id": name, "client": client, "lease_seconds": 86400}
    me = store.instances.register(Registration(checkout, label="codex", **facts))
    asked = request(me, [wanted])
    cpu, memory, outcome = spent(), peak(), "granted"
    try:
        store.locks.acquire_all(me, asked)
    except LockRefused:
        outcome = "refused"
    cpu, memory = spent() - cpu, peak() - memory
    if outcome == "granted":
        store.locks.release(me, wanted)
print(json.dumps([outcome, cpu, memory]))
"""


class Case(NamedTuple):
    """The request, the store, and the right answer."""

    name: str
    store: str
    wanted: str
    outcome: str


CASES = (
    Case("a file, 100,000 files", "files", "src/free.py", "granted"),
    Case("src/**/*.py, all elsewhere", "files", "src/**/*.py", "granted"),
    Case("pkg7/**/*.py, 1,000 are covered", "files", "pkg7/**/*.py", "refused"),
    Case("pkg7/**/*.md, none of 1,000 is", "files", "pkg7/**/*.md", "granted"),
    Case("*.md, none is covered", "files", "*.md", "granted"),
    Case("**/*_9.py, some are covered", "files", "**/*_9.py", "refused"),
    Case("**/*.py, all are covered", "files", "**/*.py", "refused"),
    Case("the folder over them", "files", "./", "refused"),
    Case("**/*.py, all are one's own", "own", "**/*.py", "granted"),
    Case("the folder over one's own", "own", "./", "granted"),
    Case("*.md, 100,000 folders, all may have one", "folders", "*.md", "refused"),
    Case("src/*.py, 100,000 folders elsewhere", "folders", "src/*.py", "granted"),
    Case("a file, 1,000 patterns of its folder", "patterns-1000", "src/free.py", "granted"),
    Case("a file, 100,000 patterns elsewhere", "patterns", "src/free.py", "granted"),
)


class Conflicts:
    """The measurements; missed limits are in `missed`."""

    def __init__(self, root: Path, checkout: str, env: dict[str, str]):
        self.root = root
        self.checkout = checkout
        self.env = env
        self.missed: list[str] = []

    def measure(self) -> None:
        """Measure everything and print it."""
        self._fill()
        width = max(len(case.name) for case in CASES)
        print(f"{'beyond an empty store':{width}}            ms      MB")
        empty = {wanted: self._asked("empty", wanted) for wanted in dict.fromkeys(case.wanted for case in CASES)}
        for case in CASES:
            outcome, cpu, memory = self._asked(case.store, case.wanted)
            if outcome != case.outcome:
                raise WrongAnswer(f"{case.name}: {case.wanted} was {outcome}, not {case.outcome}")
            cpu, memory = cpu - empty[case.wanted][1], memory - empty[case.wanted][2]
            over = cpu > CPU_MS or memory > MEMORY_MB
            print(f"{case.name:{width}}  {outcome} {cpu:7.1f} {memory:7.1f}{'  <-- over' if over else ''}", flush=True)
            if over:
                limit = f"limit {CPU_MS:g} ms, {MEMORY_MB:g} MB"
                self.missed.append(f"{case.name}: {cpu:.1f} ms, {memory:.1f} MB beyond an empty store, {limit}")
        print()

    def _asked(self, store: str, wanted: str) -> tuple[str, float, float]:
        """Return the outcome, the milliseconds and the MB."""
        runs = [self._ask(store, wanted, number) for number in range(RUNS)]
        return runs[0][0], 1000 * median(run[1] for run in runs), median(run[2] for run in runs)

    def _ask(self, store: str, wanted: str, number: int) -> tuple[str, float, float]:
        # A new session each time, since a refused one is answered from the record of its refusal.
        name = "asker" if store == "own" else f"asker-{number}-{wanted}"
        given = json.dumps([self._path(store), self.checkout, name, wanted])
        folders = json.dumps([folder for folder in map(os.path.abspath, sys.path) if os.path.isdir(folder)])
        argv = [sys.executable, "-I", "-S", "-B", "-c", _ASKER, folders, given]
        done = subprocess.run(argv, env=self.env, cwd=self.checkout, stdout=subprocess.PIPE, text=True, check=True)
        outcome, cpu, memory = json.loads(done.stdout)
        return outcome, cpu, memory

    def _path(self, store: str) -> str:
        return str(self.root / f"conflicts-{store}.db")

    def _fill(self) -> None:
        for name in ("empty", "files", "own"):
            stores.fill(self._path(name), self.checkout, 0 if name == "empty" else MANY, "")
        stores.join(self._path("own"), self.checkout, "codex", "asker")
        with Store(self._path("own")) as store, store.database.writing():
            store.database.change(
                "UPDATE context SET instance_id = (SELECT instance_id FROM swarm_sessions WHERE session_id = 'asker')"
            )
        folder, part = ":top || '/folder_' || n", "'src/**/part_' || n || '_*.py'"
        for name, count, columns in (
            ("folders", MANY, (folder, folder, folder, "NULL")),
            (
                "patterns",
                MANY,
                (":top || '/p' || n || '/*.py'", "'glob:' || :top || '/p' || n", ":top", "'p' || n || '/*.py'"),
            ),
            ("patterns-1000", 1000, (f":top || '/' || {part}", "'glob:' || :top || '/src'", ":top", part)),
        ):
            stores.fill(self._path(name), self.checkout, 0, "")
            with Store(self._path(name)) as store, store.database.writing():
                store.database.connection.execute(
                    "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :count)"
                    " INSERT INTO context (scope, type, content, id, instance_id, file, path_key, base, pattern)"
                    f" SELECT :top, 'lock', '', 'lock ' || n, 'holder-' || (n % {stores.HOLDERS}), {', '.join(columns)}"
                    " FROM number",
                    {"top": self.checkout, "count": count},
                )
