"""The MCP servers of a child: swarm's own, those of the project's ``.mcp.json``, and those of the query.

``.mcp.json`` is Claude Code's format for a project (``{"mcpServers": {name: {"command", "args", "env", "cwd"} or
{"type": "http", "url", "headers"}}}``, with ``${NAME}`` and ``${NAME:-default}`` in its texts). It is read, never
written: what a run adds to it is in the run's own private files.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from swarm_mcp.harness.query import McpServer, Query

OURS = "swarm"
PROJECT_FILE = ".mcp.json"
LARGEST_FILE = 1 << 20
# ``SWARM_HARNESS_PROJECT_SERVERS=0`` leaves them out: they are commands that a checkout brings along.
SWITCH = "SWARM_HARNESS_PROJECT_SERVERS"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SECRET = re.compile(r"key|token|secret|password|authorization|cookie|credential", re.IGNORECASE)
_HOLDS_A_SECRET = re.compile(r"key|token|secret|passw|pwd|auth|cookie|credential|dsn|_url$", re.IGNORECASE)
# Where a server of ours finds the same store, state and settings as this process. Codex gives servers nearly nothing.
_PASSED_ON = ("SWARM_DB_PATH", "SWARM_STATE_DIR", "SWARM_CONFIG_DIR", "SWARM_MCP_PROFILE_DIR", "AGENT_IDENTITY",
              "SWARM_IDENTITY", "SWARM_HERMES_IDENTITY", "SWARM_MCP_FILE_ROOT",
              "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")  # fmt: skip


def servers_for(query: Query) -> dict[str, McpServer]:
    """Return name -> server: the query's before ours, ours before the project's."""
    return {**project_servers(query.cwd, query.env), OURS: own_server(query), **query.mcp_servers}


def own_server(query: Query) -> McpServer:
    """Return the coordinator's server, speaking for the child: it adopts the instance that the run reserved."""
    from swarm_mcp.harness.environment import swarm_variables
    from swarm_mcp.installation import coordinator_command

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
        tree = json.loads(path.read_bytes()[:LARGEST_FILE]) if path else {}
    except (OSError, ValueError, RecursionError):
        return {}
    listed = tree.get("mcpServers") if isinstance(tree, dict) else None
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
        # It names commands to run: one that somebody else left in a shared folder above must not be taken.
        if path.is_file() and path.stat().st_uid in (os.getuid(), 0):
            return path
    return None


def _server(entry: object, values: Mapping[str, str]) -> McpServer | None:
    """One entry of the file; None where it is of a kind that not every harness can have (sse, ws)."""
    if not isinstance(entry, dict):
        return None
    kind = entry.get("type") or ("stdio" if entry.get("command") else "http")
    if kind == "stdio" and isinstance(entry.get("command"), str):
        args = entry.get("args")
        return McpServer(
            command=_plain(entry["command"], values),
            args=tuple(_plain(str(word), values) for word in args) if isinstance(args, list) else (),
            env=_expanded(entry.get("env"), values),
            cwd=_plain(str(entry.get("cwd") or ""), values),
        )
    if kind in ("http", "streamable-http", "streamableHttp") and isinstance(entry.get("url"), str):
        return McpServer(url=_plain(entry["url"], values), headers=_expanded(entry.get("headers"), values))
    return None


def _expanded(table: object, values: Mapping[str, str]) -> dict[str, str]:
    """The texts of an object with their variables put in; they travel by environment, so secrets may be in them."""
    items = table.items() if isinstance(table, dict) else ()
    return {str(name): _VARIABLE.sub(lambda m: _value(m, values), str(text)) for name, text in items}


def _plain(text: str, values: Mapping[str, str]) -> str:
    """`text` with its variables put in, but for those that are named like secrets: this may be seen in argv."""
    return _VARIABLE.sub(lambda m: m.group() if _SECRET.search(m.group(1)) else _value(m, values), text)


def _value(match: re.Match, values: Mapping[str, str]) -> str:
    default = match.group(2)
    return values.get(match.group(1)) or (match.group() if default is None else default)


# Starts a server in its own folder, which the settings of some harnesses cannot say.
IN_FOLDER = 'cd "$1" || exit 1; shift; exec "$@"'


def words_of(server: McpServer) -> list[str]:
    """Return the command of a server that is no address; where it has a folder, by way of a shell that goes there."""
    words = [server.command, *server.args]
    return ["/bin/sh", "-c", IN_FOLDER, "sh", server.cwd, *words] if server.cwd else words


class HiddenValues:
    """What the variables and headers of servers hold, in the child's environment: argv and files have names alone.

    `env` is made-up name -> value, for ``Launch.env``. A name ends in ``_SECRET`` where that of the variable or header
    tells of one, else in ``_VALUE``: scrubbing goes by that, and would take a folder's name out of every line.
    """

    def __init__(self) -> None:
        self.env: dict[str, str] = {}

    def name_for(self, server: str, purpose: str, value: str) -> str:
        """Return the name of a new variable with `value`, which `server` is to have as `purpose`."""
        end = "SECRET" if _HOLDS_A_SECRET.search(purpose) else "VALUE"
        stem = re.sub(r"[^A-Za-z0-9]", "_", f"{server}_{purpose}").upper()
        name = f"SWARM_RUN_{stem}_{len(self.env) + 1}_{end}"
        self.env[name] = value
        return name

    def names_for(self, server: str, values: Mapping[str, str]) -> dict[str, str]:
        """Return purpose -> name of the variable that holds its value."""
        return {purpose: self.name_for(server, purpose, value) for purpose, value in values.items()}

    def secrets(self) -> list[str]:
        """Return the names of those that hold secrets."""
        return [name for name in self.env if name.endswith("_SECRET")]
