"""The fence: a session that began in a linked work tree is stopped once before it writes into another one.

The session's work tree, where it began, is compared with that of each written file, and with that of each git command
that changes files, the index or HEAD there. The folder of the call does not count. Only work trees of the same
repository count as other ones: the main checkout, and linked work trees. At level `notice` the session is told, from
`keep` on the call is denied: once for each work tree, and for each agent. The session's journal has an entry about it,
of kind ``fence``.
"""

from __future__ import annotations

import os
import time
from shlex import quote

from swarm_hook_core.denial import Denial, Notice, without_owner
from swarm_hook_core.hooks import ToolCall, Verdict
from swarm_hook_core.paths import contains
from swarm_hook_core.repository import Tree, tree_at, tree_over, trees_beside
from swarm_hook_core.settings import fence
from swarm_hook_core.shell.model import GitCall
from swarm_hook_core.shell.programs.git.listings import tree_of
from swarm_hook_core.shell.programs.git.table import asks
from swarm_hook_core.shell.programs.git.touched_files import without_aliases
from swarm_hook_core.traces import NOTICE, journal
from swarm_hook_core.traces.elsewhere import could_lead
from swarm_hook_core.traces.trail import Trail
from swarm_hook_core.untrusted_text import command, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.check import Check

ALIAS_SECONDS = 0.5  # for git's answer about an alias
_SHARED = ("push",)  # of commands that git is asked about, those that change what all work trees share
_MOVE_HEAD = ("update-ref", "symbolic-ref")
KIND = "fence"  # of the journal's entry: `key` is the top of the other work tree, `text` the call's id
NO_ID = "-"
APART_NS = 10**9  # calls closer than this may run side by side: the model has not read the denial of the first yet


def may_cross(check: Check, root: str) -> bool:
    """Return True if a call that names no files may write into another work tree than the one with its top at `root`.

    The text of the call is searched, with a bias towards yes.
    """
    home = _home(root)
    if home is None or not _is_on(check, root) or check.trail is None:
        return False

    if not contains(home.top, os.path.realpath(check.call.folder)):
        return True
    others = [top for top in trees_beside(home) if top != home.top]
    return bool(others) and could_lead(check.call, {home.common: others})


def judge(check: Check) -> Verdict | None:
    """Return the Verdict on a call that leaves the linked work tree of its session, or None."""
    home, trail, writes = _home(check.session.root), check.trail, check.writes
    if home is None or trail is None or not _is_on(check, home.top):
        return None
    if not writes.has_names and not writes.is_read and not may_cross(check, home.top):
        return None
    crossing = _crossing(check, home, trail)
    if crossing is None or not _is_on(check, crossing[1].top):
        return None
    path, tree, by, is_git = crossing
    if was_told(check.call, trail, tree.top):
        return None

    denies = trail.level != NOTICE
    words = _words(check.call, path, by, home, tree, denies, is_git)

    loss = without_owner(KIND, "write", by)
    if denies:
        return Verdict(Denial(path, None, words, loss=loss))
    verdict = Verdict(None, words)
    verdict.noted = [Notice(path, loss, words)]
    return verdict


def _is_on(check: Check, top: str) -> bool:
    return bool(fence(check.config.env_prefix, top).value == "on")


def _home(root: str) -> Tree | None:
    """Return the linked work tree with its top at `root`, or None. A submodule does not count."""
    tree = tree_at(root)
    if tree is None or tree.own == tree.common:
        return None
    return tree


def _crossing(check: Check, home: Tree, trail: Trail) -> tuple[str, Tree, str, bool] | None:
    """Return ``(path, its work tree, part of a command, False)`` of the first file in another work tree, or None.

    For a git command there, ``(top of the work tree, work tree, command, True)``.
    """
    effects = check.writes.effects
    written = [(target[1], target[3]) for target in trail.targets_of(effects)]
    if effects is not None:
        written += [(os.path.realpath(tree.root), tree.by) for tree in effects.trees]
    seen: dict[str, Tree | None] = {}
    for path, by in written:
        if path == home.top:
            continue  # it is removed, or moved
        folder = os.path.dirname(path)
        if folder not in seen:
            seen[folder] = _other_tree(folder, home)
        tree = seen[folder]
        if tree is not None:
            return path, tree, by, False
    for call in effects.git if effects is not None else ():
        top = tree_of(call)
        if top is None or top == home.top or call.in_doubt:
            continue
        tree = _other_tree(top, home)
        if tree is not None and _changes_tree(call):
            return tree.top, tree, call.by, True
    return None


def _changes_tree(call: GitCall) -> bool:
    """Return True if a git command changes files, the index or HEAD of the work tree that it runs in."""
    words = without_aliases(call, ALIAS_SECONDS)
    if not words or words[0] in _SHARED:
        return False
    return bool(asks(words)) or words[0] in _MOVE_HEAD


def _other_tree(folder: str, home: Tree) -> Tree | None:
    """Return the other work tree of the same repository that real `folder` lies in, or None.

    A submodule has a repository of its own, but lies in the work tree around it.
    """
    if contains(home.common, folder):
        return None  # git's own files, which all work trees share
    tree = tree_over(folder, is_real=True)
    while tree is not None and tree.top != home.top:
        if tree.common == home.common:
            return tree
        over = os.path.dirname(tree.top)
        if over == tree.top:
            return None
        tree = tree_over(over, is_real=True)
    return None


def was_told(call: ToolCall, trail: Trail, top: str, kind: str = KIND, key: str = "") -> bool:
    """Return True if the agent of the call was told of `key` in an earlier call; else note it. Raises OSError.

    top  a work tree of the repository that it is about; by default this is the key
    """
    place, key = trail.place_of(top), key or top
    told = told_earlier(call, trail, place, key, kind)
    if told is None:
        trail.note_at(key, kind, call.id or NO_ID, place=place)
        trail.leave()
    return bool(told)


def told_earlier(call: ToolCall, trail: Trail, place: str, key: str, kind: str, mark: str = "") -> bool | None:
    """Return True if the journal in the folder `place` says that the agent of the call was told in an earlier call.

    None if it has no such entry: of this `kind`, about `key`, with the `mark` before the call's id in its text. Two
    processes may answer one call: an entry with its id is no earlier call. Raises OSError.
    """
    own, now_ns = journal.read_own(os.path.join(place, trail.own_name)), time.time_ns()
    for entry in journal.newest_first(own, key, (kind,)):
        if entry.agent == call.agent and entry.text.startswith(mark):
            return now_ns - entry.at_ns > APART_NS and (not call.id or entry.text[len(mark) :] != call.id)
    return None


def _words(call: ToolCall, path: str, by: str, home: Tree, tree: Tree, denies: bool, is_git: bool) -> str:
    tool, kind, would = call.client_tool, "another work tree", "writes"
    if by:
        tool = f"{tool} ({command(by)})"
    if tree.own == tree.common:
        kind = "the main checkout"
    if denies:
        would = "would write"
    if is_git:
        would = "would change" if denies else "changes"
        fact = (
            f"swarm: {tool} {would} the files, the index or HEAD of {kind} {named(tree.top)}. This session works"
            f" in the work tree {named(home.top)}: others may be at work over there."
        )
        if denies:
            return (
                f"{fact} Run git there instead: `git -C {quote(home.top)} ...`. If the other one is meant, make the"
                " call again: this is denied once for each work tree."
            )
        return f"{fact} This is said once."
    own = os.path.join(home.top, os.path.relpath(path, tree.top))
    fact = (
        f"swarm: {tool} {would} {named(path)}, which lies in {kind} {named(tree.top)}. This session works in the"
        f" work tree {named(home.top)}: others may be at work over there."
    )
    if denies:
        return (
            f"{fact} Write {named(own)} instead. If the other file is meant, make the call again: this is denied once"
            " for each work tree."
        )
    return f"{fact} Its own copy of the file is {named(own)}. This is said once."
