"""The choice among very many files of one call: one question for a folder answers for most files in it."""

import os
from collections.abc import Iterable

from swarm_hook_core.paths import keys_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.lookup import Peers

FEW = 8  # files of one folder that are asked about one by one
ENTRIES = 4  # names in a folder that are looked at for links, for each file that is written there


def to_ask(targets: "list[tuple[str, str]]", places: "Iterable[int]", peers: "Peers") -> "list[int]":
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


def _is_free(name: str, taken: "set[str]") -> bool:
    plain = name.isascii() and name.strip() == name and name not in ("", ".", "..") and "\0" not in name
    return plain and name.casefold() not in taken


def _taken(folder: str, files: int, peers: "Peers") -> "set[str] | None":
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
