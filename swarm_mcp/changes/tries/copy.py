"""A folder with the checkout's files, for a try where no overlay can be.

Tracked files come from git, by an index of the folder's own. Ignored files (``node_modules``, ``.venv``, a build) are
copied; a later try copies those that have changed in the checkout. The folder has a repository of its own, with the
objects of the real one: a commit in it stays in it.

The folder stands at the checkout's own path if the kernel lets it (``space.Bound``). Else the command runs in the
folder itself, and the checkout's path is replaced in the copies, the environment and the command. An ignored folder
with binary files that name this path begins empty, as a build folder of its own. Dependencies cannot: then there is no
honest try.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence

from swarm_hook_core.state import make_private, write_private
from swarm_mcp.changes.commit.apart import Git, last_words, split
from swarm_mcp.changes.tries.folder import LARGEST, Folder, is_secret, remove
from swarm_mcp.changes.tries.picture import Picture
from swarm_mcp.changes.tries.space import Bound
from swarm_mcp.errors import Refused

# Of the repository's common folder, and of the work tree's own.
_COMMON = ("config", "packed-refs", "refs", "reftable", "info", "hooks", "shallow")
_OWN = ("HEAD", "config.worktree", os.path.join("info", "sparse-checkout"))
_DEPENDENCIES = ("node_modules", "vendor", "site-packages")
MEBIBYTE = 1 << 20


class Copy:
    """The copy in a Folder. `is_bound`: it will stand at the checkout's path."""

    def __init__(self, folder: Folder, picture: Picture, is_bound: bool):
        self._folder = folder
        self._tree = folder.tree
        self._picture = picture
        self._is_bound = is_bound
        self.objects = folder.at("shared")  # where the real objects stand if the copy covers them
        self.root = folder.at("copy", os.path.basename(folder.tree.top) or "work")
        environment = {"GIT_INDEX_FILE": folder.at("index"), "GIT_WORK_TREE": self.root, "GIT_DIR": folder.tree.own}
        self._git = Git(folder.tree.top, "", environment)
        self._known: dict[str, list[int]] = {}  # copied ignored files: path -> time and size in the checkout
        self._empty: set[str] = set()  # ignored folders that began empty
        self._load()

    def refresh(self) -> None:
        """Bring the copy up to the checkout, its uncommitted files as in the last commit. Raises Refused, OSError."""
        is_new = not os.path.isdir(self.root)
        make_private(self.root)
        make_private(self.objects)
        remove(os.path.join(self.root, ".git"))
        self._ask("read-tree", "--reset", "-u", "HEAD")
        self._ask("clean", "-ffdq")
        if is_new:
            self._take_times()
        self._mirror()
        self._save()
        self._make_repository()

    def mounts(self) -> list[Bound]:
        """Return the mounts of a bound copy."""
        objects = Git(self._tree.top).path("objects")
        return [Bound(objects, self.objects), Bound(self.root, self._tree.top)]

    def add_index(self) -> None:
        """Give the copy's repository its index, once all files are there."""
        shutil.copy2(self._folder.at("index"), os.path.join(self.root, ".git", "index"))

    def written(self) -> list[str]:
        """Return the names of the files that are not as in the last commit, ignored ones left out."""
        remove(os.path.join(self.root, ".git"))
        return list(dict.fromkeys(split(self._ask("ls-files", "-z", "-m", "-d", "-o", "--exclude-standard"))))

    def remove_secrets(self) -> None:
        """Remove the copies of files with secrets."""
        for name in filter(is_secret, list(self._known)):
            remove(os.path.join(self.root, name))
            del self._known[name]
        self._save()

    def moved(self, text: str) -> str:
        """Return a text with the copy's path in the place of the checkout's."""
        return re.sub(re.escape(self._tree.top) + r"(?![\w.-])", lambda _found: self.root, text)

    def _ask(self, *words: str) -> str:
        done = self._git.run(words, folder=self.root)
        if done.returncode:
            raise Refused(f"no copy of the checkout can be made: git {words[0]}: {last_words(done)}")
        return os.fsdecode(done.stdout)

    def _take_times(self) -> None:
        """Give the files that are as in the checkout its times: an earlier build goes on to fit."""
        for name in split(self._ask("ls-files", "-z")):
            if name not in self._picture.states:
                try:
                    at_ns = os.lstat(os.path.join(self._tree.top, name)).st_mtime_ns
                    os.utime(os.path.join(self.root, name), ns=(at_ns, at_ns), follow_symlinks=False)
                except OSError:
                    continue  # left out of a sparse checkout
        self._git.run(["update-index", "-q", "--refresh"], folder=self.root)

    # ------------------------------------------------------------------------------------------- ignored files

    def _load(self) -> None:
        try:
            with open(self._folder.at("copied"), encoding="utf-8", errors="surrogateescape") as file:
                known = json.load(file)
            self._known, self._empty = known["files"], set(known["empty"])
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            pass  # a new copy

    def _save(self) -> None:
        write_private(self._folder.at("copied"), json.dumps({"files": self._known, "empty": sorted(self._empty)}))

    def _mirror(self) -> None:
        """Copy the ignored files, and those of submodules, that are new or have changed in the checkout."""
        shared = Git(self._tree.top)
        words = ("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory", "--no-empty-directory")
        tops = [name.rstrip("/") for name in split(shared.ask(*words))]
        staged = split(shared.ask("ls-files", "-s", "-z"))
        tops += [one.partition("\t")[2] for one in staged if one.startswith("160000")]
        found, total = {}, 0
        for top in tops:
            if top not in self._empty:
                for name, facts in _files(self._tree.top, top):
                    found[name] = [facts.st_mtime_ns, facts.st_size]
                    total += facts.st_size
        if total > LARGEST:
            raise Refused(
                f"no try here: its ignored files take {total // MEBIBYTE} MiB, and at most {LARGEST // MEBIBYTE} are"
                " copied"
            )
        for name in self._known.keys() - found.keys():
            remove(os.path.join(self.root, name))
        fixed: dict[str, str] = {}  # an ignored folder -> a file in it that cannot be corrected
        for name, marks in found.items():
            target = os.path.join(self.root, name)
            if self._known.get(name) != marks:  # else a command may have removed it
                remove(target)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copy2(os.path.join(self._tree.top, name), target, follow_symlinks=False)
                if not self._is_bound and not self._correct(target):
                    fixed.setdefault(_top_of(name, tops), name)
        self._known = found
        for top, name in fixed.items():
            self._begin_empty(top, name)

    def _correct(self, path: str) -> bool:
        """Replace the checkout's path in a copy. Return False if that cannot be done: it is a binary file."""
        facts = os.lstat(path)
        if stat.S_ISLNK(facts.st_mode):
            target = os.readlink(path)
            if self.moved(target) != target:
                os.unlink(path)
                os.symlink(self.moved(target), path)
            return True
        with open(path, "rb") as file:
            data = file.read()
        if os.fsencode(self._tree.top) not in data:
            return True
        if path.endswith(".pyc"):
            os.unlink(path)  # Python makes it anew
        elif b"\0" in data:
            return False
        else:
            with open(path, "wb") as file:
                file.write(os.fsencode(self.moved(os.fsdecode(data))))
            os.utime(path, ns=(facts.st_mtime_ns, facts.st_mtime_ns))
        return True

    def _begin_empty(self, top: str, name: str) -> None:
        folder = os.path.join(self._tree.top, top)
        is_needed = os.path.isfile(os.path.join(folder, "pyvenv.cfg")) or os.path.basename(top) in _DEPENDENCIES
        if is_needed or not os.path.isdir(folder):
            self._folder.clear()
            raise Refused(f"no honest try here: {name} names the path of this checkout, and cannot be corrected")
        remove(os.path.join(self.root, top))
        self._empty.add(top)
        self._known = {one: facts for one, facts in self._known.items() if _top_of(one, [top]) != top}

    # ------------------------------------------------------------------------------------------- the repository

    def _make_repository(self) -> None:
        own = os.path.join(self.root, ".git")
        make_private(own)
        for source, names in ((self._tree.common, _COMMON), (self._tree.own, _OWN)):
            for name in names:
                path, target = os.path.join(source, name), os.path.join(own, name)
                if os.path.isdir(path):
                    shutil.copytree(path, target, symlinks=True, dirs_exist_ok=True)
                elif os.path.isfile(path):
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    shutil.copy2(path, target)
        os.makedirs(os.path.join(own, "refs"), exist_ok=True)
        shared = Git(self._tree.top)
        info = os.path.join(own, "objects", "info")
        os.makedirs(info)
        objects = shared.path("objects")
        if self._is_bound:
            objects = self.objects
        with open(os.path.join(info, "alternates"), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{objects}\n{self._folder.at('objects')}\n")
        modules = shared.path("modules")
        if os.path.isdir(modules):
            shutil.copytree(modules, os.path.join(own, "modules"), symlinks=True)


def _files(top: str, name: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files and links at and below a name, with their facts."""
    path = os.path.join(top, name)
    if not os.path.isdir(path) or os.path.islink(path):
        folders: list[tuple[str, Sequence[str]]] = [(os.path.dirname(path), [os.path.basename(path)])]
    else:
        folders = [
            (folder, [*names, *(one for one in inner if os.path.islink(os.path.join(folder, one)))])
            for folder, inner, names in os.walk(path)
        ]
    for folder, names in folders:
        for one in names:
            try:
                facts = os.lstat(os.path.join(folder, one))
            except OSError:
                continue  # gone just now
            if stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode):
                yield os.path.relpath(os.path.join(folder, one), top), facts


def _top_of(name: str, tops: Sequence[str]) -> str:
    """Return the one of these ignored names that `name` is, or lies in; else an empty text."""
    return next((top for top in tops if name == top or name.startswith(top + "/")), "")
