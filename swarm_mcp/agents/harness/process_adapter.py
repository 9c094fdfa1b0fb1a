"""Any command as a harness: its output is the answer; lines of JSON in our form are taken as events."""

from __future__ import annotations

from pathlib import Path

from swarm_mcp.agents.harness.adapter import Capabilities, HarnessAdapter, Launch
from swarm_mcp.agents.harness.events import KINDS, LONGEST_OUTPUT, RAW_LOG, Event, message
from swarm_mcp.agents.harness.query import Query, parse_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Process(HarnessAdapter):
    """The harness ``process``."""

    name = "process"
    label = "Any command"
    instructions = "Name the command: swarm-mcp worker run --harness process --command 'make check'"
    capabilities = Capabilities()
    is_opaque = True
    example = "make check"
    doc = """\
Runs one command and watches it like any other worker. The prompt is its standard input; what it prints is the
answer. A line that is a JSON object with a "type" among our events counts as that event.
Use when the work is a script, a build, a test run, or an agent that has no adapter.
Do not use when the program has an adapter: its sessions, costs and locks are then known. Nothing keeps a command from
writing, so mode read-only is refused; so are limits on cost and turns, schemas, servers and client tools.
Where SWARM_KERNEL is on, what others have locked as it starts is read-only for it.
Settings: command (required; SWARM_HARNESS_PROCESS), env, timeout_seconds (0: none), grace_seconds (15)."""

    def launch(self, query: Query, folder: Path) -> Launch:
        self.require_command(query.command)
        return Launch((*query.command, *query.additional_args), stdin=query.prompt)

    def parse(self, line: str, state: dict[str, Any]) -> list[Event]:
        found = parse_object(line)
        if found.get("type") in KINDS and found["type"] != RAW_LOG:
            return [Event(found["type"], {k: v for k, v in found.items() if k not in ("type", "timestamp")})]
        kept = state["text"] = state.get("text", "") + line + "\n"
        if len(kept) > 2 * LONGEST_OUTPUT:  # its output may be endless; the end of it is the answer
            state["text"] = kept[-LONGEST_OUTPUT:]
        return []

    def finish(self, state: dict[str, Any]) -> list[Event]:
        text = state.get("text", "").strip("\n")[-LONGEST_OUTPUT:]
        if text.strip():
            return [message("assistant", text)]
        return []
