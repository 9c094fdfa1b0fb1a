"""The work tracker that a person has set for this session, and making it known to peers.

PFX is the runtime's prefix. The first that is set: ``SWARM_PFX_WORK_TRACKER``, ``SWARM_WORK_TRACKER`` (JSON, or
``provider:mcp-server``); ``SWARM_PFX_WORK_TRACKER_PROVIDER`` or ``SWARM_WORK_TRACKER_PROVIDER`` with their parts;
the nearest ``.swarm-work-tracker`` or ``.swarm-work-tracker.json`` from the session's folder up to its scope.
"""

from typing import Any

from swarm_hook_core.environment import first_set, is_word, nearest_file
from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.spawn import run

FILES = (".swarm-work-tracker", ".swarm-work-tracker.json")
PARTS = ("team", "project", "repo", "workspace", "board", "url", "default_state", "component")
SECONDS = 1.0


def configured(prefix: str, cwd: str, top: str) -> "dict[str, Any]":
    """``{provider, [mcp, ...]}`` of a session in `cwd`, looked for in files up to folder `top`; empty for none."""
    for text in (first_set(f"SWARM_{prefix}_WORK_TRACKER"), first_set("SWARM_WORK_TRACKER")):
        if text:
            return parsed(text)
    return _in_parts(prefix) or parsed(nearest_file(cwd, top, *FILES))


def publish(argv: list[str], row: "dict[str, Any]", identity: str, tracker: "dict[str, Any]") -> str:
    """Set `tracker` for an identity, as instance `row`; why that failed, empty where it did not."""
    if row.get("scope"):
        place = ["--scope", str(row["scope"])]
    else:
        place = []
    words = ["kv", "set", f"config/work_tracker/{identity}", dumps(tracker), "--as", row["id"], *place]
    done = run([*argv, *words], SECONDS)
    if done.code == 0:
        return ""
    return done.stderr.strip()[:240] or f"swarm-mcp kv set exited with {done.code}"


def parsed(text: str) -> "dict[str, Any]":
    """A tracker written as JSON or as ``provider[:mcp-server]``; empty where it is neither."""
    text = text.strip()
    if text.startswith("{"):
        try:
            value = loads(text)
        except (ValueError, RecursionError):  # not JSON after all
            return {}
        if isinstance(value, dict) and isinstance(value.get("provider"), str) and is_word(value["provider"]):
            return value
        return {}
    provider, _, server = (part.strip() for part in text.partition(":"))
    if not is_word(provider):
        return {}
    if server:
        return {"provider": provider, "mcp": server}
    return {"provider": provider}


def _in_parts(prefix: str) -> "dict[str, Any]":
    for start in (f"SWARM_{prefix}_WORK_TRACKER_", "SWARM_WORK_TRACKER_"):
        provider = first_set(start + "PROVIDER")
        if is_word(provider):
            found = {"provider": provider, "mcp": first_set(start + "MCP", start + "MCP_SERVER")}
            found.update((part, first_set(start + part.upper())) for part in PARTS)
            return {name: value for name, value in found.items() if value}
    return {}
