"""The reasons for which a call is denied, or its model is told something about it; and the count of denials."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import Any

from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.lookup import Held, Peers, Session
from swarm_hook_core.paths import key_of
from swarm_hook_core.state import append_line, read_private, state_dir
from swarm_hook_core.untrusted_text import cut, named, quoted, token
from swarm_hook_core.wording import duration, holder, inside, joining, reason, until

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

    is_news  True if the coordinator is to be told of it (`weigh_notice`)
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
    is_news  True if the coordinator is to be told of it (`weigh`)
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


# Denials that the store does not have one by one, and storms of them.
#
# One JSON object a line: ``{"at": unix seconds, "instance": the denied session, "holder", "keys": of the lock}``. A
# denial by a hook also has ``"path"``, the path of the write, ``"times"``, the number of recent denials with this one,
# ``"event"``, true if the store has it too, ``"by"``, the tool and the command, and ``"call"``, the client's id of the
# call: a session's server and the command beside it may both deny one call, which then counts once. A notice has
# ``"notice"`` in the place of ``"path"``, and no keys: it counts as no denial.

Line = dict[str, Any]  # of the record

MOST_BYTES = 128 * 1024
LATE_SECONDS = 30  # by which the store may hear of a hook's denial
LONGEST_BY = 300  # characters of a tool and its command
MOST_COUNTED = 24  # of one file that are looked at, the newest: of more it is enough to know that there are so many


def counts_path() -> str:
    """Return the path of the record; the one before it has ``.1`` appended."""
    return os.path.join(state_dir(), "repeated-denials.jsonl")


def add_count(instance_id: str, holder_id: str, *keys: str, **more: object) -> None:
    """Count one. Never raises: it may be in a sandbox that can write nothing."""
    try:
        told = {"at": int(time.time()), "instance": instance_id, "holder": holder_id, "keys": list(keys), **more}
        append_line(counts_path(), dumps(told), MOST_BYTES)
    except (OSError, TypeError):
        return  # a count is missed


def counted(these: list[Line], instance_id: str, holder_id: str, key: str, since: float, until: float) -> int:
    """Count those of `these` (see `known`) of that session and that lock's holder, from `since` to before `until`.

    Denials that the store knows do not count.
    """
    theirs = [
        one for one in these if (one["instance"], one["holder"]) == (instance_id, holder_id) and key in one["keys"]
    ]
    events = [one for one in theirs if one.get("event")]
    # The store's event is written after the hook's own line, maybe in another second.
    begun = min((one["at"] for one in events if since - LATE_SECONDS <= one["at"] <= since), default=since)
    calls = {one.get("call") for one in events} - {None, ""}
    lines = [one for one in theirs if begun <= one["at"] < until and not one.get("event")]
    return _calls([one for one in lines if one.get("call") not in calls])


def denied_lately(instance_id: str, holder_id: str, file: str, since: float, call_id: str) -> tuple[int, int, float]:
    """Return the number of denials of `file` to that session for that holder by hooks, without the call of that id; the
    highest ``times`` among them, and the first ``at``. Of very many only the newest count.
    """
    wanted = (instance_id, holder_id, file)
    found: list[Line] = []
    for one in _newest_first(instance_id, dumps(file)):
        if one["at"] < since or len(found) == MOST_COUNTED:
            break
        if (one["instance"], one["holder"], one.get("path")) == wanted and not (call_id and one.get("call") == call_id):
            found.append(one)
    first = min((one["at"] for one in found), default=0)
    return _calls(found), max((one["times"] for one in found if isinstance(one.get("times"), int)), default=0), first


def _is_recorded(instance_id: str, holder_id: str, file: str, since: float, name: str = "path", by: str = "") -> bool:
    """Return True if the store was told since then that `file` was denied to that session because of that holder.

    `name` is the field that has it; ``notice`` for a notice. `by`: the tool and the command of the denied call.
    """
    wanted = (instance_id, holder_id, file)
    for one in _newest_first(instance_id, dumps(file)):
        if one["at"] < since:
            return False
        if (one["instance"], one["holder"], one.get(name)) == wanted and one.get("event") and one.get("by", "") == by:
            return True
    return False


def _calls(these: list[Line]) -> int:
    """Return the number of calls behind these denials; each denial from a client without ids is a call."""
    return len({str(one["call"]) if one.get("call") else place for place, one in enumerate(these)})


def all_counts(having: str = "") -> list[Line]:
    """All that are still counted, as they were written; only those with the text `having` in them."""
    return [*_newest_first(having)][::-1]


def _newest_first(*having: str) -> Iterator[Line]:
    """The same with all of these texts in them, one after the other, the newest first."""
    for file in (counts_path(), counts_path() + ".1"):
        try:
            text = read_private(file, 2 * MOST_BYTES).decode("utf-8", "replace")
        except OSError:  # nothing was denied yet
            continue
        for line in reversed(text.splitlines() if having[0] in text else []):
            if not all(words in line for words in having):
                continue
            try:
                one = loads(line)
            except (ValueError, RecursionError):
                continue  # torn by a full disk
            if isinstance(one, dict) and {"at", "instance", "holder", "keys"} <= set(one):
                yield one


# Storms: a session that tries the same file again and again, although it is denied.
#
# From the third denial within a few minutes on it is told so, in fewer words. The coordinator then tells the holder,
# and at the tenth the person (``swarm_mcp.store.refusals``). Hooks' denials are counted beside the store; nothing is
# counted for a call that may pass.

STORM_SECONDS = 300  # seconds in which denials of one file are counted together
MANY, PERSON = 3, 10  # denials: of a storm, and where a person has to hear of it
NOTED_SECONDS = 60  # a denial noted this lately is not noted again


def weigh(denial: Denial, session: Session, call: ToolCall, peers: Peers, now: float) -> None:
    """Count a `denial` of `call`: set its `times` and `is_news`, and its reason where it is of a storm."""
    if denial.loss is not None:
        _weigh_loss(denial, session, call, now)
        return
    held = denial.held
    if held is None or not peers.own_id:
        return
    is_known = peers.was_denied(held, denial.path, NOTED_SECONDS, call.tool)
    denial.is_news = not is_known
    if not denial.certain:
        if is_known:
            add_count(peers.own_id, held.instance_id, *held.names)
        return
    earlier, most, first = denied_lately(peers.own_id, held.instance_id, denial.path, now - STORM_SECONDS, call.id)
    denial.times = times = earlier + 1
    denial.is_news = denial.is_news or any(most < number <= times for number in (MANY, PERSON))
    if times >= MANY:
        denial.reason = _words(denial, session, call, now - first, peers.waiting_for(denial.path), now)
    more = {"path": denial.path, "times": times, "event": not is_known, "call": call.id}
    add_count(peers.own_id, held.instance_id, *held.names, **more)


def _weigh_loss(denial: Denial, session: Session, call: ToolCall, now: float) -> None:
    """Count a `denial` of `call` for its ``loss``: set its `times`, unless they are known, and its `is_news`."""
    loss, own_id = denial.loss, session.instance_id
    if not own_id:
        denial.is_news = False  # there is no session to record it for
        return
    assert loss is not None
    whose = own_id, loss.held.instance_id, denial.path
    denial.times = denial.times or denied_lately(*whose, now - STORM_SECONDS, call.id)[0] + 1
    by = f"{call.tool} {loss.by}"[:LONGEST_BY]
    denial.is_news = not _is_recorded(*whose, now - NOTED_SECONDS, by=by)

    more = {"path": denial.path, "times": denial.times, "event": denial.is_news, "by": by, "call": call.id}
    add_count(own_id, loss.held.instance_id, key_of(denial.path), **more)


def weigh_notice(notice: Notice, session: Session, now: float) -> None:
    """Set the `is_news` of a `notice`: the same is recorded once within `NOTED_SECONDS`."""
    own_id, holder_id = session.instance_id, notice.loss.held.instance_id
    mark = f"{notice.loss.why} {notice.path}"
    notice.is_news = bool(own_id) and not _is_recorded(own_id, holder_id, mark, now - NOTED_SECONDS, "notice")
    if notice.is_news:
        add_count(own_id, holder_id, notice=mark, event=True)


def _words(denial: Denial, session: Session, call: ToolCall, span: float, waiting: int, now: float) -> str:
    """Return the shorter reason for a model that has read the whole one: count, holder, end, way out.

    `waiting`: the number of sessions that wait for the file already.
    """
    held, times = denial.held, denial.times
    assert held is not None
    who, _why, _ask = holder(held, token(session.label, "identity"), session.instance_id)
    file = named(inside(denial.path, call.folder))
    said = (
        f"swarm lock blocked {call.client_tool} for {file}: denied {times} times within {duration(max(span, 1))},"
        f" held by {who} ({until(held, now)}). Trying again changes nothing, nor does another way to write it."
    )
    if times >= PERSON:
        return f"{said} Stop: do what can be done without it, say in your answer what is left to do, and end the turn."
    if held.instance_id == session.instance_id:
        return f"{said} Leave it to that agent, and work on something else."
    return f"{said} Work on something else: you get a message when it is free. Or {joining(waiting)}, once."
