"""The words that tell people why a write was refused if no lock was in the way."""

from __future__ import annotations

from swarm_hook_core.untrusted_text import cut
from swarm_hook_core.wording import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST = 80  # characters of a command

# The kind of endangered work (``decision.Loss``) -> the words around its owner's name.
_PARTS = {
    "uncommitted": ("it would {deed} what ", " changed{before} and has not committed"),
    "moment": ("", " was writing it at that moment"),
    "sweep": ("{by} would {deed} what ", " changed{before} and has not committed{more}"),
    "stash": ("{by} would {deed} what ", " put into the stash{before}"),
}


def around_owner(details: dict[str, Any], at: float) -> tuple[str, str] | None:
    """Return the words before and after the name of the other session; None if a lock was in the way.

    `details` and `at` are those of the event of a refusal.
    """
    parts = _PARTS.get(str(details.get("reason")))
    if parts is None:
        return None
    changed, also, command = details.get("changed_at"), details.get("also"), details.get("command")
    if isinstance(changed, (int, float)) and changed:
        before = f" {duration(max(0, at - changed))} before"
    else:
        before = ""
    if isinstance(also, list):
        count = len(also)
    else:
        count = 0
    if count:
        more = f", and {count} more file{'s' if count > 1 else ''}"
    else:
        more = ""
    if isinstance(command, str) and command:
        by = f"`{cut(command, LONGEST)}`"
    else:
        by = "it"
    words = {"deed": str(details.get("deed") or "change"), "by": by, "before": before, "more": more}
    return parts[0].format(**words), parts[1].format(**words)


def why_refused(details: dict[str, Any], at: float, owner: str) -> str:
    """Return the same as one text, with `owner` as the name; empty where a lock was in the way."""
    parts = around_owner(details, at)
    if parts:
        return f"{parts[0]}{owner or 'another session'}{parts[1]}"
    return ""
