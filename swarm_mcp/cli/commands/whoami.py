"""whoami: the session this command would act as

WHO is an instance id, the beginning of one, or part of a label. Without it: SWARM_MCP_INSTANCE_ID,
else the session whose shell this is, else the only session of the scope.

example: swarm-mcp whoami --json
"""

from __future__ import annotations

from swarm_mcp.acting_session import find_acting_session
from swarm_mcp.cli.arguments import ACTING, Arguments, Usage
from swarm_mcp.cli.output import say, show
from swarm_mcp.store import Store
from swarm_mcp.views import registration

USAGES = (Usage(*ACTING),)


def run(args: Arguments) -> int:
    """Print the acting instance."""
    with Store(read_only=True) as store:
        row = find_acting_session(store, args)
    if args.json:
        show(registration(row))
    else:
        say(f"{row.id}  {row.label or '-'}  scope={row.scope}")
    return 0
