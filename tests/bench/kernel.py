"""The cost of the kernel's protection of locked files during a command that cannot be analysed: ``--part kernel``.

The set-up is Claude Code's: a session begins and its shell gets the line to look for plans, the check of the installed
plugin leaves a plan, and bash runs the line and the command. The command is a program that does nothing, and that the
shell reader does not know.

*a command*: by turns bare, with the line and no plan, and held, beside 1 and `MANY` locked files. `more` is the median
of a run's time beyond the bare one right before it, `least` the difference of the two shortest, the figure with the
least noise; processor time includes the upkeep's, once that has ended. Limit: 25 ms more with one file.

*upkeep*: the process that stays with a command, at rest: its share of a processor, and its memory.

*the check*: before that command, without the kernel and leaving a plan for it.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple
from unittest import mock

from swarm_hook_core.kernel import namespace

from . import figures, stores
from .plugin import Plugin, WrongAnswer, check_context, payload
from .processes import peak_bytes, run

MANY = 1_000
RUNS = 40
MORE_SECONDS = 0.025
IDLE_SECONDS = 20.0
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
PROGRAM = "frobnicate"
SAID = b"The kernel keeps them read-only"


class Side(NamedTuple):
    """One home: its environment, the session in it, the line that its shells run before each command."""

    name: str
    session: str
    env: dict[str, str]
    line: str
    locked: str


class Took(NamedTuple):
    """The times of one way to run the command, each a list of `(bare, this)` in seconds."""

    wall: list[tuple[float, float]]
    cpu: list[tuple[float, float]]


class Kernel:
    """The measurements; missed limits are in `missed`."""

    def __init__(self, plugin: Plugin, root: Path, checkout: str, env: dict[str, str]):
        self.plugin, self.root, self.checkout = plugin, root, checkout
        tools = root / "tools"
        tools.mkdir(exist_ok=True)
        (tools / PROGRAM).write_text('#!/bin/sh\n[ -z "$1" ] || exec sleep "$1"\n')
        (tools / PROGRAM).chmod(0o755)
        self.env = {**env, "PATH": f"{tools}:{env['PATH']}", "CLAUDECODE": "1"}
        self.bash = shutil.which("bash") or "/bin/bash"
        self.missed: list[str] = []

    def measure(self) -> None:
        """Measure everything and print it."""
        with mock.patch.dict(os.environ, {"SWARM_STATE_DIR": str(self.root / "state")}):
            why = namespace.again() if sys.platform.startswith("linux") else "this is not Linux"
        if why:
            print(f"not measured: {why}")
            return
        print("as root" if os.geteuid() == 0 else "as an ordinary user")
        one, many = (self._side(size) for size in (1, MANY))
        self._commands(one, many)
        for side in (one, many):
            self._upkeep(side)
        print()
        self._checks(one, many)

    def _side(self, size: int) -> Side:
        """Have a session begin beside peers that hold so many files."""
        home = self.root / f"kernel-{size}"
        home.mkdir()
        store, state, given = str(home / "swarm.db"), str(home / "state"), str(home / "env-file")
        locked = f"{self.checkout}/src/locked.py" if size == 1 else f"{self.checkout}/pkg0/module_1.py"
        stores.fill(store, self.checkout, 0 if size == 1 else size, locked if size == 1 else "")
        for number in range(1, size + 1 if size > 1 else 1):
            file = Path(self.checkout, f"pkg{number // 1000}", f"module_{number}.py")
            file.parent.mkdir(exist_ok=True)
            file.write_text("a line\n")
        env = {**self.env, "SWARM_DB_PATH": store, "SWARM_STATE_DIR": state, "SWARM_KERNEL": "1"}
        session = f"kernel-{size}"
        began = {**env, "CLAUDE_ENV_FILE": given}
        sent = payload("SessionStart", session, self.checkout, source="startup")
        check_context(run(self.plugin.command("claude-code", "SessionStart"), sent, began, self.checkout).output)
        line = Path(given).read_text()
        return Side(f"{size:,} locked file{'s' if size > 1 else ''}", session, env, line, locked)

    # ---------------------------------------------------------------- a command

    def _commands(self, one: Side, many: Side) -> None:
        ways = {
            "with the line, nothing to hold": (one, False),
            f"held, {one.name}": (one, True),
            f"held, {many.name}": (many, True),
        }
        took = {name: Took([], []) for name in ways}
        libc = ctypes.CDLL(None)
        # the upkeep becomes a child of this process, so that its use is reported here
        libc.prctl(SUBREAPER, 1, 0, 0, 0)
        try:
            for number in range(-1, RUNS):  # the first round only warms the caches
                for name, (side, is_held) in ways.items():
                    if is_held:
                        self._ask(side, PROGRAM)
                    self._once(took[name], side, keep=number >= 0)
                    if is_held:
                        self._forget(side)
        finally:
            libc.prctl(SUBREAPER, 0, 0, 0, 0)
        width = max(map(len, took))
        bare = [first for each in took.values() for first, _ in each.wall]
        print(f"a command, bare: {1000 * median(bare):.1f} ms")
        print(f"{'':{width}}     wall    more   least     cpu    more   least")
        for name, each in took.items():
            figured = [1000 * figure for pairs in each for figure in _figured(pairs)]
            print(f"{name:{width}} {''.join(f'{figure:8.1f}' for figure in figured)}", flush=True)
        more = _figured(took[f"held, {one.name}"].wall)[1]
        if more > MORE_SECONDS:
            self.missed.append(f"a held command: {1000 * more:.1f} ms more, limit {1000 * MORE_SECONDS:.0f}")

    def _once(self, took: Took, side: Side, keep: bool) -> None:
        bare = run([self.bash, "-c", PROGRAM], b"", side.env, self.checkout)
        ran = run([self.bash, "-c", side.line + PROGRAM], b"", side.env, self.checkout)
        cpu = ran.cpu + sum(_orphans())
        if bare.code or ran.code or ran.output:
            raise WrongAnswer(f"{PROGRAM} exited {bare.code}, {ran.code}: {ran.output!r}")
        if keep:
            took.wall.append((bare.seconds, ran.seconds))
            took.cpu.append((bare.cpu, cpu))

    def _ask(self, side: Side, command: str) -> None:
        """Have the check leave a plan for `command`."""
        called = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "call-1"}
        sent = payload("PreToolUse", side.session, self.checkout, **called)
        answer = run(self.plugin.command("claude-code", "PreToolUse"), sent, side.env, self.checkout).output
        if SAID not in answer:
            raise WrongAnswer(f"a call that cannot be told was answered with {answer!r}")

    def _forget(self, side: Side) -> None:
        """Have the end of that call told."""
        called = {"tool_name": "Bash", "tool_input": {"command": PROGRAM}, "tool_use_id": "call-1"}
        sent = payload("PostToolUse", side.session, self.checkout, **called, tool_response={"stdout": ""})
        run(self.plugin.command("claude-code", "PostToolUse"), sent, side.env, self.checkout)

    # ------------------------------------------------------------------- upkeep

    def _upkeep(self, side: Side) -> None:
        command = f"{PROGRAM} {IDLE_SECONDS + 10:.0f}"
        self._ask(side, command)
        with subprocess.Popen([self.bash, "-c", side.line + command], env=side.env, cwd=self.checkout) as child:
            try:
                time.sleep(3.0)
                with open(f"/proc/{child.pid}/mountinfo") as file:
                    if f" {side.locked} " not in file.read():
                        raise WrongAnswer(f"{side.locked} is not held")
                pid = _upkeep_of(child.pid)
                began, spent = time.monotonic(), _spent(pid)
                time.sleep(IDLE_SECONDS)
                percent = 100 * (_spent(pid) - spent) / (time.monotonic() - began)
                resident, own = _memory(pid)
            finally:
                child.kill()
        print(
            f"upkeep beside {side.name}, idle: {percent:.2f} % of a processor, {resident:.1f} MB,"
            f" of which {own:.1f} MB are its own",
            flush=True,
        )
        self._forget(side)

    # ---------------------------------------------------------------- the check

    def _checks(self, *sides: Side) -> None:
        called = {"tool_name": "Bash", "tool_input": {"command": PROGRAM}, "tool_use_id": "call-1"}
        argv, bare = self.plugin.command("claude-code", "PreToolUse"), [self.plugin.python, "-I", "-S", "-c", "pass"]
        cases = []
        for side in sides:
            sent = payload("PreToolUse", side.session, self.checkout, **called)
            for is_on in (False, True):
                series = figures.Series(f"the check {'leaving a plan' if is_on else 'without'}, {side.name}")
                cases.append((series, sent, {**side.env, "SWARM_KERNEL": str(int(is_on))}, is_on))
        for number in range(-1, RUNS):
            for series, sent, env, is_on in cases:
                plain, ran = run(bare, sent, self.env, self.checkout), run(argv, sent, env, self.checkout)
                if (SAID in ran.output) != is_on:
                    raise WrongAnswer(f"{series.name}: {ran.output!r}")
                if number >= 0:
                    series.bare.append(plain.seconds)
                    series.samples.append(ran.seconds)
                    series.bare_cpu.append(plain.cpu)
                    series.cpu.append(ran.cpu)
        for series, sent, env, _ in cases:
            series.bare_peak = peak_bytes(self.plugin.python, bare, b"", self.env, self.checkout)[0]
            series.peak = peak_bytes(self.plugin.python, argv, sent, env, self.checkout)[0]
        print(figures.table([case[0] for case in cases]))


def _figured(pairs: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the median, the median difference to bare, and the difference of the least ones."""
    least = min(this for _, this in pairs) - min(bare for bare, _ in pairs)
    return median(this for _, this in pairs), median(this - bare for bare, this in pairs), least


def _orphans() -> Iterator[float]:
    """Wait for the leftovers of a command. Yields the processor time of each."""
    while True:
        try:
            _, _, usage = os.wait3(0)
        except ChildProcessError:  # no child is left
            return
        yield usage.ru_utime + usage.ru_stime


def _upkeep_of(pid: int) -> int:
    """The other process of ours in the namespace of process `pid`."""
    here = os.readlink(f"/proc/{pid}/ns/mnt")
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != pid:
            try:
                if (
                    os.readlink(f"/proc/{name}/ns/mnt") == here
                    and b"enter.py" in Path(f"/proc/{name}/cmdline").read_bytes()
                ):
                    return int(name)
            except OSError:  # the process has ended
                continue
    raise WrongAnswer("there is no upkeep")


def _spent(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> tuple[float, float]:
    """Return the resident and the private megabytes of a process."""
    found = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    kilobytes = {name: int(value.split()[0]) for name, value in found.items()}
    return kilobytes["Rss"] / 1024, (kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]) / 1024
