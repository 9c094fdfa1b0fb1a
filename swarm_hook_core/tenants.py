"""Tenants: live sessions of others in a work tree that a call removes or moves away.

The call is denied once, for each state of the tree and each agent: then its session knows of the tenants, and of the
commits that would be lost with the tree. The same call again goes ahead. The tenants hear of both (`Eviction`). At level
`notice` the session is told, and the call goes ahead. The session's journal has an entry about it, of kind ``lives``.

A session lives where it is registered (its root), while its client runs. A session that the caller has started itself
does not count.
"""

from __future__ import annotations

import os
import time

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.denial import Denial, Loss, Notice
from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.hooks import Verdict
from swarm_hook_core.lookup import HOLD, TERMINAL, Held
from swarm_hook_core.paths import contains
from swarm_hook_core.repository import Tree, small_text, tree_at, trees_beside
from swarm_hook_core.tenants_wording import MOST_COMMITS, of_call
from swarm_hook_core.traces import NOTICE, journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_hook_core.check import Check
    from swarm_hook_core.hooks import ToolCall
    from swarm_hook_core.shell.model import Effects, GitCall
    from swarm_hook_core.traces.trail import Trail

KIND = "lives"  # of the journal's entry: `key` is the tenants' folder, `text` the commit there and the call's id
WHY = "tenant"  # of the Loss
NO_ID = "-"
APART_NS = 10**9  # calls closer than this may run side by side: the model has not read the denial of the first yet
GIT_SECONDS = 1.0
NOT_LIVING = (TERMINAL, HOLD, "team")  # runtimes: a person's terminal, a command with a lock, another machine's session


class Eviction:
    """A folder `root` with live sessions of others (`tenants`) that a call takes away.

    deed       the effect of the call, as a verb
    by         the part of the command that does so
    commits    ``[(short name, subject)]`` that no other ref has, newest first; None: git did not answer
    head       the commit that is checked out there; may be empty
    main       a folder of the same repository that stays; empty if none does
    is_denied  True if the call is denied for it
    """

    __slots__ = ("root", "tenants", "deed", "by", "commits", "head", "main", "is_denied")

    def __init__(self, root: str, deed: str, by: str):
        self.root = root
        self.deed = deed
        self.by = by
        self.tenants: list[Held] = []
        self.commits: list[tuple[str, str]] | None = []
        self.head = self.main = ""
        self.is_denied = False


def judge(check: Check, effects: Effects) -> Verdict | None:
    """Return the Verdict on a call that takes away a folder of other live sessions, or None."""
    trail = check.trail
    if trail is None:
        return None
    found = _evictions(check, effects)
    for one in found:
        _find_losses(one, effects)
    untold = [one for one in found if not _was_told(check.call, trail, one)]
    if not found:
        return None
    denies = bool(untold) and trail.level != NOTICE
    for one in found:
        one.is_denied = denies
    words = of_call(check.call.client_tool, untold, check.session.label, denies, check.now) if untold else ""
    first = (untold or found)[0]
    also = [one.root for one in found if one is not first]
    loss = Loss(WHY, first.tenants[0], first.deed, first.by, also=also)
    verdict = Verdict(None, words)
    if denies:
        _note(check.call, trail, found)
        words = "\n".join([words, *_other_denials(check, effects)])
        verdict = Verdict(Denial(first.root, None, words, loss=loss))
    else:
        verdict.noted = [Notice(first.root, loss, words or of_call(check.call.client_tool, found, "", False, 0))]
    verdict.evictions = found
    return verdict


# ------------------------------------------------------------------------------------------------ who lives where


def _evictions(check: Check, effects: Effects) -> list[Eviction]:
    found: dict[str, Eviction] = {}
    rows = check.reader.other_sessions(check.config.runtime_name, check.call.session_id, 0.0)
    for row in rows:
        if not isinstance(row["root"], str) or not row["root"] or row["runtime"] in NOT_LIVING:
            continue
        root = os.path.realpath(row["root"])
        if root not in found:
            fate = _fate(root, effects)
            if fate is None:
                continue
            eviction = Eviction(root, *fate)
        else:
            eviction = found[root]
        if _lives(check, row, root):
            found[root] = eviction
            note = check.reader.purpose_of(row["id"])
            eviction.tenants.append(Held(root, row["id"], row["label"], note, row["registered_at"]))
    return list(found.values())


def _lives(check: Check, row: Any, root: str) -> bool:
    """Return True if the session of `row` is another's, and its client runs."""
    from swarm_hook_core.liveness import departed
    from swarm_hook_core.process import ancestors, host_id
    from swarm_hook_core.traces.head import LATELY_SECONDS

    here, pid = host_id(), row["client_pid"] or 0
    if departed(row, check.now, here):
        return False
    if row["host"] != here or not pid:  # no process to look at
        return bool(row["last_seen"] > check.now - LATELY_SECONDS)
    own = check.reader.holder(check.config.runtime_name, check.call.session_id)
    own_pid = own[2]["client_pid"] if own is not None else 0
    if pid == own_pid:
        return root != os.path.realpath(check.session.root)  # else an earlier conversation of the same client
    return not own_pid or own_pid not in ancestors(below=pid)


# ------------------------------------------------------------------------------------------------ what is taken away


def _fate(root: str, effects: Effects) -> tuple[str, str] | None:
    """Return ``(deed, part of a command)`` of the call for the folder `root`, without links; None if it stays."""
    tree = tree_at(root, is_real=True)
    mark = f"{root}/.git" if tree is not None else root
    for one in effects.trees:
        over = os.path.realpath(one.root)
        if one.how == EDIT or (one.how == REPLACE and (one.is_whole or tree is None)):
            continue
        if contains(over, mark) and one.admits(one.root + mark[len(over) :]) is True:
            return _deed(effects, one.by) if one.how == REMOVE else "remove", one.by
        if tree is not None and tree.own != tree.common and contains(over, tree.own) and one.how == REMOVE:
            return "remove", one.by  # git's part of the work tree
    for write in effects.writes:
        path = os.path.join(write.folder, write.path)
        if write.how == REMOVE:
            whole = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
            if whole == mark or (whole == root and not write.by.startswith("rmdir")):
                return _deed(effects, write.by), write.by
    for call in effects.git:
        deed = "" if call.in_doubt else _fate_by_git(root, tree, call)
        if deed:
            return deed, call.by
    return None


def _deed(effects: Effects, by: str) -> str:
    """Return the effect of a part of the command that takes a folder from its place."""
    puts = any(one.by == by and one.how != REMOVE for one in [*effects.trees, *effects.writes])
    return "move away" if puts else "remove"


def _fate_by_git(root: str, tree: Tree | None, call: GitCall) -> str:
    """Return the effect of a git command on the folder `root`, empty for none."""
    from swarm_hook_core.shell.programs.git.removed_trees import removed_trees

    if call.words[:2] == ["worktree", "prune"]:
        return "drop git's record of" if tree is None and _record_of(root, call) is not None else ""
    if call.words[0] == "clean":
        return "remove" if contains(os.path.realpath(call.folder), root) and _cleans(root, call) else ""
    if any(contains(one, root) for one in removed_trees(call, are_changed=False)):
        return "move away" if call.words[1] == "move" else "remove"
    return ""


def _cleans(root: str, call: GitCall) -> bool:
    """Return True if this ``git clean`` removes the folder `root`: git itself is asked, by its dry run."""
    from swarm_hook_core.shell.programs.git.table import options_of
    from swarm_hook_core.shell.programs.patch import unquoted

    options = options_of(call.words)
    if len(options.given.get("-f", ())) + len(options.given.get("--force", ())) < 2:
        return False  # it leaves work trees alone
    flags = [f"-{letter}" for letter in "dxX" if options.has(f"-{letter}")]
    flags += [word for pattern in options.values("-e", "--exclude") for word in ("-e", pattern)]
    try:
        repository = Repository(call.folder, GIT_SECONDS, call.top, call.environment)
        told = repository.ask("clean", "-n", "-f", "-f", *flags, "--", *options.operands)
    except (NoAnswer, Refused):
        return False  # nor will it clean
    gone = [unquoted(line[len("Would remove ") :]) for line in told.split("\n") if line.startswith("Would remove ")]
    return any(contains(os.path.realpath(os.path.join(call.folder, path)), root) for path in gone)


# ------------------------------------------------------------------------------------------------ what is lost


def _find_losses(eviction: Eviction, effects: Effects) -> None:
    """Find the commits that no other ref has once the folder of `eviction` has gone."""
    tree = tree_at(eviction.root, is_real=True) or _pruned(eviction.root, effects)
    if tree is None:
        return
    text = small_text(os.path.join(tree.own, "HEAD")).strip()
    branch = text.removeprefix("ref: ").removeprefix("refs/heads/") if text.startswith("ref: ") else ""
    from swarm_hook_core.traces.head import commit_of

    eviction.head = commit_of(tree, f"refs/heads/{branch}") if branch else text
    if tree.own == tree.common:  # a clone, or a submodule, goes with all its refs
        lost = ["HEAD", "--branches", "--tags", "--not", "--remotes"]
    else:
        eviction.main = next((top for top in trees_beside(tree) if top != tree.top and os.path.isdir(top)), "")
        if branch and not _goes_along(branch, effects):
            return
        others = [text for top in trees_beside(tree) if top != tree.top and (text := _detached(top))]
        besides = ["--exclude=refs/heads/" + branch] if branch else []
        lost = [eviction.head or "HEAD", "--not", *besides, "--glob=refs/*", *others]
    folder = eviction.root if tree.own == tree.common else tree.common
    try:
        told = Repository(folder, GIT_SECONDS).ask("log", "--format=%h %s", f"-{MOST_COMMITS}", *lost, "--")
    except (NoAnswer, Refused):
        eviction.commits = None
        return
    eviction.commits = [(name, subject) for line in told.splitlines() for name, _, subject in [line.partition(" ")]]


def _detached(top: str) -> str:
    """Return the commit of the work tree `top` if its HEAD is detached; else empty."""
    tree = tree_at(top, is_real=True)
    text = small_text(os.path.join(tree.own, "HEAD")).strip() if tree is not None else ""
    return "" if text.startswith("ref: ") else text


def _goes_along(branch: str, effects: Effects) -> bool:
    """Return True if the call deletes this branch as well."""
    return any(call.words[0] == "branch" and "-D" in call.words and branch in call.words for call in effects.git)


def _pruned(root: str, effects: Effects) -> Tree | None:
    prunes = [call for call in effects.git if call.words[:2] == ["worktree", "prune"]]
    return next((tree for call in prunes if (tree := _record_of(root, call)) is not None), None)


def _record_of(root: str, call: GitCall) -> Tree | None:
    """Return the linked work tree that git has a record of, and that was at `root` before it was moved or removed."""
    from swarm_hook_core.shell.programs.git.command_line import tree_of

    top = tree_of(call)
    tree = tree_at(top, is_real=True) if top is not None else None
    if tree is None or os.path.lexists(root):
        return None
    listed = os.path.join(tree.common, "worktrees")
    for name in os.listdir(listed) if os.path.isdir(listed) else ():
        own = os.path.join(listed, name)
        is_kept = os.path.exists(os.path.join(own, "locked"))
        if not is_kept and small_text(os.path.join(own, "gitdir")).strip() == f"{root}/.git":
            return Tree(root, own, tree.common)
    return None


def _other_denials(check: Check, effects: Effects) -> list[str]:
    """Return the reasons of the fence, for which it has then been told, and of the rules about uncommitted work."""
    from swarm_hook_core import fence
    from swarm_hook_core.asked import asked_trail
    from swarm_hook_core.persons.verdict import judge as of_person
    from swarm_hook_core.traces.verdict import judge as of_sessions

    reasons = []
    try:
        crossing = fence.judge(check) if check.is_in_linked_tree() else None
        if crossing is not None and crossing.denial is not None:
            reasons.append(crossing.denial.reason)
        for number in range(2):
            trail = asked_trail(check.config, check.call)
            if trail is None:
                break
            if number:
                found = of_person(trail, effects, check.reader, check.now)
                denial = found.denial if found is not None else None
            else:
                denial, _words = of_sessions(check.session, trail, effects, check.reader, check.now)
            reasons += [denial.reason] if denial is not None else []
    except Exception as error:  # they are asked as the call comes again
        check.core.record_fault("traces", error)
    return reasons


# ------------------------------------------------------------------------------------------------ told once


def _was_told(call: ToolCall, trail: Trail, eviction: Eviction) -> bool:
    """Return True if the agent of the call was told of this eviction in an earlier call, and no commit came since.

    Two processes may answer one call: an entry with its id is no earlier call. Raises OSError.
    """
    own, now_ns = journal.read(os.path.join(_place(trail, eviction), trail.own_name)), time.time_ns()
    for entry in journal.newest_first(own, eviction.root, (KIND,)):
        head, _, call_id = entry.text.partition(" ")
        if entry.agent == call.agent and head == (eviction.head or NO_ID):
            return now_ns - entry.at_ns > APART_NS and (not call.id or call_id != call.id)
    return False


def _note(call: ToolCall, trail: Trail, evictions: list[Eviction]) -> None:
    """Note that the session was told. Raises OSError."""
    for one in evictions:
        text = f"{one.head or NO_ID} {call.id or NO_ID}"
        trail.note_at(one.root, KIND, text, place=_place(trail, one))
    trail.leave()


def _place(trail: Trail, eviction: Eviction) -> str:
    return trail.place_of(eviction.root if os.path.isdir(eviction.root) else eviction.main or trail.call.folder)
