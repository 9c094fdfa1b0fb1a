"""Files that the hooks have rewritten in a work tree apart: the shared work tree gets the same, as after `git commit`.

Only files that still are as they were staged are replaced. A file with lines of others, or changed meanwhile, is left.
"""

from __future__ import annotations

import contextlib
import os
import stat

from swarm_hook_core.no_links import FolderOf
from swarm_hook_core.state import make_private
from swarm_hook_core.traces import state_of
from swarm_mcp.changes.commit.git import NO_FILE, Git
from swarm_mcp.changes.present import present, state_now
from swarm_mcp.changes.records import with_run_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm_mcp.changes.commit.git import Entry

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
