"""The types of a ``Query`` from a Python caller: obvious conversions are made, all else is refused by name.

A path is taken for its text, a list for a tuple, a number for a text where text is wanted, and an MCP server in the
form of ``.mcp.json`` for an ``McpServer``.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import os
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from swarm_mcp.agents.harness.query import EFFORTS, MODES, McpServer, Query, server_of
from swarm_mcp.agents.harness.servers import schema_of, tool_of
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


# Answers by schema as Python objects: dataclasses, and pydantic models if the caller has pydantic.

T = TypeVar("T")
_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null"}


def structured(kind: type[T], value: object) -> T:
    """Return the JSON `value` as a `kind`. Raises Refused, naming the field, where it does not fit."""
    _require_model(kind)
    if dataclasses.is_dataclass(kind):
        made: T = _read(kind, value, kind.__name__)
        return made
    try:
        validated: T = kind.model_validate(value)  # type: ignore[attr-defined]
    except ValueError as error:  # pydantic's ValidationError is one
        raise Refused(f"the answer is no {kind.__name__}: {error}") from error
    return validated


def schema_for(kind: type) -> dict[str, Any]:
    """Return the JSON schema of a dataclass or pydantic model. Every field is required, and no other is allowed."""
    _require_model(kind)
    if dataclasses.is_dataclass(kind):
        return schema_of(kind)
    found: dict[str, Any] = _strict(kind.model_json_schema())  # type: ignore[attr-defined]
    return found


def is_model(kind: object) -> bool:
    """Return True for a dataclass or a pydantic model, not for an instance of one."""
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or hasattr(kind, "model_validate"))


def _require_model(kind: object) -> None:
    if not is_model(kind):
        raise Refused(f"structured wants a dataclass or a pydantic model, not {getattr(kind, '__name__', kind)}")


def _strict(schema: Any) -> Any:
    """Return a schema in the form that every harness takes: Codex refuses optional fields, and open objects."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _strict(value) for name, value in schema.items()}
    if isinstance(made.get("properties"), dict) and made.get("type") == "object":
        made.setdefault("additionalProperties", False)
        made["required"] = list(made["properties"])
    return made


def _read(kind: Any, value: Any, place: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        if value in inner:
            return value
        raise _unfit(place, f"one of {', '.join(map(str, inner))}", value)
    if origin in (Union, types.UnionType):
        return _read_any(inner, value, place)
    base = origin or kind
    if base in (Any, object) or not isinstance(base, type):
        return value
    if dataclasses.is_dataclass(base):
        return _read_dataclass(base, value, place)
    if issubclass(base, enum.Enum):
        try:
            return base(value)
        except ValueError:
            raise _unfit(place, f"one of {', '.join(str(one.value) for one in base)}", value) from None
    if base in _NAMES:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if base is float and is_number:
            return float(value)
        if type(value) is base:
            return value
        raise _unfit(place, _NAMES[base], value)
    if issubclass(base, Mapping):
        if not isinstance(value, Mapping):
            raise _unfit(place, "an object", value)
        return {name: _read(inner[1] if inner else Any, one, f"{place}[{name!r}]") for name, one in value.items()}
    if issubclass(base, Collection):
        return _read_collection(base, inner, value, place)
    raise Refused(f"{place} has a type that no JSON can be read as: {base.__name__}")


def _read_any(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    refused = []
    # An exact type comes first: True is no whole number, and 1 no 1.0.
    for kind in sorted(kinds, key=lambda kind: kind is not type(value)):
        try:
            return _read(kind, value, place)
        except Refused as error:
            refused.append(error)
    raise refused[0]


def _read_dataclass(kind: type, value: Any, place: str) -> Any:
    if not isinstance(value, Mapping):
        raise _unfit(place, "an object", value)
    hints, given = get_type_hints(kind), {}
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        if field.name in value:
            given[field.name] = _read(hints[field.name], value[field.name], f"{place}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise Refused(f"the answer lacks {place}.{field.name}")
    return kind(**given)


def _read_collection(base: type, inner: tuple[Any, ...], value: Any, place: str) -> Any:
    if not isinstance(value, list):
        raise _unfit(place, "a list", value)
    if base is tuple and inner and inner[-1] is not Ellipsis:
        if len(inner) != len(value):
            raise _unfit(place, f"a list of {len(inner)}", value)
        return tuple(_read(kind, one, f"{place}[{at}]") for at, (kind, one) in enumerate(zip(inner, value)))
    made = [_read(inner[0] if inner else Any, one, f"{place}[{at}]") for at, one in enumerate(value)]
    if base in (tuple, set, frozenset):
        return base(made)
    return made


def _unfit(place: str, wanted: str, value: object) -> Refused:
    return Refused(f"{place} of the answer wants {wanted}, not {type(value).__name__}")
