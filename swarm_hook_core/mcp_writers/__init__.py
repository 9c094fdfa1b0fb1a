"""The effects of tools of MCP servers and clients, derived from their names and arguments.

    table ── kind ── tool_effects, arguments, git ──▶ Effects (see ``swarm_hook_core.shell.model``)

``opaque_calls`` and ``core`` call this for each MCP call. `table` knows the tools of common servers; users add to it in
``config.json`` (``swarm_hook_core.settings``). As everywhere in a check, ``re``, ``json``, ``fnmatch`` and ``typing``
are not imported here.
"""

from swarm_hook_core.mcp_writers.table import REMOTE, is_own, kind_of, matches


def is_writer(tool: str, tool_input=None, depth: int = 0) -> bool:
    """Return True if `effects_of_tool` may know effects of a tool with this name, or of such an input. Asks no store."""
    if kind_of(tool) or _chosen(tool) is not None:
        return True
    if not tool_input or is_own(tool):
        return False
    from swarm_hook_core.mcp_writers.arguments import FILE_NAMES, OUTPUT_FOLDERS, OUTPUTS, parsed
    from swarm_hook_core.mcp_writers.table import reads

    given = parsed(tool_input)
    if given is None:
        return False
    names = (*OUTPUTS, *OUTPUT_FOLDERS, *(() if reads(tool) else FILE_NAMES))
    return any(name in given for name in names) or any(
        is_writer(name, inner, depth + 1) for name, inner in _inner(given, depth)
    )


def effects_of_tool(tool: str, tool_input, folder: str, depth: int = 0):
    """Return the Effects of a call of `tool` in absolute `folder`, or None for a tool that is not known to write.

    A relative path counts from `folder` or from the git root over it, if only one of them has the file, else from both:
    servers start in either.
    """
    from swarm_hook_core.mcp_writers.arguments import DRY, parsed

    given = parsed(tool_input)
    chosen = _chosen(tool)
    if chosen:
        kind = ""
    else:
        kind = kind_of(tool)
    if given is None or not (chosen or is_writer(tool, given)):
        return None
    from swarm_hook_core.mcp_writers.tool_effects import ToolEffects
    from swarm_hook_core.shell.model import Effects

    found = ToolEffects(Effects(), tool, given, folder)
    if chosen is not None:
        return found.as_chosen(chosen)
    effects = [effects_of_tool(name, inner, folder, depth + 1) for name, inner in _inner(given, depth)]
    if any(one is not None for one in effects):
        for one in effects:
            if one is not None:
                found.take(one)
        return found.effects
    if kind != "git" and any(given.get(name) for name in REMOTE):
        return None
    if kind not in ("git", "shell", "code") and any(given.get(name) is True for name in DRY):
        return found.effects
    return getattr(found, f"as_{kind or 'named_output'}")()


def _inner(given: dict, depth: int) -> list:
    """Return ``[(tool, input)]`` of the calls within a call, with names like those of another server's tools."""
    from swarm_hook_core.mcp_writers.wrapped import DEEPEST, calls_in

    found = []
    if depth < DEEPEST:
        found = calls_in(given)
    return [(name if name.startswith("mcp__") else f"mcp__inner__{name}", inner) for name, inner in found]


def _chosen(tool: str):
    """Return the first entry of the user's own table for `tool`, or None."""
    from swarm_hook_core.settings import current

    return next((writer for writer in current().writers if matches(writer.tool, tool)), None)
