"""Denials that the store does not have one by one: all of hooks, and repetitions of a denial that it knows.

One JSON object a line: ``{"at": unix seconds, "instance": the denied session, "holder", "keys": of the lock}``. A
denial by a hook also has ``"path"``, the path of the write, ``"times"``, the number of recent denials with this one,
``"event"``, true if the store has it too, and ``"call"``, the client's id of the call: a session's server and the
command beside it may both deny one call, which then counts once. A notice has ``"notice"`` in the place of ``"path"``,
and no keys: it counts as no denial.
"""

import os
import time
from collections.abc import Iterator
from typing import Any

from swarm_hook_core.json_text import dumps, loads
from swarm_hook_core.state import append_line, read_private, state_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    Line = dict[str, Any]  # of the record

LIMIT_BYTES = 128 * 1024
LATE_SECONDS = 30  # by which the store may hear of a hook's denial
MOST = 24  # of one file that are looked at, the newest: of more it is enough to know that there are so many


def path() -> str:
    """Return the path of the record; the one before it has ``.1`` appended."""
    return os.path.join(state_dir(), "repeated-denials.jsonl")


def note(instance_id: str, holder_id: str, *keys: str, **more: object) -> None:
    """Count one. Never raises: it may be in a sandbox that can write nothing."""
    try:
        from swarm_hook_core.json_text import dumps

        told = {"at": int(time.time()), "instance": instance_id, "holder": holder_id, "keys": list(keys), **more}
        append_line(path(), dumps(told), LIMIT_BYTES)
    except (OSError, TypeError):
        return  # a count is missed


def counted(these: "list[Line]", instance_id: str, holder_id: str, key: str, since: float, until: float) -> int:
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


def lately(instance_id: str, holder_id: str, file: str, since: float, call_id: str) -> "tuple[int, int, float]":
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


def is_recorded(instance_id: str, holder_id: str, file: str, since: float, name: str = "path") -> bool:
    """Return True if the store was told since then that `file` was denied to that session because of that holder.

    `name` is the field that has it; ``notice`` for a notice.
    """
    wanted = (instance_id, holder_id, file)
    for one in _newest_first(instance_id, dumps(file)):
        if one["at"] < since:
            return False
        if (one["instance"], one["holder"], one.get(name)) == wanted and one.get("event"):
            return True
    return False


def _calls(these: "list[Line]") -> int:
    """Return the number of calls behind these denials; each denial from a client without ids is a call."""
    return len({str(one["call"]) if one.get("call") else place for place, one in enumerate(these)})


def known(having: str = "") -> "list[Line]":
    """All that are still counted, as they were written; only those with the text `having` in them."""
    return [*_newest_first(having)][::-1]


def _newest_first(*having: str) -> "Iterator[Line]":
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
