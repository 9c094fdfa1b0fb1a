"""The MCP server: the coordinator as tools inside a session, over standard input and output. It begins in ``app``."""

from __future__ import annotations
