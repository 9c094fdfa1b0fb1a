"""Locks that hold in several work trees of a repository, as a check in one of them meets them.

Loaded only where the store has such a lock. A work tree takes part where its repository has ``swarm.logical`` on,
or where a session holds such a lock in it; in any other, these locks hold nothing.
"""

import os
from collections.abc import Callable, Iterable

from swarm_hook_core import repository
from swarm_hook_core.paths import NO_CASE
from swarm_hook_core.repository import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.lookup import Held
    from swarm_hook_core.lookup.sqlite import StoreReader

GIT_SECONDS = 0.1  # for the first commit of a repository, on the first question about it


def over(reader: "StoreReader", keys: "Iterable[str]") -> "list[Held]":
    """Return the Held locks of other work trees on the paths with these keys, named as they are in this one.

    `reader` has ``named_in_repositories`` and ``named_between``, as ``sqlite.StoreReader``.
    """
    wanted: dict[str, tuple[str, Tree]] = {}  # name in a repository -> (key here, tree)
    for key, tree in _placed(keys):
        for name in _names(key, tree):
            wanted.setdefault(name, (key, tree))
    return _here(reader, [(held, *wanted[str(held.repository)]) for held in reader.named_in_repositories(list(wanted))])


def under(reader: "StoreReader", folders: "Iterable[str]", own_id: str, limit: int) -> "list[Held]":
    """Return the same for paths below any of these folders, of other sessions than one, at most `limit` for each."""
    found = []
    for key, tree in _placed(folders):
        for name in _names(key, tree):
            low, high = below(name)
            for held in reader.named_between(low, high, own_id, limit):
                if held.repository is not None and held.repository != low:
                    found.append((held, f"{key.rstrip('/')}/{held.repository[len(low) :]}", tree))
    return _here(reader, found)


def below(name: str) -> "tuple[str, str]":
    """Return the range ``(from, to)`` of the names in a repository below the folder with this name."""
    if name.endswith(":"):
        return (name, name[:-1] + ";")
    return (name + "/", name + "0")


def takes_part(tree: "Tree", keys_in_repository: "Callable[[str, str], Iterable[str | None]]") -> bool:
    """Return True if locks of other work trees hold in `tree`.

    `keys_in_repository(low, high)` returns the path keys of all such locks with names in that range.
    """
    if repository.opted_in(tree):
        return True
    ranges = [(one + ":", one + ";") for one in repository.ids(tree)]
    return any(is_in(key, tree) for low, high in ranges for key in keys_in_repository(low, high))


def is_in(key: "str | None", tree: "Tree") -> bool:
    """Return True if the path with this key belongs to work tree `tree`, and not to another inside of it."""
    if not isinstance(key, str) or repository.place_of(key, tree.top) is None:
        return False
    nearest = repository.tree_over(key.removeprefix(NO_CASE))
    return nearest is None or nearest.top == tree.top or nearest.top.casefold() == tree.top.casefold() != tree.top


def _here(reader: "StoreReader", found: "list[tuple[Held, str, Tree]]") -> "list[Held]":
    """Return of ``(held, key here, tree)`` the locks as they are named here, without those of this very tree."""

    def keys(low: str, high: str) -> "list[str | None]":
        return [held.path_key for held in reader.named_between(low, high)]

    taking_part: dict[str, bool] = {}
    helds = []
    for held, key, tree in found:
        if not isinstance(held.path_key, str) or is_in(held.path_key, tree):
            continue  # found by its path
        if tree.top not in taking_part:
            taking_part[tree.top] = takes_part(tree, keys)
        if taking_part[tree.top]:
            held.names = (held.path_key, key)
            held.elsewhere, held.file = held.file, _spelled(key, held.file, tree)
            helds.append(held)
    return helds


def _spelled(key: str, file: str, tree: "Tree") -> str:
    """Return the path that a key here names; in the letters of the lock's own `file` where the key has lost them."""
    if not key.startswith(NO_CASE):
        return key
    length = len(repository.place_of(key, tree.top) or "") - len(NO_CASE)
    if length > 0:
        return os.path.join(tree.top, file[-length:])
    return tree.top


def _placed(keys: "Iterable[str]") -> "list[tuple[str, Tree]]":
    """Return ``(key, tree)`` for those keys with paths in a work tree."""
    trees: dict[str, Tree | None] = {}  # folder -> the tree that it lies in, or None
    found = []
    for key in keys:
        if key.startswith("/") and "\0" not in key:
            tree = _tree(key, trees)
            if tree is not None:
                found.append((key, tree))
    # A key without letter case cannot be asked about; the same path is among the others with it.
    tops = {tree.top: tree for _key, tree in found}.values()
    for key in keys:
        if key.startswith(NO_CASE):
            near = [tree for tree in tops if repository.place_of(key, tree.top) is not None]
            if near:
                found.append((key, max(near, key=lambda tree: len(tree.top))))
    return found


def _tree(folder: str, trees: "dict[str, Tree | None]") -> "Tree | None":
    if folder not in trees:
        parent = os.path.dirname(folder)
        trees[folder] = repository.tree_at(folder)
        if trees[folder] is None and parent != folder:
            trees[folder] = _tree(parent, trees)
    return trees[folder]


def _names(key: str, tree: "Tree") -> "list[str]":
    if not repository.remembered(tree) and repository.opted_in(tree):
        repository.learn(tree, GIT_SECONDS)
    return repository.names_of(key, tree)
