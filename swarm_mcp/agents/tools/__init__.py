"""The MCP tools about workers."""
