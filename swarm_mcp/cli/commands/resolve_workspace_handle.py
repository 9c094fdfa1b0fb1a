"""resolve-workspace-handle: which session is in a terminal pane

Asks the workspace what the pane is called now and who is in it, and compares with what sessions have
published. Exit 0 also where no session matches.

example: swarm-mcp resolve-workspace-handle w1:p2
"""

from __future__ import annotations

from swarm_mcp.acting_session import viewer_identity
from swarm_mcp.cli.arguments import ACTING, Arguments, Option, Usage, Word
from swarm_mcp.cli.output import say, show
from swarm_mcp.scope import current_scope
from swarm_mcp.store import Store
from swarm_mcp.workspace.handles import resolve

USAGES = (
    Usage(
        Word("HANDLE", "the handle", source=()),
        Option("--backend NAME", "the program that has the pane (herdr)", source=("herdr",)),
        Option("--kind KIND", "what the handle names (pane)", source=("pane",)),
        *ACTING,
    ),
)


def run(args: Arguments) -> int:
    """Print the match."""
    handle = args.words[0]
    with Store() as store:
        viewer = viewer_identity(store, args)
        found = resolve(
            store, current_scope(args.value("--scope")), f"identity:{viewer}" if viewer else None,
            handle, args.value("--backend") or "herdr", args.value("--kind") or "pane",
        )  # fmt: skip
    if args.json:
        show(found)
        return 0
    name = f"{found['backend']}:{found['handle']}"
    trouble = f" ({found['probe_error']})" if found.get("probe_error") else ""
    if found["instance_id"]:
        (match,) = found["matches"]
        say(f"{name} is {found['instance_id']}  {match['label'] or '-'}  pane={found['canonical_handle']}{trouble}")
    elif found["ambiguous"]:
        say(f"{len(found['matches'])} sessions have published {name}{trouble}:")
        for match in found["matches"]:
            say(f"  {match['instance_id']}  {match['label'] or '-'}")
    else:
        say(f"{name} is no session's pane{trouble}")
    return 0
