"""The cost of listings at any size: ``--part listings``.

Commands that list locks, each as a process of its own beside stores of 0, 1,000 and 100,000 locks of fifty living
sessions; the largest also with half of them, and all of them, gone. Medians of processor time and of peak memory, and
the least seconds from its start to its first words. The output is checked: all held locks, or 20 and the number of the
others.

Limits, at 100,000 locks: `LIMITS`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from swarm_mcp.store import Store

from . import stores
from .plugin import Plugin, WrongAnswer

SIZES = (0, 1_000, 100_000)
RUNS = 3
SHOWN = 20  # locks that `status` shows


class Limit(NamedTuple):
    """Seconds of processor time, MB, seconds until the first words; None for no limit."""

    cpu: float | None
    memory: float | None
    first: float | None


LIMITS = {"locks --json": Limit(1.5, 80.0, 0.2), "locks": Limit(None, 80.0, 0.2), "status": Limit(0.5, 40.0, None)}

# It forks, so that a child starts from the few pages of this bare interpreter: otherwise its parent's memory would be
# counted. It reads the child's output as it comes, and hands it on in a file.
_LAUNCHER = """\
import posix as os, sys, time
kept = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
source, sink = os.pipe()
began = time.monotonic()
pid = os.fork()
if not pid:
    os.dup2(sink, 1)
    os.execve(sys.argv[2], sys.argv[2:], os.environ)
os.close(sink)
first = 0.0
while True:
    part = os.read(source, 65536)
    first = first or time.monotonic() - began
    if not part:
        break
    os.write(kept, part)
_, status, usage = os.wait4(pid, 0)
print(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, first)
"""


class Listings:
    """The measurements; missed limits are in `missed`."""

    def __init__(self, plugin: Plugin, root: Path, checkout: str, env: dict[str, str]):
        self.plugin, self.root, self.checkout, self.env = plugin, root / "listings", checkout, env
        self.root.mkdir()
        self.missed: list[str] = []

    def measure(self) -> None:
        """Measure everything and print it."""
        print(f"{'locks':47}  cpu s     MB  first words s")
        for size in SIZES:
            for gone in (0, stores.HOLDERS // 2, stores.HOLDERS) if size == max(SIZES) else (0,):
                path = self._store(size, gone)
                self._commands(path, size, gone)
                os.remove(path)
        print(flush=True)

    def _store(self, size: int, gone: int) -> str:
        path = str(self.root / f"{size}-{gone}.db")
        stores.fill(path, self.checkout, size, "")
        with Store(path) as store, store.database.writing():
            store.database.change(
                "UPDATE swarm_sessions SET client_start = 'of another' WHERE CAST(substr(instance_id, 8) AS INTEGER) < ?",
                (gone,),
            )
        return path

    def _commands(self, path: str, size: int, gone: int) -> None:
        live = size - size * gone // stores.HOLDERS
        checks: dict[str, Callable[[bytes], bool]] = {
            "locks --json": lambda output: len(json.loads(output)) == live,
            "locks": lambda output: output.count(b"\n") == (live or 1),
            "status": lambda output: (
                f"{live - SHOWN} more locks" in output.decode() if live > SHOWN else b"0 locks" in output
            ),
        }
        for words, is_right in checks.items():
            runs = [self.run(path, words, is_right) for _ in range(RUNS)]
            cpu, memory = (median(run[at] for run in runs) for at in range(2))
            first = min(run[2] for run in runs)  # of wall time, lengthened by all other processes
            name = f"{words} {size:,}" + (f", holders of {size - live:,} gone" if gone else "")
            print(f"{name:47} {cpu:6.2f} {memory:6.1f} {first:8.2f}", flush=True)
            if size == max(SIZES):
                limit = LIMITS[words]
                # Without any lock the first words are the last ones.
                self._judge(name, (cpu, memory, first), limit if live else limit._replace(first=None))

    def _judge(self, name: str, found: tuple[float, ...], limit: Limit) -> None:
        units = ("s of processor time", "MB", "s to its first words")
        for value, most, unit in zip(found, limit, units):
            if most is not None and value > most:
                self.missed.append(f"swarm-mcp {name}: {value:.2f} {unit}, limit {most:g}")

    def run(self, path: str, words: str, is_right: Callable[[bytes], bool]) -> tuple[float, float, float]:
        """Processor time, most memory and seconds to the first words of one command; Raises WrongAnswer."""
        output = self.root / "output"
        argv = [self.plugin.python, "-I", "-S", "-c", _LAUNCHER, str(output), *self.plugin.coordinator, *words.split()]
        env = {**self.env, "SWARM_DB_PATH": path}
        done = subprocess.run(argv, env=env, cwd=self.checkout, capture_output=True, text=True, check=True)
        status, cpu, memory, first = done.stdout.split()
        if int(status) or not is_right(output.read_bytes()):
            raise WrongAnswer(f"swarm-mcp {words}: exit status {status}, {output.read_bytes()[:300]!r} {done.stderr}")
        return float(cpu), int(memory) / (1e6 if sys.platform == "darwin" else 1e6 / 1024), float(first)
