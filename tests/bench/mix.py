"""The cost of hooks over a mix of realistic calls: ``--part mix``. The calls and their weights are in ``mix_calls``.

This process is the client. It starts ``swarm-mcp serve``, and the server's checker answers for it; it starts the hooks of the
installed plugin by the commands of ``hooks.json``, through the client's shell. Each call has a hook before it and, where the
plugin wants one, a hook behind it; the files that it writes are written in between. It is made in three ways: by the relay
in C and by the relay in Python (an installation where no relay could be compiled) in turn, and then, in a round of its own,
alone, without a server. Each hook runs right behind a bare ``python3 -I -S -c pass``. A figure is the median of a hook's
ratios to the starts beside it; a call has the sum of its two hooks, and the mix the mean by weight.

All processor time counts: of the hook and the processes below it, and of the checker, by its own record. An errand of the
checker counts with the first call behind the errand's end. A way may not deny a call that the first way allowed. An
installation without checkers (``--of``, a release before) has one way, its hooks as installed.

`STATES` are the other things that go on in the checkout. Peers are processes of their own, so that one can be away.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from swarm_hook_core.process import start_time

from .installations import HOOKS, Installation
from .mix_calls import FILES, LINES, Call, calls
from .plugin import WrongAnswer, payload
from .processes import Ran, run

ME, PEER = "me", "peer"
THEIRS, LOCKED, PATTERN = "src/theme.ts", "src/locked.py", "generated/**/*.json"
C, PYTHON, ALONE, INSTALLED = "C", "Python", "alone", "as installed"
GOALS = {C: 0.8, PYTHON: 1.8, ALONE: 6.0}  # bare interpreters
FEWEST_ANSWERED = 0.95  # of all calls, by a checker
LARGEST_MB = 25.0  # of a checker, not shared with other processes
BEGIN_SECONDS, ANSWER_SECONDS = 60.0, 10.0
DEAREST = 8  # calls that are shown
SHORT = 34  # letters of a call that is shown

# Runs commands, as a client runs its hooks: the argv, the environment, the folder, and the standard input.
_CLIENT = """
import json, subprocess, sys
for line in sys.stdin:
    argv, env, folder, given = json.loads(line)
    ran = subprocess.run(argv, env=env, cwd=folder, input=given.encode(), stdout=subprocess.PIPE)
    print(json.dumps([ran.returncode, ran.stdout.decode()]), flush=True)
"""


class Client:
    """A process that starts hooks, as another agent's client."""

    def __init__(self) -> None:
        words = [sys.executable, "-c", _CLIENT]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, argv: list[str], env: dict[str, str], folder: str, given: str = "") -> str:
        """Run a command and return its output."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps([argv, env, folder, given]) + "\n")
        self._process.stdin.flush()
        code, output = json.loads(self._process.stdout.readline())
        if code or '"deny"' in output:
            raise WrongAnswer(f"{' '.join(argv)}: status {code}, {output}")
        return str(output)

    def close(self) -> None:
        """End it, as a client that is killed."""
        self._process.kill()
        self._process.communicate()


class Ground:
    """The home and checkout of one state, for one installation and one client; a server runs once the session began."""

    def __init__(self, folder: Path, installation: Installation, runtime: str):
        self.installation, self.runtime = installation, runtime
        self.checkout, self.home = str(folder / "checkout"), str(folder / "home")
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.home, "TMPDIR": str(folder), "LANG": "C.UTF-8",
        }  # fmt: skip
        self.state = Path(self.home, ".local/state/swarm-mcp")
        os.makedirs(self.home)
        for name in (*FILES, THEIRS, LOCKED):
            path = Path(self.checkout, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(LINES)
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "begin")
        self.has_checker = has_checker(installation)
        self._hooks = json.loads((installation.plugin / HOOKS[runtime]).read_text())["hooks"]
        self._closed: list[Callable[[], object]] = []

    def git(self, *words: str) -> None:
        """Run git in the checkout."""
        begin = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "-C", self.checkout]
        subprocess.run([*begin, *words], check=True, env=self.env)

    def wants(self, event: str, tool: str) -> bool:
        """Return True if the plugin has a hook for this tool at `event`."""
        return any(re.search(group.get("matcher", ""), tool) for group in self._hooks.get(event, ()))

    def hook(self, event: str, sent: bytes, of: Installation | None = None) -> Ran:
        """Run one of this session's hooks, as an installation has it."""
        of = of or self.installation
        env = {**self.env, **of.variables(self.runtime)}
        ran = run(of.command(self.runtime, event), sent, env, self.checkout)
        if ran.code:
            raise WrongAnswer(f"{self.runtime}, {event}: status {ran.code}, {ran.output!r}")
        return ran

    def begin(self) -> None:
        """Have the session begin, with its server, and wait until a checker answers."""
        words = [self.installation.script, "serve"]
        server = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=self.env, cwd=self.checkout
        )
        self.at_end(server.communicate)
        start = payload("SessionStart", ME, self.checkout, source="startup")
        self.name = f"{os.getpid()}-{start_time(os.getpid())}"
        if self.has_checker:
            _wait(lambda: os.path.exists(self.state / "checkers" / self.name), "the server has no checker")
        self.hook("SessionStart", start)
        self.turn()
        if self.has_checker:
            _wait(lambda: self.record()[0] > 0 or not self.turn(), "no checker has answered")

    def turn(self) -> None:
        """Have the user ask for something."""
        self.hook("UserPromptSubmit", payload("UserPromptSubmit", ME, self.checkout, prompt="go on"))

    def record(self) -> tuple[int, int]:
        """Return the number of the checker's answers, and its processor time in nanoseconds."""
        try:
            words = (self.state / "checkers" / f"{self.name}.answered").read_text().split()
            return int(words[0]), int(words[2])
        except (OSError, IndexError):  # no checker has answered yet
            return 0, 0

    def reasons(self) -> list[str]:
        """Return why hooks have run alone so far."""
        try:
            return [line.partition(" ")[2] for line in (self.state / "checkers" / "alone").read_text().splitlines()]
        except FileNotFoundError:  # a release without checkers
            return []

    def is_spared(self, event: str) -> bool:
        """Return True if the hook's script itself finds that this end of a call needs no check."""
        names = ("watched", "unheard", "awaited")
        return event == "PostToolUse" and not any((self.state / name).is_dir() for name in names)

    def checker_mb(self) -> float:
        """Return the memory of the checker that it does not share, in MB."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if path.read_bytes().endswith(f"checker\0{self.name}\0".encode()) and self._is_here(path.parent):
                    lines = (path.parent / "smaps_rollup").read_text().splitlines()
                    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024
            except OSError:
                continue  # it has ended
        return 0.0

    def _is_here(self, process: Path) -> bool:
        return f"HOME={self.home}".encode() in (process / "environ").read_bytes().split(b"\0")

    def at_end(self, close: Callable[[], object]) -> None:
        """Have `close` called when the state is over."""
        self._closed.append(close)

    def peer(self) -> Client:
        """Have a peer begin, a session of Codex."""
        client = Client()
        self.at_end(client.close)
        self.of_peer(client, "SessionStart", PEER, source="startup")
        return client

    def of_peer(self, client: Client, event: str, session_id: str, **fields: object) -> None:
        """Run a hook of a peer's session."""
        env = {**self.env, **self.installation.variables("codex")}
        sent = payload(event, session_id, self.checkout, **fields).decode()
        client.run(self.installation.command("codex", event), env, self.checkout, sent)

    def peer_locks(self, *words: str) -> None:
        """Have a peer lock something."""
        self.lock(self.peer(), PEER, *words)

    def lock(self, client: Client, session_id: str, *words: str) -> None:
        """Have a peer's session lock something by our command."""
        env = {**self.env, "CODEX_THREAD_ID": session_id}
        client.run([self.installation.script, "lock", *words], env, self.checkout)

    def peer_works(self) -> Client:
        """Have a peer read a file, and change it without committing."""
        client = self.peer()
        self.change(client, PEER, THEIRS)
        return client

    def change(self, client: Client, session_id: str, name: str) -> None:
        """Have a session of Codex read a file, and change its first line."""
        patch = f"*** Begin Patch\n*** Update File: {name}\n@@\n-{LINES.splitlines()[0]}\n+theirs\n*** End Patch\n"
        read = {"tool_name": "Bash", "tool_input": {"command": f"cat {name}"}, "tool_use_id": "peer-1"}
        write = {"tool_name": "apply_patch", "tool_input": {"command": patch}, "tool_use_id": "peer-2"}
        self.of_peer(client, "PreToolUse", session_id, **read)
        self.of_peer(client, "PostToolUse", session_id, **read, tool_response=LINES)
        self.of_peer(client, "PreToolUse", session_id, **write)
        Path(self.checkout, name).write_text("theirs\n" + LINES.partition("\n")[2])

    def terminal_locks(self) -> None:
        """Have a person lock a file in a terminal. No session of this process has begun yet."""
        ours, terminal = os.openpty()
        words = [self.installation.script, "lock", LOCKED]
        code = subprocess.run(
            words,
            cwd=self.checkout,
            env=self.env,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        ).returncode
        told = os.read(ours, 4096).decode()
        os.close(terminal)
        os.close(ours)
        if code:
            raise WrongAnswer(f"a lock in a terminal: status {code}, {told}")

    def holds(self) -> None:
        """Have a command run that holds a file."""
        words = [self.installation.script, "hold", LOCKED, "--", "sh", "-c", "echo begun; exec sleep 86400"]
        held = subprocess.Popen(words, cwd=self.checkout, env=self.env, stdout=subprocess.PIPE)
        self.at_end(held.communicate)
        self.at_end(held.terminate)
        assert held.stdout
        if not held.stdout.readline():
            raise WrongAnswer("hold did not start its command")

    def close(self) -> None:
        """End all processes."""
        while self._closed:
            self._closed.pop()()


def _wait(is_so: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + BEGIN_SECONDS
    while not is_so():
        if time.monotonic() > end:
            raise WrongAnswer(otherwise)
        time.sleep(0.01)


class State(NamedTuple):
    """A thing that goes on in the checkout, prepared before the session begins."""

    name: str
    prepare: Callable[[Ground], object]


STATES = (
    State("alone", lambda ground: None),
    State("a peer's lock", lambda ground: ground.peer_locks(LOCKED)),
    State("a peer at work", Ground.peer_works),
    State("a peer gone", lambda ground: ground.peer_works().close()),
    State("a terminal's lock", Ground.terminal_locks),
    State("a peer's pattern", lambda ground: ground.peer_locks(PATTERN, "--pattern")),
    State("a hold", Ground.holds),
)


class Way(NamedTuple):
    """A way for a hook to be answered: whose hooks, and the file in the state folder that they do without."""

    name: str
    installation: Installation
    without: str = ""


def has_checker(installation: Installation) -> bool:
    """Return True unless this release has no checkers yet."""
    environment = Path(installation.script).parent.parent
    return any(environment.glob("lib/python*/site-packages/swarm_mcp/checker"))


def without_relay(installation: Installation, root: Path) -> Installation:
    """Return the same installation, as it is where the relay could not be compiled."""
    script = root / f"without-relay-{installation.name}/bin/swarm-mcp"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!{Path(installation.script).parent}/python\n{_NOT_COMPILED}")
    script.chmod(0o755)
    return Installation(f"{installation.name}-Python", script.parent.parent, root)


_NOT_COMPILED = """
import sys
from swarm_mcp import installation
installation.RELAY = "/nonexistent/swarm_relay"
from swarm_mcp.cli.main import main
sys.exit(main())
"""


class Measured:
    """The figures of one client in one state, for one installation."""

    def __init__(self, ground: Ground, in_python: Installation):
        self.ground = ground
        self.calls = calls(ground.runtime)
        own = ground.installation
        self.ways = [Way(INSTALLED, own)]
        if ground.has_checker:
            self.ways = [
                Way(C, own), Way(PYTHON, in_python, "relay"), Way(ALONE, own, f"checkers/{ground.name}"),
            ]  # fmt: skip
        # By the way and the call's number: the ratios of the hook before it, and of that behind it.
        self.before: dict[tuple[str, int], list[float]] = {}
        self.behind: dict[tuple[str, int], list[float]] = {}
        self.hooks: Counter[str] = Counter()  # that a checker could answer, by the way
        self.alone: dict[str, Counter[str]] = {way.name: Counter() for way in self.ways}  # the reasons
        self.bare: list[float] = []
        self.mb = 0.0
        self._number = 0

    def warm_up(self) -> None:
        """Make each call once, for nothing: a checker remembers, and the files are in memory."""
        for number, call in enumerate(self.calls):
            self._call(self.ways[0], number, call, keep=False)

    def round(self, with_alone: bool) -> None:
        """Make each call once in each way: by the checker in turn, then alone.

        A session's calls mostly have one way. A checker that meets what a hook of the same session has just written in a
        process of its own reads it anew, at each call.
        """
        self.ground.turn()
        by_checker = [way for way in self.ways if way.name != ALONE]
        others = [way for way in self.ways if way.name == ALONE and with_alone]
        is_denied: dict[int, bool] = {}  # some denials are made once only: the first way has them
        for ways in (by_checker, others):
            for number, call in enumerate(self.calls):
                for way in ways:
                    denied = self._call(way, number, call, keep=True)
                    first = is_denied.setdefault(number, denied)
                    if denied and not first:
                        raise WrongAnswer(f"{way.name}: denied, unlike in the first way: {call.given}")
        self.mb = max(self.mb, self.ground.checker_mb())

    def _call(self, way: Way, number: int, call: Call, keep: bool) -> bool:
        """Make a call in one way; return True if it was denied."""
        self._number += 1
        ground = self.ground
        given = json.dumps(call.given).replace("{n}", str(self._number)).replace("{checkout}", ground.checkout)
        sent = {"tool_name": call.tool, "tool_input": json.loads(given), "tool_use_id": f"call-{self._number}"}
        hidden = ground.state / way.without
        if way.without:
            os.rename(hidden, f"{hidden}.away")
        try:
            ratio, output = self._hook(way, "PreToolUse", payload("PreToolUse", ME, ground.checkout, **sent))
            if keep:
                self.before.setdefault((way.name, number), []).append(ratio)
            if b'"deny"' in output:
                return True
            self._do(call)
            ratio = 0.0
            if ground.wants("PostToolUse", call.tool):
                more = {"tool_response": {"stdout": "done\n", "stderr": "", "interrupted": False}}
                ratio, _ = self._hook(way, "PostToolUse", payload("PostToolUse", ME, ground.checkout, **sent, **more))
            if keep:
                self.behind.setdefault((way.name, number), []).append(ratio)
            return False
        finally:
            if way.without:
                os.rename(f"{hidden}.away", hidden)

    def _do(self, call: Call) -> None:
        """Write a call's files, or commit all changes but the peer's."""
        for name in call.writes:
            with open(f"{self.ground.checkout}/{name.replace('{n}', str(self._number))}", "a") as file:
                file.write(f"line of call {self._number}\n")
        if call.kind == "commit":
            self.ground.git("add", "--", ".", f":!{THEIRS}")
            self.ground.git("commit", "-q", "--allow-empty", "-m", "a commit")

    def _hook(self, way: Way, event: str, sent: bytes) -> tuple[float, bytes]:
        """Run a hook behind a bare interpreter; return the ratio of their processor time, and the hook's output."""
        ground = self.ground
        bare = run([ground.installation.python, "-I", "-S", "-c", "pass"], b"", ground.env, ground.checkout).cpu
        self.bare.append(bare)
        asks = ground.has_checker and not ground.is_spared(event)
        count, spent = ground.record()
        alone = len(ground.reasons())
        ran = ground.hook(event, sent, way.installation)
        cpu = ran.cpu
        if asks and way.name != ALONE:
            self.hooks[way.name] += 1
            end = time.monotonic() + ANSWER_SECONDS
            while ground.record()[0] == count and len(ground.reasons()) == alone:
                if time.monotonic() > end:
                    raise WrongAnswer(f"{event}: neither a checker nor a hook of its own: {sent!r}")
            self.alone[way.name].update(ground.reasons()[alone:])
            now, total = ground.record()
            cpu += (total - spent * (now >= count)) / 1e9  # a checker that was started anew counts from 0
        return cpu / bare, ran.output

    def cost(self, way: str, number: int) -> float:
        """Return the cost of a call in bare interpreters, with both hooks."""
        return sum(median(of[way, number]) for of in (self.before, self.behind) if (way, number) in of)

    def mix(self, way: str) -> float:
        """Return the cost of the mix."""
        return sum(call.weight * self.cost(way, number) for number, call in enumerate(self.calls))

    def of_kinds(self, way: str) -> dict[str, float]:
        """Return the mean cost of a call of each kind."""
        found: dict[str, list[float]] = {}
        for number, call in enumerate(self.calls):
            found.setdefault(call.kind, []).append(self.cost(way, number))
        return {kind: sum(costs) / len(costs) for kind, costs in found.items()}


class Mix:
    """The measurements; missed goals are in `missed`."""

    def __init__(
        self, installed: list[Installation], root: Path, states: tuple[State, ...] = STATES, part: str = "mix"
    ):
        self.installed, self.root, self.states = installed, root / part, states
        self.root.mkdir()
        self.missed: list[str] = []
        self._in_python: dict[str, Installation] = {}

    def measure(self, rounds: int) -> None:
        """Measure everything and print it."""
        self._in_python = {
            each.name: without_relay(each, self.root) if has_checker(each) else each for each in self.installed
        }
        for runtime in HOOKS:
            measured: list[Measured] = []
            for state in self.states:
                there = [self._measured(state, installation, runtime, rounds) for installation in self.installed]
                if not measured:
                    self._head(runtime, there)
                measured.append(there[-1])
                self._show(state, there)
            self._details(runtime, measured)

    def _measured(self, state: State, installation: Installation, runtime: str, rounds: int) -> Measured:
        folder = self.root / f"{installation.name}-{runtime}-{state.name.replace(' ', '-')}"
        folder.mkdir()
        ground = Ground(folder, installation, runtime)
        try:
            state.prepare(ground)
            ground.begin()
            found = Measured(ground, self._in_python[installation.name])
            if ground.has_checker:
                found.warm_up()
            for number in range(rounds):
                print(f"  {state.name}, {runtime}, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
                found.round(with_alone=number % 3 == 0)  # it takes ten times as long: fewer samples
            return found
        finally:
            ground.close()
            os.chdir(self.root)
            shutil.rmtree(folder, ignore_errors=True)

    def _head(self, runtime: str, there: list[Measured]) -> None:
        columns = [_column(found, way) for found in there for way in found.ways]
        title = f"{len(there[-1].calls)} calls of {runtime}"
        print(f"{title:27}{''.join(f'{column:>14}' for column in columns)}  not-answered  checker-MB")

    def _show(self, state: State, there: list[Measured]) -> None:
        figures = [found.mix(way.name) for found in there for way in found.ways]
        last = there[-1]
        asked = sum(last.hooks.values())
        alone = sum((reasons for reasons in last.alone.values()), Counter[str]())
        share = alone.total() / asked if asked else 0.0
        bare = 1000 * median(last.bare)
        told = "".join(f"{figure:>14.2f}" for figure in figures)
        why = "".join(f", {count} {reason}" for reason, count in alone.items())
        print(f"{state.name:27}{told}{100 * share:>13.1f}%{last.mb:>12.1f}")
        print(f"  bare {bare:.1f} ms, load {os.getloadavg()[0]:.1f}{why}", flush=True)
        of = f"{last.ground.runtime}, {state.name}"
        for way in last.ways:
            if way.name in GOALS and last.mix(way.name) > GOALS[way.name]:
                ratio = f"{last.mix(way.name):.2f} bare interpreters, goal {GOALS[way.name]:g}"
                self.missed.append(f"{of}, {way.name}: {ratio}")
        if share > 1 - FEWEST_ANSWERED:
            self.missed.append(f"{of}: {100 * share:.1f} % of the hooks ran alone: {dict(alone)}")
        if last.mb > LARGEST_MB:
            self.missed.append(f"{of}: the checker has {last.mb:.1f} MB of its own, goal {LARGEST_MB:g}")

    def _details(self, runtime: str, measured: list[Measured]) -> None:
        """Print the cost of each kind over all states, and the calls that cost most by their weight."""
        way = measured[0].ways[0].name
        kinds = [found.of_kinds(way) for found in measured]
        shares = Counter[str]()
        for call in measured[0].calls:
            shares[call.kind] += call.weight
        print(f"\nby kind, {runtime}, {way}: share of the calls, cost of one (mean of the states, most)")
        for kind, share in shares.most_common():
            costs = [of[kind] for of in kinds]
            print(f"  {kind:26}{100 * share:>6.1f} %{sum(costs) / len(costs):>8.2f}{max(costs):>8.2f}")
        print("dearest calls by weight: cost, part of the mix")
        dear = Counter[int]()
        for number, call in enumerate(measured[0].calls):
            dear[number] = call.weight * sum(found.cost(way, number) for found in measured) / len(measured)
        for number, part in dear.most_common(DEAREST):
            call = measured[0].calls[number]
            what = str(call.given.get("command") or call.given.get("file_path") or call.tool).replace("\n", " ")
            print(f"  {call.kind}: {what.removeprefix('{checkout}/')[:SHORT]:40}{part / call.weight:>6.2f}{part:>8.3f}")
        print(flush=True)


def _column(found: Measured, way: Way) -> str:
    if way.name == INSTALLED:
        return found.ground.installation.name
    return way.name
