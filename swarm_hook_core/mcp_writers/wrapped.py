"""Calls within a call: servers and clients that call tools of others by name."""

from __future__ import annotations

from typing import Any

from swarm_hook_core.mcp_writers.arguments import parsed
from swarm_hook_core.mcp_writers.table import is_own

MOST = 100  # calls within one call
DEEPEST = 3  # levels of nesting
_NAMES = ("toolName", "tool_name", "tool", "name", "function", "method")
_ARGUMENTS = ("arguments", "args", "input", "params", "parameters", "tool_input", "toolInput", "tool_args", "toolArgs")
# Beside one of these, the other arguments may be the tool's own; `name` is too common for that.
_FLAT = ("toolName", "tool_name", "tool")
_LISTS = ("calls", "tool_calls", "toolCalls", "operations", "requests", "actions", "steps", "invocations", "batch")


def calls_in(given: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return ``[(name, arguments)]`` of the calls in `given`, the input of a call; mostly empty."""
    found: list[tuple[str, dict[str, Any]]] = []
    server = given.get("server") or given.get("serverName") or given.get("server_name")
    if isinstance(server, str) and is_own(server):
        return found
    for one in [given, *(item for key in _LISTS for item in _list(given.get(key)))]:
        name, inner = _call(one)
        if name and len(found) < MOST:
            found.append((name, inner))
    return found


def _list(value: object) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [item for item in value[:MOST] if isinstance(item, dict)]
    return []


def _call(given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return ``(name, arguments)`` of the call that `given` describes, or ("", {})."""
    key = next((key for key in _NAMES if isinstance(given.get(key), str) and given[key]), "")
    if not key:
        function = given.get("function")
        if isinstance(function, dict):
            return _call(function)
        return ("", {})
    for place in _ARGUMENTS:
        value = given.get(place)
        if isinstance(value, str) and value.lstrip()[:1] == "{":
            inner = parsed(value)
        else:
            inner = value
        if isinstance(inner, dict):
            return given[key], inner
    rest = {}
    if key in _FLAT:
        rest = {name: value for name, value in given.items() if name != key}
    if rest:
        return (given[key], rest)
    return ("", {})
