"""Workspaces that sessions can be seen and woken in. A backend is a class here and a line in `BACKENDS`.

A backend talks to its program as a process of its own, never for longer than `SECONDS` at a time, and reports every
failure as `PaneUnavailable`. A message is stored before a session is woken, so no trouble here may undo or fail a
command.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Protocol

from swarm_hook_core.json_text import loads
from swarm_hook_core.process import run
from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes.json_editor import object_of, text_of

SECONDS = 5.0


class PaneUnavailable(SwarmError):
    """The workspace does not know the pane, or does not answer. The text says it in one line."""


class Pane(NamedTuple):
    """A pane as its workspace describes it now. Unknown fields are empty.

    `handle` is the pane's present name. `agent` is the kind of agent in it (``claude``, ``codex``), `status` its state:
    idle, working, blocked, done, unknown. `instance_id` is the instance that the agent itself has reported.
    """

    handle: str
    agent: str = ""
    status: str = ""
    instance_id: str = ""
    workspace_id: str = ""
    tab_id: str = ""


class Backend(Protocol):
    """One workspace program. `socket` says where its server listens, empty for the usual place."""

    name: str
    kinds: tuple[str, ...]

    def resolve(self, handle: str, socket: str = "") -> Pane:
        """The pane that `handle`, its present or an earlier name, means. Raises PaneUnavailable."""

    def wake(self, handle: str, text: str, socket: str = "") -> None:
        """Type one line into the pane and press Enter. Raises PaneUnavailable."""

    def read(self, handle: str, source: str, lines: int, socket: str = "") -> str:
        """Text of the pane: ``visible``, ``recent`` or ``recent-unwrapped``. Raises PaneUnavailable."""


# ---------------------------------------------------------------- Herdr

REPORTER = "swarm-mcp:"  # ``swarm-mcp:<runtime>:<instance>``: an agent's report of itself to herdr
LONGEST_ERROR = 200


class Herdr:
    """Herdr, a workspace of terminals for agents, asked through its command.

    ``herdr pane get`` prints ``{"result": {"pane": {pane_id, agent, agent_status, workspace_id, tab_id, ...}}}`` (0.7
    to 0.9); a failure is exit code 1 with ``{"error": {"code", "message"}}`` on standard error. A pane that was moved
    has a new id and answers to its old ones.
    """

    name = "herdr"
    kinds: tuple[str, ...] = ("pane",)

    def resolve(self, handle: str, socket: str = "") -> Pane:
        """See `Backend`."""
        try:
            answer = loads(self._run(socket, "get", _checked(handle)))
        except (ValueError, RecursionError):
            raise PaneUnavailable("herdr pane get did not answer with JSON") from None
        pane = _inside(_inside(answer, "result"), "pane")
        if not text_of(pane.get("pane_id")):
            raise PaneUnavailable(_complaint(answer) or "herdr pane get named no pane")
        return Pane(
            handle=text_of(pane.get("pane_id")),
            agent=text_of(pane.get("agent")),
            status=text_of(pane.get("agent_status")),
            instance_id=_reported(pane),
            workspace_id=text_of(pane.get("workspace_id")),
            tab_id=text_of(pane.get("tab_id")),
        )

    def wake(self, handle: str, text: str, socket: str = "") -> None:
        """See `Backend`."""
        self._run(socket, "send-text", _checked(handle), text)
        self._run(socket, "send-keys", handle, "enter")

    def read(self, handle: str, source: str, lines: int, socket: str = "") -> str:
        """See `Backend`."""
        argv = ("read", _checked(handle), "--source", source, "--lines", str(lines), "--format", "text")
        return self._run(socket, *argv)

    def _run(self, socket: str, *words: str) -> str:
        program = os.path.expanduser(os.environ.get("SWARM_HERDR_BIN", "").strip() or "herdr")
        settings = {}
        if socket:
            settings = {"HERDR_SOCKET_PATH": socket}
        done = run([program, "pane", *words], SECONDS, environment=settings)
        if done.code != 0:
            raise PaneUnavailable(f"herdr pane {words[0]} failed: {_reason(done)}")
        return str(done.stdout)


def _checked(handle: str) -> str:
    # Handles come from other sessions. None may pass for a flag, or for several words.
    if not handle.isprintable() or handle.startswith("-") or not handle.strip() or len(handle) > 200:
        raise PaneUnavailable(f"{handle[:40]!r} cannot be the name of a pane")
    return handle


def _reason(done: Any) -> str:
    for text in (done.stderr, done.stdout):
        try:
            known = ""
            if text.strip():
                known = _complaint(loads(text))
        except (ValueError, RecursionError):
            known = ""
        if known:
            return known
    lines = done.stderr.split("\n") + done.stdout.split("\n")
    return next((line.strip() for line in lines if line.strip()), f"exit code {done.code}")[:LONGEST_ERROR]


def _complaint(answer: object) -> str:
    error = _inside(answer, "error")
    return (text_of(error.get("message")) or text_of(error.get("code")))[:LONGEST_ERROR]


def _reported(pane: dict[str, Any]) -> str:
    session = _inside(pane, "agent_session")
    for text in (text_of(session.get("source")), text_of(session.get("value")), text_of(pane.get("source"))):
        if text.startswith(REPORTER):
            return text.rpartition(":")[2]
    return text_of(_inside(pane, "tokens").get("swarm_instance_id")) or text_of(pane.get("swarm_instance_id"))


def _inside(value: object, key: str) -> dict[str, Any]:
    found = object_of(value).get(key)
    return object_of(found)


BACKENDS: dict[str, Backend] = {"herdr": Herdr()}


def backend(name: str) -> Backend:
    """Return the backend of this name. Raises SwarmError without any."""
    if name not in BACKENDS:
        known = ", ".join(BACKENDS)
        raise SwarmError(f'Unsupported workspace backend "{name}"; there is: {known}')
    return BACKENDS[name]
