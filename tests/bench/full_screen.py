"""`swarm-mcp top` beside many locks: ``--part top``.

It runs at a pseudo-terminal of 80 columns and 24 rows, beside stores of 0, 1,000 and 100,000 locks of fifty living
sessions. Seconds from its start until the tables are on the screen, processor time and memory until then; with the
largest store also the seconds from a commit until its lock is visible, and the processor time at rest. The screen's
content is checked. Limits, at the largest store: `SECONDS`, `MEMORY`, `FOLLOWED`, `IDLE`.
"""

import os
import time
from pathlib import Path
from statistics import median

from support.full_screen import FullScreen
from support.screen import Played

from swarm_mcp.domain import Session
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration

from . import stores
from .plugin import Plugin

SIZES = (0, 1_000, 100_000)
RUNS, CHANGES = 5, 10
IDLE_SECONDS = 20.0
SECONDS, MEMORY, FOLLOWED, IDLE = 1.0, 80.0, 1.0, 0.01  # s, MB, s, share of a processor


class Shown:
    """The command at a terminal."""

    def __init__(self, plugin: Plugin, env: dict[str, str], checkout: str, path: str):
        self.began = time.perf_counter()
        self.played = Played(
            [*plugin.coordinator, "top"], screen=FullScreen(), env={**env, "SWARM_DB_PATH": path}, cwd=checkout
        )

    def until(self, *words: str) -> float:
        """Seconds since it was started, once all of `words` are on the screen."""
        self.played.until(lambda screen: all(word in screen.text for word in words))
        return time.perf_counter() - self.began

    def processor_seconds(self) -> float:
        """Return its processor time so far."""
        fields = Path(f"/proc/{self.played.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak(self) -> float:
        """The most memory it has had so far, in MB."""
        lines = Path(f"/proc/{self.played.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

    def rests(self, seconds: float) -> float:
        """The processor time that it uses in so many seconds."""
        before = self.processor_seconds()
        self.played.watch(seconds)
        return self.processor_seconds() - before

    def quit(self) -> None:
        """End it."""
        with self.played:
            self.played.types("q")
            self.played.ended()


class FullScreens:
    """The measurements; missed limits are in `missed`."""

    def __init__(self, plugin: Plugin, root: Path, checkout: str, env: dict[str, str]):
        self.plugin, self.root, self.checkout, self.env = plugin, root / "top", checkout, env
        self.root.mkdir()
        self.missed: list[str] = []

    def measure(self) -> None:
        """Measure everything and print it."""
        print(f"{'locks':>10}  shown s  cpu s     MB")
        for size in SIZES:
            path = str(self.root / f"{size}.db")
            stores.fill(path, self.checkout, size, f"{self.checkout}/src/locked.py")
            runs = [self._start(path, size) for _ in range(RUNS)]
            seconds = min(run[0] for run in runs)  # of wall time, lengthened by all other processes
            cpu, memory = (median(run[at] for run in runs) for at in (1, 2))
            print(f"{size:10,} {seconds:8.2f} {cpu:6.2f} {memory:6.1f}", flush=True)
        self._judge("to its tables", seconds, SECONDS, "s")
        self._judge("of memory", memory, MEMORY, "MB")
        followed, idle = self._follow(path)
        print(f"beside {size:,}: a new lock is seen after {followed:.2f} s (the least of {CHANGES})")
        print(f"while nothing happens: {100 * idle:.2f} % of a processor, over {IDLE_SECONDS:g} s\n", flush=True)
        self._judge("from a commit to the screen", followed, FOLLOWED, "s")
        self._judge("of a processor while nothing happens", idle, IDLE, "")

    def _start(self, path: str, size: int) -> tuple[float, float, float]:
        shown = Shown(self.plugin, self.env, self.checkout, path)
        seconds = shown.until("src/locked.py", "careful surgery", f"Locks {size + 1:,}")
        found = seconds, shown.processor_seconds(), shown.peak()
        shown.quit()
        return found

    def _follow(self, path: str) -> tuple[float, float]:
        with Store(path) as store:
            me = store.instances.register(Registration(self.checkout, runtime="codex", session_id="measured"))
            shown = Shown(self.plugin, self.env, self.checkout, path)
            shown.until("careful surgery")
            idle = shown.rests(IDLE_SECONDS) / IDLE_SECONDS
            waits = []
            for number in range(CHANGES):
                store.locks.acquire(Session(me), f"{self.checkout}/new{number}.py")
                begun = time.perf_counter()
                shown.until(f"new{number}.py")
                waits.append(time.perf_counter() - begun)
            shown.quit()
        return min(waits), idle

    def _judge(self, what: str, value: float, limit: float, unit: str) -> None:
        if value > limit:
            self.missed.append(f"swarm-mcp top: {value:.3g} {unit} {what}, limit {limit:g}")
