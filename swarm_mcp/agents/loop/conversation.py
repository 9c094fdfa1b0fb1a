"""A conversation at a terminal: one prompt after the other in one session, each a run of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from swarm_mcp.agents.loop.settings import STOPPED

LEAVE, ANEW, HELP = "/exit", "/new", "/help"
GUIDE = f"""\
Each line is a prompt; /NAME of a skill puts that skill before it. Ctrl-C ends what is being done.
{ANEW}   go on in a session of its own
{LEAVE}  leave, as Ctrl-D does; `swarm-mcp loop SESSION` goes on later"""
ASK = "\n> "


def hold(answer: Callable[[str, str], tuple[int, str]], session_id: str) -> int:
    """Ask for prompts until the person leaves; return the exit code.

    `answer` carries out a prompt in a session (empty: a new one), and returns an exit code and the session's id. Locks
    that a prompt's run has taken are released with its answer, as in the bash harness.
    """
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  (lines can be edited, and earlier ones had again)
    print(f"{HELP} says what there is, {LEAVE} or Ctrl-D leaves", flush=True)
    while True:
        try:
            prompt = input(ASK).strip()
        except EOFError:
            print()
            return 0
        except KeyboardInterrupt:  # the line is thrown away, as a shell does
            continue
        if prompt == LEAVE:
            return 0
        if prompt == HELP:
            print(GUIDE)
        elif prompt == ANEW:
            session_id = ""
        elif prompt:
            code, session_id = answer(prompt, session_id)
            if code == STOPPED:
                return STOPPED
