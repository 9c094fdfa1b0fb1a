"""A project's ``.mcp.json``: our server put in, every other byte left as it is."""

from __future__ import annotations

import json
from pathlib import Path

from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes.json_editor import JsonText, list_of, object_of
from swarm_mcp.runtimes.server_name import NAME, NAMES, free_name
from swarm_mcp.runtimes.users_file import decoded, delete, read, write_whole

SERVERS = "mcpServers"
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
    if found.tree == {SERVERS: dict.fromkeys(names, ENTRY)}:
        delete(path)
        return
    text = found.text
    for name in names:
        text = JsonText(text, strict=True).text_without((SERVERS, name))
    write_whole(path, mark + text.encode("utf-8"))


def _ours(path: Path) -> tuple[list[str], JsonText | None, bytes]:
    """Return the names of our servers in the file, its content, and its byte order mark."""
    try:
        text, mark = decoded(read(path), path)
        found = JsonText(text, strict=True)
    except (SwarmError, ValueError):  # unreadable: not ours
        return [], None, b""
    servers = object_of(object_of(found.tree).get(SERVERS))
    return [name for name in NAMES if servers.get(name) == ENTRY], found, mark


def _with_entry(text: str, path: Path, replace: bool) -> str:
    """`text` with our entry in it."""
    if not text.strip():
        return json.dumps({SERVERS: {NAME: ENTRY}}, indent=2) + "\n"
    found = JsonText(text, strict=True)
    known = found.known_of((SERVERS, NAME))
    servers = {}
    if known:
        servers = found.tree[SERVERS]
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
    return found.text_with((SERVERS, name), wanted)


def _is_of_this_name(server: object) -> bool:
    """Return True if a server's command or arguments have ``swarm-mcp`` in them, as ours and the original's do."""
    if not isinstance(server, dict):
        return False
    args = server.get("args")
    return any("swarm-mcp" in str(word) for word in [server.get("command"), *(list_of(args))])
