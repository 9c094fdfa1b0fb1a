"""Events in the form of libraries that drive several harnesses: with the native line, and with the run's end.

``{"type": "message", "message": <native line>}``, ``{"type": "session_started", "session_id"}``, ``{"type": "complete",
"output", "is_error", "code", "usage"}``, ``{"type": "error", "error", "code"}`` and ``{"type": "stderr", "data"}``,
each with ``timestamp`` (Unix seconds).
"""

from __future__ import annotations

from typing import Any

from swarm_mcp.agents.harness import events
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.query import parse_json


def to_envelope(event: Event) -> dict[str, Any] | None:
    """Return the envelope of an event; None if the native lines have said it already. Never raises."""
    data = event.data
    if event.kind == events.RAW_LOG:
        made = {"type": "message", "message": parse_json(data.get("content"), data.get("content"))}
    elif event.kind == events.SESSION_INIT:
        made = {"type": "session_started", "session_id": data.get("session_id")}
    elif event.kind == events.RESULT:
        cost: Any = data.get("cost")
        if hasattr(cost, "_asdict"):
            usage = cost._asdict()
        else:
            usage = cost
        made = {"type": "complete", "output": data.get("output"), "is_error": bool(data.get("is_error")),
                "code": data.get("error_category"), "usage": usage}  # fmt: skip
    elif event.kind == events.ERROR:
        made = {"type": "error", "error": data.get("message"), "code": data.get("category")}
    elif event.kind == events.RAW_STDERR:
        made = {"type": "stderr", "data": data.get("content")}
    else:
        return None
    return {**made, "timestamp": event.at}
