"""The MCP tools of this package."""
