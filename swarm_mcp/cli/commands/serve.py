"""The commands that clients start: the server, and the hooks."""

from __future__ import annotations

import os

from swarm_mcp.cli.arguments import INTERNAL, MORE_SETUP, Arguments, Option, Usage, choice, verb
from swarm_mcp.hooks.session_hooks import HOOKS, end_within, run
from swarm_mcp.runtimes import NAMES
from swarm_mcp.server.app import run as serve_client


@verb(
    Usage(
        Option("--all-tools", "list all tools of the contract, as some front ends need them"),
        Option("--transport HOW", "of plugins of earlier releases; it changes nothing", hidden=True),
    ),
    group=MORE_SETUP,
)
def serve(args: Arguments) -> int:
    """serve: run the MCP server on standard input and output

    Clients start this from the installed plugin. A model is shown the tools that it needs; the others can be called by
    their names. It ends when its input closes, on SIGTERM or SIGINT, and when the
    client that started it is gone.

    example: swarm-mcp serve
    """
    # Some clients pass on `${NAME}` from their settings literally if the variable is not set.
    for name in [name for name, value in os.environ.items() if value == f"${{{name}}}"]:
        del os.environ[name]

    return serve_client(args.given("--all-tools"))


@verb(
    Usage(
        choice(*HOOKS, about="hook"),
        Option("--runtime NAME", "the client of the hook", choices=tuple(NAMES), required=True),
        Option("--within SECONDS", "be killed when that time is over", hidden=True),
    ),
    group=INTERNAL,
)
def hook(args: Arguments) -> int:
    """hook: run one of the plugin's hooks here, on standard input and output

    The same code that the plugin runs: the client's JSON payload on standard input, the answer on standard output,
    always exit code 0. For debugging, and for clients without a plugin of ours.

    example: swarm-mcp hook pre-tool-use --runtime codex < payload.json
    """
    if args.given("--within"):
        end_within(args.seconds("--within"))
    return run(args.words[0], args.value("--runtime"))
