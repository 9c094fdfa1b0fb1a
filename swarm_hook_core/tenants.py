"""Tenants: live sessions of others in a folder that a call removes or moves away, mostly a linked work tree.

The call is denied once, for each commit there and each agent: then its session knows of the tenants, and of the commits
that would be lost with the tree. The same call again goes ahead. The tenants hear of both (`Eviction`). At `notice` the
session is told, and the call goes ahead. The session's journal has an entry about it, of kind ``lives``.

A session lives where it is registered (its root), while its client runs. A session that the caller has started itself
does not count.

    fates    what the call does to a folder
    losses   the commits that go with it
    wording  denials and notices
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from shlex import quote
from typing import Any

from swarm_hook_core import EDIT, REMOVE, fence
from swarm_hook_core.denial import Denial, Loss, Notice, without_owner
from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.hooks import Verdict
from swarm_hook_core.lookup import HOLD, TERMINAL, Held
from swarm_hook_core.paths import contains
from swarm_hook_core.process import ancestors, departed, host_id
from swarm_hook_core.repository import Tree, small_text, tree_at, tree_over, trees_beside
from swarm_hook_core.shell.model import Effects, GitCall
from swarm_hook_core.shell.model import Tree as Below
from swarm_hook_core.shell.programs.git.listings import tree_of
from swarm_hook_core.shell.programs.git.named_files import removed_trees
from swarm_hook_core.shell.programs.git.table import options_of
from swarm_hook_core.shell.programs.patch import unquoted
from swarm_hook_core.stakes.verdict import Judgement as OfOthers
from swarm_hook_core.stakes.writes import Judgement as OfSessions
from swarm_hook_core.traces import NOTICE
from swarm_hook_core.traces.head import LATELY_SECONDS, commit_of, known_branches
from swarm_hook_core.traces.head.movement import BRANCHES, Commit, only_in
from swarm_hook_core.traces.head.news import AGAIN, lost, tree_has_gone, working
from swarm_hook_core.traces.trail import Trail, asked_trail
from swarm_hook_core.untrusted_text import command, named
from swarm_hook_core.wording import duration

TYPE_CHECKING = False

if TYPE_CHECKING:
    from swarm_hook_core.check import Check

# The removal of a folder with sessions in it, as a record.


class Eviction:
    """A folder `root`, without links, with live sessions of others (`tenants`) that a call takes away.

    deed       the effect of the call, as a verb
    by         the part of the command that does so
    commits    those that no other ref has, newest first; None: git did not answer
    head       the commit that is checked out there; may be empty
    main       a folder of the same repository that stays; empty if none does
    branch     the branch that was checked out there, if the call deletes that; else empty
    is_denied  True if the call is denied for it
    """

    __slots__ = ("root", "tenants", "deed", "by", "commits", "head", "main", "branch", "is_denied")

    def __init__(self, root: str, deed: str, by: str):
        self.root = root
        self.deed = deed
        self.by = by
        self.tenants: list[Held] = []
        self.commits: list[Commit] | None = []
        self.head = self.main = self.branch = ""
        self.is_denied = False

    @property
    def state(self) -> str:
        """The state of which the session is told once: another commit there, or a branch that goes, is news."""
        return ":".join(filter(None, (self.head or fence.NO_ID, self.branch)))


# The fate of a folder under a call: whether it stays, and what moves or removes it.

REMOVES, MOVES, FORGETS = "remove", "move away", "drop git's record of"
GIT_SECONDS = 1.0


def eviction_of(root: str, effects: Effects) -> Eviction | None:
    """Return the Eviction, without tenants, of real folder `root` by a call with these Effects; None if it stays."""
    tree = tree_at(root, is_real=True)
    for below in effects.trees:
        if _takes(below, root, tree):
            return Eviction(root, _deed(effects, below.how, below.by), below.by)
    for write in effects.writes:
        if write.how == REMOVE and _removes_mark(os.path.join(write.folder, write.path), root, write.by):
            return Eviction(root, _deed(effects, write.how, write.by), write.by)
    for call in effects.git:
        deed = _deed_of_git(root, tree, call)
        if deed:
            return Eviction(root, deed, call.by)
        top = tree_of(call) if tree is None else None
        for branch in deleted_branches(call) if top else ():
            if top and branch in known_branches(top, root):
                found = Eviction(root, f"delete the branch {named(branch)} of", call.by)
                found.branch, found.main = branch, top
                return found
    return None


def deleted_branches(call: GitCall) -> list[str]:
    """Return the branches that a git command deletes, also with commits that nothing else has."""
    options, verb = options_of(call.words), call.words[0]
    if verb == "update-ref" and options.has("-d", "--delete"):
        return [one.removeprefix(BRANCHES) for one in options.operands[:1] if one.startswith(BRANCHES)]
    if verb == "branch" and (options.has("-D") or (options.has("-d", "--delete") and options.has("-f", "--force"))):
        return options.operands
    return []


def record_of(root: str, call: GitCall) -> Tree | None:
    """Return the linked work tree that was at `root` before it was moved or removed, if git has a record of it."""
    top = tree_of(call)
    if top is None or os.path.lexists(root):
        return None
    tree = tree_at(top, is_real=True)
    if tree is None:
        return None
    listed = os.path.join(tree.common, "worktrees")
    try:
        names = os.listdir(listed)
    except OSError:
        return None  # no linked work trees
    for name in names:
        own = os.path.join(listed, name)
        is_kept = os.path.exists(os.path.join(own, "locked"))
        if not is_kept and small_text(os.path.join(own, "gitdir")).strip() == f"{root}/.git":
            return Tree(root, own, tree.common)
    return None


def _takes(below: Below, root: str, tree: Tree | None) -> bool:
    """Return True if the files of `below` go, and with them the folder `root`: its ``.git``, if it is a work tree."""
    over = os.path.realpath(below.root)
    if below.how == EDIT or (below.how != REMOVE and (below.is_whole or tree is None)):
        return False  # a copy laid over it
    mark = root
    if tree is not None:
        mark = f"{root}/.git"
        if below.how == REMOVE and tree.own != tree.common and contains(over, tree.own):
            return True  # git's part of the work tree
    return contains(over, mark) and below.admits(below.root + mark[len(over) :]) is True


def _removes_mark(path: str, root: str, by: str) -> bool:
    """Return True if the removal of `path` alone takes the folder `root`, or makes it no work tree."""
    whole = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return whole == f"{root}/.git" or (whole == root and not by.startswith("rmdir"))


def _deed(effects: Effects, how: str, by: str) -> str:
    """Return the effect of a part of the command: it moves the folder if it also puts something elsewhere."""
    puts = [(one.by, one.how) for one in effects.trees] + [(one.by, one.how) for one in effects.writes]
    if how == REMOVE and any(other == by and its != REMOVE for other, its in puts):
        return MOVES
    return REMOVES


def _deed_of_git(root: str, tree: Tree | None, call: GitCall) -> str:
    """Return the effect of a git command on the folder `root`, empty for none."""
    if call.in_doubt:
        return ""
    if call.words[0] == "clean":
        if contains(os.path.realpath(call.folder), root) and _cleans(root, call):
            return REMOVES
    elif call.words[:2] == ["worktree", "prune"]:
        if tree is None and record_of(root, call) is not None:
            return FORGETS
    elif any(contains(one, root) for one in removed_trees(call, are_changed=False)):
        if call.words[1] == "move":
            return MOVES
        return REMOVES
    return ""


def _cleans(root: str, call: GitCall) -> bool:
    """Return True if this ``git clean`` removes the folder `root`: git itself is asked, by its dry run."""
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


# The words about a folder with live sessions in it, for the session whose call takes it away.

NAMED = 3  # folders that are named


def of_call(tool: str, evictions: Sequence[Eviction], own_label: str, denies: bool, now: float) -> str:
    """Return the denial of a call that takes these folders away, or the notice about it."""
    parts = [_of_one(tool, one, own_label, denies, now) for one in evictions[:NAMED]]
    if len(evictions) > NAMED:
        parts.append(f"So it is with {len(evictions) - NAMED} more folders.")
    if denies:
        parts.append("Leave it, or ask that session first (send_message, or `swarm-mcp send`).")
        kept = next((one.commits for one in evictions if one.commits and one.main), None)
        if kept:
            parts.append(f"`git branch NAME {kept[0].name}` keeps the commits.")
        parts.append(f"If it is meant, {AGAIN}, and that session is told.")
    return "swarm: " + " ".join(parts)


def _of_one(tool: str, one: Eviction, own_label: str, denies: bool, now: float) -> str:
    by, does, live, age = "", f"is to {one.deed}", "live", ""
    if one.by and not tool.endswith(one.by):
        by = f" ({command(one.by)})"
    if denies:
        does = f"would {one.deed}"
    if len(one.tenants) == 1:
        live = "lives"
    since = min((held.since for held in one.tenants if held.since), default=0)
    if since:
        age = f", since {duration(now - since)} ago"
    who = working(one.tenants, own_label)
    return f"{tool}{by} {does} {named(one.root)}, in which {who} {live}{age}.{lost(one.commits)}"


# The commits that are lost with a folder: those that no other ref has.


def find(eviction: Eviction, effects: Effects) -> None:
    """Set the `head`, `main` and `commits` of `eviction`. Git is asked once."""
    tree = tree_at(eviction.main or eviction.root, is_real=True) or _pruned(eviction.root, effects)
    if tree is None:
        return
    branch, beside = eviction.branch, [top for top in trees_beside(tree) if top != eviction.root]
    if branch:
        eviction.head = commit_of(tree, BRANCHES + branch)
    else:
        branch, eviction.head = _head_of(tree)
        if tree.own == tree.common:  # a clone, or a submodule, goes with all its refs
            eviction.commits = only_in(eviction.root, ["HEAD", "--branches", "--tags", "--not", "--remotes"])
            return
        eviction.main = next(filter(os.path.isdir, beside), "")
        if branch and not any(branch in deleted_branches(call) for call in effects.git):
            return
        eviction.branch = branch
    without = [f"--exclude={BRANCHES}{branch}"] if branch else []
    eviction.commits = only_in(tree.common, [eviction.head or "HEAD", "--not", *without, "--glob=refs/*"], beside)


def _head_of(tree: Tree) -> tuple[str, str]:
    """Return ``(branch, commit)`` of the work tree's HEAD; no branch if it is detached."""
    text = small_text(os.path.join(tree.own, "HEAD")).strip()
    if not text.startswith("ref: "):
        return "", text
    ref = text[len("ref: ") :].strip()
    return ref.removeprefix(BRANCHES), commit_of(tree, ref)


def _pruned(root: str, effects: Effects) -> Tree | None:
    prunes = [call for call in effects.git if call.words[:2] == ["worktree", "prune"]]
    return next((tree for call in prunes if (tree := record_of(root, call)) is not None), None)


KIND = "lives"  # of the journal's entry: `key` is the tenants' folder, `text` the commit there and the call's id
WHY = "tenant"  # of the Loss
NOT_LIVING = (TERMINAL, HOLD, "team")  # runtimes: a person's terminal, a command with a lock, another machine's session


def judge(check: Check, effects: Effects) -> Verdict | None:
    """Return the Verdict on a call that takes away a folder of other live sessions, or None."""
    trail = check.trail
    if trail is None:
        return None
    _note_own(check, trail, effects)
    found = _evictions(check, effects)
    if not found:
        return None
    for one in found:
        find(one, effects)
    untold = [
        one
        for one in found
        if not fence.told_earlier(check.call, trail, _place(trail, one), one.root, KIND, f"{one.state} ")
    ]
    denies = bool(untold) and trail.level != NOTICE
    for one in found:
        one.is_denied = denies
    first = (untold or found)[0]
    loss = Loss(WHY, first.tenants[0], first.deed, first.by, also=[one.root for one in found if one is not first])
    words = of_call(check.call.client_tool, untold or found, check.session.label, denies, check.now)
    verdict = Verdict()
    if denies:
        # Note that the session was told
        for one in found:
            text = f"{one.state} {check.call.id or fence.NO_ID}"
            trail.note_at(one.root, KIND, text, place=_place(trail, one))
        trail.leave()
        verdict.denial = Denial(first.root, None, "\n".join([words, *_other_denials(check, effects)]), loss=loss)
    else:
        verdict.noted = [Notice(first.root, loss, words)]
        if untold:
            verdict.notice = words
    verdict.evictions = found
    return verdict


# ------------------------------------------------------------------------------------------------ who lives where


def _evictions(check: Check, effects: Effects) -> list[Eviction]:
    """Return the Evictions of the call, one for each folder with tenants."""
    by_root: dict[str, Eviction | None] = {}
    for row in check.reader.other_sessions(check.config.runtime_name, check.call.session_id, 0.0):
        if not isinstance(row["root"], str) or not row["root"] or row["runtime"] in NOT_LIVING:
            continue
        root = os.path.realpath(row["root"])
        if root not in by_root:
            by_root[root] = eviction_of(root, effects)
        eviction = by_root[root]
        if eviction is not None and _lives(check, row, root):
            note = check.reader.purpose_of(row["id"])
            eviction.tenants.append(Held(root, row["id"], row["label"], note, row["registered_at"]))
    return [eviction for eviction in by_root.values() if eviction is not None and eviction.tenants]


def _lives(check: Check, row: Any, root: str) -> bool:
    """Return True if the session of `row` is another's, and its client runs."""
    here, pid = host_id(), row["client_pid"] or 0
    if departed(row, check.now, here):
        return False
    if row["host"] != here or not pid:  # no process to look at
        return bool(row["last_seen"] > check.now - LATELY_SECONDS)
    own = check.reader.holder(check.config.runtime_name, check.call.session_id)
    if own is None or not own[2]["client_pid"]:
        return True
    own_pid = own[2]["client_pid"]
    if pid == own_pid:
        return root != os.path.realpath(check.session.root)  # else an earlier conversation of the same client
    return own_pid not in ancestors(below=pid)


# ------------------------------------------------------------------------------------------------ other tools


def told_of_moves(check: Check, effects: Effects) -> Verdict | None:
    """Return the notice about commands of other tools that may discard or move the work of live sessions, or None."""
    verdict = Verdict()
    for folder, by in effects.moves[:1] if check.trail is not None else ():
        top, beside = _repository_around(folder or check.call.folder)
        found = [held for root in beside for held in check.neighbours.get(root, ())]
        if not found:
            continue
        who = working(found, check.session.label)
        words = (
            f"swarm: {check.call.client_tool} ({command(by)}) may discard or move the work of others in this"
            f" repository: {who}. It cannot be asked beforehand: look first what it would do, and tell them"
            " (send_message)."
        )
        verdict.notice = words
        verdict.noted = [Notice(top, without_owner("head", "change", by), words)]
    return verdict if verdict.notice else None


def _repository_around(folder: str) -> tuple[str, list[str]]:
    """Return ``(top, tops of all its work trees)`` of the repository around a folder, of git or another tool."""
    top = os.path.realpath(folder)
    while top != os.path.dirname(top):
        tree = tree_at(top, is_real=True)
        if tree is not None:
            return top, trees_beside(tree)
        if any(os.path.isdir(os.path.join(top, name)) for name in (".jj", ".sl", ".hg")):
            return top, [top]
        top = os.path.dirname(top)
    return folder, []


# ------------------------------------------------------------------------------------------------ one's own tree

KIND_GONE = "gone"  # of the journal's entry: `key` is the folder of the session, `text` the call's id


def judge_gone(check: Check) -> Verdict | None:
    """Return the Verdict on the first command after the work tree of its session has gone: git uses the one around."""
    trail, root = check.trail, check.session.root
    around = tree_over(os.path.dirname(root))
    if trail is None or around is None or fence.was_told(check.call, trail, around.top, KIND_GONE, root):
        return None
    branch = next(iter(sorted(known_branches(around.top, os.path.realpath(root)))), "BRANCH")
    words = tree_has_gone(root, around.top)
    loss = without_owner("head", "change")
    if trail.level == NOTICE:
        verdict = Verdict(None, words)
        verdict.noted = [Notice(root, loss, words)]
        return verdict
    tree = f"`git -C {quote(around.top)} worktree add {quote(root)} {branch}`"
    words += (
        f" So {check.call.client_tool} was not run. {tree} makes the work tree anew; `swarm-mcp restore --list` shows"
        f" contents that were kept. If the command is meant for {named(around.top)}, {AGAIN}."
    )
    return Verdict(Denial(root, None, words, loss=loss))


def _note_own(check: Check, trail: Trail, effects: Effects) -> None:
    """Note that the session itself takes its work tree away: that is no news for it."""
    root = check.session.root
    around = tree_over(os.path.dirname(root)) if root else None
    if around is not None and tree_at(root) is not None and eviction_of(os.path.realpath(root), effects) is not None:
        fence.was_told(check.call, trail, around.top, KIND_GONE, root)


# ------------------------------------------------------------------------------------------------ told once


def _place(trail: Trail, eviction: Eviction) -> str:
    """Return the journals' folder for the eviction; its own folder may have gone already."""
    if os.path.isdir(eviction.root):
        return trail.place_of(eviction.root)
    return trail.place_of(eviction.main or trail.call.folder)


def _other_denials(check: Check, effects: Effects) -> list[str]:
    """Return the reasons of the fence, for which it has then been told, and of the rules about uncommitted work."""
    verdicts: list[Verdict | None] = []
    try:
        if check.is_in_linked_tree():
            verdicts.append(fence.judge(check))
        trail = asked_trail(check.config, check.call)
        if trail is not None:
            verdicts.append(OfOthers(check.session, trail, effects, check.reader, check.now).verdict())
            trail = asked_trail(check.config, check.call)
            assert trail is not None
            verdicts.append(OfSessions(check.session, trail, effects, check.reader, check.now).verdict())
    except Exception as error:  # they are asked again as the call comes again
        check.core.record_fault("traces", error)
    reasons = [one.denial.reason for one in verdicts if one is not None and one.denial is not None]
    return list(dict.fromkeys(reasons))
