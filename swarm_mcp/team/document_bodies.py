"""Bodies of documents: a task or a value as the team's server keeps it, free of any machine's folders.

Also the comparison of two bodies: the later one, and the items that one list lacks.
"""

from __future__ import annotations

import json

from swarm_mcp.domain.task import BLOCKED, CLAIMED, IN_PROGRESS, OPEN, STATUSES, TERMINAL
from swarm_mcp.store.values import is_list, items_of
from swarm_mcp.team.outbox import canonical, path_at, place_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from swarm_mcp.domain.task import Task

_TEXTS = ("id", "type", "title", "requester", "status")
_MAYBE_TEXTS = (
    "description", "assignee", "result", "idempotency_key", "parent_task_id", "review_of_task_id", "fixes_task_id",
    "progress_summary", "blocked_reason", "tracker_provider",
)  # fmt: skip
_NUMBERS = ("created_at", "updated_at", "priority", "tracker_required")
_MAYBE_NUMBERS = ("progress_updated_at", "expected_next_update_at")
_TIMES = ("updated_at", "progress_updated_at", "expected_next_update_at")


def task_body(task: Task, top: str, left_out: int | None = None) -> dict[str, Any]:
    """Return a task as its document says it: files as places in the work tree with this `top`.

    Files outside of it are left out, and counted; `left_out`: how many were, where that is known.
    """
    places, outside = _places(task.files or [], top)
    body: dict[str, Any] = {name: task[name] for name in ("depends_on", *_TEXTS)}
    # Another program may have left something else there.
    body.update((name, task[name] if isinstance(task[name], str) else None) for name in _MAYBE_TEXTS)
    body.update((name, _whole(task[name])) for name in (*_NUMBERS, *_MAYBE_NUMBERS))
    body["files"] = places or None
    body["files_left_out"] = outside if left_out is None else left_out
    text = body["result"]

    def told(files: list[str]) -> list[str]:
        return _places(files, top)[0]

    body["result"] = _with_files(text, told)
    return body


def was_ended(here: dict[str, Any] | None, base: str | None, there: dict[str, Any]) -> bool:
    """Return True if a task was finished here by its holder, and only released there, as for a departed session."""
    if base:
        held = json.loads(base)
    else:
        held = {}
    return (
        here is not None
        and here["status"] in TERMINAL
        and held.get("status") in (CLAIMED, IN_PROGRESS)
        and here["assignee"] == held.get("assignee")
        and (there["status"], there["assignee"]) == (OPEN, None)
    )


def task_columns(body: Any, key: str, before: Task | None, top: str) -> dict[str, Any] | None:
    """Return a document's columns of a task, in the work tree with this `top`; None for an invalid document.

    `before` is the task as it is here: equal values stay as they are, and so do files outside of the work tree.
    """
    if not isinstance(body, dict) or body.get("id") != key or body.get("status") not in STATUSES:
        return None
    if not all(isinstance(body.get(name), str) for name in _TEXTS):
        return None
    if not all(isinstance(body.get(name), (str, type(None))) for name in _MAYBE_TEXTS):
        return None
    if not all(_is_number(body.get(name)) for name in _NUMBERS):
        return None
    if not all(body.get(name) is None or _is_number(body[name]) for name in _MAYBE_NUMBERS):
        return None
    columns = {name: body.get(name) for name in (*_TEXTS, *_MAYBE_TEXTS, *_NUMBERS, *_MAYBE_NUMBERS)}
    needed = body.get("depends_on")
    columns["depends_on"] = [one for one in needed if isinstance(one, str)] if isinstance(needed, list) else None
    given = body.get("files")
    if isinstance(given, list):
        paths = [path for one in given if (path := path_at(one, top))]
    else:
        paths = []
    outside = [file for file in (before.files or () if before else ()) if place_in(file, [top]) is None]
    columns["files"] = [*paths, *outside] or None
    text = body.get("result")

    def here(files: list[str]) -> list[str]:
        return [path for one in files if (path := path_at(one, top))]

    columns["result"] = _with_files(text, here)
    if before is not None:
        same = task_body(before, top)
        if same["files"] == body.get("files"):
            columns["files"] = before.files
        if same["result"] == body.get("result"):
            columns["result"] = before.result
    return columns


def _places(files: Iterable[str], top: str) -> tuple[list[str], int]:
    """Return those of these files that are in a work tree, from its top, and how many are not."""
    found = [place_in(file, [top]) for file in files]
    places = [one for one in found if one is not None]
    return places, len(found) - len(places)


def _with_files(text: str | None, change: Callable[[list[str]], list[str]]) -> str | None:
    """Return the result of a task with other names of the files that it says were changed (``complete_task``)."""
    if not text or not text.startswith("{") or '"files_changed"' not in text:
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # plain text
        return text
    files = found.get("files_changed")
    if not isinstance(files, list) or not all(isinstance(one, str) for one in files):
        return text
    found["files_changed"] = change(files)
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


VALUE_FIELDS = ("value", "owner_identity", "updated_at")


def value_body(value: Any) -> dict[str, Any]:
    return {**{name: value[name] for name in VALUE_FIELDS}, "updated_at": _whole(value["updated_at"]) or 0}


def is_value(body: Any) -> bool:
    return (
        isinstance(body, dict)
        and isinstance(body.get("value"), str)
        and isinstance(body.get("owner_identity"), (str, type(None)))
        and "owner_identity" in body
        and _is_number(body.get("updated_at"))
    )


def common_length(first: list[str], second: list[str]) -> int:
    """Return how many items both begin with."""
    return next(
        (place for place, pair in enumerate(zip(first, second)) if pair[0] != pair[1]), min(len(first), len(second))
    )


def missing_items(here: str, there: str) -> list[str] | None:
    """Return the items of a list here that are missing in one there; None if one of the two is no list."""
    if not (is_list(here) and is_list(there)):
        return None
    first, second = items_of(here), items_of(there)
    alike = common_length(first, second)
    left = second[alike:]
    found = []
    for one in first[alike:]:
        if one in left:
            left.remove(one)
        else:
            found.append(one)
    return found


def age(task: dict[str, Any] | None) -> tuple[int, int]:
    """Return a key that is greater for a later state of a task."""
    if task is None:
        return 0, 0
    ranks = {BLOCKED: 0, OPEN: 1, CLAIMED: 2, IN_PROGRESS: 3, **dict.fromkeys(TERMINAL, 4)}
    return task["updated_at"], ranks.get(task["status"], 0)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62


def _whole(value: object) -> int | None:
    """Return a time, or a count, as a document has it: others may have stored a fraction."""
    if isinstance(value, (int, float)) and abs(value) < 2**62:
        return int(value)
    return None


def without_times(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in _TIMES}


def text_of(body: object) -> str | None:
    try:
        if body is not None:
            return canonical(body)
        return None
    except (TypeError, ValueError, RecursionError):  # nothing that JSON can say
        return None
