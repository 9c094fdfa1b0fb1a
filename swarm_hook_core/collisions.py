"""A call beside the locks of other sessions: the files that it names, and the effects of a call that names none.

Loaded only if another session has a lock at all. Words, and readers of commands, are loaded once a lock is met.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from swarm_hook_core import state
from swarm_hook_core.config import SHELL_TOOLS
from swarm_hook_core.hooks import Verdict
from swarm_hook_core.lookup import Held, Peers, Session
from swarm_hook_core.paths import NO_CASE, above, all_keys, below, git_root, keys_for, moved_places, real_paths
from swarm_hook_core.untrusted_text import token
from swarm_hook_core.wildcards import folded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.check import Writes
    from swarm_hook_core.config import RuntimeConfig
    from swarm_hook_core.denial import Denial
    from swarm_hook_core.hooks import ToolCall
    from swarm_hook_core.shell.model import Effects, GitCall, Tree
    from swarm_hook_core.wildcards import Cover

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


# The choice among very many files of one call: one question for a folder answers for most files in it.

FEW = 8  # files of one folder that are asked about one by one
ENTRIES_A_FILE = 4  # names in a folder that are looked at for links, for each file that is written there


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
                    if seen > ENTRIES_A_FILE * files:
                        return None
                    if entry.is_symlink():
                        links.add(entry.name.casefold())
        except (FileNotFoundError, NotADirectoryError):  # there are no links in it yet
            continue
        except (OSError, ValueError):  # closed to us: not known
            return None
    return locked | links


# The effects of a call that does not name its files.

Collision = tuple[str, Held, str, bool]  # path, lock, part of the command, True if a folder over the path is locked

GIT_SECONDS = 0.5  # for all git commands of a call together
TREE_SECONDS = 0.3  # for going through folders with locked patterns, all of a call's together
FEW_LOCKS = 10  # beside more of them git is asked first for the files that it touches
FIRST_LOCKS = 50  # that are looked at before the others: with many of them mostly one of the first is met
FEW_GIT_CALLS = 4  # the first git commands of a call are looked at however late it is
MOST_PLACES = 8  # in which guesses are looked up; others count as anywhere
MOST_LOCKS = 2000  # below one folder that are looked at; with more of them something may always be met
MOST_FILES = 300  # of a locked folder that are looked at one by one


def judge_call(
    config: RuntimeConfig,
    session: Session,
    call: ToolCall,
    effects: Effects,
    peers: Peers,
    now: float,
    with_kernel: bool = True,
) -> Verdict:
    """Return the Verdict on a call with these Effects beside the locks of others.

    An unreadable command may run in spite of a strict setting, if the kernel holds all locked files meanwhile.
    """
    from swarm_hook_core import settings

    is_strict = settings.strict(config.env_prefix, call.folder)
    if with_kernel and config.kernel and call.tool in SHELL_TOOLS and settings.kernel(config.env_prefix, call.folder):
        verdict = judge(session, call.client_tool, effects, call.folder, peers, now)
        if verdict.denial is None and verdict.watched:
            try:
                from swarm_hook_core.kernel.planning import plan_of

                verdict.plan = plan_of(config, call, session, effects, peers, is_strict)
            except Exception as error:  # the call is judged as if the kernel could hold nothing
                state.record(config.runtime_name, "kernel", error)
                verdict.plan = None
        if verdict.plan is not None:
            if verdict.notice:
                verdict.notice += " The kernel keeps them read-only for this call."
            return verdict
        if not is_strict:
            return verdict
    return judge(session, call.client_tool, effects, call.folder, peers, now, is_strict)


def concerns(call: ToolCall, session: Session, peers: Peers) -> bool:
    """Return True if the call could reach any lock: one around its folder, or any place that a command may lead to."""
    from swarm_hook_core.opaque_calls import shell_text

    command = shell_text(call.tool, call.input)
    if call.is_cut or not command or any(mark in command for mark in ("/", "~", "$", "..", "cd", "`", "pushd")):
        return True
    roots = all_keys(session, git_root(call.folder), "/")
    return bool(peers.under(roots, 1) or peers.over(roots) or peers.patterns(roots))


def judge(
    session: Session, tool: str, effects: Effects, cwd: str, peers: Peers, now: float, strict: bool = False
) -> Verdict:
    """Return the Verdict on `effects` of a call of `tool` in folder `cwd`. Changes nothing.

    A certain collision denies. A possible one denies only if `strict`; otherwise the call goes ahead with a notice, and
    the files are watched.
    """
    meeting = _Meeting(session, effects, peers)
    certain = meeting.certain()
    if certain is not None:
        return _denied(session, tool, effects, cwd, peers, now, certain)
    locks, why = meeting.near(cwd)
    if locks:
        return _possible(session, tool, locks, why, strict)
    if effects.runs:
        return Verdict(None, "", meeting.around(cwd))
    return Verdict()


def _denied(
    session: Session, tool: str, effects: Effects, cwd: str, peers: Peers, now: float, collision: Collision
) -> Verdict:
    from swarm_hook_core.denial import Denial
    from swarm_hook_core.wording import reason, way_past_hooks

    path, lock, by, within = collision
    identity, waiting = token(session.label, "identity"), peers.waiting_for(path)
    words = reason(tool, path, lock, identity, now, by, within, session.instance_id, waiting, cwd)
    aside = next((call.aside for call in effects.git if call.aside and call.by == by), "")
    if aside:
        words += " " + way_past_hooks(aside)
    return Verdict(Denial(path, lock, words))


def _possible(session: Session, tool: str, locks: list[Held], why: str, strict: bool) -> Verdict:
    """Return the Verdict on a call that may write a file under one of `locks`: `why` that is not known."""
    from swarm_hook_core.denial import Denial, Loss, Notice
    from swarm_hook_core.wording import are_near, may_write

    first, identity, own_id = locks[0], token(session.label, "identity"), session.instance_id
    if strict:
        return Verdict(Denial(first.file, first, may_write(tool, why, first, identity, own_id), certain=False))
    verdict = Verdict(None, are_near(why, locks, identity, own_id), locks)
    by = why[1:].partition("`")[0] if why.startswith("`") else ""
    loss = Loss("possible", first, "write", by, also=[one.file for one in locks[1:]])
    verdict.noted = [Notice(first.file, loss, verdict.notice)]
    return verdict


class _Meeting:
    """The effects of one call beside the locks of others. `certain` is asked before `near`.

    Effects that there is no time to look at become guesses of the call.
    """

    def __init__(self, session: Session, effects: Effects, peers: Peers):
        self.session = session
        self.effects = effects
        self.peers = peers
        self._last = effects.budget.part()  # in this thread's processor time
        self._possible: list[tuple[Held, str]] = []  # locks that the call may run into, each with the reason
        self._nearby: dict[tuple[tuple[str, ...], int], tuple[list[Held], bool]] = {}  # (folders, limit) -> locks there

    def certain(self) -> Collision | None:
        """Return the first certain collision. The possible ones before it are kept for `near`."""
        try:
            return self._with_files() or self._with_trees() or self._with_git()
        except _OutOfTime:
            return None  # a guess stands for the rest

    def near(self, cwd: str) -> tuple[list[Held], str]:
        """Return the locks that the call may run into, and the reason for the first; `cwd`: the call's folder."""
        why = next((why for _lock, why in self._possible), "")
        near = {lock.mark: lock for lock, _why in self._possible}
        roots: dict[str, str] = {}  # many guesses are about one folder
        looked_up: dict[str, list[Held]] = {}
        for guess in self.effects.guesses:
            folder = guess.folder or cwd
            if folder not in roots:
                roots[folder] = git_root(folder) if len(looked_up) < MOST_PLACES else "/"
            root = roots[folder]
            if root not in looked_up:
                looked_up[root] = self.around(root)
                for lock in looked_up[root]:
                    near.setdefault(lock.mark, lock)
            if looked_up[root] and not why:
                why = (guess.by and f"`{guess.by}`: ") + guess.why
        return list(near.values()), why

    def around(self, folder: str) -> list[Held]:
        """Return the locks in the work tree around `folder`, and on folders over it."""
        return self.peers.around(all_keys(self.session, git_root(folder), "/"))

    def _is_late(self, folder: str, by: str) -> bool:
        late = time.thread_time() > self._last
        if late:
            from swarm_hook_core.shell.model import Guess

            self.effects.guesses.append(Guess("more than there is time to look at", folder, by))
        return late

    def _stay_in_time(self, tree: Tree) -> None:
        if self._is_late(tree.root, tree.by):
            raise _OutOfTime

    def _with_files(self) -> Collision | None:
        """Look at the files that the call writes one by one."""
        writes = self.effects.writes

        def is_late(place: int) -> bool:
            return self._is_late(writes[place].folder, writes[place].by)

        targets = [(write.folder, write.path) for write in writes]
        collision = first_collision(self.session, targets, self.peers, is_late)
        if collision is None:
            return None
        path, lock, place, within = collision
        return path, lock, writes[place].by, within

    def _with_trees(self) -> Collision | None:
        """Look at the folders that the call writes: first for locked paths in them, then for locked patterns."""
        end = time.monotonic() + TREE_SECONDS
        for tree in self.effects.trees:
            for number, (path, lock) in enumerate(self._locked_in(tree.root), 1):
                if number % FIRST_LOCKS == 0:  # the first are looked at in any case
                    self._stay_in_time(tree)
                met = _meets(tree, path, not lock.pattern)
                if met:
                    return met, lock, tree.by, met != path
                if met is None or number == MOST_LOCKS:
                    self._possible.append((lock, f"`{tree.by}`"))
            self._stay_in_time(tree)
            keys = all_keys(self.session, tree.root, "/")
            patterns = self.peers.patterns(keys)
            if patterns:
                covered, unsure = _met_by_patterns(tree, patterns, keys, max(0.0, end - time.monotonic()))
                if covered:
                    return (*covered, tree.by, False)
                self._possible += unsure
        return None

    def _locked_in(self, root: str) -> Iterator[tuple[str, Held]]:
        """Yield ``(path as seen from root, lock)`` of each lock on `root`, below it, or on a folder over it."""
        roots = all_keys(self.session, root, "/")
        seen = set()
        for limit in (FIRST_LOCKS, MOST_LOCKS):
            locks, more = self.peers.first_under(roots, limit)
            for lock in locks:
                rest = next((rest for name in lock.names for key in roots if (rest := below(name, key))), None)
                if rest is not None and lock.mark not in seen:
                    seen.add(lock.mark)
                    yield _one_of(lock, root + rest), lock
            if not more:
                break
        for lock in self.peers.over(roots):
            if lock.mark not in seen:
                seen.add(lock.mark)
                yield root, lock

    def _with_git(self) -> Collision | None:
        """Look at the git commands of the call, each with the first locks nearby, then with the others."""
        end = time.monotonic() + GIT_SECONDS
        for number, call in enumerate(self.effects.git):
            if number >= FEW_GIT_CALLS and self._is_late(call.folder, call.by):
                return None
            for limit in (FIRST_LOCKS, MOST_LOCKS):
                touched, unsure, more = self._touched_by(call, limit, max(0.0, end - time.monotonic()))
                if touched:
                    return (*touched, call.by, False)
                if not more or (number and self._is_late(call.folder, call.by)):
                    break
            self._possible += unsure
        return None

    def _touched_by(
        self, call: GitCall, limit: int, seconds: float
    ) -> tuple[tuple[str, Held] | None, list[tuple[Held, str]], bool]:
        """Return ``((path, lock) or None, [(lock, why)], more)`` of one git command and at most `limit` locks.

        `more`: there may be other locks, and asking about them is worthwhile.
        """
        from swarm_hook_core.shell.programs.git import listings, touched_files

        top = listings.tree_of(call)
        if not top:
            return None, [], False
        found, more = self._near_git(call, top, limit, seconds)
        if not found:
            return None, [], more
        # Git knows files by their resolved names: the key, where it has not lost its letter case.
        plain = [lock for lock in found if not lock.pattern]
        locked = {next((name for name in reversed(lock.names) if name[:1] == "/"), lock.file): lock for lock in plain}
        for root in self.session.mounts:
            locked = {_moved(file, root, self.session.root): lock for file, lock in locked.items()}
        covers: list[Cover] = []
        if len(plain) < len(found):
            from swarm_hook_core.wildcards import Cover

            patterns = (Cover(lock) for lock in found if lock.pattern)
            covers = [cover for cover in patterns if cover.segments is not None]
        try:
            touch = touched_files.touched(call, list(locked), seconds, covers)
        except Exception as error:
            _fault(call.by, error)
            return None, [(lock, f"`{call.by}`") for lock in found], False
        certain = _in_repository(locked, top) if touch.changes_repository else []
        certain += [(file, locked[file]) for file in touch.certain]
        certain += [(file, cover.held) for file, cover in touch.covered]
        if certain and not call.in_doubt:
            return certain[0], [], False
        near = [lock for _file, lock in certain]
        if touch.unsure:
            near = found
        return None, [(lock, f"`{call.by}`") for lock in near], more and not touch.unsure and touch.changes_repository

    def _near_git(self, call: GitCall, top: str, limit: int, seconds: float) -> tuple[list[Held], bool]:
        """Return at most `limit` locks in the work tree `top` or over it, and True if there may be more.

        The first are looked up once for all commands; of more than a few only those that this command can mean.
        """
        from swarm_hook_core.shell.programs.git import named_files, touched_files

        if limit == FIRST_LOCKS and self._around((top,), FEW_LOCKS)[1]:
            paths = touched_files.paths_of(call, seconds)
            if paths is not None:
                return self.peers.over(self._keys([*paths, os.path.join(top, ".git")])), False
        return self._around((() if limit == FIRST_LOCKS else tuple(named_files.places(call, top))) or (top,), limit)

    def _around(self, roots: tuple[str, ...], limit: int) -> tuple[list[Held], bool]:
        if (roots, limit) not in self._nearby:
            self._nearby[roots, limit] = self.peers.first_around(self._keys(roots), limit)
        return self._nearby[roots, limit]

    def _keys(self, paths: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(key for path in paths for key in all_keys(self.session, path, "/")))


class _OutOfTime(Exception):
    """The rest of the call's effects cannot be looked at; a guess stands for them."""


def _one_of(lock: Held, path: str) -> str:
    # Keys without letter case have lost the spelling. A predicate may need it; the lock's own text has it.
    tail: str = lock.file[-len(path) :]
    if len(tail) == len(path) and tail.casefold() == path.casefold():
        return tail
    return path


def _meets(tree: Tree, path: str, whole: bool = True) -> str | None:
    """Return the path at (with `whole` also below) `path` that `tree` certainly writes; None if unsure; empty if it
    writes nothing there.
    """
    met = _admits(tree, path)
    if met:
        return path
    unsure = met is None
    if whole and os.path.isdir(path):
        for number, file in enumerate(_files_below(path)):
            if number == MOST_FILES:
                return None
            met = _admits(tree, file)
            if met:
                return file
            unsure = unsure or met is None
    if unsure:
        return None
    return ""


def _admits(tree: Tree, path: str) -> bool | None:
    """Ask `tree` about `path`. A failing predicate counts as unsure, so that the other effects are still judged."""
    try:
        return tree.admits(path)
    except Exception as error:
        _fault(tree.by, error)
        return None


def _fault(by: str, error: BaseException) -> None:
    state.record("effects", "pre_tool_use", f"`{by}`: {state.describe(error)}")


def _met_by_patterns(
    tree: Tree, patterns: list[Held], keys: list[str], seconds: float
) -> tuple[tuple[str, Held] | None, list[tuple[Held, str]]]:
    """Return ``((path, lock) or None, [(lock, why)])``: a file that `tree` certainly writes and that one of `patterns`
    covers, and the locks it may meet.

    `keys` are those of its root. A folder too large to look through in `seconds` may hold anything.
    """
    from swarm_hook_core.wildcards import ENTRIES, Cover, covered_below, start_of

    covers = [cover for cover in map(Cover, patterns) if cover.segments is not None]
    unsure: dict[int, tuple[Held, str]] = {}
    starts = [start for cover in covers if (start := start_of(cover, tree.root, keys))]
    for path, cover in covered_below(starts, seconds):
        verdict = None
        if path:
            verdict = _admits(tree, path)
        if verdict:
            return (path, cover.held), []
        if verdict is None:
            more = ""
            if not path:
                more = ": there is more in that folder than could be looked through"
            unsure[id(cover)] = (cover.held, f"`{tree.by}`{more}")
    arrives = getattr(tree.admits, "arrives", None)
    for number, path in enumerate(arrives() if arrives else ()):
        if number == ENTRIES:
            unsure.update({id(cover): (cover.held, f"`{tree.by}`: it brings very many files") for cover in covers})
            break
        rest = path[len(tree.root) :]
        for cover in covers:
            verdict = any(cover.has(_joined(key, rest)) for key in keys) and _admits(tree, path)
            if verdict:
                return (path, cover.held), []
            if verdict is None:
                unsure.setdefault(id(cover), (cover.held, f"`{tree.by}`"))
    return None, list(unsure.values())


def _joined(key: str, rest: str) -> str:
    if key.startswith(NO_CASE):
        rest = folded(rest)
    return key + rest


def _files_below(folder: str) -> Iterator[str]:
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        yield entry.path
        except OSError:  # gone or unreadable: it holds no file to ask about
            continue


def _in_repository(locked: dict[str, Held], top: str) -> list[tuple[str, Held]]:
    """Return the locks on the ``.git`` folder of the work tree `top`, with their files."""
    repository = keys_for(os.path.join(top, ".git"), "/")
    return [(file, lock) for file, lock in locked.items() if any(name in repository for name in lock.names)]


def _moved(file: str, old: str, new: str) -> str:
    """Return `file` as it is called in the folder `new`, if it is in `old`."""
    rest = below(file, old)
    if rest is None:
        return file
    return new + rest
