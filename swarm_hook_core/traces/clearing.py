"""What a call clears: files and folders that it removes with all in them, or in which git throws changes away.

Two writes of one file meet by its name, whichever comes first (``verdict``). Here the name of the file is not known
beforehand, so what is cleared is noted as a whole, before the call looks at what others do (``clears`` in its journal;
``spares`` where it is denied). Whoever writes a file in there meets that note. The other way round the call meets
writes in there that are being checked, or were let pass and are not made yet.

Only what is bounded is noted: not what a predicate picks out of a folder (``find -delete``), nor what git does by an
alias, or where it puts changes aside and brings them back (``--autostash``).
"""

import os

from swarm_hook_core.change import REMOVE
from swarm_hook_core.traces import keys_of

MOST = 50  # folders, and git commands, of one call that are looked at
_VERBS = ("checkout", "clean", "reset", "restore", "stash", "switch")  # of git: those that lose what is changed


def places_of(effects) -> dict:
    """``{absolute path without links: what happens to all that is in it, as a verb}`` of a call with these Effects."""
    if effects is None or not (effects.trees or effects.git):
        return {}
    found: dict = {}
    for tree in effects.trees[:MOST]:
        if tree.how == REMOVE and tree.is_whole and os.path.exists(tree.root) and not os.path.islink(tree.root):
            found[os.path.realpath(tree.root)] = REMOVE
    for git_call in effects.git[:MOST]:
        clearing = GitClearing.of(git_call)
        if clearing is not None:
            found.update(dict.fromkeys(clearing.places, clearing.deed))
    return found


def note(trail, kind: str, places, at_ns: int = 0) -> None:
    """Add to `trail` that the call ``clears``, or ``spares``, these `places`, as `places_of` has them."""
    for path, deed in places.items():
        inside = trail.places_with(path) if deed == REMOVE else ()  # git leaves other repositories alone
        for place in {trail.place_of(path), *inside}:
            for key in keys_of(path):
                trail.note_at(key, kind, deed, at_ns, place)


def endangered(effects, meetings) -> list:
    """``(Trace, how, by)`` of others' writes that are still to come where git commands of the call lose them."""
    found = []
    for git_call in effects.git[:MOST]:
        clearing = GitClearing.of(git_call)
        if clearing is not None:
            coming = {trace.path: trace for place in clearing.places for trace in meetings.pending_below(place)}
            found += [(coming[path], REMOVE, git_call.by) for path in clearing.would_lose(coming)] if coming else []
    return found


class GitClearing:
    """A git command that loses what is changed: in `places` (without links), `deed` says how."""

    __slots__ = ("places", "deed", "_call", "_top", "_options", "_specs")

    @classmethod
    def of(cls, git_call):
        """That of a GitCall; None for one that loses nothing, or may not run where it seems to."""
        if git_call.words[0] not in _VERBS or git_call.in_doubt:
            return None
        from swarm_hook_core.shell.programs.git import by_words
        from swarm_hook_core.shell.programs.git.command_line import tree_of
        from swarm_hook_core.shell.programs.git.table import asks, options_of

        top, options = tree_of(git_call), options_of(git_call.words)
        if top is None or not asks(git_call.words) or options.has("-p", "--patch"):
            return None
        named = by_words.losing(git_call, git_call.words)
        return None if named is None else cls(git_call, top, options, named)

    def __init__(self, git_call, top: str, options, named):
        from swarm_hook_core.shell.programs.git.pathspec import Pathspec
        from swarm_hook_core.traces.sweeps import deed_of

        prefix = os.path.relpath(os.path.realpath(git_call.folder), top)
        prefix = "" if prefix == "." or prefix.startswith("..") else prefix
        self._call = git_call
        self._top = top
        self._options = options
        self._specs = Pathspec(["\0"] if options.has("--pathspec-from-file") else named, prefix, top, git_call.found)
        self.deed = deed_of(git_call.words)
        self.places = [os.path.join(top, path) if path else top for path in self._specs.plain_paths()] or [top]

    def would_lose(self, files) -> list:
        """Those of `files`, absolute paths without links, that it may lose once they are changed."""
        from swarm_hook_core.shell.programs.git.repository import NoAnswer, Refused, Repository
        from swarm_hook_core.traces.sweeps import SECONDS

        names = {os.path.relpath(file, self._top): file for file in files if file.startswith(self._top + "/")}
        names = {name: file for name, file in names.items() if self._specs.matches(name) is not False}
        repository = Repository(self._top, SECONDS, self._call.top, self._call.environment)
        try:
            tracked = set(repository.tracked(names))
            if self._call.words[0] != "clean":
                both = self._call.words[0] == "stash" and self._options.has(*_WITH_UNTRACKED)
                return list(names.values()) if both else [names[name] for name in names if name in tracked]
            cleaned = set(repository.untracked(names, with_ignored=self._options.has("-x", "-X")))
        except (NoAnswer, Refused):
            return list(names.values())
        new = [name for name in names if name in cleaned or not os.path.lexists(names[name])]
        return [names[name] for name in new if name not in tracked]


_WITH_UNTRACKED = ("-u", "--include-untracked", "-a", "--all")
