"""One tool: what it is called, what it wants, what it does. Each group of tools is a module of these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """What a tool returns: `value` as structured content and JSON text, or `text` alone; then `notes`."""

    value: dict | None = None
    text: str = ""
    notes: tuple[str, ...] = ()
    is_error: bool = False


@dataclass(frozen=True)
class Tool:
    """A tool's whole definition.

    `call(session, arguments)` runs in a worker thread; `arguments` fit `properties`. A tool with
    `changes` writes the store; none reaches outside the swarm.
    """

    name: str
    description: str
    properties: dict[str, dict]
    call: Callable[..., Answer]
    required: tuple[str, ...] = ()
    changes: bool = True
    idempotent: bool = False

    @property
    def schema(self) -> dict:
        """The input schema (JSON Schema)."""
        schema = {"type": "object", "properties": self.properties, "additionalProperties": False}
        return {**schema, "required": list(self.required)} if self.required else schema

    def described(self) -> dict:
        """As listed to clients.

        None is destructive or open-world: Codex asks for approval otherwise, which a session that
        may not ask (``exec``) cannot get.
        """
        annotations = {
            "readOnlyHint": not self.changes,
            "destructiveHint": False,
            "idempotentHint": self.idempotent or not self.changes,
            "openWorldHint": False,
        }
        shown = {"name": self.name, "description": self.description, "inputSchema": self.schema}
        return {**shown, "annotations": annotations}


def text(description: str) -> dict:
    """A string property."""
    return {"type": "string", "description": description}


def flag(description: str, default: bool = False) -> dict:
    """A boolean property."""
    return {"type": "boolean", "default": default, "description": description}


def complaint(tool: Tool, arguments: dict) -> str:
    """What is wrong with `arguments`, in a line; empty where they fit."""
    kinds = {"string": str, "boolean": bool, "integer": int}
    for name in tool.required:
        if name not in arguments:
            return f"{tool.name} needs {name}: {tool.properties[name]['description']}"
    for name, value in arguments.items():
        if name not in tool.properties:
            return f"{tool.name} has no argument {name}; it takes {', '.join(tool.properties) or 'none'}"
        kind = tool.properties[name]["type"]
        fits = isinstance(value, kinds[kind]) and not (kind == "integer" and isinstance(value, bool))
        if not fits or value is None:
            return f"{tool.name}: {name} must be a {kind}"
    return ""
