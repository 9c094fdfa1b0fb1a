"""The form of an undo's record, for both programs that write one: `swarm-mcp undo`, and the note of a rewind.

A record is a JSON object in `<state>/undos/<id>.json`, with the facts of `RECORD` and a list of `files`, each with the
facts of `FILE`. A fact has the type of its default here. `swarm_mcp.changes.records` says what each of them means.
"""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core.json_text import dumps
from swarm_hook_core.state import make_private, state_dir, write_private

RECORD: dict[str, Any] = {
    "id": "", "whose": ["", ""], "by": ["", ""], "undoes": "", "at": 0.0, "pid": 0, "started": "",
}  # fmt: skip
FILE: dict[str, Any] = {
    "path": "", "before": False, "after": False, "mode_before": 0, "mode_after": 0, "is_whole": False, "state": "",
    "at_ns": 0, "taken": [],
}  # fmt: skip


def undos_dir() -> str:
    """Return the folder of all undos. It need not exist."""
    return os.path.join(state_dir(), "undos")


def record_of(files: list[dict[str, Any]], **facts: Any) -> dict[str, Any]:
    """Return the record of an undo of these `files`. Raises TypeError as `file_of`."""
    return {**_filled(RECORD, facts), "files": files}


def file_of(**facts: Any) -> dict[str, Any]:
    """Return the facts of one file; missing ones have their defaults. Raises TypeError for a wrong name or type."""
    return _filled(FILE, facts)


def _filled(defaults: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    for name, value in facts.items():
        checked(value, defaults.get(name))
    return {**defaults, **facts}


def checked(value: Any, like: Any) -> Any:
    """Return `value` if it is of the same type as `like`. Raises TypeError."""
    if type(value) is not type(like):
        raise TypeError(f"{value!r:.60} is not like {like!r:.60}")
    return value


def write(record: dict[str, Any]) -> None:
    """Write down an undo that is over. Raises OSError."""
    make_private(undos_dir())
    write_private(os.path.join(undos_dir(), f"{record['id']}.json"), dumps(record))
