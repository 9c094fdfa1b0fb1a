"""The cost of installing, looking and removing, with the real clients: ``--part setup``.

Each round has a home of its own: `install` into Claude Code and Codex, new ones; `install` again; `doctor`;
`uninstall`. Wall clock and processor time (all children included), medians of the rounds, and the number of started
client processes. Once on the machine as it is, and once with a busy loop for each processor beside it. The clients are
those of `make e2e`; without them there is nothing to measure.

Goals, beside busy loops: `install` within 12 s, `doctor` within 4, `uninstall` within 2.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from .plugin import Plugin, WrongAnswer
from .processes import Ran, run

CLIENTS = ("claude", "codex")
STEPS = {"install": "install", "install again": "install", "doctor": "doctor", "uninstall": "uninstall"}
BUSY_LIMITS = {"install": 12.0, "doctor": 4.0, "uninstall": 2.0}
ROUNDS = 3
NOWHERE = "http://127.0.0.1:9"  # the clients reach nothing


class Sample(NamedTuple):
    """One command's run, and how many client processes it has started."""

    ran: Ran
    started: int


class Setup:
    """The measurements; missed goals are in `missed`."""

    def __init__(self, plugin: Plugin, root: Path, checkout: str, env: dict[str, str]):
        self.plugin, self.root, self.checkout = plugin, root / "setup", checkout
        self.calls = self.root / "calls"
        self.missed: list[str] = []
        bin_folder = self.root / "bin"
        node = os.path.dirname(shutil.which("node") or "")
        self.env = {
            **env,
            "PATH": ":".join(filter(None, (str(bin_folder), node, env["PATH"]))),
            "ANTHROPIC_BASE_URL": NOWHERE, "ANTHROPIC_API_KEY": "dummy", "HTTPS_PROXY": NOWHERE,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
        }  # fmt: skip
        self.found = self._counted_clients(bin_folder)

    def measure(self) -> None:
        """Measure everything and print it."""
        if len(self.found) < len(CLIENTS):
            absent = ", ".join(name for name in CLIENTS if name not in self.found)
            print(f"not measured: {absent} not in SWARM_E2E_CLIENTS (`make e2e` fetches the clients)")
            return
        loops = os.cpu_count() or 1
        print(f"{'':32}   wall s    cpu s  client processes")
        self._rows("quiet", {})
        with _busy(loops, self.plugin.python):
            self._rows(f"{loops} busy loops beside", BUSY_LIMITS)
        print(flush=True)

    def _rows(self, beside: str, limits: dict[str, float]) -> None:
        rounds = [self._round(f"{beside.replace(' ', '-')}-{number}") for number in range(ROUNDS)]
        for name in STEPS:
            samples = [samples[name] for samples in rounds]
            wall = median(sample.ran.seconds for sample in samples)
            cpu = median(sample.ran.cpu for sample in samples)
            limit = limits.get(name)
            told = f"  limit {limit:g} s" if limit else ""
            print(f"{name:14} {beside:17} {wall:8.2f} {cpu:8.2f} {samples[-1].started:17}{told}", flush=True)
            if limit and wall > limit:
                self.missed.append(f"{name}, {beside}: {wall:.1f} s, limit {limit:g} s")

    def _round(self, name: str) -> dict[str, Sample]:
        home = self.root / name
        home.mkdir()
        env = {**self.env, "HOME": str(home), "TMPDIR": str(home), "SWARM_STATE_DIR": str(home / "swarm-mcp")}
        return {step: self._sample(verb, env) for step, verb in STEPS.items()}

    def _sample(self, verb: str, env: dict[str, str]) -> Sample:
        self.calls.unlink(missing_ok=True)
        ran = run([*self.plugin.coordinator, verb], b"", env, self.checkout)
        if ran.code:
            raise WrongAnswer(f"{verb} exited {ran.code}: {ran.output.decode(errors='replace')}")
        return Sample(ran, len(self.calls.read_text().splitlines()))

    def _counted_clients(self, folder: Path) -> list[str]:
        """Put a command for each present client into `folder` that notes its start. Returns their names."""
        folder.mkdir(parents=True)
        found = []
        for name in CLIENTS:
            program = Path(os.environ.get("SWARM_E2E_CLIENTS") or ".", ".bin", name)
            if program.exists():
                script = folder / name
                script.write_text(f'#!/bin/sh\necho {name} >> "{self.calls}"\nexec "{program.resolve()}" "$@"\n')
                script.chmod(0o755)
                found.append(name)
        return found


@contextmanager
def _busy(loops: int, python: str) -> Iterator[None]:
    """Run that many processes that keep a processor busy each."""
    started = [subprocess.Popen([python, "-I", "-S", "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()
