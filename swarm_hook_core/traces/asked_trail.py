"""The Trail of a call that is only asked about: it leaves nothing."""

from __future__ import annotations

from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.hooks import ToolCall
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
