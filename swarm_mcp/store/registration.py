"""What a session says of itself when it joins."""

from __future__ import annotations

import os

from swarm_hook_core.labels import bounded
from swarm_mcp.scope import clean, scope_of


class Registration:
    """What a session says of itself when it registers. Empty values count as not given.

    `client` is ``(pid, start time)`` of the process whose end ends the session; `terminal` the same of
    the terminal in front of it, where the client outlives terminals; `pane` as ``panes.pane_in`` gives it.
    """

    __slots__ = (
        "directory", "label", "scope", "file_root", "lease_seconds", "adopt_id", "preassigned_id",
        "runtime", "session_id", "state", "client", "terminal", "pane",
    )  # fmt: skip

    def __init__(self, directory: str, **given):
        self.directory = clean(directory)
        self.label = bounded(" ".join((given.get("label") or "").split())) or None
        self.scope = scope_of(self.directory, given.get("scope") or "")
        self.file_root = clean(given["file_root"]) if given.get("file_root") else self.directory
        self.lease_seconds = given.get("lease_seconds") or 0
        self.adopt_id = given.get("adopt_id") or ""
        self.preassigned_id = given.get("preassigned_id") or ""
        self.runtime = given.get("runtime") or ""
        self.session_id = given.get("session_id") or ""
        self.state = given.get("state") or "idle"
        self.client = given.get("client") or (0, "")
        self.terminal = given.get("terminal") or (0, "")
        self.pane = given.get("pane") or {}


def new_id() -> str:
    """A random UUID, version 4, without the 3 ms that importing ``uuid`` costs."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
