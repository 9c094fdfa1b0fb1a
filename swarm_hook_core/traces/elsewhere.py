"""Other repositories with journals of other sessions, and commands that may reach into them.

A command in a place without other sessions is not parsed, as parsing takes longer than the rest of a check. But it may
write in another repository where a session has traces. So its text is searched, with a bias towards yes, for folder
names of those repositories, for variables and other things known only at run time, for ways out of the folder, and for
patterns.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from swarm_hook_core import REMOVE
from swarm_hook_core.config import SHELL_TOOLS
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.paths import contains
from swarm_hook_core.traces import journal, keys_of, names_in, others_in, traces_dir

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.shell.call import Options
    from swarm_hook_core.shell.model import Effects, GitCall
    from swarm_hook_core.traces.meetings import Meetings
    from swarm_hook_core.traces.others import Trace
    from swarm_hook_core.traces.trail import Trail

MARKS = ("..", "~", "$", "`")  # parts of names that are not literal, or that lead out of the folder
PATTERN = "*?[{"
HARMLESS = "/dev/null"
_NO_FOLDER = ";&|)}<>#\n-0123456789"  # characters after a ``cd`` without operand
_QUOTES = str.maketrans("", "", "\\\"'")
_IN_NAMES = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_.-/")


def places_of_others(own_name: str) -> dict[str, list[str]]:
    """Return ``{place: top folders of its work trees}`` of all places with journals of others than `own_name`.

    The list is empty if no journal names a folder.
    """
    found: dict[str, list[str]] = {}
    for name in names_in(traces_dir()):
        place = os.path.join(traces_dir(), name)
        others = others_in(place, own_name)
        if others:
            folder = next(filter(None, map(journal.folder_of, others)), "")
            found[place] = _trees_of(folder) if folder else []
    return found


def could_lead(call: ToolCall, places: dict[str, list[str]]) -> bool:
    """Return True if `call`, which names no files, may reach one of `places`, a result of `places_of_others`."""
    if not places:
        return False
    if call.tool not in SHELL_TOOLS or not all(places.values()):
        return True
    from swarm_hook_core.opaque_calls import shell_text

    folders = [top for tops in places.values() for top in tops]
    own = {call.folder, os.path.realpath(call.folder)}
    if any(contains(folder, top) for top in folders for folder in own):
        return True
    return _names_one(shell_text(call.tool, call.input).translate(_QUOTES).lower(), own, folders)


def places_with(trail: Trail, root: str) -> dict[str, list[str]]:
    """Return ``{place: folders in it}`` at and below absolute `root`, nested repositories included."""
    own, real, inside = trail.place_of(root), os.path.realpath(root), {}
    for place, tops in trail.places_of_others().items():
        below = [top for top in tops if top != real and contains(real, top)]
        if below:
            inside[place] = below
    return {**inside, own: [root, *inside.get(own, ())]}


def _names_one(text: str, own: Collection[str], folders: list[str]) -> bool:
    """Return True if `text`, in lower case without quotes, may name one of `folders`, seen from `own`."""
    if any(mark in text for mark in MARKS) or _goes_home(text):
        return True
    if any(os.path.basename(folder).lower() in text for folder in folders):
        return True
    rest = f"{text} ".replace(HARMLESS, "")
    for folder in own:
        rest = rest.replace(f"{folder.lower()}/", "").replace(f"{folder.lower()} ", " ")
    if all(part[-1:] in _IN_NAMES for part in rest.split("/")[:-1]):
        return False  # no absolute path
    if any(letter in rest for letter in PATTERN):
        return True
    over = {name for folder in folders for name in folder.lower().split("/")[:-1]}
    return any(_has_ended(rest, f"/{name}") for name in over)


def _goes_home(text: str) -> bool:
    """Return True if `text` has a ``cd`` without operand, or with options."""
    return any((part.lstrip(" \t") or ";")[0] in _NO_FOLDER for part in text.split("cd")[1:])


def _has_ended(text: str, path: str) -> bool:
    """Return True if a path in `text` ends with `path`, with or without a slash."""
    at = text.find(path)
    while at >= 0:
        end = at + len(path)
        behind = text[end : end + 2].removeprefix("/")[:1]
        if not behind or behind not in _IN_NAMES:
            return True
        at = text.find(path, at + 1)
    return False


def _trees_of(folder: str) -> list[str]:
    """Return the tops of all work trees of the clone around `folder`, or the folder itself outside of any."""
    from swarm_hook_core.repository import tree_at, trees_beside

    tree = tree_at(folder)
    if tree is not None:
        return trees_beside(tree)
    return [folder]


# Calls that clear a folder: they remove it with everything in it, or git discards all changes in it.
#
# Writes of one file by two sessions meet by the file's name (``stakes.writes``). Here the names are not known
# beforehand, so the folder is noted as a whole before the call looks at others' traces (``clears`` in its journal,
# ``spares`` after a denial). A write of a file in the folder meets that entry. In the other direction, the call meets
# pending writes in the folder.
#
# Not noted, as their extent is unknown: files that a predicate selects (``find -delete``), git aliases, and git
# commands that bring the changes back (``--autostash``).

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


def endangered(effects: Effects | None, meetings: Meetings) -> list[tuple[Trace, str, str]]:
    """Return ``[(Trace, how, by)]`` of others' pending writes that git commands of the call would discard."""
    found: list[tuple[Trace, str, str]] = []
    if effects is None:
        return found
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
        from swarm_hook_core.shell.programs.git import uncommitted
        from swarm_hook_core.shell.programs.git.listings import tree_of
        from swarm_hook_core.shell.programs.git.table import asks, options_of

        top, options = tree_of(git_call), options_of(git_call.words)
        if top is None or not asks(git_call.words) or options.has("-p", "--patch"):
            return None
        named = uncommitted.losing(git_call, git_call.words)
        if named is None:
            return None
        return cls(git_call, top, options, named)

    def __init__(self, git_call: GitCall, top: str, options: Options, named: list[str]):
        from swarm_hook_core.shell.programs.git.named_files import Pathspec

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
        from swarm_hook_core.git_repository import NoAnswer, Refused, Repository

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
