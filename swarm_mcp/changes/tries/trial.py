"""A picture of a work tree with its authors by name, for the command that chooses among them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from swarm_hook_core.repository import Tree
from swarm_hook_core.traces.versions.notes import Author
from swarm_hook_core.untrusted_text import named
from swarm_mcp.changes.owners import PERSONS, Owners
from swarm_mcp.changes.tries.folder import place_of
from swarm_mcp.changes.tries.picture import Chosen, Group, Picture, Wanted
from swarm_mcp.changes.tries.running import Run
from swarm_mcp.changes.tries.space import Command
from swarm_mcp.cli.arguments import Arguments
from swarm_mcp.folders import current_scope

Session = tuple[str, str]

NAMED = 5  # files that a line names
TOLD = "told"  # a file in the work tree's place: its ignored files have been spoken of


class Trial:
    """The commands on one picture of a work tree, for the session `own`."""

    def __init__(self, tree: Tree, picture: Picture, owners: Owners, own: Session):
        self.tree = tree
        self.picture = picture
        self.own = own
        self._owners = owners
        for author in self._authors():
            owners.name(author)  # it is known from now on, without the store

    def _authors(self) -> list[Author]:
        """Return the authors of all changes, and of lines that others have rewritten."""
        found = [author for some in self.picture.authors.values() for author in some]
        return [*found, *(author for one in self.picture.changed for pair in one.rewritten for author in pair)]

    def session_called(self, word: str, args: Arguments) -> Session:
        """Return the session that a word of the command line names; ``person`` for a person's."""
        if word.strip() in ("person", "a person"):
            return PERSONS
        return self._owners.chosen(word, current_scope(args.value("--scope")), self._authors())

    def name(self, group: Group) -> str:
        """Return the possible makers of a change in words: ``you or codex 5f0c2f6e``."""
        return " or ".join(dict.fromkeys(map(self._name, self.picture.authors[group])))

    def _name(self, author: Author) -> str:
        if author.session == self.own:
            return "you"
        return self._owners.name(author)

    def files(self, group: Group) -> str:
        """Return the files with changes of a group in words."""
        return listed(self.picture.groups[group])

    def named(self, groups: Sequence[Group]) -> str:
        """Return groups with their files in words."""
        return "; ".join(f"{self.name(group)} ({self.files(group)})" for group in groups)

    def described(self, groups: Sequence[Group]) -> list[dict[str, Any]]:
        """Return groups as objects for programs."""
        return [{"who": self.name(group), "files": self.picture.groups[group]} for group in groups]

    def parted(self, wanted: Wanted) -> tuple[list[Group], list[Group]]:
        """Return the groups that are wanted, and the others."""
        groups = list(self.picture.groups)
        return [one for one in groups if wanted(one)], [one for one in groups if not wanted(one)]

    def notes(self, wanted: Wanted, chosen: Chosen) -> list[str]:
        """Return lines about the content, for a reader of the answer."""
        inside, outside = self.parted(wanted)
        found = [f"the last commit with {self.named(inside) or 'no uncommitted lines'}"]
        if outside:
            found[0] += f"; without {self.named(outside)}"
        doubtful = [group for group in inside if len(group) > 1]
        if doubtful:
            found.append(f"not certain, and in: the lines of {self.named(doubtful)}")
        found += [
            f"left out, as its lines have no known order: {place.words} ({self._owners.names(place.authors)})"
            for place in chosen.unplaced
        ]
        return [*found, *self._rewritten(inside)]

    def _rewritten(self, inside: Sequence[Group]) -> list[str]:
        """Return lines about the chosen authors' lines that other authors have replaced."""
        counts: dict[tuple[str, str, str], int] = {}
        sessions = {session for group in inside for session in group}
        for one in self.picture.changed:
            for author, other in one.rewritten:
                if author.session in sessions and other.session not in sessions:
                    key = (self._name(author), one.file.name, self._name(other))
                    counts[key] = counts.get(key, 0) + 1
        return [
            f"{count} line{'s' * (count > 1)} of {who} in {named(name)} {('was', 'were')[count > 1]} rewritten by"
            f" {other}: the present ones are by {other}"
            for (who, name, other), count in counts.items()
        ]

    def is_first(self) -> bool:
        """Return True if nothing was tried in this work tree yet."""
        path = os.path.join(place_of(self.tree.own), TOLD)
        if os.path.exists(path):
            return False
        with contextlib.suppress(OSError), open(path, "w", encoding="utf-8"):
            pass
        return True

    def run(self, wanted: Wanted, command: Command, only: Callable[[str, int], bool] | None = None) -> Run:
        """Return a run of the command on the wanted lines. Its output is caught."""
        return Run(self.tree, self.picture, self.picture.content(wanted, only), command, is_caught=True)


def listed(names: Sequence[str]) -> str:
    """Return some names in words."""
    words = ", ".join(map(named, names[:NAMED]))
    if len(names) > NAMED:
        words += f" and {len(names) - NAMED} more"
    return words
