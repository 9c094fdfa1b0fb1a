"""Tools about messages."""

from __future__ import annotations

TOOLS = ()
