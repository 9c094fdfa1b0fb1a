"""Stash entries that no session at work has made: a person's, or of a session that has ended.

To drop one is denied. To pop one is denied once: its changes come into the work tree, where sessions work. When such a
call passes, the contents of the entry are kept first. Entries of living sessions: ``traces/stash_entries``.
"""

from __future__ import annotations

import os

from swarm_hook_core.denial import Denial, without_owner
from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.persons import wording
from swarm_hook_core.persons.owners import Authors
from swarm_hook_core.shell.model import Effects, GitCall
from swarm_hook_core.shell.programs.git.command_line import tree_of
from swarm_hook_core.traces import NOTICE, OFF, keeping, stash_entries
from swarm_hook_core.traces import head as heads
from swarm_hook_core.traces.head import Head, Note
from swarm_hook_core.traces.meetings import Meetings
from swarm_hook_core.traces.stash_entries import StashEntry
from swarm_hook_core.traces.trail import Trail

SECONDS = 1.0  # for all of git's answers about the stash
MOST_FILES = 100  # files of one call with their contents kept


def judge(meetings: Meetings, authors: Authors, effects: Effects | None, now: float) -> tuple[Denial | None, str]:
    """Return ``(Denial or None, words for the model)`` for the stash commands of a call; keep entries that go."""
    calls = [one for one in effects.git if one.words[0] == "stash"] if effects is not None else []
    made = 0
    for git_call in calls:
        verb = stash_entries.verb_of(git_call.words)
        if verb in ("push", "save"):
            is_first = effects is not None and git_call is effects.git[0] and not (effects.writes or effects.trees)
            made += stash_entries.puts_aside(git_call, git_call.words, SECONDS, is_first)
        elif verb in stash_entries.TAKES_OUT:
            denial, words = _of(git_call, verb, made, made < _pushes_before(git_call, calls), meetings, authors, now)
            if denial is not None or words:
                return denial, words
            made = max(0, made - 1)
    return None, ""


def _pushes_before(git_call: GitCall, calls: list[GitCall]) -> int:
    before = calls[: calls.index(git_call)]
    return sum(stash_entries.verb_of(one.words) in ("push", "save") for one in before)


def _of(
    git_call: GitCall, verb: str, made: int, has_empty: bool, meetings: Meetings, authors: Authors, now: float
) -> tuple[Denial | None, str]:
    """Judge one command. `made`: entries made by earlier ones; `has_empty`: one of these had nothing to put aside."""
    top, trail = tree_of(git_call), meetings.trail
    if top is None:
        return None, ""
    repository = Repository(top, SECONDS, git_call.top, git_call.environment)
    foreign = _foreign(git_call, verb, made, repository, meetings, authors)
    if not foreign:
        return None, ""
    first, call = foreign[0], trail.call
    deed = "take out" if verb in ("pop", "branch") else "throw away"
    denies = trail.level not in (OFF, NOTICE) and not git_call.in_doubt
    is_once = verb in ("pop", "branch")
    if denies and not (is_once and _was_told(meetings, top, first)):
        files = _files(repository, first)
        text = wording.stash(call, git_call.by, deed, first, len(foreign) - 1, files, has_empty, is_once, now)
        denial = Denial(top, None, text, loss=without_owner("person", deed, git_call.by))
        if not is_once:
            denial.question = wording.stash_question(deed, first, len(foreign) - 1, git_call.by)
            if trail.config.asks is not None and trail.config.asks(call):
                _keep(foreign, repository, trail)
        return denial, ""
    _keep(foreign, repository, trail)
    if trail.level == NOTICE:
        return None, wording.stash_notice(git_call.by, deed, first, len(foreign) - 1)
    return None, ""


def _foreign(
    git_call: GitCall, verb: str, made: int, repository: Repository, meetings: Meetings, authors: Authors
) -> list[StashEntry]:
    """Return the entries that the command takes out, and that no session at work has made."""
    entries = stash_entries.entries(repository)
    meant = list(range(len(entries)))
    if verb != "clear":
        meant = stash_entries.meant(git_call.words, verb, made)
    times = [one.at for one in entries]
    some = [entries[number] for number in meant if number < len(entries)]
    if not some:
        return []
    notes = stash_entries.notes(git_call.folder, meetings)
    return [
        one
        for one in some
        if stash_entries.maker(one.at, times, notes) is None
        and not any(int(note.at) <= one.at < note.at + stash_entries.TOGETHER_SECONDS for note in notes)
        and not authors.ran_in_second(git_call.folder, one.at)
    ]


def _was_told(meetings: Meetings, top: str, entry: StashEntry) -> bool:
    """Return True if the session was told of the entry; note that it is told now. HEAD's notes keep such facts."""
    trail, fact = meetings.trail, f"stash:{entry.commit}"
    runtime, session_id = trail.config.runtime_name, trail.call.session_id
    head = heads.read(top) or Head("", "")
    note = heads.noted(runtime, session_id, top) or Note(head, 0, set())
    if fact not in note.told and not trail.is_asked:
        heads.note(runtime, session_id, top, note.head, note.told | {fact})
    return fact in note.told


def _files(repository: Repository, entry: StashEntry) -> list[str]:
    """Return the names of the files in an entry, as far as git answers."""
    try:
        found = repository.ask(
            "diff-tree", "-r", "-z", "--name-only", "--no-renames", f"{entry.commit}^1", entry.commit
        )
        try:
            found += repository.ask("ls-tree", "-r", "-z", "--name-only", f"{entry.commit}^3")
        except Refused:
            pass  # an entry without untracked files
    except (NoAnswer, Refused):
        return []  # their names are only shown and kept
    return [name for name in found.split("\0") if name]


def _keep(entries: list[StashEntry], repository: Repository, trail: Trail) -> None:
    """Keep the contents of the files in these entries for `swarm-mcp restore`, up to the limit."""
    if trail.is_asked:
        return
    left = MOST_FILES
    for entry in entries:
        for name in _files(repository, entry)[: max(0, left)]:
            left -= 1
            try:
                keeping.lost_text(trail, os.path.join(repository.top, name), _content(repository, entry, name))
            except (NoAnswer, Refused, OSError, ValueError):
                continue  # a file that the entry removes, or no room: the others can be kept all the same


def _content(repository: Repository, entry: StashEntry, name: str) -> bytes:
    """Return the content of a file in an entry. Raises Refused if the entry removes it, and NoAnswer."""
    try:
        text = repository.ask("cat-file", "blob", f"{entry.commit}:{name}")
    except Refused:
        text = repository.ask("cat-file", "blob", f"{entry.commit}^3:{name}")
    return text.encode("utf-8", "surrogateescape")
