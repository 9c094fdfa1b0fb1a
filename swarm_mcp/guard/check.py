"""The check of a commit or a push: its files, and the locks and uncommitted changes of other live sessions."""

from __future__ import annotations

import os
import sys
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple, TextIO

from swarm_hook_core import coordinator, process, repository, state
from swarm_hook_core.clock import Budget
from swarm_hook_core.environment import identity
from swarm_hook_core.lookup import GLOB, runs_inside
from swarm_hook_core.lookup.sqlite import covered
from swarm_hook_core.paths import NO_CASE, above, contains, key_of, keys_for
from swarm_hook_core.settings import is_silent
from swarm_hook_core.state import store_path
from swarm_hook_core.traces import OFF, TURN, level
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.traces.trail import OnlookersTrail
from swarm_hook_core.untrusted_text import same_circle, token
from swarm_hook_core.wildcards import folded
from swarm_mcp.domain import Lapse, Session, is_mutex
from swarm_mcp.errors import SwarmError, UnknownInstance
from swarm_mcp.folders import current_scope, scope_of
from swarm_mcp.installation import coordinator_command
from swarm_mcp.sessions.acting import is_own, session_named, surrounding_session
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import reach_in
from swarm_mcp.store.refusals import MOST_NAMED, Attempt

# The guard's questions to git: the place of a repository, and the files of a commit or a push.

GIT_SECONDS = 3.0
MOST_COMMITS = 1000  # of one push that are looked through

_NOTHING = "0" * 40


class Repository:
    """The repository around `folder`, as git sees it from there.

    top     the work tree, links resolved
    own     its git folder; `common`: the one it shares with its other work trees
    """

    def __init__(self, folder: str):
        self.folder = folder
        # One question each: a folder's name may have newlines itself.
        self.top, self.own, common = (
            self.ask("rev-parse", name).removesuffix("\n")
            for name in ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
        )
        self.common = os.path.realpath(os.path.join(folder, common))

    def ask(self, *words: str, wrong: str | None = None) -> str:
        """Return the output of ``git <words>``. If git fails, return `wrong`, or raise SwarmError if that is None."""
        done = repository.ask(words, self.folder, GIT_SECONDS)
        if done.code == 0:
            return str(done.stdout)
        if wrong is not None and done.code is not None:
            return wrong
        raise SwarmError(f"git {words[0]}: {done.stderr.strip() or 'failed'}")

    def text(self, *words: str) -> str:
        """`ask` without the newline at its end; empty where git fails or prints nothing."""
        return self.ask(*words, wrong="").removesuffix("\n")

    def staged(self) -> list[str]:
        """The files that a commit would change, remove or add, relative to the work tree."""
        return _printed_names(
            self.ask("diff", "--cached", "--name-only", "-z", "--no-renames", *repository.NO_PROGRAMS)
        )

    def pushed(self, lines: list[str], remote: str) -> list[str]:
        """Return the files of all commits that a push would carry.

        `lines` as git gives them to pre-push: local ref, local commit, remote ref, remote commit. Commits that any
        branch of the remote was last seen to hold are not carried again.
        """
        found: dict[str, None] = {}
        known = ""
        if remote:
            known = self.text("for-each-ref", "--count=1", f"refs/remotes/{remote}/")
        without = ["--not", f"--remotes={remote}" if known else "--remotes"]
        for line in lines:
            words = line.rsplit(" ", 3)  # the local one may be any revision, with blanks in it
            if len(words) != 4 or not words[1].strip("0"):
                continue  # a branch is removed there: no commit goes anywhere
            there = words[3].strip("0") and self.ask("cat-file", "-e", words[3], wrong="missing") == ""
            base = []
            if there:
                base = [f"^{words[3]}"]
            found.update(dict.fromkeys(_printed_names(self.ask(*_LOG, words[1], *base, *without, "--"))))
        return list(found)


_LOG = (
    "log", "--format=", "--name-only", "-z", "-c", "--no-renames", *repository.NO_PROGRAMS,
    f"--max-count={MOST_COMMITS}",
)  # fmt: skip


def pushes(text: str, environment: Mapping[str, str]) -> list[str]:
    """Return the lines of pre-push's standard input `text`, or the same from variables of the pre-commit framework."""
    lines = [line for line in text.split("\n") if line]
    here = environment.get("PRE_COMMIT_TO_REF") or environment.get("PRE_COMMIT_LOCAL_BRANCH")
    if not lines and here:
        lines = [f"refs/local {here} refs/remote {environment.get('PRE_COMMIT_FROM_REF') or _NOTHING}"]
    return lines


def _printed_names(printed: str) -> list[str]:
    return [name for name in printed.split("\0") if name]


HOOKS = ("pre-commit", "pre-push")
AFTER_COMMITS = ("post-commit", "post-rewrite")  # hooks that record the authors of a commit
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


# Uncommitted changes of other live sessions that a commit would include.

SECONDS = 0.5  # of processor time, to read commands of others
PREFIX = "MCP"  # of variables that are about no client


class Changes(NamedTuple):
    """Changes of other sessions to the staged files (`traces`), and True if the level in force refuses the commit.

    `top`: the work tree. `identity`: the identity of the session that reads the words.
    """

    traces: list[Trace]
    refused: bool
    top: str
    identity: str


def changed_by_others(folder: str, who: str = "") -> Changes:
    """Return the changes of others in the commit in `folder`, for the session `who` as in ``check.refusals``.

    Later writes by the committer's own session make a file its own. Raises SwarmError.
    """
    chosen = level(PREFIX, folder)
    nothing = Changes([], False, folder, "")
    if chosen == OFF or not os.path.isfile(store_path()):
        return nothing
    me_is_nobody = SimpleNamespace(runtime=None, session_id=None, label=None)
    repository = Repository(folder)
    with Store(read_only=True, busy_seconds=BUSY_SECONDS) as store:
        me = committer(store, who) or me_is_nobody
        session = me.runtime or "", me.session_id or ""
        trail = OnlookersTrail("guard", "pre-commit", repository.top, chosen, *session)
        if trail.is_alone():
            return nothing
        meetings = Meetings(trail, store.as_hooks_read_it(), time.time(), Budget(SECONDS))
        staged = {os.path.join(repository.top, file) for file in repository.staged()}
        traces = [trace for trace in meetings.fresh_below(repository.top) if trace.path in staged]
        traces = [trace for trace in traces if not meetings.went_on_with(trace)]
    if me is not me_is_nobody:
        viewer = token(me.label or "", "identity")
    else:
        viewer = identity(PREFIX)
    return Changes(traces, bool(traces) and chosen == TURN, repository.top, viewer)


# The record of a commit or push that the guard has refused, or warned of: one event for people.


def record(hook: str, folder: str, who: str, found: list[Refusal], changes: Changes | None) -> None:
    """Have the refusal of a commit or push written down, or the notice about it. Raises nothing.

    A command in the background does it: the guard has little time before git goes on without its answer.

    hook     of ``check.HOOKS``
    folder   of the commit
    who      names the committing session, as in ``check.refusals``
    found    locked files, and `changes`: changes of other sessions to staged files
    """
    made = _of_locks(hook, folder, found) if found else _of_changes(folder, changes)
    if made is None:
        return
    file, holder_id, attempt = made
    try:
        with Store(read_only=True, busy_seconds=BUSY_SECONDS) as store:
            me = committer(store, who)
        words = ["--runtime", "git", "--session-id", me.id if me else "-", "--scope", scope_of(folder)]
        process.start_detached(
            [
                *(coordinator.command() or coordinator_command()),
                "denied",
                *words,
                *_options(holder_id, attempt),
                "--",
                file,
            ]
        )
    except (SwarmError, OSError) as error:  # the commit itself is judged
        state.record("guard", hook, state.describe(error))


def _options(holder_id: str, attempt: Attempt) -> list[str]:
    facts = {
        "--holder": holder_id, "--tool": attempt.tool, "--why": attempt.why, "--deed": attempt.deed,
        "--command": attempt.command, "--changed": str(attempt.changed_at or ""),
    }  # fmt: skip
    words = [f"{flag}={value}" for flag, value in facts.items() if value]
    return [*words, *(f"--also={path}" for path in attempt.also), *["--notice"] * attempt.is_notice]


def _of_locks(hook: str, folder: str, found: list[Refusal]) -> tuple[str, str, Attempt]:
    lock, why = found[0].lock, "lock"
    if lock.get("lapsed"):
        why = "lapsed"
    paths = [os.path.join(folder, one.file or ".git") for one in found[: MOST_NAMED + 1]]
    attempt = Attempt(_command(hook), paths[0], folder, why=why, deed="commit", also=tuple(paths[1:]))
    return paths[0], str(lock["instance_id"] or ""), attempt


def _of_changes(folder: str, changes: Changes | None) -> tuple[str, str, Attempt] | None:
    if changes is None or not changes.traces:
        return None
    first, by = changes.traces[0], _command("pre-commit")
    also = tuple(trace.path for trace in changes.traces[1 : MOST_NAMED + 1])
    attempt = Attempt(
        by, first.path, folder, why="sweep", deed="commit", command=by, changed_at=int(first.at_ns / 1e9),
        also=also, is_notice=not changes.refused,
    )  # fmt: skip
    return first.path, first.held.instance_id, attempt


def _command(hook: str) -> str:
    return f"git {hook.removeprefix('pre-')}"
