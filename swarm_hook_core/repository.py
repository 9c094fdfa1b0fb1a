"""Work trees of git repositories, found by reading git's own small files, and git as a source of other answers.

A *work tree* is a folder with a ``.git`` in it. Its *common folder* has the part of the repository that all work trees
of one clone share. The *names* of a path in a repository are ``<id>:<path from the top>``. The id of a repository is
its first commit, which clones share as well, or its common folder if that is not known.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from swarm_hook_core.paths import NO_CASE, real_path
from swarm_hook_core.process import Result, run
from swarm_hook_core.state import state_dir, write_private

SMALL = 65536  # bytes of a configuration that are read
ON = ("true", "yes", "on", "1")
MOST_KNOWN = 500
_FOLDER, _LINK = 0o040000, 0o120000  # as in the module `stat`, which takes time to load
_known: dict[str, Any] = {}  # a configuration's path -> its state when it was read, and its settings

# Git answers questions: it runs no program that the repository names, writes nothing, and prompts for nothing.
#
# A repository's own configuration may name programs (a monitor of files, hooks, filters, pagers, helpers that fetch),
# and an unpacked archive brings one along. So every git that answers a question is started by `ask`.

FLAGS = (
    "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false",
    "-c", "diff.autoRefreshIndex=false", "-c", "protocol.allow=never", "-c", "gc.auto=0",
    "-c", "maintenance.auto=false", "-c", "submodule.recurse=false", "-c", "log.showSignature=false",
    "-c", "diff.ignoreSubmodules=dirty", "-c", "diff.relative=false", "-c", "filter.lfs.clean=",
    "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false",
)  # fmt: skip
# GIT_ALLOW_PROTOCOL: no protocol. The setting above leaves a repository's own `protocol.ext.allow` in force.
ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "",
    "GIT_PAGER": "cat", "GIT_EDITOR": "false", "LC_ALL": "C", "GIT_TRACE": "0",
}  # fmt: skip
# Added to every comparison: no program is run that shows contents, and no git is started inside submodules, which would
# run their own filters.
NO_PROGRAMS = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")


def ask(
    words: Sequence[str],
    folder: str,
    seconds: float,
    settings: Any = (),
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
) -> Result:
    """Return the ``coordinator.Result`` of ``git <words>`` in `folder` on the text `stdin`, after at most `seconds`.

    `settings` are git's own options such as ``-c name=value``. They come first, then ours. A question to `git config`
    gets the repository's answer as it is: it runs no program.
    """
    flags: tuple[str, ...] = FLAGS
    if words[0] == "config":
        flags = ("--no-pager",)
    argv = ["git", "-C", folder, *settings, *flags, *words]
    return run(argv, seconds, stdin=stdin, environment={**(environment or {}), **ENVIRONMENT})


class Tree:
    """One work tree: its folder `top` (links resolved), `own`: its git folder, `common`: that of all of them."""

    __slots__ = ("top", "own", "common", "first", "takes_all")

    def __init__(self, top: str, own: str, common: str):
        self.top = top
        self.own = own
        self.common = common
        self.first: str | None = None  # its first commit, after the first question
        self.takes_all: bool | None = None  # `opted_in`, likewise


def tree_over(path: str, is_real: bool = False) -> Tree | None:
    """Return the Tree that absolute `path` lies in, or is the top of; else None. `is_real`: the path has no links."""
    folder = path
    while True:
        found = tree_at(folder, is_real)
        if is_real and os.sep == "/":
            parent = folder.rpartition("/")[0] or "/"
        else:
            parent = os.path.dirname(folder)
        if found is not None or parent == folder:
            return found
        folder = parent


def top_around(path: str) -> str:
    """Return the top of the work tree around the file at absolute `path`, or ""."""
    tree = tree_over(os.path.dirname(path))
    return tree.top if tree is not None else ""


def tree_at(folder: str, is_real: bool = False) -> Tree | None:
    """Return the Tree with this folder as its top, else None."""
    mark = f"{folder.rstrip('/')}/.git"
    try:
        if not os.access(mark, os.F_OK):  # mostly; an error that is raised and caught takes ten times as long
            return None
        kind = os.lstat(mark).st_mode & 0o170000
    except (OSError, ValueError):  # no work tree
        return None
    if is_real:
        top = folder
    else:
        top = real_path(folder)
    if kind == _FOLDER or (kind == _LINK and os.path.isdir(mark)):
        if kind == _LINK:
            own = os.path.realpath(mark)
        else:
            own = os.path.join(top, ".git")
        return Tree(top, own, own)
    word, _, target = _line(mark).partition(": ")
    if word != "gitdir" or not target:
        return None
    own = os.path.realpath(os.path.join(folder, target))
    shared = _line(os.path.join(own, "commondir"))
    return Tree(top, own, os.path.realpath(os.path.join(own, shared)) if shared else own)


def trees_beside(tree: Tree) -> list[str]:
    """Tops of every work tree of this clone, this one's too."""
    if os.path.basename(tree.common) == ".git":
        found = [os.path.dirname(tree.common)]
    else:
        found = []
    listed = os.path.join(tree.common, "worktrees")
    try:
        names = sorted(os.listdir(listed))
    except OSError:
        names = []
    for name in names:
        mark = _line(os.path.join(listed, name, "gitdir"))
        if mark:
            found.append(os.path.realpath(os.path.dirname(os.path.join(listed, name, mark))))
    return list(dict.fromkeys([tree.top, *found]))


def opted_in(tree: Tree) -> bool:
    """Return True if ``swarm.logical`` is on, in the clone's configuration or in that of this work tree alone."""
    if tree.takes_all is None:
        setting, of_tree = _settings(os.path.join(tree.common, "config"))
        if of_tree:
            mine = _settings(os.path.join(tree.own, "config.worktree"))[0]
            if mine is not None:
                setting = mine
        tree.takes_all = bool(setting)
    return bool(tree.takes_all)


def may_take_all(path: str) -> bool:
    """Return False if `opted_in` is False for the work tree over `path`, or there is none; absolute, links resolved.

    True means that it has to be asked. Every lock asks this first: it takes a third of the time.
    """
    folder = path
    while folder:
        mark = f"{folder}/.git"
        if os.access(mark, os.F_OK):
            break
        folder = folder.rpartition("/")[0]
    else:
        return os.access("/.git", os.F_OK)
    try:
        if os.lstat(mark).st_mode & 0o170000 != _FOLDER:
            return True
    except OSError:  # removed meanwhile
        return True
    setting, of_tree = _settings(f"{mark}/config")
    return bool(setting) or of_tree


def ids(tree: Tree) -> list[str]:
    """The ids that locks of this repository may be stored under, the best known first."""
    first = remembered(tree)
    return [*([first] if first else []), folder_id(tree)]


def folder_id(tree: Tree) -> str:
    """Return the id of a repository without commits, or without all of its history: shared by work trees, not by
    clones.
    """
    return f"folder={_identity(tree.common)}"


def names_of(key: str, tree: Tree) -> list[str]:
    """Return the names of the path with this key in the repository of `tree`; empty if it is outside."""
    within = place_of(key, tree.top)
    if within is None:
        return []
    return [f"{one}:{within}" for one in ids(tree)]


def place_of(key: str, top: str) -> str | None:
    """Return `key` as seen from folder `top`, empty for `top` itself, with the mark of keys without case; else None."""
    if key.startswith(NO_CASE):
        mark = NO_CASE
    else:
        mark = ""
    path = key[len(mark) :]
    if mark:
        from unicodedata import normalize

        top = normalize("NFC", top).casefold()
    if path == top:
        return mark
    root = top.rstrip("/") + "/"
    if path.startswith(root):
        return mark + path[len(root) :]
    return None


# ------------------------------------------------------------------ the first commit


def remembered(tree: Tree) -> str:
    """The first commit of this repository, as it was written down; empty where it was not."""
    if tree.first is None:
        words = _line(_record(tree)).split()
        tree.first = ""
        if len(words) == 2 and words[1] == _birth(tree):
            tree.first = words[0]
    return tree.first


def learn(tree: Tree, seconds: float) -> str:
    """Return the first commit: `remembered`, or asked of git in at most `seconds` and written down.

    Empty without a commit, with a part of the history missing (a shallow clone), or without an answer from git.
    """
    known = remembered(tree)
    if known or os.path.exists(os.path.join(tree.common, "shallow")):
        return known

    words = ["rev-list", "--max-parents=0", "HEAD"]
    done = ask(words, tree.common, seconds, [f"--git-dir={tree.common}"])
    lines = done.stdout.split()
    if done.code != 0 or not lines:
        return ""
    tree.first = first = lines[-1]  # of several that were merged, the oldest: newer ones may be in one clone only
    try:
        write_private(_record(tree), f"{first} {_birth(tree)}\n")
    except OSError:
        pass  # a sandbox: it is asked again
    return first


def _record(tree: Tree) -> str:
    return os.path.join(state_dir(), "repositories", _identity(tree.common))


def _identity(folder: str) -> str:
    """Return a folder's own number, which it keeps under every spelling of its path."""
    try:
        found = os.stat(folder)
    except OSError:  # missing
        return "-"
    return f"{found.st_dev:x}.{found.st_ino:x}"


def _birth(tree: Tree) -> str:
    """Return a mark that a repository made in the same place does not share: git never writes this file."""
    try:
        return f"{os.stat(os.path.join(tree.common, 'description')).st_mtime_ns:x}"
    except OSError:  # made by another git
        return "-"


# --------------------------------------------------------------- git's small files


def _line(path: str) -> str:
    """Return the text of a small file of one line; may be empty. A folder's name may have newlines itself."""
    return small_text(path).rstrip("\r\n")


def small_text(path: str) -> str:
    """Return the first `SMALL` characters of an ordinary file; empty if it is missing or cannot be read."""
    try:
        if not os.path.isfile(path):  # a pipe of that name would keep us waiting
            return ""
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(SMALL)
    except (OSError, ValueError):  # closed to us
        return ""


def _settings(path: str) -> tuple[bool | None, bool]:
    """Return ``swarm.logical`` of a configuration, or None if it is not set; and ``extensions.worktreeConfig``."""
    try:
        found = os.stat(path)
    except OSError:  # no such file
        return None, False
    state = (found.st_ino, found.st_mtime_ns, found.st_size)
    if path not in _known or _known[path][0] != state:  # asked of for every lock, by servers that run for days
        if len(_known) > MOST_KNOWN:
            _known.clear()
        _known[path] = (state, _settings_in(small_text(path)))
    found_settings: tuple[bool | None, bool] = _known[path][1]
    return found_settings


def _settings_in(text: str) -> tuple[bool | None, bool]:
    logical, of_tree, section = None, False, ""
    for line in text.split("\n"):
        line = line.strip()
        if line.startswith("["):
            head, _, line = line[1:].partition("]")
            section, line = head.strip().lower(), line.strip()
        if line[:1] in ("", "#", ";"):
            continue
        name, equals, value = line.partition("=")
        value = value.partition("#")[0].partition(";")[0].strip().strip('"').lower()
        if equals:
            is_on = value in ON
        else:
            is_on = True
        if (section, name.strip().lower()) == ("swarm", "logical"):
            logical = is_on
        elif (section, name.strip().lower()) == ("extensions", "worktreeconfig"):
            of_tree = is_on
    return logical, of_tree
