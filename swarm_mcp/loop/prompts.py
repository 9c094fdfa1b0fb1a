"""What the model is told beside the conversation: the system prompt, and what is wrong with an answer by schema.

The system prompt is ours, then what every source and its project say, from the farthest to the nearest.
"""

from __future__ import annotations

import json
import os

from swarm_mcp.harness.requirements import mismatch

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
    """Return the system prompt, without skills and what plugins add."""
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
        parts.append(_schema_instruction(config["output_schema"]))
    return "\n\n".join(part for part in dict.fromkeys(part.strip() for part in parts) if part)[:LONGEST]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(LONGEST_SECTION + 1)
    except OSError:
        return ""
    return text if len(text) <= LONGEST_SECTION else text[:LONGEST_SECTION] + "\n[cut]"


TRIES = 2


def _schema_instruction(wanted: dict) -> str:
    """What the system prompt says about an answer by schema."""
    return (
        "Your last answer, when all work is done, must be one JSON object that follows this JSON Schema, without"
        f" any other text and without a code fence:\n{json.dumps(wanted, ensure_ascii=False)}"
    )


def schema_complaint(loop, output: str) -> str:
    """Return what is wrong with an answer, for the model; empty where it fits, or after TRIES."""
    wanted = loop.settings.config.get("output_schema")
    if not isinstance(wanted, dict) or loop.corrections >= TRIES:
        return ""
    found = structured(output)
    why = mismatch(found, wanted)
    if not why:
        return ""
    loop.corrections += 1
    return f"That answer does not follow the schema: {why}. Answer with the JSON object alone."


def structured(output: str) -> object:
    """Return the JSON value that an answer is, with or without a code fence around it; None where it is none."""
    text = output.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text.partition("\n")[2].rpartition("```")[0]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
