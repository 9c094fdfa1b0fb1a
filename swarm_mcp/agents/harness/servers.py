"""The MCP servers of a child: swarm's own, those of the project's ``.mcp.json``, and those of the query.

``.mcp.json`` is Claude Code's format for a project (``{"mcpServers": {name: {"command", "args", "env", "cwd"} or
{"type": "http", "url", "headers"}}}``, with ``${NAME}`` and ``${NAME:-default}`` in its texts). It is read, never
written: a run's additions are in its own private files.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from swarm_mcp.agents.harness.environment import swarm_variables
from swarm_mcp.agents.harness.query import READ_ONLY, McpServer, Query, server_of
from swarm_mcp.agents.harness.scrub import passwords_in
from swarm_mcp.errors import Refused
from swarm_mcp.installation import coordinator_command

# The tools of swarm's own server that a read-only run has not: they write, or start a worker that may.
NOT_FOR_READERS = ("dispatch", "commit", "undo")
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
