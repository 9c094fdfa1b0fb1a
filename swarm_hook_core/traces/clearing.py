"""Calls that clear a folder: they remove it with everything in it, or git discards all changes in it.

Writes of one file by two sessions meet by the file's name (``stakes.writes``). Here the names are not known beforehand,
so the folder is noted as a whole before the call looks at others' traces (``clears`` in its journal, ``spares`` after a
denial). A write of a file in the folder meets that entry. In the other direction, the call meets pending writes in the
folder.

Not noted, as their extent is unknown: files that a predicate selects (``find -delete``), git aliases, and git commands
that bring the changes back (``--autostash``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from swarm_hook_core import REMOVE
from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.shell.model import Effects, GitCall
from swarm_hook_core.shell.options import Options
from swarm_hook_core.shell.programs.git import by_words
from swarm_hook_core.shell.programs.git.command_line import tree_of
from swarm_hook_core.shell.programs.git.pathspec import Pathspec
from swarm_hook_core.shell.programs.git.table import asks, options_of
from swarm_hook_core.traces import keys_of
from swarm_hook_core.traces.elsewhere import places_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.meetings import Meetings
    from swarm_hook_core.traces.others import Trace
    from swarm_hook_core.traces.trail import Trail

MOST = 50  # folders, and git commands, of one call
SECONDS = 0.5  # for all git commands of one call
_VERBS = ("checkout", "clean", "reset", "restore", "stash", "switch")  # git commands that can discard changes


def places_of(effects: Effects | None) -> dict[str, str]:
    """Return ``{resolved path: verb}`` of the folders and files that a call with these Effects clears."""
    if effects is None or not (effects.trees or effects.git):
        return {}
    found: dict[str, str] = {}
    for tree in effects.trees[:MOST]:
        if tree.how == REMOVE and tree.is_whole and os.path.exists(tree.root) and not os.path.islink(tree.root):
            found[os.path.realpath(tree.root)] = REMOVE
    for git_call in effects.git[:MOST]:
        clearing = GitClearing.of(git_call)
        if clearing is not None:
            found.update(dict.fromkeys(clearing.places, clearing.deed))
    return found


def note(trail: Trail, kind: str, places: dict[str, str], at_ns: int = 0) -> None:
    """Add to `trail` that the call clears (`kind` ``clears``) or spares these `places`, a result of `places_of`."""
    for path, deed in places.items():
        inside = places_with(trail, path) if deed == REMOVE else ()  # git commands leave nested repositories alone
        for place in {trail.place_of(path), *inside}:
            for key in keys_of(path):
                trail.note_at(key, kind, deed, at_ns, place)


def endangered(effects: Effects, meetings: Meetings) -> list[tuple[Trace, str, str]]:
    """Return ``[(Trace, how, by)]`` of others' pending writes that git commands of the call would discard."""
    found = []
    for git_call in effects.git[:MOST]:
        clearing = GitClearing.of(git_call)
        if clearing is not None:
            coming = {trace.path: trace for place in clearing.places for trace in meetings.pending_below(place)}
            found += [(coming[path], REMOVE, git_call.by) for path in clearing.would_lose(coming)] if coming else []
    return found


class GitClearing:
    """A git command that discards changes in `places` (resolved paths); `deed` is its verb."""

    __slots__ = ("places", "deed", "_call", "_top", "_options", "_specs")

    @classmethod
    def of(cls, git_call: GitCall) -> GitClearing | None:
        """Return the GitClearing of a GitCall; None if it discards nothing, or may run in another place."""
        if git_call.words[0] not in _VERBS or git_call.in_doubt:
            return None

        top, options = tree_of(git_call), options_of(git_call.words)
        if top is None or not asks(git_call.words) or options.has("-p", "--patch"):
            return None
        named = by_words.losing(git_call, git_call.words)
        if named is None:
            return None
        return cls(git_call, top, options, named)

    def __init__(self, git_call: GitCall, top: str, options: Options, named: list[str]):
        prefix = os.path.relpath(os.path.realpath(git_call.folder), top)
        if prefix == "." or prefix.startswith(".."):
            prefix = ""
        self._call = git_call
        self._top = top
        self._options = options
        self._specs = Pathspec(["\0"] if options.has("--pathspec-from-file") else named, prefix, top, git_call.found)
        self.deed = deed_of(git_call.words)
        self.places = [os.path.join(top, path) if path else top for path in self._specs.plain_paths()] or [top]

    def would_lose(self, files: Iterable[str]) -> list[str]:
        """Return those of `files` (resolved paths) with changes that it may discard."""
        names = {os.path.relpath(file, self._top): file for file in files if file.startswith(self._top + "/")}
        names = {name: file for name, file in names.items() if self._specs.matches(name) is not False}
        repository = Repository(self._top, SECONDS, self._call.top, self._call.environment)
        try:
            tracked = set(repository.tracked(names))
            if self._call.words[0] == "stash" and self._options.has(*_WITH_UNTRACKED):
                return list(names.values())
            if self._call.words[0] != "clean":
                return [names[name] for name in names if name in tracked]
            cleaned = set(repository.untracked(names, with_ignored=self._options.has("-x", "-X")))
        except (NoAnswer, Refused):
            return list(names.values())  # git does not answer: it may lose each of them
        new = [name for name in names if name in cleaned or not os.path.lexists(names[name])]
        return [names[name] for name in new if name not in tracked]


_WITH_UNTRACKED = ("-u", "--include-untracked", "-a", "--all")


def deed_of(words: list[str]) -> str:
    """Return the verb for the effect of ``git <words>`` on uncommitted changes."""
    verb, goes_on = words[0], any(word in ("--abort", "--skip", "--continue") for word in words)
    if verb == "stash" or (verb in ("rebase", "merge", "pull") and not goes_on):
        return "put aside"
    if verb in ("add", "stage", "update-index", "apply"):
        return "stage"
    if verb == "commit" or "--continue" in words:
        return "commit"
    if verb == "mv" and not {"-f", "--force"}.intersection(words):
        return "move"
    return "throw away"
