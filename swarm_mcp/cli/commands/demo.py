"""demo: watch one session's lock deny another's write, in a temporary folder

Plays two sessions through the plugin's real hook processes, with a store of their own. Nothing of
yours is read or changed. Exit 1 when anything went other than it must.

example: swarm-mcp demo
"""

from __future__ import annotations

from swarm_mcp.cli.arguments import JSON, Arguments, Usage
from swarm_mcp.cli.output import say, say_text, show
from swarm_mcp.demo import play

USAGES = (Usage(JSON),)


def run(args: Arguments) -> int:
    """Play the demonstration."""
    if args.json:
        lines: list[str] = []
        fine = play(lines.append)
        show({"ok": fine, "scene": lines})
        return 0 if fine else 1
    fine = play(say_text)
    say()
    ending = "That is all it does. Put it into your clients with: swarm-mcp install"
    say(ending if fine else "This is not as it must be.")
    return 0 if fine else 1
