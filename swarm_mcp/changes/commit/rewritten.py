"""Files that the hooks have rewritten in a work tree apart: the shared work tree gets the same, as after `git commit`.

Only files that still are as they were staged are replaced. A file with lines of others, or changed meanwhile, is left.
"""

from __future__ import annotations

import os
import shutil
import stat

from swarm_hook_core.state import make_private
from swarm_hook_core.traces import state_of
from swarm_mcp.changes.commit.git import NO_FILE, Git
from swarm_mcp.changes.records import with_run_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm_mcp.changes.commit.git import Entry

_FILES = ("100644", "100755")
_PROGRAM = "100755"


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
        shutil.copyfile(os.path.join(git.top, path), names[0])
    except OSError:
        return ()  # removed meanwhile
    for name, entry in zip(names[1:], (old, new)):
        with open(name, "wb") as file:
            file.write(_content(git, path, entry))
    made = git.run(["merge-file", "-p", "-q", *names])
    if made.returncode:
        return ()
    with open(names[0], "rb") as file:
        return file.read(), made.stdout


def _content(git: Git, path: str, entry: Entry) -> bytes:
    """Return the content of an entry as the work tree has it."""
    return git.run(["cat-file", "--filters", f"--path={path}", entry[1]]).stdout


def _replace(git: Git, path: str, old: Entry, new: Entry) -> bool:
    absolute = os.path.join(git.top, path)
    state = state_of(absolute)
    if new[0] not in (*_FILES, NO_FILE) or _present(git, path) != _comparable(old):
        return False
    scratch = f"{absolute}.swarm-{os.getpid()}"
    try:
        if new[0] != NO_FILE:
            os.makedirs(os.path.dirname(absolute), exist_ok=True)
            with open(scratch, "wb") as file:
                file.write(_content(git, path, new))
            _set_mode(scratch, absolute, new[0] == _PROGRAM)
        if state_of(absolute) != state:
            return False
        if new[0] == NO_FILE:
            os.unlink(absolute)
        else:
            os.replace(scratch, absolute)
    except OSError:
        return False  # the answer names the file
    finally:
        if os.path.lexists(scratch):
            os.unlink(scratch)
    return True


def _set_mode(scratch: str, absolute: str, is_program: bool) -> None:
    """Give `scratch` the permissions of the file in its place, but for the right to run it."""
    if os.path.exists(absolute):
        shutil.copymode(absolute, scratch)
    os.chmod(scratch, with_run_right(stat.S_IMODE(os.stat(scratch).st_mode), is_program))


def _present(git: Git, path: str) -> Entry:
    """Return the entry that git would make of the present file; without mode for a link or a folder."""
    absolute = os.path.join(git.top, path)
    try:
        mode = os.lstat(absolute).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return (NO_FILE, "")  # removed
    if not stat.S_ISREG(mode):
        return ("", "")
    name = git.line("hash-object", f"--path={path}", "--", absolute)
    return (_FILES[bool(mode & stat.S_IXUSR)], name)


def _comparable(entry: Entry) -> Entry:
    return (NO_FILE, "") if entry[0] == NO_FILE else entry
