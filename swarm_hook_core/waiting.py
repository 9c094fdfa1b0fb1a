"""After a denial: have the coordinator note that this session waits for the file, so that it is told when it is free.

Hooks do not write the store, and nobody waits for this: the answer has been given, and the command
that notes it runs on by itself.
"""

import os
import time

KNOWN_SECONDS = 60  # the same as in the coordinator's store of denials


def have_it_noted(config, payload: dict, denial) -> None:
    """Start ``swarm-mcp denied`` for this Denial, unless it was noted a moment ago. Raises whatever goes wrong."""
    from swarm_hook_core.coordinator import command, start_detached
    from swarm_hook_core.payload import text_field
    from swarm_hook_core.reader import StoreReader
    from swarm_hook_core.state import store_path

    session_id = text_field(payload, "session_id")
    argv = command()
    if not argv or not session_id:
        return
    held, runtime = denial.held, config.runtime_name
    if os.path.isfile(store_path()):
        since = time.time() - KNOWN_SECONDS
        if StoreReader(store_path()).was_denied(runtime, session_id, held.names, held.instance_id, since):
            return
    words = ["denied", "--runtime", runtime, "--session-id", session_id, "--holder", held.instance_id]
    start_detached([*argv, *words, "--tool", text_field(payload, "tool_name"), "--", held.file])
