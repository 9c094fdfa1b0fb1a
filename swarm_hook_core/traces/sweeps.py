"""Git commands that would discard, stage or commit other sessions' uncommitted changes.

Commands that git itself would refuse are let pass (``shell/programs/git/uncommitted``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection

from swarm_hook_core.denial import Denial, Loss, Notice
from swarm_hook_core.git_repository import NoAnswer, Repository
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.labels import token
from swarm_hook_core.lookup import Session
from swarm_hook_core.shell.model import Effects, GitCall
from swarm_hook_core.shell.programs.git import by_words, commit_hooks, touched_files, uncommitted
from swarm_hook_core.shell.programs.git.command_line import tree_of, work_tree
from swarm_hook_core.shell.programs.git.table import asks, only_reads, options_of
from swarm_hook_core.traces import NOTICE, TOLD_ALONG, TURN, journal, narrow_forms, stash_entries, sweep_wording
from swarm_hook_core.traces.clearing import SECONDS, deed_of
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.others import Trace
from swarm_hook_core.traces.shared_files import Patience, SharedFiles, also_in, has_lines_of
from swarm_hook_core.traces.trail import Trail
from swarm_hook_core.wording import way_past_hooks

MOST_CALLS = 50  # git commands of one call


def judge(
    session: Session, call: ToolCall, effects: Effects, meetings: Meetings, trail: Trail, now: float
) -> tuple[Denial | None, str]:
    """Return ``(Denial or None, words for the model)`` for the git commands of a call; entries go to `trail`."""
    writes_too = bool(effects.writes or effects.trees or effects.guesses)
    sweeps = Sweeps(session, call, meetings, trail, now, writes_too)
    lines = []
    for git_call in effects.git[:MOST_CALLS]:
        try:
            denial, line = sweeps.of(git_call)
        except NoAnswer:
            denial, line = sweeps.of_late(git_call)
        if denial is not None:
            return denial, ""
        lines.append(line)
    for folder in sweeps.stashed_in:
        trail.note_at(folder, "stash")
    for top, name in sweeps.put_aside.items():
        trail.note_at(top, "aside", name)
    return None, "\n".join(filter(None, lines))


class Sweeps:
    """The git commands of one call, in their order. `writes_too`: the call also writes files by other means.

    `stashed_in`: folders with a stash by an earlier command; `put_aside`: work tree -> name of the hook manager that
    puts changes aside there during a command.
    """

    def __init__(
        self, session: Session, call: ToolCall, meetings: Meetings, trail: Trail, now: float, writes_too: bool
    ):
        self.call = call
        self.meetings = meetings
        self.level = trail.level
        self._trail = trail
        self.now = now
        self.identity = token(session.label, "identity")
        self.stashed_in: list[str] = []
        self.put_aside: dict[str, str] = {}
        self._has_begun = writes_too  # True if the files may differ by now from those on disk
        self._end = time.monotonic() + SECONDS
        self._patience: Patience | None = None
        self._fresh: dict[str, list[Trace]] = {}  # file or folder -> others' fresh traces at and below it
        self._near: list[Trace] = []  # traces that the present command may affect
        self._words: list[str] = []  # the present command, aliases expanded
        self._staged: dict[str, Trace] = {}  # path -> trace, staged by an earlier command of the call
        self._committed: dict[str, Trace] = {}  # path -> trace, committed by an earlier one

    def of(self, git_call: GitCall) -> tuple[Denial | None, str]:
        """Return ``(Denial or None, line for the model)`` for the next command. Raises NoAnswer if git is too slow."""
        self._near, self._words = [], []
        words = touched_files.without_aliases(git_call, self.left())
        if not words or only_reads(words) or not (asks(words) or words[0] == "worktree"):
            return None, ""
        is_first, self._has_begun = not self._has_begun, True
        self._words = words
        if words[0] == "stash" and stash_entries.verb_of(words) not in ("push", "save"):
            return None, ""  # it takes entries out (``stash``)
        lost, taken = self._met(git_call)
        if words[0] == "commit":
            # staged by this call: they go into the commit
            lost = [trace for trace in lost if trace.path not in self._staged]
            git_call.aside = git_call.aside or self._hooks_of(git_call, words, "pre-commit")
        elif words[0] == "push":
            git_call.aside = git_call.aside or self._hooks_of(git_call, words, "pre-push")
        if git_call.aside:
            lost += self.meetings.pending_below(tree_of(git_call) or git_call.folder)
        # Checked last: this searches the whole work tree, and in a large one would use up the time of the other
        # questions.
        elif words[0] == "stash" and not lost and stash_entries.puts_aside(git_call, words, self.left(), is_first):
            self.stashed_in.append(git_call.folder)
        # those were reported with the command that staged them
        taken = [trace for trace in taken if trace.path not in self._staged]
        self._go_on(words, taken)
        if git_call.aside and not git_call.in_doubt and (not lost or self.level == NOTICE):
            self.put_aside[tree_of(git_call) or git_call.folder] = git_call.aside
        if lost:
            deed = "put aside" if git_call.aside else deed_of(words)
            return self._outcome(git_call, words, lost, deed, self.level != NOTICE)
        self.patience().prepare(trace.path for trace in taken if went_on_with(self.meetings, trace))
        taken = [
            trace
            for trace in taken
            if not went_on_with(self.meetings, trace) or has_lines_of_others(trace, self.patience())
        ]
        if not taken:
            return None, ""
        always = self.level == TURN and not all(went_on_with(self.meetings, trace) for trace in taken)
        deed = deed_of(words)
        may_once = not always and self.level != NOTICE and deed in ("stage", "commit") and not git_call.in_doubt
        is_once = may_once and not self._was_told(taken)
        return self._outcome(git_call, words, taken, deed, always or is_once, is_once=is_once)

    def _was_told(self, taken: list[Trace]) -> bool:
        """Return True if this session was told that these changes would go along. Note that it is told now."""
        untold = []
        for trace in taken:
            own = journal.newest(self.meetings.journals.own(os.path.dirname(trace.path)), trace.path, (TOLD_ALONG,))
            if own is None or own.at_ns < trace.at_ns:
                untold.append(trace.path)
        for path in untold:
            self._trail.note(TOLD_ALONG, path)
        return not untold

    def of_late(self, git_call: GitCall) -> tuple[Denial | None, str]:
        """Return the same as `of`, after git was too slow: decide by the command's words and the others' traces.

        If the words do not say that the command means one of their files, the model is told that it may.
        """
        if not self._near or not self._words:
            return None, ""

        deed, near = deed_of(self._words), {trace.path: trace for trace in self._near}
        lost, taken = by_words.swept(git_call, self._words, list(near))
        theirs = [near[path] for path in lost]
        if theirs:
            return self._outcome(git_call, self._words, theirs, deed, self.level != NOTICE, is_late=True)
        theirs = [near[path] for path in taken if not went_on_with(self.meetings, near[path])]
        if theirs and self.level == TURN:
            return self._outcome(git_call, self._words, theirs, deed, True, is_late=True)
        return None, sweep_wording.line(git_call.by, deed, self._near, "", self.identity, self.now, may=True)

    def patience(self) -> Patience:
        """Return the time for the lines of all files of the call."""
        if self._patience is None:
            self._patience = Patience(self._trail)
        return self._patience

    def left(self) -> float:
        """Return the seconds left for questions to git."""
        return max(0.0, self._end - time.monotonic())

    def _hooks_of(self, git_call: GitCall, words: list[str], hook: str) -> str:
        """Return the name of the hook manager that puts unstaged changes aside during this `hook`, or ""."""
        top = tree_of(git_call)
        if top is None:
            return ""
        repository = Repository(top, self.left(), git_call.top, git_call.environment)
        try:
            return commit_hooks.putting_aside(git_call, options_of(words), repository, hook)
        except NoAnswer:
            return ""  # too slow: assume no files

    def _met(self, git_call: GitCall) -> tuple[list[Trace], list[Trace]]:
        """Return ``(lost, taken)``: others' fresh traces that the command discards, and those that it takes along."""
        fresh: dict[str, Trace] = {}
        for root in uncommitted.roots(git_call):
            if root not in self._fresh:
                began = time.monotonic()
                self._fresh[root] = self.meetings.fresh_below(root)
                self._end += time.monotonic() - began  # these questions have time of their own
            fresh.update((trace.path, trace) for trace in self._fresh[root] if trace.path not in self._committed)
        if not fresh:
            return [], []
        self._near = list(fresh.values())
        lost, taken = uncommitted.swept(git_call, list(fresh), self.left())
        return [fresh[path] for path in lost], [fresh[path] for path in taken]

    def _go_on(self, words: list[str], taken: list[Trace]) -> None:
        """Assume that the command has run, for the commands after it."""
        if words[0] in ("add", "stage", "apply"):
            self._staged.update((trace.path, trace) for trace in taken)
        elif words[0] == "commit":
            self._committed.update(self._staged)
            self._committed.update((trace.path, trace) for trace in taken)

    def _outcome(
        self, git_call: GitCall, words: list[str], traces: list[Trace], deed: str, denies: bool, is_late: bool = False,
        is_once: bool = False,
    ) -> tuple[Denial | None, str]:  # fmt: skip
        """Return the Denial or the line about changes that the command would lose or take along.

        `is_once`: the same command again goes ahead.
        """
        if git_call.aside and deed == "put aside":
            way = way_past_hooks(git_call.aside)
        elif is_late:
            way = sweep_wording.LATE
        else:
            way = self._way(git_call, words, {trace.path for trace in traces})
        way = sweep_wording.joined(also_in(traces, self.meetings, self.patience(), self.identity), way)
        first, also = traces[0], [trace.path for trace in traces[1:]]
        loss = Loss("sweep", first.held, deed, git_call.by, first.at_ns / 1e9, also)
        if denies and not git_call.in_doubt:
            text = sweep_wording.denial(
                self.call.client_tool, git_call.by, deed, traces, way, self.identity, self.now, is_once
            )
            return Denial(first.path, None, text, loss=loss), ""
        may = git_call.in_doubt
        line = sweep_wording.line(git_call.by, deed, traces, way, self.identity, self.now, may)
        self._trail.noted.append(Notice(first.path, loss, line))
        return None, line

    def _way(self, git_call: GitCall, words: list[str], theirs: Collection[str]) -> str:
        """Return the advice for the model: a narrower command."""
        top = tree_of(git_call)
        is_here = top == work_tree(self.call.folder)  # elsewhere the files' relative names would be wrong
        own: list[str] = []
        if top and is_here:
            own = self.meetings.own_below(top)
        shared = None
        if narrow_forms.can_be_undone(words):
            both = [path for path in own if path in theirs]
            shared = SharedFiles(both, self._trail.own_name, self.patience())
        own = [path for path in own if path not in theirs]
        try:
            lost, taken = uncommitted.swept(git_call, own, self.left()) if own else ([], [])
        except NoAnswer:
            lost = taken = []
        own = [*lost, *taken]
        changed, new = uncommitted.changes(top, own, self.left()) if own else ([], [])
        folder = git_call.folder if git_call.folder == self.call.folder else ""
        return narrow_forms.way(words, changed, new, folder, shared)


def went_on_with(meetings: Meetings, trace: Trace) -> bool:
    """Return True if this session has written the file of `trace` since: it knows the change."""
    own = meetings.journals.own(os.path.dirname(trace.path))
    last = journal.newest(own, trace.path, ("wrote",))
    return last is not None and last.at_ns > trace.at_ns


def has_lines_of_others(trace: Trace, patience: Patience) -> bool:
    """Return True if the file of `trace` has uncommitted lines that are the other session's alone."""
    if not trace.journal or trace.held.kin:
        return False  # on another machine, or the session itself

    return has_lines_of(trace.path, trace.journal, patience)  # in a file without lines its last writer counts
