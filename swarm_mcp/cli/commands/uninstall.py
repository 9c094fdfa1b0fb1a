"""uninstall: take the plugin out of the agent clients, and remove what swarm keeps for itself

With all clients served, the marketplace folder goes too, and what swarm keeps for itself in the state folder. What is
yours stays, and is named: the store with its locks and messages, contents kept for `swarm-mcp restore`, records of
workers, config.json; and the git hooks of repositories, which go with `swarm-mcp guard uninstall` in each. While
workers run nothing of the state folder is removed.

example: swarm-mcp uninstall
"""

from __future__ import annotations

import os

from swarm_hook_core.settings import config_path
from swarm_hook_core.state import store_path
from swarm_mcp import state_folder
from swarm_mcp.cli.arguments import JSON, Arguments, Option, Usage
from swarm_mcp.cli.output import say, show
from swarm_mcp.errors import ClientFailed, SwarmError
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes import NAMES, chosen, runtime
from swarm_mcp.runtimes.owned_folder import remove
from swarm_mcp.server.handshake_cache import forget_records
from swarm_mcp.store import Store

USAGES = (
    Usage(
        Option(
            "--client NAMES",
            f"one client or several with commas between: {', '.join(NAMES)}; --host is another name for it"
            " (default: all that are found)",
            also="--host",
            source=(*NAMES, "all"),
        ),
        Option("--dry-run", "say what would be done"),
        JSON,
    ),
)


def run(args: Arguments) -> int:
    """Uninstall; exit 1 where a client could not be served."""
    wanted = args.value("--client") or args.value("--host")
    everyone = [runtime(name) for name in NAMES] if wanted in ("", "all") else chosen(wanted)
    clients = [found for found in everyone if found.program()]
    unreachable = [found for found in everyone if not found.program() and found.traces()]
    folder = marketplace_folder()
    everything = wanted in ("", "all")
    if not clients and not everything:
        raise SwarmError(f"the command of {wanted} was not found on PATH")
    if args.given("--dry-run") and args.json:
        names = [found.name for found in clients]
        show({"dry_run": True, "clients": names, "marketplace": str(folder) if everything else None})
        return 0
    if args.given("--dry-run"):
        for found in clients:
            say(f"would take the plugin out of {found.title}")
        if everything:
            say(f"would remove {folder}")
        return 0
    results: list[dict] = []
    for found in clients:
        try:
            results.append({"client": found.name, "ok": True, "steps": found.uninstall(), "error": None})
        except ClientFailed as error:
            results.append({"client": found.name, "ok": False, "steps": [], "error": str(error)})
    for found in unreachable:
        why = f"has the plugin, but its command `{found.executable}` is not on PATH: nothing was done to it"
        results.append({"client": found.name, "ok": False, "steps": [], "error": why})
    fine = all(result["ok"] for result in results)
    removed = everything and fine and remove(folder)
    working = everything and fine and _workers_run()
    if everything and fine and not working:
        forget_records()
        state_folder.remove_ours()
    if removed and folder.parent.is_dir() and not any(folder.parent.iterdir()):
        folder.parent.rmdir()
    left = _left() if everything else {}
    if args.json:
        show({"results": results, "marketplace_removed": removed, "left": list(left)})
        return 0 if fine else 1
    for result in results:
        for step in result["steps"] or ([result["error"]] if result["error"] else ["nothing was installed"]):
            say(f"{result['client']}: {step}")
    if removed:
        say(f"removed {folder}")
    elif not results:
        say("no agent client was found on PATH, and none has the plugin")
    if working:
        say("workers are running, so the state folder stays as it is: once they have ended, uninstall again")
    for path, what in left.items():
        say(f"left, for you to keep or to remove: {path}" + (f" ({what})" if what else ""))
    return 0 if fine else 1


def _workers_run() -> bool:
    """Whether workers of any checkout are running; their supervisors need the state folder."""
    if not os.path.exists(store_path()):
        return False
    try:
        with Store(read_only=True) as store:
            return bool(store.runs.live())
    except SwarmError:
        return False  # a broken store keeps nobody from uninstalling


def _left() -> dict[str, str]:
    """What stays behind, by its paths, each with a few words on what it is."""
    about = {store_path(): "the store: locks, messages, tasks", config_path(): "your settings"}
    return {**{path: what for path, what in about.items() if os.path.exists(path)}, **state_folder.left()}
