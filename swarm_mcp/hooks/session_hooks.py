"""Hooks of a session's life in a process of the coordinator: they register sessions in the store itself.

A hook that starts the coordinator's command pays for a second interpreter; here there is one (``hook_process``). This
is on its way, and imports little.
"""

from __future__ import annotations

import os
import sys

from swarm_hook_core.process import runs_app_server
from swarm_hook_core.registration import NotRegistered
from swarm_hook_core.state import mark_of, name_of, state_dir
from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes import NAMES, runtime
from swarm_mcp.store.sessions import Registration
from swarm_mcp.store.store import Store

LARGEST = 64 * 1024  # characters of the list of files that protect a checkout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from swarm_mcp.domain.message import Notice
    from swarm_mcp.domain.session import Session

    T = TypeVar("T")


class StoreRegistrar:
    """Registers sessions like ``command_registrar.CommandRegistrar``, without a command. It must be closed."""

    def __init__(self, runtime: str):
        self._runtime = runtime
        self._store: Store | None = None
        self._untold: list[Notice] = []
        self._is_cleanup_due = False
        self.has_mail = False  # True if the session that was registered last has unread messages

    def close(self) -> None:
        """Close the store. Words that the model has not read by now come another time."""
        if self._store:
            if self._untold:
                self._store.messages.put_back([notice.id for notice in self._untold])
            self._store.close()
        if self._is_cleanup_due:
            from swarm_hook_core.spawn import start_detached

            start_detached([*this_command(), "cleanup", "--due"])

    @property
    def command(self) -> list[str]:
        """Return the argv prefix that starts this coordinator."""
        from swarm_mcp.installation import coordinator_command

        return coordinator_command()

    def register(self, session: dict[str, Any], _seconds: float, patience: float, tell: bool = False) -> dict[str, Any]:
        """Register or renew `session`, as from ``registration.described``. Return its row, as the command shows it.

        The row's ``notices`` count as read from `told` on. Raises NotRegistered.
        """
        return self._in_store(patience, lambda store: self._registered(store, session, tell))

    def told(self) -> None:
        """Note that the model has read the words of the last row."""
        if self._store and self._untold:
            self._store.messages.acknowledge([notice.id for notice in self._untold])
            self._untold = []

    def end(self, session_id: str, client: tuple[int, str], _seconds: float, patience: float) -> None:
        """End a session in this `client`, pid and start time. Raises NotRegistered."""

        def ended(store: Store) -> None:
            row = store.instances.of_session(self._runtime, session_id)
            if row:
                store.instances.end_session(row, client)

        self._in_store(patience, ended)

    def _registered(self, store: Store, session: dict[str, Any], tell: bool) -> dict[str, Any]:
        names = ("label", "scope", "file_root", "lease_seconds", "runtime", "session_id", "state", "client")
        request = Registration(
            session["directory"],
            **{name: session[name] for name in (*names, "turn_over")},
            preassigned_id=os.environ.get("SWARM_MCP_INSTANCE_ID", "").strip(),
            pane=_pane(session["pane"]),
        )
        find_terminal(store, request, anew=bool(session["source"]))
        row, self._is_cleanup_due = store.instances.register_before_cleanup(request)
        shown: dict[str, Any] = {"id": row.id, "scope": row.scope, "label": row.label}
        if session["source"]:
            from swarm_mcp.sessions.scope_summary import scope_summary  # a turn that begins does not need it

            shown["summary"] = scope_summary(store, row)
        if tell:
            find_lowered(store, row)
            self._untold = store.notices.take(row)
            shown["notices"] = [notice.text for notice in self._untold]
            self.has_mail = store.notices.are_messages_unread(row)
        return shown

    def _in_store(self, patience: float, work: Callable[[Store], T]) -> T:
        try:
            if self._store is None:
                self._store = Store(busy_seconds=patience)
            return work(self._store)
        except SwarmError as error:
            raise NotRegistered(str(error)) from error
        except Exception as error:  # a bug: the session goes on, and is told that it is not registered
            from swarm_hook_core.faults import describe

            raise NotRegistered(describe(error)) from error


def this_command() -> list[str]:
    """Return the argv prefix that started this process, or that starts this coordinator."""
    words = sys.argv[1:]
    if words[:1] == ["hook"] and sys.orig_argv[-len(words) :] == words:
        return sys.orig_argv[: -len(words)]  # to look for our folders would take longer than many a hook
    from swarm_mcp.installation import coordinator_command

    return coordinator_command()


def find_lowered(store: Store, row: Session) -> None:
    """Report a lower protection of this session. A fault in that must not keep it from working.

    Nothing is loaded for it while the files that decide are as they were at the last look.
    """
    path = os.path.join(state_dir(), "protected", name_of(row.scope))
    try:
        if _is_as_it_was(path, store):
            return
        from swarm_mcp.hooks.protection_watch import look

        look(store, row, path)
    except Exception as error:
        from swarm_hook_core import faults

        faults.record("coordinator", "protection", faults.describe(error))


def _is_as_it_was(path: str, store: Store) -> bool:
    """Compare the files listed at `path`, a line each (``protection_watch.listed``), with their present state."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            number, *lines = file.read(LARGEST).splitlines()
    except (OSError, ValueError):  # unreadable: look anew
        return False
    marks = (line.partition(" ") for line in lines)
    return store.events_so_far() >= int(number) and all(mark_of(name, mark) == mark for mark, _, name in marks)


def find_terminal(store: Store, request: Registration, anew: bool) -> None:
    """Ask for the terminal of this session: in a client's background server the environment is that of the first
    terminal.
    """
    pid = request.client[0]
    if not pid or not runs_app_server(pid):
        return
    request.pane = {}
    if anew:
        request.terminal = (0, "")
    else:
        request.terminal = store.instances.terminal_of(request.runtime, request.session_id)
    if request.terminal[0]:
        return
    known = request.runtime in NAMES
    terminal = None
    if known:
        terminal = runtime(request.runtime).terminal_of(request.session_id)
    if terminal:
        request.terminal, request.pane = (terminal.pid, terminal.started), terminal.pane


def _pane(name: str) -> dict[str, str]:
    if not name:
        return {}
    from swarm_mcp.store.user_interface import pane_in

    return pane_in({**os.environ, "HERDR_PANE_ID": name})
