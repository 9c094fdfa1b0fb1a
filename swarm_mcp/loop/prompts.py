"""The system prompt: ours, then what every source and its project say, from the farthest to the nearest."""

from __future__ import annotations

import os

OURS = """\
You are a coding agent. You work in the folder {cwd} through the tools you are given, until the task is done or you
cannot go on; then answer in a few lines: what you did, how you know that it works, what is left.

- Look before you change: read the files you are about to edit. Prefer small edits to rewriting whole files.
- Run what shows that a change works, where there is something to run.
- Calls that do not depend on each other may be made in one answer; they run side by side.
- Other sessions may edit this checkout too. A write that is refused because another session has locked the file is no
  failure of yours: do not write the file another way, do other work, or say in your answer what is blocked by whom."""
READ_ONLY = "This run is read-only: there is no tool to write files or run commands with. Report what you would do."
LONGEST_SECTION, LONGEST = 20_000, 150_000  # characters


def system(loop) -> str:
    """The whole system prompt, but for skills and what plugins add."""
    config = loop.settings.config
    parts = [str(config.get("system_prompt") or OURS.format(cwd=loop.cwd))]
    if loop.settings.read_only:
        parts.append(READ_ONLY)
    for source in loop.sources:
        parts.append(_read(os.path.join(os.path.dirname(source), "AGENTS.md")))
        folder = os.path.join(source, "prompts")
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        parts += [_read(os.path.join(folder, name)) for name in names if name.endswith(".md")]
    parts.append(str(config.get("append_system_prompt") or ""))
    if config.get("output_schema"):
        from swarm_mcp.loop.schema import instruction

        parts.append(instruction(config["output_schema"]))
    return "\n\n".join(part for part in dict.fromkeys(part.strip() for part in parts) if part)[:LONGEST]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(LONGEST_SECTION + 1)
    except OSError:
        return ""
    return text if len(text) <= LONGEST_SECTION else text[:LONGEST_SECTION] + "\n[cut]"
