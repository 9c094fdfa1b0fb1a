"""What all who use a store ask of it, whatever keeps it: the one interface between the coordinator and its data.

``store.Store`` keeps it in one SQLite file; ``tests/support/memory_store/`` in dicts, and passes the same suite.
Rows are the records of ``swarm_mcp.domain``; times are Unix seconds, where nothing else is said. Methods raise
``SwarmError``s, in particular ``StoreUnavailable``. Nothing here imports at run time: this module is for type checkers
and readers.

What may grow without bound is listed by a ``walk``: its rows one after the other, each with its cursor, behind the row
with the cursor `after` (empty: from the beginning); ``paging.page`` takes of it what an answer has room for. A `count`
beside it takes the same filters and says how many there are in all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_mcp.domain.activity import Moment, News
from swarm_mcp.domain.lock import Breach, Denial, Lapse, Lock, Waiter
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
        """Add, adopt or renew an instance; its row.

        A session of a runtime has one instance for life, found by its whole id.
        """

    def adopt(self, row: Session, instance_id: str) -> Session | None:
        """Make the session of instance `row` instance `instance_id` instead; its row.

        What it held until now moves along. None where that instance is not there to be taken: it works in
        another scope or folder, or belongs to another session.
        """

    def remove(self, instance_id: str, reason: str = "deregistered", by: Session | None = None) -> bool:
        """Remove an instance and whatever it holds; whether it was there. `by`: who does it, to tell its peers."""

    def rename_session(self, instance_id: str, name: str, new_name: str) -> bool:
        """Give an MCP server's session, known as `name`, to the server that calls itself `new_name`; whether it was."""

    def end_session(self, row: Session, client: tuple[int, str] = (0, "")) -> bool:
        """Note that the session of instance `row` has ended in `client`, or everywhere; return whether that has gone.

        It stays where another client has the session open, and where it is a run's.
        """

    def get(self, instance_id: str) -> Session | None:
        """Return one row of ``instances``."""

    def live(self, instance_id: str) -> Session | None:
        """Return one row, None where that session has gone."""

    def with_evidence(self, instance_id: str) -> Session | None:
        """Return a session, gone or not, with all that is known of its client."""

    def in_scope(self, scope: str) -> list[Session]:
        """Return the live rows of a scope, in order of registration, but those of other machines."""

    def on_all_machines(self, scope: str) -> list[Session]:
        """Return the live rows of a scope, in order of registration, those of other machines too."""

    def walk(self, scope: str, after: str = "") -> Iterator[tuple[str, Session]]:
        """Yield the live rows of a scope, those of other machines too, as pages of a listing take them."""

    def alike(self, scope: str, text: str) -> list[Session]:
        """Return those of `in_scope` whose id begins with `text`, or whose label has it somewhere: 1000 at most."""

    def count(self, scope: str, words: str = "", viewer: str = "") -> int:
        """Return how many sessions are on record in a scope: with `words` in their label, of no other identity.

        Those that have gone are among them until somebody notices.
        """

    def scopes(self, limit: int) -> list[str]:
        """Return the scopes that sessions are on record in, the one that last had a sign of life first."""

    def of_session(self, runtime: str, session_id: str) -> Session | None:
        """Return the row of a runtime's session, looked up by the whole id."""

    def of_session_id(self, session_id: str) -> list[Session]:
        """Return live rows of every runtime's session with this whole id."""

    def of_client(self, pid: int, started: str) -> list[Session]:
        """Return live rows of the sessions that are open in one client process, with their ``session_id``."""

    def is_session(self, instance_id: str) -> bool:
        """Tell whether a runtime's session has this instance, and not just a row that waits for one."""

    def terminal_of(self, runtime: str, session_id: str) -> tuple[int, str]:
        """Return the pid and start time of the terminal recorded for a session, if it still runs; else ``(0, "")``."""

    def beside(self, instance: Session) -> list[Session]:
        """Return the other sessions of this session's scope: right after its registration, which removes the gone."""

    def held_beside(self, instance: Session, limit: int, viewer_identity: str) -> tuple[int, list[dict]]:
        """Return how many locks those hold in the scope (counted up to 1000), and a few of them, as `beside` does.

        Each has `file`, `content`, `owner_label` (these two empty where the holder is of another identity) and
        `instance_id`.
        """

    def gone(self) -> list[Session]:
        """Return the rows of sessions that have provably or by their lease gone, in all scopes."""

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
        """Lock `file`, as the session names it; the lock's row. As `acquire_all`, of one.

        With `exclusive` one's own lock is refused like anybody's.
        """

    def acquire_all(self, instance: Session, wanted: LockRequest) -> list[Lock]:
        """Take all that is wanted, or nothing; the rows, in the request's order, each with its ``fence``.

        What the holder has already is renewed in place, so no peer can slip in between. Raises LockRefused;
        then the session is told when the file is free. Who waits (``lock_queue``) goes first.
        """

    def in_the_way(self, instance: Session, wanted: LockRequest) -> Lock | None:
        """Return the first lock that keeps this request from being granted, None for none. Only looks."""

    def release(self, instance: Session, file: str, agent: str = "", fence: int | None = None) -> int:
        """Give up this session's lock on `file`; how many rows went (none is no error).

        With `agent` only what that subagent holds. With `fence`, the number of a grant, only that very grant:
        Refused where it is not held any more, since whoever holds it now must not lose it to a latecomer.
        """

    def release_all(self, instance: Session, agent: str = "") -> list[str]:
        """Give up all locks on files that this session, or with `agent` that subagent of it, holds; the files."""

    def release_of_agent(self, instance: Session, agent: str) -> list[str]:
        """Give up whatever one of this session's agents holds, because it has ended; the files."""

    def on(self, file: str) -> list[Lock]:
        """Return live locks that keep absolute `file` still: itself, a folder over it, a pattern; in any scope."""

    def of(self, instance_id: str) -> list[Lock]:
        """Return every lock that this session holds, mutexes too, with the columns that are the lock's own."""

    def by_name(self, names: Iterable[str]) -> list[Lock]:
        """Return the live locks with one of these names (paths, and keys of ``paths``), in any scope, oldest first.

        With them all that may hold by another name: those on patterns, and those of every work tree.
        """

    def meeting(self, reach: Reach) -> list[Lock]:
        """Return live locks that meet `reach`, here or in another work tree, in whatever mode."""

    def covering(self, reach: Reach) -> list[Lock]:
        """Return live locks that keep the path of `reach` still, also those on the same path of another work tree."""

    def exactly(self, reach: Reach) -> list[Lock]:
        """Return live locks on that very path or pattern, whoever holds them."""

    def seen_in(self, folder: str) -> dict[str, str]:
        """Return, of the locks of other work trees that hold in the one around `folder`: id -> their path there."""

    def spread(self, folder: str) -> int:
        """Let locks on paths hold in all work trees of the clone around `folder`, as such that are taken there now do.

        For right after the clone has been set so (``swarm.logical``); how many did not. Automatic ones stay where they
        are.
        """

    def left(self, lock: Lock) -> float | None:
        """Return the seconds until a lock's lease is over; None for one without a lease."""

    def is_held(self, lock_id: str, instance_id: str) -> bool:
        """Tell whether the grant with this id is there and still this session's, however its lease stands."""

    def fences_held(self, instance_id: str, fences: list[int]) -> set[int]:
        """Return those of these grants that this session still holds."""

    def path_of(self, instance: Session, file: str) -> str:
        """Return the file that `file` means for a session. Raises SwarmError where it cannot name one."""

    def held(self, scope: str | None, viewer_identity: str = "") -> Iterator[dict]:
        """Yield live locks of a scope (None: all), in the order in which they were first taken, with ``owner_label``.

        What sessions of another identity hold is listed; their names and notes are not. They are read as they are
        asked for, however many there are: each at most once, and none that came after the first was asked for need
        be among them.
        """

    def walk(self, scope: str | None, viewer_identity: str = "", after: str = "") -> Iterator[tuple[str, dict]]:
        """Yield the locks of `held`, in its order, each with its cursor."""

    def walk_of(self, instance_id: str, after: str = "") -> Iterator[tuple[str, Lock]]:
        """Yield the locks on files that this session holds, in the order in which they were first taken."""

    def count_of(self, instance_id: str) -> int:
        """Return how many locks `walk_of` has."""

    def counts(self, scope: str | None) -> dict[str, int]:
        """Return how many locks a scope (None: all) has: ``live``, and ``void`` ones that are still to be removed."""

    def foremost(
        self, scope: str, viewer_identity: str, limit: int, own_id: str, waited_for: Iterable[str]
    ) -> tuple[int, list[dict]]:
        """Return how many live locks a scope has, and `limit` of them, as `held` shows them, newest first.

        First those that session `own_id` holds, then those with the ids `waited_for` (``queue.lengths``), then others.
        """

    def recent_of(self, holders: list[str], viewer_identity: str, limit: int, first: Iterable[str] = ()) -> list[dict]:
        """Return up to `limit` live locks on files, as `held` shows them.

        Those with the ids `first`, whoever has them, then the newest of the sessions `holders`. It costs as much for
        each of these sessions however many locks it has.
        """

    def counts_of(self, holders: list[str], most: int) -> dict[str, int]:
        """Return how many locks each of these sessions has on record, counted no further than `most`.

        Of a session with few of them, only those on files count.
        """

    def active_on(self, file: str, viewer_identity: str) -> dict | None:
        """Return who holds absolute `file`, in the shape of a refusal's ``active``; None where nobody does."""

    def describe(self, row: Lock, viewer_identity: str) -> dict:
        """Return a lock found by `on`, in the shape of a refusal's ``active``."""

    def listed(self, row: Lock, viewer_identity: str) -> dict:
        """Return a lock found by `on`, in the shape of a listing (`held`)."""


class LockQueue(Protocol):
    """Who waits for which locks, first come, first served."""

    def waiting(self) -> list[Waiter]:
        """Return everybody who waits, first come first."""

    def waiting_for(self, *reaches: Reach) -> list[Waiter]:
        """Return who waits for something that meets any of `reaches`, first come first."""

    def has(self, ticket: int, instance_id: str) -> bool:
        """Tell whether the place with this ticket is there still: another process may have taken it for given up."""

    def is_there(self, ticket: int) -> bool:
        """Tell whether anybody has that place."""

    def lengths(self) -> dict[str, int]:
        """Return how many others than its holder wait for each lock that anybody waits for, by its id."""

    def ahead_of(self, instance: Session, wanted: LockRequest) -> Waiter | None:
        """Return the live waiter that has a right to some of what is wanted before this request, None for none.

        As a lock's row would say it: ``file`` is what is wanted and waited for, ``ticket`` tells it from a lock.
        """

    def is_silent(self, row: Waiter) -> bool:
        """Tell whether whoever waits there has shown no life for so long that it keeps nobody off what is free."""

    def obstacles(self, row: Waiter, limit: int = 20) -> list[Lock | Waiter]:
        """Return what this waiter waits for: one lock of each holder that keeps it out, then the waiters before it."""

    def join(self, instance: Session, wanted: LockRequest, seconds: float | None) -> int:
        """Take a place behind all who wait; the ticket. `seconds`: for how long, None for any time.

        Raises Deadlock where everybody in a circle would wait for the next.
        """

    def require_end(self, instance: Session, wanted: LockRequest) -> None:
        """Raise Deadlock where a wait that goes on has no end any more, for the one that has come last.

        That can only be where a lock was handed over to somebody who waits.
        """

    def leave(self, ticket: int) -> None:
        """Give a place up; none is no error. Outside of a transaction: without having got what was wanted.

        Then, where nobody waits any more for what is free, those who were denied it are told.
        """

    def show_life(self, instance: Session, ticket: int) -> bool:
        """Note that this session, which waits there, is awake; False where the place has been given up meanwhile.

        Raises SwarmError where the session has gone.
        """


class Leases(Protocol):
    """Locks that lapse unless their session shows life."""

    def keep(self, instance_id: str, was_seen: bool = True) -> float | None:
        """Outside a transaction: renew this session's locks if a third of a lease is over, for whoever vouches for it.

        Without `was_seen` it counts as silent all the same, since nobody speaks for it yet. Seconds until this should
        be asked again, None where the session has no lease. Raises SwarmError where it has gone. Costs one read while
        there is nothing to do.
        """

    def is_due(self, instance_id: str) -> bool:
        """Tell whether `keep` would write: a third of one of this session's leases is over."""

    def renew_lock(
        self, instance: Session, file: str, agent: str = "", fence: int | None = None, ttl: float | None = None
    ) -> dict:
        """Renew this session's lock on `file`, from now on with a lease of `ttl` seconds where that is given; its row.

        Refused where it is not held any more, or not by that grant (`fence`): it is for the holder to notice.
        """

    def some(self) -> bool:
        """Outside a transaction: warn of leases that are nearly over, let go what has lapsed; whether there was any.

        Costs one read while nothing is due. A busy store is left alone; somebody will be around again.
        """

    def next_due(self) -> float | None:
        """Return the seconds until somebody is to be warned, or a lease is over; None where there is no lease."""

    def overtaken(self, instance_id: str) -> list[Lapse]:
        """Return what this session held until it lapsed, and somebody else has had since."""


class Transfers(Protocol):
    """A lock's ways to another holder."""

    def transfer(
        self, instance: Session, file: str, to_id: str, agent: str = "", fence: int | None = None, note: str = ""
    ) -> Lock:
        """Give this session's lock on `file` to session `to_id`, past everybody who waits for it; its row.

        It keeps mode, lease and expected end, and has a new fence; a task it was for is no longer its end. `agent`
        and `fence` name one grant of several. Raises Refused, UnknownInstance.
        """

    def request(self, instance: Session, file: str, reason: str = "") -> list[Lock]:
        """Ask whoever keeps `file` from this session to hand it over or let it go; the locks in the way.

        Each holder gets one message, which its next hook tells; asking again before it has been read says nothing
        more. This session is told when the file is free. Refused where nobody holds it, or only strangers do.
        """

    def steal(
        self, instance: Session, file: str, reason: str = "", force: bool = False, ttl: float | None = None
    ) -> dict:
        """Take the lock on `file` from holders that are gone or whose lease has lapsed: ``{lock, taken}``.

        `taken`: the rows that had to go. With `force`, which is for people to say, also from live ones: every lock on
        the file, on a folder over it, or on a pattern that covers it goes, and nobody's turn is waited for. Raises
        LockRefused where somebody else has it, or what is below it, for good.
        """


class Denials(Protocol):
    """Who was kept from which file, to be told when it is free."""

    def report(self, instance: Session, file: str, holder_id: str, tried: Attempt | str) -> bool:
        """Write down a refusal that happened elsewhere: absolute `file`, held by `holder_id`; `tried` as in `record`.

        Whether somebody still holds the file; where not, the session is told so at once. Of a refusal without a lock
        (``Attempt.why``), `holder_id` is the session whose uncommitted work was in the way; it is an event alone.
        """

    def files(self, instance_id: str, limit: int) -> list[str]:
        """Return files that this session was refused and has not heard of since."""


class Storms(Protocol):
    """Sessions that try a file again and again that they are refused."""

    def known(self, scope: str, limit: int) -> list[Denial]:
        """Return refusals in a scope that a person should know of, the last one first, with both sessions' labels."""


class Breaches(Protocol):
    """Locked files that changed under their holders, and what was restored of them."""

    def report(self, writer: Session | None, tool: str, command: str, changes: list[dict]) -> list[int]:
        """Write down `changes` while session `writer` (None: not registered) ran a call; the new rows' ids.

        Each is ``{file, holder_id, kind, kept, at}``: absolute file, how it changed (``snapshot.difference``), path
        of the content before, empty for none, and when, in Unix seconds; with ``key`` where the file's key before the
        change is known: a link may have taken its place. What nobody held by then is left out. The holders get one
        message each.
        """

    def restored(self, restorer: Session | None, file: str, kept: str, source: str, scope: str) -> int:
        """Write down that absolute `file` was brought back from kept content `source`; the row's id.

        `kept` is where the content is that it replaced, empty where there was none. Who holds the file is told,
        unless that is `restorer` (None: a person).
        """

    def of(self, file: str, keys: list[str]) -> list[Breach]:
        """Return all that happened to absolute `file`, by this name or by any of these keys, newest first."""

    def known(self, scope: str) -> list[Breach]:
        """Return all that happened to files of a scope, newest first."""


class Protection(Protocol):
    """What only a person may do, as agents have tried it, and what has been weakened."""

    def attempted(self, scope: str, actor: str | None, deed: str, path: str = "", tool: str = "") -> bool:
        """Write down that session `actor` (None: not known) tried `deed`, on `path` with `tool` where it named one.

        Return False where the same was written down within the last minute.
        """

    def lowered(self, scope: str, actor: str | None, what: str, words: str) -> None:
        """Write down that `what` protects the sessions of `scope` less than before, and tell them so in `words`.

        `actor`: the session that did it; None for a person, and where that is not known.
        """


class Messages(Protocol):
    """Mail between sessions. What is taken counts as read once it is acknowledged."""

    def send(self, sender: Session, recipient_id: str, content: str) -> int:
        """Send one message from session `sender`; return its id.

        Raises UnknownInstance where the recipient is not (or no longer) in the sender's scope, Refused
        where identities keep the two apart, or the message is blank.
        """

    def broadcast(self, sender: Session, content: str) -> list[str]:
        """Send one message to every other live session of the scope that `sender` may meet; return their ids."""

    def hand_over(self, sender: Session, recipient_id: str, content: str, same: str, read_too: bool) -> None:
        """Post a message from `sender`, unless it lies there already: `content`, or `same`, which says no more.

        It lies there while it is unread; with `read_too` also once it has been read.
        """

    def write_down(self, scope: str, sender_id: str, recipient_id: str, content: str) -> int:
        """Add a message as read and return its id: it shows what was said, and nobody is given it."""

    def take(self, instance: Session, limit: int = 50, about: str = "") -> list[Message]:
        """Claim up to `limit` unread messages for this process: ``{id, sender, content, created_at}``, oldest first.

        Nobody else is given them until this process has gone, or 120 s have passed without `acknowledge`.
        With `about`, a task's id, only those that begin with ``[task:<id>]``; the others stay where they are.
        """

    def acknowledge(self, ids: list[int]) -> None:
        """Mark messages read, now that the answer with them has been written. They are never delivered again."""

    def put_back(self, ids: list[int]) -> None:
        """Give up a claim: the answer with these messages will never be written. The next poll gets them."""

    def peek(self, instance: Session, limit: int = 50) -> list[Message]:
        """Return what `take` would give, left where it is."""

    def walk_unread(self, instance: Session, after: str = "") -> Iterator[tuple[str, Message]]:
        """Yield what `peek` would give, as pages of a listing take it."""

    def unread_count(self, instance: Session) -> int:
        """Return how many messages wait for this session, without those just being handed to it."""

    def get(self, instance: Session, message_id: int) -> Message | None:
        """Return one message to this session, read or not, left as it is; None where there is none."""

    def walk(
        self, scope: str, to: str = "", sender: str = "", viewer: str = "", after: str = ""
    ) -> Iterator[tuple[str, Message]]:
        """Yield the messages of a scope, newest first, with all columns but the scope.

        `to` and `sender` are instance ids. `viewer` is the identity that looks on: mail of sessions that have another
        one is left out. Marks nothing.
        """

    def count(self, scope: str, to: str = "", sender: str = "", viewer: str = "") -> int:
        """Return how many messages `walk` has."""

    def counts(self, scope: str, since: int, viewer: str = "") -> dict[str, int]:
        """Return how many messages of a scope are unread, and how many were sent at `since` (seconds) or later.

        ``{unread, recent}``. `viewer` is the identity that looks on, as in `walk`.
        """


class Notices(Protocol):
    """What a session's next hook tells its model."""

    def take(self, instance: Session) -> list[Notice]:
        """Claim what there is to tell, oldest first: ``{id, text}``; `Messages.acknowledge` once it has been told.

        Nobody else is given these messages meanwhile, as with `Messages.take`.
        """

    def tell(self, instance: Session, content: str) -> bool:
        """Have the next hook of a session tell its model `content`; False where the session has gone."""

    def are_messages_unread(self, instance: Session) -> bool:
        """Tell whether the session has unread messages beside those."""


class Tasks(Protocol):
    """Work that sessions hand to each other. What the rules forbid raises Refused.

    A change returns the messages that it stored for others, ``[(recipient id, text)]``, for waking them."""

    def get(self, scope: str, task_id: str) -> Task | None:
        """Return one task, whoever may see it."""

    def seen(self, viewer: Session, task_id: str) -> Task | None:
        """Return a task of the viewer's scope, or that it asked for or works on; None where an identity hides it."""

    def walk(
        self,
        viewer: Session,
        status: str = "",
        assignee: str = "",
        requester: str = "",
        after: str = "",
        by_age: bool = False,
    ) -> Iterator[tuple[str, Task]]:
        """Yield the viewer's scope's tasks that it may see, most urgent first; `by_age`: in order of creation.

        Empty filters do not filter.
        """

    def count(self, viewer: Session, status: str = "", assignee: str = "", requester: str = "") -> int:
        """Return how many tasks `walk` has."""

    def beginning(self, viewer: Session, text: str, limit: int) -> list[Task]:
        """Return a few of those tasks, whose ids begin with `text`, in order of creation."""

    def counts(self, viewer: Session) -> dict[str, int]:
        """Return how many tasks of its scope the viewer may see, by status; every status is there."""

    def current(self, viewer: Session, include_terminal: bool = True, terminal_limit: int = 0) -> dict:
        """Return tasks by status, and ``terminal_counts`` {done, failed, cancelled}.

        Ended ones are left out unless `include_terminal`, or `terminal_limit` asks for the newest few of each. Of each
        status at most 100; how many more there are says ``not_shown``: {status: number}.
        """

    def claimable(self, instance: Session, limit: int = 10) -> list[Task]:
        """Return the next few tasks that `claim_next` would choose from, in its order."""

    def glance(self, viewer: Session, changed_after: int | None = None) -> dict:
        """Return tasks by status, as ``Tasks.current`` groups them, and ``terminal_counts``.

        Of each status the first 50 (20 of those that end it), besides whatever changed after `changed_after`
        (``changed_at``, milliseconds). What is left out is counted in ``not_shown``: {status: number}.
        """

    def unfinished_of(self, session: Session, limit: int = -1) -> list[Task]:
        """Return the tasks of its scope that this session has and that have not ended, most urgent first.

        With a `limit`, that many of each status.
        """

    def count_unfinished_of(self, session: Session) -> int:
        """Return how many tasks `unfinished_of` has in all."""

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

    def take_back(self, task: Task, prior_status: str) -> None:
        """Let a task that `claim` or `reserve` has just returned be as it was, unless it has changed since."""

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
        """Do as `end`, with a structured result from the arguments of ``complete_task``: also as ``result``.

        A task that names an entry of a work tracker ends only with word of what became of that entry.
        """


class Runs(Protocol):
    """Children that agent command lines were started as."""

    def begin(self, spec: dict) -> Run:
        """Write down a run that this process will supervise; its row.

        `spec` has at least ``id``, ``scope``, ``instance_id``, ``harness`` and ``cwd``.
        """

    def update(self, run_id: str, **columns: object) -> Run | None:
        """Change columns of a run; its row, None where there is none."""

    def ask(self, run_id: str, control: str) -> Run:
        """Ask the supervisor for something (`CONTROLS`, empty takes it back); the row. Raises Refused."""

    def get(self, run_id: str) -> Run | None:
        """Return one run."""

    def find(self, scope: str, reference: str) -> Run:
        """Return the newest run that `reference` names: its id, its task's id, or a unique beginning of either.

        Whole ids name runs of any scope. Raises Refused where it names none, or runs of several tasks.
        """

    def of_task(self, scope: str, task_id: str) -> list[Run]:
        """Return the runs of a task, newest first."""

    def of_session(self, harness: str, session_id: str) -> dict | None:
        """Return the ``session_params`` of the newest run in that session of a harness; None where there is none."""

    def walk(self, scope: str, state: str = "", after: str = "") -> Iterator[tuple[str, Run]]:
        """Yield the runs of a scope, of one state where that is given, newest first."""

    def count(self, scope: str, state: str = "") -> int:
        """Return how many runs `walk` has."""

    def live(self, scope: str = "") -> list[Run]:
        """Return runs that have not ended, newest first."""

    def session_of(self, task_id: str, harness: str) -> dict | None:
        """Return what it takes to continue a task's last session in that harness (``RunResult.session_params``)."""

    def of_instance(self, instance_id: str) -> Run | None:
        """Return the run under way whose instance this is."""

    def admit(self, instance_id: str, client: tuple[int, str]) -> Run | None:
        """Return the run under way of that instance, if the process `client` (pid, start time) is its child.

        The first client that reports is: others that it starts inherit its environment, and are sessions of
        their own. None where it is not, or there is no such run.
        """

    def take_back(self, instance_id: str) -> bool:
        """Give a run's instance back to its supervisor: its child's session has ended. Return whether it is a run's."""


class SpawnLocks(Protocol):
    """Who is starting a worker for which task: one dispatch at a time."""

    def take(self, instance: Session, name: str, task_id: str, worker_id: str) -> Lock | None:
        """Return the lock, now this process's to spawn under; None where a spawn is under way.

        `worker_id` is the id that is reserved for the session of whoever is started. Raises SwarmError where
        `instance`, which has it started, has gone.
        """

    def started(self, row: Lock, facts: dict) -> None:
        """Note that the spawn under `row` is out of our hands; `facts` say how to ask about it."""

    def release(self, row: Lock, reason: str) -> None:
        """Give up the lock `row` (from `take`), where it is still that one."""

    def holder(self, scope: str, name: str) -> Lock | None:
        """Return the lock of this scope as ``locks.on`` gives it, None where nobody alive holds it."""

    def worker_of(self, row: Lock) -> Session | None:
        """Return the worker that was started under a lock, where it has come up."""


class KeyValues(Protocol):
    """Shared values, owned by the identity that first set them. Writes raise Refused where that is another one."""

    def walk(
        self, scope: str, prefix: str = "", viewer: str | None = None, after: str = ""
    ) -> Iterator[tuple[str, KeyValue]]:
        """Yield ``{key, updated_at}`` of every key with this exact prefix that `viewer` may read, by key."""

    def count(self, scope: str, viewer: str | None = None, prefix: str = "") -> int:
        """Return how many keys of a scope, with this exact prefix, `viewer` may read."""

    def get(self, scope: str, key: str, viewer: str | None = None) -> KeyValue | None:
        """Return ``{value, updated_at, owner_identity}``; None also where `viewer` may not read it."""

    def put(self, instance: Session, key: str, value: str) -> None:
        """Set a value. Raises Refused where another identity owns the key."""

    def append(self, instance: Session, key: str, value: str) -> int:
        """Add one JSON value to the list under `key`; the list's new length.

        What was there and is no list becomes its first item; text that is no JSON becomes a string. Numbers
        keep every digit they were written with. Raises Refused where another identity owns the key,
        NotJson.
        """

    def delete(self, instance: Session, key: str) -> bool:
        """Remove a key; whether it was there. Raises Refused where another identity owns it."""


class Panes(Protocol):
    """Where sessions can be seen: the panes that they publish."""

    def republish(self, row: Session, environment: Mapping[str, str], client_pid: int = 0) -> None:
        """Make known the pane that `environment` names, where instance `row` has published another or none.

        `client_pid` is the client that the environment comes from: a client's shared background server has
        that of the terminal which happened to start it, and says nothing about this session.
        """

    def repair(self, row: Session, known: dict, found: dict[str, str]) -> bool:
        """Write back what a pane is called now; whether that was news.

        `known` is what instance `row` had published; `found` has ``pane_id``, ``workspace_id``, ``tab_id``
        as its workspace tells them. Nothing is written where the session has published anew meanwhile.
        """

    def published(self, instance_id: str) -> dict:
        """Return what an instance has published, empty where that is nothing or makes no sense."""

    def all_published(self) -> dict[str, dict]:
        """Return what each instance has published, by its id."""

    def with_session(self, shown: dict) -> dict:
        """Return a session as listed, with the pane it published, if any."""

    def with_lock(self, shown: dict) -> dict:
        """Return a lock as listed, with the pane that its holder published, if any."""

    def with_locks(self, shown: Iterable[dict]) -> Iterator[dict]:
        """Yield locks as listed, as `with_lock` does; what is hidden stays so. Panes are asked for once for all."""


class Planner(Protocol):
    """Which session owns a scope's plan."""

    def owner(self, scope: str) -> dict | None:
        """Return the value, None where nobody owns the plan, or only a session that has gone or plans no more."""


class Tracker(Protocol):
    """The work tracker of an identity, and its entries for tasks."""

    def of(self, instance: Session) -> dict | None:
        """Return ``{key, value, updated_at}`` of the tracker that this session's work is tracked in, or None.

        `value` is the parsed JSON, or the text itself where that is none. Whoever owns the key, its own
        identity reads it: it is configuration, not a secret.
        """

    def link(self, instance: Session, provider: str, task_id: str, identifier: str, url: str = "") -> dict:
        """Remember that a task is entry `identifier` of the tracker; what was stored.

        ``{identifier, [url], linked_at}``, `linked_at` in ms. Raises SwarmError where the session has no
        identity, whose tracker it would be.
        """

    def entry(self, instance: Session, provider: str, task_id: str) -> dict | None:
        """Return what `link` stored for a task, or None."""


class Feed(Protocol):
    """The events of a scope, one after the other, as an onlooker may see them; `last` is the id of the newest read."""

    last: int

    def read(self) -> list[dict]:
        """Return the next events, oldest first, at most `FEED_AT_ONCE`; an empty list when there are none yet.

        ``{id, at, change, type, actor, actor_label, subject, payload}``; what the viewer may not know is
        null or missing, and what is none of its business is an event with only its id.
        """


class Acquaintance(Protocol):
    """What a viewer may know of the sessions in events, also of those that have left since."""

    def learn(self, events: list[Event]) -> None:
        """Remember the labels in these events, for when their sessions have gone."""

    def label_of(self, instance_id: str) -> str | None:
        """Return a session's label, None where it has none or nobody knows any more."""

    def may_meet(self, instance_id: str | None) -> bool:
        """Tell whether that session is no stranger. ``system`` is none; one of which nothing is known is."""


class Activity(Protocol):
    """What has happened, as far as one session may know it."""

    def moment(self, instance: Session) -> Moment:
        """Now, as this session sees it."""

    def since(self, instance: Session, before: Moment) -> News:
        """Return what is new to this session since `before`."""

    def feed(self, scope: str, identity: str, last: int | None = None) -> Feed:
        """Return the events of `scope` after the one with id `last` (None: from now on), as `identity` may see them."""

    def acquaintance(self, label: str | None) -> Acquaintance:
        """Return what a viewer with this label may know of the sessions in events."""

    def of_locks(self, before: int | None, limit: int) -> list[Event]:
        """Return the newest events about locks, of all scopes; those before the one with id `before` where given."""

    def timeline(
        self,
        scope: str,
        since: int,
        until: int,
        limit: int,
        groups: tuple[str, ...] = ("context", "instance", "protection"),
    ) -> list[Event]:
        """Return the newest events of `scope` (empty: all) in these seconds, newest first.

        `groups` of them: ``context`` (locks), ``instance`` (sessions), ``protection``, ``task``.
        """

    def of_sessions(self, ids: list[str]) -> list[Event]:
        """Return when these sessions joined and left, oldest first."""

    def sweep(self) -> None:
        """Notice what nobody announces: sessions that died, and locks that went without a word of ours.

        Both end what others wait for. Costs one read while there is nothing of the kind.
        """


class UiCommands(Protocol):
    """Orders to an external user interface."""

    def enqueue(self, scope: str, created_by: str | None, kind: str, payload: dict) -> UiCommand:
        """Add one command, ``spawn_shell``, ``send_prompt``, ``move_node`` or ``organize_nodes``; its row."""

    def get(self, command_id: int) -> UiCommand | None:
        """Return one command."""

    def recent(self, scope: str, status: str = "", limit: int = 20) -> list[UiCommand]:
        """Return the newest `limit` commands of a scope, newest first; a negative limit means all.

        Raises SwarmError where `status` is none of ``UI_STATES``.
        """

    def walk(self, scope: str, status: str = "", after: str = "") -> Iterator[tuple[str, UiCommand]]:
        """Yield the commands of `recent`, all of them, as pages of a listing take them."""

    def count(self, scope: str, status: str = "") -> int:
        """Return how many commands `walk` has."""

    def outcome(self, command_id: int, seconds: float) -> UiCommand:
        """Return the command once it is done or has failed, or as it is after `seconds`.

        Sleeps until some process commits to the store. Raises SwarmError where the command is gone.
        """


class Cleanup(Protocol):
    """What falls due with time."""

    def some(self) -> bool:
        """Outside a transaction: remove a little of what is due, if it is time; whether it did.

        It is time when no process has done so for 30 s (2 s while something was left). Where it is not,
        this costs one read. A busy store is left alone; it will be time again. No transaction of it takes others' time:
        it is a few short ones. What room has become free is given back, a little each time.
        """

    def due_in(self) -> float:
        """Return the seconds until it is time for `some` again."""

    def clean(self, scope: str | None = None, dry_run: bool = False) -> dict:
        """Remove what is due in `scope` (None: everywhere); counts in the contract's shape.

        A dry run does the same in a transaction that is rolled back, so that it cannot disagree.
        """


class Changes(Protocol):
    """Being told of commits to a store, by any process, this one's own included."""

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until some process has committed since the last True, or since this object was made.

        False when `seconds` (None: for ever) have passed, or after `stop`.
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
    def here(self) -> str:
        """What this machine, since its last start, is called in rows."""

    def now(self) -> int:
        """Return the time in Unix seconds."""

    def refresh(self) -> None:
        """Open the store anew where it was removed or replaced since."""

    def version(self) -> object:
        """Return what is another value after each commit of somebody else, and where the store is another."""

    def events_so_far(self) -> int:
        """Return how many events this store has ever had; it never goes down."""

    def exists(self) -> bool:
        """Tell whether there is a store yet; one that only reads answers as an empty one until then."""

    def described(self) -> dict:
        """Return what keeps it, for people to read: ``{backend, ...}``."""

    def check_reading(self) -> None:
        """Raise StoreUnavailable where it cannot be read."""

    def check_writing(self) -> None:
        """Raise StoreUnavailable where nobody can write: takes the right to, gives it back, and writes nothing."""

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
    def storms(self) -> Storms: ...

    @property
    def breaches(self) -> Breaches: ...

    @property
    def protection(self) -> Protection: ...

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
