"""The name that swarm's MCP server has in a client: `swarm`, or another where the user has a server called so.

A client takes one server of a name, and does not say that it has dropped the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes import users_file
from swarm_mcp.runtimes.base import Finding, Runtime
from swarm_mcp.runtimes.json_editor import JsonText, list_of, object_of
from swarm_mcp.runtimes.users_file import decoded, delete, read, read_record, read_text, tree_in, write_whole

NAME = "swarm"
OTHER_NAME = "swarm-locks"
NAMES = (NAME, OTHER_NAME, *(f"{OTHER_NAME}-{number}" for number in range(2, 10)))  # in the order of preference
SERVERS = "servers"  # the key of a bundle's record for its other names
_RUNS_SWARM = ("swarm-mcp", "swarm-locks", "swarm_mcp", "integrations/coordinator.sh")


def free_name(taken: Mapping[str, Path]) -> str:
    """Return the first of NAMES that is not `taken`; the first of all where every one is."""
    return next((name for name in NAMES if name not in taken), NAME)


def other_names(clients: list[Runtime], root: Path) -> dict[str, str]:
    """Return client -> the name of our server in it, for all where that is not NAME.

    A name that the bundle in `root` has already is kept while it is free: a project may have a server of that name.
    """
    named = in_bundle(root)
    for client in clients:
        taken = client.users_servers()
        if named.get(client.name, NAME) in taken:
            named[client.name] = free_name(taken)
    return {client: name for client, name in named.items() if name != NAME}


def in_bundle(root: Path) -> dict[str, str]:
    """Return client -> the name of our server, as `other_names` was when the bundle in `root` was written."""
    named = read_record(root).get(SERVERS)
    if isinstance(named, dict):
        return {str(client): str(name) for client, name in named.items()}
    return {}


def said(client: Runtime, root: Path) -> str:
    """Return a line on the user's server and ours, where the bundle in `root` has another name for ours; else empty."""
    name, there = in_bundle(root).get(client.name, NAME), client.users_servers().get(NAME)
    if name == NAME:
        return ""
    if there:
        why = f"{there} has an MCP server {NAME!r} of yours, which stays"
    else:
        why = f"another {NAME!r} was here"
    return f"swarm's MCP server is called {name!r} here: {why}"


def finding(client: Runtime, root: Path) -> Finding | None:
    """Return a finding on the name of our server in a client that runs the bundle in `root`, or None."""
    name = in_bundle(root).get(client.name, NAME)
    clash = client.users_servers().get(name)
    about = f"{client.name} server name"
    if clash is None:
        words = said(client, root)
        if words:
            return Finding(about, "ok", words)
        return None
    text = f"{clash} has an MCP server {name!r} of yours, and so has swarm: one of the two is missing in its sessions"
    return Finding(about, "warn", text, f"swarm-mcp install --client {client.name}")


def servers_in_json(key: str, *paths: Path, is_ours: Callable[[object], bool] | None = None) -> dict[str, Path]:
    """Return the names of the servers under `key` of JSON files, each with its file, without those that are ours.

    Of a name that several files have, the last one counts.
    """
    found: dict[str, Path] = {}
    for path in paths:
        try:
            servers = object_of(object_of(tree_in(path)).get(key))
        except SwarmError:  # unreadable: no name is taken
            continue
        found.update((name, path) for name, server in servers.items() if not (is_ours or runs_swarm)(server))
    return found


def servers_in_toml(path: Path, sign: str = "") -> dict[str, Path]:
    """Return the names of NAMES that servers have in the TOML file, each with the file, without a table with `sign`.

    Only the names are looked at: Python 3.10 has no parser of TOML.
    """
    try:
        text = read_text(path) or ""
    except SwarmError:  # unreadable: no name is taken
        return {}
    return {name: path for name in NAMES if users_file.is_foreign(text, "mcp_servers", name, sign)}


def runs_swarm(server: object) -> bool:
    """Return True if a client's entry of a server starts `swarm-mcp serve`, in any of its forms."""
    if not isinstance(server, dict):
        return False
    command, args = server.get("command"), server.get("args")
    words = [str(word) for part in (command, args) for word in (part if isinstance(part, list) else [part])]
    return "serve" in words and any(word.endswith(_RUNS_SWARM) for word in words)


# A project's ``.mcp.json``: our server put in, every other byte left as it is.

MCP_SERVERS = "mcpServers"
ENTRY = {"command": "swarm-mcp", "args": ["serve"]}


def add_server(path: Path, replace: bool = False) -> str:
    """Put our server into the file at `path`. Return ``wrote`` (it is new), ``updated`` or ``skipped`` (it was there).

    An entry `swarm` that starts a program of this name, such as the original's, keeps its other keys. Beside a server
    that is another program ours gets another name, unless `replace`. Raises SwarmError, and leaves the file alone, if
    it has another form.
    """
    raw = read(path)
    text, mark = decoded(raw, path)
    try:
        changed = _with_entry(text, path, replace)
    except ValueError as error:
        raise SwarmError(f"{path} {error}; nothing was changed") from None
    if changed == text:
        return "skipped"
    write_whole(path, mark + changed.encode("utf-8"))
    if text.strip():
        return "updated"
    return "wrote"


def has_server(path: Path) -> bool:
    """Return True if our server is in the file at `path`, as `add_server` puts it there."""
    return bool(_ours(path)[0])


def take_server(path: Path) -> None:
    """Take our server out of the file at `path`, and remove the file where nothing else is in it. Raises SwarmError."""
    names, found, mark = _ours(path)
    if found is None or not names:
        return
    if found.tree == {MCP_SERVERS: dict.fromkeys(names, ENTRY)}:
        delete(path)
        return
    text = found.text
    for name in names:
        text = JsonText(text, strict=True).text_without((MCP_SERVERS, name))
    write_whole(path, mark + text.encode("utf-8"))


def _ours(path: Path) -> tuple[list[str], JsonText | None, bytes]:
    """Return the names of our servers in the file, its content, and its byte order mark."""
    try:
        text, mark = decoded(read(path), path)
        found = JsonText(text, strict=True)
    except (SwarmError, ValueError):  # unreadable: not ours
        return [], None, b""
    servers = object_of(object_of(found.tree).get(MCP_SERVERS))
    return [name for name in NAMES if servers.get(name) == ENTRY], found, mark


def _with_entry(text: str, path: Path, replace: bool) -> str:
    """`text` with our entry in it."""
    if not text.strip():
        return json.dumps({MCP_SERVERS: {NAME: ENTRY}}, indent=2) + "\n"
    found = JsonText(text, strict=True)
    known = found.known_of((MCP_SERVERS, NAME))
    servers = {}
    if known:
        servers = found.tree[MCP_SERVERS]
    if known == 2 and not isinstance(servers[NAME], dict) and not replace:
        raise SwarmError(f"{path} has a server {NAME!r} that is no server; --force replaces it")
    if replace:
        taken = []
    else:
        taken = [name for name, server in servers.items() if not _is_of_this_name(server)]
    name = free_name(dict.fromkeys(taken, path))
    entry = servers.get(name)
    if isinstance(entry, dict) and "command" in entry:
        wanted = {**entry, **ENTRY}
    else:
        wanted = ENTRY
    if entry == wanted:
        return text
    return found.text_with((MCP_SERVERS, name), wanted)


def _is_of_this_name(server: object) -> bool:
    """Return True if a server's command or arguments have ``swarm-mcp`` in them, as ours and the original's do."""
    if not isinstance(server, dict):
        return False
    args = server.get("args")
    return any("swarm-mcp" in str(word) for word in [server.get("command"), *(list_of(args))])
