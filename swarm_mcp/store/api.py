"""What all who use a store ask of it, whatever keeps it: the one interface between the coordinator and its data.

``store.Store`` keeps it in one SQLite file; ``tests/support/memory_store/`` in dicts, and passes the same suite.
Rows are the records of ``swarm_mcp.domain``; times are Unix seconds, where nothing else is said. Methods raise
``SwarmError``s, in particular ``StoreUnavailable``. Nothing here imports at run time: this module is for type checkers
and readers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_mcp.domain.activity import Moment, News
from swarm_mcp.domain.lock import Breach, Lapse, Lock, Waiter
from swarm_mcp.domain.message import Event, KeyValue, Message, Notice, UiCommand
from swarm_mcp.domain.run import Run
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import DONE, UNCHANGED, Task
from swarm_mcp.store.lock_request import Attempt, LockRequest, Reach
from swarm_mcp.store.sessions import Registration

S = TypeVar("S")


class Sessions(Protocol):
    """Sessions that take part."""

    def register(self, request: Registration) -> Session:
        """Add, adopt or renew an instance; its row."""

    def adopt(self, row: Session, instance_id: str) -> Session | None:
        """Make the session of instance `row` instance `instance_id` instead; its row."""

    def remove(self, instance_id: str, reason: str = "deregistered", by: Session | None = None) -> bool:
        """Remove an instance and whatever it holds; whether it was there. `by`: who does it, to tell its peers."""

    def rename_session(self, instance_id: str, name: str, new_name: str) -> bool:
        """Give an MCP server's session, known as `name`, to the server that calls itself `new_name`; whether it was."""

    def end_session(self, row: Session, client: tuple[int, str] = (0, "")) -> bool:
        """The session that works as instance `row` has ended in `client`, or everywhere.

        Whether the instance has gone.
        """

    def get(self, instance_id: str) -> Session | None:
        """One row of ``instances``."""

    def live(self, instance_id: str) -> Session | None:
        """One row, None where that session has gone."""

    def with_evidence(self, instance_id: str) -> Session | None:
        """Return a session, gone or not, with all that is known of its client."""

    def in_scope(self, scope: str) -> list[Session]:
        """Live rows of a scope, in order of registration."""

    def of_session(self, runtime: str, session_id: str) -> Session | None:
        """The row of a runtime's session, looked up by the whole id."""

    def of_session_id(self, session_id: str) -> list[Session]:
        """Live rows of every runtime's session with this whole id."""

    def of_client(self, pid: int, started: str) -> list[Session]:
        """Live rows of the sessions that are open in one client process, with their ``session_id``."""

    def is_session(self, instance_id: str) -> bool:
        """Whether a runtime's session has this instance, and not just a row that waits for one."""

    def terminal_of(self, runtime: str, session_id: str) -> tuple[int, str]:
        """Pid and start time of the terminal recorded for a session, if it still runs; else ``(0, "")``."""

    def gone(self) -> list[Session]:
        """Rows of sessions that have provably or by their lease gone, in all scopes."""

    def show_life(self, instance_id: str) -> None:
        """Renew a session. Raises SwarmError where it has gone."""

    def forget(self, instance_id: str) -> None:
        """Forget a session that was made for locks which it did not get, or has given back."""


class Locks(Protocol):
    """Files that are held. What asks for one only looks; a refusal raises LockRefused."""

    def acquire(
        self,
        instance: Session,
        file: str,
        note: str = "",
        exclusive: bool = False,
        task_id: str | None = None,
        tool: str = "lock_file",
    ) -> Lock:
        """Lock `file`, as the session names it; the lock's row. As `acquire_all`, of one."""

    def acquire_all(self, instance: Session, wanted: LockRequest) -> list[Lock]:
        """Take all that is wanted, or nothing; the rows, in the request's order, each with its ``fence``."""

    def in_the_way(self, instance: Session, wanted: LockRequest) -> Lock | None:
        """The first lock that keeps this request from being granted, None for none. Only looks."""

    def release(self, instance: Session, file: str, agent: str = "", fence: int | None = None) -> int:
        """Give up this session's lock on `file`; how many rows went (none is no error)."""

    def release_of_agent(self, instance: Session, agent: str) -> list[str]:
        """Give up whatever one of this session's agents holds, because it has ended; the files."""

    def on(self, file: str) -> list[Lock]:
        """Return live locks that keep absolute `file` still: itself, a folder over it, a pattern; in any scope."""

    def of(self, instance_id: str) -> list[Lock]:
        """Return every lock that this session holds, mutexes too, with the columns that are the lock's own."""

    def everywhere(self) -> list[Lock]:
        """Return every live lock of all scopes."""

    def meeting(self, reach: Reach) -> list[Lock]:
        """Return live locks that meet `reach`, here or in another work tree, in whatever mode."""

    def covering(self, reach: Reach) -> list[Lock]:
        """Return live locks that keep the path of `reach` still, also those on the same path of another work tree."""

    def exactly(self, reach: Reach) -> list[Lock]:
        """Return live locks on that very path or pattern, whoever holds them."""

    def seen_in(self, folder: str) -> dict[str, str]:
        """Return, of the locks of other work trees that hold in the one around `folder`: id -> their path there."""

    def left(self, lock: Lock) -> float | None:
        """Return the seconds until a lock's lease is over; None for one without a lease."""

    def is_held(self, lock_id: str, instance_id: str) -> bool:
        """Tell whether the grant with this id is there and still this session's, however its lease stands."""

    def fences_held(self, instance_id: str, fences: list[int]) -> set[int]:
        """Return those of these grants that this session still holds."""

    def path_of(self, instance: Session, file: str) -> str:
        """The file that `file` means for a session. Raises SwarmError where it cannot name one."""

    def held(self, scope: str | None, viewer_identity: str = "") -> list[dict]:
        """Live locks of a scope (None: all), oldest first, with ``owner_label``."""

    def glance(self, instance: Session, limit: int, viewer_identity: str) -> tuple[int, list[dict]]:
        """How many locks others hold in this session's scope (counted up to 1000), and a few of them."""

    def active_on(self, file: str, viewer_identity: str) -> dict | None:
        """Who holds absolute `file`, in the shape of a refusal's ``active``; None where nobody does."""

    def describe(self, row: Lock, viewer_identity: str) -> dict:
        """A lock found by `on`, in the shape of a refusal's ``active``."""

    def listed(self, row: Lock, viewer_identity: str) -> dict:
        """A lock found by `on`, in the shape of a listing (`held`)."""


class LockQueue(Protocol):
    """Who waits for which locks, first come, first served."""

    def waiting(self) -> list[Waiter]:
        """Everybody who waits, first come first."""

    def waiting_for(self, *reaches: Reach) -> list[Waiter]:
        """Who waits for something that meets any of `reaches`, first come first."""

    def has(self, ticket: int, instance_id: str) -> bool:
        """Whether the place with this ticket is there still: another process may have taken it for given up."""

    def is_there(self, ticket: int) -> bool:
        """Tell whether anybody has that place."""

    def lengths(self, locks: list[dict]) -> dict[str, int]:
        """Return how many others wait for each of these locks (``id``, ``instance_id``, ``agent``), by id.

        If any do.
        """

    def ahead_of(self, instance: Session, wanted: LockRequest) -> Waiter | None:
        """The live waiter that has a right to some of what is wanted before this request, None for none."""

    def is_silent(self, row: Waiter) -> bool:
        """Whether whoever waits there has shown no life for so long that it keeps nobody off what is free."""

    def join(self, instance: Session, wanted: LockRequest, seconds: float | None) -> int:
        """Take a place behind all who wait; the ticket. `seconds`: for how long, None for any time."""

    def require_end(self, instance: Session, wanted: LockRequest) -> None:
        """Raise Deadlock where a wait that goes on has no end any more, for the one that has come last."""

    def leave(self, ticket: int) -> None:
        """Give a place up; none is no error. Outside of a transaction: without having got what was wanted."""

    def show_life(self, instance: Session, ticket: int) -> bool:
        """Note that this session, which waits there, is awake; False where the place has been given up meanwhile."""


class Leases(Protocol):
    """Locks that lapse unless their session shows life."""

    def keep(self, instance_id: str, was_seen: bool = True) -> float | None:
        """Outside a transaction: renew this session's locks if a third of a lease is over.

        For whoever vouches for it.
        """

    def is_due(self, instance_id: str) -> bool:
        """Whether `keep` would write: a third of one of this session's leases is over."""

    def renew_lock(
        self, instance: Session, file: str, agent: str = "", fence: int | None = None, ttl: float | None = None
    ) -> dict:
        """Renew this session's lock on `file`, from now on with a lease of `ttl` seconds where that is given.

        Its row.
        """

    def some(self) -> bool:
        """Outside a transaction: warn of leases that are nearly over, let go what has lapsed; whether there was any."""

    def next_due(self) -> float | None:
        """Seconds until somebody is to be warned, or a lease is over; None where there is no lease."""

    def overtaken(self, instance_id: str) -> list[Lapse]:
        """What this session held until it lapsed, and somebody else has had since."""


class Transfers(Protocol):
    """A lock's ways to another holder."""

    def transfer(
        self, instance: Session, file: str, to_id: str, agent: str = "", fence: int | None = None, note: str = ""
    ) -> Lock:
        """Give this session's lock on `file` to session `to_id`, past everybody who waits for it; its row."""

    def request(self, instance: Session, file: str, reason: str = "") -> list[Lock]:
        """Ask whoever keeps `file` from this session to hand it over or let it go; the locks in the way."""

    def steal(
        self, instance: Session, file: str, reason: str = "", force: bool = False, ttl: float | None = None
    ) -> dict:
        """Take the lock on `file` from holders that are gone or whose lease has lapsed: ``{lock, taken}``."""


class Denials(Protocol):
    """Who was kept from which file, to be told when it is free."""

    def report(self, instance: Session, file: str, holder_id: str, tried: Attempt | str) -> bool:
        """Write down a refusal that happened elsewhere: absolute `file`, held by `holder_id`.

        `tried` as in `record`.
        """

    def files(self, instance_id: str, limit: int) -> list[str]:
        """Return files that this session was refused and has not heard of since."""


class Breaches(Protocol):
    """Locked files that changed under their holders, and what was restored of them."""

    def report(self, writer: Session | None, tool: str, command: str, changes: list[dict]) -> list[int]:
        """Write down `changes` while session `writer` (None: not registered) ran a call; the new rows' ids."""

    def restored(self, restorer: Session | None, file: str, kept: str, source: str, scope: str) -> int:
        """Write down that absolute `file` was brought back from kept content `source`; the row's id."""

    def of(self, file: str, keys: list[str]) -> list[Breach]:
        """All that happened to absolute `file`, by this name or by any of these keys, newest first."""

    def known(self, scope: str) -> list[Breach]:
        """All that happened to files of a scope, newest first."""


class Messages(Protocol):
    """Mail between sessions. What is taken counts as read once it is acknowledged."""

    def send(self, sender: Session, recipient_id: str, content: str) -> int:
        """One message from session `sender`; its id."""

    def broadcast(self, sender: Session, content: str) -> list[str]:
        """One message to every other live session of the scope that `sender` may meet; their ids."""

    def hand_over(self, sender: Session, recipient_id: str, content: str, same: str, read_too: bool) -> None:
        """Post a message from `sender`, unless it lies there already: `content`, or `same`, which says no more."""

    def write_down(self, scope: str, sender_id: str, recipient_id: str, content: str) -> None:
        """Add a message as read: it shows what was said, and nobody is given it."""

    def take(self, instance: Session, limit: int = 50, about: str = "") -> list[Message]:
        """Claim up to `limit` unread messages for this process: ``{id, sender, content, created_at}``, oldest first."""

    def acknowledge(self, ids: list[int]) -> None:
        """Mark messages read, now that the answer with them has been written. They are never delivered again."""

    def put_back(self, ids: list[int]) -> None:
        """Give up a claim: the answer with these messages will never be written. The next poll gets them."""

    def peek(self, instance: Session, limit: int = 50) -> list[Message]:
        """What `take` would give, left where it is."""

    def recent(self, scope: str, limit: int = 50, to: str = "", sender: str = "", viewer: str = "") -> list[Message]:
        """The newest `limit` messages of a scope, oldest first.

        ``{id, sender, recipient, content, created_at, read}``.
        """

    def counts(self, scope: str, since: int, viewer: str = "") -> dict[str, int]:
        """How many messages of a scope are unread, and how many were sent at `since` (seconds) or later."""


class Notices(Protocol):
    """What a session's next hook tells its model."""

    def take(self, instance: Session) -> list[Notice]:
        """Claim what there is to tell, oldest first: ``{id, text}``; `Messages.acknowledge` once it has been told."""


class Tasks(Protocol):
    """Work that sessions hand to each other. What the rules forbid raises Refused.

    A change returns the messages that it stored for others, ``[(recipient id, text)]``, for waking them."""

    def get(self, scope: str, task_id: str) -> Task | None:
        """One task, whoever may see it."""

    def seen(self, viewer: Session, task_id: str) -> Task | None:
        """One task of the viewer's scope, or that it asked for or works on; None where another identity hides it."""

    def listed(self, viewer: Session, status: str = "", assignee: str = "", requester: str = "") -> list[Task]:
        """The viewer's scope's tasks that it may see, most urgent first; empty filters do not filter."""

    def in_order(self, viewer: Session, status: str = "") -> list[Task]:
        """The same, in order of creation."""

    def counts(self, viewer: Session) -> dict[str, int]:
        """How many tasks of its scope the viewer may see, by status; every status is there."""

    def current(self, viewer: Session, include_terminal: bool = True, terminal_limit: int = 0) -> dict:
        """Tasks by status: ``{open: [...], ..., terminal_counts: {done, failed, cancelled}}``."""

    def claimable(self, instance: Session, limit: int = 10) -> list[Task]:
        """The next few tasks that `claim_next` would choose from, in its order."""

    def glance(self, viewer: Session, changed_after: int | None = None) -> dict:
        """Return a few tasks by status, the most urgent and what has just changed; see ``task_reading.glance``."""

    def unfinished_of(self, session: Session) -> list[Task]:
        """Return the tasks of its scope that this session has and that have not ended, most urgent first."""

    def at_work_beside(self, session: Session, limit: int) -> list[Task]:
        """Return tasks that other sessions of its scope have begun or are about to, as far as this one may see them."""

    def request(self, requester: Session, spec: dict, notify: bool = True) -> dict:
        """Create a task from the arguments of ``request_task``: ``{task, existing, notices}``."""

    def request_batch(self, requester: Session, specs: list[dict]) -> dict:
        """Create all or none: ``{tasks: [{id, status, [idempotency_key], new}], notices}``, one notice an assignee."""

    def claim(self, instance: Session, task_id: str, ignore_unread: bool = False) -> dict:
        """Begin one task: ``{task, prior_status}``. A refusal over unread mail counts it in `answer`."""

    def claim_next(
        self,
        instance: Session,
        types: list[str] | None = None,
        files: list[str] | None = None,
        ignore_unread: bool = False,
    ) -> dict:
        """Begin the most urgent task that fits, one's own first: ``{task, prior_status}``."""

    def reserve(self, task_id: str, worker: Session) -> Task:
        """Keep an open task for a worker that a dispatch has found or started; the task, claimed by it."""

    def report_progress(
        self,
        actor: Session,
        task_id: str,
        summary: str,
        blocked_reason=UNCHANGED,
        expected_next_update_at=UNCHANGED,
        begun: bool = True,
    ) -> dict:
        """Say how far a task is; its four progress columns. What is not given stays, None clears it."""

    def approve(self, actor: Session, task_id: str) -> dict:
        """Let a task that waits for approval begin, or wait for its dependencies: ``{task, notices}``."""

    def end(self, actor: Session, task_id: str, status: str, result: str | None = None) -> dict:
        """Done, failed or cancelled: ``{task, notices, unblocked}``."""

    def complete(self, actor: Session, task_id: str, record: dict, status: str = DONE) -> dict:
        """`end` with a structured result from the arguments of ``complete_task``, and that as ``result`` besides."""


class Runs(Protocol):
    """Children that agent command lines were started as."""

    def begin(self, spec: dict) -> Run:
        """Write down a run that this process will supervise; its row."""

    def update(self, run_id: str, **columns: object) -> Run | None:
        """Change columns of a run; its row, None where there is none."""

    def ask(self, run_id: str, control: str) -> Run:
        """Ask the supervisor for something (`CONTROLS`, empty takes it back); the row. Raises Refused."""

    def get(self, run_id: str) -> Run | None:
        """One run."""

    def find(self, scope: str, reference: str) -> Run:
        """The newest run that `reference` names: its id, its task's id, or a unique beginning of either."""

    def of_task(self, scope: str, task_id: str) -> list[Run]:
        """The runs of a task, newest first."""

    def recent(self, scope: str = "", limit: int = 50) -> list[Run]:
        """The newest runs, of one scope or of all, newest first."""

    def live(self, scope: str = "") -> list[Run]:
        """Runs that have not ended, newest first."""

    def session_of(self, task_id: str, harness: str) -> dict | None:
        """What it takes to continue the last session of a task in that harness (``RunResult.session_params``)."""

    def of_instance(self, instance_id: str) -> Run | None:
        """The run under way whose instance this is."""

    def admit(self, instance_id: str, client: tuple[int, str]) -> Run | None:
        """The run under way of that instance, if the process `client` (pid, start time) is its child."""

    def take_back(self, instance_id: str) -> bool:
        """A session of the run's child has ended: the instance is the supervisor's alone. Whether it is a run's."""


class SpawnLocks(Protocol):
    """Who is starting a worker for which task: one dispatch at a time."""

    def take(self, instance: Session, name: str, task_id: str, worker_id: str) -> Lock | None:
        """Return the lock, now this process's to spawn under; None where a spawn is under way."""

    def started(self, row: Lock, facts: dict) -> None:
        """Note that the spawn under `row` is out of our hands; `facts` say how to ask about it."""

    def release(self, row: Lock, reason: str) -> None:
        """Give up the lock `row` (from `take`), where it is still that one."""

    def holder(self, scope: str, name: str) -> dict | None:
        """The lock of this scope as ``locks.on`` gives it, None where nobody alive holds it."""

    def worker_of(self, row: Lock) -> dict | None:
        """The worker that was started under a lock, where it has come up."""


class KeyValues(Protocol):
    """Shared values, owned by the identity that first set them. Writes raise Refused where that is another one."""

    def items(self, scope: str, prefix: str = "", viewer: str | None = None) -> list[KeyValue]:
        """``{key, updated_at}`` of every key with this exact prefix that `viewer` may read, by key."""

    def count(self, scope: str, viewer: str | None = None) -> int:
        """How many keys of a scope `viewer` may read."""

    def get(self, scope: str, key: str, viewer: str | None = None) -> KeyValue | None:
        """``{value, updated_at, owner_identity}``; None also where `viewer` may not read it."""

    def put(self, instance: Session, key: str, value: str) -> None:
        """Set a value. Raises Refused where another identity owns the key."""

    def append(self, instance: Session, key: str, value: str) -> int:
        """Add one JSON value to the list under `key`; the list's new length."""

    def delete(self, instance: Session, key: str) -> bool:
        """Remove a key; whether it was there. Raises Refused where another identity owns it."""


class Panes(Protocol):
    """Where sessions can be seen: the panes that they publish."""

    def republish(self, row: Session, environment: Mapping[str, str], client_pid: int = 0) -> None:
        """Make known the pane that `environment` names, where instance `row` has published another or none."""

    def repair(self, row: Session, known: dict, found: dict[str, str]) -> bool:
        """Write back what a pane is called now; whether that was news."""

    def published(self, instance_id: str) -> dict:
        """What an instance has published, empty where that is nothing or makes no sense."""

    def with_session(self, shown: dict) -> dict:
        """Return a session as listed, with the pane it published, if any."""

    def with_lock(self, shown: dict) -> dict:
        """Return a lock as listed, with the pane that its holder published, if any."""


class Planner(Protocol):
    """Which session owns a scope's plan."""

    def owner(self, scope: str) -> dict | None:
        """The value, None where nobody owns the plan, or only a session that has gone or plans no more."""


class Tracker(Protocol):
    """The work tracker of an identity, and its entries for tasks."""

    def of(self, instance: Session) -> dict | None:
        """``{key, value, updated_at}`` of the tracker that this session's work is tracked in, or None."""

    def link(self, instance: Session, provider: str, task_id: str, identifier: str, url: str = "") -> dict:
        """Remember that a task is entry `identifier` of the tracker; what was stored."""

    def entry(self, instance: Session, provider: str, task_id: str) -> dict | None:
        """What `link` stored for a task, or None."""


class Feed(Protocol):
    """The events of a scope, one after the other, as an onlooker may see them; `last` is the id of the newest read."""

    last: int

    def read(self) -> list[dict]:
        """Return the next events, oldest first; an empty list when there are none yet."""


class Acquaintance(Protocol):
    """What a viewer may know of the sessions in events, also of those that have left since."""

    def learn(self, events: list[Event]) -> None:
        """Remember the labels in these events, for when their sessions have gone."""

    def label_of(self, instance_id: str) -> str | None:
        """Return a session's label, None where it has none or nobody knows any more."""

    def may_meet(self, instance_id: str | None) -> bool:
        """Tell whether that session is no stranger."""


class Activity(Protocol):
    """What has happened, as far as one session may know it."""

    def moment(self, instance: Session) -> Moment:
        """Now, as this session sees it."""

    def since(self, instance: Session, before: Moment) -> News:
        """What is new to this session since `before`."""

    def feed(self, scope: str, identity: str, last: int | None = None) -> Feed:
        """Return the events of `scope` after the one with id `last` (None: from now on), as `identity` may see them."""

    def acquaintance(self, label: str | None) -> Acquaintance:
        """Return what a viewer with this label may know of the sessions in events."""

    def of_locks(self, before: int | None, limit: int) -> list[Event]:
        """Return the newest events about locks, of all scopes; those before the one with id `before` where given."""

    def of_sessions(self, ids: list[str]) -> list[Event]:
        """Return when these sessions joined and left, oldest first."""

    def sweep(self) -> None:
        """Notice what nobody announces: sessions that died, and locks that went without a word of ours."""


class UiCommands(Protocol):
    """Orders to an external user interface."""

    def enqueue(self, scope: str, created_by: str | None, kind: str, payload: dict) -> UiCommand:
        """Add one command, ``spawn_shell``, ``send_prompt``, ``move_node`` or ``organize_nodes``; its row."""

    def get(self, command_id: int) -> UiCommand | None:
        """One command."""

    def recent(self, scope: str, status: str = "", limit: int = 20) -> list[UiCommand]:
        """The newest `limit` commands of a scope, newest first; a negative limit means all."""

    def outcome(self, command_id: int, seconds: float) -> UiCommand:
        """The command once it is done or has failed, or as it is after `seconds`."""


class Cleanup(Protocol):
    """What falls due with time."""

    def some(self) -> bool:
        """Outside a transaction: remove a little of what is due, if it is time; whether it did."""

    def clean(self, scope: str | None = None, dry_run: bool = False) -> dict:
        """Remove what is due in `scope` (None: everywhere); counts in the contract's shape."""


class Changes(Protocol):
    """Being told of commits to a store, by any process, this one's own included."""

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until some process has committed since the last True.

        False when `seconds` have passed, or after `stop`.
        """

    @property
    def stopped(self) -> bool:
        """Tell whether `stop` has been called."""

    def stop(self) -> None:
        """End the present `wait` and every later one. From any thread."""

    def close(self) -> None:
        """Let go of the store. Not while another thread still waits."""

    def __enter__(self: S) -> S: ...

    def __exit__(self, *_exception: object) -> None: ...


class Store(Protocol):
    """An open store: questions and changes by subject."""

    @property
    def path(self) -> str:
        """Where the store is, for people to read and for another process to open."""

    @property
    def here(self) -> str:
        """What this machine, since its last start, is called in rows."""

    def now(self) -> int:
        """Return the time in Unix seconds."""

    def refresh(self) -> None:
        """Open the store anew where it was removed or replaced since."""

    def exists(self) -> bool:
        """Tell whether there is a store yet; one that only reads answers as an empty one until then."""

    def check_reading(self) -> None:
        """Raise StoreUnavailable where it cannot be read."""

    def check_writing(self) -> None:
        """Raise StoreUnavailable where nobody can write to it. Writes nothing."""

    def journal(self) -> str:
        """Return how commits are kept safe, ``wal`` for one."""

    def as_hooks_read_it(self) -> StoreReader:
        """Return the hooks' own questions to this store."""

    def changes(self) -> Changes:
        """Return what tells when any process has changed the store."""

    def close(self) -> None:
        """Let go of it. Safe to call twice."""

    def __enter__(self: S) -> S: ...

    def __exit__(self, *_exception: object) -> None: ...

    @property
    def instances(self) -> Sessions: ...

    @property
    def locks(self) -> Locks: ...

    @property
    def queue(self) -> LockQueue: ...

    @property
    def leases(self) -> Leases: ...

    @property
    def transfers(self) -> Transfers: ...

    @property
    def denials(self) -> Denials: ...

    @property
    def breaches(self) -> Breaches: ...

    @property
    def messages(self) -> Messages: ...

    @property
    def notices(self) -> Notices: ...

    @property
    def tasks(self) -> Tasks: ...

    @property
    def runs(self) -> Runs: ...

    @property
    def spawn_locks(self) -> SpawnLocks: ...

    @property
    def kv(self) -> KeyValues: ...

    @property
    def panes(self) -> Panes: ...

    @property
    def planner(self) -> Planner: ...

    @property
    def tracker(self) -> Tracker: ...

    @property
    def activity(self) -> Activity: ...

    @property
    def ui_commands(self) -> UiCommands: ...

    @property
    def cleanup(self) -> Cleanup: ...
