"""The cost of leaving traces, and of meeting those of others: ``--part traces``.

The command of the installed plugin, as in the other checks, beside a store without locks: of a session alone, and of
one beside `PEERS` living ones, with `TRACES` writes of other files in their journals; the same two in a checkout that
has joined a team, with those others on other machines (each with the largest number of files). A shell command has to
be analysed, without a limit here.

Limits, in bare interpreters: 1.9 alone, 2.2 beside others; memory 1.6.
"""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from swarm_hook_core import clock
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.state import state_dir
from swarm_hook_core.traces import KEEP, MOST
from swarm_hook_core.traces.trail import Trail
from swarm_mcp.store import Store
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.team.traces import MOST_FILES
from swarm_mcp.team.traces import Traces as TeamTraces

from . import figures, stores
from .plugin import RUNTIMES, Plugin, check_silence, payload, write_payload
from .processes import peak_bytes, run

PEERS = 10
TRACES = 10_000
ALONE, BESIDE = 1.9, 2.2
RUNS = 30
CALLS = (("a look", "cat src/free.py", True), ("a shell write", "echo a line > src/free.py", False))


class Traces:
    """The measurements; missed limits are in `missed`."""

    def __init__(self, plugin: Plugin, root: Path, checkout: str, env: dict[str, str]):
        self.plugin = plugin
        self.root = root
        self.checkout = checkout
        self.env = env
        self.bare = [plugin.python, "-I", "-S", "-c", "pass"]
        self.missed: list[str] = []

    def measure(self) -> None:
        """Measure everything and print it."""
        beside = [(peers, is_team) for is_team in (False, True) for peers in (0, PEERS)]
        cases = [case for one in beside for runtime in RUNTIMES for case in self._cases(*one, runtime)]
        for number in range(-1, RUNS):  # the first round only warms the caches
            for series, argv, sent, env in cases:
                bare, ran = run(self.bare, sent, self.env, self.checkout), run(argv, sent, env, self.checkout)
                check_silence(ran.output)
                if number >= 0:
                    series.bare.append(bare.seconds)
                    series.samples.append(ran.seconds)
                    series.bare_cpu.append(bare.cpu)
                    series.cpu.append(ran.cpu)
        for series, argv, sent, env in cases:
            series.bare_peak = peak_bytes(self.plugin.python, self.bare, b"", self.env, self.checkout)[0]
            series.peak = peak_bytes(self.plugin.python, argv, sent, env, self.checkout)[0]
        found = [case[0] for case in cases]
        print(figures.table(found), end="\n\n")
        self.missed += figures.misses(found)

    def _cases(
        self, peers: int, is_team: bool, runtime: str
    ) -> list[tuple[figures.Series, list[str], bytes, dict[str, str]]]:
        """``(series, argv, payload, environment)`` of the calls of a session beside so many others."""
        name = f"traces-{peers}-{is_team}-{runtime}"
        store, state = str(self.root / f"{name}.db"), str(self.root / name)
        env = {**self.env, "SWARM_DB_PATH": store, "SWARM_STATE_DIR": state}
        stores.fill(store, self.checkout, 0, "")
        stores.join(store, self.checkout, runtime, "me")
        with mock.patch.dict(os.environ, env):
            if is_team:
                self._join(store, peers)
            for number in range(0 if is_team else peers):
                stores.join(store, self.checkout, "codex", f"peer-{number}")
                self._leave(f"peer-{number}", TRACES // peers)
        count = peers * MOST_FILES if is_team else TRACES
        where, limit = (f"beside {peers}, {count:,} traces", BESIDE) if peers else ("alone", ALONE)
        where += ", in a team" if is_team else ""
        calls = [("a write", write_payload(runtime, "me", self.checkout, f"{self.checkout}/src/free.py"), True)]
        for what, command, is_limited in CALLS:
            called = {"tool_name": "Bash", "tool_input": {"command": command}}
            sent = payload("PreToolUse", "me", self.checkout, **called)
            calls.append((what, sent, is_limited or not peers))
        cases = []
        for what, sent, is_limited in calls:
            limits = (limit, figures.MEMORY_RATIO) if is_limited else (None, None)
            series = figures.Series(f"{what:13} {runtime:<11} {where}", "", *limits)
            cases.append((series, self.plugin.command(runtime, "PreToolUse"), sent, env))
        return cases

    def _join(self, path: str, peers: int) -> None:
        """Have the checkout join a team, and so many sessions of other machines leave their traces."""
        os.makedirs(os.path.join(state_dir(), "team", "clones"))
        with Store(path, tells=False) as store:
            known = {"fresh_until": clock.now() + 1e6, "booted": clock.boot(store.here), "said_at": int(time.time())}
            with TeamRows(store).writing():
                TeamRows(store).set_trees({self.checkout: "example.org/app"})
                TeamRows(store).note("example.org/app", state="following", **known)
            mirror = TeamTraces(store, "example.org/app", "here", [self.checkout])
            with TeamRows(store).writing():
                for number in range(peers):
                    session = f"peer-{number}"
                    TeamRows(store).add_session(session, "laptop", f"codex session:{session}", self.checkout)
                    files = {f"{session}/module_{one}.py": int(time.time()) for one in range(MOST_FILES)}
                    body = {"files": files}
                    mirror.take({"kind": "trace", "key": session, "version": 1, "body": body, "machine": "laptop",
                                 "member": "", "at": 0.0})  # fmt: skip
            mirror.mirror()

    def _leave(self, session_id: str, count: int) -> None:
        """Leave the traces of `count` writes of that session."""
        call = ToolCall("apply_patch", {}, session_id, self.checkout)
        files = [f"{self.checkout}/{session_id}/module_{number}.py" for number in range(count)]
        for begin in range(0, count, MOST):
            trail = Trail(SimpleNamespace(runtime_name="codex"), call, KEEP)
            trail.wrote(files[begin : begin + MOST])
            trail.leave()
