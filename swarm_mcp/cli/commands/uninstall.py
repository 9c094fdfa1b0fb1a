"""uninstall: take the plugin out of the agent clients, leaving nothing behind

usage: swarm-mcp uninstall [--client claude-code|codex|pi|hs|all] [--dry-run] [--json]

With all clients served, the marketplace folder goes too. What is yours stays: the store with its locks and
messages, contents kept for `swarm-mcp restore`, config.json; and the git hooks of repositories, which go with
`swarm-mcp guard uninstall` in each.

example: swarm-mcp uninstall
"""

from __future__ import annotations

import os

from swarm_hook_core.settings import config_path
from swarm_hook_core.state import store_path
from swarm_hook_core.watching import kept
from swarm_mcp import bundle
from swarm_mcp.cli.output import say, show
from swarm_mcp.clients import NAMES, chosen, client
from swarm_mcp.clients.folder import marketplace_folder
from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.server.opening import forget_records

WORDS = 0


def run(args) -> int:
    """Uninstall; exit 1 where a client could not be served."""
    wanted = args.value("--client") or args.value("--host")
    everyone = [client(name) for name in NAMES] if wanted in ("", "all") else chosen(wanted)
    clients = [found for found in everyone if found.program()]
    unreachable = [found for found in everyone if not found.program() and found.traces()]
    folder = marketplace_folder()
    everything = wanted in ("", "all")
    if not clients and not everything:
        raise SwarmError(f"the command of {wanted} was not found on PATH")
    if args.has("--dry-run") and args.json:
        names = [found.name for found in clients]
        show({"dry_run": True, "clients": names, "marketplace": str(folder) if everything else None})
        return 0
    if args.has("--dry-run"):
        for found in clients:
            say(f"would take the plugin out of {found.title}")
        if everything:
            say(f"would remove {folder}")
        return 0
    results = []
    for found in clients:
        try:
            results.append({"client": found.name, "ok": True, "steps": found.uninstall(), "error": None})
        except ClientFailed as error:
            results.append({"client": found.name, "ok": False, "steps": [], "error": str(error)})
    for found in unreachable:
        error = f"has the plugin, but its command `{found.executable}` is not on PATH: nothing was done to it"
        results.append({"client": found.name, "ok": False, "steps": [], "error": error})
    fine = all(result["ok"] for result in results)
    removed = everything and fine and bundle.remove(folder)
    if everything and fine:
        forget_records()
    if removed and folder.parent.is_dir() and not any(folder.parent.iterdir()):
        folder.parent.rmdir()
    if args.json:
        show({"results": results, "marketplace_removed": removed})
        return 0 if fine else 1
    for result in results:
        for step in result["steps"] or ([result["error"]] if result["error"] else ["nothing was installed"]):
            say(f"{result['client']}: {step}")
    if removed:
        say(f"removed {folder}")
        for path in filter(os.path.exists, (store_path(), kept.folder(), config_path())):
            say(f"left, for you to keep or to remove: {path}")
    elif not results:
        say("no agent client was found on PATH, and none has the plugin: nothing to do")
    return 0 if fine else 1

