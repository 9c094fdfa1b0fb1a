"""The effects of tools of MCP servers and clients, derived from their names and arguments.

    table ── kind ── tool_effects, arguments, git ──▶ Effects (see ``swarm_hook_core.shell.model``)

``opaque_calls`` and ``core`` call this for each MCP call. `table` knows the tools of common servers; users add to it in
``config.json`` (``swarm_hook_core.settings``). As everywhere in a check, ``re``, ``json``, ``fnmatch`` and ``typing``
are not imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from swarm_hook_core.mcp_writers.arguments import REMOTE, is_own, kind_of, matches, reads
from swarm_hook_core.settings import Writer, current
from swarm_hook_core.shell.model import Effects


def is_writer(tool: str, tool_input: object = None, depth: int = 0) -> bool:
    """Return True if `effects_of_tool` may know effects of a tool with this name or input. Asks no store."""
    if kind_of(tool) or _chosen(tool) is not None:
        return True
    if not tool_input or is_own(tool):
        return False
    from swarm_hook_core.mcp_writers.arguments import FILE_NAMES, OUTPUT_FOLDERS, OUTPUTS, parsed

    given = parsed(tool_input)
    if given is None:
        return False
    names = [*OUTPUTS, *OUTPUT_FOLDERS]
    if not reads(tool):
        names += FILE_NAMES
    return any(name in given for name in names) or any(
        is_writer(name, inner, depth + 1) for name, inner in _inner(given, depth)
    )


def effects_of_tool(tool: str, tool_input: object, folder: str, depth: int = 0) -> Effects | None:
    """Return the Effects of a call of `tool` in absolute `folder`, or None for a tool that is not known to write.

    A relative path counts from `folder` or from the git root over it, if only one of them has the file, else from both:
    servers start in either.
    """
    from swarm_hook_core.mcp_writers.arguments import DRY, parsed

    given = parsed(tool_input)
    chosen = _chosen(tool)
    kind = "" if chosen else kind_of(tool)
    if given is None or not (chosen or is_writer(tool, given)):
        return None
    from swarm_hook_core.mcp_writers.tool_effects import ToolEffects

    found = ToolEffects(Effects(), tool, given, folder)
    if chosen is not None:
        return found.as_chosen(chosen)
    nested = [effects_of_tool(name, inner, folder, depth + 1) for name, inner in _inner(given, depth)]
    known = [effects for effects in nested if effects is not None]
    for effects in known:
        found.take(effects)
    if known:
        return found.effects
    if kind != "git" and any(given.get(name) for name in REMOTE):
        return None
    if kind not in ("git", "shell", "code") and any(given.get(name) is True for name in DRY):
        return found.effects
    method: Callable[[], Effects | None] = getattr(found, f"as_{kind or 'named_output'}")
    return method()


def _inner(given: dict[str, Any], depth: int) -> list[tuple[str, dict[str, Any]]]:
    """Return ``[(tool, input)]`` of the calls within a call, with names like those of another server's tools."""
    from swarm_hook_core.mcp_writers.tool_effects import DEEPEST, calls_in

    if depth >= DEEPEST:
        return []
    found = calls_in(given)
    return [(name if name.startswith("mcp__") else f"mcp__inner__{name}", inner) for name, inner in found]


def _chosen(tool: str) -> Writer | None:
    """Return the first entry of the user's own table for `tool`, or None."""
    return next((writer for writer in current().writers if matches(writer.tool, tool)), None)
