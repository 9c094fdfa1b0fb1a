"""The checker: a process of the client's MCP server that has the hook core loaded and answers for the client's hooks.

    <state folder>/checkers/<pid>-<start>         the socket, named by the client's process
    <state folder>/checkers/<pid>-<start>.lock    held by the checker's server; has the server's pid
    <state folder>/checkers/<pid>-<start>.answered   the number of its answers, the time of all, and its processor time,
                                                  in nanoseconds
    <state folder>/checkers/alone                 hooks that ran as processes of their own: a time and the reason a line

The hook's command is a relay (``native/relay.c``, ``integrations/relay.py``). It finds the socket by its ancestors, and
is told that the checker begins (`BEGUN`). It sends the lengths of a head and of the payload, eight hexadecimal digits
each, the head, and the payload. The head is words with a NUL behind each: `WORDS`, then the relay's environment. The
answer is the exit status in two hexadecimal digits, the length of the output in eight, and the output. A closed
connection is no answer: the relay runs the hook as a process of its own.

A plugin that lives in its client's process asks without a relay (``integrations/checker.ts``): the parent is its own
process, and the end of its patience is "+" and nanoseconds from now.

``keeper`` is the server's side, ``session_hooks`` the checker, ``process`` the state of a call that it puts on.
"""

from __future__ import annotations

import os

from swarm_hook_core.process import start_time
from swarm_hook_core.state import state_dir

BEGUN = b"B"
SIZES = 16  # bytes
WORDS = ("release", "client", "event", "parent", "end", "folder")
LARGEST_HEAD = 16 * 1024 * 1024  # bytes
LARGEST_PAYLOAD = 1024 * 1024 * 1024
EVENTS = ("pre_tool_use", "post_tool_use", "turn", "subagent")  # a session's start and end are processes of their own


def checkers_dir() -> str:
    """Return the folder of the sockets. It need not exist."""
    return os.path.join(state_dir(), "checkers")


def name_of(client: tuple[int, str]) -> str:
    """Return the name of the socket for the process of a client, by its pid and start time."""
    return f"{client[0]}-{client[1]}"


def is_living(name: str) -> bool:
    """Return True if the client with this socket still runs."""
    pid, _, started = name.partition(".")[0].partition("-")
    return pid.isdecimal() and start_time(int(pid)) == started
