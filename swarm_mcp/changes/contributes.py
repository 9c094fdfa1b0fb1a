"""The verbs and tools about uncommitted changes; see ``contributions``."""

from __future__ import annotations

VERBS: dict[str, str] = {}
PLACES: dict[str, str] = {}
TOOLS: tuple[str, ...] = ()
