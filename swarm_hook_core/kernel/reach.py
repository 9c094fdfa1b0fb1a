"""The paths that the kernel holds for a call: locks of other sessions within its reach."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from swarm_hook_core.collisions import all_keys
from swarm_hook_core.kernel.plans import MOST_PATHS, Plan
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.state import refuse_link
from swarm_hook_core.watching.watched_files import files_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.lookup import Held, Peers, Session


def paths_of(session: Session, peers: Peers, roots: Iterable[str]) -> tuple[list[str], bool]:
    """Return ``(absolute real paths, True if complete)`` of the locks of `peers` around the folders `roots`.

    A locked folder is one path. Missing files, and files that may come to match a pattern, cannot be held. Locks that
    the session shares are left out.
    """
    locks: dict[tuple[str, str, str], Held] = {}
    complete = True
    for root in roots:
        found, more = peers.first_around(all_keys(session, root, "/"), MOST_PATHS)
        complete = complete and not more
        locks.update(((held.file, held.instance_id, held.agent), held) for held in found)
    paths: dict[str, None] = {}
    folders: dict[str, str] = {}
    for held in locks.values():
        if held.mode == "shared" and _is_shared(held, peers):
            continue
        if held.pattern:
            complete = False
            for _held, _place, _key, files, _all in files_of([held], MOST_PATHS):
                paths.update((os.path.realpath(file), None) for file in files)
            continue
        path = _real(held.file, folders)
        if path:
            paths[path] = None
        else:
            complete = False
    return list(paths)[:MOST_PATHS], complete and len(paths) <= MOST_PATHS


def _real(path: str, folders: dict[str, str]) -> str:
    """Return the real path of the file at `path`, or "" for a missing one.

    `folders` caches real paths of folders: thousands of locks mostly lie in few, and each path step costs a look at the
    disk.
    """
    folder, name = os.path.split(path)
    if name in ("", ".", ".."):
        found = os.path.realpath(path)
        if os.path.lexists(found):
            return found
        return ""
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    found = os.path.join(folders[folder], name)
    if os.path.islink(found):
        found = os.path.realpath(found)
    if os.path.lexists(found):
        return found
    return ""


def _is_shared(held: Held, peers: Peers) -> bool:
    """Return True if the session of `peers` has the same shared lock."""
    own = peers.reader.locks_on(list(held.names))
    return any(one.instance_id == peers.own_id and one.agent in ("", peers.own_agent) for one in own)


def held_now(plan: Plan) -> tuple[list[str], bool]:
    """Return the present result of `paths_of` for a plan's session. Raises the error that prevents it.

    A session that has ended is kept out by all locks.
    """
    session, peers = _asked(plan)
    if peers:
        return paths_of(session, peers, plan.roots)
    return ([], True)


def still_held(plan: Plan) -> set[str]:
    """Return the paths still locked against a plan's session, perhaps with others. Raises as `held_now` does."""
    session, peers = _asked(plan)
    if not peers:
        return set()
    found = set(paths_of(session, peers, plan.roots)[0])
    if len(found) < MOST_PATHS:
        return found

    for path in plan.paths:  # among very many locks the first may be others now
        if path not in found and peers.over(all_keys(session, path, "/")):
            found.add(path)
    return found


def _asked(plan: Plan) -> tuple[Session, Peers | None]:
    """Return ``(Session, Peers)`` of a plan's session; Peers is None without a store."""
    from swarm_hook_core.lookup import Peers, Session

    refuse_link(plan.store)
    if not os.path.isfile(plan.store):
        return Session(plan.instance), None
    reader = StoreReader(plan.store)
    session = reader.session(plan.runtime, plan.session) or Session(plan.instance)
    return session, Peers(reader, plan.instance, time.time(), plan.agent)
