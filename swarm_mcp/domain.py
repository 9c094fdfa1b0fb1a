"""The coordinator's rows, as plain values: no SQL, no file, nothing else of ours."""

from __future__ import annotations

import os
from _operator import itemgetter  # as `operator` shows it, without the rest of that module
from typing import Any, NamedTuple, NoReturn, TypeVar

# Rows of the store as values that cannot be changed.
#
# Built on ``dict``: a row goes into JSON as it is.

R = TypeVar("R", bound="Record")


class Record(dict[str, "Any"]):
    """A row: ``row.name`` for each column, None for one that was not asked for. It cannot be changed.

    Subclasses name their columns as annotations and have no other code. Code reads attributes, which type checkers
    know; the dict serves JSON, and code that takes columns by their names.
    """

    __slots__ = ()

    _columns: frozenset[str] = frozenset()

    def __init_subclass__(cls) -> None:
        cls._columns = cls._columns.union(cls.__annotations__)
        # A lock is read some forty times: an attribute that Python has to miss first takes ten times as long.
        for name in cls.__annotations__:
            if name not in vars(dict):  # hasattr() makes an error for each name that is missing, which costs more
                setattr(cls, name, property(itemgetter(name)))

    def __missing__(self, name: str) -> Any:
        if name in self._columns:
            return None
        raise KeyError(name)

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"a {type(self).__name__} has no {name}")

    def replace(self: R, **changes: object) -> R:
        """Return the same record with other values in these columns."""
        return type(self)({**self, **changes})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)

    def _refuse(self, *_arguments: object, **_given: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be changed; replace() makes another one")

    __setitem__ = __delitem__ = __setattr__ = __delattr__ = __ior__ = _refuse
    update = setdefault = pop = popitem = clear = _refuse


def new_id() -> str:
    """Return a random UUID, version 4, without the 3 ms that importing ``uuid`` costs."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


# The last moment that a session has seen, and the news since.


class Moment(NamedTuple):
    """The last moment that a session has seen: each field grows, or at least differs, with a change of its kind."""

    event: int
    message: int
    task: int
    instances: tuple[int, int]
    kv: int


class News(NamedTuple):
    """The news, and their moment. `locks` as ``wait_for_activity`` shows them."""

    moment: Moment
    messages: bool = False
    tasks: bool = False
    instances: bool = False
    kv: bool = False
    locks: tuple[dict[str, Any], ...] = ()

    @property
    def changes(self) -> list[str]:
        """The contract's names of the kinds of news."""
        found = {
            "new_messages": self.messages,
            "task_updates": self.tasks,
            "instance_changes": self.instances,
            "kv_updates": self.kv,
            "lock_updates": bool(self.locks),
        }
        return [name for name, is_new in found.items() if is_new]


# Locks, places in the line for them, and records of refused or harmed sessions.

EXCLUSIVE, SHARED = "exclusive", "shared"
MODES = (EXCLUSIVE, SHARED)  # modes that a request may have
AUTO = "auto"  # no row: a session has the file for its turn (``lock_finder``)
MUTEX_PREFIX = "/__swarm/"  # of names that are no files
NAME_PREFIX = "name:"  # of names that sessions lock in place of files: ports, databases, devices
# Columns of `Lock` about its session: its name and the evidence that it is there.
OF_THE_HOLDER = ("owner_label", "owner_id", "heartbeat", "last_seen")


class Lock(Record):
    """One lock (a row of ``context``) with the evidence about its holder.

    file          as listings show it: an absolute path, or the folder and the pattern in one
    content       the holder's note
    created_at    Unix seconds, as is `expected_end`
    path_key      the path's key; for a pattern the key of the folder that holds all covered files
    mode          ``shared``, `AUTO`, or empty for exclusive
    agent         the subagent that holds it; empty for the session with all its agents
    pattern       as it was given, relative to `base`, the key of a folder; empty for a path
    ttl           seconds of its lease, if it has one; `renewed`, `booted`, `wall_until` tell its beginning (``clock``)
    fence         the number of the grant
    repository    its name in its repository, if it holds in every work tree of that
    machine       of a replica's row the machine on which it was taken; empty for a lock taken on this one
    team_fence    the number of the grant among all machines, once their server has confirmed it
    takes         grants of other machines that were taken for it by force, until they know: ``number:fence`` each
    owner_label   the label of the session that holds it; `owner_id` is empty if that is not registered any more
    """

    __slots__ = ()

    id: str
    scope: str
    instance_id: str
    file: str
    type: str
    content: str
    task_id: str | None
    created_at: int
    path_key: str | None
    mode: str | None
    agent: str | None
    pattern: str | None
    base: str | None
    ttl: float | None
    renewed: float | None
    booted: str | None
    wall_until: float | None
    expected_end: int | None
    fence: int | None
    repository: str | None
    machine: str | None
    team_fence: int | None
    takes: str | None
    owner_label: str | None
    owner_id: str | None
    heartbeat: int | None
    last_seen: int | None


def number_elsewhere(lock_id: str) -> str:
    """Return the number that a lock of another machine has on the server: the end of its row's id."""
    return lock_id.rpartition("-")[2]


class Waiter(Record):
    """A place in the line for locks: the waiter, its wanted `reaches`, since and until when (``clock.now``).

    `machine` as of a lock; `team_ticket`: the place in the line of all machines, if it has one.
    """

    __slots__ = ()

    ticket: int
    instance_id: str
    agent: str
    scope: str
    host: str
    pid: int
    start: str
    mode: str
    wants: str
    since: float
    until: float | None
    fence: int
    seen: float | None
    machine: str | None
    team_ticket: int | None
    reaches: tuple[Any, ...]
    owner_label: str | None
    owner_id: str | None


class Denial(Record):
    """A refusal that its session is still to be told about, once the file is free.

    `times`: of a storm, the number of refusals at the last notice to its holder or to a person. `label`,
    `holder_label`: of the two sessions, if they were asked for.
    """

    __slots__ = ()

    instance_id: str
    path_key: str
    scope: str
    file: str
    holder_id: str
    tool: str | None
    denied_at: int
    path: str | None
    times: int | None
    label: str | None
    holder_label: str | None


class Breach(Record):
    """A locked file that changed under its holder, or was restored; `kept` is where the content before is."""

    __slots__ = ()

    id: int
    scope: str
    file: str
    path_key: str
    writer_id: str | None
    writer_label: str | None
    holder_id: str
    tool: str | None
    command: str | None
    kind: str
    kept: str | None
    altered_at: int


class Lapse(Record):
    """A lock that lapsed under its holder; the ``taken_`` columns name the session that was given the same since."""

    __slots__ = ()

    instance_id: str
    file: str
    agent: str
    path_key: str | None
    pattern: str | None
    base: str | None
    fence: int | None
    lapsed_at: int
    taken_fence: int | None
    taken_by: str | None
    taken_label: str | None
    message_id: int | None


def is_mutex(file: str) -> bool:
    """Return True if a lock's name is no file's."""
    return file.startswith(MUTEX_PREFIX)


def is_name(file: str) -> bool:
    """Return True if a lock is on a name, such as ``name:port:3000``."""
    return file.startswith(NAME_PREFIX)


def keeps_out(lock: Lock, instance_id: str, agent: str, mode: str) -> bool:
    """Return True if `lock` keeps this holder from a lock in `mode` that meets it.

    A session's locks are its agents' too; a lock of one of its agents keeps out the rest of the session.
    """
    own_agent = lock.agent or ""
    if lock.instance_id == instance_id and own_agent in ("", agent):
        return False
    return not (mode == SHARED and lock.mode == SHARED)


def granted(lock: Lock) -> dict[str, Any]:
    """Return a lock just taken, as answers show it: ``{file, id, fence, mode}`` and all further facts."""
    shown = {"file": lock.file, "id": lock.id, "fence": lock.fence, "mode": lock.mode or EXCLUSIVE}
    names = ("ttl", "expected_end", "agent", "pattern", "task_id", "repository")
    return {**shown, **{name: lock[name] for name in names if lock.get(name)}}


# Rows that sessions leave for each other: mail, shared values, the record of events, orders to a user interface.

_MARK = "[task:"


def task_mark(task_id: str) -> str:
    """Return the beginning of a message that belongs to a task."""
    return f"{_MARK}{task_id}]"


def of_task(task_id: str, text: str) -> str:
    """The content of a message with this `text` that belongs to a task."""
    return f"{task_mark(task_id)} {text}"


def task_and_text(content: str) -> tuple[str, str]:
    """Return the id of the task that a message with this content belongs to, empty without one, and its text."""
    if not content.startswith(_MARK) or "]" not in content:
        return "", content
    task_id, _, text = content[len(_MARK) :].partition("]")
    return task_id, text.removeprefix(" ")


def length(text: str) -> int:
    """Return the length of `text` as events give it: in UTF-16 units, as the contract counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class Message(Record):
    """One message to one session; `read` is 1 once an answer with it has been written."""

    __slots__ = ()

    id: int
    sender: str
    recipient: str | None
    content: str
    created_at: int
    read: int


class Notice(Record):
    """A message that its session's next hook tells its model."""

    __slots__ = ()

    id: int
    text: str


class KeyValue(Record):
    """A shared value; `owner_identity` is ``identity:NAME`` of its first setter, None for a value without an owner."""

    __slots__ = ()

    key: str
    value: str
    updated_at: int
    owner_identity: str | None


class Event(Record):
    """One change: `type` such as ``context.lock_acquired``, its actor, its subject.

    `payload` and `facts` are JSON texts. `facts` is ours; other programs read the contract's `payload`.
    """

    __slots__ = ()

    id: int
    scope: str
    type: str
    actor: str | None
    subject: str | None
    payload: str | None
    facts: str | None
    created_at: int


class UiCommand(Record):
    """An order to an external user interface; `payload` and `result` are parsed."""

    __slots__ = ()

    id: int
    scope: str
    created_by: str | None
    kind: str
    payload: Any
    status: str
    claimed_by: str | None
    result: Any
    error: str | None
    created_at: int
    started_at: int | None
    completed_at: int | None


# A part of a listing that is too long for one answer.


class Page(NamedTuple):
    """Rows of a listing, in its order, as answers show them.

    total  the number of rows of the listing in all, None if these are all of them
    next   the cursor behind the last of these rows, which `after` takes to go on; empty if no more follow
    """

    rows: list[Any]
    total: int | None = None
    next: str = ""

    def told(self) -> dict[str, Any]:
        """Return the part of an answer about the rest: ``{total, next}``, empty without a rest."""
        told: dict[str, Any] = {} if self.total is None else {"total": self.total}
        return {**told, **({"next": self.next} if self.next else {})}


# A question of a worker to a person, and the answer.

WAITS = "a person's answer: "  # how the reason begins for which such a task is blocked


class Question(Record):
    """One question about a task: `answer` is None until a person gives one; times in Unix seconds.

    `told_at`: when the answer reached the worker, in its call or with its next instructions.
    """

    __slots__ = ()

    id: int
    task_id: str
    asked_by: str
    question: str
    asked_at: int
    answer: str | None
    answered_at: int | None
    told_at: int | None


# Runs: children that agent command lines were started as.

QUEUED, STARTING, RUNNING, PAUSED, ENDED = "queued", "starting", "running", "paused", "ended"
STATES = (QUEUED, STARTING, RUNNING, PAUSED, ENDED)
CANCEL, PAUSE, RESUME = "cancel", "pause", "resume"
CONTROLS = (CANCEL, PAUSE, RESUME)
ABANDONED = "its supervisor was killed"


class Run(Record):
    """One run: `session_params`, `usage` and `result` are dicts, if known; times in Unix seconds.

    instance_id     its session
    control         the order to its supervisor (`CONTROLS`)
    record          path of the file with the record of the run
    supervisor_pid  with `supervisor_start` its supervisor's process; so ``child_`` and ``client_``
    """

    __slots__ = ()

    id: str
    scope: str
    task_id: str | None
    instance_id: str
    requester: str | None
    harness: str
    model: str | None
    cwd: str
    state: str
    control: str | None
    session_id: str | None
    session_params: dict[str, Any] | None
    record: str | None
    host: str | None
    supervisor_pid: int | None
    supervisor_start: str | None
    child_pid: int | None
    child_start: str | None
    client_pid: int | None
    client_start: str | None
    cost_usd: float | None
    usage: dict[str, Any] | None
    result: dict[str, Any] | None
    started_at: int
    updated_at: int
    ended_at: int | None


RUN_COLUMNS = tuple(Run.__annotations__)

# Sessions that take part.

RUN_RUNTIME = "run"  # of the session of a run before its child has reported one of its own
DETACHED = "detached"  # of a session that is there for its locks alone, without any process: it goes with the last
REMOTE = "team"  # the runtime of sessions on other machines; only their own machine can end them
SYSTEM = "system"  # the sender of messages that no session wrote
STALE_SECONDS = 30  # without a heartbeat, where that is all there is of a session


class Session(Record):
    """One session that takes part (a row of ``sessions`` with its columns of ``swarm_sessions``).

    scope          the folder whose sessions see each other
    directory      the folder in which it works; `root` is the git root over it
    file_root      the folder from which relative file names count
    pid            of its client, else of the process that registered it
    registered_at  Unix seconds, as are `heartbeat` and `lease_until`
    adopted        1 if only heartbeats prove it alive (the contract's sessions without a lease)
    runtime        the kind of client; this column and those after it are empty until a hook reports the session
    client_pid     with `client_start` the process whose end is the session's end; `other_clients` have it open too
    last_seen      Unix seconds of its last sign of life
    """

    __slots__ = ()

    id: str
    scope: str
    directory: str
    root: str
    file_root: str
    pid: int
    label: str | None
    registered_at: int
    heartbeat: int
    adopted: int
    lease_until: int | None
    runtime: str | None
    session_id: str | None
    host: str | None
    client_pid: int | None
    client_start: str | None
    other_clients: str | None
    terminal_pid: int | None
    terminal_start: str | None
    state: str | None
    last_seen: int | None
    lease_seconds: int | None


def onlooker(identity: str, scope: str = "") -> Session:
    """Return an onlooker of `identity` (empty without one) at `scope`, in the shape of a session."""
    return Session(id="", label=f"identity:{identity}" if identity else None, scope=scope)


def nobody_in(folder: str, scope: str = "") -> Session:
    """Return a stand-in for a session: words mean to it the same as in `folder`."""
    return Session(id="", directory=folder, root=folder, file_root=folder, scope=scope, label=None)


def anywhere() -> Session:
    """Return a session in the shape in which absolute paths mean themselves."""
    return nobody_in("/", "/")


# Tasks: work that sessions hand to each other, and the life that one has.

OPEN, CLAIMED, IN_PROGRESS = "open", "claimed", "in_progress"
BLOCKED, APPROVAL_REQUIRED = "blocked", "approval_required"
DONE, FAILED, CANCELLED = "done", "failed", "cancelled"
STATUSES = (OPEN, CLAIMED, IN_PROGRESS, DONE, FAILED, CANCELLED, BLOCKED, APPROVAL_REQUIRED)
TERMINAL = (DONE, FAILED, CANCELLED)
TYPES = ("review", "implement", "fix", "test", "research", "other")
BATCH_LIMIT = 50  # tasks in one request
UNCHANGED = object()  # an argument that leaves a column as it is; None clears it


class Task(Record):
    """One task: `files` and `depends_on` are lists or None; times in Unix seconds, `changed_at` in milliseconds."""

    __slots__ = ()

    id: str
    scope: str
    type: str
    title: str
    description: str | None
    requester: str
    assignee: str | None
    status: str
    files: list[str] | None
    result: str | None
    created_at: int
    updated_at: int
    changed_at: int
    priority: int
    depends_on: list[str] | None
    idempotency_key: str | None
    parent_task_id: str | None
    review_of_task_id: str | None
    fixes_task_id: str | None
    progress_summary: str | None
    progress_updated_at: int | None
    blocked_reason: str | None
    expected_next_update_at: int | None
    tracker_required: int
    tracker_provider: str | None


# The contract's columns, in its order; a file that others upgraded may have them in another, or more.
TASK_COLUMNS = tuple(Task.__annotations__)
