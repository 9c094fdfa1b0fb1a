"""What a machine and the team's server say to each other. Plain dictionaries, as JSON has them; no PostgreSQL in here.

Words: a *place* is a path from the top of a work tree, with ``/`` between its parts and none at its ends; ``""`` is the
whole tree. A *machine* is one state folder with its sessions (two homes on one computer are two). Its *agent* is the
one process that speaks for it. A *mirror* is a machine's replica as the server knows it. A *version* counts the changes
of one repository, from 1 and without gaps; a *fence* is the version of a grant.

**The calls** (``server.TeamServer(conninfo, machine)``; `repository` is the team's name for it, a text). Each is one
round trip and raises `TeamUnreachable` within `seconds` (2 where nothing is said), or `TeamRefused` where the caller
may not, or asks for what cannot be; its ``answer["code"]`` is ``not_allowed``, ``superseded`` (another agent speaks
for this machine), ``hello_first``, ``malformed`` or ``no_team``. Every call but `look` and `machines` wants a `hello`
of the same object before it.

    hello(repository, acked=0, mark=0, epoch="", circle="", mirror_lease=MIRROR_LEASE) -> HelloAnswer
    beat(repository, acked, mark, sessions=[{session, label, lease}]) -> BeatAnswer
    acquire(repository, session, wants, seen, mark) -> AcquireAnswer
    release(repository, [(lock, fence)], reason="released") -> version of the last (0: none of them was there)
    transfer(repository, lock, fence, to_session) -> ChangeAnswer
    steal(repository, lock, fence, session, reason="", force=False) -> ChangeAnswer
    wait(repository, session, ticket, wants, mode, agent, seconds_left, seen, mark) -> WaitAnswer
    leave(repository, numbers) -> version     gives up places in line
    end(repository, sessions, reason="ended") -> version     of sessions, with all that they hold and wait for
    reap(repository) -> [session ids]         takes away what silent sessions left
    put(repository, items, seen, mark) -> [PutAnswer]     changes documents, each for itself
    settle(repository, version, seconds) -> bool     waits until that version counts
    mine(repository) -> Snapshot              what this machine has, as the server knows it
    look(repository, circle="") -> News | None     everything, for one who is no mirror; None: no such repository
    machines(repository) -> [MachineRow]
    rest(repository)                          this machine's mirror ends; its sessions stay until their leases end
    part(repository)                          this machine leaves, with all its sessions
    listen(seconds) -> {repository: version}  waits for changes of all repositories that were greeted
    close()

A beat with ``acked=None`` renews sessions only: for who cannot apply what is new. `seen`, and `acked` with `mark`, are
those of the last `News` applied; 0 and 0 before the first.

**Documents.** Messages, tasks, values and traces are documents: a `DocumentRow` for each (kind, key), the version of
which is that of its last change. They are everybody's in the circle. A message is put once and stays as it is. Of a
body the server reads three members, where they are there, and no more: `sender` of a message (a session id; refused
where that session is another machine's; ``""`` for none), `status` and `assignee` of a task (which goes to no session
that the server does not know: `UNKNOWN_SESSION`). Bodies are kept as values, not as texts: the order of members and
the spelling of numbers are lost. `KEPT` says how long a document stays after its last change; it is removed when
somebody next puts one. Documents outlive what makes all grants void: the server has them as it has them, and what it
has lost (known here with a higher version, or with another body at the same one) is put again, with ``again=True``.
A server whose `HelloAnswer.schema` is below `DOCUMENTS_SCHEMA` has none.

**What is void when.** `epoch` is a text to compare with, and no more. It is another one after a failover, after a
restore, and where the server has lost changes that a machine has seen. Then all that the server has granted is void:
the caller takes every own row for unconfirmed, then says `hello` again with neither `acked` nor `epoch`, and confirms
its rows with ``again=True``. An agent that begins says the `epoch` that its replica is of. A session whose `joined` is
another number than before has lapsed meanwhile: the same, for its rows.

**What is safe to believe.** A mirror is fresh until (boot clock when a `beat` was SENT) + its lease x (1 - `MARGIN`),
once all of its answer is applied, `more` is False and `grace` is over. A machine's sessions hold what the server has
granted them until (boot clock when the last beat that named them was SENT) + their lease x (1 - `MARGIN`). A replica
whose machine is about to `rest` or `part` must not count as fresh any more before it does: from then on nobody waits
for it.
"""

from __future__ import annotations

from json import dumps

from swarm_hook_core import wildmatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, TypedDict

    from typing_extensions import NotRequired

    Mode = Literal["exclusive", "shared"]
else:
    TypedDict = dict  # nothing is checked at run time, and `typing` takes a while to load

PROTOCOL = 1  # of this module; the server says its own in `Hello`
MARGIN = 0.02  # of a lease: how much slower than the server's our clock may run
MIRROR_LEASE = 5.0  # seconds; beats come each third of it
SESSION_LEASE = 60.0
MOST_WANTS = 200  # in one call
MOST_CHANGES = 500  # in one answer, and fewer where they are large; `more` says that there are more
DOCUMENTS_SCHEMA = 2  # the first that has them
MOST_BODY = 128 * 1024  # bytes of a document's body, as JSON
MOST_KEY = 512  # bytes

# Kinds of changes. A replica passes over kinds that it does not know, and counts their versions.
LOCK, UNLOCK = "lock", "unlock"
WAIT, LEAVE = "wait", "leave"
SESSION, GONE = "session", "gone"
DOCUMENT, DOCUMENT_GONE = "document", "document_gone"

# Kinds of documents.
MESSAGE, TASK, VALUE, TRACE = "message", "task", "value", "trace"
KEPT = {MESSAGE: 86_400.0, TASK: 172_800.0, TRACE: 7_200.0}  # seconds; a task: once it has ended; a value: for good

# Why a call did nothing (`why` of an answer whose `ok` is False).
STALE = "stale"  # changes that this replica has not seen touch the same region: apply `news`, look again, ask again
HELD = "held"  # another holds it: `by`
GRACE = "grace"  # the server has just started: for `seconds` only what was held before is confirmed (``again``)
UNKNOWN_SESSION = "session"  # not registered, or its lease is over: beat first, and see its `joined`
EPOCH = "epoch"  # all is void: see above
NOT_HELD = "not_held"  # no such lock, another fence, or another holder
REFUSED = "refused"  # of one document: it cannot be, as `error` says; asking again is no use


class Want(TypedDict):
    """What is asked for: a lock, or a part of what a place in line waits for. Made by `want`.

    place      the path; for a pattern ``""``
    is_folder  the path is a folder's, or was written with a slash at its end; False for a pattern
    pattern    as it was given, relative to `base`; ``""`` for a path
    base       the place of the folder that the pattern counts from; ``""`` for the top, and for a path
    region     `region_of` this: what it touches, at most
    mode       ``exclusive`` or ``shared``
    agent      the sub-agent; ``""`` for the session with all its agents
    note       at most 2048 bytes
    ttl        seconds of the lock's own lease, None for none: for others to read; its own machine lets it lapse
    expected_end  Unix seconds, None where it is not known
    task_id    None for none
    again      it was confirmed before the epoch changed, or before its session lapsed

    A lock is known by (session, agent, place, pattern, base): wanting it anew in the same mode is the same grant with
    the same fence, in another mode a new grant. Two rows here that are the same by this (the same place in two work
    trees of one clone) are one lock there.
    """

    place: str
    is_folder: bool
    pattern: str
    base: str
    region: str
    mode: Mode
    agent: str
    note: str
    ttl: float | None
    expected_end: int | None
    task_id: str | None
    again: bool


class SessionRow(TypedDict):
    """A session that has joined: `lease` in seconds; `joined`: the version at which it did."""

    session: str
    machine: str
    member: str
    label: str
    lease: float
    joined: int


class LockRow(TypedDict):
    """A lock as the server has it.

    lock      its number in this repository: stays while it changes mode or hands
    fence     the version of the grant: greater than that of any grant before
    granted_at  Unix seconds, by the server's clock: for people
    machine, member, label   of its session; `member` is the person's role
    Everything else as in `Want`.
    """

    lock: int
    fence: int
    session: str
    machine: str
    member: str
    label: str
    agent: str
    place: str
    is_folder: bool
    pattern: str
    base: str
    region: str
    mode: Mode
    note: str
    ttl: float | None
    expected_end: int | None
    task_id: str | None
    granted_at: float


class WaitRow(TypedDict):
    """A place in line. `number`: the version at which it was taken, which is its order; `ticket`: as its machine said.

    `wants`: of each place, is_folder, pattern, base, region. `until`: Unix seconds by the server's clock, None: any
    time.
    """

    number: int
    session: str
    machine: str
    member: str
    label: str
    agent: str
    ticket: str
    mode: Mode
    wants: list[dict[str, Any]]
    since: float
    until: float | None


class DocumentRow(TypedDict):
    """A document. `machine` and `member`: who changed it last, which the server knows by itself; `at`: Unix seconds."""

    kind: str
    key: str
    version: int
    body: Any
    machine: str
    member: str
    at: float


class Change(TypedDict):
    """One change of a repository.

    kind     body
    lock     LockRow: granted, changed, or handed over; ``was`` beside it names the session that had it, ``reason``
             is ``transferred`` or ``stolen``, ``said`` what was said about it
    unlock   LockRow as it was, with ``reason`` (released, lapsed, stolen, ended, left) and ``by``, the session that
             took it away ("" for its own)
    wait     WaitRow
    leave    WaitRow as it was, with ``reason`` (left, lapsed, ended)
    session  SessionRow: joined, or has another label or lease
    gone     SessionRow as it was, with ``reason`` (ended, lapsed, left)
    document       DocumentRow: new, or changed
    document_gone  DocumentRow without its body, with ``reason`` (removed, expired); `version` is that of the removal

    `session` is the one that it is about, with its `machine` and `member`; of documents it is ``""``, with the machine
    that has changed it.
    """

    version: int
    kind: str
    session: str
    machine: str
    member: str
    body: dict[str, Any]


class Snapshot(TypedDict):
    """All there is, at a version: of every machine, the asker's own too.

    `documents` are in the order of their versions; they are not in what `mine` returns, nor in what a server has that
    knows none.
    """

    sessions: list[SessionRow]
    locks: list[LockRow]
    waits: list[WaitRow]
    documents: NotRequired[list[DocumentRow]]


class News(TypedDict):
    """What a replica lacks.

    version   where it is once it has applied this
    mark      to be sent back with it: proves that both mean the same changes
    changes   those behind the version that was asked with, in order
    all       instead of `changes` where these are not kept any more (or ``acked=0``): everything at `version`
    more      there is more: apply this, and ask again at once; a mirror is not fresh before it has all
    """

    version: int
    mark: int
    changes: list[Change]
    all: NotRequired[Snapshot]
    more: bool


class Heard(TypedDict):
    """Somebody whose last beat is a while ago. `beat` is to be compared and sent back, and no more; `lease`: seconds.

    `TeamServer` keeps these itself, by its own boot clock, and sends what it knows along as evidence.
    """

    kind: Literal["session", "mirror"]
    id: str
    beat: str
    lease: float


class HelloAnswer(TypedDict):
    """`repository`: the server's number for it; `channel`: where its changes are told; `schema`: its last migration.

    `ok` False: `why` is `EPOCH`, and there is nothing else; nothing was registered.
    """

    ok: bool
    why: NotRequired[str]
    repository: int
    circle: str
    channel: str
    epoch: str
    schema: int
    protocol: int
    news: News


class BeatAnswer(TypedDict):
    """`ok` False: `why` is `EPOCH`, and there is nothing else; nothing was renewed. Else:

    news      as asked for
    joined    of each session that the beat named, the version at which it joined; another one than last time: it had
              lapsed, and all that it held is void. A session that is another person's is left out
    settled   what is not newer than this version counts: all other mirrors have it
    silent    sessions and mirrors whose last beat is a while ago (`Heard`)
    grace     seconds until all who were there before the server's start, or its loss, have been heard of, or count for
              nothing any more; 0 for so it is. Before, they may hold what the server does not know of
    """

    ok: bool
    why: NotRequired[str]
    epoch: str
    news: News
    joined: dict[str, int]
    settled: int
    silent: list[Heard]
    grace: float


class AcquireAnswer(TypedDict):
    """All or none of what was wanted.

    ok        granted: `fences` and `locks` (numbers) in the order of the wants, `version` of the last of them;
              `settled`: nobody else has a mirror, so that it counts already. Else ask `settle`
    why       else: `STALE` with `news`, `HELD` with `by`, `GRACE` with `seconds`, `UNKNOWN_SESSION`, `EPOCH`
    """

    ok: bool
    fences: NotRequired[list[int]]
    locks: NotRequired[list[int]]
    version: NotRequired[int]
    settled: NotRequired[bool]
    why: NotRequired[str]
    news: NotRequired[News]
    by: NotRequired[LockRow]
    seconds: NotRequired[float]


class WaitAnswer(TypedDict):
    """`number` of the place. Else `why`: `STALE` with `news`, `UNKNOWN_SESSION`, `EPOCH`."""

    ok: bool
    number: NotRequired[int]
    why: NotRequired[str]
    news: NotRequired[News]


class ChangeAnswer(TypedDict):
    """Of release, transfer, steal: `version` of the change and, of the last two, the new `fence`.

    Else `why`: `NOT_HELD`, `HELD` (the target has such a lock itself; or the holder is alive), `UNKNOWN_SESSION`,
    `GRACE` with `seconds`, `EPOCH`.
    """

    ok: bool
    version: NotRequired[int]
    fence: NotRequired[int]
    why: NotRequired[str]
    by: NotRequired[LockRow]
    seconds: NotRequired[float]


class Item(TypedDict):
    """A change to a document, for `put`.

    seen   the version that it is based on, 0: there was none. Of a message it counts for nothing
    body   whatever JSON has; None removes the document
    again  the server had it before the epoch changed, or so
    """

    kind: str
    key: str
    seen: int
    body: Any
    again: NotRequired[bool]


class PutAnswer(TypedDict):
    """Of one item. `ok`: it is so; `version`: of the document, and of the removal (0: nothing was there to remove).

    Asked again after it was done, by the same machine, it is the same answer while nobody has changed it since. A
    message that is there with the same body, by the same machine, is the same, whenever it is put.

    Else `why`: `STALE`: it is at another `version` (0: there is none), with this `body`, by this `machine` and
    `member`; `UNKNOWN_SESSION`: the task's assignee is no session that the server knows: beat first; `GRACE`: for
    `seconds` nobody can change a task that is there, but ``again``; `REFUSED` with `error`; of all items: `EPOCH`.
    """

    ok: bool
    version: NotRequired[int]
    why: NotRequired[str]
    body: NotRequired[Any]
    machine: NotRequired[str]
    member: NotRequired[str]
    seconds: NotRequired[float]
    error: NotRequired[str]


class MachineRow(TypedDict):
    """A machine, for `team status`: `acked`: the version that its mirror has; `lease`: of that, 0 where it has none.

    `left`: seconds until its lease is over by the server's clock, negative once it is; `sessions`: how many it has.
    """

    machine: str
    member: str
    acked: int
    lease: float
    left: float
    sessions: int


def item(kind: str, key: str, seen: int, body: Any, again: bool = False) -> Item:
    """Return an `Item`."""
    return {"kind": kind, "key": key, "seen": seen, "body": body, "again": again}


def item_error(item: Item) -> str:
    """Return what is wrong with an item, whatever the server has; ``""`` where nothing is."""
    kind, key, body = item["kind"], item["key"], item["body"]
    if kind not in (MESSAGE, TASK, VALUE, TRACE):
        return f"there is no kind of documents {kind[:40]!r}"
    if kind == MESSAGE and body is None:
        return "a message is not taken back"
    try:
        text = dumps(body, ensure_ascii=False, allow_nan=False)
        size, key_size = len(text.encode()), len(key.encode())
    except (TypeError, ValueError, RecursionError):
        return "this is nothing that JSON and UTF-8 can say"
    if size > MOST_BODY:
        return f"it has {size} bytes, and a document of the team's {MOST_BODY} at most"
    if not 0 < key_size <= MOST_KEY:
        return f"a document's key has 1 to {MOST_KEY} bytes"
    if "\\u0000" in text.replace("\\\\", "") or "\0" in key:
        return "the team's server takes no text with the character NUL"
    return ""


# ------------------------------------------------------------------------ regions


def region_of(place: str, pattern: str = "", base: str = "") -> str:
    """Return what a path, or at most what a pattern, touches: a place without letter case, and all that is under it.

    Of a pattern that is the folder of its literal prefix; ``""`` is the whole tree. Two machines may take letter case
    differently, so that it counts for nobody here: a region that is too large costs a question, never a grant.
    """
    if not pattern:
        return _plain(wildmatch.folded(place))
    prefix = wildmatch.literal_prefix(wildmatch.folded(pattern))
    return _plain(f"{wildmatch.folded(base)}/{prefix}")


def regions_meet(left: str, right: str) -> bool:
    """Tell whether one is the other, or lies in it. The server asks the same (``swarm_team.regions_meet``)."""
    low, high = sorted((left, right), key=len)
    return not low or low == high or high.startswith(low + "/")


def want(
    place: str = "",
    is_folder: bool = False,
    pattern: str = "",
    base: str = "",
    mode: Mode = "exclusive",
    agent: str = "",
    note: str = "",
    ttl: float | None = None,
    expected_end: int | None = None,
    task_id: str | None = None,
    again: bool = False,
) -> Want:
    """Return a `Want`. Slashes at the ends of `place` and `base` are taken off; one at the end of `place`: a folder."""
    return {
        "place": "" if pattern else _plain(place),
        "is_folder": not pattern and (is_folder or place.endswith("/") or not _plain(place)),
        "pattern": pattern,
        "base": _plain(base) if pattern else "",
        "region": region_of(place, pattern, base),
        "mode": mode,
        "agent": agent,
        "note": note,
        "ttl": ttl,
        "expected_end": expected_end,
        "task_id": task_id,
        "again": again,
    }


def _plain(place: str) -> str:
    return "/".join(part for part in place.split("/") if part)
