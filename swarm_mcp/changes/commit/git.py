"""Git as a worker: unlike ``repository.ask`` it runs the repository's filters, hooks and signing program."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
from collections.abc import Mapping, Sequence

from swarm_hook_core.paths import FolderOf
from swarm_hook_core.state import make_private
from swarm_hook_core.traces import state_of
from swarm_mcp.changes.dirty import present, state_now
from swarm_mcp.changes.writing import with_run_right
from swarm_mcp.errors import Refused

Entry = tuple[str, str]  # mode, object

# Variables of a git that runs around this command. They would lead to another repository or index.
LOCAL = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_NAMESPACE",
)  # fmt: skip
NO_FILE = "000000"  # the mode of a missing entry


class Git:
    """Git in the work tree `top`, with the index file `index`; an empty one is the shared index.

    `environment` is added to that of this process.
    """

    def __init__(self, top: str, index: str = "", environment: Mapping[str, str] | None = None):
        self.top = top
        self.index = index
        self.environment = {name: value for name, value in os.environ.items() if name not in LOCAL}
        self.environment.update(environment or {})
        if index:
            self.environment["GIT_INDEX_FILE"] = index

    def with_index(self, index: str) -> Git:
        """Return the same with another index file."""
        return Git(self.top, index)

    def with_more(self, environment: Mapping[str, str]) -> Git:
        """Return the same with more variables."""
        return Git(self.top, self.index, {**self.environment, **environment})

    def run(
        self, words: Sequence[str], data: bytes = b"", folder: str = "", keeps: Sequence[int] = ()
    ) -> subprocess.CompletedProcess[bytes]:
        """Run ``git <words>`` with `data` as its input, and return the finished process.

        `keeps`: open files that git inherits.
        """
        return subprocess.run(
            ["git", "--no-pager", *words],
            cwd=folder or self.top,
            env=self.environment,
            input=data,
            capture_output=True,
            pass_fds=tuple(keeps),
            check=False,
        )

    def ask(self, *words: str, data: bytes = b"", folder: str = "") -> str:
        """Return git's output. Raises Refused with git's own words."""
        done = self.run(words, data, folder)
        if done.returncode:
            raise Refused(f"git {words[0]}: {last_words(done)}")
        return os.fsdecode(done.stdout)

    def line(self, *words: str) -> str:
        """Return the one line that git prints; empty if git says no."""
        done = self.run(words)
        if done.returncode:
            return ""
        return os.fsdecode(done.stdout).rstrip("\n")

    def path(self, name: str) -> str:
        """Return the absolute path of one of git's own files, such as ``index``."""
        return self.paths([name])[0]

    def paths(self, names: Sequence[str]) -> list[str]:
        """Return the same for several files."""
        words = [word for name in names for word in ("--git-path", name)]
        found = self.ask("rev-parse", *words).split("\n")
        return [os.path.join(self.top, path) for path in found[: len(names)]]

    def head(self) -> str:
        """Return the commit of HEAD; empty before the first one."""
        return self.line("rev-parse", "-q", "--verify", "HEAD^{commit}")

    def entries(self, paths: Sequence[str]) -> dict[str, Entry]:
        """Return ``{path: (mode, object)}`` of these paths in the index. An unmerged one has the mode ``""``."""
        found: dict[str, Entry] = {}
        for part in split(self.ask("ls-files", "-s", "-z", "--", *literal(paths))):
            head, _, path = part.partition("\t")
            mode, name, stage = head.split(" ")
            found[path] = (mode, name) if stage == "0" else ("", name)
        return found

    def set_entries(self, entries: Mapping[str, Entry]) -> None:
        """Write ``{path: (mode, object)}`` into the index; the mode NO_FILE removes the path."""
        lines = [f"{mode} {name}\t{path}\0" for path, (mode, name) in entries.items()]
        if lines:
            self.ask("update-index", "-z", "--replace", "--index-info", data=os.fsencode("".join(lines)))

    def between(self, old: str, new: str) -> dict[str, tuple[Entry, Entry]]:
        """Return ``{path: (old entry, new entry)}`` of the paths that differ between two trees or commits."""
        words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new)
        parts = split(self.ask(*words))
        found: dict[str, tuple[Entry, Entry]] = {}
        for head, path in zip(parts[::2], parts[1::2]):
            old_mode, new_mode, old_name, new_name, _status = head[1:].split(" ")
            found[path] = ((old_mode, old_name), (new_mode, new_name))
        return found


def literal(paths: Sequence[str]) -> list[str]:
    """Return the paths as pathspecs without wildcards."""
    return [f":(top,literal){path}" for path in paths]


def split(text: str) -> list[str]:
    """Return the parts of a text. Each part ends in NUL."""
    return [part for part in text.split("\0") if part]


def last_words(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return the output of a failed program, as one line of at most 2,000 characters."""
    text = " ".join(os.fsdecode(done.stderr + b" " + done.stdout).split())
    if not text:
        return f"it ended with exit code {done.returncode} and no words"
    if len(text) > 2000:
        text = "... " + text[-2000:]
    return text


# Files that the hooks have rewritten in a work tree apart: the shared work tree gets the same, as after `git commit`.
#
# Only files that still are as they were staged are replaced. A file with lines of others, or changed meanwhile, is
# left.

_FILES = ("100644", "100755")
_PROGRAM = "100755"
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def bring(git: Git, changes: Mapping[str, tuple[Entry, Entry]]) -> None:
    """Replace the files that are as in the first entry by the second one. Calling it again does no harm."""
    done = [path for path, (old, new) in changes.items() if _replace(git, path, old, new)]
    if done:
        git.run(["update-index", "-q", "--refresh"])


def differing(git: Git, changes: Mapping[str, tuple[Entry, Entry]]) -> list[str]:
    """Return the paths that are not as in the second entry."""
    return [path for path, (_old, new) in changes.items() if _present(git, path) != _comparable(new)]


def patch_for(git: Git, changes: Mapping[str, tuple[Entry, Entry]], folder: str) -> bytes:
    """Return a patch that makes these changes in the shared work tree, merged with the lines of others there.

    Files without such a merge are left out. `folder`: for files in between.
    """
    sides = [os.path.join(folder, name) for name in ("a", "b")]
    for path, (old, new) in changes.items():
        texts = _merged(git, path, old, new, folder)
        for side, text in zip(sides, texts):
            make_private(os.path.dirname(os.path.join(side, path)))
            with open(os.path.join(side, path), "wb") as file:
                file.write(text)
    words = ["diff", "--no-index", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv"]
    made = git.run([*words, "--src-prefix=", "--dst-prefix=", "a", "b"], folder=folder)
    return made.stdout


def _merged(git: Git, path: str, old: Entry, new: Entry, folder: str) -> tuple[bytes, ...]:
    """Return ``(present content, the same with the change)``, or () if it does not merge."""
    if old[0] not in _FILES or new[0] not in _FILES:
        return ()
    names = [os.path.join(folder, name) for name in ("present", "old", "new")]
    make_private(folder)
    try:
        found, data = present(os.path.join(git.top, path))
    except OSError:
        return ()  # unreadable
    if found is None or data is None or not stat.S_ISREG(found.st_mode):
        return ()  # removed meanwhile
    for name, text in zip(names, (data, _content(git, path, old), _content(git, path, new))):
        with open(name, "wb") as file:
            file.write(text)
    made = git.run(["merge-file", "-p", "-q", *names])
    if made.returncode:
        return ()
    return data, made.stdout


def _content(git: Git, path: str, entry: Entry) -> bytes:
    """Return the content of an entry as the work tree has it."""
    return git.run(["cat-file", "--filters", f"--path={path}", entry[1]]).stdout


def _replace(git: Git, path: str, old: Entry, new: Entry) -> bool:
    absolute = os.path.join(git.top, path)
    state = state_now(absolute)
    if new[0] not in (*_FILES, NO_FILE) or _present(git, path) != _comparable(old):
        return False
    try:
        with FolderOf(absolute, makes=new[0] != NO_FILE) as (name, folder):
            if new[0] == NO_FILE:
                if state_of(name, folder) != state:
                    return False
                os.unlink(name, dir_fd=folder)
                return True
            return _put(name, folder, state, _content(git, path, new), new[0] == _PROGRAM)
    except OSError:
        return False  # the answer names the file


def _put(name: str, folder: int | None, state: str, content: bytes, is_program: bool) -> bool:
    """Give the file this content in one step. Return False if it is in another state. Raises OSError."""
    scratch = f"{name}.swarm-{os.getpid()}"
    handle = os.open(scratch, _MAKE, 0o666, dir_fd=folder)
    try:
        with open(handle, "wb") as file:
            file.write(content)
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            with contextlib.suppress(FileNotFoundError):
                mode = stat.S_IMODE(os.lstat(name, dir_fd=folder).st_mode)  # of the file in its place
            os.chmod(scratch if folder is None else handle, with_run_right(mode, is_program))
        if state_of(name, folder) != state:
            return False
        os.replace(scratch, name, src_dir_fd=folder, dst_dir_fd=folder)
        return True
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(scratch, dir_fd=folder)


def _present(git: Git, path: str) -> Entry:
    """Return the entry that git would make of the present file; without mode for a link, a folder, or over 16 MiB."""
    found, data = present(os.path.join(git.top, path))
    if found is None:
        return (NO_FILE, "")  # removed
    if data is None or not stat.S_ISREG(found.st_mode):
        return ("", "")
    name = os.fsdecode(git.run(["hash-object", "--stdin", f"--path={path}"], data).stdout).strip()
    return (_FILES[bool(found.st_mode & stat.S_IXUSR)], name)


def _comparable(entry: Entry) -> Entry:
    return (NO_FILE, "") if entry[0] == NO_FILE else entry
