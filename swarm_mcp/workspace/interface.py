"""The interface of all workspaces.

A backend talks to its program as a process of its own, never for longer than `SECONDS` at a time, and reports every
failure as `PaneUnavailable`. A message is stored before a session is woken, so no trouble here may undo or fail a
command.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from swarm_mcp.errors import SwarmError

SECONDS = 5.0


class PaneUnavailable(SwarmError):
    """The workspace does not know the pane, or does not answer. The text says it in one line."""


class Pane(NamedTuple):
    """A pane as its workspace describes it now. Unknown fields are empty.

    `handle` is the pane's present name. `agent` is the kind of agent in it (``claude``, ``codex``), `status` its state:
    idle, working, blocked, done, unknown. `instance_id` is the instance that the agent itself has reported.
    """

    handle: str
    agent: str = ""
    status: str = ""
    instance_id: str = ""
    workspace_id: str = ""
    tab_id: str = ""


class Backend(Protocol):
    """One workspace program. `socket` says where its server listens, empty for the usual place."""

    name: str
    kinds: tuple[str, ...]

    def resolve(self, handle: str, socket: str = "") -> Pane:
        """The pane that `handle`, its present or an earlier name, means. Raises PaneUnavailable."""

    def wake(self, handle: str, text: str, socket: str = "") -> None:
        """Type one line into the pane and press Enter. Raises PaneUnavailable."""

    def read(self, handle: str, source: str, lines: int, socket: str = "") -> str:
        """Text of the pane: ``visible``, ``recent`` or ``recent-unwrapped``. Raises PaneUnavailable."""
