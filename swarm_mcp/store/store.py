"""The embedded store: its parts, what each of them needs of the others, and who hears of what happens."""

from __future__ import annotations

import os

from swarm_hook_core.state import DEFAULT_STORE, has_claims
from swarm_mcp.store.database import BUSY_SECONDS, Database
from swarm_mcp.store.events import Signals
from swarm_mcp.store.upkeep import is_due

TYPE_CHECKING = False
if TYPE_CHECKING:
    from functools import cached_property as made_once
    from typing import TypeVar

    from swarm_hook_core.lookup.sqlite import StoreReader
    from swarm_mcp.domain.lock import Lock
    from swarm_mcp.domain.session import Session
    from swarm_mcp.store.activity import Activity
    from swarm_mcp.store.api import Store as AnyStore
    from swarm_mcp.store.automatic_locks import AutomaticLocks
    from swarm_mcp.store.breaches import Breaches
    from swarm_mcp.store.changes import Changes
    from swarm_mcp.store.cleanup import Cleanup, CleanupParts
    from swarm_mcp.store.denials import Denials
    from swarm_mcp.store.known_values import Planner, Tracker
    from swarm_mcp.store.leases import Leases
    from swarm_mcp.store.lock_endings import LockEndings
    from swarm_mcp.store.lock_finder import LockFinder
    from swarm_mcp.store.lock_queue import LockQueue
    from swarm_mcp.store.lock_request import LockRequest
    from swarm_mcp.store.locks import Locks
    from swarm_mcp.store.messages import Messages
    from swarm_mcp.store.notices import Notices
    from swarm_mcp.store.protection import Protection
    from swarm_mcp.store.runs import Runs
    from swarm_mcp.store.sessions import Sessions
    from swarm_mcp.store.spawn_locks import SpawnLocks
    from swarm_mcp.store.storms import Storms
    from swarm_mcp.store.tasks import Tasks
    from swarm_mcp.store.team_documents import TeamDocuments
    from swarm_mcp.store.team_rows import TeamRows
    from swarm_mcp.store.transfers import Transfers
    from swarm_mcp.store.user_interface import Panes, UiCommands
    from swarm_mcp.store.values import KeyValues

    S = TypeVar("S")
else:

    class made_once:
        """Stands for ``functools.cached_property`` at run time: to load that costs a command more than it saves."""

        def __init__(self, make):
            self.make, self.__doc__ = make, make.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.make(instance)
            return value


ADOPTION_SECONDS = 0.5  # for who only reads to have what was claimed written, while somebody else is writing
_ANY_LEASED = "context WHERE type = 'lock' AND ttl IS NOT NULL"
_LEASED = f"{_ANY_LEASED} AND instance_id = ?"


class Store:
    """The store of ``api.Store`` in one SQLite file.

    A part is made, and its module loaded, when it is first asked for: a command that a hook starts needs few of them.
    Each is given the parts that it asks, in its constructor; none of those asks it in turn. What happens in one part
    and concerns another goes through ``events.Signals``, which is handed on in `_Hearing` below.
    """

    def __init__(
        self,
        path: str | None = None,
        read_only: bool = False,
        busy_seconds: float = BUSY_SECONDS,
        adopts: bool = True,
    ):
        """`adopts`: whether what writes have claimed becomes locks on a look at the locks, also one that only reads."""
        self.database = Database(path, read_only, busy_seconds)
        self._adopts = adopts
        self._signals = _Hearing(self)

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    # ---------------------------------------------------------------- the whole

    @property
    def here(self) -> str:
        return self.database.here

    def now(self) -> int:
        return self.database.now()

    def refresh(self) -> None:
        self.database.refresh()

    def version(self) -> tuple[int, int]:
        return self.database.version()

    def events_so_far(self) -> int:
        row = self.database.row("SELECT seq FROM sqlite_sequence WHERE name = 'events'")
        return row.seq if row else 0

    def close(self) -> None:
        self.database.close()

    def exists(self) -> bool:
        return os.path.isfile(self.database.path)

    def described(self) -> dict:
        source = "SWARM_DB_PATH" if os.environ.get("SWARM_DB_PATH", "").strip() else "home_default"
        place = {"db_path": self.database.path, "db_path_source": source}
        return {"backend": "sqlite", **place, "default_db_path": os.path.expanduser(DEFAULT_STORE)}

    def check_reading(self) -> None:
        self.database.row("SELECT 1")

    def check_writing(self) -> None:
        with self.database.writing():
            pass

    def journal(self) -> str:
        """Return how commits are kept safe: ``wal``, or another journal mode of the file."""
        return str(self.database.rows("PRAGMA journal_mode")[0].journal_mode).lower()

    def as_hooks_read_it(self) -> StoreReader:
        from swarm_hook_core.lookup.sqlite import StoreReader

        return StoreReader(self.database.path, self.database.driver)

    def changes(self) -> Changes:
        from swarm_mcp.store.changes import Changes

        return Changes(self.database.path)

    # ---------------------------------------------------- parts that callers ask

    @made_once
    def instances(self) -> Sessions:
        from swarm_mcp.store.sessions import Sessions

        return Sessions(self.database, lambda: self._finder, self._signals, lambda: self.runs)

    @made_once
    def locks(self) -> Locks:
        from swarm_mcp.store.locks import Locks

        return Locks(
            self.database,
            self._finder,
            lambda: self._endings,
            self.instances,
            lambda: self.panes,
            lambda: self.queue,
            lambda: self.denials,
            self._signals,
            lambda: self.automatic_locks,
        )

    @made_once
    def automatic_locks(self) -> AutomaticLocks:
        from swarm_mcp.store.automatic_locks import AutomaticLocks

        def adopt_beside() -> bool:
            with Store(self.database.path, busy_seconds=ADOPTION_SECONDS) as store:
                return store.automatic_locks.adopt()

        def grant(session: Session, wanted: LockRequest) -> list[Lock]:
            return self.locks.grant(session, wanted)

        return AutomaticLocks(self.database, self._finder, lambda: self._endings, grant, adopt_beside)

    @made_once
    def queue(self) -> LockQueue:
        from swarm_mcp.store.lock_queue import LockQueue

        return LockQueue(self.database, self._finder, self.instances, self._signals)

    @made_once
    def leases(self) -> Leases:
        from swarm_mcp.store.leases import Leases

        return Leases(self.database, self._finder, self._endings, self.instances, self.messages, self.notices)

    @made_once
    def transfers(self) -> Transfers:
        from swarm_mcp.store.transfers import Transfers

        return Transfers(
            self.database,
            self._finder,
            self._endings,
            self.locks,
            self.queue,
            self.instances,
            self.messages,
            self.notices,
            self.denials,
            self._signals,
        )

    @made_once
    def team(self) -> TeamRows:
        from swarm_mcp.store.team_rows import TeamRows

        return TeamRows(
            self.database,
            self._finder,
            self._endings,
            self.instances,
            lambda: self.queue,
            lambda: self.notices,
            lambda: self.locks,
            lambda: self.denials,
            self._signals,
        )

    @made_once
    def team_documents(self) -> TeamDocuments:
        from swarm_mcp.store.team_documents import TeamDocuments

        return TeamDocuments(
            self.database,
            self.instances,
            lambda: self.messages,
            lambda: self.notices,
            lambda: self.kv,
            lambda: self.tasks,
        )

    @made_once
    def denials(self) -> Denials:
        from swarm_mcp.store.denials import Denials

        return Denials(
            self.database,
            self._finder,
            self.instances,
            lambda: self.notices,
            self.queue,
            lambda: self.storms,
        )

    @made_once
    def storms(self) -> Storms:
        from swarm_mcp.store.storms import Storms

        return Storms(self.database, self.instances, self.notices)

    @made_once
    def breaches(self) -> Breaches:
        from swarm_mcp.store.breaches import Breaches

        return Breaches(self.database, self._finder, self.instances, self.messages)

    @made_once
    def messages(self) -> Messages:
        from swarm_mcp.store.messages import Messages

        return Messages(self.database, self.instances)

    @made_once
    def notices(self) -> Notices:
        from swarm_mcp.store.notices import Notices

        return Notices(self.database, lambda: self.messages, lambda: self._finder)

    @made_once
    def protection(self) -> Protection:
        from swarm_mcp.store.protection import Protection

        return Protection(self.database, self.instances, lambda: self.notices)

    @made_once
    def tasks(self) -> Tasks:
        from swarm_mcp.store.task_life import TaskParts
        from swarm_mcp.store.tasks import Tasks

        return Tasks(TaskParts(self.database, self.instances, self.messages, self._endings, self._signals))

    @made_once
    def runs(self) -> Runs:
        from swarm_mcp.store.runs import Runs

        return Runs(self.database)

    @made_once
    def spawn_locks(self) -> SpawnLocks:
        from swarm_mcp.store.spawn_locks import SpawnLocks

        return SpawnLocks(self.database, self._finder, self.instances)

    @made_once
    def kv(self) -> KeyValues:
        from swarm_mcp.store.values import KeyValues

        return KeyValues(self.database)

    @made_once
    def panes(self) -> Panes:
        from swarm_mcp.store.user_interface import Panes

        return Panes(self.database, self.instances, self.kv)

    @made_once
    def planner(self) -> Planner:
        from swarm_mcp.store.known_values import Planner

        return Planner(self.database, self.instances, self.kv)

    @made_once
    def tracker(self) -> Tracker:
        from swarm_mcp.store.known_values import Tracker

        return Tracker(self.database, self.kv)

    @made_once
    def activity(self) -> Activity:
        from swarm_mcp.store.activity import Activity

        return Activity(self.database, self._finder, self._endings, self.leases, self.instances, self.denials)

    @made_once
    def ui_commands(self) -> UiCommands:
        from swarm_mcp.store.user_interface import UiCommands

        return UiCommands(self.database)

    @made_once
    def cleanup(self) -> Cleanup:
        from swarm_mcp.store.cleanup import Cleanup

        return Cleanup(self.database, self.leases, self._cleanup_parts)

    # ------------------------------------------- parts that only other parts ask

    @made_once
    def _finder(self) -> LockFinder:
        from swarm_mcp.store.lock_finder import LockFinder

        return LockFinder(self.database, (lambda: self.automatic_locks.adopt()) if self._adopts else None)

    @made_once
    def _endings(self) -> LockEndings:
        from swarm_mcp.store.lock_endings import LockEndings

        return LockEndings(self.database, self._finder, self.instances, self._signals)

    def _cleanup_parts(self) -> CleanupParts:
        from swarm_mcp.store.cleanup import CleanupParts

        return CleanupParts(
            self._signals,
            self.instances,
            self._finder,
            self._endings,
            self.leases,
            self.denials,
            self.messages,
            self.notices,
            self.breaches,
            self.kv,
            lambda: self.tasks,
            lambda: self.runs,
        )


class _Hearing(Signals):
    """Who hears of what. What goes with a session when it leaves goes in one transaction with the row itself.

    Hooks wait for sessions that join, take turns and leave, and models for locks: a part whose tables hold nothing for
    them is not asked, and so its module need not be loaded.
    """

    def __init__(self, store: Store):
        self._store = store

    def session_alive(self, instance_id: str) -> None:
        if self._holds(_LEASED, instance_id):
            self._store.leases.renew(instance_id)

    def turn_ended(self, session: Session, over_ns: int) -> None:
        if has_claims() or self._holds(f"{_LEASED} AND mode = 'auto'", session.id):
            self._store.automatic_locks.end(session, "", over_ns)

    def session_settled(self, session: Session, before: Session | None) -> None:
        self._store.planner.settle(session, before)

    def session_moved(self, session: Session) -> None:
        store = self._store
        held = store._finder.of(session.id)
        store._endings.drop([lock for lock in held if lock.scope == session.scope], "moved")
        store.tasks.vacate(session)

    def session_gone(self, session: Session, reason: str) -> None:
        store, gone = self._store, session.id
        if self._holds("swarm_denials WHERE instance_id = ?", gone):
            store.denials.forget(gone)
        if self._holds("swarm_notices WHERE instance_id = ?", gone):
            store.notices.forget_of(gone)
        if self._holds("swarm_lapses WHERE instance_id = ?", gone):
            store.leases.forget_lapses_of(gone)
        if self._holds("context WHERE type = 'lock' AND instance_id = ?", gone):
            store._endings.drop(store._finder.of(gone), reason)
        if self._holds("tasks"):
            store.tasks.release_all(session, reason)
        if self._holds("messages WHERE scope = ? AND recipient = ?", session.scope, gone):
            store.messages.forget_of(session)
        if self._holds("kv WHERE key IN (?, ?)", f"identity/workspace/herdr/{gone}", f"identity/herdr/{gone}"):
            store.panes.withdraw(gone)
        store.instances.delete(session, reason)
        if "role:planner" in (session.label or ""):
            store.planner.leave(session)

    def session_removed(self, session: Session, by: Session) -> None:
        self._store.messages.announce_removal(session, by)

    def pane_seen(self, session: Session, pane: dict[str, str]) -> None:
        self._store.panes.publish(session, pane)

    def locks_granted(self, session: Session, locks: list[Lock]) -> None:
        if locks and self._holds("swarm_lapses"):
            self._store.leases.note_grant(session, locks)

    def locks_freed(self, locks: list[Lock], reason: str) -> None:
        if self._holds("swarm_denials"):
            self._store.denials.tell(locks, reason)
        if reason not in ("deregistered", "reclaimed"):  # else they are on their way out as it is
            self._store.instances.dismiss({lock.instance_id for lock in locks})

    def locks_lapsed(self, locks: list[Lock]) -> None:
        self._store.leases.note_lapse(locks)

    def place_left(self) -> None:
        self._store.denials.settle()

    def registered(self) -> None:
        if is_due(self._store.database) or self._holds(_ANY_LEASED):
            self._store.cleanup.some()

    def _holds(self, what: str, *values: object) -> bool:
        return self._store.database.row(f"SELECT 1 FROM {what} LIMIT 1", values) is not None


if TYPE_CHECKING:
    from typing import TypeVar

    from swarm_hook_core.lookup.sqlite import StoreReader

    def _is_what_the_interface_says(store: Store) -> AnyStore:
        return store
