"""The public Python interface to agents: ``from swarm_mcp.harness import Query, Run``; see docs/dev/python.md.

Each name is loaded at its first use: live events, tools in Python, MCP servers, answers by schema, prices. Other
modules may move.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarm_mcp.agents.harness import events as events
    from swarm_mcp.agents.harness import registry as registry
    from swarm_mcp.agents.harness.adapter import Capabilities as Capabilities
    from swarm_mcp.agents.harness.adapter import Check as Check
    from swarm_mcp.agents.harness.adapter import HarnessAdapter as HarnessAdapter
    from swarm_mcp.agents.harness.adapter import Launch as Launch
    from swarm_mcp.agents.harness.events import AnyEvent as AnyEvent
    from swarm_mcp.agents.harness.events import Compaction as Compaction
    from swarm_mcp.agents.harness.events import Custom as Custom
    from swarm_mcp.agents.harness.events import Error as Error
    from swarm_mcp.agents.harness.events import Event as Event
    from swarm_mcp.agents.harness.events import EventStream as EventStream
    from swarm_mcp.agents.harness.events import Line as Line
    from swarm_mcp.agents.harness.events import LockDenied as LockDenied
    from swarm_mcp.agents.harness.events import Message as Message
    from swarm_mcp.agents.harness.events import PermissionAsked as PermissionAsked
    from swarm_mcp.agents.harness.events import Result as Result
    from swarm_mcp.agents.harness.events import Retry as Retry
    from swarm_mcp.agents.harness.events import SessionStarted as SessionStarted
    from swarm_mcp.agents.harness.events import TextDelta as TextDelta
    from swarm_mcp.agents.harness.events import ToolEnd as ToolEnd
    from swarm_mcp.agents.harness.events import ToolStart as ToolStart
    from swarm_mcp.agents.harness.events import Usage as Usage
    from swarm_mcp.agents.harness.events import to_envelope as to_envelope
    from swarm_mcp.agents.harness.events import typed as typed
    from swarm_mcp.agents.harness.membership import Membership as Membership
    from swarm_mcp.agents.harness.narration import to_transcript as to_transcript
    from swarm_mcp.agents.harness.outcome import AuthError as AuthError
    from swarm_mcp.agents.harness.outcome import Cost as Cost
    from swarm_mcp.agents.harness.outcome import HarnessError as HarnessError
    from swarm_mcp.agents.harness.outcome import NotInstalled as NotInstalled
    from swarm_mcp.agents.harness.outcome import Price as Price
    from swarm_mcp.agents.harness.outcome import RunResult as RunResult
    from swarm_mcp.agents.harness.outcome import Unsupported as Unsupported
    from swarm_mcp.agents.harness.outcome import priced as priced
    from swarm_mcp.agents.harness.query import McpServer as McpServer
    from swarm_mcp.agents.harness.query import PermissionRequest as PermissionRequest
    from swarm_mcp.agents.harness.query import Query as Query
    from swarm_mcp.agents.harness.query import query_of as query_of
    from swarm_mcp.agents.harness.record import events_in as events_in
    from swarm_mcp.agents.harness.run import Run as Run
    from swarm_mcp.agents.harness.run import Session as Session
    from swarm_mcp.errors import Refused as Refused

__all__ = [
    "AnyEvent", "AuthError", "Capabilities", "Check", "Compaction", "Cost", "Custom", "Error", "Event",
    "EventStream", "HarnessAdapter", "HarnessError", "Launch", "Line", "LockDenied", "McpServer", "Membership",
    "Message", "NotInstalled", "PermissionAsked", "PermissionRequest", "Price", "Query", "Refused", "Result", "Retry",
    "Run", "RunResult", "Session", "SessionStarted", "TextDelta", "ToolEnd", "ToolStart", "Unsupported", "Usage",
    "events", "events_in", "priced", "query_of", "registry", "to_envelope", "to_transcript", "typed",
]  # fmt: skip

_HOMES = {
    "swarm_mcp.errors": ("Refused",),
    "swarm_mcp.agents.harness.adapter": ("Capabilities", "Check", "HarnessAdapter", "Launch"),
    "swarm_mcp.agents.harness.events": (
        "AnyEvent", "Compaction", "Custom", "Error", "Event", "EventStream", "Line", "LockDenied", "Message",
        "PermissionAsked", "Result", "Retry", "SessionStarted", "TextDelta", "ToolEnd", "ToolStart", "Usage",
        "to_envelope", "typed"
    ),
    "swarm_mcp.agents.harness.membership": ("Membership",),
    "swarm_mcp.agents.harness.narration": ("to_transcript",),
    "swarm_mcp.agents.harness.outcome": (
        "AuthError", "Cost", "HarnessError", "NotInstalled", "Price", "RunResult", "Unsupported", "priced"
    ),
    "swarm_mcp.agents.harness.query": ("McpServer", "PermissionRequest", "Query", "query_of"),
    "swarm_mcp.agents.harness.record": ("events_in",),
    "swarm_mcp.agents.harness.run": ("Run", "Session"),
}  # fmt: skip


def __getattr__(name: str) -> object:
    """Load a name from its module, the first time."""
    if name in ("events", "registry"):
        return importlib.import_module(f"swarm_mcp.agents.harness.{name}")
    for module, names in _HOMES.items():
        if name in names:
            found = globals()[name] = getattr(importlib.import_module(module), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
