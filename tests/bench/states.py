"""The cost of a hook by the state of the checkout: ``--part states``.

A session is alone, or meets a registered peer, a peer's change of another file or of the same file, a peer's lock elsewhere or
on its own file. In each state it makes `CALLS` and begins, takes a turn and ends. Both sessions are in
mid-work: each has written a file of its own, and the measured one has met the peer's change before. All of it happens in a
real git repository, through the hooks that ``swarm-mcp install`` wrote, started as the client starts them.

Two figures for each call, in those of a bare ``python3 -I -S -c pass``, of all installations in one cell:

- instructions in user space (`counting`): shell, relay, Python and their children. No checker answers;
- the processor time of the whole command, the median of runs in turn (ABAB).

``--of NAME=FOLDER`` measures the installation in another environment in the same turns, before the own one; a further
``--of NAME`` names the own one.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import NamedTuple

from . import counting
from .installations import HOOKS, Installation
from .plugin import WrongAnswer, payload
from .processes import run

ME, PEER = "me", "peer"
FILE, OTHER, OWN, NEW = "src/free.py", "src/other.py", "src/own.py", "src/new.py"
SHELL_CALLS = {
    "git status": "git status",
    "grep | head": "grep -rn 'a line' src | head -20",
    "echo >": f"echo 'another line' > {FILE}",
    "sed -i": f"sed -i 's/a line/the line/' {FILE}",
}
EDIT = {"claude-code": "Edit", "codex": "apply_patch"}
# The check of a shell call is the same in both clients.
CALLS = {
    "claude-code": ("edit", "replace", "create", *SHELL_CALLS),
    "codex": ("edit", "create", "git status", "echo >"),
}
LIFE = {"start": "SessionStart", "turn": "UserPromptSubmit", "end": "SessionEnd"}
# Most instructions, in those of a bare interpreter: of a session alone, and of one beside a peer.
READS, WRITES, EDITS = (1.9, 1.9), (2.4, 2.4), (1.5, 1.7)
LIMITS = {
    **dict.fromkeys(("edit", "replace", "create"), EDITS), **dict.fromkeys(("git status", "grep | head"), READS),
    **dict.fromkeys(("echo >", "sed -i"), WRITES), **dict.fromkeys(LIFE, (2.5, 2.5)),
}  # fmt: skip
Prepare = Callable[["Ground"], None]


class Ground:
    """The home and checkout of one state, for one installation and one client."""

    def __init__(self, folder: Path, installation: Installation, runtime: str):
        self.installation, self.runtime = installation, runtime
        self.checkout, self.home = str(folder / "checkout"), str(folder / "home")
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.home, "TMPDIR": str(folder), "LANG": "C.UTF-8",
        }  # fmt: skip
        (folder / "checkout/src").mkdir(parents=True)
        (folder / "home").mkdir()
        for name in (FILE, OTHER, OWN):
            (folder / "checkout" / name).write_text("a line\n")
        git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "-C", self.checkout]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "begin"]):
            subprocess.run([*git, *words], check=True, env=self.env)
        self.begin(runtime, ME)
        self.write(runtime, ME, OWN, "my line")

    def begin(self, runtime: str, session_id: str) -> None:
        """Have a session begin."""
        self._hook(runtime, "SessionStart", self.event("SessionStart", session_id))

    def write(self, runtime: str, session_id: str, name: str, line: str) -> None:
        """Have a session add a line to a file by its client's own tool."""
        self._hook(runtime, "PreToolUse", self.edit(runtime, session_id, name, line))
        with open(f"{self.checkout}/{name}", "a") as file:
            file.write(f"{line}\n")

    def peer_begins(self) -> None:
        """Have the peer begin, a session of Codex."""
        self.begin("codex", PEER)

    def peer_writes(self, name: str) -> None:
        """Have the peer add a line to the file, and this session meet the change."""
        self.peer_begins()
        self.write("codex", PEER, name, "a peer's line")
        self.write(self.runtime, ME, OWN, "my further line")

    def peer_locks(self, name: str) -> None:
        """Have the peer lock the file by the coordinator's command."""
        self.peer_begins()
        env = {**self.env, "CODEX_THREAD_ID": PEER}
        words = [self.installation.script, "lock", name]
        subprocess.run(words, cwd=self.checkout, env=env, check=True, stdout=subprocess.DEVNULL)

    def event(self, event: str, session_id: str) -> bytes:
        """Return the payload of a session's start, turn or end."""
        return payload(event, session_id, self.checkout, source="startup", prompt="go on", reason="other")

    def edit(self, runtime: str, session_id: str, name: str, line: str) -> bytes:
        """Return the payload of an edit that adds `line` to a file."""
        path = f"{self.checkout}/{name}"
        given = {"file_path": path, "old_string": "a line", "new_string": f"a line\n{line}"}
        if runtime == "codex":
            given = {"command": f"*** Begin Patch\n*** Update File: {name}\n@@\n a line\n+{line}\n*** End Patch\n"}
        return self._tool(session_id, EDIT[runtime], given)

    def call(self, what: str) -> bytes:
        """Return the payload of one of `CALLS`."""
        if what in SHELL_CALLS:
            return self._tool(ME, "Bash", {"command": SHELL_CALLS[what]})
        if what == "edit":
            return self.edit(self.runtime, ME, FILE, "another line")
        name = {"create": NEW}.get(what, FILE)
        if self.runtime == "claude-code":
            return self._tool(ME, "Write", {"file_path": f"{self.checkout}/{name}", "content": "another line\n"})
        text = f"*** Begin Patch\n*** Add File: {name}\n+another line\n*** End Patch\n"
        return self._tool(ME, "apply_patch", {"command": text})

    def _tool(self, session_id: str, tool: str, given: dict[str, str]) -> bytes:
        more = {"tool_name": tool, "tool_input": given, "tool_use_id": "call-1"}
        return payload("PreToolUse", session_id, self.checkout, **more)

    def _hook(self, runtime: str, event: str, sent: bytes) -> None:
        env = {**self.env, **self.installation.variables(runtime)}
        ran = run(self.installation.command(runtime, event), sent, env, self.checkout)
        if ran.code or b'"deny"' in ran.output:
            raise WrongAnswer(f"{runtime}, {event}: status {ran.code}, {ran.output!r}")

    def keep(self) -> None:
        """Keep the home as it is, for `restore`."""
        shutil.copytree(self.home, self.home + ".kept")

    def restore(self) -> None:
        """Put the home back to where it was, the store in its own place: a hook tells of another file there."""
        kept = self.home + ".kept"
        for folder, folders, names in os.walk(self.home, topdown=False):
            at = os.path.join(kept, os.path.relpath(folder, self.home))
            for name in names:
                if not os.path.lexists(f"{at}/{name}"):
                    os.unlink(f"{folder}/{name}")
            for name in folders:
                if not os.path.lexists(f"{at}/{name}"):
                    shutil.rmtree(f"{folder}/{name}", ignore_errors=True)
        shutil.copytree(kept, self.home, dirs_exist_ok=True)


class State(NamedTuple):
    """A column of the table: its name, its preparation, and the calls that are denied in it."""

    name: str
    prepare: Prepare
    denied: tuple[str, ...] = ()


STATES = (
    State("alone", lambda ground: None),
    State("peer", Ground.peer_begins),
    State("wrote-other", lambda ground: ground.peer_writes(OTHER)),
    State("wrote-this", lambda ground: ground.peer_writes(FILE), ("replace", "echo >")),
    State("locks-other", lambda ground: ground.peer_locks(OTHER)),
    State("denied", lambda ground: ground.peer_locks(FILE), ("edit", "replace", "echo >", "sed -i")),
)
LIVED = ("alone", "wrote-other")  # a session's start, turn and end are measured in these states


class Case:
    """One command in one state, with its figures."""

    def __init__(self, ground: Ground, what: str, is_denied: bool):
        self.ground, self.what, self.is_denied = ground, what, is_denied
        installation = ground.installation
        event = LIFE.get(what, "PreToolUse")
        self.argv = installation.command(ground.runtime, event)
        self.env = {**ground.env, **installation.variables(ground.runtime)}
        if what in LIFE:
            self.sent = ground.event(event, {"start": "new"}.get(what, ME))
        else:
            self.sent = ground.call(what)
        self.instructions = 0
        self.cpu: list[float] = []

    def time(self, keep: bool) -> None:
        """Run the command from the state as it was prepared."""
        self.ground.restore()
        ran = run(self.argv, self.sent, self.env, self.ground.checkout)
        self._check(ran.code, ran.output)
        if keep:
            self.cpu.append(ran.cpu)

    def count(self) -> None:
        """Count the instructions."""
        ground, installation = self.ground, self.ground.installation
        words, variables = installation.counted(self.argv, installation.variables(ground.runtime))
        env = {**ground.env, **variables}
        ground.restore()  # the modules of a hook are together in one file from the second time on
        subprocess.run(words, input=self.sent, env=env, cwd=ground.checkout, stdout=subprocess.DEVNULL, check=True)
        ground.restore()
        counted = counting.count(words, self.sent, env, ground.checkout)
        self._check(0, counted.output)
        total = counted.instructions
        for end in installation.before_python(words):
            ground.restore()
            total += counting.count(end, self.sent, env, ground.checkout).instructions
        self.instructions = total

    def _check(self, code: int, output: bytes) -> None:
        """Raise WrongAnswer for a wrong denial, and for a missing one."""
        if code or (b'"deny"' in output) != self.is_denied:
            of = f"{self.ground.installation.name}, {self.ground.runtime}, {self.what}"
            raise WrongAnswer(f"{of}: status {code}, {output!r}")


def _count_in_turn(cases: list[Case]) -> None:
    """Count cases that share a ground."""
    for case in cases:
        case.count()


Cases = dict[tuple[str, str, str, str], Case]


def load() -> str:
    """Return the machine's load of the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def table(title: str, names: list[str], figures: dict[tuple[str, str, str, str], float]) -> str:
    """Return a line for each client and call, a column for each state; in a cell the figures of `names`, by slashes."""
    width = max(12, 5 * len(names))
    head = f"{title}, {'/'.join(names)}"
    lines = [f"{head:36}{''.join(f'{state.name:>{width}}' for state in STATES)}"]
    for runtime, what in dict.fromkeys(of[:2] for of in figures):
        cells = []
        for state in STATES:
            of_names = [(runtime, what, name, state.name) for name in names]
            cells.append("/".join(f"{figures[of]:.2f}" for of in of_names if of in figures) or "-")
        of = f"{'cpu of ' * (title != 'instructions')}{runtime} {what}"
        lines.append(f"{of:36}{''.join(cell.rjust(width) for cell in cells)}")
    return "\n".join(lines)


class States:
    """The measurements; missed limits are in `missed`."""

    def __init__(self, installed: list[Installation], root: Path):
        self.root, self.installed = root / "states", installed
        self.root.mkdir()
        self.missed: list[str] = []

    def measure(self, runs: int) -> None:
        """Measure everything and print it."""
        cases: Cases = {}
        for runtime in HOOKS:
            for state in STATES:
                grounds = [self._ground(state, installation, runtime) for installation in self.installed]
                for what in (*CALLS[runtime], *(LIFE if state.name in LIVED else ())):
                    for ground in grounds:
                        of = runtime, what, ground.installation.name, state.name
                        cases[of] = Case(ground, what, what in state.denied)
        bare, bare_cpu = [self.installed[0].python, "-I", "-S", "-c", "pass"], []
        for number in range(-1, runs):
            print(f"  round {number + 1} of {runs}", file=sys.stderr, flush=True)
            for (_, _, name, _), case in cases.items():
                case.time(keep=number >= 0)  # the first round only warms the caches
                if name == self.installed[0].name:
                    bare_cpu.append(run(bare, b"", case.ground.env, case.ground.checkout).cpu)
        bare_count = self._count(bare, list(cases.values()))
        self._show(cases, bare_count, median(bare_cpu))

    def _ground(self, state: State, installation: Installation, runtime: str) -> Ground:
        folder = self.root / f"{installation.name}-{runtime}-{state.name}"
        folder.mkdir()
        ground = Ground(folder, installation, runtime)
        state.prepare(ground)
        ground.keep()
        return ground

    def _count(self, bare: list[str], cases: list[Case]) -> int:
        """Count all instructions; return those of a bare interpreter, or 0 without a counter."""
        if not counting.can_count():
            print("instructions: not counted, valgrind is not installed")
            return 0
        of_grounds: dict[Ground, list[Case]] = {}
        for case in cases:
            of_grounds.setdefault(case.ground, []).append(case)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for number, _ in enumerate(pool.map(_count_in_turn, of_grounds.values())):
                print(f"  counted in {number + 1} of {len(of_grounds)} states", file=sys.stderr, flush=True)
        return counting.count(bare, b"", cases[0].ground.env, str(self.root)).instructions

    def _show(self, cases: Cases, bare_count: int, bare_cpu: float) -> None:
        """Print a line for each call, of the instructions and of the time: in each state one figure an installation."""
        counts = {of: case.instructions / bare_count for of, case in cases.items() if bare_count}
        times = {of: median(case.cpu) / bare_cpu for of, case in cases.items()}
        print(
            f"a bare interpreter: {bare_count / 1e6:.1f} million instructions, {1000 * bare_cpu:.1f} ms, load {load()}"
        )
        names = [installation.name for installation in self.installed]
        for title, figures in (("instructions", counts), ("processor time", times)):
            if figures:
                print(table(title, names, figures), flush=True)
        for of, counted in counts.items():
            self._judge(cases[of], counted, of[3])
        print()

    def _judge(self, case: Case, counted: float, state: str) -> None:
        installation = case.ground.installation
        limit = LIMITS[case.what][state not in ("alone", "peer")]
        if installation is self.installed[-1] and not case.is_denied and counted > limit:
            ratio = f"{counted:.2f} bare interpreters, limit {limit}"
            self.missed.append(f"{installation.name}, {state}, {case.ground.runtime}, {case.what}: {ratio}")
