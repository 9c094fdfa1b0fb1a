"""Python functions of this process as tools of a child, served over MCP on a loopback port."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import json
import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from swarm_mcp.agents.harness.query import McpServer
from swarm_mcp.agents.harness.servers import CLIENT_TOOLS
from swarm_mcp.errors import Refused
from swarm_mcp.mcp.http_server import HttpServer
from swarm_mcp.mcp.protocol import INVALID_PARAMS, ProtocolError
from swarm_mcp.mcp.schema import fits
from swarm_mcp.mcp.server import Call, Server

if TYPE_CHECKING:
    from swarm_mcp.mcp.server import Method

DEFAULT_VERSION = "2025-06-18"  # of the protocol, for a child that asks for an unknown one
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ABOUT = re.compile(r"\s*(?::param\s+)?(\w+)\s*(?:\([^)]*\))?\s*:\s+(\S.*)")


class ClientTool(NamedTuple):
    """A function as a tool: `schema` describes an object with its arguments, `call` takes those by name."""

    name: str
    description: str
    schema: dict[str, Any]
    call: Callable[..., Any]

    def listed(self) -> dict[str, Any]:
        """Return the tool as MCP's ``tools/list`` shows it."""
        return {"name": self.name, "description": self.description, "inputSchema": self.schema}


def tool_of(function: Callable[..., Any]) -> ClientTool:
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
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError as error:  # some of C, `print` before Python 3.11
        raise Refused(f"{name} cannot be a tool: Python does not say what its arguments are") from error
    properties, required = {}, []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise Refused(f"{name} cannot be a tool: its argument {parameter.name} cannot be given by name")
        described = schema_of(hints.get(parameter.name, Any))
        if parameter.name in about:
            described["description"] = about[parameter.name]
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif parameter.default is None or isinstance(parameter.default, (str, int, float, bool)):
            described["default"] = parameter.default
        properties[parameter.name] = described
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return ClientTool(name, text or name, schema, function)


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of an annotation; an empty one (anything) where it says nothing that JSON could."""
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        fields = {one.name: schema_of(hints[one.name]) for one in dataclasses.fields(kind) if one.init}
        return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(inner)}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [one.value for one in kind]}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(one) for one in inner]}
    base = origin or kind
    if isinstance(base, type) and issubclass(base, Mapping):
        if len(inner) == 2:
            values = schema_of(inner[1])
        else:
            values = {}
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    if isinstance(base, type) and issubclass(base, Collection) and base not in (bytes, bytearray):
        if inner:
            items = schema_of(inner[0])
        else:
            items = {}
        return {"type": "array", **({"items": items} if items else {})}
    return {}


def complaint_about(arguments: Mapping[str, Any], schema: dict[str, Any]) -> str:
    """Return the first mistake in the arguments of a call, in one line; empty if the function can take them."""
    properties = schema["properties"]
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    if missing:
        return f"missing argument: {', '.join(missing)}"
    unknown = [name for name in arguments if name not in properties]
    if unknown:
        return f"unknown argument: {', '.join(unknown)}; there are {', '.join(properties) or 'none'}"
    for name, value in arguments.items():
        if not fits(value, properties[name]):
            return f"{name} does not fit {_shown(properties[name])}"
    return ""


def _shown(schema: dict[str, Any]) -> str:
    return str({name: value for name, value in schema.items() if name not in ("description", "default")})


class ToolServer:
    """The tools of one run. ``with ToolServer(functions) as tools:`` the child is given ``tools.server``."""

    def __init__(self, functions: Iterable[Callable[..., Any]]):
        """Raises Refused where one of the functions cannot be a tool, or two have one name."""
        self.tools: dict[str, ClientTool] = {}
        for tool in map(tool_of, functions):
            if tool.name in self.tools:
                raise Refused(f"two client tools are called {tool.name!r}")
            self.tools[tool.name] = tool
        methods: dict[str, Method] = {"tools/list": self._list, "tools/call": self._call}
        self._http = HttpServer(
            Server({"name": CLIENT_TOOLS, "version": "1"}, {"tools": {}}, methods, "", DEFAULT_VERSION)
        )

    def start(self) -> ToolServer:
        """Listen on a free port of 127.0.0.1."""
        self._http.start()
        return self

    def stop(self) -> None:
        """Stop listening and drop open connections; a running call goes on without a listener. May be called often."""
        self._http.stop()

    def __enter__(self) -> ToolServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def server(self) -> McpServer:
        """Return how a child reaches the server. Adapters hand the header with the token over by the environment."""
        return McpServer(url=self._http.url, headers=self._http.headers)

    def _list(self, _call: Call) -> dict[str, Any]:
        return {"tools": [tool.listed() for tool in self.tools.values()]}

    def _call(self, call: Call) -> dict[str, Any]:
        name = call.params["name"]
        if name not in self.tools:
            raise ProtocolError(INVALID_PARAMS, f"there is no tool {name[:60]!r}")
        return outcome_of(self.tools[name], call.params.get("arguments") or {})


def with_tools(servers: Mapping[str, McpServer], tools: ToolServer) -> dict[str, McpServer]:
    """Return the servers of a child and the tool server. Another server of its name is left out."""
    return {**servers, CLIENT_TOOLS: tools.server}


def outcome_of(tool: ClientTool, arguments: object) -> dict[str, Any]:
    """Return the result of a call, as MCP has it. An exception of the function is an error for the model to read."""
    if not isinstance(arguments, dict):
        return _content("the arguments must be an object", True)
    complaint = complaint_about(arguments, tool.schema)
    if complaint:
        return _content(complaint, True)
    try:
        value = tool.call(**arguments)
        if inspect.iscoroutine(value):
            import asyncio  # a quarter of a supervisor's start

            value = asyncio.run(value)
        if isinstance(value, str):
            text = value
        else:
            text = json.dumps(value, ensure_ascii=False, default=str)
    except Exception as error:
        return _content(f"{type(error).__name__}: {error}", True)
    return _content(text, False)


def _content(text: str, is_error: bool) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}
