"""Denials that the store does not have one by one, and storms of them.

One JSON object a line: ``{"at": unix seconds, "instance": the denied session, "holder", "keys": of the lock}``. A
denial by a hook also has ``"path"``, the path of the write, ``"times"``, the number of recent denials with this one,
``"event"``, true if the store has it too, ``"by"``, the tool and the command, and ``"call"``, the client's id of the
call: a session's server and the command beside it may both deny one call, which then counts once. A notice has
``"notice"`` in the place of ``"path"``, and no keys: it counts as no denial.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.lookup import Peers, Session
from swarm_hook_core.paths import key_of
from swarm_hook_core.state import append_line, read_private, state_dir
from swarm_hook_core.untrusted_text import named, token
from swarm_hook_core.wording import duration, holder, inside, joining, until

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.denial import Denial, Notice

Line = dict[str, Any]  # of the record

LIMIT_BYTES = 128 * 1024
LATE_SECONDS = 30  # by which the store may hear of a hook's denial
LONGEST = 300  # characters of a tool and its command
MOST = 24  # of one file that are looked at, the newest: of more it is enough to know that there are so many


def path() -> str:
    """Return the path of the record; the one before it has ``.1`` appended."""
    return os.path.join(state_dir(), "repeated-denials.jsonl")


def note(instance_id: str, holder_id: str, *keys: str, **more: object) -> None:
    """Count one. Never raises: it may be in a sandbox that can write nothing."""
    try:
        told = {"at": int(time.time()), "instance": instance_id, "holder": holder_id, "keys": list(keys), **more}
        append_line(path(), dumps(told), LIMIT_BYTES)
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


def lately(instance_id: str, holder_id: str, file: str, since: float, call_id: str) -> tuple[int, int, float]:
    """Return the number of denials of `file` to that session for that holder by hooks, without the call of that id; the
    highest ``times`` among them, and the first ``at``. Of very many only the newest count.
    """
    wanted = (instance_id, holder_id, file)
    found: list[Line] = []
    for one in _newest_first(instance_id, dumps(file)):
        if one["at"] < since or len(found) == MOST:
            break
        if (one["instance"], one["holder"], one.get("path")) == wanted and not (call_id and one.get("call") == call_id):
            found.append(one)
    first = min((one["at"] for one in found), default=0)
    return _calls(found), max((one["times"] for one in found if isinstance(one.get("times"), int)), default=0), first


def is_recorded(instance_id: str, holder_id: str, file: str, since: float, name: str = "path", by: str = "") -> bool:
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


def known(having: str = "") -> list[Line]:
    """All that are still counted, as they were written; only those with the text `having` in them."""
    return [*_newest_first(having)][::-1]


def _newest_first(*having: str) -> Iterator[Line]:
    """The same with all of these texts in them, one after the other, the newest first."""
    for file in (path(), path() + ".1"):
        try:
            text = read_private(file, 2 * LIMIT_BYTES).decode("utf-8", "replace")
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

SECONDS = 300  # seconds in which denials of one file are counted together
MANY, PERSON = 3, 10  # denials: of a storm, and where a person has to hear of it
NOTED_SECONDS = 60  # a denial noted this lately is not noted again


def weigh(denial: Denial, session: Session, call: ToolCall, peers: Peers, now: float) -> None:
    """Count a `denial` of `call`: set its `times` and `is_news`, and its reason where it is of a storm."""
    if denial.loss is not None:
        weigh_loss(denial, session, call, now)
        return
    held = denial.held
    if held is None or not peers.own_id:
        return
    is_known = peers.was_denied(held, denial.path, NOTED_SECONDS, call.tool)
    denial.is_news = not is_known
    if not denial.certain:
        if is_known:
            note(peers.own_id, held.instance_id, *held.names)
        return
    earlier, most, first = lately(peers.own_id, held.instance_id, denial.path, now - SECONDS, call.id)
    denial.times = times = earlier + 1
    denial.is_news = denial.is_news or any(most < number <= times for number in (MANY, PERSON))
    if times >= MANY:
        denial.reason = _words(denial, session, call, now - first, peers.waiting_for(denial.path), now)
    more = {"path": denial.path, "times": times, "event": not is_known, "call": call.id}
    note(peers.own_id, held.instance_id, *held.names, **more)


def weigh_loss(denial: Denial, session: Session, call: ToolCall, now: float) -> None:
    """Count a `denial` of `call` for its ``loss``: set its `times`, unless they are known, and its `is_news`."""
    loss, own_id = denial.loss, session.instance_id
    if not own_id:
        denial.is_news = False  # there is no session to record it for
        return
    assert loss is not None
    whose = own_id, loss.held.instance_id, denial.path
    denial.times = denial.times or lately(*whose, now - SECONDS, call.id)[0] + 1
    by = f"{call.tool} {loss.by}"[:LONGEST]
    denial.is_news = not is_recorded(*whose, now - NOTED_SECONDS, by=by)

    more = {"path": denial.path, "times": denial.times, "event": denial.is_news, "by": by, "call": call.id}
    note(own_id, loss.held.instance_id, key_of(denial.path), **more)


def weigh_notice(notice: Notice, session: Session, now: float) -> None:
    """Set the `is_news` of a `notice`: the same is recorded once within `NOTED_SECONDS`."""
    own_id, holder_id = session.instance_id, notice.loss.held.instance_id
    mark = f"{notice.loss.why} {notice.path}"
    notice.is_news = bool(own_id) and not is_recorded(own_id, holder_id, mark, now - NOTED_SECONDS, "notice")
    if notice.is_news:
        note(own_id, holder_id, notice=mark, event=True)


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
