"""Kilo as the tests use it: a fork of OpenCode, and used in the same way."""

from .opencode import OpenCode


class Kilo(OpenCode):
    name = harness = executable = "kilo"
    plugin = "@kilocode/plugin"
    prefix = "KILO"
    settings = (".config/kilo/kilo.json",)
