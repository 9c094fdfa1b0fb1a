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
            lines.append(sweeps.line_of_late(git_call))
            break
        if denial is not None:
            return denial, ""
        lines.append(line)
    for folder in sweeps.stashed_in:
        trail.note_at(folder, "stash")
    return None, "\n".join(filter(None, lines))


class Sweeps:
    """The git commands of one call, in their order, and whether it `writes_too`, beside them.

    `stashed_in`: folders in which those so far put changes aside.
    """

    def __init__(self, session, call, meetings, trail, now: float, writes_too: bool):
        self.call = call
        self.meetings = meetings
        self.level = trail.level
        self.now = now
        self.identity = token(session.label, "identity")
        self.stashed_in: list = []
        self._has_begun = writes_too  # whether files may be others by now than they are on the disk
        self._end = time.monotonic() + SECONDS
        self._fresh: dict = {}  # file or folder -> the fresh traces of others at and below it
        self._near: list = []  # the traces that the command at hand may be about
        self._staged: dict = {}  # paths that an earlier command of the call has staged
        self._committed: dict = {}  # and those that one has committed

    def of(self, git_call):
        """``(Denial or None, line for the model)`` of the next one. Raises NoAnswer where git does not say in time."""
        self._near = []
        words = touched_files.without_aliases(git_call, self.left())
        if not words or only_reads(words) or not (asks(words) or words[0] == "worktree"):
            return None, ""
        is_first, self._has_begun = not self._has_begun, True
        if words[0] == "stash":
            found = stash_entries.judge(git_call, words, self)
            if found is not None:
                return found
            if stash_entries.puts_aside(git_call, words, self.left(), is_first):
                self.stashed_in.append(git_call.folder)
        lost, taken = self._met(git_call)
        taken = [trace for trace in taken if trace.path not in self._staged]  # of which was spoken already
        self._go_on(words, taken)
        if lost:
            return self._said(git_call, words, lost, deed_of(words), self.level != NOTICE)
        taken = [trace for trace in taken if not went_on_with(self.meetings, trace)]
        if taken:
            return self._said(git_call, words, taken, deed_of(words), self.level == TURN)
        return None, ""

    def line_of_late(self, git_call) -> str:
        """What is told of the command where git did not say in time which files it would change."""
        if not self._near:
            return ""
        from swarm_hook_core.traces import sweep_wording

        deed = deed_of(git_call.words)
        return sweep_wording.line(git_call.by, deed, self._near, "", self.identity, self.now, may=True)

    def left(self) -> float:
        """Seconds that are left for questions to git."""
        return max(0.0, self._end - time.monotonic())

    def _met(self, git_call):
        """``(lost, taken)``: the fresh traces of others that it meets."""
        fresh: dict = {}
        for root in uncommitted.roots(git_call, self.left()):
            if root not in self._fresh:
                self._fresh[root] = self.meetings.fresh_below(root)
            fresh.update((trace.path, trace) for trace in self._fresh[root] if trace.path not in self._committed)
        if not fresh:
            return [], []
        self._near = list(fresh.values())
        lost, taken = uncommitted.swept(git_call, list(fresh), self.left())
        return [fresh[path] for path in lost], [fresh[path] for path in taken]

    def _go_on(self, words, taken) -> None:
        """Take it that the command has run, for those that follow it in the same call."""
        if words[0] in ("add", "stage"):
            self._staged.update((trace.path, trace) for trace in taken)
        elif words[0] == "commit":
            self._committed.update(self._staged)
            self._committed.update((trace.path, trace) for trace in taken)

    def _said(self, git_call, words, traces, deed: str, denies: bool):
        from swarm_hook_core.traces import sweep_wording

        way = self._way(git_call, words, {trace.path for trace in traces})
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
    if verb in ("add", "stage", "update-index"):
        return "stage"
    if verb == "commit" or "--continue" in words:
        return "commit"
    return "move" if verb == "mv" and not {"-f", "--force"}.intersection(words) else "throw away"
