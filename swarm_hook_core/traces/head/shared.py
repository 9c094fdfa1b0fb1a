"""The decision about a command that moves HEAD, or uses it, beside other live sessions in the same work tree.

Asked only if there are such sessions. Each denial is made once: it is noted with the sessions, or the fact, that the
session was told of.
"""

from __future__ import annotations

import os
from itertools import islice

from swarm_hook_core import REMOVE
from swarm_hook_core.denial import Denial, without_owner
from swarm_hook_core.git_repository import Repository
from swarm_hook_core.lookup import Held, LockReader, Session
from swarm_hook_core.repository import Tree, tree_at, trees_beside
from swarm_hook_core.shell.model import Effects, GitCall
from swarm_hook_core.shell.programs.git.listings import tree_of
from swarm_hook_core.shell.programs.git.touched_files import without_aliases
from swarm_hook_core.traces import NOTICE
from swarm_hook_core.traces import head as heads
from swarm_hook_core.traces.head import UNKNOWN, Head, Note, movement, news
from swarm_hook_core.traces.head.movement import Movement, movement_of
from swarm_hook_core.traces.head.news import is_settled, words_of
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.trail import Trail

ALIAS_SECONDS = 0.5  # for git's answer about aliases
FRESH_SECONDS = 600  # age of a lock file that a git command may still hold
MOST_FOLDERS = 1000  # of refs that are searched for locks
_SHARED_LOCKS = ("config.lock", "packed-refs.lock", "shallow.lock")
_COMMITS = ("commit", "cherry-pick", "revert")  # after these, the session does not know the commit
_GOES_ON = ("am", "merge", "rebase", "pull", "bisect")  # nor after these the branch, even if they only continue
MOST_CALLS = 50  # git commands of one call
_MOVED_TO = {"amend": "HEAD~1", "rebase": "", "merge": "", "pull": "", "move-branch": ""}  # others: to their target


class Shared:
    """The check of one call. `others`: a result of ``head.neighbours``."""

    def __init__(
        self, session: Session, trail: Trail, effects: Effects, others: dict[str, list[Held]], reader: LockReader,
        now: float,
    ):  # fmt: skip
        self.session = session
        self.trail = trail
        self.call = trail.call
        self.runtime = trail.config.runtime_name
        self.effects = effects
        self.others = others
        self.reader = reader
        self.now = now
        self.denies = trail.level != NOTICE
        self._moved: dict[str, str] = {}  # work tree -> commit that an earlier command moves HEAD to, or ""
        self._to_note: dict[str, tuple[Head, set[str]]] = {}  # top -> its note, once the call may go ahead
        self._moves: dict[str, tuple[str, Head]] = {}  # top -> deed and HEAD before it

    def verdict(self) -> tuple[Denial | None, str]:
        """Return ``(Denial or None, words for the model)``; note the facts that the session was told."""
        lines: list[str] = []
        for git_call in self.effects.git[:MOST_CALLS]:
            denial, line = self._of(git_call)
            if denial is not None:
                denial.loss = without_owner("head", "change", git_call.by)
                return denial, ""
            lines.append(line)
        denial, line = self._lock_removed()
        if denial is not None:
            denial.loss = without_owner("head", "change")
            return denial, ""
        lines.append(line)
        # Note the moves of a call that goes ahead, and the HEAD that its session knows
        if not self.trail.is_asked:
            for top, (deed, head) in self._moves.items():
                heads.note_move(self.runtime, self.call.session_id, top, deed, head)
                self.trail.note_at(top, "moved", deed)  # with a journal here, the others' calls look for it
            for top, (head, told) in self._to_note.items():
                self._note(top, head, told)
        return None, "\n".join(dict.fromkeys(filter(None, lines)))

    def _top_of(self, git_call: GitCall) -> str | None:
        """Return the top of the work tree whose HEAD the command is about: another one by ``update-ref``."""
        top = tree_of(git_call)
        tree = tree_at(top, is_real=True) if top and git_call.words[0] == "update-ref" else None
        if tree is None:
            return top
        for other in set(trees_beside(tree)).intersection(self.others):
            head = heads.read(other)
            if head is not None and head.branch and f"{movement.BRANCHES}{head.branch}" in git_call.words:
                return other
        return top

    def _of(self, git_call: GitCall) -> tuple[Denial | None, str]:
        top = self._top_of(git_call)
        if top is None or not self.others.get(top):
            return None, ""
        words, head = without_aliases(git_call, ALIAS_SECONDS), heads.read(top)
        if not words or head is None:
            return None, ""
        note = heads.noted(self.runtime, self.call.session_id, top) or Note(head, 0, set())
        told = self._to_note.get(top, (head, note.told))[1]
        fact = ""
        if top not in self._moved:
            fact = words_of(self.runtime, self.call.session_id, self.session, top, note, head, self.reader, self.now)
        if fact and words[0] == "commit" and note.head.is_elsewhere(head) and not git_call.in_doubt:
            text = news.commits_elsewhere(self.call.client_tool, git_call.by, fact, head)
            return self._once(top, head, told, "", text, fact)
        if words[0] == "commit" and (index := self._stale_index(git_call, top)):
            text = news.stale_index(self.call.client_tool, git_call.by, index[0], head)
            denial, line = self._once(top, head, told, index[1], text, "")
            if denial is not None:
                return denial, ""
            fact = "\n".join(filter(None, (fact, line)))
            told = self._to_note.get(top, (head, told))[1]
        if words[0] == "push":
            denial, line = self._push(git_call, words, top, head, told, fact)
            if denial is not None or line != fact:
                return denial, line
        if note.head != head or not note.at_ns or is_settled(top, self.now):
            self._to_note[top] = head, told
        moved = movement_of(git_call, words, top, head)
        if moved is None:
            if words[0] in _COMMITS:
                self._to_note[top] = Head(head.branch, ""), told
            elif words[0] in _GOES_ON:
                self._to_note[top] = Head(UNKNOWN, ""), told
            return None, fact
        return self._movement(git_call, words, moved, top, head, told, fact)

    def _movement(
        self, git_call: GitCall, words: list[str], moved: Movement, top: str, head: Head, told: set[str], fact: str
    ) -> tuple[Denial | None, str]:
        """Judge a command that moves HEAD: denied until the session was told of all sessions there."""
        others = self._with_purposes(self.others[top])
        is_told = {one.instance_id for one in others} <= told or top in self._moved
        label, lost = self.session.label, self._lost(git_call, words, moved, top, head)
        fact_lost = f"lost:{head.commit}:{moved.deed}"
        if lost and fact_lost not in told:
            is_told = False
        if not is_told and self.denies and not git_call.in_doubt:
            is_here = top == heads.top_of(self.call.folder)
            text = news.would_move(self.call.client_tool, git_call.by, moved, head, others, label, top, is_here)
            text += news.lost(lost, top)
            told = told | {one.instance_id for one in others} | ({fact_lost} if lost else set())
            self._note(top, head, told)
            return Denial(top, None, "\n".join(filter(None, (text, fact)))), ""
        self._moved[top] = _MOVED_TO.get(moved.deed, moved.target)
        self._moves[top] = moved.deed, head
        self._to_note[top] = Head(UNKNOWN, ""), told | {one.instance_id for one in others}
        if is_told:
            return None, fact
        return None, "\n".join(filter(None, (fact, news.moves(git_call.by, moved, others, label))))

    def _lost(
        self, git_call: GitCall, words: list[str], moved: Movement, top: str, head: Head
    ) -> list[movement.Commit] | None:
        """Return the commits of others that no ref has after the command (``movement.left_behind``)."""
        if git_call.in_doubt or top in self._moved or not self.denies:
            return []
        return self._not_own(movement.left_behind(words, moved, top, head), top)

    def _not_own(self, commits: list[movement.Commit] | None, top: str) -> list[movement.Commit] | None:
        """Return those of the commits that the session has not made."""
        if not commits:
            return commits
        journals, place = Meetings(self.trail, self.reader, self.now).journals, self.trail.place_of(top)
        theirs = [other.data for other in journals.of_others(place) if other.writer is not None]
        return movement.not_own(commits, journals.of_session(place), theirs)

    def _push(
        self, git_call: GitCall, words: list[str], top: str, head: Head, told: set[str], fact: str
    ) -> tuple[Denial | None, str]:
        """Judge a push: one that drops commits of others is denied once. `fact`: words for a call that goes ahead."""
        if not movement.is_forced(words):
            return None, fact
        repository = Repository(top, movement.SECONDS, git_call.top, git_call.environment)
        found = movement.dropped_by(words, repository, head, self._moved.get(top, ""))
        for dropped in found:
            one = dropped._replace(commits=self._not_own(dropped.commits, top))
            if one.commits == []:
                continue
            others = self._with_purposes(self.others[top])
            text = news.drops_commits(self.call.client_tool, git_call.by, one, others, self.session.label)
            if git_call.in_doubt:
                return None, fact or text
            denial, line = self._once(top, head, told, f"push:{one.branch}:{one.tip}", text, fact)
            if denial is not None or line != fact:
                return denial, line
        return None, fact

    def _once(self, top: str, head: Head, told: set[str], fact: str, text: str, more: str) -> tuple[Denial | None, str]:
        """Return a Denial with this `text`, unless the session was told of this `fact`, or the level is `notice`.

        `more`: words for a call that goes ahead. An empty fact is that of the present HEAD.
        """
        if fact in told:
            return None, more
        told = (told | {fact}) - {""}
        if not self.denies:
            self._to_note[top] = self._to_note.get(top, (head, told))[0], told
            return None, more or news.of_passing(text)
        self._note(top, head, told)
        return Denial(top, None, text), ""

    def _stale_index(self, git_call: GitCall, top: str) -> tuple[str, str] | None:
        """Return ``(path, fact)`` of the private index of a commit, if HEAD has moved since it was written."""
        named = git_call.environment.get("GIT_INDEX_FILE") or os.environ.get("GIT_INDEX_FILE")
        tree = tree_at(top, is_real=True)
        if not named or tree is None or "\0" in named or top in self._moved:
            return None
        if any(one.words[:1] in (["read-tree"], ["reset"]) for one in self.effects.git):
            return None  # it is filled anew by this call
        path = os.path.join(top, named)
        try:
            written_ns = os.stat(path).st_mtime_ns
            moved_ns = os.stat(os.path.join(tree.own, "logs", "HEAD")).st_mtime_ns
        except OSError:
            return None  # a new index, or a repository without a log
        if path == os.path.join(tree.own, "index") or written_ns >= moved_ns:
            return None
        return path, f"index:{written_ns}"

    def _lock_removed(self) -> tuple[Denial | None, str]:
        """Judge a call that removes a lock of git's while a git command may hold it. Return as `_of`."""
        for top in self.others:
            tree = tree_at(top, is_real=True)
            for path in git_locks(tree) if tree is not None else ():
                try:
                    made_ns = os.lstat(path).st_mtime_ns
                except OSError:
                    continue  # git has removed it meanwhile
                by = self._removes(path)
                age, pid = self.now - made_ns / 1e9, 0
                if not by or (age > FRESH_SECONDS and not (pid := running_git(top))):
                    continue
                head = heads.read(top) or Head("", "")
                note = heads.noted(self.runtime, self.call.session_id, top) or Note(head, 0, set())
                told = self._to_note.get(top, (head, note.told))[1]
                text = news.removes_lock(self.call.client_tool, by, path, age, pid or running_git(top))
                return self._once(top, head, told, f"lock:{made_ns}", text, "")
        return None, ""

    def _removes(self, path: str) -> str:
        """Return the part of the command that removes the file at `path`, or an empty text."""
        for write in self.effects.writes:
            if write.how == REMOVE and os.path.realpath(os.path.join(write.folder, write.path)) == path:
                return write.by
        for tree in self.effects.trees:
            if tree.how == REMOVE and path.startswith(tree.root.rstrip("/") + "/") and tree.admits(path):
                return tree.by
        return ""

    def _with_purposes(self, others: list[Held]) -> list[Held]:
        for one in others[: news.NAMED]:
            one.note = one.note or self.reader.purpose_of(one.instance_id)
        return others

    def _note(self, top: str, head: Head, told: set[str]) -> None:
        if not self.trail.is_asked:
            heads.note(self.runtime, self.call.session_id, top, head, told)


def git_locks(tree: Tree) -> list[str]:
    """Return git's lock files of a work tree: those of its index and HEAD, and of settings and refs of all trees."""
    own = [os.path.join(tree.own, name) for name in heads.names_in(tree.own)]
    found = [*own, *(os.path.join(tree.common, name) for name in _SHARED_LOCKS)]
    for folder, _folders, names in islice(os.walk(os.path.join(tree.common, "refs")), MOST_FOLDERS):
        found += [os.path.join(folder, name) for name in names]
    return [path for path in dict.fromkeys(found) if path.endswith(".lock") and os.path.lexists(path)]


def running_git(top: str) -> int:
    """Return the pid of a git process that runs in the work tree `top`, or 0. Only where the system lists them."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return 0  # no such list
    for pid in pids:
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
                is_git = file.read(64).strip() == "git"
            if is_git and (os.readlink(f"/proc/{pid}/cwd") + "/").startswith(top.rstrip("/") + "/"):
                return pid
        except OSError:
            continue  # ended meanwhile, or another user's
    return 0
