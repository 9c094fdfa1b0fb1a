"""Tools about tasks."""

from __future__ import annotations

TOOLS = ()
