"""Kilo as the tests use it: a fork of OpenCode, and used in the same way."""

from swarm_mcp.play import open_clients

from .opencode import OpenCode


class Kilo(open_clients.Kilo, OpenCode):
    harness = executable = "kilo"
    settings = (".config/kilo/kilo.json",)
