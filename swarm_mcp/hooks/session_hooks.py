"""Hooks of a session's life in a process of the coordinator: they register sessions in the store itself.

A hook that starts the coordinator's command pays for a second interpreter; here there is one (``hook_process``). This
is on its way, and imports little: it calls functions of the store's ``Database``, since ``Store`` takes long to load.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import IO, Any, TypeVar

from swarm_hook_core import process, state
from swarm_hook_core.core import HookCore
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.process import runs_app_server
from swarm_hook_core.registration import NotRegistered
from swarm_hook_core.state import describe, mark_of, name_of, read_private, state_dir
from swarm_hook_core.untrusted_text import named, quoted, same_circle, token
from swarm_mcp.contributions import put_undos_right
from swarm_mcp.domain import Notice, Session
from swarm_mcp.errors import SwarmError, UsageError
from swarm_mcp.runtimes import NAMES, hook_config, runtime
from swarm_mcp.runtimes import runtime as runtime_called
from swarm_mcp.store import driver, session_table, sessions
from swarm_mcp.store.database import Database
from swarm_mcp.store.sessions import Registration

LARGEST = 64 * 1024  # characters of the list of files that protect a checkout

T = TypeVar("T")


class StoreRegistrar:
    """Registers sessions like ``command_registrar.CommandRegistrar``, without a command. It must be closed."""

    def __init__(self, runtime: str):
        self._runtime = runtime
        self._database: Database | None = None
        self._untold: list[Notice] = []
        self._is_cleanup_due = False
        self.has_mail = False  # True if the session that was registered last has unread messages

    def close(self) -> None:
        """Close the store. Words that the model has not read by now come another time."""
        if self._database:
            if self._untold:
                from swarm_mcp.store import messages

                messages.put_back(self._database, [notice.id for notice in self._untold])
            self._database.close()
        if self._is_cleanup_due:
            process.start_detached([*this_command(), "cleanup", "--due"])

    @property
    def command(self) -> list[str]:
        """Return the argv prefix that starts this coordinator."""
        from swarm_mcp.installation import coordinator_command

        return coordinator_command()

    def register(self, session: dict[str, Any], _seconds: float, patience: float, tell: bool = False) -> dict[str, Any]:
        """Register or renew `session`, as from ``registration.described``. Return its row, as the command shows it.

        The row's ``messages`` count as read from `told` on. Raises NotRegistered.
        """
        return self._in_store(patience, lambda db: self._registered(db, session, tell))

    def told(self) -> None:
        """Note that the model has read the words of the last row."""
        if self._database and self._untold:
            from swarm_mcp.store import messages

            messages.acknowledge(self._database, [notice.id for notice in self._untold])
            self._untold = []

    def tell_hooks_off(self, session_id: str) -> None:
        """Tell people and the sessions there if the client's settings keep its hooks from running in this folder."""
        off = runtime(self._runtime).hooks_off()

        def told(db: Database) -> None:
            from swarm_mcp.store import breaches

            row = session_table.of_session(db, self._runtime, session_id)
            if row:
                with db.writing() as tx:
                    breaches.lowered(tx, row.scope, None, "hooks", f"in {row.label or self._runtime}: {off}")

        if off:
            self._in_store(0.3, told)

    def end(self, session_id: str, client: tuple[int, str], _seconds: float, patience: float) -> None:
        """End a session in this `client`, pid and start time. Raises NotRegistered."""

        def ended(db: Database) -> None:
            row = session_table.of_session(db, self._runtime, session_id)
            if row:
                sessions.end_session(db, row, client)

        self._in_store(patience, ended)

    def reader(self) -> StoreReader | None:
        """Return a reader of the store that is open here, if there is one."""
        if self._database is None:
            return None

        db = self._database
        return StoreReader(db.path, db.driver, waits=True, connection=db.connection)

    def _registered(self, db: Database, session: dict[str, Any], tell: bool) -> dict[str, Any]:
        names = ("label", "scope", "file_root", "lease_seconds", "runtime", "session_id", "state", "client")
        request = sessions.Registration(
            session["directory"],
            **{name: session[name] for name in (*names, "turn_over")},
            preassigned_id=os.environ.get("SWARM_MCP_INSTANCE_ID", "").strip(),
            pane=_pane(session["pane"]),
        )
        find_terminal(db, request, anew=bool(session["source"]))
        row, self._is_cleanup_due = sessions.register_before_cleanup(db, request)
        shown: dict[str, Any] = {"id": row.id, "scope": row.scope, "label": row.label}
        if session["source"]:
            # a turn that begins does not need it

            shown["summary"] = scope_summary(db, row)
        if tell:
            from swarm_mcp.store import messages

            find_lowered(db, row)
            self._untold = messages.take_notices(db, row)
            shown["notices"] = [notice.text for notice in self._untold]
            self.has_mail = messages.are_messages_unread(db, row)
        return shown

    def _in_store(self, patience: float, work: Callable[[Database], T]) -> T:
        try:
            if self._database is None:
                self._database = Database(busy_seconds=patience)
            return work(self._database)
        except SwarmError as error:
            raise NotRegistered(str(error)) from error
        except Exception as error:  # a bug: the session goes on, and is told that it is not registered
            raise NotRegistered(describe(error)) from error


def this_command() -> list[str]:
    """Return the argv prefix that started this process, or that starts this coordinator."""
    words = sys.argv[1:]
    if words[:1] == ["hook"] and sys.orig_argv[-len(words) :] == words:
        return sys.orig_argv[: -len(words)]  # to look for our folders would take longer than many a hook
    from swarm_mcp.installation import coordinator_command

    return coordinator_command()


def find_lowered(db: Database, row: Session) -> None:
    """Report a lower protection of this session. A fault in that must not keep it from working.

    Nothing is loaded for it while the files that decide are as they were at the last look.
    """
    path = os.path.join(state_dir(), "protected", name_of(row.scope))
    try:
        if _is_as_it_was(path, db):
            return
        from swarm_mcp.hooks.protection_watch import look
        from swarm_mcp.store.store import Store

        with Store(db.path, busy_seconds=db.busy_seconds) as store:
            look(store, row, path)
    except Exception as error:
        state.record("coordinator", "protection", state.describe(error))


def _is_as_it_was(path: str, db: Database) -> bool:
    """Compare the files listed at `path`, a line each (``protection_watch.listed``), with their present state."""
    try:
        number, *lines = os.fsdecode(read_private(path, LARGEST)).splitlines()
        seen = int(number)
    except (OSError, ValueError):  # unreadable: look anew
        return False
    marks = (line.partition(" ") for line in lines)
    return db.events_so_far() >= seen and all(mark_of(name, mark) == mark for mark, _, name in marks)


def find_terminal(db: Database, request: Registration, anew: bool) -> None:
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
        request.terminal = session_table.terminal_of(db, request.runtime, request.session_id)
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


# A hook of a plugin as a process of the coordinator: ``swarm-mcp hook EVENT --runtime NAME [--within SECONDS]``.
#
# An installed plugin starts the hooks of a session's life so (``integrations/hook.sh``), because one interpreter is
# enough for them. The client waits for each, so their command line has a reader of its own.

HOOKS = ("session-start", "session-end", "pre-tool-use", "post-tool-use", "turn", "subagent")
_LIFE = ("session-start", "session-end", "turn")


def as_wired(words: list[str]) -> int | None:
    """Run the hook of exactly this command line, as plugins have it. Return its status, or None for another line."""
    if len(words) != 5 or words[1::2] != ["--runtime", "--within"]:
        return None
    hook, seconds = words[0].replace("_", "-"), words[4]
    if hook not in _LIFE or not seconds.replace(".", "", 1).isdecimal():
        return None
    end_within(float(seconds))
    return run(hook, words[2])


def run(hook: str, runtime: str) -> int:
    """Run one hook on standard input and output; its exit status. Raises UsageError before it reads anything."""

    config = hook_config(runtime)
    if hook not in _LIFE or os.environ.get("SWARM_MCP_BIN", "").strip():
        import shlex

        from swarm_mcp.installation import coordinator_command

        if hook == "subagent" and not runtime_called(runtime).has_subagents:
            raise UsageError(f"{runtime} has no such hook: {hook}")
        # An installed plugin knows its coordinator from its own record; here it is this very installation.
        os.environ.setdefault("SWARM_MCP_BIN", shlex.join(coordinator_command()))
        status: int = getattr(HookCore(config), f"run_{hook.replace('-', '_')}_hook")(sys.stdin)
        return status

    return run_in_store(runtime, hook.replace("-", "_"), sys.stdin, driver.load())


def run_in_store(runtime: str, event: str, payload: IO[Any], driver: Any) -> int:
    """Run a hook of a session's life, which registers the session in the store itself; its exit status.

    `driver`: the SQLite module of this process.
    """

    registrar = StoreRegistrar(runtime)
    core = HookCore(hook_config(runtime), driver=driver, registrar=registrar)
    status: int = getattr(core, f"run_{event}_hook")(payload)
    try:
        registrar.close()
        put_undos_right()
    except Exception as error:  # the hook is done; were this told by the status, the plugin would run it once more
        state.record(runtime, event, state.describe(error))
    return status


def end_within(seconds: float) -> None:
    """Have this process killed when the time is over, at any point: the store loses nothing by it."""
    # `signal` offers the same, at the cost of enums (a millisecond). It is CPython's own, and in no stubs.
    import _signal  # type: ignore[import-not-found]

    if hasattr(_signal, "setitimer"):
        _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
        _signal.setitimer(_signal.ITIMER_REAL, seconds)


_MOST_NAMED = 4  # peers, and locks


def scope_summary(db: Database, row: Session) -> dict[str, Any]:
    """Return peers and locks of the scope of a session that has just been registered, for its first message.

    ``{peer_count, peers: [text], lock_count, locks: [text]}``; sessions of another identity are
    counted only where they hold a lock, and then not named.
    """
    from swarm_hook_core.naming import holder_name

    mine = token(row.label or "", "identity")
    met = [p for p in session_table.beside(db, row) if same_circle(mine, token(p.label or "", "identity"))]
    count, locks = session_table.held_beside(db, row, _MOST_NAMED, mine)
    texts = []
    for lock in locks:
        if lock["owner_label"]:
            owner = holder_name(lock["owner_label"], lock["instance_id"])
        else:
            owner = "another session"
        text = f"{named(lock['file'])} by {owner}"
        texts.append(f"{text} ({quoted(lock['content'], 80)})" if lock["content"].strip() else text)
    return {
        "peer_count": len(met),
        "peers": [holder_name(peer.label, peer.id) for peer in met[:_MOST_NAMED]],
        "lock_count": count,
        "locks": texts,
    }
