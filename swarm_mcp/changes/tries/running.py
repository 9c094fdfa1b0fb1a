"""One run of a command on a content: in an overlay, in a copy at the checkout's path, or in a copy of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO, NamedTuple

from swarm_hook_core.kernel import namespace
from swarm_hook_core.repository import Tree
from swarm_hook_core.state import make_private, write_private
from swarm_mcp import processes
from swarm_mcp.changes.commit.git import Git, last_words, split
from swarm_mcp.changes.commit.landing import Moved
from swarm_mcp.changes.tries import folder as folders
from swarm_mcp.changes.tries import space
from swarm_mcp.changes.tries.folder import LARGEST, Folder, is_secret, remove
from swarm_mcp.changes.tries.picture import PRESENT, Chosen, Picture
from swarm_mcp.changes.tries.space import Bound, Command
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.processes import Reaper

# A copy: a folder with the checkout's files, for a try where no overlay can be.
#
# Tracked files come from git, by an index of the folder's own. Ignored files (``node_modules``, ``.venv``, a build) are
# copied; a later try copies those that have changed in the checkout. The folder has a repository of its own, with the
# objects of the real one: a commit in it stays in it.
#
# The folder stands at the checkout's own path if the kernel lets it (``space.Bound``). Else the command runs in the
# folder itself, and the checkout's path is replaced in the copies, the environment and the command. An ignored folder
# with binary files that name this path begins empty, as a build folder of its own. Dependencies cannot: then there is
# no honest try.

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


# The run.


# The ways, the best one first. The second is an overlay with its upper files in memory.
OVERLAY, MEMORY, BOUND, COPY = "overlay", "overlay in memory", "bound copy", "copy"
GRACE = 3.0  # seconds from TERM to KILL for processes that a command without a namespace leaves
BUSY = "busy"  # a file in the folder while a try uses it
OPAQUE = "user.overlay.opaque"  # of a folder in an overlay: it hides the one below


class Result(NamedTuple):
    """A finished run.

    code     the command's exit code, or 128 and the number of the signal that ended it
    way      OVERLAY, MEMORY, BOUND or COPY
    changed  files that changed in the checkout meanwhile, and were seen by the command: its answer may be of both
    written  files that the command wrote, ignored ones left out
    output   its output, if it was caught
    """

    code: int
    way: str
    changed: list[str]
    written: list[str]
    output: bytes = b""


def ways(tree: Tree) -> list[str]:
    """Return the ways that may work in this work tree, the best one first."""
    if not sys.platform.startswith("linux") or not namespace.works():
        return [COPY]
    if _has_mounts(tree) or _has_foreign_files(tree):
        return [BOUND, COPY]
    if os.path.isdir(folders.MEMORY):
        return [OVERLAY, MEMORY, BOUND, COPY]
    return [OVERLAY, BOUND, COPY]


def _has_mounts(tree: Tree) -> bool:
    """Return True if something is mounted below the work tree: an overlay would not have it."""
    with open("/proc/self/mountinfo", "rb") as file:
        points = namespace.mount_points(file.read())
    return any(os.fsdecode(point).startswith((tree.top + "/", tree.common + "/")) for point in points)


def _has_foreign_files(tree: Tree) -> bool:
    """Return True if files belong to a user or group that a namespace of this user does not have."""
    if os.geteuid() == 0:
        return False
    mine = (os.geteuid(), os.getegid())
    folders_ = [tree.top, tree.common]
    try:
        paths = [*folders_, *(one.path for folder in folders_ for one in os.scandir(folder))]
        return any((found.st_uid, found.st_gid) != mine for found in map(os.lstat, paths))
    except OSError:
        return True  # a file vanished just now, or cannot be read


class Run:
    """A run of `command` on the `chosen` content of a picture. Use it as a context: `end` is called in any case.

    is_caught  True: the output is part of the result
    """

    def __init__(self, tree: Tree, picture: Picture, chosen: Chosen, command: Command, is_caught: bool = False):
        self._tree = tree
        self._picture = picture
        self._files = chosen.files
        self._command = command
        self._stack, self._taken = contextlib.ExitStack(), contextlib.ExitStack()
        self._output: IO[bytes] | None = None
        if is_caught:
            self._output = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 the stack closes it
            self._command = command._replace(output=self._output.fileno())
        self._own = {name for name, one in chosen.files.items() if one.kind != PRESENT}
        self._pid = 0
        self._copy: Copy | None = None
        self.folder: Folder | None = None
        self.way = ""
        self.root = ""  # of the files that the command wrote, once it has ended

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_failed: object) -> None:
        if self._pid:
            space.end(self._pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
        try:
            if self.folder is not None:
                self._clear()
        finally:
            self._taken.close()
            self._stack.close()

    # ------------------------------------------------------------------------------------------- the beginning

    def begin(self, among: Sequence[str] = ()) -> None:
        """Start the command, in the best way that works here, or the first one of `among`. Raises SwarmError."""
        why = ""
        for way in among or ways(self._tree):
            try:
                self._begin(way)
                self.way = way
                return
            except space.NoView as error:
                why = why or str(error)
            except OSError as error:
                raise SwarmError(f"nothing was run: {error}") from None
            self._taken.close()
            self.folder = None
        raise Refused(f"no honest try here: {why}")

    def _begin(self, way: str) -> None:
        self.folder = self._taken.enter_context(folders.taken(self._tree, way == MEMORY))
        if os.path.lexists(self.folder.at(BUSY)):
            self._clear()  # the last try was killed
        with open(self.folder.at(BUSY), "w", encoding="utf-8"):
            pass
        self.folder.store(self._files)
        self.folder.plan(self._files)
        if way in (OVERLAY, MEMORY):
            mounts = self._layers()
            self._pid = space.begin(mounts, self._prepare_overlay, self._command)
            self.root = self.folder.at("upper")
        else:
            self._copy = Copy(self.folder, self._picture, way == BOUND)
            self._copy.refresh()
            self.folder.place(self._copy.root, is_copy=True)
            self._copy.add_index()
            self.root = self._copy.root
            if way == BOUND:
                self._pid = space.begin(self._copy.mounts(), lambda: None, self._command)
        self.folder.save()

    def _layers(self) -> list[space.Overlay]:
        """Make the upper folders of the overlays. The second is for a repository outside of the work tree."""
        assert self.folder is not None
        lowers = {"upper": self._tree.top}
        if not (self._tree.common + "/").startswith(self._tree.top + "/"):
            lowers["repository"] = self._tree.common
        found = []
        for name, lower in lowers.items():
            upper, work = self.folder.at(name), self.folder.at(f"{name}.work")
            os.makedirs(upper, exist_ok=True)
            shutil.copystat(lower, upper)
            remove(work)
            os.mkdir(work)
            found.append(space.Overlay(lower, upper, work))
        return found

    def _prepare_overlay(self) -> None:
        """Write the content over the checkout's files, and take others' content out of the index."""
        assert self.folder is not None
        self.folder.place(self._tree.top, is_copy=False)
        git = Git(self._tree.top)
        remove(git.path("index.lock"))
        staged = set(split(git.ask("diff-index", "--cached", "-z", "--name-only", "--no-renames", self._picture.head)))
        known = {one.file.name: one.file for one in self._picture.changed}
        entries = {}
        for name in staged & self._own & known.keys():
            file = known[name]
            entries[name] = (file.old_mode or "000000", file.old_id or "0" * len(self._picture.head))
        git.set_entries(entries)

    # ------------------------------------------------------------------------------------------- the end

    def end(self) -> Result:
        """Wait for the command. Return its Result."""
        assert self.folder is not None
        if self._pid:
            code = space.attend(self._pid)
            self._pid = 0
        else:
            code = self._run_in_copy()
        if code < 0:
            code = 128 - code
        written = self._written()
        output = b""
        if self._output is not None:
            self._output.seek(0)
            output = self._output.read()
        return Result(code, self.way, self._picture.changed_since(self._own), written, output)

    def _run_in_copy(self) -> int:
        """Run the command in the copy, where the kernel has no namespaces. All its processes end with it."""
        assert self._copy is not None
        command, copy, run_id = self._command, self._copy, os.urandom(8).hex()
        environment = {name: copy.moved(value) for name, value in command.environment.items()}
        environment[processes.RUN_ID] = run_id
        output = None
        if command.output >= 0:
            output = command.output
        reaper = Reaper().start()
        try:
            child = subprocess.Popen(
                [copy.moved(word) for word in command.argv],
                cwd=copy.moved(command.folder), env=environment, stdout=output, stderr=output,
                start_new_session=not sys.stdin or not sys.stdin.isatty(),
                preexec_fn=lambda: reaper.watch(os.getpid()),
            )  # fmt: skip
        except OSError as error:
            reaper.release()
            sys.stderr.write(f"try failed: {command.argv[0]}: {error.strerror}\n")
            if isinstance(error, FileNotFoundError):
                return space.NOT_FOUND
            return space.CANNOT_RUN
        try:
            code = space.attend(child.pid)
            child.returncode = code
            processes.end(child.pid, run_id, 0, GRACE)
        except BaseException:
            reaper.close()
            raise
        reaper.release()
        return code

    def _written(self) -> list[str]:
        assert self.folder is not None
        if self._copy is not None:
            return self.folder.changed(self._copy.written(), self.root)
        files, ignored = self._below()
        return self.folder.changed([name for name in files if name not in ignored], self.root)

    def _below(self) -> tuple[list[str], set[str]]:
        """Return the files that differ in the overlay, and the files and folders among them that git ignores."""
        assert self.folder is not None
        files, folders_ = _below(self.folder.at("upper"), self._tree.top)
        return files, self.folder.ignored([*files, *folders_])

    def _clear(self) -> None:
        """Remove all but the ignored files that the command wrote, and these above LARGEST bytes."""
        folder = self.folder
        assert folder is not None
        for name in ("stored", "upper.work", "repository", "repository.work"):
            remove(folder.at(name))
        if self._copy is not None:
            self._copy.remove_secrets()
            remove(folder.at(BUSY))
            folder.measure()
            return
        old, new = folder.at("upper"), folder.at("upper.new")
        ignored = self._below()[1]
        remove(new)
        os.makedirs(new)
        for name in sorted(ignored):
            source = os.path.join(old, name)
            if is_secret(name) or not os.path.lexists(source):
                continue  # a file of a folder that the command has removed
            if os.path.islink(source) or not os.path.isdir(source):
                _make_folders(os.path.dirname(name), old, new, ignored)
                os.rename(source, os.path.join(new, name))
        remove(old)
        os.rename(new, old)
        remove(folder.at(BUSY))
        if folder.measure() > LARGEST:
            folder.clear()
            folder.measure()


def _make_folders(name: str, old: str, new: str, ignored: set[str]) -> None:
    """Make a folder and those over it as they are below `old`; one that git knows hides no files."""
    if not name or os.path.isdir(os.path.join(new, name)):
        return
    _make_folders(os.path.dirname(name), old, new, ignored)
    target = os.path.join(new, name)
    os.mkdir(target)
    shutil.copystat(os.path.join(old, name), target)
    if name not in ignored:
        with contextlib.suppress(OSError):  # mostly it hides no files
            os.removexattr(target, OPAQUE)
    os.chmod(target, os.stat(target).st_mode | 0o700)


def _below(upper: str, lower: str) -> tuple[list[str], list[str]]:
    """Return the names of the files and of the folders that differ in an overlay's upper folder, without ``.git``.

    A removed folder stands for the files in it; so does one that was made anew.
    """
    files: dict[str, None] = {}
    found: list[str] = []
    for folder, names, others in os.walk(upper):
        if folder == upper and ".git" in names:
            names.remove(".git")
        links = [one for one in names if os.path.islink(os.path.join(folder, one))]
        for one in [*others, *links]:
            path = os.path.join(folder, one)
            name = os.path.relpath(path, upper)
            below = os.path.join(lower, name)
            files[name] = None
            if stat.S_ISCHR(os.lstat(path).st_mode) and os.path.isdir(below) and not os.path.islink(below):
                files.update(dict.fromkeys(_all_files(below, lower)))
        for one in names:
            path = os.path.join(folder, one)
            name = os.path.relpath(path, upper)
            found.append(name)
            with contextlib.suppress(OSError):
                if os.getxattr(path, OPAQUE, follow_symlinks=False) == b"y":
                    files.update(dict.fromkeys(_all_files(os.path.join(lower, name), lower)))
    return [name for name in files if name != ".git"], found


def _all_files(folder: str, top: str) -> list[str]:
    return [
        os.path.relpath(os.path.join(inner, one), top) for inner, _folders, names in os.walk(folder) for one in names
    ]


def tester(tree: Tree, folder: str, text: str, is_caught: bool) -> Callable[[str, str], None]:
    """Return the `test` for ``Commit.make``: it runs a shell command in `folder`, on the content of the commit.

    It raises Refused if the command fails, and Moved if the command may have seen files that changed meanwhile.
    """
    command = Command(["/bin/sh", "-c", text], os.path.realpath(folder), os.environ)

    def test(head: str, made: str) -> None:
        picture = Picture(tree.top)
        if picture.head != head:
            raise Moved
        with Run(tree, picture, picture.of_commit(made), command, is_caught) as run:
            run.begin()
            result = run.end()
        if result.changed:
            raise Moved
        if result.code:
            words = f"nothing was committed: on the commit's files the command ended with exit code {result.code}"
            raise Refused(words, exit=result.code, output=result.output.decode(errors="replace"))

    return test
