"""The open store: parts by subject, each with its verbs.

A verb is a function of a transaction, in the module that it names: its arguments, its answer and its errors are said
there, and only there. This module says for each verb how it is called:

- `verb(f)`: calls ``f(database, ...)``. The function reads, or opens transactions itself, or is one of those that
  callers put into a transaction of their own.
- `in_write(f)`: calls ``f(tx, ...)`` inside one transaction.

A hook starts commands that need few of the modules and few of the parts: a module is loaded, and the class of a part
made, when it is first asked for. To type checkers a module is itself, and a verb its function without the first
argument.

A listing without a bound is a ``walk``: its rows one after the other, each with its cursor, behind the row with the
cursor `after` (empty: from the beginning). ``size.page`` takes of it what an answer has room for. A `count` beside it
takes the same filters and says how many rows there are in all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.state import DEFAULT_STORE
from swarm_mcp.store import messages, session_table
from swarm_mcp.store.database import BUSY_SECONDS, Database

TYPE_CHECKING = False
if TYPE_CHECKING:
    P = ParamSpec("P")
    R = TypeVar("R")

    class verb(Generic[P, R]):
        """A verb of a part: the function without its first argument."""

        def __init__(self, function: Callable[Concatenate[Database, P], R]): ...

        @overload
        def __get__(self, part: None, owner: object) -> verb[P, R]: ...

        @overload
        def __get__(self, part: Part, owner: object) -> Callable[P, R]: ...

        def __get__(self, part: Part | None, owner: object) -> Any: ...

    in_write = verb
    later = type
else:

    class LazyModule:
        """A module that is not loaded yet: an attribute is the pair of it and of a function's name.

        Its own name is in `_names`: a ``__getattr__`` would only be asked after Python has failed to find each of 200
        attributes, which takes longer than the rest of this module.
        """

        def __init__(self, name):
            _names[self] = name

        def __getattribute__(self, name):
            return self, name

    _names = {}  # LazyModule -> its name

    class verb:
        """A verb of a part: loads the module when it is first asked for, and binds the function to the database."""

        _loaded = None

        def __init__(self, function):
            self._module_and_name = function

        def __get__(self, part, owner=None):
            function = self._function()
            if part is None:
                return function
            return function.__get__(part._database)

        def _function(self):
            module, name = self._module_and_name
            if self._loaded is None:
                self._loaded = __import__(_names[module], fromlist=[name])
            return getattr(self._loaded, name)

    class in_write(verb):
        """A verb whose function runs inside one transaction."""

        def __get__(self, part, owner=None):
            function = self._function()
            if part is None:
                return function

            def in_transaction(*values, **named):
                with part._database.writing() as tx:
                    return function(tx, *values, **named)

            return in_transaction

    def later(name: str, bases: tuple[type], verbs: dict[str, object]) -> object:
        """Return the arguments of `type` for a part's class. `Store` makes the class when a verb of it is called."""
        return name, bases, verbs


class Part:
    """Verbs about one subject, over one open store."""

    def __init__(self, database: Database):
        self._database = database


if TYPE_CHECKING:
    from swarm_mcp.store import (
        activity,
        breaches,
        cleanup,
        grants,
        lock_finder,
        lock_listing,
        lock_rows,
        locks,
        reactions,
        refusals,
        runs,
        sessions,
        task_reading,
        task_requests,
        tasks,
        user_interface,
        values,
    )
    from swarm_mcp.store.changes import Changes

    S = TypeVar("S", bound="Store")
else:
    _MODULES = """
        activity breaches cleanup grants lock_finder lock_listing lock_rows locks messages reactions
        refusals runs session_table sessions task_reading task_requests tasks user_interface values
    """
    for _name in _MODULES.split():
        globals()[_name] = LazyModule(f"swarm_mcp.store.{_name}")


class Sessions(Part, metaclass=later):
    """Sessions that take part."""

    register = verb(sessions.register)
    adopt = verb(sessions.adopt)
    remove = verb(sessions.remove)
    rename_session = in_write(sessions.rename_session)
    end_session = verb(sessions.end_session)
    get = verb(session_table.get)
    live = verb(session_table.live)
    with_evidence = verb(session_table.with_evidence)
    in_scope = verb(session_table.in_scope)
    on_all_machines = verb(session_table.on_all_machines)
    walk = verb(session_table.walk)
    alike = verb(session_table.alike)
    count = verb(session_table.count)
    scopes = verb(session_table.scopes)
    of_session = verb(session_table.of_session)
    of_session_id = verb(session_table.of_session_id)
    of_client = verb(session_table.of_client)
    of_processes = verb(session_table.of_processes)
    is_session = verb(session_table.is_session)
    held_beside = verb(session_table.held_beside)
    gone = verb(session_table.all_gone)
    show_life = in_write(reactions.require)
    forget = in_write(reactions.dismiss)


class Locks(Part, metaclass=later):
    """Files that are held. A request only looks; a refusal raises LockRefused."""

    acquire = verb(locks.acquire)
    acquire_all = verb(locks.acquire_all)
    in_the_way = verb(locks.in_the_way)
    release = verb(locks.release)
    release_all = verb(locks.release_all)
    release_of_agent = verb(locks.release_of_agent)
    on = verb(lock_finder.on)
    of = verb(lock_rows.of)
    by_name = verb(lock_listing.by_name)
    meeting = verb(lock_listing.meeting)
    covering = verb(lock_listing.covering)
    exactly = verb(lock_listing.exactly)
    seen_in = verb(lock_rows.seen_in)
    left = verb(lock_rows.time_left)
    is_held = verb(lock_listing.is_held)
    fences_held = verb(lock_listing.fences_held)
    path_of = verb(lock_listing.path_of)
    held = verb(lock_listing.held)
    walk = verb(lock_listing.walk)
    walk_of = verb(lock_listing.walk_of)
    count_of = verb(lock_listing.count_of)
    counts = verb(lock_listing.counts)
    foremost = verb(lock_listing.foremost)
    recent_of = verb(lock_listing.recent_of)
    counts_of = verb(lock_listing.counts_of)
    active_on = verb(lock_listing.active_on)
    describe = verb(lock_listing.describe)
    listed = verb(lock_listing.listed)


class LockQueue(Part, metaclass=later):
    """The line of waiters for locks, first come, first served."""

    waiting = verb(lock_listing.waiting)
    waiting_for = verb(lock_listing.waiting_for)
    has = verb(lock_listing.has)
    is_there = verb(lock_listing.is_there)
    lengths = verb(grants.lengths)
    ahead_of = verb(lock_listing.ahead_of)
    is_silent = verb(lock_listing.is_silent)
    obstacles = verb(grants.obstacles)
    join = verb(grants.join)
    require_end = verb(grants.require_end)
    leave = verb(grants.leave)
    show_life = in_write(grants.show_life)


class Leases(Part, metaclass=later):
    """Locks that lapse unless their session shows life."""

    keep = verb(reactions.keep)
    is_due = verb(reactions.is_due)
    renew_lock = verb(locks.renew_lock)
    some = verb(locks.let_lapse)
    next_due = verb(reactions.next_due)
    overtaken = verb(reactions.overtaken)


class Transfers(Part, metaclass=later):
    """A lock's ways to another holder."""

    transfer = verb(locks.transfer)
    request = verb(locks.ask_for)
    steal = verb(locks.steal)


class Denials(Part, metaclass=later):
    """Sessions that were kept from a file, to be told when it is free."""

    report = verb(refusals.report)
    note = verb(refusals.note)
    files = verb(refusals.files)


class Storms(Part, metaclass=later):
    """Sessions that try a file again and again that they are refused."""

    known = verb(refusals.known)


class Breaches(Part, metaclass=later):
    """Locked files that changed under their holders, and restored contents."""

    report = verb(breaches.report)
    restored = verb(breaches.restored)
    of = verb(breaches.of)
    known = verb(breaches.known)


class Protection(Part, metaclass=later):
    """Attempts of agents at deeds that only a person may do, and weakened protection."""

    attempted = verb(breaches.attempted)
    lowered = in_write(breaches.lowered)


class Messages(Part, metaclass=later):
    """Mail between sessions. A taken message counts as read once it is acknowledged."""

    send = verb(reactions.send)
    broadcast = verb(reactions.broadcast)
    hand_over = in_write(messages.hand_over)
    write_down = verb(messages.write_down)
    take = verb(messages.take)
    acknowledge = verb(messages.acknowledge)
    put_back = verb(messages.put_back)
    peek = verb(messages.peek)
    walk_unread = verb(messages.walk_unread)
    unread_count = verb(messages.unread_count)
    get = verb(messages.get)
    walk = verb(messages.walk)
    count = verb(messages.count)
    counts = verb(messages.counts)


class Notices(Part, metaclass=later):
    """Messages that a session's next hook tells its model."""

    take = verb(messages.take_notices)
    tell = verb(messages.tell)
    are_messages_unread = verb(messages.are_messages_unread)


class Tasks(Part, metaclass=later):
    """Work that sessions hand to each other. A breach of its rules raises Refused.

    A change returns the messages that it stored for others, ``[(recipient id, text)]``, for waking them.
    """

    get = verb(task_reading.get)
    seen = verb(task_reading.seen)
    walk = verb(task_reading.walk)
    count = verb(task_reading.count)
    beginning = verb(task_reading.beginning)
    counts = verb(task_reading.counts)
    current = verb(task_reading.current)
    claimable = verb(task_requests.claimable)
    glance = verb(task_reading.glance)
    unfinished_of = verb(task_reading.unfinished_of)
    count_unfinished_of = verb(task_reading.count_unfinished_of)
    at_work_beside = verb(task_reading.at_work_beside)
    request = verb(task_requests.request)
    request_batch = verb(task_requests.request_batch)
    claim = verb(task_requests.claim)
    claim_next = verb(task_requests.claim_next)
    reserve = verb(task_requests.reserve)
    take_back = verb(task_requests.take_back)
    report_progress = verb(tasks.report_progress)
    approve = verb(tasks.approve)
    approval_of = verb(tasks.approval_of)
    end = verb(tasks.end)
    complete = verb(tasks.complete)


class Questions(Part, metaclass=later):
    """Questions of workers to a person."""

    ask = verb(tasks.ask)
    answer = verb(tasks.answer)
    of_task = verb(tasks.of_task)
    open_of = verb(tasks.open_of)
    untold = verb(tasks.untold)
    told = in_write(tasks.told)
    waiting = verb(tasks.waiting)


class Runs(Part, metaclass=later):
    """Children that agent command lines were started as."""

    begin = verb(runs.begin)
    update = verb(runs.update)
    ask = verb(runs.ask)
    get = verb(runs.get)
    find = verb(runs.find)
    of_task = verb(runs.of_task)
    of_session = verb(runs.of_session)
    walk = verb(runs.walk)
    count = verb(runs.count)
    live = verb(runs.live)
    session_of = verb(runs.session_of)
    of_instance = verb(runs.of_instance)
    admit = in_write(runs.admit)
    take_back = verb(runs.take_back)


class SpawnLocks(Part, metaclass=later):
    """Workers that are being started for a task: one dispatch at a time."""

    take = in_write(runs.take)
    started = in_write(runs.started)
    release = in_write(runs.release)
    holder = verb(runs.holder)
    worker_of = verb(runs.worker_of)


class KeyValues(Part, metaclass=later):
    """Shared values, owned by the identity that first set them. Writes raise Refused where that is another one."""

    walk = verb(values.walk)
    count = verb(values.count)
    get = verb(values.get)
    put = verb(values.put)
    append = verb(values.append)
    delete = verb(values.delete)


class Panes(Part, metaclass=later):
    """Panes that sessions have published, in which they can be seen."""

    republish = verb(user_interface.republish)
    repair = verb(user_interface.repair)
    published = verb(user_interface.published)
    all_published = verb(user_interface.all_published)
    with_session = verb(user_interface.with_session)
    with_lock = verb(user_interface.with_lock)
    with_locks = verb(user_interface.with_locks)


class Planner(Part, metaclass=later):
    """The session that owns a scope's plan."""

    owner = verb(values.plan_owner)


class Tracker(Part, metaclass=later):
    """The work tracker of an identity, and its entries for tasks."""

    of = verb(values.tracker_of)
    link = verb(values.link_entry)
    entry = verb(values.entry_of)


class Activity(Part, metaclass=later):
    """Events, as far as one session may know them."""

    moment = verb(activity.moment)
    since = verb(activity.since)
    feed = verb(activity.feed)
    acquaintance = verb(activity.acquaintance)
    of_locks = verb(activity.of_locks)
    timeline = verb(activity.timeline)
    of_sessions = verb(activity.of_sessions)
    sweep = verb(activity.sweep)


class UiCommands(Part, metaclass=later):
    """Orders to an external user interface."""

    enqueue = verb(user_interface.enqueue)
    get = verb(user_interface.get)
    recent = verb(user_interface.recent)
    walk = verb(user_interface.walk)
    count = verb(user_interface.count)
    outcome = verb(user_interface.outcome)


class Cleanup(Part, metaclass=later):
    """Rows that fall due with time."""

    some = verb(cleanup.some)
    due_in = verb(cleanup.due_in)
    clean = verb(cleanup.clean)


class Store:
    """One SQLite file, open. Methods raise ``SwarmError``s, in particular ``StoreUnavailable``.

    Rows are the records of ``swarm_mcp.domain``; times are Unix seconds, unless a name or a docstring says otherwise.
    """

    instances: Sessions
    locks: Locks
    queue: LockQueue
    leases: Leases
    transfers: Transfers
    denials: Denials
    storms: Storms
    breaches: Breaches
    protection: Protection
    messages: Messages
    notices: Notices
    tasks: Tasks
    questions: Questions
    runs: Runs
    spawn_locks: SpawnLocks
    kv: KeyValues
    panes: Panes
    planner: Planner
    tracker: Tracker
    activity: Activity
    ui_commands: UiCommands
    cleanup: Cleanup

    def __init__(
        self,
        path: str | None = None,
        read_only: bool = False,
        busy_seconds: float = BUSY_SECONDS,
        tells: bool = True,
    ):
        """Open the store at `path` (None: the user's own).

        Unless it `tells`, the packages that react to changes are not told of its commits (``contributions``).
        """
        self.database = Database(path, read_only, busy_seconds, tells)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Part:
            """Make the part of this name when it is first asked for."""
            kind = Store.__annotations__.get(name)
            if kind is None:
                raise AttributeError(name)
            part = type(*globals()[kind])(self.database)
            setattr(self, name, part)
            return part

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def here(self) -> str:
        """The name of this machine in rows; another one after each start."""
        return self.database.here

    def now(self) -> int:
        """Return the time in Unix seconds."""
        return self.database.now()

    def refresh(self) -> None:
        """Open the store anew if its file was removed or replaced since."""
        self.database.refresh()

    def version(self) -> tuple[int, int]:
        """Return a value that differs after each commit of another process, and after the file was replaced."""
        return self.database.version()

    def events_so_far(self) -> int:
        """Return how many events this store has ever had; it never goes down."""
        return self.database.events_so_far()

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        self.database.close()

    def exists(self) -> bool:
        """Return True if there is a file yet. Until then a store that only reads answers as an empty one."""
        return os.path.isfile(self.database.path)

    def has_values(self) -> bool:
        """Return True if sessions share any values."""
        return self.database.has("kv")

    def has_questions(self) -> bool:
        """Return True if a worker's question to a person is not answered yet."""
        return self.database.has("swarm_questions WHERE answer IS NULL")

    def described(self) -> dict[str, str]:
        """Return where the rows are kept, for people to read: ``{backend, db_path, ...}``."""
        if os.environ.get("SWARM_DB_PATH", "").strip():
            source = "SWARM_DB_PATH"
        else:
            source = "home_default"
        place = {"db_path": self.database.path, "db_path_source": source}
        return {"backend": "sqlite", **place, "default_db_path": os.path.expanduser(DEFAULT_STORE)}

    def check_reading(self) -> None:
        """Raise StoreUnavailable if the store cannot be read."""
        self.database.row("SELECT 1")

    def check_writing(self) -> None:
        """Raise StoreUnavailable if the store cannot be written. Begins a transaction and writes nothing."""
        with self.database.writing():
            pass

    def journal(self) -> str:
        """Return how commits are kept safe: ``wal``, or another journal mode of the file."""
        return str(self.database.rows("PRAGMA journal_mode")[0].journal_mode).lower()

    def as_hooks_read_it(self) -> StoreReader:
        """Return the hooks' own reader of this store."""

        return StoreReader(self.database.path, self.database.driver)

    def changes(self) -> Changes:
        """Return a watcher that wakes when any process has changed the store."""
        from swarm_mcp.store.changes import Changes

        return Changes(self.database.path)
