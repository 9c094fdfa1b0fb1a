"""The changes that a run has made in its folder: files, and commits.

Git is asked before and after. In a shared checkout, the changes of others are left out where they are known: a file in
another session's journal that no edit of the run's own touched; and commits, if the run has carried out no git command.
Files that git ignores are not counted, nor is anything outside of the checkout but the run's own edits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from swarm_hook_core import git
from swarm_hook_core.shell.programs.git.uncommitted import changed_in
from swarm_hook_core.state import NotOrdinary
from swarm_hook_core.traces import journal, others_in, place_of, state_of
from swarm_mcp.agents.harness import events
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.outcome import Changes
from swarm_mcp.agents.harness.tool_words import commanded, edited

SECONDS = 3.0  # for each question to git
MOST_FILES, MOST_COMMITS = 200, 50
LONGEST_SUBJECT = 120  # characters
WRITES = ("wrote", "will")


class ChangeWatch:
    """Watches one run that works in `folder`, from before its child starts. Nothing here raises."""

    def __init__(self, folder: str):
        self._folder = os.path.abspath(folder)
        self._began = time.time_ns()
        self._top = _line(["rev-parse", "--show-toplevel"], self._folder)
        self._head = self._commit()
        self._dirty = self._states()
        self._open: dict[str, list[str]] = {}  # call id -> files that it edits
        self._edited: set[str] = set()
        self._speaks_of_git = False
        self._tells_calls = False

    def note(self, event: Event) -> None:
        """Take one event of the run."""
        data = event.data
        if event.kind == events.TOOL_START:
            self._tells_calls = True
            command = commanded(data.get("args"))
            self._speaks_of_git = self._speaks_of_git or "git" in command
            self._open[str(data.get("tool_call_id"))] = edited(data.get("args"))
        elif event.kind == events.TOOL_END:
            files = self._open.pop(str(data.get("tool_call_id")), [])
            if not data.get("is_error"):
                self._edited.update(os.path.realpath(os.path.join(self._folder, file)) for file in files)

    def changes(self, session_id: str | None) -> Changes:
        """Return the changes since the beginning; `session_id` is the run's own."""
        files = set(self._edited)
        head = self._commit()
        if self._top:
            before, after = self._dirty, self._states()
            found = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
            if self._head and head and head != self._head:
                found.update(self._between(self._head, head))
            files |= found - (self._of_others(session_id or "") - files)
        named = sorted(self._named(path) for path in files)
        return Changes(tuple(named[:MOST_FILES]), self._commits(head), max(0, len(named) - MOST_FILES))

    # ------------------------------------------------------------------------------------------ innards

    def _commits(self, head: str) -> tuple[str, ...]:
        if not head or head == self._head or (self._tells_calls and not self._speaks_of_git):
            return ()
        words = ["log", "--reverse", "--format=%h %s", f"--max-count={MOST_COMMITS}"]
        if self._head:
            span = f"{self._head}..{head}"
        else:
            span = head
        return tuple(line[:LONGEST_SUBJECT] for line in _lines([*words, span, "--"], self._folder))

    def _between(self, before: str, after: str) -> Iterator[str]:
        words = ["diff", *git.NO_PROGRAMS, "--no-renames", "--name-only", "-z", before, after, "--"]
        done = git.ask(words, self._folder, SECONDS)
        return (os.path.join(self._top, name) for name in done.stdout.split("\0") if name and done.code == 0)

    def _states(self) -> dict[str, str]:
        """The files that are not committed, each with its state."""
        if self._top:
            return {path: state_of(path) for path in changed_in(self._top, self._top, SECONDS) or ()}
        return {}

    def _commit(self) -> str:
        if self._top:
            return _line(["rev-parse", "--verify", "--quiet", "HEAD"], self._folder)
        return ""

    def _of_others(self, session_id: str) -> set[str]:
        """The files below the top that other sessions have written since, as their journals say."""
        found: set[str] = set()
        try:
            for path in others_in(place_of(self._folder), ""):
                try:
                    data = journal.read(path)
                except NotOrdinary:  # no ordinary file
                    continue
                if journal.owner_of(data)[1] == session_id:
                    continue
                entries = journal.entries_below(data, os.path.realpath(self._top), WRITES)
                found.update(entry.key for entry in entries if entry.at_ns >= self._began)
        except (OSError, ValueError):  # no journals
            return found
        return found

    def _named(self, path: str) -> str:
        inside = os.path.relpath(path, os.path.realpath(self._folder))
        if inside.startswith("..") and not self._is_in_checkout(path):
            return path
        return inside

    def _is_in_checkout(self, path: str) -> bool:
        return bool(self._top) and path.startswith(os.path.realpath(self._top) + os.sep)


def _line(words: list[str], folder: str) -> str:
    return next(_lines(words, folder), "")


def _lines(words: list[str], folder: str) -> Iterator[str]:
    done = git.ask(words, folder, SECONDS)
    return iter(done.stdout.splitlines() if done.code == 0 else ())
