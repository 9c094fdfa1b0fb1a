"""One stage: hooks in order of their names, each one's output the next one's input.

A hook is an executable ``hooks.d/STAGE/NN-name`` or a function of ours with such a name; of several with one name the
one in the source of highest priority counts. One that fails ends the stage.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from swarm_mcp.loop import sources, subprocesses
from swarm_mcp.loop.failure import LoopFailure

Hook = Callable[[Any, dict], dict]  # (loop, what the stage has so far) -> what it has then
TAIL_LINES = 2


class StageFailed(Exception):
    """A hook has failed. `context` is what the stage ``error`` is told: ``{"error": text, ...}``."""

    def __init__(self, context: dict):
        super().__init__(str(context.get("error")))
        self.context = context


def hooks_of(stage: str, found: list[str], ours: dict[str, Hook]) -> dict[str, str | Hook]:
    """Return name -> path or function of the hooks of a stage, in the order they run. `found`: the sources."""
    hooks: dict[str, str | Hook] = {**ours, **sources.executables(found, "hooks.d", stage)}
    return dict(sorted(hooks.items()))


def run(loop, stage: str, context: dict, ours: dict[str, Hook]) -> dict:
    """Return what the stage makes of `context`. Raises StageFailed."""
    current: dict | str = context
    for name, hook in hooks_of(stage, loop.sources, ours).items():
        if callable(hook):
            try:
                current = hook(loop, _parsed(current, stage, name))
            except LoopFailure as error:
                facts = {"error": str(error), "category": error.category, "exit_code": error.exit_code}
                facts["retry_not_before"] = error.retry_not_before
                raise StageFailed(facts) from error
        else:
            current = _run_executable(loop, stage, hook, current)
    return _parsed(current, stage, "")


def _run_executable(loop, stage: str, path: str, current: dict | str) -> str:
    text = current if isinstance(current, str) else json.dumps(current, ensure_ascii=False)
    ran = subprocesses.run([path], text + "\n", env=loop.environment(stage), cwd=loop.settings.folder)
    loop.log(ran.err)
    if ran.code == 0:
        return ran.out
    said = _object(ran.out)
    if said is not None and said.get("error"):
        raise StageFailed({**said, "error": str(said["error"])})
    tail = " ".join(ran.err.split("\n")[-TAIL_LINES - 1 :]).strip()
    raise StageFailed({"error": f"hook {path} exited {ran.code} during {stage}{': ' + tail if tail else ''}"})


def _parsed(current: dict | str, stage: str, name: str) -> dict:
    if isinstance(current, dict):
        return current
    if not current.strip():
        return {}
    found = _object(current)
    if found is None:
        where = f"before {name}" if name else "at its end"
        raise StageFailed({"error": f"the hooks of {stage} gave no JSON object {where}: {current.strip()[:120]}"})
    return found


def _object(text: str) -> dict | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def described(hook: str | Hook) -> str:
    """Return where a hook comes from, for people."""
    return "(built in)" if callable(hook) else os.path.abspath(hook)
