"""Answers that are to be JSON after a schema: asked for in words, checked, and asked for again."""

from __future__ import annotations

import json

from swarm_mcp.harness.requirements import mismatch

TRIES = 2


def instruction(wanted: dict) -> str:
    """What the system prompt says about it."""
    return (
        "Your last answer, when all work is done, must be one JSON object that follows this JSON Schema, without"
        f" any other text and without a code fence:\n{json.dumps(wanted, ensure_ascii=False)}"
    )


def complaint(loop, output: str) -> str:
    """What is wrong with an answer, for the model; empty where it fits, none is wanted, or it was told often enough."""
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
    """The JSON value that an answer is, a code fence around it or not; None where it is none."""
    text = output.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text.partition("\n")[2].rpartition("```")[0]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
