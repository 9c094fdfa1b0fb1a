"""The front page of `swarm-mcp` without arguments at a terminal: the state of this checkout, and the first commands."""

from __future__ import annotations

from swarm_mcp import __version__
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, START, Arguments, Usage, parse
from swarm_mcp.cli.help_page import group_page
from swarm_mcp.cli.output import line_width, listing, say, say_help
from swarm_mcp.cli.reader import Reader
from swarm_mcp.cli.words import count
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import current_scope
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.sessions.acting import viewer_identity
from swarm_mcp.store import Store

MOST_LOCKS = 5  # the whole page shall fit a terminal of 24 lines


def show_front_page() -> int:
    """Say it; the exit code."""
    args = parse("", [Usage(ABSOLUTE, *ACTING)], [])
    say(f"swarm-mcp {__version__} in {current_scope()}")
    code = 0
    try:
        _say_standing(args)
    except SwarmError as error:
        say(f"The state cannot be read: {error}. Next: swarm-mcp doctor")
        code = 1
    say()
    say_help(group_page(START, line_width()))
    say()
    say("`swarm-mcp help` lists all commands, `swarm-mcp COMMAND --help` explains one.")
    return code


def _say_standing(args: Arguments) -> None:
    scope = current_scope()
    with Store(read_only=True) as store:
        viewer, waiting = viewer_identity(store, args), store.queue.lengths()
        reader = Reader(args, store, viewer)
        sessions = store.instances.count(scope)
        total, locks = store.locks.foremost(scope, viewer, MOST_LOCKS, reader.own_id, waiting)
        shown = [(reader.path(lock["file"]), reader.holder(lock), reader.when(lock["created_at"])) for lock in locks]
    if not sessions and not total:
        say(f"No sessions and no locks here. {_first_step()}")
        return
    say(f"{count(sessions, 'session')}, {count(total, 'lock')}")
    listing(
        ("file", "who", "since", "waits"),
        [(*row, waiting.get(lock["id"], "")) for row, lock in zip(shown, locks)],
        [f"  {file}  by {who}, {since}" for file, who, since in shown],
    )
    if total > len(locks):
        say(f"and {count(total - len(locks), 'more lock')}: swarm-mcp locks")


def _first_step() -> str:
    if marketplace_folder().exists():
        return "An agent that you start here takes part by itself."
    return "Begin with: swarm-mcp install"
