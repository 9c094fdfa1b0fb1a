"""The types of a ``Query`` from a Python caller: obvious conversions are made, all else is refused by name.

A path is taken for its text, a list for a tuple, a number for a text where text is wanted, and an MCP server in the
form of ``.mcp.json`` for an ``McpServer``.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from swarm_mcp.agents.harness.query import EFFORTS, MODES, McpServer, Query, server_of
from swarm_mcp.agents.harness.servers import tool_of
from swarm_mcp.agents.harness.structured import is_model, schema_for
from swarm_mcp.errors import Refused

LARGEST = 10**9  # seconds, dollars or turns


def normalized(query: Query) -> Query:
    """Return `query` with every field of its type. Raises Refused, naming the field, for one that cannot be."""
    if not isinstance(query, Query):
        raise Refused(f"a run wants a Query, not {_kind(query)}")
    return query._replace(**{name: _READERS[name](name, value) for name, value in query._asdict().items()})


def checked(query: Query) -> Query:
    """Return the query, its fields of their types. Raises Refused for one that makes no sense."""
    query = normalized(query)
    if not query.prompt.strip() and not query.command:
        raise Refused("a run needs a prompt")
    if query.mode not in MODES:
        raise Refused(f"unknown mode {query.mode[:40]!r}; choose from {', '.join(MODES)}")
    if query.effort not in EFFORTS:
        raise Refused(f"unknown effort {query.effort[:40]!r}; choose from {', '.join(EFFORTS[1:])}")
    if not os.path.isdir(query.cwd):
        raise Refused(f"a worker cannot be started in {query.cwd}: there is no such folder")
    if query.log_file and not os.path.isdir(os.path.dirname(os.path.abspath(query.log_file))):
        raise Refused(f"log_file of the query is {query.log_file}: there is no such folder")
    missing = next((path for path in query.images if not os.path.isfile(os.path.join(query.cwd, path))), None)
    if missing is not None:
        raise Refused(f"images of the query name {missing}: there is no such file")
    if query.client_tools:
        for function in query.client_tools:
            tool_of(function)
    if query.timeout_seconds < 0 or query.grace_seconds < 0:
        raise Refused("a timeout cannot be negative")
    if query.max_cost_usd < 0 or query.max_turns < 0:
        raise Refused("a limit cannot be negative")
    return query


def _text(field: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise _wrong(field, "text", value)


def path_of(field: str, value: object) -> str:
    """Return the text of a path. Raises Refused, naming the field, for anything else."""
    try:
        if isinstance(value, os.PathLike):
            return os.fsdecode(value)
        return _text(field, value)
    except (TypeError, ValueError):
        raise _wrong(field, "a path", value) from None


def _as_text(field: str, value: object) -> str:
    """Read a text; a path or a number stands for one, too."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return path_of(field, value)


def _flag(field: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise _wrong(field, "True or False", value)


def _number(field: str, value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value <= LARGEST:
        return float(value)
    raise _wrong(field, f"a number of at most {LARGEST}", value)


def _whole(field: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value <= LARGEST:
        return value
    raise _wrong(field, f"a whole number of at most {LARGEST}", value)


def _listed(read: Callable[[str, object], Any]) -> Callable[[str, object], tuple[Any, ...]]:
    def listed(field: str, value: object) -> tuple[Any, ...]:
        if isinstance(value, (str, bytes, Mapping, os.PathLike)) or not isinstance(value, Iterable):
            raise _wrong(field, "a list", value)
        return tuple(read(f"{field}[{place}]", one) for place, one in enumerate(value))

    return listed


def function_of(field: str, value: object) -> Callable[..., Any]:
    """Return a function. Raises Refused, naming the field, for anything else."""
    if callable(value):
        return value
    raise _wrong(field, "a function", value)


def _maybe_function(field: str, value: object) -> Callable[..., Any] | None:
    if value is None:
        return None
    return function_of(field, value)


def _schema(field: str, value: object) -> dict[str, Any] | None:
    if isinstance(value, type) and is_model(value):
        return schema_for(value)
    if value is not None and not isinstance(value, dict):
        raise _wrong(field, "a JSON schema as a dict, a dataclass or a pydantic model", value)
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(f"{field} wants a JSON schema: {error}") from None
    return value


def _variables(field: str, value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise _wrong(field, "names and values", value)
    return {_text(f"a name in {field}", name): _as_text(f"{field}[{name!r}]", one) for name, one in value.items()}


def _servers(field: str, value: object) -> dict[str, McpServer]:
    if not isinstance(value, Mapping):
        raise _wrong(field, "names and servers", value)
    return {_text(f"a name in {field}", name): _server(f"{field}[{name!r}]", one) for name, one in value.items()}


def _server(field: str, value: object) -> McpServer:
    if isinstance(value, McpServer):
        given = value._asdict()
    elif isinstance(value, Mapping):
        given = dict(value)
    else:
        raise _wrong(field, "an McpServer, or a dict as .mcp.json has it", value)
    for name, read in _OF_A_SERVER.items():
        if given.get(name) is not None:
            given[name] = read(f"{field}.{name}", given[name])
    found = McpServer(**given) if isinstance(value, McpServer) else server_of(given)
    if found is None or not (found.command or found.url):
        raise Refused(f"{field} of the query is no MCP server: it needs a command, or a url (type http)")
    return found


def _wrong(field: str, wanted: str, value: object) -> Refused:
    return Refused(f"{field} wants {wanted}, not {_kind(value)}")


def _kind(value: object) -> str:
    """Return the type of a value, and the value where it is short."""
    name = type(value).__name__
    is_short = isinstance(value, float) or (isinstance(value, int) and abs(value) < 10**30)
    if is_short:
        return f"{name} {value!r}"
    return name


_OF_A_SERVER: dict[str, Callable[[str, object], Any]] = {
    "type": _text, "command": path_of, "args": _listed(_as_text), "env": _variables, "cwd": path_of, "url": _text,
    "headers": _variables,
}  # fmt: skip
_READERS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(Query._fields, _text),
    **dict.fromkeys(("cwd", "log_file"), path_of),
    **dict.fromkeys(("additional_directories", "skills", "images"), _listed(path_of)),
    **dict.fromkeys(("additional_args", "command"), _listed(_as_text)),
    **dict.fromkeys(("timeout_seconds", "grace_seconds", "max_cost_usd"), _number),
    **dict.fromkeys(("max_turns", "iteration"), _whole),
    "fork_session": _flag, "stream_text": _flag, "on_permission": _maybe_function,
    "output_schema": _schema, "client_tools": _listed(function_of), "env": _variables,
    "mcp_servers": _servers,
}  # fmt: skip
