"""The words that an editor shows: one line each."""

from __future__ import annotations

from swarm_hook_core.untrusted_text import NOTE, cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_mcp.view.lsp.facts import Change, Held


def of_lock(lock: Held) -> str:
    """Return ``held by codex 5f0c2f6e: renumbering migrations``."""
    words = f"held by {lock.holder}{lock.through}"
    note = cut(" ".join(lock.note[: 4 * NOTE].split()), NOTE)
    if note:
        words += f": {note}"
    return words


def of_change(change: Change, first: int, last: int) -> str:
    """Return ``codex 5f0c2f6e changed lines 10 to 14, not committed``. `first`, `last`: indices in the editor."""
    if not change.lines:
        return f"{change.authors} removed {_counted(change.removed)} here, not committed"
    return f"{change.authors} changed {_lines(first, last)}, not committed"


def of_unread(change: Change) -> str:
    """Return the same of a change that the editor has not read, with its lines on the disk."""
    if not change.lines:
        return f"{change.authors} removed {_counted(change.removed)} here on the disk, not committed"
    lines = _lines(change.first, change.first + change.lines - 1)
    return f"{change.authors} changed {lines} on the disk, not committed"


def of_save(name: str, lock: Held) -> str:
    """Return the warning before a save over a lock."""
    return f"swarm: {name} is {of_lock(lock)}"


def of_overwriting(name: str, authors: str) -> str:
    """Return the warning before a save over a content that the editor has not read."""
    by = authors or "another program"
    return f"swarm: {name} was changed on the disk by {by} since this editor read it: saving replaces that"


def _lines(first: int, last: int) -> str:
    if first == last:
        return f"line {first + 1}"
    return f"lines {first + 1} to {last + 1}"


def _counted(lines: int) -> str:
    if lines == 1:
        return "1 line"
    return f"{lines} lines"
