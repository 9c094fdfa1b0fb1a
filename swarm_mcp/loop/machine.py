"""The state machine of a run: each stage names the next, until one names none."""

from __future__ import annotations

import os
import sys
import threading
from typing import NamedTuple

from swarm_mcp.harness.reaper import Reaper
from swarm_mcp.loop import pipeline, sources, stages
from swarm_mcp.loop.builtin_plugins import ON_PATH
from swarm_mcp.loop.failure import FAILED, TOO_LONG
from swarm_mcp.loop.mcp.servers import Servers
from swarm_mcp.loop.pipeline import StageFailed
from swarm_mcp.loop.providers.choice import Provider
from swarm_mcp.loop.report import Report
from swarm_mcp.loop.session import Session
from swarm_mcp.loop.settings import LoopSettings
from swarm_mcp.loop.swarm_session import SwarmSession

STEPS_PER_TURN = 3


class Ended(NamedTuple):
    """How a run ended: what it has to say, and where it failed the error's text, category and exit code."""

    output: str
    error: str = ""
    category: str = ""
    exit_code: int = 0
    retry_not_before: float | None = None


class LoopRun:
    """One run: what its stages share. `provider` is set by the stage ``resolve``."""

    def __init__(self, settings: LoopSettings, report: Report, cwd: str):
        self.settings, self.report, self.cwd = settings, report, cwd
        self.session: Session | None = None
        self.provider: Provider | None = None
        self.sources: list[str] = []
        self.reaper = Reaper()
        self.swarm = SwarmSession()
        self.servers = Servers()
        self.greeting = ""
        self.early: dict[str, tuple[str, bool]] = {}  # results of calls that began before their answer was whole
        self.asked = 0  # how often a model was
        self.corrections = 0  # how often an answer had to be asked for again
        self._logging = threading.Lock()

    def refresh(self) -> None:
        """Look for plugins anew."""
        self.sources = sources.packs(self.settings.root)
        if os.path.isdir(self.settings.home):
            self.sources.append(self.settings.home)
        found = pipeline.run(self, "sources", {}, stages.OURS["sources"]).get("sources")
        self.sources = [str(path) for path in found] if isinstance(found, list) else self.sources

    def stage(self, name: str, context: dict) -> dict:
        """Run one stage, after looking for plugins anew. Raises StageFailed."""
        self.refresh()
        return pipeline.run(self, name, context, stages.OURS.get(name, {}))

    def environment(self, stage: str = "") -> dict[str, str]:
        """Return the environment of everything that the run starts."""
        told = {
            **self.settings.exported(),
            "HARNESS_SOURCES": ":".join(self.sources),
            "HARNESS_STAGE": stage,
            "HARNESS_CWD": self.cwd,
        }
        if self.session:
            told["HARNESS_SESSION"] = self.session.path
        if self.settings.root:
            ours = os.path.join(self.settings.root, ON_PATH)
            told["PATH"] = f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{ours}"
        return {**os.environ, **told}

    def log(self, text: str) -> None:
        """Write what plugins say on standard error to ``HARNESS_LOG``, else to our own."""
        if not text.strip():
            return
        text = text if text.endswith("\n") else text + "\n"
        with self._logging:
            try:
                if not self.settings.log or self.settings.log == "/dev/stderr":
                    print(text, end="", file=sys.stderr, flush=True)
                else:
                    with open(self.settings.log, "a", encoding="utf-8", errors="replace") as file:
                        file.write(text)
            except (OSError, ValueError):
                return

    def follow(self) -> Ended:
        """Go from ``start`` to the end; return how it ended."""
        state, steps = "start", 0
        context: dict = {}
        failure: dict = {}
        while True:
            try:
                result = self.stage(state, context)
            except StageFailed as failed:
                if state == "error":
                    return _failed(failure)
                state, context, failure = "error", failed.context, failed.context
                continue
            following = result.pop("next_state", None)
            if not following or not isinstance(following, str):
                return _failed(failure) if failure else Ended(str(result.get("output") or ""))
            if following == "error":
                failure = result
            elif following != "done":
                failure = {}  # a hook of the stage error knew what to do
            state, context = following, result
            steps += 1
            if steps > self.settings.max_turns * STEPS_PER_TURN:
                text = f"stopped after {steps - 1} steps (HARNESS_MAX_TURNS={self.settings.max_turns})"
                self.log(f"[harness] safety: {text}")
                return Ended("", text, "budget", TOO_LONG)

    def close(self) -> None:
        """End all processes that the run has started."""
        self.servers.close()
        self.reaper.close()


def _failed(context: dict) -> Ended:
    text = str(context.get("error") or context.get("output") or "a hook failed").removeprefix("error: ")
    code = context.get("exit_code")
    code, later = code if isinstance(code, int) else FAILED, context.get("retry_not_before")
    return Ended("", text, str(context.get("category") or "unknown"), code, later if isinstance(later, float) else None)
