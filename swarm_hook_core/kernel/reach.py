"""Which paths the kernel is to hold for a call: what others than its session have locked, in its reach."""

import os
import time

from swarm_hook_core.kernel.plans import MOST_PATHS


def paths_of(session, peers, roots) -> "tuple[list[str], bool]":
    """``(absolute real paths, whether those are all)`` of what `peers` hold around the folders `roots`.

    A locked folder is one path. What is not there cannot be held, and neither can what may yet fit a pattern. Left out
    is what the session shares a lock on.
    """
    from swarm_hook_core.collisions import all_keys
    from swarm_hook_core.watching.watched_files import files_of

    locks: dict = {}
    complete = True
    for root in roots:
        found, more = peers.first_around(all_keys(session, root, "/"), MOST_PATHS)
        complete = complete and not more
        locks.update(((held.file, held.instance_id, held.agent), held) for held in found)
    paths: dict = {}
    folders: dict = {}
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


def _real(path: str, folders: dict) -> str:
    """The real path of what is there at `path`, empty where nothing is.

    `folders` remembers those of folders: locks by the thousand are mostly of few, and each step of a path costs a look
    at the disk.
    """
    folder, name = os.path.split(path)
    if name in ("", ".", ".."):
        found = os.path.realpath(path)
        return found if os.path.lexists(found) else ""
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    found = os.path.join(folders[folder], name)
    if os.path.islink(found):
        found = os.path.realpath(found)
    return found if os.path.lexists(found) else ""


def _is_shared(held, peers) -> bool:
    """Whether the session of `peers` has the same lock, as another of those who read the file."""
    own = peers.reader.locks_on(list(held.names))
    return any(one.instance_id == peers.own_id and one.agent in ("", peers.own_agent) for one in own)


def held_now(plan) -> "tuple[list[str], bool]":
    """What `paths_of` says now for the session of a plan; raises whatever keeps that from being known.

    A session that has ended is kept from what anybody holds.
    """
    session, peers = _asked(plan)
    return paths_of(session, peers, plan.roots) if peers else ([], True)


def still_held(plan) -> "set[str]":
    """Which paths its session is kept from now: those of the plan, and perhaps others. Raises as `held_now` does."""
    session, peers = _asked(plan)
    if not peers:
        return set()
    found = set(paths_of(session, peers, plan.roots)[0])
    if len(found) < MOST_PATHS:
        return found
    from swarm_hook_core.collisions import all_keys

    for path in plan.paths:  # the first of very many may be others now
        if path not in found and peers.over(all_keys(session, path, "/")):
            found.add(path)
    return found


def _asked(plan):
    """``(Session, Peers)`` of a plan's session, no Peers where there is no store."""
    from swarm_hook_core.lookup import Peers, Session
    from swarm_hook_core.lookup.sqlite import StoreReader
    from swarm_hook_core.state import refuse_link

    refuse_link(plan.store)
    if not os.path.isfile(plan.store):
        return Session(plan.instance), None
    reader = StoreReader(plan.store)
    session = reader.session(plan.runtime, plan.session) or Session(plan.instance)
    return session, Peers(reader, plan.instance, time.time(), plan.agent)
