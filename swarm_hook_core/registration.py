"""The facts about a session that go to the coordinator's command, or to its store."""

import os
from typing import Any

from swarm_hook_core import environment, labels
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import SessionEvent
from swarm_hook_core.process import client_process
from swarm_hook_core.state import client_note, name_of, write_private


class NotRegistered(Exception):
    """The coordinator did not take the session; the message says why, or, at a session's start, all there is to say.

    `why` is the reason alone.
    """

    def __init__(self, message: str, why: str = ""):
        Exception.__init__(self, message)
        self.why = why or message


def described(config: "RuntimeConfig", event: "SessionEvent", state: str) -> "dict[str, Any]":
    """Return the session of `event` as it is registered: its names, its folder, its `state` and its lease.

    client     pid and start time of the process that ends the session by its own end; ``(0, "")`` if unknown
    turn_over  the end of a turn (ns); 0 if the event is no such end

    Settings that are not set are empty.
    """
    prefix, session_id, cwd = config.env_prefix, event.session_id, event.cwd or os.getcwd()
    scope = environment.scope(prefix)
    return {
        "runtime": config.runtime_name,
        "session_id": session_id,
        "directory": cwd,
        "label": labels.compose(
            config.runtime_name,
            session_id,
            environment.identity(prefix),
            environment.mode(prefix),
            environment.role(prefix, cwd, scope),
            environment.label_override(prefix),
        ),
        "scope": scope,
        "file_root": environment.file_root(prefix),
        "lease_seconds": environment.lease_seconds(prefix),
        "state": state,
        "source": event.source,
        "client": client_process(config.client_marks),
        "pane": environment.pane(),
        "turn_over": 0,
    }


def note_client(config: "RuntimeConfig", event: "SessionEvent", pid: int) -> None:
    """Note the client process `pid` and the log of the session: they tell the ends of its calls (``traces.told_ends``).

    Raises OSError.
    """
    name = f"{name_of(config.runtime_name)}.{name_of(event.session_id)}"
    write_private(client_note(name), f"{pid} {config.transcript or '-'} {event.transcript}")
