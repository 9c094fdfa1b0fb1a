"""A Trail for readers of the traces that are no calls of a client: commits, the page, copies for other machines.

Only the coordinator loads this.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from swarm_hook_core import faults
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.lookup import SOME_AGENT
from swarm_hook_core.traces.trail import Trail


class OnlookersTrail(Trail):
    """A Trail in `folder` for the part `part` of `reader`; faults are recorded under these two names.

    `runtime` and `session_id`: the reading session, if any. Its changes count as its own.
    """

    __slots__ = ("_reader", "_part")

    def __init__(self, reader: str, part: str, folder: str, level: str, runtime: str = "", session_id: str = ""):
        config: Any = SimpleNamespace(runtime_name=runtime)  # the only field that a Trail without a client needs
        Trail.__init__(self, config, ToolCall(part, {}, session_id, folder, agent=SOME_AGENT), level)
        self._reader = reader
        self._part = part

    def pass_over(self, error: OSError) -> None:
        """Record that a journal cannot be read. Nothing is denied, as nothing is written."""
        faults.record_hourly(self._reader, self._part, error)
