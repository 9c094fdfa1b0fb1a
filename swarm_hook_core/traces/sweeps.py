"""Git commands that would throw away, or take along, what other sessions have changed and not committed.

Whether git itself would refuse is known (``shell/programs/git/uncommitted``): where it does, nothing is said.
"""

import os
import time

from swarm_hook_core.decision import Denial, Loss
from swarm_hook_core.labels import token
from swarm_hook_core.shell.programs.git import touched_files, uncommitted
from swarm_hook_core.shell.programs.git.command_line import tree_of, work_tree
from swarm_hook_core.shell.programs.git.repository import NoAnswer
from swarm_hook_core.shell.programs.git.table import asks, only_reads
from swarm_hook_core.traces import NOTICE, TURN, journal, stash_entries
from swarm_hook_core.wording import way_past_hooks

SECONDS = 0.5  # for all git commands of a call together
MOST_CALLS = 50  # git commands of one call that are looked at


def judge(session, call, effects, meetings, trail, now: float):
    """``(Denial or None, words for the model)`` of the git commands of a call; what is to be noted goes to `trail`."""
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
    """The git commands of one call, in their order, and whether it `writes_too`, beside them.

    `stashed_in`: folders in which those so far put changes aside; `put_aside`: top of a work tree -> what puts changes
    aside there while one of them runs.
    """

    def __init__(self, session, call, meetings, trail, now: float, writes_too: bool):
        self.call = call
        self.meetings = meetings
        self.level = trail.level
        self.now = now
        self.identity = token(session.label, "identity")
        self.stashed_in: list = []
        self.put_aside: dict = {}
        self._has_begun = writes_too  # whether files may be others by now than they are on the disk
        self._end = time.monotonic() + SECONDS
        self._fresh: dict = {}  # file or folder -> the fresh traces of others at and below it
        self._near: list = []  # the traces that the command at hand may be about
        self._words: list = []  # of that command, with aliases put in their place
        self._staged: dict = {}  # paths that an earlier command of the call has staged
        self._committed: dict = {}  # and those that one has committed

    def of(self, git_call):
        """``(Denial or None, line for the model)`` of the next one. Raises NoAnswer where git does not say in time."""
        self._near, self._words = [], []
        words = touched_files.without_aliases(git_call, self.left())
        if not words or only_reads(words) or not (asks(words) or words[0] == "worktree"):
            return None, ""
        is_first, self._has_begun = not self._has_begun, True
        self._words = words
        if words[0] == "stash":
            found = stash_entries.judge(git_call, words, self)
            if found is not None:
                return found
        lost, taken = self._met(git_call)
        if words[0] == "commit":
            lost = [trace for trace in lost if trace.path not in self._staged]  # those go into the commit
            git_call.aside = git_call.aside or self._hooks_of(git_call, words, "pre-commit")
        elif words[0] == "push":
            git_call.aside = git_call.aside or self._hooks_of(git_call, words, "pre-push")
        if git_call.aside:
            lost += self.meetings.pending_below(tree_of(git_call))
        # Asked last, since it goes through the whole work tree: in a large one nothing else would be told in time.
        elif words[0] == "stash" and not lost and stash_entries.puts_aside(git_call, words, self.left(), is_first):
            self.stashed_in.append(git_call.folder)
        taken = [trace for trace in taken if trace.path not in self._staged]  # of which was spoken already
        self._go_on(words, taken)
        if git_call.aside and not git_call.in_doubt and (not lost or self.level == NOTICE):
            self.put_aside[tree_of(git_call)] = git_call.aside
        if lost:
            deed = "put aside" if git_call.aside else deed_of(words)
            return self._said(git_call, words, lost, deed, self.level != NOTICE)
        taken = [trace for trace in taken if not went_on_with(self.meetings, trace)]
        if taken:
            return self._said(git_call, words, taken, deed_of(words), self.level == TURN)
        return None, ""

    def of_late(self, git_call):
        """As `of`, where git did not say in time which files the command would change: what others noted decides.

        Where the command's words do not say that it means a file of theirs, the model is told that it may.
        """
        if not self._near or not self._words:
            return None, ""
        from swarm_hook_core.shell.programs.git import by_words
        from swarm_hook_core.traces import sweep_wording

        deed, near = deed_of(self._words), {trace.path: trace for trace in self._near}
        lost, taken = by_words.swept(git_call, self._words, list(near))
        theirs = [near[path] for path in lost]
        if theirs:
            return self._said(git_call, self._words, theirs, deed, self.level != NOTICE, is_late=True)
        theirs = [near[path] for path in taken if not went_on_with(self.meetings, near[path])]
        if theirs and self.level == TURN:
            return self._said(git_call, self._words, theirs, deed, True, is_late=True)
        return None, sweep_wording.line(git_call.by, deed, self._near, "", self.identity, self.now, may=True)

    def left(self) -> float:
        """Seconds that are left for questions to git."""
        return max(0.0, self._end - time.monotonic())

    def _hooks_of(self, git_call, words, hook: str) -> str:
        """What puts unstaged changes aside while this `hook` runs; empty for nothing, or where git says nothing."""
        from swarm_hook_core.shell.programs.git import commit_hooks
        from swarm_hook_core.shell.programs.git.repository import Repository
        from swarm_hook_core.shell.programs.git.table import options_of

        top = tree_of(git_call)
        if top is None:
            return ""
        repository = Repository(top, self.left(), git_call.top, git_call.environment)
        try:
            return commit_hooks.putting_aside(git_call, options_of(words), repository, hook)
        except NoAnswer:
            return ""

    def _met(self, git_call):
        """``(lost, taken)``: the fresh traces of others that it meets."""
        fresh: dict = {}
        for root in uncommitted.roots(git_call, self.left()):
            if root not in self._fresh:
                began = time.monotonic()
                self._fresh[root] = self.meetings.fresh_below(root)
                self._end += time.monotonic() - began  # git has time of its own for that
            fresh.update((trace.path, trace) for trace in self._fresh[root] if trace.path not in self._committed)
        if not fresh:
            return [], []
        self._near = list(fresh.values())
        lost, taken = uncommitted.swept(git_call, list(fresh), self.left())
        return [fresh[path] for path in lost], [fresh[path] for path in taken]

    def _go_on(self, words, taken) -> None:
        """Take it that the command has run, for those that follow it in the same call."""
        if words[0] in ("add", "stage", "apply"):
            self._staged.update((trace.path, trace) for trace in taken)
        elif words[0] == "commit":
            self._committed.update(self._staged)
            self._committed.update((trace.path, trace) for trace in taken)

    def _said(self, git_call, words, traces, deed: str, denies: bool, is_late: bool = False):
        from swarm_hook_core.traces import sweep_wording

        if git_call.aside and deed == "put aside":
            way = way_past_hooks(git_call.aside)
        else:
            way = sweep_wording.LATE if is_late else self._way(git_call, words, {trace.path for trace in traces})
        if denies and not git_call.in_doubt:
            text = sweep_wording.denial(self.call.client_tool, git_call.by, deed, traces, way, self.identity, self.now)
            first, also = traces[0], [trace.path for trace in traces[1:]]
            loss = Loss("sweep", first.held, deed, git_call.by, first.at_ns / 1e9, also)
            return Denial(first.path, None, text, loss=loss), ""
        may = git_call.in_doubt
        return None, sweep_wording.line(git_call.by, deed, traces, way, self.identity, self.now, may)

    def _way(self, git_call, words, theirs) -> str:
        """What to do in its place, for the model."""
        from swarm_hook_core.traces import narrow_forms

        top = tree_of(git_call)
        is_here = top == work_tree(self.call.folder)  # elsewhere the command would not reach them by their names alone
        own = [path for path in self.meetings.own_below(top) if path not in theirs] if top and is_here else []
        try:
            lost, taken = uncommitted.swept(git_call, own, self.left()) if own else ([], [])
        except NoAnswer:
            lost = taken = []
        own = [*lost, *taken]
        changed, new = uncommitted.changes(top, own, self.left()) if own else ([], [])
        folder = git_call.folder if git_call.folder == self.call.folder else ""
        return narrow_forms.way(words, changed, new, folder)


def went_on_with(meetings, trace) -> bool:
    """Whether this session has written the file of `trace` since: it knows what it takes along."""
    own = meetings.own_entries(os.path.dirname(trace.path))
    last = journal.newest(own, trace.path, ("wrote",))
    return last is not None and last.at_ns > trace.at_ns


def deed_of(words) -> str:
    """What ``git <words>`` does to changes that nobody has committed, as a verb."""
    verb, goes_on = words[0], any(word in ("--abort", "--skip", "--continue") for word in words)
    if verb == "stash" or (verb in ("rebase", "merge", "pull") and not goes_on):
        return "put aside"
    if verb in ("add", "stage", "update-index", "apply"):
        return "stage"
    if verb == "commit" or "--continue" in words:
        return "commit"
    return "move" if verb == "mv" and not {"-f", "--force"}.intersection(words) else "throw away"
