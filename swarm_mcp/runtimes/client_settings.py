"""The settings files of a client: the values in force, and the name that swarm's MCP server has among the user's.

A client reads its files as layers, a later one wins over an earlier one. It takes one server of a name, and does not
say that it has dropped the other: ours is called `swarm`, or otherwise where the user has a server called so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes import users_file
from swarm_mcp.runtimes.base import Finding, Runtime
from swarm_mcp.runtimes.json_editor import JsonText, list_of, object_of
from swarm_mcp.runtimes.users_file import decoded, delete, read, read_record, read_text, tree_in, write_whole

_ON = ("1", "true", "yes", "on")  # values of a variable, as Claude Code and Qwen Code read them


class Layer(NamedTuple):
    """The settings in one file, or variables of the environment, which has no `file`.

    `is_policy`: only an administrator of the machine changes it. `fault`: why it cannot be read.
    """

    file: str
    settings: dict[str, Any]
    is_policy: bool = False
    fault: str = ""


def read_layer(file: Path, is_policy: bool = False, parse: Callable[[str], Any] = json.loads) -> Layer:
    """Return the settings in a file. It has none if it is missing, or cannot be parsed: its client ignores it, too."""
    try:
        settings = object_of(parse(file.read_text(encoding="utf-8-sig", errors="replace")))
        return Layer(str(file), settings, is_policy)
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):  # nothing is set in it
        return Layer(str(file), {}, is_policy)
    except OSError as error:
        return Layer(str(file), {}, is_policy, str(error.strerror))


def with_comments(text: str) -> Any:
    """Parse JSON that may have comments. Raises ValueError."""
    return JsonText(text).tree


def last_of(layers: Sequence[Layer], *place: str, kind: type = bool) -> tuple[Any, Layer] | None:
    """Return the boolean at `place` that is in force, or the value of another `kind`, with its layer."""
    for layer in reversed(layers):
        found: Any = layer.settings
        for key in place:
            found = object_of(found).get(key)
        if isinstance(found, kind):
            return found, layer
    return None


def variable_layers(layers: Iterable[Layer]) -> list[Layer]:
    """Return the variables that each layer sets, as its member ``env`` has them."""
    return [layer._replace(settings=object_of(layer.settings.get("env"))) for layer in layers]


def environment_layer() -> Layer:
    """Return the variables of this process. A client that is started beside it has them, too."""
    return Layer("", dict(os.environ))


def variable_on(names: Sequence[str], sources: Sequence[Layer]) -> tuple[str, Layer] | None:
    """Return the first of the variables `names` that is on, with its layer, if there is one.

    The first of `sources` that sets a variable counts.
    """
    for name in names:
        source = next((source for source in sources if source.settings.get(name) not in (None, "")), None)
        if source and str(source.settings[name]).lower() in _ON:
            return name, source
    return None


def switched_off(client: str, layer: Layer, key: str, mend: str = "") -> Finding:
    """Return the finding that `key` in `layer` keeps the client from running hooks.

    The default `mend` takes the key away. A policy has no mend: only an administrator changes it.
    """
    name, what = f"{client} hooks", f"all hooks are switched off: {key}"
    if layer.is_policy:
        return Finding(name, "fail", f"{what} in {layer.file}, a policy that only an administrator can change")
    if layer.file:
        return Finding(name, "fail", f"{what} in {layer.file}", mend or f"take {key} out of {layer.file}")
    return Finding(name, "fail", f"{what} in the environment", mend or f"unset {key}")


def unread(client: str, layers: Sequence[Layer]) -> list[Finding]:
    """Return a finding about each layer that could not be read."""
    text = "cannot be read ({0}): hooks may be switched off in it"
    return [
        Finding(f"{client} settings", "warn", f"{layer.file} {text.format(layer.fault)}")
        for layer in layers
        if layer.fault
    ]


# The name of our MCP server.

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


def server_said(client: Runtime, root: Path) -> str:
    """Return a line on the user's server and ours, where the bundle in `root` has another name for ours; else empty."""
    name, there = in_bundle(root).get(client.name, NAME), client.users_servers().get(NAME)
    if name == NAME:
        return ""
    if there:
        why = f"{there} has an MCP server {NAME!r} of yours, which stays"
    else:
        why = f"another {NAME!r} was here"
    return f"swarm's MCP server is called {name!r} here: {why}"


def server_finding(client: Runtime, root: Path) -> Finding | None:
    """Return a finding on the name of our server in a client that runs the bundle in `root`, or None."""
    name = in_bundle(root).get(client.name, NAME)
    clash = client.users_servers().get(name)
    about = f"{client.name} server name"
    if clash is None:
        words = server_said(client, root)
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
