"""The price of keeping a version before a write: ``--part versions``.

First the added step, in this process: a write is noted in turns with and without its version. Files of 10 KB and 1 MiB;
the session's first write of a file, a further one alone, and a write beside others, which keeps each version.

Then the whole hook of Claude Code in turns with that of another commit, if ``SWARM_BENCH_BEFORE`` names a checkout of
it. The limits are those of the added step, in milliseconds.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.state import state_dir
from swarm_hook_core.traces import KEEP, LATER
from swarm_hook_core.traces.trail import Trail

from . import stores
from .plugin import CHECKOUT, check_silence, write_payload
from .processes import run

BEFORE = "SWARM_BENCH_BEFORE"
SIZES = {"10 KB": 10 * 1024, "1 MiB": 1 << 20}
KINDS = {"first write": 0.5, "further write": 0.02, "beside others": 1.0}  # limits in milliseconds
RUNS, HOOKS = 200, 60


class Versions:
    """The measurements; missed limits are in `missed`."""

    def __init__(self, root: Path, checkout: str, env: dict[str, str]):
        self.root = root
        self.checkout = checkout
        self.env = env
        self.missed: list[str] = []

    def measure(self) -> None:
        """Measure everything and print it."""
        print(f"{'added to a check':32} {'without':>8} {'with':>8} {'added':>8}  ms, lower deciles of {RUNS}")
        for kind, limit in KINDS.items():
            for size in SIZES:
                self._show(f"{kind}, {size}", *self._step(kind, size), limit)
        before = os.environ.get(BEFORE, "")
        if before:
            print(f"\n{'the whole hook':32} {'before':>8} {'now':>8} {'added':>8}  ms, lower deciles of {HOOKS}")
            for kind in ("first write", "further write", "beside others"):
                for size in SIZES:
                    self._show(f"{kind}, {size}", *self._hook(kind, size, before), None)

    def _show(self, name: str, without: float, with_: float, limit: float | None) -> None:
        added = with_ - without
        mark = ""
        if limit is not None and added > limit:
            self.missed.append(f"versions, {name}: {added:.2f} ms, limit {limit}")
            mark = "  <-- over"
        print(f"{name:32} {without:8.3f} {with_:8.3f} {added:+8.3f}{mark}")

    def _file(self, size: str) -> str:
        path = Path(self.checkout, "src", f"version-{SIZES[size]}.py")
        path.write_text("a line of a file of ordinary length, more or less\n" * (SIZES[size] // 50))
        return str(path)

    def _step(self, kind: str, size: str) -> tuple[float, float]:
        """Return the times of noting a write without and with its version, in milliseconds."""
        file, state = self._file(size), str(self.root / "versions-state")
        with mock.patch.dict(os.environ, {"SWARM_STATE_DIR": state}):
            config = RuntimeConfig("codex", "CODEX", "swarm", {"apply_patch"})
            given = {"command": "*** Begin Patch\n" + 40 * "+a line\n"}
            call = ToolCall("apply_patch", given, "me", self.checkout)
            kept = Path(state_dir(), "kept")

            def noted() -> float:
                began = time.perf_counter()
                trail = Trail(config, call, KEEP)
                trail.wrote([file], is_beside_others=kind == "beside others")
                trail.leave()
                return 1000 * (time.perf_counter() - began)

            noted()
            samples: dict[bool, list[float]] = {False: [], True: []}
            for number in range(2 * RUNS):
                keeps = bool(number % 2)
                if kind != "further write":
                    _forget(kept, kind == "beside others")
                with ExitStack() as left_out:
                    for step in () if keeps else ("_keep_before", "_keep_input"):
                        left_out.enter_context(mock.patch.object(Trail, step, _nothing))
                    samples[keeps].append(noted())
            shutil.rmtree(state)
        return lower_decile(samples[False]), lower_decile(samples[True])

    def _hook(self, kind: str, size: str, before: str) -> tuple[float, float]:
        """Return the times of a hook process of an earlier commit and of this one, in milliseconds."""
        store, state = str(self.root / "versions.db"), str(self.root / "versions-state")
        file = self._file(size)
        env = {**self.env, "SWARM_DB_PATH": store, "SWARM_STATE_DIR": state}
        stores.fill(store, self.checkout, 0, "")
        stores.join(store, self.checkout, "claude-code", "me")
        sent = write_payload("claude-code", "me", self.checkout, file)
        with mock.patch.dict(os.environ, env):
            if kind == "beside others":
                stores.join(store, self.checkout, "codex", "peer")
                call = ToolCall("apply_patch", {}, "peer", self.checkout)
                trail = Trail(RuntimeConfig("codex", "CODEX", "swarm", ()), call, KEEP)
                trail.note("saw", file)
                trail.leave()
        samples: dict[str, list[float]] = {before: [], str(CHECKOUT): []}
        for number in range(-1, HOOKS):
            for root in samples:
                if kind != "further write":
                    _forget(Path(state, "kept"), kind == "beside others")
                script = f"{root}/integrations/hook.py"
                argv = [sys.executable, "-E", "-s", "-S", script, "claude-code", "pre_tool_use"]
                ran = run(argv, sent, env, self.checkout)
                check_silence(ran.output)
                if number >= 0:
                    samples[root].append(1000 * ran.seconds)
        shutil.rmtree(state)
        os.remove(store)
        return lower_decile(samples[before]), lower_decile(samples[str(CHECKOUT)])


def _forget(kept: Path, keeps_first: bool) -> None:
    for path in kept.glob("*/*/*"):
        if LATER in path.name or not keeps_first:
            path.unlink()


def lower_decile(samples: list[float]) -> float:
    """Return the tenth part of `samples` from below: other programs on the machine add the rest."""
    return sorted(samples)[len(samples) // 10]


def _nothing(*_given: object) -> None:
    """Stand in for the step that is left out."""
