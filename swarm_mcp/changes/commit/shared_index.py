"""The shared index after a commit that was made beside it.

entry as in the old HEAD, or missing in both    the new commit's entry
entry as in the new commit                      left
another content was staged                      merged, three ways: old HEAD, entry, new commit
the same, but it does not merge                 the new commit's entry if no other author has changed the file;
                                                else left, and named
"""

from __future__ import annotations

import os
import shutil

from swarm_hook_core.state import make_private
from swarm_mcp.changes.commit.git import NO_FILE, Git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from swarm_mcp.changes.commit.git import Entry

_FILES = ("100644", "100755")


class Mending:
    """The change of the shared index from the commit `old` (empty: none) to `new`.

    `sole`: paths with no other author's changes. `left`: after the call, paths with staged content of others that does
    not merge.
    """

    def __init__(self, git: Git, old: str, new: str, sole: Collection[str]):
        self._git = git
        self._none = (NO_FILE, "0" * len(new))
        self._sole = sole
        self.left: list[str] = []
        self._changed = git.between(old or git.ask("mktree").strip(), new)

    @property
    def paths(self) -> list[str]:
        """The paths that the commit changes."""
        return list(self._changed)

    def write(self, path: str) -> None:
        """Write the coming shared index to `path`; the present one must be locked."""
        index = self._git.path("index")
        if os.path.exists(index):
            shutil.copy2(index, path)  # its time tells git the entries that may be older than their files
        git = self._git.with_index(path)
        entries = git.entries(list(self._changed))
        git.set_entries(self._mended(entries, os.path.dirname(path)))
        git.run(["update-index", "-q", "--refresh"])  # notes the files' times, so that git need not read them again

    def _mended(self, entries: dict[str, Entry], folder: str) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        self.left = []
        for path, (old, new) in self._changed.items():
            entry = entries.get(path, self._none)
            if entry == new:
                continue
            if entry == old or self._is_intent(entry, old):
                found[path] = new
                continue
            merged = self._merged(old, entry, new, folder)
            if merged is not None:
                found[path] = merged
            elif path in self._sole:
                found[path] = new
            else:
                self.left.append(path)
        return found

    def _is_intent(self, entry: Entry, old: Entry) -> bool:
        """Return True for an entry of ``git add -N``: empty, of a new file."""
        return old[0] == NO_FILE and self._git.line("cat-file", "-s", entry[1]) == "0"

    def _merged(self, old: Entry, entry: Entry, new: Entry, folder: str) -> Entry | None:
        """Return the merge of the two entries' contents, or None if they overlap. `folder`: for files in between."""
        if not all(one[0] in _FILES for one in (old, entry, new)):
            return None
        names = []
        base = os.path.join(folder, "tree", ".merge")
        make_private(base)
        for name, one in (("entry", entry), ("old", old), ("new", new)):
            names.append(os.path.join(base, name))
            with open(names[-1], "wb") as file:
                file.write(self._git.run(["cat-file", "blob", one[1]]).stdout)
        done = self._git.run(["merge-file", "-p", "-q", *names])
        if done.returncode:
            return None
        name = self._git.ask("hash-object", "-w", "--stdin", data=done.stdout).strip()
        return (new[0] if entry[0] == old[0] else entry[0]), name
