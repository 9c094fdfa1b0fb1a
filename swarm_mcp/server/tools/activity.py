"""Tools about activity."""

from __future__ import annotations

TOOLS = ()
