"""The messages between a machine and the team's server: plain dictionaries of JSON values, without any PostgreSQL.

Words: a *place* is a path from the top of a work tree, with ``/`` between its parts and none at its ends; ``""`` is the
whole tree. A *machine* is one state folder with its sessions (two homes on one computer are two). Its *agent* is the
one process that speaks for it. A *mirror* is a machine's replica as the server knows it. A *version* counts the changes
of one repository, from 1 and without gaps; a *fence* is the version of a grant.

**The calls** (``server.TeamServer(conninfo, machine)``; `repository` is the team's name for it, a text). Each is one
round trip. It raises `TeamUnreachable` after `seconds` (2 by default), or `TeamRefused` for a forbidden or impossible
request; its ``answer["code"]`` is ``not_allowed``, ``superseded`` (another agent speaks for this machine), ``older``
(another server was promoted in its place), ``hello_first``, ``malformed`` or ``no_team``. Every call but `look` and
`machines` needs an earlier `hello` of the same object.

  hello(repository, acked=0, mark=0, epoch="", circle="", mirror_lease=MIRROR_LEASE) -> HelloAnswer
  beat(repository, acked, mark, sessions=[{session, label, lease}]) -> BeatAnswer
  acquire(repository, session, wants, seen, mark) -> AcquireAnswer
  release(repository, [(lock, fence)], reason="released") -> version of the last (0: none of them was there)
  transfer(repository, lock, fence, to_session) -> ChangeAnswer
  steal(repository, lock, fence, session, reason="", force=False) -> ChangeAnswer
  wait(repository, session, ticket, wants, mode, agent, seconds_left, seen, mark) -> WaitAnswer
  leave(repository, numbers) -> version     gives up queue places
  end(repository, sessions, reason="ended") -> version     ends sessions, with all their locks and places
  reap(repository) -> [session ids]         removes the remains of silent sessions
  put(repository, items, seen, mark) -> [PutAnswer]     changes documents, each for itself
  settle(repository, version, seconds) -> bool     waits until that version counts
  mine(repository) -> Snapshot              this machine's rows on the server
  look(repository, circle="") -> News | None     everything, for a reader that is no mirror; None: no such repository
  machines(repository) -> [MachineRow]
  complete(repository)                      all rows of this machine were posted since its `hello`
  rest(repository)                          this machine's mirror ends; its sessions stay until their leases end
  part(repository)                          this machine leaves, with all its sessions
  listen(seconds) -> {repository: version}  waits for changes of all greeted repositories
  close()

A beat with ``acked=None`` renews sessions only, for a machine that cannot apply news. `seen`, and `acked` with `mark`,
are those of the last applied `News`; 0 and 0 before the first.

**Documents.** Messages, tasks, values and traces are documents: a `DocumentRow` for each (kind, key), with the version
of its last change. Everybody in the circle sees them. A message is put once and stays as it is. The server reads three
members of a body, if present, and no more: `sender` of a message (a session id; a session of another machine is
refused; ``""`` for none), `status` and `assignee` of a task (the server must know that session: `UNKNOWN_SESSION`).
Bodies are kept as values, not as texts: the order of members and the spelling of numbers are lost. `KEPT` is the
lifetime of a document after its last change; the next put removes expired ones. Documents outlive the events that make
all grants void: the server's documents stand, and a lost one (known here with a higher version, or with another body at
the same one) is put again, with ``again=True``. A server whose `HelloAnswer.schema` is below `DOCUMENTS_SCHEMA` has no
documents.

**Void grants.** `epoch` is a text for comparison only. It changes after a failover, after a restore, and if the server
has lost changes that a machine has seen. Then all grants of the server are void: the caller takes every own row for
unconfirmed, says `hello` again with neither `acked` nor `epoch`, and confirms its rows with ``again=True``. It keeps
the rows of another machine until that one has confirmed them or was `complete`, or `grace` is over. A new agent sends
the `epoch` of its replica. A session whose `joined` number differs from before has lapsed meanwhile: the same holds for
its rows.

**Safe beliefs.** A mirror is fresh until (boot clock when a `beat` was SENT) + its lease x (1 - `MARGIN`), once all of
its answer is applied, `more` is False and `grace` is over. A machine's sessions hold their grants until (boot clock
when the last beat that named them was SENT) + their lease x (1 - `MARGIN`). A replica must stop to count as fresh
before its machine sends `rest` or `part`: from then on the others do not wait for it.
"""

from __future__ import annotations

from json import dumps
from typing import Any, Literal, TypedDict

from swarm_hook_core import wildcards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import NotRequired

else:
    TypedDict = dict  # nothing is checked at run time, and `typing` takes a while to load
Mode = Literal["exclusive", "shared"]

PROTOCOL = 1  # of this module; the server says its own in `Hello`
MARGIN = 0.02  # of a lease: how much slower than the server's our clock may run
MIRROR_LEASE = 5.0  # seconds; beats come each third of it
SESSION_LEASE = 56.0  # others hear of the silence after some seconds, and then wait for a whole lease: 60 s in all
MOST_CHANGES = 500  # in one answer, and fewer where they are large; `more` says that there are more
DOCUMENTS_SCHEMA, COMPLETE_SCHEMA = 2, 5  # the first that has them
MOST_BODY = 128 * 1024  # bytes of a document's body, as JSON
MOST_KEY = 512  # bytes

# Kinds of changes. A replica passes over kinds that it does not know, and counts their versions.
LOCK, UNLOCK = "lock", "unlock"
WAIT, LEAVE = "wait", "leave"
SESSION, GONE = "session", "gone"
COMPLETE = "complete"
DOCUMENT, DOCUMENT_GONE = "document", "document_gone"

# Kinds of documents.
MESSAGE, TASK, VALUE, TRACE = "message", "task", "value", "trace"
KEPT = {MESSAGE: 86_400.0, TASK: 172_800.0, TRACE: 7_200.0}  # seconds; a task: once it has ended; a value: for good

# The reason why a call did nothing (`why` of an answer whose `ok` is False).
STALE = "stale"  # changes that this replica has not seen touch the same region: apply `news`, look again, ask again
HELD = "held"  # another holds it: `by`
GRACE = "grace"  # the server has just started: for `seconds`, only earlier locks are confirmed (``again``)
UNKNOWN_SESSION = "session"  # not registered, or its lease is over: beat first, and see its `joined`
EPOCH = "epoch"  # all is void: see above
NOT_HELD = "not_held"  # no such lock, another fence, or another holder
REFUSED = "refused"  # of one document: it cannot be, as `error` says; asking again is no use


class Want(TypedDict):
    """A wanted lock, or a part of a queue place. Made by `want`.

    place      the path; for a pattern ``""``
    is_folder  the path is a folder's, or was written with a slash at its end; False for a pattern
    pattern    as it was given, relative to `base`; ``""`` for a path
    base       the place of the folder that the pattern counts from; ``""`` for the top, and for a path
    region     `region_of` this: the largest area that it can touch
    mode       ``exclusive`` or ``shared``
    agent      the sub-agent; ``""`` for the session with all its agents
    note       at most 2048 bytes
    ttl        seconds of the lock's own lease, None for none: for others to read; its own machine lets it lapse
    expected_end  Unix seconds, None if unknown
    task_id    None for none
    again      it was confirmed before the epoch changed, or before its session lapsed

    A lock's key is (session, agent, place, pattern, base): wanting it anew in the same mode is the same grant with the
    same fence, in another mode a new grant. Two rows here with the same key (the same place in two work trees of one
    clone) are one lock there.
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
    """A session that has joined: `lease` in seconds; `joined`: the version at that moment."""

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
    """A queue place. `number`: its version, and so its order; `ticket`: its machine's number.

    `wants`: of each place, is_folder, pattern, base, region. `until`: Unix seconds by the server's clock, None: without
    end.
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
    """A document. `machine` and `member`: the author of its last change, added by the server; `at`: Unix seconds."""

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
    lock     LockRow: granted, changed, or handed over; ``was`` beside it names the former holder, ``reason``
             is ``transferred`` or ``stolen``, ``said`` the comment
    unlock   LockRow before, with ``reason`` (released, lapsed, stolen, ended, left) and ``by``, the session that
             took it away ("" for its own)
    wait     WaitRow
    leave    WaitRow before, with ``reason`` (left, lapsed, ended)
    session  SessionRow: joined, or with another label or lease
    gone     SessionRow before, with ``reason`` (ended, lapsed, left)
    complete  ``{machine, member}``: see `complete`
    document       DocumentRow: new, or changed
    document_gone  DocumentRow without its body, with ``reason`` (removed, expired); `version` is that of the removal

    `session` is the subject's id, with its `machine` and `member`; for documents it is ``""``, with the author's
    machine.
    """

    version: int
    kind: str
    session: str
    machine: str
    member: str
    body: dict[str, Any]


class Snapshot(TypedDict):
    """All rows at a version, of every machine, the asker's own too.

    `documents` are in the order of their versions; `mine`, and a server without documents, leave them out.
    """

    sessions: list[SessionRow]
    locks: list[LockRow]
    waits: list[WaitRow]
    documents: NotRequired[list[DocumentRow]]


class News(TypedDict):
    """The changes that a replica lacks.

    version   the replica's version once it has applied this
    mark      to be sent back with it: proves that both mean the same changes
    changes   the changes after the sent version, in order
    all       everything at `version`, if the changes are not kept any more (or ``acked=0``)
    more      there is more: apply this, and ask again at once; a mirror is not fresh before it has all
    """

    version: int
    mark: int
    changes: list[Change]
    all: NotRequired[Snapshot]
    more: bool


class Heard(TypedDict):
    """A silent mirror or session, or a machine that grants wait for (`GRACE`). `beat` is for comparison and sent back;
    `lease`: seconds.

    `TeamServer` keeps these itself, by its own boot clock, and sends its knowledge along as evidence.
    """

    kind: Literal["session", "mirror", "awaited"]
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
    """The answer to a beat. `ok` False: `why` is `EPOCH`, and nothing was renewed. Else:

    news      as asked for
    joined    of each named session, the version at which it joined; a changed one means: it had lapsed, and its locks
              are void. Sessions of another person are left out
    settled   versions up to this one count: all other mirrors have them
    silent    sessions and mirrors whose last beat is a while ago (`Heard`)
    grace     seconds until every member from before the server's start, or its loss, has been heard of or has expired;
              0 if so now. Before that, members may hold locks that the server does not know
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
    """All or none of the wanted locks.

    ok        granted: `fences` and `locks` (numbers) in the order of the wants, `version` of the last of them;
              `settled`: there is no other mirror, so that it counts already. Else ask `settle`
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

    seen   the version that it is based on, 0: there was none. It means nothing for a message
    body   any JSON value; None removes the document
    again  the server had it before the epoch changed, or probably had it
    """

    kind: str
    key: str
    seen: int
    body: Any
    again: NotRequired[bool]


class PutAnswer(TypedDict):
    """The answer about one item. `ok`: it is done; `version`: of the document, and of the removal (0: there was nothing
    to remove).

    A repetition by the same machine has the same answer until another change. A message that exists with the same body,
    by the same machine, always has the same answer.

    Else `why`: `STALE`: it is at another `version` (0: there is none), with this `body`, by this `machine` and
    `member`; `UNKNOWN_SESSION`: the server does not know the task's assignee: beat first; `GRACE`: for `seconds` an
    existing task can be changed with ``again`` only; `REFUSED` with `error`; of all items: `EPOCH`.
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
    """A machine, for `team status`: `acked`: the version of its mirror; `lease`: the mirror's, 0 without one.

    `left`: seconds until its lease is over by the server's clock, negative after that; `sessions`: their number.
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
    """Return the error in an item itself, independent of the server's state; ``""`` for none."""
    kind, key, body = item["kind"], item["key"], item["body"]
    if kind not in (MESSAGE, TASK, VALUE, TRACE):
        return f"there is no kind of documents {kind[:40]!r}"
    if kind == MESSAGE and body is None:
        return "a message is not taken back"
    try:
        text = dumps(body, ensure_ascii=False, allow_nan=False)
        size, key_size = len(text.encode()), len(key.encode())
    except (TypeError, ValueError, RecursionError):  # the sentence says it
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
    """Return the region of a path, or the largest one of a pattern: a place without letter case, with everything under
    it.

    A pattern's region is the folder of its literal prefix; ``""`` is the whole tree. Machines may treat letter case
    differently, so it is ignored here: a region that is too large costs a question, never a grant.
    """
    if not pattern:
        return _plain(wildcards.folded(place))
    prefix = wildcards.literal_prefix(wildcards.folded(pattern))
    return _plain(f"{wildcards.folded(base)}/{prefix}")


def regions_meet(left: str, right: str) -> bool:
    """Return True if one region is the other, or lies in it. The server does the same (``swarm_team.regions_meet``)."""
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
