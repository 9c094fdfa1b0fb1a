"""Kilo as the tests use it: as OpenCode, of which it is a fork."""

from __future__ import annotations

from .opencode import OpenCode


class Kilo(OpenCode):
    name = harness = executable = "kilo"
    plugin = "@kilocode/plugin"
    prefix = "KILO"
    settings = (".config/kilo/kilo.json",)
