"""The shell reader: finds the files a shell command would write, without running it. docs/dev/shell.md explains it.

    command ── parser ──▶ statements ── walk, words ── programs, git ──▶ Effects ── collisions ──▶ Verdict

- `parser` reads the text into the statements of `syntax`.
- `walk` goes through the statements as a shell would: folders, variables, pipes, loops. `words` expands words.
- `programs` knows each program's arguments and the files it writes.
- The result (`model.Effects`) is compared with other sessions' locks in ``collisions``.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping

from swarm_hook_core.clock import Budget
from swarm_hook_core.shell.model import Effects
from swarm_hook_core.shell.walk import Walk


def effects_of(
    command: str,
    folder: str | None,
    environment: Mapping[str, str] | None = None,
    budget: Budget | None = None,
) -> Effects:
    """Return the Effects of shell text `command`, run in absolute `folder` (None: unknown).

    `environment`: variables the shell starts with (default: this process's). `budget`: the check's remaining time
    (default: a new one). Never raises: unreadable text, or text that takes too long, becomes a guess.
    """
    if environment is None:
        environment = os.environ
    effects = Effects(budget)
    collects = gc.isenabled()
    gc.disable()  # in a long-lived process one look through all its objects takes longer than a walk may
    try:
        Walk(effects, folder, environment).script(command)
    finally:
        if collects:
            gc.enable()
    return effects
