"""Checks of hooks, and a session's life: commands of an installed plugin against a bare interpreter."""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from . import figures, stores
from .figures import Series
from .plugin import (
    RUNTIMES,
    Plugin,
    WrongAnswer,
    check_agent,
    check_context,
    check_decision,
    check_silence,
    payload,
    write_payload,
)
from .processes import peak_bytes, run

FOREIGN_SIZE = 100_000
THREE_KINDS = "three kinds"
MEMORY_RUNS = 3
LIFECYCLE_SECONDS = 30.0
LIFE = (
    ("SessionStart", "startup"),
    ("SessionStart", "resume"),
    ("UserPromptSubmit", ""),
    ("SubagentStart", ""),
    ("PostToolUse", ""),
    ("SubagentStop", ""),
    ("Stop", ""),
    ("SessionEnd", ""),
)


def store_of(size: int, locked: bool = False) -> str:
    """File name of the store with `size` locks; the empty one has a twin with just the lock that is asked for."""
    return "own-0-and-one.db" if locked and not size else f"own-{size}.db"


class Case(NamedTuple):
    """One command to time, and its right answer."""

    series: Series
    argv: list[str]
    payload: bytes
    env: dict[str, str]
    check: Callable[[bytes], None]


class Bench:
    """Plugin, checkout and stores in one temporary folder."""

    def __init__(self, root: Path, sizes: list[int], shell: str):
        self.root = root
        self.sizes = sizes
        self.checkout = root / "checkout"
        for folder in ("checkout/.git", "checkout/src", "checkout/other", "home", "state"):
            (root / folder).mkdir(parents=True)
        for name in ("src/locked.py", "src/free.py", "other/locked.py"):
            (self.checkout / name).write_text("a line\n")
        self.bare_env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(root / "home"),
            "TMPDIR": str(root),
            "LANG": "C.UTF-8",
            "SWARM_STATE_DIR": str(root / "state"),
        }
        self.plugin = Plugin(root, self.bare_env, shell)
        self.bare = [self.plugin.python, "-I", "-S", "-c", "pass"]

    def env(self, store: str, runtime: str = "") -> dict[str, str]:
        """Return a hook's environment, with the store of that name. A `runtime` sees no writes of other ones."""
        own = {"SWARM_STATE_DIR": str(self.root / f"state-{runtime}")} if runtime else {}
        return {**self.bare_env, **own, "SWARM_DB_PATH": str(self.root / store)}

    # ------------------------------------------------------------------ cases

    def checks(self) -> list[Case]:
        """PreToolUse of both runtimes, on a free and on a locked file, for every store."""
        cases = []
        for size in self.sizes:
            for denied in (False, True):
                cases += self._checks_on(store_of(size, denied), size, "", denied, locked=denied or size > 0)
        if max(self.sizes) >= FOREIGN_SIZE:
            for denied in (False, True):
                cases += self._checks_on("foreign.db", FOREIGN_SIZE, "foreign", denied)
                cases += self._checks_on("namesakes.db", FOREIGN_SIZE, "foreign, one name", denied)
                cases += self._checks_on(f"kinds-{int(denied)}.db", FOREIGN_SIZE, THREE_KINDS, denied)
        return cases

    def _checks_on(self, name: str, size: int, kind: str, denied: bool, locked: bool = True) -> list[Case]:
        target = str(self.checkout / "src/locked.py")
        namesakes = "name" in kind
        path = str(self.root / name)
        if not os.path.exists(path):
            print(f"  store with {size:,} locks{f' ({kind})' if kind else ''}", file=sys.stderr, flush=True)
            if kind == THREE_KINDS:
                stores.fill_three_kinds(path, str(self.checkout), size, denied)
            else:
                stores.fill(path, str(self.checkout), size, target if locked else "", bool(kind), namesakes)
            for runtime in RUNTIMES:
                stores.join(path, str(self.checkout), runtime, f"writer-{runtime}")
        file = target if denied else str(self.checkout / ("other/locked.py" if namesakes else "src/free.py"))
        cases = []
        for runtime in RUNTIMES:
            family = f"PreToolUse {runtime:<11} {'deny' if denied else 'allow':<5}"
            label = f"{family} {size:>9,}{f' {kind}' if kind else ''}"
            limit = figures.NAMESAKES_RATIO if namesakes else figures.PRE_TOOL_USE_RATIO
            series = Series(label, "" if kind else family, limit, figures.MEMORY_RATIO)
            sent = write_payload(runtime, f"writer-{runtime}", str(self.checkout), file)
            command = self.plugin.command(runtime, "PreToolUse")
            through = f" (one of the locked {self.checkout}/{stores.LOCKED_PATTERN})" if kind == THREE_KINDS else ""
            check = self._decision(runtime, file, denied, through)
            cases.append(Case(series, command, sent, self.env(name, runtime), check))
        return cases

    def _decision(self, runtime: str, file: str, denied: bool, through: str) -> Callable[[bytes], None]:
        return lambda output: check_decision(output, runtime, file, denied, through)

    def measure(self, cases: list[Case], runs: int) -> list[Series]:
        """Time all `cases` in turn, `runs` times, each next to a bare interpreter; then their memory."""
        for number in range(-1, runs):  # the first round only warms the caches
            for case in cases:
                self._once(case, keep=number >= 0)
        for _ in range(MEMORY_RUNS):
            for case in cases:  # in turn: an unlock needs a lock
                self._weigh(case)
        return [case.series for case in cases]

    def lifecycle(self, store: str, runs: int, locks: int) -> list[Series]:
        """First and repeated SessionStart, both turn boundaries and SessionEnd: `runs` sessions, one after another.

        Fewer where they take long: each runtime has half a minute, and three sessions in any case.
        """
        found = []
        for runtime in RUNTIMES:
            cases = [self._step(runtime, locks, store, *step) for step in LIFE]
            end = time.monotonic() + LIFECYCLE_SECONDS
            for number in range(-1, runs):
                last = number == runs - 1 or (number >= 2 and time.monotonic() > end)
                for case in cases:
                    sent = case.payload.replace(b"SESSION", f"life-{runtime}-{number}".encode())
                    self._once(case._replace(payload=sent), keep=number >= 0)
                    if last and b"SessionEnd" not in sent:  # each step but the end can be taken twice
                        self._weigh(case._replace(payload=sent))
                if last:
                    break
            found += [case.series for case in cases]
        return found

    def _step(self, runtime: str, locks: int, store: str, event: str, source: str) -> Case:
        name = f"{event} {source}".ljust(22)
        series = Series(f"{name} {runtime:<11} {locks:>9,}", limit=figures.SESSION_RATIO)
        check = {"SessionStart": check_context, "SubagentStart": check_agent}.get(event, check_silence)
        fields = {"agent_id": "agent-1"} if event.startswith("Subagent") else {}
        if event == "PostToolUse":
            fields = {"tool_name": "Bash", "tool_use_id": "call-1"}
        sent = payload(event, "SESSION", str(self.checkout), source=source, **fields)
        return Case(series, self.plugin.command(runtime, event), sent, self.env(store), check)

    # ---------------------------------------------------------------- innards

    def _once(self, case: Case, keep: bool) -> None:
        bare = run(self.bare, case.payload, self.bare_env, str(self.checkout))
        ran = run(case.argv, case.payload, case.env, str(self.checkout))
        if ran.code:
            raise WrongAnswer(f"{case.series.name} exited {ran.code}: {ran.output!r}")
        case.check(ran.output)
        if keep:
            case.series.bare.append(bare.seconds)
            case.series.samples.append(ran.seconds)
            case.series.bare_cpu.append(bare.cpu)
            case.series.cpu.append(ran.cpu)

    def _weigh(self, case: Case) -> None:
        bare, _ = peak_bytes(self.plugin.python, self.bare, b"", self.bare_env, str(self.checkout))
        peak, output = peak_bytes(self.plugin.python, case.argv, case.payload, case.env, str(self.checkout))
        case.check(output)
        case.series.peak = max(case.series.peak, peak)
        case.series.bare_peak = max(case.series.bare_peak, bare)


def measure_hooks(bench: Bench, options: argparse.Namespace) -> list[str]:
    """Measure and print checks and sessions' lives. Returns the missed limits."""
    checks = bench.checks()
    print(
        f"{os.path.basename(bench.plugin.python)}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, {options.runs} runs each"
    )
    series = bench.measure(checks, options.runs)
    print(figures.table(series), flush=True)
    for name, value in figures.flatness(series).items():
        print(f"{name}: largest median over smallest {value:.3f}")
    print()
    few = max(5, options.runs // 3)
    wrong = []
    for size in bench.sizes:
        try:
            life = bench.lifecycle(store_of(size), few, size)
        except WrongAnswer as error:
            wrong.append(f"{size:,} locks: {error}")
            continue
        print("Session start, turn, end against a bare interpreter")
        print(figures.table(life), end="\n\n", flush=True)
        series += life
    return figures.misses(series) + wrong
