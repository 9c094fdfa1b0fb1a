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

Limits: PreToolUse at most 2.2 times the bare interpreter (1.9 in ``one name``), its memory 1.6 times, and flat within
15 % over all store sizes; the other hooks (start, turn, end, subagents, the end of a call) at most 3 times. ``--check``
exits 1 for a missed limit; a wrong answer of a check always exits 1. Stores marked ``foreign`` were filled as another
implementation of the contract would (no session rows, no path keys); in ``one name`` all files share their last name.
Those marked ``three kinds`` hold files, folders and 200 patterns in the file's own folder, half of all leased. The
sizes count locks of living sessions in the scope of the measured one.

The parts are the other modules of this package, each with its goals; ``--part`` measures one of them.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from . import page
from .browser import Browser
from .checks import Bench, measure_hooks
from .clients import Clients
from .coordinator import Coordinator
from .harness import Harness
from .installations import Installation, installations
from .kernel import Kernel
from .locks import Locks
from .lost_updates import LEVELS, NO_PLUGIN, LostUpdates
from .many_files import ManyFilesBench
from .mix import Mix
from .mix_large import LARGE, Crowd
from .person_commands import PersonCommands
from .plugin import WrongAnswer
from .states import States
from .team_server import TeamServers

SIZES = (0, 1_000, 100_000, 1_000_000)


def main() -> int:
    """Measure, print, and with ``--check`` judge."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=60, help="samples of each case (default 60)")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="locks in the stores, by comma")
    parser.add_argument("--shell", default="/bin/sh", help="runs the hooks; Codex takes the user's $SHELL")
    parser.add_argument("--check", action="store_true", help="exit 1 when a limit is missed")
    parts = ("all", *page.TITLES)
    parser.add_argument(
        "--page", type=lambda path: Path(path).resolve(), help="write what was measured into this page's sections"
    )
    parser.add_argument(
        "--of", action="append", default=[], metavar="NAME[=ENVIRONMENT]",
        help="compare this installation in `--part states`, `mix`, `commands` and `clients`; without an environment the own one",
    )  # fmt: skip
    parser.add_argument("--part", choices=parts, default="all", help="what to measure")
    parser.add_argument("--crowds", default="2,4", help="numbers of agents in `--part auto`, by comma")
    parser.add_argument("--levels", default=",".join((NO_PLUGIN, *LEVELS)), help="their ways to work, by comma")
    options = parser.parse_args()
    sizes = sorted({int(size) for size in options.sizes.replace("_", "").split(",")})
    # The store may still be told of the last denial, in the background, while the folder is removed. Its name is not ours:
    # a check looks closer at such a path, which may be a protected one.
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        os.umask(0o077)
        try:
            return _measure(Bench(Path(folder).resolve(), sizes, options.shell), options)
        except WrongAnswer as error:
            print(f"WRONG ANSWER: {error}", file=sys.stderr)
            return 1
        finally:
            os.chdir("/")  # the folder is about to go


def _measure(bench: Bench, options: argparse.Namespace) -> int:
    crowds = [int(agents) for agents in options.crowds.split(",")]
    root, checkout, env = bench.root, str(bench.checkout), bench.bare_env
    of_plugin = (bench.plugin, root, checkout, env)

    @cache
    def installed() -> list[Installation]:
        return installations(options.of, Path(sys.prefix), root)

    measures: dict[str, Callable[[], list[str]]] = {
        "corpus": _measure_corpus,
        "hooks": lambda: measure_hooks(bench, options),
        "states": lambda: _missed(States(installed(), root), max(5, options.runs // 4)),
        "mix": lambda: _missed(Mix(installed(), root), max(1, options.runs // 12)),
        "mix-large": lambda: _missed(Mix(installed()[-1:], root, LARGE, "mix-large"), max(1, options.runs // 20)),
        "crowd": lambda: _missed(Crowd(installed(), root)),
        "commands": lambda: _missed(PersonCommands(installed(), root), max(5, options.runs // 4)),
        "many": lambda: _missed(ManyFilesBench(installed(), root)),
        "kernel": lambda: _missed(Kernel(*of_plugin)),
        "coordinator": lambda: _missed(Coordinator(*of_plugin), options.runs),
        "locks": lambda: _missed(Locks(root, checkout, env)),
        "page": lambda: _missed(Browser(*of_plugin)),
        "harness": lambda: _missed(Harness(*of_plugin), options.runs),
        "team": lambda: _missed(TeamServers(root)),
        "clients": lambda: _missed(Clients(installed()), options.runs),
        "auto": lambda: _missed(LostUpdates(crowds, options.levels.split(","))),
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


if __name__ == "__main__":
    sys.exit(main())
