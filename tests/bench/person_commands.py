"""The cost of a person's commands: ``--part commands``.

Each command is started as pip's own script, by a session beside a peer that holds a lock, and where there is no store yet:
by a person, in a new home. Figures as in `states`: instructions of the script and its children, and processor time, in
those of a bare ``python3 -I -S -c pass``; runs of all installations (``--of``) in turn.
"""

import os
import shutil
import subprocess
from pathlib import Path
from statistics import median

from . import counting
from .installations import Installation
from .plugin import WrongAnswer
from .processes import run
from .states import FILE, ME, OTHER, Ground, load

COMMANDS = (("lock", FILE), ("unlock", FILE), ("locks",), ("status",), ("--version",))
LIMITS = {"lock": 2.5, "unlock": 2.5, "locks": 2.5, "status": 3.0, "--version": 1.8}
PLACES = ("store", "no store")


class Case:
    """One command of one installation, with or without a store."""

    def __init__(self, ground: Ground, words: tuple[str, ...], has_store: bool):
        self.ground, self.has_store = ground, has_store
        self.name = words[0]
        self.argv = [ground.installation.script, *words]
        self.env = dict(ground.env)
        if has_store:
            self.env["CLAUDE_CODE_SESSION_ID"] = ME
        self.instructions = 0
        self.cpu: list[float] = []
        # A person without a session is told so.
        self.codes = [0]
        if not has_store and self.name in ("lock", "unlock"):
            self.codes.append(1)

    def prepare(self) -> None:
        """Put the home to where the command meets it: an unlock needs a lock."""
        if not self.has_store:
            while os.path.exists(self.ground.home):
                shutil.rmtree(self.ground.home, ignore_errors=True)
            os.mkdir(self.ground.home)
            return
        self.ground.restore()
        if self.name == "unlock":
            words = [self.argv[0], "lock", FILE]
            subprocess.run(words, env=self.env, cwd=self.ground.checkout, check=True, stdout=subprocess.DEVNULL)

    def time(self, keep: bool) -> None:
        """Run the command once."""
        self.prepare()
        ran = run(self.argv, b"", self.env, self.ground.checkout, is_quiet=True)
        if ran.code not in self.codes:
            raise WrongAnswer(f"{' '.join(self.argv)}: status {ran.code}, {ran.output!r}")
        if keep:
            self.cpu.append(ran.cpu)

    def count(self) -> None:
        """Count the instructions."""
        self.prepare()
        self.instructions = counting.count(self.argv, b"", self.env, self.ground.checkout).instructions


class PersonCommands:
    """The measurements; missed limits are in `missed`."""

    def __init__(self, installed: list[Installation], root: Path):
        self.root, self.installed = root / "commands", installed
        self.root.mkdir()
        self.missed: list[str] = []

    def measure(self, runs: int) -> None:
        """Measure everything and print it."""
        cases: dict[tuple[str, str, str], Case] = {}
        for installation in self.installed:
            folder = self.root / installation.name
            folder.mkdir()
            ground = Ground(folder, installation, "claude-code")
            ground.peer_locks(OTHER)
            ground.keep()
            for words in COMMANDS:
                for place in PLACES:
                    cases[words[0], place, installation.name] = Case(ground, words, place == "store")
        first, env = self.installed[0], next(iter(cases.values())).env
        bare, bare_cpu = [first.python, "-I", "-S", "-c", "pass"], []
        for number in range(-1, runs):
            for command, place in dict.fromkeys(key[:2] for key in cases):
                bare_cpu.append(run(bare, b"", env, str(self.root)).cpu)
                for installation in self.installed:
                    cases[command, place, installation.name].time(keep=number >= 0)
        bare_count = 0
        if counting.can_count():
            bare_count = counting.count(bare, b"", env, str(self.root)).instructions
            for case in cases.values():
                case.count()
        else:
            print("instructions: not counted, valgrind is not installed")
        self._show(cases, bare_count, median(bare_cpu))

    def _show(self, cases: dict[tuple[str, str, str], Case], bare_count: int, bare_cpu: float) -> None:
        names = [installation.name for installation in self.installed]
        print(f"load {load()}")
        for title in ("instructions", "processor time"):
            head = f"{title}, {'/'.join(names)}"
            print(f"{head:40}{''.join(place.rjust(24) for place in PLACES)}")
            for command, *_ in COMMANDS:
                cells = []
                for place in PLACES:
                    of_names = [cases[command, place, name] for name in names]
                    if title == "instructions":
                        figures = [case.instructions / (bare_count or 1) for case in of_names]
                    else:
                        figures = [median(case.cpu) / bare_cpu for case in of_names]
                    cells.append("/".join(f"{figure:.2f}" for figure in figures))
                of = f"{'cpu of ' * (title != 'instructions')}{command}"
                print(f"{of:40}{''.join(cell.rjust(24) for cell in cells)}", flush=True)
        for command, limit in LIMITS.items():
            counted = cases[command, "store", names[-1]].instructions / (bare_count or 1)
            if counted > limit:
                self.missed.append(f"{command}: {counted:.2f} bare interpreters, limit {limit}")
        print()
