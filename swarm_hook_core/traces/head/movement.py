"""Git commands that move HEAD or a branch. To add one, write its row in `ROWS`.

Branches are looked up in git's own files: git is not started. A command in doubt moves nothing.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from swarm_hook_core.repository import Tree, tree_at
from swarm_hook_core.shell.model import GitCall, is_known
from swarm_hook_core.shell.options import Options
from swarm_hook_core.shell.programs.git.command_line import cut
from swarm_hook_core.shell.programs.git.table import options_of
from swarm_hook_core.traces.head import Head, commit_of

# verb: (needs one of these options, has no movement with one of these, kind of its target, deed)
ROWS: dict[str, tuple[str, str, str, str]] = {
    "switch": ("", "", "branch", "switch"),
    "checkout": ("", "-p --patch --pathspec-from-file", "branch", "switch"),
    "reset": ("", "-p --patch --pathspec-from-file", "commit", "reset"),
    "rebase": ("", "--abort --continue --skip --quit --edit-todo --show-current-patch", "", "rebase"),
    "commit": ("--amend", "--dry-run", "", "amend"),
    "merge": ("", "--abort --continue --quit --squash", "", "merge"),
    "pull": ("", "--dry-run", "", "pull"),
    "branch": ("-f --force -M -m --move -C", "-r --remotes", "moved", "move-branch"),
}

_MAKES_BRANCH = ("-b", "-B", "-c", "-C", "--create", "--force-create", "--orphan")
_REVISION = frozenset("~^@:")  # a word with one of these is a revision, if it is no file


class Movement(NamedTuple):
    """The effect of a command: its `deed`, a verb of `ROWS`; `target`: the branch or commit it names, or empty.

    `is_new`: it makes that branch.
    """

    deed: str
    target: str = ""
    is_new: bool = False


def movement_of(call: GitCall, words: list[str], top: str, head: Head) -> Movement | None:
    """Return the Movement of ``git <words>`` in the work tree `top` with this HEAD, or None.

    `words`: those of `call`, with aliases replaced.
    """
    row = ROWS.get(words[0])
    tree = tree_at(top, is_real=True)
    if row is None or tree is None:
        return None
    needed, without, kind, deed = row
    options = options_of(words)
    if (needed and not options.has(*needed.split())) or options.has(*without.split()):
        return None
    if not kind:
        return Movement(deed, next(iter(options.operands), ""))
    target = _TARGETS[kind](call, words, options, tree, head)
    if target is None:
        return None
    return Movement(deed, target, kind == "branch" and options.has(*_MAKES_BRANCH))


def _branch(call: GitCall, words: list[str], options: Options, tree: Tree, head: Head) -> str | None:
    """Return the branch or commit that is checked out; None if it is files, or the present branch."""
    made = options.value(*_MAKES_BRANCH)
    if made is not None:
        return made
    before, after = cut(words[1:])
    if after:
        return None  # files
    if words[0] == "switch":
        return next((word for word in options.operands[:1] if word and word != head.branch), None)
    if not options.operands:
        if options.has("--detach") and head.branch:
            return head.commit[:12]
        return None
    word = options.operands[0]
    if len(options.operands) > 1 or word == head.branch or not is_known(word):
        return None
    if word == "-" or options.has("-t", "--track", "--detach") or commit_of(tree, f"refs/heads/{word}"):
        return word
    if os.path.lexists(os.path.join(call.folder, word)) or word in call.found:
        return None  # a file
    if _is_revision(word) or _is_of_remote(tree, word):
        return word
    return None  # git will refuse it


def _commit(call: GitCall, words: list[str], options: Options, tree: Tree, head: Head) -> str | None:
    """Return the commit that ``reset`` moves the branch to; None if it is HEAD, or files are reset."""
    _before, after = cut(words[1:])
    word = next(iter(options.operands), "HEAD")
    if after or len(options.operands) > 1 or not is_known(word) or word in ("HEAD", "@", head.branch):
        return None
    found = commit_of(tree, f"refs/heads/{word}") or commit_of(tree, f"refs/remotes/{word}")
    if found or (len(word) >= 7 and head.commit.startswith(word)):
        is_here = found == head.commit or head.commit.startswith(word)
        return None if is_here else word
    if os.path.lexists(os.path.join(call.folder, word)):
        return None  # a file
    return word


def _moved(call: GitCall, words: list[str], options: Options, tree: Tree, head: Head) -> str | None:
    """Return the branch that ``branch`` moves or renames: with -m, only the present one."""
    operands = options.operands
    if options.has("-f", "--force"):
        return next((name for name in operands[:1] if commit_of(tree, f"refs/heads/{name}")), None)
    renamed = [head.branch, *operands][-2:][0]
    if operands and renamed == head.branch and not options.has("-C"):
        return renamed
    return None


_TARGETS = {"branch": _branch, "commit": _commit, "moved": _moved}


def _is_revision(word: str) -> bool:
    is_id = len(word) >= 7 and not set(word) - set("0123456789abcdef")
    return is_id or bool(_REVISION & set(word)) or word.startswith(("origin/", "refs/", "HEAD"))


def _is_of_remote(tree: Tree, word: str) -> bool:
    """Return True if a remote has a branch or tag of this name: git then makes a branch, or detaches HEAD."""
    if commit_of(tree, f"refs/tags/{word}") or commit_of(tree, f"refs/remotes/{word}"):
        return True
    try:
        remotes = os.listdir(os.path.join(tree.common, "refs", "remotes"))
    except OSError:
        return False  # no remote
    return any(commit_of(tree, f"refs/remotes/{remote}/{word}") for remote in remotes)
