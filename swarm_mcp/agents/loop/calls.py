"""The tools of a run, and carrying out the model's calls of them."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

from swarm_hook_core import faults
from swarm_mcp.agents.harness.query import parse_object
from swarm_mcp.agents.loop import sources, subprocesses, tools
from swarm_mcp.agents.loop.messages import ModelCall
from swarm_mcp.agents.loop.run import Run
from swarm_mcp.agents.loop.settings import TOOL_SECONDS, number

LONGEST_RESULT = 100_000  # characters that a model is given of one result
SCHEMA_SECONDS = 10.0
_schemas: dict[tuple[Any, ...], dict[str, Any] | None] = {}


def found(loop: Run) -> dict[str, str]:
    """Return name -> executable of every plugin's tool. Built-in tools need no executable."""
    return sources.executables(loop.sources, "tools")


def is_ours(loop: Run, name: str, path: str | None) -> bool:
    """Return True for a built-in tool, which runs in this process, and False for a plugin's."""
    ours = bool(loop.settings.root) and bool(path) and str(path).startswith(os.path.join(loop.settings.root, ""))
    return name in tools.NAMES and (path is None or ours)


def schemas(loop: Run) -> list[dict[str, Any]]:
    """Return every tool as ``{"name", "description", "input_schema"}``, by name."""
    paths = found(loop)
    listed: list[dict[str, Any]] = []
    for name in sorted({*paths, *tools.NAMES}):
        path = paths.get(name)
        if not _may_use(loop, name, is_ours(loop, name, path)):
            continue
        if name == "agent" and loop.settings.depth >= loop.settings.max_depth:
            continue
        shown: dict[str, Any] | None
        if is_ours(loop, name, path):
            shown = tools.schema(name)
        else:
            shown = _asked(loop, str(path))
        if shown:
            listed.append(shown)
    return [*listed, *loop.servers.schemas(loop)]


def execute(loop: Run, made: ModelCall) -> tuple[str, bool]:
    """Carry out a call; return ``(result, is_error)``. Never raises for errors of the call itself."""
    path = found(loop).get(made.name)
    ours = is_ours(loop, made.name, path)
    served = made.name in loop.servers
    if not ours and not path and not served:
        return f"error: tool '{made.name}' not found", True
    if not (loop.servers.may_use(loop, made.name) if served else _may_use(loop, made.name, ours)):
        return f"error: this run is read-only; {made.name} is not available", True
    denial = loop.swarm.denial(made, ours)
    if denial:
        return denial, True
    text = ""
    try:
        if ours:
            text, error = tools.run(loop, made)
        elif path:
            text, error = _execute(loop, path, made)
        else:
            text, error = loop.servers.call(made)
    finally:
        words = loop.swarm.after(made, text)
    if len(text) > LONGEST_RESULT:
        half = LONGEST_RESULT // 2
        text = f"{text[:half]}\n[{len(text) - LONGEST_RESULT} characters left out]\n{text[-half:]}"
    return (f"{text}\n{words}" if words else text), error


class EarlyCalls:
    """Calls that are carried out while the model's answer is still coming.

    Their results wait in the session's ``.tool_dispatch`` for the stage ``tool_exec``. Writes keep their order; all
    other calls run side by side.
    """

    def __init__(self, loop: Run):
        self._loop = loop
        self._running: list[threading.Thread] = []

    def begin(self, made: ModelCall) -> None:
        """Take a call that the answer now holds whole."""
        self._loop.session.stream("tool_start", id=made.id, name=made.name, input=made.input)
        if not self._loop.settings.predispatch:
            return
        if made.name in tools.WRITERS:
            self._carry_out(made)
            return
        thread = threading.Thread(target=self._carry_out, args=(made,), name=f"tool {made.name}", daemon=True)
        thread.start()
        self._running.append(thread)

    def finish(self) -> None:
        """Wait for all of them."""
        for thread in self._running:
            thread.join()
        self._running.clear()

    def _carry_out(self, made: ModelCall) -> None:
        try:
            text, error = execute(self._loop, made)
        except Exception as fault:
            faults.record("loop", "early_call", faults.describe(fault))
            text, error = f"error: {type(fault).__name__}: {fault}", True
        self._loop.early[made.id] = (text, error)  # in case the file cannot be written
        try:
            self._loop.session.put_result(made.id, text, error)
        except OSError:  # `early` has the result
            return


def _may_use(loop: Run, name: str, ours: bool) -> bool:
    """Return True if a run in this mode may use a tool. A read-only run may use built-in tools that read."""
    return not loop.settings.read_only or (ours and name in tools.READERS)


def _execute(loop: Run, path: str, made: ModelCall) -> tuple[str, bool]:
    seconds = number("HARNESS_TOOL_TIMEOUT", TOOL_SECONDS)
    text = json.dumps(made.input, ensure_ascii=False)
    ran = subprocesses.run(
        [path, "--exec"], text + "\n", env=loop.environment("tool_exec"), cwd=loop.cwd, seconds=seconds,
        reaper=loop.reaper, together=True,
    )  # fmt: skip
    if ran.timed_out:
        return f"{ran.out}\nerror: {made.name} took longer than {seconds:.0f} s and was ended".lstrip("\n"), True
    return ran.out.rstrip("\n"), ran.code != 0


def _asked(loop: Run, path: str) -> dict[str, Any] | None:
    """Return an executable's description of itself; it is asked once for each version of the file."""
    try:
        status = os.stat(path)
    except OSError:  # removed meanwhile
        return None
    key = (path, status.st_mtime_ns, status.st_size)
    if key not in _schemas:
        ran = subprocesses.run(
            [path, "--schema"], env=loop.environment("assemble"), cwd=loop.settings.folder, seconds=SCHEMA_SECONDS,
            reaper=loop.reaper,
        )  # fmt: skip
        _schemas[key] = _schema(ran.out) if ran.code == 0 else None
        if _schemas[key] is None:
            loop.log(f"[harness] tool {path} gives no usable --schema")
    return _schemas[key]


def _schema(text: str) -> dict[str, Any] | None:
    shown = parse_object(text)
    if not isinstance(shown.get("name"), str):
        return None
    wanted = shown.get("input_schema")
    return {
        "name": shown["name"],
        "description": str(shown.get("description") or ""),
        "input_schema": wanted if isinstance(wanted, dict) else {"type": "object", "properties": {}},
    }
