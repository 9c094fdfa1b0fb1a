"""Commands that take entries of others out of the stash: of a session, or of a person.

To take out another session's entry is denied, and so is to drop one that no session at work has made: it is a person's,
or of a session that has ended. To pop such a one is denied once: its changes come into the work tree, where sessions
work. When such a call passes, the contents of the entry are kept first.
"""

from __future__ import annotations

import os

from swarm_hook_core.denial import Denial, Loss, Notice, without_owner
from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.hooks import Verdict
from swarm_hook_core.lookup import Held
from swarm_hook_core.shell.model import Effects, GitCall
from swarm_hook_core.shell.programs.git import touched_files
from swarm_hook_core.shell.programs.git.command_line import tree_of
from swarm_hook_core.traces import NOTICE, OFF, keeping, stash_wording
from swarm_hook_core.traces import head as heads
from swarm_hook_core.traces.head import Head, Note
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.stash_entries import (
    TOGETHER_SECONDS,
    StashEntry,
    content_in,
    entries,
    files_in,
    maker,
    meant,
    notes,
    puts_aside,
    verb_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.persons.owners import Authors

    Foreign = tuple[StashEntry, Held]  # an entry and its owner; the owner of a person's has no `instance_id`

SECONDS = 1.0  # for all of git's answers about the stash
MOST_CALLS = 50  # git commands of one call
MOST_FILES = 100  # files of one call with their contents kept
_PUTS = ("push", "save")
_BRINGS_BACK = ("pop", "branch")
_DEEDS = {"pop": "take out", "branch": "take out", "drop": "throw away", "clear": "throw away", "apply": "use"}


def judge(meetings: Meetings, authors: Authors, effects: Effects, identity: str, now: float) -> Verdict | None:
    """Return the Verdict on the stash commands of a call, or None if they take nothing of others."""
    made = pushes = 0  # entries that earlier commands make, and commands that would
    for git_call in effects.git[:MOST_CALLS]:
        words = touched_files.without_aliases(git_call, SECONDS)
        if not words or words[0] != "stash":
            continue
        verb = verb_of(words)
        if verb in _PUTS:
            is_first = git_call is effects.git[0] and not (effects.writes or effects.trees)
            made += puts_aside(git_call, words, SECONDS, is_first)
            pushes += 1
        elif verb in _DEEDS:
            taking = Taking(git_call, words, verb, made, meetings, authors)
            taking.has_empty = made < pushes
            verdict = taking.verdict(identity, now)
            if verdict is not None:
                return verdict
            made = max(0, made - (verb != "apply"))
    return None


class Taking:
    """A command that takes entries out of the stash.

    foreign    others' entries among them
    own        numbers of the session's own entries
    has_empty  True if an earlier `git stash` of the call has nothing to put aside
    """

    def __init__(self, git_call: GitCall, words: list[str], verb: str, made: int, meetings: Meetings, authors: Authors):
        self.git_call = git_call
        self.verb = verb
        self.deed = _DEEDS[verb]
        self.foreign: list[Foreign] = []
        self.own: list[int] = []
        self.has_empty = False
        self._meetings = meetings
        self._trail = meetings.trail
        self.top = tree_of(git_call)
        if self.top is None:
            return
        self._repository = Repository(self.top, SECONDS, git_call.top, git_call.environment)
        found = entries(self._repository)
        numbers = meant(words, verb, made)
        if verb == "clear":
            numbers = list(range(len(found)))
        if not any(number < len(found) for number in numbers):
            return
        noted, times = notes(git_call.folder, meetings), [one.at for one in found]
        for entry in found:
            note = maker(entry.at, times, noted)
            if note is not None and not note.instance_id:
                self.own.append(entry.number)
            elif entry.number in numbers and note is not None and self._trail.level != OFF:
                held = Held("", note.instance_id, note.label)
                held.kin = note.kin
                self.foreign.append((entry, held))
            elif entry.number in numbers and note is None and verb != "apply":
                is_near = any(int(one.at) <= entry.at < one.at + TOGETHER_SECONDS for one in noted)
                if not is_near and not authors.ran_in_second(git_call.folder, entry.at):
                    self.foreign.append((entry, Held("", "")))

    def verdict(self, identity: str, now: float) -> Verdict | None:
        """Return the Verdict on the command; None if it takes nothing of others."""
        if not self.foreign or self.top is None:
            return None
        trail, git_call = self._trail, self.git_call
        first, held = self.foreign[0]
        is_persons = not any(owner.instance_id for _entry, owner in self.foreign)
        loss = Loss("stash", held, self.deed, git_call.by, first.at)
        if not held.instance_id:
            loss = without_owner("person", self.deed, git_call.by)
        is_once = is_persons and self.verb in _BRINGS_BACK
        denies = trail.level not in (OFF, NOTICE) and not git_call.in_doubt and self.verb != "apply"
        if denies and not (is_once and self._was_told(first)):
            files = files_in(self._repository, first)
            text = stash_wording.denial(self, trail.call, files, is_once, identity, now)
            denial = Denial(self.top, None, text, loss=loss)
            if is_persons and not is_once:
                denial.question = stash_wording.question(self)
                if trail.config.asks is not None and trail.config.asks(trail.call):
                    self._keep()
            return Verdict(denial)
        self._keep()
        if is_persons and trail.level != NOTICE:
            return None
        verdict = Verdict(None, stash_wording.line(self, identity, now))
        verdict.noted = [Notice(git_call.folder, loss, verdict.notice)]
        return verdict

    def _was_told(self, entry: StashEntry) -> bool:
        """Return True if the session was told of the entry; note that it is told now. HEAD's notes keep such facts."""
        trail, fact, top = self._trail, f"stash:{entry.commit}", self.top or ""
        runtime, session_id = trail.config.runtime_name, trail.call.session_id
        head = heads.read(top) or Head("", "")
        note = heads.noted(runtime, session_id, top) or Note(head, 0, set())
        if fact not in note.told and not trail.is_asked:
            heads.note(runtime, session_id, top, note.head, note.told | {fact})
        return fact in note.told

    def _keep(self) -> None:
        """Keep the contents of the files in others' entries that go, for `swarm-mcp restore`, up to the limit."""
        if self._trail.is_asked or self.verb == "apply":
            return
        left = MOST_FILES
        for entry, _held in self.foreign:
            for name in files_in(self._repository, entry)[: max(0, left)]:
                left -= 1
                try:
                    content = content_in(self._repository, entry, name)
                    keeping.lost_text(self._trail, os.path.join(self._repository.top, name), content)
                except (NoAnswer, Refused, OSError, ValueError):
                    continue  # a file that the entry removes, or no room: the others can be kept all the same
