"""The cost of questions about many changed files: ``--part many``.

Four sessions have changed 250, 1,000 and 2,000 files of a checkout through the check, each tenth file two of them. Then
commands of the coordinator, started as pip's own script, and checks of git commands, started as Claude Code starts its
hooks. Figures are processor time in milliseconds, of the command and its children, the median of runs in turn; of all
installations (``--of``) in one cell. Each row stands beside ``git diff`` in the same rounds.

Limits at the largest size: ten times ``git diff`` and a second for a command, `REFUSAL` seconds for a refusal.
"""

import os
from pathlib import Path
from statistics import median
from unittest import mock

from support.many_files import ManyFiles

from .installations import Installation
from .plugin import WrongAnswer, payload
from .processes import run
from .states import load

SIZES = (250, 1_000, 2_000)
ROUNDS = 3
TIMES, MORE, REFUSAL = 10, 1.0, 0.5
COMMANDS = {
    "diff": ("diff",),
    "diff --mine": ("diff", "--mine", "--as", "ME"),
    "commit --dry-run": ("commit", "-m", "all of mine", "--dry-run", "--as", "ME"),
    "undo --dry-run": ("undo", "--session", "CLIENT", "--dry-run"),
    "status": ("status",),
    "why FILE": ("why", "src/part0/file1.py"),
    "blame FILE": ("blame", "src/part0/file1.py"),
    "log": ("log",),
    "restore --list": ("restore", "--list"),
}
REFUSED = ("git checkout .", "git stash", "git add -A")
GIT = "/usr/bin/git"


class Ground:
    """A checkout with so many changed files, and a home of its own."""

    def __init__(self, folder: Path, count: int):
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
        self.env |= {"SWARM_DB_PATH": str(folder / "swarm.db"), "SWARM_STATE_DIR": str(folder / "state")}
        folder.mkdir(parents=True)
        with mock.patch.dict(os.environ, self.env):
            many = ManyFiles(folder / "work", count)
        self.checkout, self.me = str(many.world.repo), many.sessions[1]  # a session of Claude Code

    def cost(self, installation: Installation | None, what: str) -> float:
        """Return the processor time of one run; without an installation of ``git diff``."""
        if installation is None:
            return run([GIT, "diff"], b"", self.env, self.checkout).cpu
        if what in REFUSED:
            sent = payload(
                "PreToolUse", self.me.session_id, self.checkout, tool_name="Bash", tool_input={"command": what}
            )
            env = {**self.env, **installation.variables("claude-code")}
            ran = run(installation.command("claude-code", "PreToolUse"), sent, env, self.checkout)
            if ran.code or (what != "git add -A" and b'"deny"' not in ran.output):  # that is refused once
                raise WrongAnswer(f"{what} beside others' changes: {ran.output!r}")
            return ran.cpu
        named = {"ME": self.me.id, "CLIENT": self.me.session_id}
        words = [installation.script, *(named.get(word, word) for word in COMMANDS[what])]
        ran = run(words, b"", self.env, self.checkout, is_quiet=True)
        if ran.code:
            raise WrongAnswer(f"{' '.join(words)}: status {ran.code}, {ran.output!r}")
        return ran.cpu


class ManyFilesBench:
    """The measurements; missed limits are in `missed`."""

    def __init__(self, installed: list[Installation], root: Path):
        self.root, self.installed = root / "many", installed
        self.missed: list[str] = []

    def measure(self) -> None:
        """Measure everything and print it."""
        rows: dict[str, list[str]] = {"git diff": []}
        for size in SIZES:
            ground = Ground(self.root / str(size), size)
            asked: list[float] = []
            found: dict[tuple[str, str], list[float]] = {}
            for _number in range(ROUNDS):
                asked.append(ground.cost(None, ""))
                for what in (*COMMANDS, *REFUSED):
                    for one in self.installed:
                        found.setdefault((what, one.name), []).append(ground.cost(one, what))
            rows["git diff"].append(f"{1000 * median(asked):.0f}")
            for what in (*COMMANDS, *REFUSED):
                cells = [median(found[what, one.name]) for one in self.installed]
                rows.setdefault(what, []).append("/".join(f"{1000 * cell:.0f}" for cell in cells))
                limit = REFUSAL if what in REFUSED else TIMES * median(asked) + MORE
                if size == SIZES[-1] and cells[-1] > limit:
                    self.missed.append(f"{what} of {size:,} files: {cells[-1]:.2f} s, limit {limit:.2f} s")
        names = "/".join(one.name for one in self.installed)
        print(f"load {load()}")
        print(f"{f'processor time in ms, {names}':40}{''.join(f'{size:,} files'.rjust(20) for size in SIZES)}")
        for what, cells in rows.items():
            print(f"{what:40}{''.join(cell.rjust(20) for cell in cells)}", flush=True)
        print()
