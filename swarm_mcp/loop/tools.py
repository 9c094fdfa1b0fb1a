"""The built-in tools: their schemas, and carrying out those that start a process; ``file_tools`` has the others."""

from __future__ import annotations

import os
import shutil

from swarm_mcp.loop import file_tools, prompts, subprocesses
from swarm_mcp.loop.settings import AGENT_SECONDS, TOOL_SECONDS, number

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
        return bash(loop, made.input)
    if made.name == "agent":
        return agent(loop, made.input)
    if made.name == "skill":
        text = prompts.load_skill(loop, str(made.input["name"]))
        return (text, False) if text is not None else (f"error: skill '{made.input['name']}' not found", True)

    return file_tools.run(made.name, made.input, loop.cwd)


LONGEST_SECONDS = 3600.0


def bash(loop, given: dict) -> tuple[str, bool]:
    """Run a shell command in a process group of its own; return its output with what else is worth knowing, and whether
    it failed."""
    command, wanted = given.get("command"), given.get("timeout")
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        return "error: command must be a text", True
    seconds = number("HARNESS_TOOL_TIMEOUT", TOOL_SECONDS) or LONGEST_SECONDS
    if isinstance(wanted, (int, float)) and not isinstance(wanted, bool) and wanted > 0:
        seconds = min(float(wanted), LONGEST_SECONDS)
    program = shutil.which("bash") or "/bin/sh"
    ran = subprocesses.run(
        [program, "-c", command], env=loop.environment("tool_exec"), cwd=loop.cwd, seconds=seconds,
        reaper=loop.reaper, together=True,
    )  # fmt: skip
    parts = [ran.out.rstrip("\n")]
    if ran.timed_out:
        parts.append(f"[ended after {seconds:g} s: that was its time limit]")
    elif ran.code:
        parts.append(f"[exit code {ran.code}]")
    return "\n".join(part for part in parts if part) or "(no output)", bool(ran.code) or ran.timed_out


# What names the parent in the swarm: the child is an instance of its own.
_PARENTS_OWN = ("SWARM_MCP_INSTANCE_ID", "SWARM_MCP_LABEL", "SWARM_TASK_ID", "SWARM_AGENT_ROLE",
                "HARNESS_SESSION", "HARNESS_SOURCES", "HARNESS_STAGE", "HARNESS_TOOL_FIFO", "HARNESS_MODEL",
                "HARNESS_PROVIDER")  # fmt: skip


def agent(loop, given: dict) -> tuple[str, bool]:
    """Run an agent below this one to its end; return its answer, and whether it failed."""
    from swarm_mcp.installation import coordinator_command

    prompt = given.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return "error: prompt must be a text", True
    if loop.settings.depth >= loop.settings.max_depth:
        return f"error: agents {loop.settings.depth} deep start no further ones (RLM_MAX_DEPTH)", True
    env = {name: value for name, value in loop.environment().items() if name not in _PARENTS_OWN}
    env.update(
        HARNESS_SESSIONS=os.path.join(loop.session.path, ".harness", "sessions"),
        HARNESS_PARENT_SESSION=loop.session.id,
        HARNESS_DEPTH=str(loop.settings.depth + 1),
        HARNESS_PROVIDER=str(given.get("provider") or loop.settings.provider),
    )
    if given.get("model") or not given.get("provider"):
        env["HARNESS_MODEL"] = str(given.get("model") or loop.settings.model)
    seconds = number("HARNESS_AGENT_TIMEOUT", AGENT_SECONDS)
    ran = subprocesses.run(
        [*coordinator_command(), "loop", "agent"], prompt, env=env, cwd=loop.cwd, seconds=seconds,
        reaper=loop.reaper,
    )  # fmt: skip
    last = next((line for line in reversed(ran.err.split("\n")) if line.strip()), "")
    if ran.timed_out:
        return f"error: the agent took longer than {seconds:.0f} s and was ended", True
    if ran.code:
        return f"error: the agent failed (exit {ran.code}): {last}", True
    return ran.out.rstrip("\n") or "(it answered nothing)", False
