"""Clients of MCP servers: ``servers`` of a run, ``protocol``, and the two ways to speak it, ``stdio`` and ``http``."""
