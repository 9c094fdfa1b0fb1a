"""The cost of hooks and coordinator: `make bench`.

Neither `pytest-benchmark` nor `pyperf` takes its place. Both time one case after the other in one process or in
workers of their own; here the cases take turns, each beside a bare interpreter, and every answer is checked.

Every case runs the command of an installed plugin (``swarm-mcp bundle --local``, command from its ``hooks.json``,
through a shell as both clients do) and checks the answer of every single run. Right before each run a bare interpreter,
``python3 -I -S -c pass``, runs as well: on a busy machine both suffer alike, and the ratio of their medians stays
meaningful while milliseconds do not. All cases take turns, so that a slow minute falls on all of them.

How to read the table: ``median``, ``p95``, ``min`` and ``bare`` (median of the bare interpreter next to this case) are
milliseconds of wall clock from start to exit; ``ratio`` is of medians, and limits apply to it; ``of min`` is the ratio
of the two minima, with the least noise: if it is much below ``ratio``, the machine was busy and more ``--runs`` help;
``of cpu`` is the ratio of the medians of processor time, hook and shell and children together. ``memory`` is the
largest resident size of one process of the hook, in MB, and its ratio to the bare interpreter's.

Shell calls are compared with the plain check of the same store, in the same run: equal without a lock of another
session, at most 2.5 times that with one.

Limits: PreToolUse at most 2.2 times the bare interpreter (1.9 in ``one name``), its memory 1.6 times, and flat within
15 % over all store sizes; the other hooks (start, turn, end, subagents, the end of a call) at most 3 times. ``--check``
exits 1 for a missed limit; a wrong answer of a check always exits 1. Stores marked ``foreign`` were filled as another
implementation of the contract would (no session rows, no path keys); in ``one name`` all files share their last name.
Those marked ``three kinds`` hold files, folders and 200 patterns in the file's own folder, half of all leased. The
sizes count locks of living sessions in the scope of the measured one.

The parts are the other modules of this package, each with its goals: ``checks``, ``coordinator``, ``harness``,
``many_workers``, ``locks``, ``conflicts``, ``listings``, ``large_calls``, ``traces``, ``versions``, ``kernel``,
``clients``, ``burst``, ``browser``, ``full_screen``, ``team_server``, ``team_machine``. ``--part`` measures one of them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import page
from .answers import Answers
from .browser import Browser
from .burst import Burst
from .checks import Bench, measure_hooks, measure_shell
from .clients import Clients
from .conflicts import Conflicts
from .coordinator import Coordinator
from .full_screen import FullScreens
from .harness import Harness
from .kernel import Kernel
from .large_calls import LargeCalls
from .listings import Listings
from .locks import Locks
from .lost_updates import LostUpdates
from .many_workers import ManyWorkers
from .plugin import WrongAnswer
from .team_server import TeamServers
from .traces import Traces
from .versions import Versions

SIZES = (0, 1_000, 100_000, 1_000_000)


def main() -> int:
    """Measure, print, and with ``--check`` judge."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=60, help="samples of each case (default 60)")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="locks in the stores, by comma")
    parser.add_argument("--shell", default="/bin/sh", help="runs the hooks; Codex takes the user's $SHELL")
    parser.add_argument("--check", action="store_true", help="exit 1 when a limit is missed")
    parser.add_argument("--imports", action="store_true", help="only show what one check of a hook imports")
    parts = ("all", *page.TITLES)
    parser.add_argument(
        "--page", type=lambda path: Path(path).resolve(), help="write what was measured into this page's sections"
    )
    parser.add_argument("--part", choices=parts, default="all", help="what to measure")
    options = parser.parse_args()
    sizes = sorted({int(size) for size in options.sizes.replace("_", "").split(",")})
    # The store may still be told of the last denial, in the background, while the folder is removed.
    with tempfile.TemporaryDirectory(prefix="swarm-bench-", ignore_cleanup_errors=True) as folder:
        os.umask(0o077)
        try:
            return _measure(Bench(Path(folder).resolve(), [0] if options.imports else sizes, options.shell), options)
        except WrongAnswer as error:
            print(f"WRONG ANSWER: {error}", file=sys.stderr)
            return 1
        finally:
            os.chdir("/")  # the folder is about to go


def _measure(bench: Bench, options: argparse.Namespace) -> int:
    if options.imports:
        measure_hooks(bench, options)
        return 0
    root, checkout, env = bench.root, str(bench.checkout), bench.bare_env
    of_plugin = (bench.plugin, root, checkout, env)

    def listings() -> list[str]:
        commands = Listings(*of_plugin)
        return [*_missed(commands), *_missed(Answers(root, checkout, commands.run))]

    measures: dict[str, Callable[[], list[str]]] = {
        "corpus": _measure_corpus,
<<<<<<< HEAD
        "hooks": lambda: _measure_hooks(bench, options),
        "shell": lambda: _measure_shell(bench, options),
        "traces": lambda: _measure_traces(bench),
        "versions": lambda: _measure_versions(bench),
        "large": lambda: _measure_large(bench),
        "kernel": lambda: _measure_kernel(bench),
        "coordinator": lambda: _measure_coordinator(bench, options),
        "locks": lambda: _measure_locks(bench),
        "conflicts": lambda: _measure_conflicts(bench),
        "listings": lambda: _measure_listings(bench),
        "burst": lambda: _measure_burst(bench),
        "page": lambda: _measure_page(bench),
        "top": lambda: _measure_top(bench),
        "harness": lambda: _measure_harness(bench, options),
        "many": lambda: _measure_many(bench, options),
        "team": lambda: _measure_team(bench),
        "clients": _measure_clients,
        "auto": _measure_auto,
        "setup": lambda: _measure_setup(bench),
=======
        "hooks": lambda: measure_hooks(bench, options),
        "shell": lambda: measure_shell(bench, options),
        "traces": lambda: _missed(Traces(*of_plugin)),
        "large": lambda: _missed(LargeCalls(bench.plugin, root, env)),
        "kernel": lambda: _missed(Kernel(*of_plugin)),
        "coordinator": lambda: _missed(Coordinator(*of_plugin), options.runs),
        "locks": lambda: _missed(Locks(root, checkout, env)),
        "conflicts": lambda: _missed(Conflicts(root, checkout, env)),
        "listings": listings,
        "burst": lambda: _missed(Burst(root, env)),
        "page": lambda: _missed(Browser(*of_plugin)),
        "top": lambda: _missed(FullScreens(*of_plugin)),
        "harness": lambda: _missed(Harness(*of_plugin), options.runs),
        "many": lambda: _missed(ManyWorkers(*of_plugin), max(2, options.runs // 20)),
        "team": lambda: _missed(TeamServers(root)),
        "clients": lambda: _missed(Clients()),
        "auto": lambda: _missed(LostUpdates()),
>>>>>>> bd74e9306ad136c761ffd95218d1def1df267504
    }
    missed: list[str] = []
    for part, measure in measures.items():
        if options.part in ("all", part):
            with page.Tee() as shown:
                missed += measure()
            if options.page:
                page.put(options.page, part, shown.text)
    print("\n".join(f"OVER THE LIMIT: {miss}" for miss in missed) or "all limits hold")
    return 1 if missed and options.check else 0


def _missed(part: Any, *rounds: int) -> list[str]:
    """Measure a part of the bench, printing as it goes. Returns its missed goals."""
    part.measure(*rounds)
    return list(part.missed)


def _measure_corpus() -> list[str]:
    print(page.corpus())
    return []


<<<<<<< HEAD
def _measure_coordinator(bench: Bench, options: argparse.Namespace) -> list[str]:
    coordinator = Coordinator(bench.plugin, bench.root, str(bench.checkout), bench.bare_env)
    coordinator.measure(options.runs)
    return coordinator.missed


def _measure_traces(bench: Bench) -> list[str]:
    traces = Traces(bench.plugin, bench.root, str(bench.checkout), bench.bare_env)
    traces.measure()
    return traces.missed


def _measure_versions(bench: Bench) -> list[str]:
    versions = Versions(bench.root, str(bench.checkout), bench.bare_env)
    versions.measure()
    return versions.missed


def _measure_large(bench: Bench) -> list[str]:
    calls = LargeCalls(bench.plugin, bench.root, bench.bare_env)
    calls.measure()
    return calls.missed


def _measure_kernel(bench: Bench) -> list[str]:
    kernel = Kernel(bench.plugin, bench.root, str(bench.checkout), bench.bare_env)
    kernel.measure()
    return kernel.missed


def _measure_burst(bench: Bench) -> list[str]:
    burst = Burst(bench.root, bench.bare_env)
    burst.measure()
    return burst.missed


def _measure_page(bench: Bench) -> list[str]:
    browser = Browser(bench.plugin, bench.root, str(bench.checkout), bench.bare_env)
    browser.measure()
    return browser.missed


def _measure_top(bench: Bench) -> list[str]:
    screens = FullScreens(bench.plugin, bench.root, str(bench.checkout), bench.bare_env)
    screens.measure()
    return screens.missed


def _measure_team(bench: Bench) -> list[str]:
    servers = TeamServers(bench.root)
    servers.measure()
    return servers.missed


def _measure_locks(bench: Bench) -> list[str]:
    locks = Locks(bench.root, str(bench.checkout), bench.bare_env)
    locks.measure()
    return locks.missed


def _measure_conflicts(bench: Bench) -> list[str]:
    conflicts = Conflicts(bench.root, str(bench.checkout), bench.bare_env)
    conflicts.measure()
    return conflicts.missed


def _measure_listings(bench: Bench) -> list[str]:
    listings = Listings(bench.plugin, bench.root, str(bench.checkout), bench.bare_env)
    listings.measure()
    answers = Answers(bench.root, str(bench.checkout), listings.run)
    answers.measure()
    return listings.missed + answers.missed


def _measure_harness(bench: Bench, options: argparse.Namespace) -> list[str]:
    harness = Harness(bench.plugin, bench.root, str(bench.checkout), bench.bare_env)
    harness.measure(options.runs)
    return harness.missed


def _measure_many(bench: Bench, options: argparse.Namespace) -> list[str]:
    many = ManyWorkers(bench.plugin, bench.root, str(bench.checkout), bench.bare_env)
    many.measure(max(2, options.runs // 20))
    return many.missed


def _measure_clients() -> list[str]:
    clients = Clients()
    clients.measure()
    return clients.missed


def _measure_auto() -> list[str]:
    updates = LostUpdates()
    updates.measure()
    return updates.missed


def _measure_setup(bench: Bench) -> list[str]:
    setup = Setup(bench.plugin, bench.root, str(bench.checkout), bench.bare_env)
    setup.measure()
    return setup.missed


def _measure_hooks(bench: Bench, options: argparse.Namespace) -> list[str]:
    checks = bench.checks()
    if options.imports:
        for case in checks[2:]:  # the denials: they import the most
            runtime = case.series.name.split()[1]
            print(imports.profile(bench.plugin, runtime, case.payload, case.env, str(bench.checkout)), end="\n\n")
        return []
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
    print(figures.table(bench.commands(store_of(bench.sizes[0]), few, bench.sizes[0])), end="\n\n")
    return figures.misses(series) + wrong


def _measure_shell(bench: Bench, options: argparse.Namespace) -> list[str]:
    missed = []
    for size in bench.sizes:
        groups = bench.shell(size)
        print(figures.table(bench.measure([case for _, cases in groups for case in cases], options.runs)), flush=True)
        limit = SHELL_BESIDE_LOCKS if size else SHELL_ALONE
        for plain, cases in groups:
            for case in cases[1:]:
                ratio = figures.median(case.series.samples) / figures.median(plain.samples)
                print(f"{case.series.name}: {ratio:.2f} times the plain check")
                if ratio > limit:
                    missed.append(f"{case.series.name}: {ratio:.2f} times the plain check, limit {limit}")
        print()
    return missed


=======
>>>>>>> bd74e9306ad136c761ffd95218d1def1df267504
if __name__ == "__main__":
    sys.exit(main())
