"""The notes of `swarm-mcp install` on an upgrade: the earlier release of each client, and the changes since."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from swarm_mcp import __version__
from swarm_mcp.answers.text_width import folded
from swarm_mcp.cli.words import clause
from swarm_mcp.runtimes import changelog
from swarm_mcp.runtimes.changelog import Entry

ROWS = 12  # lines of a terminal, and entries in JSON
# Kinds of change in the order of the notes: first those that may need action.
_KINDS = ("Changed", "Removed", "Deprecated", "Security", "Added", "Fixed")


def upgraded(versions: dict[str, str]) -> dict[str, str]:
    """Return the clients of `versions` (name -> its earlier release, empty for a new client) whose release was not this
    one.
    """
    return {name: version for name, version in versions.items() if version and version != __version__}


def lines(versions: dict[str, str], room: int) -> list[str]:
    """Return at most ROWS lines of at most `room` cells on the upgrade of these clients (title -> release it had)."""
    if not versions:
        return []
    had = "; ".join(
        f"{_listed([title for title in versions if versions[title] == release])} had {release}"
        for release in sorted(set(versions.values()))
    )
    everything = _in_turns(_since(versions))
    heading = folded(f"swarm {__version__} is installed; {had}." + " Changes:" * bool(everything), room)
    shown, rows = [], len(heading)
    for entry in everything:
        parts = folded(f"  {entry.kind}: {entry.first_sentence}", room)
        if rows + len(parts) > ROWS - 1:
            break
        shown.append((entry, parts))
        rows += len(parts)
    below = [part for _, parts in sorted(shown, key=lambda pair: _rank(pair[0])) for part in parts]
    left = len(everything) - len(shown)
    if left:
        number = f"and {left} more"
        if not shown:
            number = f"{left} changes"
        below.append(f"  {number}: {changelog.file()}")
    return [*heading, *below]


def as_json(versions: dict[str, str]) -> dict[str, Any] | None:
    """Return the notes as a JSON value (clients by name), or None if nothing was upgraded."""
    if not versions:
        return None
    everything = _in_turns(_since(versions))
    changes = [{"release": one.release, "kind": one.kind, "text": one.text} for one in everything[:ROWS]]
    return {"from": versions, "to": __version__, "changes": changes, "not_shown": len(everything) - len(changes)}


def _listed(titles: list[str]) -> str:
    *others, last = titles
    return clause("{} and ", ", ".join(others)) + last


def _since(versions: dict[str, str]) -> list[Entry]:
    """The changes since the oldest release among the clients."""
    earlier = [version for version in set(versions.values()) if changelog.newer(__version__, version)]
    return max((changelog.since(version) for version in earlier), key=len, default=[])


def _in_turns(entries: Iterable[Entry]) -> list[Entry]:
    """The first entry of each kind, then the second of each: each section of the changelog begins with the most
    important.
    """
    seen: dict[str, int] = {}
    placed = []
    for entry in entries:
        seen[entry.kind] = seen.get(entry.kind, 0) + 1
        placed.append((seen[entry.kind], _rank(entry), entry))
    return [entry for _, _, entry in sorted(placed, key=lambda one: one[:2])]


def _rank(entry: Entry) -> int:
    return [*_KINDS, entry.kind].index(entry.kind)
