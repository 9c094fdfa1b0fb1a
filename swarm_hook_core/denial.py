"""The reasons for which a call is denied, or its model is told something about it."""

from __future__ import annotations

from collections.abc import Iterable

from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.lookup import Held, Peers, Session
from swarm_hook_core.repeated_denials import MANY, PERSON
from swarm_hook_core.untrusted_text import cut, named, quoted, token
from swarm_hook_core.wording import holder, reason

PATH, WHO = 45, 40  # characters of a path, the last ones, and of a holder's name


class Loss:
    """The obstacle to a call, if it is no lock that denies it. ``incident_words.REASONS`` has the words of each `why`.

    why   ``uncommitted``: the file was changed after the session last saw it; ``moment``: it is being written just
          now; ``sweep``: a git command meets it; ``stash``: it is an entry of the stash; ``tenant``: it is a folder in
          which the owner works; ``process``: it is a process of the owner's client.
          Without an owner (`without_owner`): ``acting``: it is a person's; ``fence``: it is in
          another work tree; ``head``: it is the HEAD, index or stash that sessions share; ``team``: locks elsewhere
          may be unknown; ``unchecked``: the check has failed. ``kernel``: the kernel refused a write under a lock. Of
          notices alone: ``possible``: a lock that the call may run into; ``merged``, ``merged-person``; ``elsewhere``:
          written on another machine
    held  a ``lookup.Held`` with the owner of the work; its `instance_id` is empty if that is no session
    deed  the call's effect on it, as a verb: ``overwrite``
    by    the part of a command that does so, empty for a tool
    at    when it was done, in Unix seconds
    also  paths of more files for which the call is denied
    """

    __slots__ = ("why", "held", "deed", "by", "at", "also")

    def __init__(self, why: str, held: Held, deed: str, by: str = "", at: float = 0, also: Iterable[str] = ()):
        self.why = why
        self.held = held
        self.deed = deed
        self.by = by
        self.at = int(at)
        self.also = list(also)


def without_owner(why: str, deed: str, by: str = "", also: Iterable[str] = ()) -> Loss:
    """Return the Loss of work that belongs to no session."""

    return Loss(why, Held("", ""), deed, by, also=also)


class Notice:
    """A call that goes ahead, with words about it for its model: the `path`, the obstacle (`loss`).

    is_news  True if the coordinator is to be told of it (``repeated_denials``)
    """

    __slots__ = ("path", "loss", "reason", "is_news")

    def __init__(self, path: str, loss: Loss, reason: str):
        self.path = path
        self.loss = loss
        self.reason = reason
        self.is_news = True


class Denial:
    """A denied call: the `path` of its write, the lock (`held`) or the `loss`, and the `reason`.

    certain  True if the call would write the file, False if it only may
    times    the number of recent denials of this path, with this one; 0 if that is not known
    is_news  True if the coordinator is to be told of it (``repeated_denials``)
    file     the file that the session waits for; for a pattern this path only
    brief    the reason for a client that has no room for more, and `rest`, further words for its model; both empty
             for other clients (`shortened`)
    short    the reason in fewer words, for a denial that is repeated; may be empty
    question the question to the person, if the person may let the call pass at the client (``persons``); may be empty
    deed     the attempt, if only a person may do that (``protected``); then there is neither `held` nor `loss`
    """

    __slots__ = ("path", "held", "loss", "reason", "certain", "times", "is_news", "brief", "rest", "short", "deed",
                 "question")  # fmt: skip

    def __init__(self, path: str, held: Held | None, reason: str, certain: bool = True, loss: Loss | None = None):
        self.path = path
        self.held = held
        self.loss = loss
        self.reason = reason
        self.certain = certain
        self.times = 0
        self.is_news = True
        self.brief = self.rest = self.short = self.deed = self.question = ""

    @property
    def file(self) -> str:
        return self.path if self.held is None or self.held.pattern else self.held.file


def of_lock(
    collision: tuple[str, Held, int, bool], session: Session, call: ToolCall, peers: Peers, now: float
) -> Denial:
    """Return the Denial of a call that names a locked file; `collision` as ``first_collision`` returns it."""

    path, held, _place, within = collision
    words = reason(
        call.client_tool, path, held, token(session.label, "identity"), now,
        within=within, own_id=session.instance_id, waiting=peers.waiting_for(path), folder=call.reader_folder,
    )  # fmt: skip
    return Denial(path, held, words)


def shorten(denial: Denial, session: Session | None, call: ToolCall, room: int) -> None:
    """Set the ``brief`` reason of a `denial` that is longer than `room` characters, and its ``rest``.

    For a lock, ``brief`` has the file, the holder and the way out, and ``rest`` has the news behind the reason. For any
    other denial, ``brief`` is the beginning and ``rest`` the whole reason.
    """
    reason, held = denial.reason, denial.held
    if held is None or session is None:
        denial.brief, denial.rest = cut(denial.short or reason, room), reason
        return
    denial.rest = reason.partition("\n")[2]
    who, why, ask = holder(held, token(session.label, "identity"), session.instance_id)
    path = denial.path.removeprefix(f"{call.folder}/")
    if len(path) > PATH:
        path = f"…{path[1 - PATH :]}"
    if denial.times >= MANY:
        times = f"denied {denial.times} times, "
    else:
        times = ""
    begin = f"swarm lock blocked {call.client_tool} for {named(path)}: {times}held by {cut(who, WHO)}"
    instead = f"work on something else, {ask.partition(' (')[0]}, or wait in line for it (lock_file with wait_seconds)"
    if denial.times >= PERSON:
        instead = "do what can be done without it, say in your answer what is left to do, and end the turn"
    end = f". Do not write it another way: {instead}."
    left = room - len(begin) - len(end) - len(" (note: )")
    if why and left > 10:
        note = f" (note: {quoted(held.note, left - len('...'))})"
    else:
        note = ""
    denial.brief = cut(begin + note + end, room)
