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
# The same for work that belongs to no session.
_OWNERLESS = {
    "person": "{by} would {deed} a person's uncommitted work{more}",
    "fence": "{by} would write in another work tree",
    "head": "{by} would change the HEAD, index or stash that sessions share here",
}


def around_owner(details: dict[str, Any], at: float) -> tuple[str, str] | None:
    """Return the words before and after the name of the other session; None if a lock was in the way.

    `details` and `at` are those of the event of a refusal. Where no session was the obstacle, all words are the first
    ones, and those after the name are empty.
    """
    reason = str(details.get("reason"))
    parts = _PARTS.get(reason, (_OWNERLESS.get(reason, ""), ""))
    if not any(parts):
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
    if parts and not parts[1]:
        return parts[0]
    if parts:
        return f"{parts[0]}{owner or 'another session'}{parts[1]}"
    return ""
