"""Runs of small children, for the tests of the runner."""

import json
import os
import sys
import time
from pathlib import Path

from swarm_mcp.agents.harness.adapter import Capabilities, HarnessAdapter, Launch
from swarm_mcp.agents.harness.events import (
    CONTEXT_USAGE,
    Event,
    error,
    message,
    result,
    session_init,
    tool_end,
    tool_start,
)
from swarm_mcp.agents.harness.outcome import Price, RunResult
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.agents.harness.run import Run

SESSION = "0a0a0a0a-1111-4222-8333-444444444444"
OTHER = "0b0b0b0b-1111-4222-8333-444444444444"
PYTHON = [sys.executable, "-I", "-S"]


class Scripted(HarnessAdapter):
    """A harness that runs a Python script that prints our events, one JSON array of words each."""

    name = "scripted"
    program = "python3"
    instructions = "Install scripted."
    capabilities = Capabilities(resume=True, fork=True, cost=True, mcp=True, client_tools=True, model=True)
    cumulative = frozenset({"cost", "tokens"})
    prices = {"priced-1": Price(1.0, 0.1, 10.0, "2026-11-01")}

    def __init__(self, *scripts: str, **launch):
        self.scripts = list(scripts)
        self.launched: list[Query] = []
        self.folders: list[Path] = []
        self.extra = launch

    def launch(self, query: Query, folder: Path) -> Launch:
        self.launched.append(query)
        self.folders.append(folder)
        (folder / "settings.json").write_text("{}")
        script = self.scripts[min(len(self.launched), len(self.scripts)) - 1]
        argv = (*PYTHON, "-c", PRELUDE + script, *query.additional_args)
        return Launch(argv, **{"stdin": query.prompt, **self.extra})

    def parse(self, line: str, state: dict) -> list[Event]:
        try:
            word, *rest = json.loads(line)
            return [MAKERS[word](**rest[0]) if word == "spent" else MAKERS[word](*rest)]
        except (ValueError, KeyError, TypeError):
            return []


def final(text: str, category: str) -> Event:
    """An error that ends the run."""
    made = error(text, category)
    made.data["final"] = True
    return made


MAKERS = {
    "init": session_init, "say": lambda text: message("assistant", text), "start": tool_start, "end": tool_end,
    "result": lambda output, failed=False, cost=None, **more: result(output, failed, cost=cost, **more), "error": error,
    "final": final, "spent": lambda **cost: Event(CONTEXT_USAGE, {"context_used_tokens": None, "spent": cost}),
}  # fmt: skip
PRELUDE = "import json, os, sys, time, signal\ndef tell(*words): print(json.dumps(words), flush=True)\n"


def run_of(adapter, cwd, prompt: str = "do it", *, previous=None, membership=None, **query) -> Run:
    """A run that has not been started."""
    return Run(adapter, Query(prompt, str(cwd), **query), previous=previous, membership=membership)


def seen_of(run: Run, seconds: float = 20.0) -> tuple[RunResult, list[Event]]:
    """Start it and see it through."""
    seen: list[Event] = []
    run.on_event(seen.append).start()
    found = run.wait(seconds)
    assert found is not None, "the run did not end"
    return found, seen


def kinds(seen: list[Event], *without: str) -> list[str]:
    """The kinds of events, but raw lines."""
    return [event.kind for event in seen if event.kind not in ("raw_log", "raw_stderr", *without)]


def is_alive(pid: int) -> bool:
    """Return True for a process that exists and is no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:  # it has ended
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # the process has ended
        return not sys.platform.startswith("linux")
    return stat[stat.rfind(")") + 2] not in "ZX"


def gone_within(pids, seconds: float) -> bool:
    """Return True if all of these end in time."""
    end = time.monotonic() + seconds
    while any(is_alive(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
