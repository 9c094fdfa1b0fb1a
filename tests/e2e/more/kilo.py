"""Kilo as the tests use it: a fork of OpenCode, and used in the same way."""

from swarm_mcp.play import more

from .opencode import OpenCode


class Kilo(more.Kilo, OpenCode):
    harness = executable = "kilo"
    settings = (".config/kilo/kilo.json",)
