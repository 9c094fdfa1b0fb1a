"""The check of a commit or a push: its files against the locks of other live sessions."""

from __future__ import annotations

import os
import sys
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple, TextIO

from swarm_hook_core.environment import identity
from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.lookup import GLOB
from swarm_hook_core.lookup.pattern_locks import covered
from swarm_hook_core.lookup.process_holders import runs_inside
from swarm_hook_core.paths import NO_CASE, above, contains, key_of, keys_for
from swarm_hook_core.settings import is_silent
from swarm_hook_core.state import store_path
from swarm_hook_core.wildmatch import folded
from swarm_mcp.domain.lock import Lapse, is_mutex
from swarm_mcp.domain.session import Session
from swarm_mcp.errors import UnknownInstance
from swarm_mcp.folders import current_scope
from swarm_mcp.guard.repository import Repository, pushes
from swarm_mcp.sessions.acting import session_named, surrounding_session
from swarm_mcp.sessions.agents_shell import is_own
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import reach_in

HOOKS = ("pre-commit", "pre-push")
BUSY_SECONDS = 1.0


class Refusal(NamedTuple):
    """A file that another session keeps still, and its lock (a row of ``locks.held``).

    `file` is relative to the work tree; empty where the lock is on the repository itself.
    """

    file: str
    lock: dict[str, Any]


def refusals(hook: str, folder: str, who: str = "", stdin: TextIO | None = None, remote: str = "") -> list[Refusal]:
    """Return the refusals of the commit or push in `folder`, the first lock of each file.

    `hook`: of `HOOKS`. `who` names the committing session (default: the session of this shell, if any). Its own locks
    do not count. `stdin` and `remote` are from git for pre-push. Raises SwarmError.
    """
    if not os.path.isfile(store_path()) or is_silent(folder):
        return []
    with Store(read_only=True, busy_seconds=BUSY_SECONDS) as store:
        me = committer(store, who)
        if me:
            viewer = token(me.label or "", "identity")
        else:
            viewer = identity("MCP")
        lapsed = []
        if me and hook == "pre-commit":
            lapsed = store.leases.overtaken(me.id)
        if not lapsed and not store.locks.counts(None)["live"]:
            return []
        repository = Repository(folder)
        # The files that go with the commit or push, relative to the work tree
        if hook == "pre-commit":
            files = repository.staged()
        else:
            lines = pushes(stdin.read() if stdin is not None else "", os.environ)
            files = repository.pushed(lines, remote or os.environ.get("PRE_COMMIT_REMOTE_NAME", ""))
        rows = store.locks.by_name(_names(repository, files))
        others = [row for row in rows if not is_mutex(row.file) and not _is_own(row, me)]
        locks = [{**store.locks.listed(row, viewer), "base": row.base} for row in others]
        here = {}
        if others:
            here = store.locks.seen_in(folder)
        locks = [{**lock, "file": here.get(lock["id"], lock["file"])} for lock in locks]
    near = _Near(repository, [*locks, *(_overtaken(lapse, viewer) for lapse in lapsed)])
    return [Refusal("", lock) for lock in near.of_repository] or near.meeting(files)


def _names(repository: Repository, files: list[str]) -> Iterator[str]:
    """Yield every key of a lock that could hold the repository, one of these files or a folder over it."""
    paths = [os.path.join(repository.top, file) for file in files]
    for path in (os.sep, *_whole(repository), repository.top, *paths):
        for name in keys_for(path, os.sep):
            yield name
            yield from above(name)


def _whole(repository: Repository) -> set[str]:
    """Return the paths that are locked to keep the whole repository still."""
    return {os.path.join(repository.top, ".git"), repository.own, repository.common}


def _overtaken(lapse: Lapse, viewer: str) -> dict[str, Any]:
    """Return a lapsed lock of the committer, with its later holder, in the shape of a listed lock.

    The session's knowledge of the file is older than the file, even if it is free again.
    """
    shown = {name: lapse[name] for name in ("file", "path_key", "pattern", "base")}
    shown.update(instance_id=lapse.taken_by, owner_label=lapse.taken_label)
    shown.update(content="", created_at=lapse.lapsed_at, fence=lapse.taken_fence, lapsed=True)
    if not same_circle(viewer, token(lapse.taken_label or "", "identity")):
        shown.update(owner_label=None, hidden=True)
    return shown


def _is_own(lock: dict[str, Any], me: Session | None) -> bool:
    """Return True if `me` has this lock, or the ``swarm-mcp hold`` that has started this commit."""
    return bool(me and lock["instance_id"] == me.id) or runs_inside(lock["agent"], lock)


def committer(store: Store, who: str) -> Session | None:
    """Return the session that commits, or None for a person."""
    reference = who or os.environ.get("SWARM_MCP_INSTANCE_ID", "").strip()
    if not reference:
        return surrounding_session(store)
    try:
        named = session_named(store, current_scope(), reference)
    except UnknownInstance:
        if who:
            raise
        return None
    # An agent's commit is its own, even if its environment names another session.
    if is_own(store, named):
        return named
    return surrounding_session(store)


class _Near:
    """The locks that lie in one repository's work tree, over it, or on its git folder.

    A lock is compared by the requested path and by its key. The key has links resolved, and no letter case on a file
    system that ignores it.
    """

    def __init__(self, repository: Repository, locks: list[dict[str, Any]]):
        self.of_repository: list[dict[str, Any]] = []
        self.over: list[dict[str, Any]] = []
        self.inside: list[tuple[bool, str, dict[str, Any]]] = []  # letter case is ignored, path in the work tree
        self.patterns: list[tuple[dict[str, Any], str, str]] = []  # a lock, the key of its `base`, its stored key
        self.top = repository.top
        whole = _whole(repository)
        for lock in locks:
            if lock.get("pattern"):
                reach = reach_in({**lock, "path_key": None})
                if reach is not None and reach.key is not None:
                    folder, top = reach.key[len(GLOB) :], self.top
                    if folder.startswith(NO_CASE):
                        folder, top = folder[len(NO_CASE) :], folded(top)
                    if contains(folder, top) or contains(top, folder):
                        self.patterns.append((lock, reach.base, reach.key))
                continue
            for name in dict.fromkeys((os.path.normpath(lock["file"]), key_of(lock["file"]))):
                self._take(lock, name, repository.top, whole)

    def meeting(self, files: list[str]) -> list[Refusal]:
        """Return the refusals of `files` (relative to the work tree) that are locked, or lie in a locked folder."""
        found: dict[str, dict[str, Any]] = {}
        for lock in self.over:
            found.update((file, lock) for file in files if file not in found)
        for ignores_case in (False, True):
            names = {folded(file) if ignores_case else file: file for file in files}
            order = sorted(names)
            for ignored, place, lock in self.inside:
                if ignored == ignores_case:
                    if place in names:
                        found.setdefault(names[place], lock)
                    at = bisect_left(order, place + "/")
                    while at < len(order) and order[at].startswith(place + "/"):
                        found.setdefault(names[order[at]], lock)
                        at += 1
        keys = {}
        if self.patterns:
            keys = {form: file for file in files for form in self._keys_of(file)}
        for lock, base, stored in self.patterns:
            for key in covered(lock["pattern"], base, stored, keys):
                found.setdefault(keys[key], lock)
        return [Refusal(file, found[file]) for file in files if file in found]

    def _keys_of(self, file: str) -> tuple[str, str]:
        key = os.path.join(self.top, file)
        return key, NO_CASE + folded(key)

    def _take(self, lock: dict[str, Any], name: str, top: str, whole: set[str]) -> None:
        ignores_case = name.startswith(NO_CASE)
        if ignores_case:
            name, top, whole = name[len(NO_CASE) :], folded(top), set(map(folded, whole))
        if name in whole:
            kind = self.of_repository
        elif contains(name, top):
            kind = self.over
        elif contains(top, name):
            place = (ignores_case, name[len(top) + 1 :], lock)
            if place not in self.inside:
                self.inside.append(place)
            return
        else:
            return
        if lock not in kind:
            kind.append(lock)


def piped() -> TextIO | None:
    """Return standard input if git or a script of ours gives one, or None at a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        return None
    return sys.stdin
