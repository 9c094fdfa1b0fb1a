"""What `swarm-mcp install` says of an upgrade: which clients had which release, and what is new since then."""

from __future__ import annotations

from collections.abc import Iterable

from swarm_mcp import __version__, changelog
from swarm_mcp.changelog import Entry
from swarm_mcp.text_width import folded

ROWS = 12  # lines of a terminal, and entries in JSON
# What may ask something of the user comes first; what the changelog has besides comes last.
_KINDS = ("Changed", "Removed", "Deprecated", "Security", "Added", "Fixed")


def upgraded(versions: dict[str, str]) -> dict[str, str]:
    """Return those of the clients (name -> release that it had, empty for none) that had another release than ours."""
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
    heading = folded(f"swarm {__version__} is installed; {had}.{' What has changed:' if everything else ''}", room)
    shown, rows = [], len(heading)
    for entry in everything:
        parts = folded(f"  {entry.kind}: {entry.first_sentence}", room)
        if rows + len(parts) > ROWS - 1:
            break
        shown.append((entry, parts))
        rows += len(parts)
    left = len(everything) - len(shown)
    below = [part for _, parts in sorted(shown, key=lambda pair: _rank(pair[0])) for part in parts]
    return [*heading, *below, *([f"  {_more(left, bool(shown))}: {changelog.file()}"] if left else [])]


def as_json(versions: dict[str, str]) -> dict | None:
    """Return the same as a value (clients by their names); None where nothing was upgraded."""
    if not versions:
        return None
    everything = _in_turns(_since(versions))
    changes = [{"release": one.release, "kind": one.kind, "text": one.text} for one in everything[:ROWS]]
    return {"from": versions, "to": __version__, "changes": changes, "not_shown": len(everything) - len(changes)}


def _listed(titles: list[str]) -> str:
    *others, last = titles
    return f"{', '.join(others)} and {last}" if others else last


def _since(versions: dict[str, str]) -> list[Entry]:
    """What the client with the oldest release has not had yet."""
    earlier = [version for version in set(versions.values()) if changelog.newer(__version__, version)]
    return max((changelog.since(version) for version in earlier), key=len, default=[])


def _in_turns(entries: Iterable[Entry]) -> list[Entry]:
    """The first of each kind, then the second of each: the changelog has what matters first in each."""
    seen: dict[str, int] = {}
    placed = []
    for entry in entries:
        seen[entry.kind] = seen.get(entry.kind, 0) + 1
        placed.append((seen[entry.kind], _rank(entry), entry))
    return [entry for _, _, entry in sorted(placed, key=lambda one: one[:2])]


def _rank(entry: Entry) -> int:
    return _KINDS.index(entry.kind) if entry.kind in _KINDS else len(_KINDS)


def _more(left: int, some: bool) -> str:
    return f"and {left} more" if some else f"{left} changes"
