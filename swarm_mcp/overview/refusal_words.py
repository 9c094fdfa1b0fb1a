"""The words in which people are told why a write was refused where no lock was in the way."""

from __future__ import annotations

from swarm_hook_core.untrusted_text import cut
from swarm_hook_core.wording import duration

LONGEST = 80  # characters of a command

# What was in the way (``decision.Loss``) -> the words around the name of the session whose work it was.
_PARTS = {
    "uncommitted": ("it would {deed} what ", " changed{before} and has not committed"),
    "moment": ("", " was writing it at that moment"),
    "sweep": ("{by} would {deed} what ", " changed{before} and has not committed{more}"),
    "stash": ("{by} would {deed} what ", " put into the stash{before}"),
}


def around_owner(details: dict, at: float) -> tuple[str, str] | None:
    """Return the words before and after the name of the other session; None where a lock was in the way.

    `details` and `at` are those of the event of a refusal.
    """
    parts = _PARTS.get(str(details.get("reason")))
    if parts is None:
        return None
    changed, also, command = details.get("changed_at"), details.get("also"), details.get("command")
    before = f" {duration(max(0, at - changed))} before" if isinstance(changed, (int, float)) and changed else ""
    count = len(also) if isinstance(also, list) else 0
    more = f", and {count} more file{'s' if count > 1 else ''}" if count else ""
    by = f"`{cut(command, LONGEST)}`" if isinstance(command, str) and command else "it"
    words = {"deed": str(details.get("deed") or "change"), "by": by, "before": before, "more": more}
    return parts[0].format(**words), parts[1].format(**words)


def why_refused(details: dict, at: float, owner: str) -> str:
    """Return the same as one text, with `owner` as the name; empty where a lock was in the way."""
    parts = around_owner(details, at)
    return f"{parts[0]}{owner or 'another session'}{parts[1]}" if parts else ""
