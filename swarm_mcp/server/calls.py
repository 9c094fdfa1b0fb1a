"""Carrying out tool calls: in a few worker threads, each with a store of its own."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from swarm_mcp.errors import SwarmError
from swarm_mcp.server.pulse import Pulse
from swarm_mcp.server.session import CallingSession
from swarm_mcp.server.tool import Answer, Call, NotRegistered, Tool, WaitingCall
from swarm_mcp.store import Store

# One slow call (a terminal that is asked, a store that is busy) must not hold up the others.
WORKERS = 4


class Calls:
    """What the server does when a tool is called, or a resource read."""

    def __init__(self, session: CallingSession, tools: dict[str, Tool]):
        self.session = session
        self.tools = tools
        self.pulse = Pulse()
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="call")
        self._own = threading.local()
        self._validators: dict = {}

    async def use(self, name: str, arguments: dict, meta: dict) -> Answer:
        """Call the tool `name`. A refusal is an ordinary answer; wrong arguments and faults are errors."""
        tool = self.tools[name]
        wrong = self._complaint(tool, arguments)
        if wrong:
            return Answer(text=wrong, is_error=True)
        defaults = {key: spec["default"] for key, spec in tool.properties.items() if "default" in spec}
        arguments = {**defaults, **arguments}
        try:
            if inspect.iscoroutinefunction(tool.call):
                with self.pulse.listening():
                    return await tool.call(_Waiting(self, meta), arguments)
            return await self.run(lambda call: tool.call(call, arguments), meta)
        except NotRegistered as error:
            return Answer(text=str(error))
        except SwarmError as error:
            return Answer({"error": str(error)}, is_error=True)
        except Exception as error:  # noqa: BLE001 - a bug in one tool must not end the session's server
            print(f"swarm-mcp serve: {name}: {type(error).__name__}: {error}", file=sys.stderr)
            return Answer(text=f"{name} failed: {type(error).__name__}: {error}", is_error=True)

    async def run(self, function: Callable, meta: dict):
        """`function(call)` in a worker thread; what it returns. Once begun it is carried out to its end."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, self._carry_out, function, meta)

    async def sent(self, answer: Answer) -> None:
        """Run what an answer wants done once the client has it."""
        if answer.on_sent:
            await self.run(lambda call: answer.on_sent(call.store), {})

    def _carry_out(self, function: Callable, meta: dict):
        store = getattr(self._own, "store", None)
        if store is None:
            store = self._own.store = Store()
        store.refresh()
        return function(Call(store, self.session, meta))

    def _complaint(self, tool: Tool, arguments: dict) -> str:
        """What is wrong with `arguments`, in a line; empty where they fit."""
        validator = self._validators.get(tool.name)
        if validator is None:
            from jsonschema import Draft202012Validator

            validator = self._validators[tool.name] = Draft202012Validator(tool.schema)
        error = next(iter(sorted(validator.iter_errors(arguments), key=lambda e: len(e.path))), None)
        if error is None:
            return ""
        if error.validator == "required" and not error.path:
            missing = next(name for name in tool.required if name not in arguments)
            return f"{tool.name} needs {missing}: {tool.properties[missing]['description']}"
        if error.validator == "additionalProperties" and not error.path:
            unknown = next(name for name in arguments if name not in tool.properties)
            return f"{tool.name} has no argument {unknown}; it takes {', '.join(tool.properties) or 'none'}"
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.path).lstrip(".")
        return f"{tool.name}: {place}: {error.message}"


class _Waiting(WaitingCall):
    def __init__(self, calls: Calls, meta: dict):
        self._calls = calls
        self._meta = meta
        self._beats = calls.pulse.beats

    async def run(self, function):
        # Shielded: what a call has taken from the store must reach whoever asked, or be put back.
        return await asyncio.shield(self._calls.run(function, self._meta))

    async def changed(self, seconds: float | None) -> bool:
        found = await self._calls.pulse.after(self._beats, seconds)
        self._beats = self._calls.pulse.beats
        return found


def texts_of(answer: Answer) -> list[str]:
    """An answer as the text blocks of a result."""
    first = answer.text if answer.value is None else json.dumps(answer.value, indent=2, ensure_ascii=False)
    return [first, *answer.notes]
