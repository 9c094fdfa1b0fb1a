"""The Trail of a look at what sessions have changed, which is no call of a client: a commit's, the page's, a team's.

Only the coordinator loads this.
"""

from types import SimpleNamespace

from swarm_hook_core import faults
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.traces import Trail


class OnlookersTrail(Trail):
    """A Trail in `folder` of a look by the part `part` of `reader`; a fault is recorded under these two names.

    `runtime` and `session_id` are those of the session for which it looks, if any: that one's changes are its own.
    """

    __slots__ = ("_reader", "_part")

    def __init__(self, reader: str, part: str, folder: str, level: str, runtime: str = "", session_id: str = ""):
        Trail.__init__(self, SimpleNamespace(runtime_name=runtime), ToolCall(part, {}, session_id, folder), level)
        self._reader = reader
        self._part = part

    def pass_over(self, error: OSError) -> None:
        """Record that a journal cannot be read: nothing is denied for that, as nothing is written."""
        faults.record_hourly(self._reader, self._part, faults.describe(error))
