"""Tools about workspace."""

from __future__ import annotations

TOOLS = ()
