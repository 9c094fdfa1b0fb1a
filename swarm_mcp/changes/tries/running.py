"""One run of a command on a content: in an overlay, in a copy at the checkout's path, or in a copy of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import IO, NamedTuple

from swarm_hook_core.kernel import namespace
from swarm_hook_core.repository import Tree
from swarm_mcp import processes
from swarm_mcp.changes.commit.apart import Git, split
from swarm_mcp.changes.commit.landing import Moved
from swarm_mcp.changes.tries import folder as folders
from swarm_mcp.changes.tries import space
from swarm_mcp.changes.tries.copy import Copy
from swarm_mcp.changes.tries.folder import LARGEST, Folder, is_secret, remove
from swarm_mcp.changes.tries.picture import PRESENT, Chosen, Picture
from swarm_mcp.changes.tries.space import Command
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.processes import Reaper

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
