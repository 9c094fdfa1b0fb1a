"""A project's ``.mcp.json``: our server put in, every other byte left as it is."""

from __future__ import annotations

import json
from pathlib import Path

from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes.json_editor import JsonText
from swarm_mcp.runtimes.users_file import decoded, read, write_whole

SERVERS = "mcpServers"
NAME = "swarm"
ENTRY = {"command": "swarm-mcp", "args": ["serve"]}


def add_server(path: Path, replace: bool = False) -> str:
    """Put our server into the file at `path`; ``wrote`` (it is new), ``updated`` or ``skipped`` (it was there).

    An entry that already runs a command keeps its other keys; one of another kind is only replaced where
    `replace` says so. Raises SwarmError where the file is not what it should be; it is untouched then.
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
    return "updated" if text.strip() else "wrote"


def _with_entry(text: str, path: Path, replace: bool) -> str:
    """`text` with our entry in it."""
    if not text.strip():
        return json.dumps({SERVERS: {NAME: ENTRY}}, indent=2) + "\n"
    found = JsonText(text, strict=True)
    known = found.known_of((SERVERS, NAME))
    entry = found.tree[SERVERS][NAME] if known == 2 else None
    if entry is not None and not (isinstance(entry, dict) and "command" in entry) and not replace:
        raise SwarmError(f"{path} has a server {NAME!r} of another kind; --force replaces it")
    wanted = {**entry, **ENTRY} if isinstance(entry, dict) and "command" in entry else ENTRY
    return text if entry == wanted else found.text_with((SERVERS, NAME), wanted)
