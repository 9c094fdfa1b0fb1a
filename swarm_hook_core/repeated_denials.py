"""Denials that are not written into the store again, because the same one was a moment ago: counted here.

One JSON object a line: ``{"at": unix seconds, "instance": who was denied, "holder", "keys": of the lock}``.
"""

import os
import time

from swarm_hook_core.state import append_line, state_dir

LIMIT_BYTES = 128 * 1024


def path() -> str:
    """Where they are counted; those before have ``.1`` appended."""
    return os.path.join(state_dir(), "repeated-denials.jsonl")


def note(instance_id: str, holder_id: str, *keys: str) -> None:
    """Count one. Never raises: it may be in a sandbox that can write nothing."""
    try:
        from swarm_hook_core.json_text import dumps

        told = {"at": int(time.time()), "instance": instance_id, "holder": holder_id, "keys": list(keys)}
        append_line(path(), dumps(told), LIMIT_BYTES)
    except (OSError, TypeError):
        return  # a count is missed


def counted(these: list, instance_id, holder_id, key, since: float, until: float) -> int:
    """How many of `these` (see `known`) are that session's, by that lock's holder, from `since` to before `until`."""
    return sum(
        1
        for one in these
        if (one["instance"], one["holder"]) == (instance_id, holder_id) and key in one["keys"]
        and since <= one["at"] < until
    )  # fmt: skip


def known() -> list:
    """All that are still counted, as they were written."""
    from swarm_hook_core.json_text import loads

    found = []
    for file in (path() + ".1", path()):
        try:
            with open(file, encoding="utf-8", errors="replace") as lines:
                text = lines.read()
        except OSError:
            continue
        for line in text.splitlines():
            try:
                one = loads(line)
            except (ValueError, RecursionError):
                continue  # torn by a full disk
            if isinstance(one, dict) and {"at", "instance", "holder", "keys"} <= set(one):
                found.append(one)
    return found
