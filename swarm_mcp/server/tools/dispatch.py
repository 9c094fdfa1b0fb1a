"""Tools about dispatch."""

from __future__ import annotations

TOOLS = ()
