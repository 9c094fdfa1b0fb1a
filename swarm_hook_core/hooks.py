"""The edge of a hook process: read a payload, have it dealt with, and whatever goes wrong, let the call pass.

Faults are recorded for `swarm-mcp doctor`, never shown. Standard output stays empty but for the one object that
clients honour.
"""

import os
import sys

from swarm_hook_core.json_text import dumps, loads_object


def run(config, hook: str, stdin, parsed, body) -> int:
    """Call `body` with what `parsed` makes of the payload on `stdin`; the exit status, which is 0 where that fails.

    `body` returns the status of its answer, or None for 0.
    """
    try:
        return body(parsed(config.dialect.read(loads_object(read(stdin))))) or 0
    except Exception as error:
        from swarm_hook_core import faults

        faults.record(config.runtime_name, hook, faults.describe(error))
    return 0


def read(stdin) -> str:
    """All of `stdin` (text or binary) as text; bytes that are not UTF-8 survive as surrogates."""
    data = getattr(stdin, "buffer", stdin).read()
    return data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")


def answer(told: dict) -> None:
    """Print the one object that the client takes. Nothing else may reach stdout."""
    try:
        sys.stdout.write(dumps(told) + "\n")
        sys.stdout.flush()
    except OSError:
        # The client has left. Python would complain once more, and loudly, when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise
