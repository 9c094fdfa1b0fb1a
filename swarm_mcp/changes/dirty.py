"""The files of a work tree that differ from the last commit, as git tells them: modes, committed content, filters.

Git is asked a fixed number of questions, however many files there are. No program that the repository names is run.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository, blobs, sizes
from swarm_hook_core.paths import FolderOf
from swarm_hook_core.repository import tree_over
from swarm_hook_core.state import read_all
from swarm_hook_core.traces import NO_FILE, state_of
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_mcp.errors import SwarmError

# The present state and content of a file, or of a symbolic link, that is handled whole, without lines.

LARGEST = 16 * 1024 * 1024  # bytes of a file; a larger one is not read

_READ = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _READ |= getattr(os, _flag, 0)


def state_now(path: str) -> str:
    """As `state_of`, of a path without links: a file behind a link that took a folder's place counts as missing."""
    try:
        with FolderOf(path) as (name, folder):
            return state_of(name, folder)
    except (OSError, ValueError):
        return NO_FILE  # its folder is gone, or no folder


def present(path: str) -> tuple[os.stat_result | None, bytes | None]:
    """Return the facts and the content of the file at `path`, of a link its target. Raises OSError.

    `path`: absolute, the links above it resolved. No facts for a missing file. No content for one over 16 MiB, a
    folder, or a device.
    """
    try:
        with FolderOf(path) as (name, folder):
            return present_in(folder, name)
    except (FileNotFoundError, NotADirectoryError):
        return None, None  # a missing file


def present_in(folder: int | None, name: str) -> tuple[os.stat_result, bytes | None]:
    """As `present`, of a file in an open folder. Raises FileNotFoundError for a missing one."""
    found = os.lstat(name, dir_fd=folder)
    if stat.S_ISLNK(found.st_mode):
        return found, os.fsencode(os.readlink(name, dir_fd=folder))
    if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
        return found, None
    handle = os.open(name, _READ, dir_fd=folder)
    try:
        data = read_all(handle, LARGEST + 1)
    finally:
        os.close(handle)
    if len(data) > LARGEST:
        return found, None  # it has grown just now
    return found, data


SECONDS = 20.0  # for all of git's answers
NONE = ""  # the mode of a missing file
PLAIN, PROGRAM, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
_ATTRIBUTES = ("filter", "text", "eol", "ident", "working-tree-encoding")
_UNSET = ("unspecified", "unset")


class DirtyFile:
    """One file that differs from the last commit.

    name      path from the top of the work tree, with slashes
    path      absolute path
    old_mode  mode in the last commit, `NONE` without a file there; new_mode: in the work tree
    old_id    its object in the last commit, empty without a file there
    head      content in the last commit, empty without a file there
    reason    why the file has no lines to compare, such as "a symbolic link"; empty if it may have lines
    converts  True if git turns CRLF of the work tree into LF
    """

    __slots__ = ("name", "path", "old_mode", "new_mode", "old_id", "head", "reason", "converts")

    def __init__(self, name: str, path: str, old_mode: str, new_mode: str, old_id: str):
        self.name = name
        self.path = path
        self.old_mode = old_mode
        self.new_mode = new_mode
        self.old_id = old_id
        self.head = b""
        self.reason = ""
        self.converts = False


def top_over(path: str) -> str:
    """Return the top of the work tree around absolute `path`. Raises SwarmError outside of any."""
    tree = tree_over(os.path.realpath(path))
    if tree is None:
        raise SwarmError(f"{path} is in no git repository: there is no last commit to compare with")
    return tree.top


def dirty_files(top: str, names: Sequence[str] = ()) -> list[DirtyFile]:
    """Return the files of the work tree `top` that differ from the last commit, by name; untracked ones included.

    `names`: only these files and folders, relative to `top`. Files that git ignores are left out. Raises SwarmError.
    """
    repository = Repository(top, SECONDS)
    try:
        found = _listed(repository, list(names) or [""])
        _learn(repository, found)
    except NoAnswer as error:
        raise SwarmError(f"git does not answer in {top}: {error}") from None
    except Refused as error:
        raise SwarmError(f"git refuses to answer in {top}: {' '.join(str(error).split())}") from None
    return found


def committed_file(top: str, name: str) -> DirtyFile:
    """Return the file `name` in the same form, though it may not differ from the last commit. Raises SwarmError."""
    repository = Repository(top, SECONDS)
    path = os.path.join(top, name)
    try:
        try:
            listed = repository.ask("ls-tree", "-z", "--full-tree", "HEAD", "--", name).split("\0")[:1]
        except Refused:  # no commit yet
            listed = []
        words = "".join(listed).partition("\t")[0].split(" ")
        mode, object_id = NONE, ""
        if len(words) == 3:
            mode, object_id = words[0], words[2]
        one = DirtyFile(name, path, mode, _mode_of(path, mode), object_id)
        _learn(repository, [one])
    except (NoAnswer, Refused) as error:
        raise SwarmError(f"git does not answer in {top}: {' '.join(str(error).split())}") from None
    return one


def object_id(data: bytes, like: str) -> str:
    """Return the id that git gives to a file with this content, by the hash that made the id `like`."""
    name = "sha1"
    if len(like) == 64:
        name = "sha256"
    made = hashlib.new(name, usedforsecurity=False)
    made.update(b"blob %d\0" % len(data) + data)
    return made.hexdigest()


# ------------------------------------------------------------------------------------------- files


def _listed(repository: Repository, names: list[str]) -> list[DirtyFile]:
    found: dict[str, DirtyFile] = {}
    untracked = repository.new(names)
    try:
        rows = repository.rows_against("HEAD", names)
    except Refused:  # no commit yet
        rows, untracked = [], [*untracked, *repository.tracked(names)]
    changed = set(repository.by_content(rows))
    for name, old_id, _new_id, _status, old_mode, new_mode in rows:
        if name in changed:
            path = os.path.join(repository.top, name)
            old_mode, new_mode = old_mode.replace("000000", NONE), new_mode.replace("000000", NONE)
            # A file that is in the commit and not in the index may be there all the same.
            new_mode = new_mode or _mode_of(path, old_mode)
            if old_mode or new_mode:
                found[name] = DirtyFile(name, path, old_mode, new_mode, old_id * bool(old_mode))
    for name in untracked:
        path = os.path.join(repository.top, name)
        mode = _mode_of(path, NONE) if name not in found else NONE
        if mode:
            found[name] = DirtyFile(name, path, NONE, mode, "")
    return [found[name] for name in sorted(found)]


def _mode_of(path: str, old_mode: str) -> str:
    """Return the mode that git would give to the file at `path`; `NONE` if it is missing."""
    found = _facts(path)
    if found is None:
        return NONE  # missing
    return _git_mode(found.st_mode, old_mode)


def _facts(path: str) -> os.stat_result | None:
    """Return the facts of a file, None for a missing one. One behind a link counts as missing, as for git."""
    try:
        with FolderOf(path.rstrip("/")) as (name, folder):
            return os.lstat(name, dir_fd=folder)
    except OSError:
        return None  # gone


def _git_mode(found: int, old_mode: str) -> str:
    if stat.S_ISLNK(found):
        return LINK
    if stat.S_ISDIR(found):
        return SUBMODULE
    if old_mode in (PLAIN, PROGRAM) and os.name == "nt":
        return old_mode
    if found & stat.S_IXUSR:
        return PROGRAM
    return PLAIN


# ------------------------------------------------------------------------------------------- contents


def _learn(repository: Repository, files: list[DirtyFile]) -> None:
    """Fill in content and reason of each file."""
    for one in files:
        one.reason = _reason(one)
    plain = [one for one in files if not one.reason]
    filters = filters_of(repository, plain)
    for one in plain:
        one.reason = filters.get(one.name, "")
    plain = [one for one in plain if not one.reason]
    _read_heads(repository, [one for one in plain if one.old_id])
    _find_line_ends(repository, [one for one in plain if not one.reason and one.new_mode])


def _reason(one: DirtyFile) -> str:
    modes = (one.old_mode, one.new_mode)
    if one.name.endswith("/"):
        return "a repository of its own"
    if SUBMODULE in modes:
        return "a submodule"
    if LINK in modes:
        return "a symbolic link"
    if one.new_mode and _size(one.path) > LIMIT_BYTES:
        return f"larger than {LIMIT_BYTES // 1024} KiB"
    return ""


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0  # gone just now


def filters_of(repository: Repository, files: list[DirtyFile]) -> dict[str, str]:
    """Return ``{name: reason}`` of files that git changes on their way into the repository, line ends aside."""
    if not files:
        return {}
    names = "".join(f"{one.name}\0" for one in files)
    output = repository.ask("check-attr", "-z", "--stdin", *_ATTRIBUTES, stdin=names).split("\0")
    found: dict[str, str] = {}
    for name, attribute, value in zip(output[::3], output[1::3], output[2::3]):
        if value in _UNSET or attribute in ("text", "eol"):
            continue
        if (attribute, value) == ("filter", "lfs"):
            found[name] = "kept by git-lfs"
        else:
            found[name] = f"changed by git's attribute {attribute}"
    return found


def _read_heads(repository: Repository, files: list[DirtyFile]) -> None:
    """Read the committed contents, those up to 1 MiB."""
    if not files:
        return
    small = []
    for one, size in zip(files, sizes(repository, [one.old_id for one in files])):
        if size is None:
            one.reason = "not in this clone"
        elif size > LIMIT_BYTES:
            one.reason = f"larger than {LIMIT_BYTES // 1024} KiB in the last commit"
        else:
            small.append(one)
    heads = blobs(repository, [one.old_id for one in small])
    for one in small:
        one.head = heads[one.old_id] or b""


def _find_line_ends(repository: Repository, files: list[DirtyFile]) -> None:
    """Find out for files with CRLF if git turns it into LF: by the id that git gives to the present content."""
    doubtful = []
    for one in files:
        data = _content(one.path)
        if b"\r\n" in data and "\n" not in one.name:
            doubtful.append((one, data))
    if not doubtful:
        return
    asked = "".join(f"{one.name}\n" for one, _data in doubtful)
    told = repository.ask("check-attr", "-z", "--stdin", "text", "eol", stdin=asked.replace("\n", "\0")).split("\0")
    forced = {name for name, _attribute, value in zip(told[::3], told[1::3], told[2::3]) if value in ("set", *_ENDS)}
    ids = repository.ask("hash-object", "--stdin-paths", stdin=asked).split("\n")
    for (one, data), made in zip(doubtful, ids):
        if b"\r\n" in one.head and one.name not in forced:
            continue  # git leaves such files alone
        if made == object_id(data.replace(b"\r\n", b"\n"), made):
            one.converts = True
        elif made != object_id(data, made):
            one.reason = "changed by git's settings"


_ENDS = ("lf", "crlf")


def _content(path: str) -> bytes:
    try:
        return present(path)[1] or b""
    except OSError:
        return b""  # gone just now, or unreadable: the comparison says so


def relative_names(top: str, paths: Iterable[str]) -> list[str]:
    """Return absolute `paths`, without links but for the last part, as names from `top`. Raises SwarmError."""
    found = []
    for path in paths:
        folder, last = os.path.split(path)
        real = os.path.join(os.path.realpath(folder), last)
        if os.path.isdir(path):
            real = os.path.realpath(path)
        name = os.path.relpath(real, top)
        if name == os.pardir or name.startswith(os.pardir + os.sep):
            raise SwarmError(f"{path} is outside of the repository {top}")
        if name == os.curdir:
            name = ""  # all of the work tree
        found.append(name.replace(os.sep, "/"))
    return found


# Contents and times of files in the last commit, for many files by three questions to git for each work tree.

KEPT_SECONDS = 8 * 86400  # no version of a file is older: the time of an older commit does not matter


class LastCommit(NamedTuple):
    """A file in the last commit.

    content   its content, None if the commit has no such file, or a large one
    at        time of the newest commit that changed the file, in Unix seconds; 0 if it is older than all versions
    is_large  True if it has over 1 MiB there: no version has so much
    """

    content: bytes | None
    at: int
    is_large: bool = False


NOWHERE = LastCommit(None, 0)


def last_commits(paths: Iterable[str]) -> dict[str, LastCommit]:
    """Return ``{path: LastCommit}`` of absolute `paths`, links resolved. Raises SwarmError if git does not answer."""
    found: dict[str, LastCommit] = {}
    by_top: dict[str, list[str]] = {}
    for path in paths:
        tree = tree_over(os.path.dirname(path))
        if tree is None:
            found[path] = NOWHERE
        else:
            by_top.setdefault(tree.top, []).append(path)
    for top, some in by_top.items():
        names = {os.path.relpath(path, top): path for path in some}
        try:
            contents, large = _contents(top, list(names))
            times = _times(top, list(names))
        except NoAnswer as error:
            raise SwarmError(f"git does not answer in {top}: {error}") from None
        for name, path in names.items():
            found[path] = LastCommit(contents.get(name), times.get(name, 0), name in large)
    return found


def _contents(top: str, names: list[str]) -> tuple[dict[str, bytes | None], set[str]]:
    """Return ``{name: content}``, and the names of files over 1 MiB, which are not read."""
    repository = Repository(top, SECONDS)
    try:
        found = dict(zip(names, sizes(repository, [f"HEAD:{name}" for name in names])))
        large = {name for name, size in found.items() if size is not None and size > LIMIT_BYTES}
        small = [name for name, size in found.items() if size is not None and size <= LIMIT_BYTES]
        contents = blobs(repository, [f"HEAD:{name}" for name in small])
    except Refused:
        return {}, set()  # no repository that git accepts
    return {name: contents[f"HEAD:{name}"] for name in small}, large


def _times(top: str, names: list[str]) -> dict[str, int]:
    options = ("--format=%x01%ct", "--name-only", "-z", "--no-renames", "--root", "--diff-merges=combined")
    since = f"--since={int(time.time()) - KEPT_SECONDS}"
    paths = [f":(top,literal){name}" for name in names]
    try:
        output = Repository(top, SECONDS).ask("log", *options, since, "HEAD", "--", *paths)
    except Refused:
        return {}  # no commit yet
    found: dict[str, int] = {}
    for block in output.split("\x01")[1:]:
        at, _, changed = block.partition("\0")
        for name in changed.lstrip("\n").split("\0") if at.isdigit() else ():  # else a part of an odd name
            found.setdefault(name, int(at))  # the newest commit comes first
    return found
