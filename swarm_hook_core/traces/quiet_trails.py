"""Trails that leave nothing: of a call that is only asked about, and of readers that are no calls of a client.

Such readers are commits, the page, copies for other machines.
"""

from __future__ import annotations

from typing import Any

from swarm_hook_core import faults
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.lookup import SOME_AGENT
from swarm_hook_core.traces import OFF, level
from swarm_hook_core.traces.trail import Trail


class AskedTrail(Trail):
    """A Trail that is never left."""

    __slots__ = ()
    is_asked = True

    def leave(self) -> None:
        """Forget the entries."""
        self._lines = {}


def asked_trail(config: RuntimeConfig, call: ToolCall) -> AskedTrail | None:
    """Return the Trail of a call that is only asked about; None if its checkout wants no traces."""
    found = level(config.env_prefix, call.folder)
    if found == OFF:
        return None
    return AskedTrail(config, call, found)


class OnlookersTrail(Trail):
    """A Trail in `folder` for the part `part` of `reader`; faults are recorded under these two names.

    `runtime` and `session_id`: the reading session, if any. Its changes count as its own.
    """

    __slots__ = ("_reader", "_part")

    def __init__(self, reader: str, part: str, folder: str, level: str, runtime: str = "", session_id: str = ""):
        config: Any = _Nobody(runtime)
        Trail.__init__(self, config, ToolCall(part, {}, session_id, folder, agent=SOME_AGENT), level)
        self._reader = reader
        self._part = part

    def pass_over(self, error: OSError) -> None:
        """Record that a journal cannot be read. Nothing is denied, as nothing is written."""
        faults.record_hourly(self._reader, self._part, error)


class _Nobody:
    """Stands for the config of a client: a Trail without one needs the name alone."""

    def __init__(self, runtime_name: str):
        self.runtime_name = runtime_name
