"""Workers in panes of their own, opened through the ``herdr`` command.

``pane split``, ``tab create`` and ``workspace create`` print ``{"result": {"pane" | "root_pane": {"pane_id"}}}``;
``pane run`` types a line and presses Enter (herdr 0.7 to 0.9).
"""

from __future__ import annotations

import os
import shlex
from typing import Any

from swarm_hook_core.json_text import loads
from swarm_hook_core.labels import token
from swarm_hook_core.spawn import run
from swarm_mcp.agents.dispatch.spawners import SpawnFailed, WorkerSpec, ignored_in, printed_by, shown_name
from swarm_mcp.runtimes.profiles import Settings
from swarm_mcp.store import Store

SECONDS = 10.0
# Placement options that this spawner does not have; it reports them instead of failing.
UNSUPPORTED = ("group", "max_panes_per_tab", "layout")


class HerdrPanes:
    """The spawner ``herdr``."""

    patience = 30.0

    def start(self, store: Store, worker: WorkerSpec) -> dict[str, Any]:
        """Implement ``spawners.Spawner``."""
        known = store.panes.published(worker.requester.id)
        settings = Settings(token(worker.requester.label or "", "identity"))
        socket = known.get("socket_path") or settings.first("HERDR_SOCKET_PATH")
        herdr = _Herdr(settings.first("SWARM_HERDR_BIN") or "herdr", socket if isinstance(socket, str) else "")
        typed = command_line(worker)
        pane = herdr.open(worker, known)
        try:
            herdr.ask("pane", "run", pane, typed)
        except SpawnFailed:
            herdr.forget(pane)
            raise
        return {"instance_id": worker.instance_id, "pane_id": pane, **ignored_in(worker.placement, UNSUPPORTED)}

    def look(self, store: Store, facts: dict[str, Any]) -> dict[str, Any] | None:
        """Implement ``spawners.Spawner``."""
        worker = store.instances.live(facts["instance_id"])
        if worker:
            return {"instance_id": worker.id}
        return None


def command_line(worker: WorkerSpec) -> str:
    """Return the line that starts the worker in a shell, with its identity as variables. Raises SpawnFailed."""
    variables = {
        "SWARM_MCP_INSTANCE_ID": worker.instance_id,
        "SWARM_MCP_SCOPE": worker.requester.scope,
        "SWARM_MCP_LABEL": worker.label_words,
        "SWARM_AGENT_ROLE": worker.role,
        "AGENT_IDENTITY": token(worker.requester.label or "", "identity"),
    }
    given = [f"{name}={value}" for name, value in variables.items() if value]
    line = shlex.join(["env", *given, *worker.command])
    # It is typed: keys that a terminal acts on work inside of quotes as well, and fish reads a backslash there.
    odd = next((c for c in line if not c.isprintable()), "") or ("\\" if "\\" in "".join(given) else "")
    if odd:
        raise SpawnFailed(f"{odd!r} in its scope, label or command cannot be typed: choose another spawner")
    return line


class _Herdr:
    """The command, talking to one server."""

    def __init__(self, program: str, socket: str):
        self.program = os.path.expanduser(program)
        if socket:
            self.settings: dict[str, Any] = {"HERDR_SOCKET_PATH": socket}
        else:
            self.settings = {}

    def open(self, worker: WorkerSpec, known: dict[str, Any]) -> str:
        """Open a pane in the worker's folder, beside the requester's own unless placed elsewhere; return its id."""
        where, place = ["--cwd", worker.cwd, "--no-focus"], worker.placement
        name = shown_name(worker.name)
        if name:
            named = ["--label", name]
        else:
            named = []
        workspace, tab = place.get("workspace") or "", place.get("tab") or ""
        beside = place.get("parent_pane_id") or known.get("handle") or os.environ.get("HERDR_PANE_ID", "")
        if workspace == "new" or not beside:
            return self._opened("root_pane", "workspace", "create", *where, *named)
        if tab == "new":
            own = known.get("workspace_id") or ""
            if workspace in ("", "reuse_scope", "current"):
                chosen = own
            else:
                chosen = workspace
            return self._opened(
                "root_pane", "tab", "create", *(["--workspace", _handle(chosen)] if chosen else []), *where, *named
            )
        direction = place.get("split_direction") or "right"
        return self._opened("pane", "pane", "split", _handle(beside), "--direction", direction, *where)

    def ask(self, *words: str) -> str:
        """Run the command and return its output. Raises SpawnFailed."""
        done = run([self.program, *words], SECONDS, environment=self.settings)
        return printed_by(done, "herdr", f"herdr {words[0]} {words[1]}", "SWARM_HERDR_BIN")

    def forget(self, pane: str) -> None:
        """Close a pane that nothing could be started in."""
        run([self.program, "pane", "close", pane], SECONDS, environment=self.settings)

    def _opened(self, part: str, *words: str) -> str:
        try:
            answer = loads(self.ask(*words))
        except (ValueError, RecursionError):
            answer = None
        if isinstance(answer, dict):
            result = answer.get("result")
        else:
            result = None
        if isinstance(result, dict):
            pane = result.get(part)
        else:
            pane = None
        if isinstance(pane, dict):
            handle = pane.get("pane_id")
        else:
            handle = None
        if not isinstance(handle, str) or not handle:
            raise SpawnFailed(f"herdr {words[0]} {words[1]} did not say which pane it opened")
        return handle


def _handle(text: str) -> str:
    # Published by a session or given by a model: it must not pass for a flag.
    if text.startswith("-") or not text.isprintable():
        raise SpawnFailed(f"{text[:40]!r} cannot be the name of a pane")
    return text
