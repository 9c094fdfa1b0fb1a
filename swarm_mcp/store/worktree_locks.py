"""Locks that hold in every work tree of a repository: their stored form, and the ones that meet a reach.

Such a lock also has a name in its repository (``repository``, see ``swarm_hook_core.repository``). A request for a file
in another work tree that takes part, or a write of it, meets the lock under the same name. A pattern is a matter of one
work tree, but meets others' locks on files as usual.
"""

from __future__ import annotations

import os

from swarm_hook_core import repository, wildmatch
from swarm_hook_core.lookup.worktree_locks import below, is_in, takes_part
from swarm_hook_core.paths import NO_CASE, above
from swarm_hook_core.repository import Tree
from swarm_mcp.domain.lock import Lock
from swarm_mcp.domain.session import anywhere
from swarm_mcp.store import lock_rows
from swarm_mcp.store.lock_request import GIT_SECONDS, Reach, forms, meet, reach_in, reach_of, tree_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.store.database import Transaction


def exist(tx: Transaction) -> bool:
    """Return True if there is such a lock. One step into an index that has nothing else."""
    sql = "SELECT 1 FROM context WHERE type = 'lock' AND repository IS NOT NULL LIMIT 1"
    return tx.row(sql) is not None


def meeting_elsewhere(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return locks of any holder that meet `reach` through another work tree, live or not."""
    if reach.key is None or not (reach.names or exist(tx)):
        return []
    tree = tree_of(reach)
    if tree is None:
        return []
    found = {}
    if reach.names or _takes_part(tx, tree):
        # Names, and ranges of names, under which locks that meet `reach` are found
        own = forms(reach)
        names = [name for form in own for key in (form, *above(form)) for name in repository.names_of(key, tree)]
        ranges = [below(name) for form in own for name in repository.names_of(form, tree)]
        for row, here in _of_others(tx, tree, *(list(dict.fromkeys(names)), ranges)):
            if meet(reach, here):
                found[row.id] = row
    for there in _elsewhere(tx, reach, tree) if reach.names else ():
        for row in lock_rows.in_place(tx, there):
            found[row.id] = row
    return list(found.values())


def reaches_elsewhere(tx: Transaction, reach: Reach) -> list[Reach]:
    """Return a path that is to hold in every work tree, as it is in the others."""
    tree = tree_of(reach)
    return _elsewhere(tx, reach, tree) if tree is not None else []


def covering_elsewhere(tx: Transaction, reach: Reach) -> list[Lock]:
    """Return locks of other work trees that hold the path of `reach` here, live or not."""
    if reach.key is None or not exist(tx):
        return []
    tree = tree_of(reach)
    if tree is None or not _takes_part(tx, tree):
        return []
    keys = dict.fromkeys(name for key in (reach.key, *reach.keys) for name in (key, *above(key)))
    names = [name for key in keys for name in repository.names_of(key, tree)]
    return [row for row, _here in _of_others(tx, tree, names, [])]


def seen_in(tx: Transaction, folder: str) -> dict[str, str]:
    """Return, of other work trees' locks that hold in the one around `folder`: id -> their path there."""
    if exist(tx):
        tree = repository.tree_over(os.path.realpath(folder))
    else:
        tree = None
    if tree is None or not _takes_part(tx, tree):
        return {}
    found = _of_others(tx, tree, [], [(one + ":", one + ";") for one in repository.ids(tree)])
    places = {row.id: _place(row.repository or "", tree).removeprefix(NO_CASE) for row, _here in found}
    return {lock: os.path.join(tree.top, place) if place else tree.top for lock, place in places.items()}


def _takes_part(tx: Transaction, tree: Tree) -> bool:
    if repository.opted_in(tree):
        repository.learn(tree, GIT_SECONDS)
    return takes_part(tree, lambda low, high: [row.path_key for row in _between(tx, low, high)])


def _between(tx: Transaction, low: str, high: str) -> list[Lock]:
    return lock_rows.select(tx, "AND c.repository >= ? AND c.repository < ?", (low, high))


def _of_others(tx: Transaction, tree: Tree, names: list[str], ranges: list[Any]) -> list[tuple[Lock, Reach]]:
    """Return ``(row, its reach in this work tree)`` of locks under these names that are not of this work tree."""
    rows = lock_rows.select(tx, f"AND c.repository IN ({','.join('?' * len(names))})", tuple(names))
    for low, high in ranges:
        rows += _between(tx, low, high)
    found = {}
    for row in rows:
        if row.id in found or is_in(row.path_key or "", tree):
            continue
        # The key of the path `place` in the work tree with this top
        place = _place(row.repository or "", tree)
        path = f"{tree.top.rstrip('/')}/{place.removeprefix(NO_CASE)}".rstrip("/")
        if place.startswith(NO_CASE):
            key = NO_CASE + path.casefold()
        else:
            key = path
        # A folder counts as one if it was one when it was locked, even if it is not there here.
        file = key.removeprefix(NO_CASE)
        here = reach_in({"file": file, "path_key": key, "base": key if row.base else ""})
        if here:
            found[row.id] = (row, here)
    return list(found.values())


def _elsewhere(tx: Transaction, reach: Reach, tree: Tree) -> list[Reach]:
    """Return the same path in the other work trees that take part."""
    tops: dict[str, None] = {}
    for one in repository.ids(tree):
        for row in _between(tx, one + ":", one + ";"):
            over = repository.tree_over((row.path_key or "").removeprefix(NO_CASE))
            if over is not None:
                tops[over.top] = None
    for top in repository.trees_beside(tree):
        other = repository.tree_at(top)
        if other is not None and other.common == tree.common and repository.opted_in(other):
            tops[top] = None
    tops.pop(tree.top, None)
    place = _place(reach.names[0], tree).removeprefix(NO_CASE)
    deep = bool(reach.segments) and reach.segments[-1] is wildmatch.DEEP
    found = []
    for top in tops:
        there = reach_of(anywhere(), os.path.join(top, place) + ("/" if deep else ""), as_pattern=False)
        found.append(there)
    return found


def _place(name: str, tree: Tree) -> str:
    """Return the path from the top in a name of this repository."""
    return next((name[len(one) + 1 :] for one in repository.ids(tree) if name.startswith(one + ":")), name)
