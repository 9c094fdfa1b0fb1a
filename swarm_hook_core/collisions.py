"""The first file of a call that another session holds: by all spellings of its path, and the locks on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from swarm_hook_core.lookup import Held, Peers, Session
from swarm_hook_core.paths import above, contains, keys_for, real_path, real_paths, spellings, translated

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.check import Writes
    from swarm_hook_core.denial import Denial

FIRST_TARGETS = 40  # asked about before all others: mostly one of them is locked, or no file is
TARGETS_AT_ONCE = 100  # of the others, between two looks at the clock
DEEP = 64  # folders over a path that are asked about one by one


def denied_by_lock(writes: Writes, session: Session, peers: Peers, now: float) -> Denial | None:
    """Return the Denial of a call that names a file under a lock of another session, or None.

    Raises ValueError if the input of a write tool cannot be read.
    """
    targets = writes.named
    if not targets:
        return None
    collision = first_collision(session, targets, peers)
    if collision is None:
        return None
    from swarm_hook_core.denial import of_lock

    return of_lock(collision, session, writes.call, peers, now)


def first_collision(
    session: Session, targets: list[tuple[str, str]], peers: Peers, is_late: Callable[[int], bool] | None = None
) -> tuple[str, Held, int, bool] | None:
    """Return ``(path, held, place, within)`` of the first locked one of `targets` (folder, path as spelled), or None.

    A lock holds a path itself or, with `within`, a folder over it. `place` is the index of the target. If
    ``is_late(place)`` is true, that target and those behind it are not asked about.
    """
    real = real_paths()
    folders: set[str] = set()
    found = _first_of(session, targets, range(len(targets))[:FIRST_TARGETS], peers, real, folders)
    if found or len(targets) <= FIRST_TARGETS:
        return found
    places = list(range(FIRST_TARGETS, len(targets)))
    if not moved_places(session) and not session.mounts:
        places = to_ask(targets, places, peers)
    for begin in range(0, len(places), TARGETS_AT_ONCE):
        some = places[begin : begin + TARGETS_AT_ONCE]
        if is_late is not None and is_late(some[0]):
            return None
        found = _first_of(session, targets, some, peers, real, folders)
        if found:
            return found
    return None


def _first_of(
    session: Session,
    targets: list[tuple[str, str]],
    places: Sequence[int],
    peers: Peers,
    real: Callable[[str], str],
    folders: set[str],
) -> tuple[str, Held, int, bool] | None:
    """Return the same for the targets at `places`. `folders` collects the keys of folders that are known to be free."""
    wanted: dict[str, tuple[str, int, bool]] = {}  # key -> path to deny, target, True for a folder over it
    own: dict[str, None] = {}  # the keys of the paths themselves
    for place in places:
        folder, spelled = targets[place]
        keys = all_keys(session, spelled, folder, real)
        for key in keys:
            own[key] = None
            wanted.setdefault(key, (keys[0], place, False))
        for key in keys:
            around = key.rpartition("/")[0]
            if around not in folders:
                folders.add(around)
                for over in _folders_over(key, peers):
                    wanted.setdefault(over, (keys[0], place, True))
    if not wanted:
        return None
    # `Peers` has left out the session's own locks; those of its other agents remain.
    found = peers.on(list(own), [key for key in wanted if key not in own])
    theirs = [held for held in found if held.instance_id != session.instance_id or held.agent]
    if not theirs:
        return None
    order = {key: position for position, key in enumerate(wanted)}
    position, first = min(
        ((min(order.get(name, len(order)) for name in held.names), held) for held in theirs), key=lambda pair: pair[0]
    )
    named = next((wanted[name] for name in first.names if order.get(name) == position), (first.file, 0, False))
    path, place, within = named
    return path, first, place, within


def _folders_over(key: str, peers: Peers) -> list[str]:
    """Return the keys of the folders over a path; of a very deep path, only the folders with locks in them."""
    found = above(key)
    if len(found) > DEEP and peers.names_in([found[-DEEP]]) == set():
        return found[-DEEP:]
    return found


def all_keys(session: Session, spelled: str, folder: str, real: Callable[[str], str] = real_path) -> list[str]:
    """``keys_for`` of a path, of where the session's `file_root` says that it really is, and by its other mounts."""
    keys = keys_for(spelled, folder, real)
    for moved in moved_by(session, spelled, folder, real) if session.file_root else ():
        keys += keys_for(moved, folder, real)
    for root in session.mounts:
        paths = spellings(spelled, folder, real)
        there = [root + path[len(session.root) :] for path in paths if contains(session.root, path)]
        keys += [key for path in there for key in keys_for(path, folder, real) if key not in keys]
    if session.mounts:
        return list(dict.fromkeys(keys))
    return keys


def moved_places(session: Session, real: Callable[[str], str] = real_path) -> list[tuple[str, str]]:
    """Return ``(folder, its git root)`` of each place whose files are really in the session's `file_root`; mostly
    empty.
    """
    if not session.file_root:
        return []
    places = [(session.directory, session.root), (real(session.directory), real(session.root))]
    return [place for place in places if place[0] != session.file_root]  # else every path stays where it is


def moved_by(session: Session, spelled: str, folder: str, real: Callable[[str], str] = real_path) -> list[str]:
    """Return the paths in the session's `file_root` that the spellings of a path stand for, without unmoved ones."""
    places = moved_places(session, real)
    if not places:
        return []  # the common case
    found: list[str] = []
    for path in spellings(spelled, folder, real):
        for directory, root in places:
            moved = translated(path, directory, root, session.file_root)
            if moved != path and moved not in found:
                found.append(moved)
    return found


# The choice among very many files of one call: one question for a folder answers for most files in it.

FEW = 8  # files of one folder that are asked about one by one
ENTRIES = 4  # names in a folder that are looked at for links, for each file that is written there


def to_ask(targets: list[tuple[str, str]], places: Iterable[int], peers: Peers) -> list[int]:
    """Return those of `places` in `targets` (folder, path as spelled) that may have a lock. All others are certainly
    free.

    From each folder: one file, which answers for the folder and the folders over it, and every file with a name that is
    locked there, leads elsewhere or has more than one reading.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for place in places:
        folder, spelled = targets[place]
        start, slash, _name = spelled.rpartition("/")
        groups.setdefault((folder, start + slash), []).append(place)
    asked: list[int] = []
    for (folder, start), some in groups.items():
        if len(some) > FEW:
            taken = _taken(os.path.join(folder, start), len(some), peers)
        else:
            taken = None
        if taken is None:
            asked += some
            continue
        asked.append(some[0])
        asked += [place for place in some[1:] if not _is_free(targets[place][1][len(start) :], taken)]
    return sorted(asked)


def _is_free(name: str, taken: set[str]) -> bool:
    plain = name.isascii() and name.strip() == name and name not in ("", ".", "..") and "\0" not in name
    return plain and name.casefold() not in taken


def _taken(folder: str, files: int, peers: Peers) -> set[str] | None:
    """Return the names in absolute `folder`, without letter case, that are locked or links; None if unknown."""
    locked = peers.names_in(keys_for(folder, "/"))
    if locked is None:
        return None
    links: set[str] = set()
    for place in {folder, os.path.normpath(folder)}:
        try:
            with os.scandir(place) as entries:
                for seen, entry in enumerate(entries):
                    if seen > ENTRIES * files:
                        return None
                    if entry.is_symlink():
                        links.add(entry.name.casefold())
        except (FileNotFoundError, NotADirectoryError):  # there are no links in it yet
            continue
        except (OSError, ValueError):  # closed to us: not known
            return None
    return locked | links
