"""The MCP servers of a child: swarm's own, the project's, the query's, and Python functions of a caller.

``.mcp.json`` is Claude Code's format for a project (``{"mcpServers": {name: {"command", "args", "env", "cwd"} or
{"type": "http", "url", "headers"}}}``, with ``${NAME}`` and ``${NAME:-default}`` in its texts). It is read, never
written: a run's additions are in its own private files.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import json
import os
import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from swarm_mcp.agents.harness.environment import swarm_variables
from swarm_mcp.agents.harness.query import READ_ONLY, McpServer, Query, server_of
from swarm_mcp.agents.harness.scrub import passwords_in
from swarm_mcp.errors import Refused
from swarm_mcp.installation import coordinator_command
from swarm_mcp.mcp.protocol import INVALID_PARAMS, ProtocolError, fits
from swarm_mcp.mcp.server import Call, HttpServer, Method, Server

# The tools of swarm's own server that a read-only run has not: they write, or start a worker that may.
NOT_FOR_READERS = ("dispatch", "commit", "undo", "try")
OURS, CLIENT_TOOLS = "swarm", "client_tools"
PROJECT_FILE = ".mcp.json"
LARGEST_FILE = 1 << 20
# ``SWARM_HARNESS_PROJECT_SERVERS=0`` leaves them out: they are commands that a checkout brings along.
SWITCH = "SWARM_HARNESS_PROJECT_SERVERS"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SECRET = re.compile(r"key|token|secret|password|authorization|cookie|credential", re.IGNORECASE)
_HOLDS_A_SECRET = re.compile(r"key|token|secret|passw|pwd|auth|cookie|credential|dsn", re.IGNORECASE)
# Where a server of ours finds the same store, state and settings as this process. Codex gives servers nearly nothing.
_PASSED_ON = ("SWARM_DB_PATH", "SWARM_STATE_DIR", "SWARM_CONFIG_DIR", "SWARM_MCP_PROFILE_DIR", "AGENT_IDENTITY",
              "SWARM_IDENTITY", "SWARM_HERMES_IDENTITY", "SWARM_MCP_FILE_ROOT",
              "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")  # fmt: skip


def servers_for(query: Query) -> dict[str, McpServer]:
    """Return name -> server: the query's before ours, ours before the project's."""
    return {**project_servers(query.cwd, query.env), OURS: own_server(query), **query.mcp_servers}


def names_in_mode(query: Query) -> list[str]:
    """Return the names of the servers that a run in the query's mode may have: of a read-only one, ours alone."""
    return [name for name in query.mcp_servers if query.mode != READ_ONLY or name in (OURS, CLIENT_TOOLS)]


def own_server(query: Query) -> McpServer:
    """Return the coordinator's server, speaking for the child: it adopts the instance that the run reserved."""
    command, *args = [*coordinator_command(), "serve"]
    env = {name: os.environ[name] for name in _PASSED_ON if os.environ.get(name, "").strip()}
    env.update({name: query.env[name] for name in _PASSED_ON if query.env.get(name, "").strip()})
    env.update(swarm_variables(query), SWARM_MCP_DIRECTORY=query.cwd)
    return McpServer(command, tuple(args), env)


def project_servers(cwd: str, env: Mapping[str, str] = {}) -> dict[str, McpServer]:
    """Return the servers of the nearest ``.mcp.json`` at or above `cwd`; `env` comes before this process's."""
    if os.environ.get(SWITCH, "").strip().lower() in ("0", "false", "no", "off"):
        return {}
    try:
        path = project_file(cwd)
        if path:
            tree = json.loads(path.read_bytes()[:LARGEST_FILE])
        else:
            tree = {}
    except (OSError, ValueError, RecursionError):  # broken: checks report it
        return {}
    if isinstance(tree, dict):
        listed = tree.get("mcpServers")
    else:
        listed = None
    values = {**os.environ, **env}
    found = {}
    for name, entry in listed.items() if isinstance(listed, dict) else ():
        server = _server(entry, values)
        if server and name != OURS:
            found[name] = server
    return found


def project_file(cwd: str) -> Path | None:
    """Return the nearest ``.mcp.json`` at or above `cwd` that is this user's own, or root's; else None."""
    folder = Path(os.path.abspath(cwd))
    for path in (parent / PROJECT_FILE for parent in (folder, *folder.parents)):
        # It names commands to run: a file of another user in a shared folder above must not be taken.
        if path.is_file() and path.stat().st_uid in (os.getuid(), 0):
            return path
    return None


def servers_in(listed: Mapping[str, object], values: Mapping[str, str]) -> dict[str, McpServer]:
    """Return name -> server of a list in the form of ``.mcp.json``, with `values` put in for their names.

    Raises Refused for an entry that some harness could not have.
    """
    found = {str(name): _server(entry, values) for name, entry in listed.items()}
    odd = next((name for name, server in found.items() if server is None), None)
    if odd is not None:
        raise Refused(f"the MCP server {odd[:60]!r} has neither a command nor an address that harnesses could use")
    return {name: server for name, server in found.items() if server}


def _server(entry: object, values: Mapping[str, str]) -> McpServer | None:
    """Return one entry's server, with its variables put in; None for an invalid entry."""
    server = server_of(entry)
    return server and McpServer(
        command=_plain(server.command, values),
        args=tuple(_plain(word, values) for word in server.args),
        env=_expanded(server.env, values),
        cwd=_plain(server.cwd, values),
        url=_plain(server.url, values),
        headers=_expanded(server.headers, values),
    )


def _expanded(table: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """Texts with their variables put in; they travel by environment, so secrets may be in them."""
    return {name: _VARIABLE.sub(lambda m: _value(m, values), text) for name, text in table.items()}


def _plain(text: str, values: Mapping[str, str]) -> str:
    """`text` with its variables put in, but for those that are named like secrets: this may be seen in argv."""
    return _VARIABLE.sub(lambda m: m.group() if _SECRET.search(m.group(1)) else _value(m, values), text)


def _value(match: re.Match[str], values: Mapping[str, str]) -> str:
    default = match.group(2)
    return values.get(match.group(1)) or (match.group() if default is None else default)


# Starts a server in its own folder, for harnesses without a setting for that.
IN_FOLDER = 'cd "$1" || exit 1; shift; exec "$@"'


def words_of(server: McpServer) -> list[str]:
    """Return the command of a server that is no address; where it has a folder, by way of a shell that goes there."""
    words = [server.command, *server.args]
    if server.cwd:
        return ["/bin/sh", "-c", IN_FOLDER, "sh", server.cwd, *words]
    return words


class HiddenValues:
    """The values of servers' variables and headers, in the child's environment: argv and files have names alone.

    `env` is made-up name -> value, for ``Launch.env``. A name ends in ``_SECRET`` for a variable or header with a
    secret-like name, or a value with a password, else in ``_VALUE``: scrubbing goes by that, and would otherwise remove
    the name of a folder, or an address, from every line.
    """

    def __init__(self) -> None:
        self.env: dict[str, str] = {}

    def name_for(self, server: str, purpose: str, value: str) -> str:
        """Return the name of a new variable with `value`, for `server` as its `purpose`."""
        if _HOLDS_A_SECRET.search(purpose) or passwords_in(value):
            end = "SECRET"
        else:
            end = "VALUE"
        stem = re.sub(r"[^A-Za-z0-9]", "_", f"{server}_{purpose}").upper()
        name = f"SWARM_RUN_{stem}_{len(self.env) + 1}_{end}"
        self.env[name] = value
        return name

    def names_for(self, server: str, values: Mapping[str, str]) -> dict[str, str]:
        """Return purpose -> name of the variable that holds its value."""
        return {purpose: self.name_for(server, purpose, value) for purpose, value in values.items()}

    def names_in(self, name: str, server: McpServer) -> dict[str, str]:
        """Return the same for the headers of a server behind an address, else for its variables."""
        if server.url:
            return self.names_for(name, server.headers)
        return self.names_for(name, server.env)

    def secrets(self) -> list[str]:
        """Return the names of those that hold secrets."""
        return [name for name in self.env if name.endswith("_SECRET")]


# Python functions of this process as tools of a child, served over MCP on a loopback port.

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
