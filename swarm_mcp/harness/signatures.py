"""What a Python function tells of itself to a model: name, description, and a JSON schema of its arguments."""

from __future__ import annotations

import enum
import inspect
import re
import types
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from swarm_mcp.errors import Refused

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ABOUT = re.compile(r"\s*(?::param\s+)?(\w+)\s*(?:\([^)]*\))?\s*:\s+(\S.*)")


class ClientTool(NamedTuple):
    """A function as a tool: `schema` describes an object with its arguments, `call` takes those by name."""

    name: str
    description: str
    schema: dict
    call: Callable

    def listed(self) -> dict:
        """Return the tool as MCP's ``tools/list`` shows it."""
        return {"name": self.name, "description": self.description, "inputSchema": self.schema}


def tool_of(function: Callable) -> ClientTool:
    """Return the tool that `function` is. Raises Refused without a plain name, or with unnamed arguments."""
    name = getattr(function, "__name__", "")
    if not _NAME.fullmatch(name):
        raise Refused(f"{name[:40] or function!r} cannot be the name of a tool; define it with def")
    try:
        hints = get_type_hints(function)
    except Exception:
        hints = {}
    text = inspect.getdoc(function) or ""
    about = {match.group(1): match.group(2) for match in map(_ABOUT.fullmatch, text.splitlines()) if match}
    properties, required = {}, []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise Refused(f"{name} cannot be a tool: its argument {parameter.name} cannot be given by name")
        described = schema_of(hints.get(parameter.name, Any))
        if parameter.name in about:
            described["description"] = about[parameter.name]
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif _is_json(parameter.default):
            described["default"] = parameter.default
        properties[parameter.name] = described
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return ClientTool(name, text or name, schema, function)


def schema_of(kind: Any) -> dict:
    """Return the JSON schema of an annotation; an empty one (anything) where it says nothing that JSON could."""
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(inner)}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [one.value for one in kind]}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(one) for one in inner]}
    base = origin or kind
    if isinstance(base, type) and issubclass(base, Mapping):
        values = schema_of(inner[1]) if len(inner) == 2 else {}
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    if isinstance(base, type) and issubclass(base, Collection) and base not in (bytes, bytearray):
        items = schema_of(inner[0]) if inner else {}
        return {"type": "array", **({"items": items} if items else {})}
    return {}


def complaint_about(arguments: Mapping[str, Any], schema: dict) -> str:
    """Return what is wrong with the arguments of a call, in one line; empty where they can be given to the function."""
    properties = schema["properties"]
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    if missing:
        return f"missing argument: {', '.join(missing)}"
    unknown = [name for name in arguments if name not in properties]
    if unknown:
        return f"unknown argument: {', '.join(unknown)}; there are {', '.join(properties) or 'none'}"
    for name, value in arguments.items():
        if not _fits(value, properties[name]):
            return f"{name} does not fit {_shown(properties[name])}"
    return ""


def _fits(value: Any, schema: dict) -> bool:
    if "enum" in schema:
        return value in schema["enum"]
    if "anyOf" in schema:
        return any(_fits(value, one) for one in schema["anyOf"])
    kind = schema.get("type")
    if kind == "array":
        return isinstance(value, list) and all(_fits(one, schema.get("items", {})) for one in value)
    if kind == "object":
        values = schema.get("additionalProperties", {})
        return isinstance(value, dict) and all(_fits(one, values) for one in value.values())
    if kind in ("integer", "number"):
        return not isinstance(value, bool) and isinstance(value, (int, float) if kind == "number" else int)
    wanted = {"string": str, "boolean": bool, "null": type(None)}.get(str(kind))
    return wanted is None or isinstance(value, wanted)


def _shown(schema: dict) -> str:
    return str({name: value for name, value in schema.items() if name not in ("description", "default")})


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))
