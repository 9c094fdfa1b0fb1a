"""The built-in tools: their schemas, and what carries them out."""

from __future__ import annotations

WRITERS = frozenset({"write_file", "str_replace", "edit_file"})
READERS = frozenset({"read_file", "list_dir", "skill", "agent"})
_PATH = {"type": "string", "description": "The file, absolute or relative to the working folder"}


def _tool(description: str, required: str, **properties: dict) -> dict:
    wanted = {"type": "object", "properties": properties, "required": required.split()}
    return {"description": description, "input_schema": wanted}


def _text(description: str) -> dict:
    return {"type": "string", "description": description}


_EDIT = {
    "type": "object",
    "properties": {"old_str": _text("Text that occurs once"), "new_str": _text("What takes its place")},
    "required": ["old_str", "new_str"],
}
_SCHEMAS = {
    "bash": _tool(
        "Run a command with bash in the working folder; its output, and its exit code where that is not 0.",
        "command",
        command=_text("The command"),
        timeout={"type": "integer", "description": "Seconds after which it is ended, with all it started (120)"},
    ),
    "read_file": _tool(
        "Read a text file, with line numbers.",
        "path",
        path=_PATH,
        start_line={"type": "integer", "description": "First line, from 1"},
        end_line={"type": "integer", "description": "Last line"},
    ),
    "write_file": _tool(
        "Create or replace a file. Missing folders are made.", "path content", path=_PATH, content=_text("All of it")
    ),
    "str_replace": _tool(
        "Replace a text that occurs exactly once in a file.",
        "path old_str new_str",
        path=_PATH,
        old_str=_text("The text as the file has it, blanks and all"),
        new_str=_text("What takes its place; empty to remove it"),
    ),
    "edit_file": _tool(
        "Several replacements in one file, in order; if one does not fit, none is made.",
        "path edits",
        path=_PATH,
        edits={"type": "array", "items": _EDIT, "description": "Each as for str_replace"},
    ),
    "list_dir": _tool("List a folder; folders end with a slash.", "", path=_text("The folder (the working folder)")),
    "skill": _tool("Load a skill's instructions.", "name", name=_text("The skill's name, from the list")),
    "agent": _tool(
        "Hand a task to an agent of its own, which starts from nothing but your words; its answer.",
        "prompt",
        prompt=_text("The task: what to do, what it needs to know, what to answer"),
        model=_text("Another model"),
        provider=_text("Another provider"),
    ),
}
NAMES = tuple(_SCHEMAS)


def schema(name: str) -> dict:
    """Return what a model is told about a tool: ``{"name", "description", "input_schema"}``."""
    return {"name": name, **_SCHEMAS[name]}


def run(loop, made) -> tuple[str, bool]:
    """Carry out a call of a built-in tool; return ``(result, is_error)``."""
    missing = [name for name in _SCHEMAS[made.name]["input_schema"]["required"] if name not in made.input]
    if missing:
        return f"error: {made.name} needs {', '.join(missing)}", True
    if made.name == "bash":
        from swarm_mcp.loop.tools import commands

        return commands.bash(loop, made.input)
    if made.name == "agent":
        from swarm_mcp.loop.tools import commands

        return commands.agent(loop, made.input)
    if made.name == "skill":
        from swarm_mcp.loop import skills

        text = skills.load(loop, str(made.input["name"]))
        return (text, False) if text is not None else (f"error: skill '{made.input['name']}' not found", True)
    from swarm_mcp.loop.tools import files

    return files.run(made.name, made.input, loop.cwd)
