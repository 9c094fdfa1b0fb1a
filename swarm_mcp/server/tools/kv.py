"""Tools about kv."""

from __future__ import annotations

TOOLS = ()
