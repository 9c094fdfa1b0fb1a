"""The words that tell people about an obstacle to a write: the rule by which a lock holds, and its end."""

from __future__ import annotations

from collections.abc import Callable

from swarm_hook_core.untrusted_text import named
from swarm_hook_core.wording import duration
from swarm_mcp.domain.lock import AUTO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_THROUGH = {
    "file": "", "folder": ", by the locked folder {file}", "pattern": ", by the pattern {file}",
    "repository": ", as {file} of another work tree", "overlap": ": {file}",
}  # fmt: skip


def through(lock: dict[str, Any], path: Callable[[str], str]) -> str:
    """Return the rule by which a lock of ``lock_explaining.explanation`` holds; empty for a lock on the very file.

    `path` returns a path's name for the reader.
    """
    return _THROUGH.get(lock["rule"], "").format(file=named(path(lock["file"])))


def until(lock: dict[str, Any], now: float) -> str:
    """Return the words for the end of a lock, as listings show it."""
    words = "until it is released"
    if "lapses_in" in lock:
        left = duration(lock["lapses_in"])
        words = f"lapses in {left} unless renewed"
        if lock.get("mode") == AUTO:
            words = f"until its turn ends, or in {left} without a further write"
    if lock.get("expected_end"):
        away = lock["expected_end"] - now
        words += f", expected to end {f'in {duration(away)}' if away > 0 else f'{duration(-away)} ago'}"
    return words
