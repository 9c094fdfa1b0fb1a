"""Several copies of swarm-mcp may be on a machine: the one that runs here, and the one of a client's plugin."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import swarm_mcp
from swarm_hook_core import own_release
from swarm_hook_core.coordinator import chosen_command, find_on_path
from swarm_hook_core.state import read_private
from swarm_hook_core.untrusted_text import one_line
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes.base import Finding, Runtime, object_in
from swarm_mcp.runtimes.bundle import COORDINATOR
from swarm_mcp.runtimes.fetched_release import is_launched
from swarm_mcp.runtimes.owned_folder import read_record


def which_copy() -> str:
    """Return the kind and the place of the copy that this process runs."""
    packages = os.path.dirname(os.path.dirname(os.path.abspath(swarm_mcp.__file__)))
    if os.path.exists(os.path.join(packages, "pyproject.toml")):
        return f"a checkout: {packages}"
    if is_launched(packages):
        return f"the plugin's own, fetched by uv: {packages}"
    return f"installed in {sys.prefix}"


def of_plugin(client: Runtime, root: Path) -> Finding:
    """Return the copy that the plugin of `client` in `root` runs as its server and registers sessions with."""
    name, install = f"{client.name} command", f"swarm-mcp install --client {client.name}"
    chosen, recorded = chosen_command(), _recorded(client, root)
    if chosen:
        return Finding(name, "info", f"SWARM_MCP_BIN: {' '.join(chosen)}")
    if recorded:
        if recorded == coordinator_command():
            return Finding(name, "ok", "this one, as `swarm-mcp install` has named it")
        missing = [word for word in recorded if os.path.isabs(word) and not os.path.exists(word)]
        if missing:
            return Finding(name, "fail", f"the plugin was installed with {missing[0]}, and that is gone", install)
        text = "another copy, named by `swarm-mcp install`"
        return Finding(name, "info", text, install, {"command": recorded})
    on_path, other = find_on_path()
    if on_path:
        return Finding(name, "ok", f"found on PATH: {on_path}")
    fetched = own_release.command()
    if fetched:
        return Finding(name, "ok", f"the plugin's own, fetched by uv: {fetched[0]}")
    if own_release.uv() and own_release.is_wanted():
        said = _last_attempt()
        if said:
            return Finding(name, "warn", f"none; uv could not fetch it: {said}", f"see {own_release.log()}")
        return Finding(name, "info", "none yet; the next session's start has uv fetch it")
    text = "none"
    if other:
        text = f"none: {other} is another program"
    return Finding(name, "warn", f"{text}; its sessions can lock nothing", "pipx install swarm-locks")


def _last_attempt() -> str:
    """The first line that uv has said of its last attempt to fetch the release; empty where it has said nothing."""
    try:
        said = read_private(own_release.log(), 4096).decode("utf-8", "replace")
    except OSError:  # no attempt yet
        return ""
    return one_line(said.strip().partition("\n")[0])


def _recorded(client: Runtime, root: Path) -> list[str]:
    """The command that `swarm-mcp install` has named in a plugin; empty where that looks for one.

    Codex's copy has no record of it, but its server is started so.
    """
    record = read_record(root).get("coordinator")
    if isinstance(record, list) and record:
        return [str(word) for word in record]
    servers = object_in(root / client.folder / "mcp.json").get("mcpServers")
    server = None
    if isinstance(servers, dict):
        server = next(iter(servers.values()), None)
    if not isinstance(server, dict) or not isinstance(server.get("args"), list):
        return []
    words = [str(server.get("command")), *map(str, server["args"])]
    if "serve" not in words or any(word.endswith(COORDINATOR) for word in words):
        return []
    return words[: words.index("serve")]
