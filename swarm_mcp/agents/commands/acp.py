"""The relay between an editor and an agent that speaks the Agent Client Protocol."""

from __future__ import annotations

import os

from swarm_mcp.agents.acp.guard import Guard
from swarm_mcp.agents.acp.relay import Relay
from swarm_mcp.cli.arguments import MORE_SETUP, Arguments, Option, Usage, Word, verb
from swarm_mcp.cli.output import complain

CANNOT_RUN, NOT_FOUND = 126, 127


@verb(
    Usage(
        Word("AGENT", "the agent's command", repeated=True, behind=True),
        Option("--grace SECONDS", "time for the agent to end with the editor, and again after TERM (default: 10)"),
    ),
    group=MORE_SETUP,
)
def acp(args: Arguments) -> int:
    """acp: stand between an editor and an agent without hooks, and check its writes

    For agents that speak the Agent Client Protocol on their standard streams. An editor is given this command in place
    of the agent's (docs/clients.md). All messages pass unchanged, but a write of a file, a terminal's command, or a
    request for permission to do either that meets another session's lock or uncommitted work: the agent is refused it,
    with the reason. A model that cannot read the reason at once gets it before the next prompt. A terminal's
    command gets a variable, by which `swarm-mcp` knows its session there. Each of the agent's sessions is registered
    while it is open; hooks of swarm in the agent share it. A write that the agent makes without asking is not refused.

    Exit: the agent's own code, or 128 and the number of the signal that ended it; 126 the agent cannot be run; 127
    there is no such command.

    example: swarm-mcp acp -- gemini --acp
    """
    # Standard output belongs to the protocol: nothing that prints may get between its lines.
    editor_in, editor_out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        return Relay(Guard(), editor_in, editor_out, args.seconds("--grace", 10.0)).run(list(args.words))
    except OSError as error:
        complain(f"{args.words[0]}: {error.strerror}")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else CANNOT_RUN
