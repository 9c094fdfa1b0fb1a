"""The comparison of a run's request with its harness's abilities.

A missing protection (a mode, a limit, the form of the answer, tools) is refused before anything starts. A missing
convenience is left out, with a warning.
"""

from __future__ import annotations

from swarm_mcp.agents.harness.adapter import HarnessAdapter
from swarm_mcp.agents.harness.errors import Unsupported
from swarm_mcp.agents.harness.query import READ_ONLY, Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LEAST_COST = 1e-6  # dollars: less than that tells two costs from each other by rounding alone


def require_possible(adapter: HarnessAdapter, query: Query) -> None:
    """Raise Unsupported where the harness lacks something that protects."""
    asked = (
        (query.mode == READ_ONLY, "read_only", "mode read-only: nothing would keep it from writing"),
        (query.max_cost_usd > 0, "max_cost", "a cost limit: it does not report its cost in time"),
        (query.max_turns > 0, "max_turns", "a limit on its turns: it does not count them"),
        (query.output_schema is not None, "output_schema", "a schema for its answer"),
        (bool(query.client_tools), "client_tools", "client tools"),
        (bool(query.mcp_servers), "mcp", "MCP servers"),
        (query.on_permission is not None, "permissions", "on_permission: it asks for none"),
        (bool(query.images), "images", "images"),
        (query.fork_session and adapter.capabilities.resume, "fork", "a copy of a session: that one would go on"),
    )
    missing = [words for wanted, flag, words in asked if wanted and not getattr(adapter.capabilities, flag)]
    if missing:
        raise Unsupported(f"{adapter.name} cannot be given {', nor '.join(missing)} (swarm-mcp worker harness list)")


def left_out(adapter: HarnessAdapter, query: Query) -> list[str]:
    """Return a line for each request that the harness will ignore. `query` is without the run's own additions."""
    can = adapter.capabilities
    asked = (
        (query.model, can.model, "the model"),
        (query.effort, can.effort, "the effort"),
        (query.system_prompt, can.system_prompt, "that the system prompt takes the place of its own"),
        (query.append_system_prompt, can.append_system_prompt, "the system prompt"),
        (query.additional_directories, can.directories, "additional directories"),
        (query.stream_text, can.streaming_tokens, "that its text is to come in pieces"),
        (query.skills, can.native_skills or can.append_system_prompt, "skills"),
        (
            query.mcp_servers and query.mode == READ_ONLY,
            can.read_only_servers,
            f"in mode {READ_ONLY} the MCP servers {', '.join(query.mcp_servers)}",
        ),
    )
    return [f"{adapter.name} does not heed {words}" for wanted, able, words in asked if wanted and not able]


def limit_reached(query: Query, cost: object, turns: object) -> str:
    """Return the limit that a running run has reached, empty for none. `cost`: dollars, None: unknown."""
    if query.max_cost_usd:
        if not isinstance(cost, (int, float)):
            return "its cost is unknown (no price for its model), so a limit cannot be kept"
        if cost >= query.max_cost_usd:
            return f"it has cost ${cost:g}, and may cost at most ${query.max_cost_usd:g}"
    if query.max_turns and isinstance(turns, int) and turns >= query.max_turns:
        return f"it has taken {turns} turns, and may take at most {query.max_turns}"
    return ""


def schema_mismatch(query: Query, answer: object) -> str:
    """Return how the answer of a run that went well does not follow the query's schema, empty where it does."""
    if query.output_schema is None:
        return ""
    why = mismatch(answer, query.output_schema)
    if why:
        return f"the answer does not follow the schema: {why}"
    return ""


def limit_passed(query: Query, cost: float | None) -> str:
    """Return the limit that a finished run has passed, empty for none."""
    if query.max_cost_usd and cost is not None and cost > query.max_cost_usd + LEAST_COST:
        return f"it has cost ${cost:g}, and was to cost at most ${query.max_cost_usd:g}"
    return ""


def mismatch(found: object, wanted: dict[str, Any]) -> str:
    """Return an answer's deviation from the JSON schema `wanted`, empty for none. None stands for: no JSON at all.

    Without the jsonschema package only required names are checked.
    """
    if found is None:
        return "it is no JSON"
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        missing = [name for name in wanted.get("required", []) if not isinstance(found, dict) or name not in found]
        if missing:
            return f"it lacks {', '.join(map(str, missing))}"
        return ""
    try:
        error = next(iter(sorted(Draft202012Validator(wanted).iter_errors(found), key=lambda e: len(e.path))), None)
    except Exception:  # an invalid schema measures nothing
        return ""
    if error is None:
        return ""
    return f"{error.json_path}: {error.message[:200]}"
