"""Words about a HEAD that several sessions share: denials, notices, and news of a moved HEAD, told once."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Sequence
from typing import Any

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.lookup import Held, LockReader, Session
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.repository import Tree, tree_at
from swarm_hook_core.state import local_store
from swarm_hook_core.traces import head as heads
from swarm_hook_core.traces.head import MOST_LOST, Head, Note
from swarm_hook_core.untrusted_text import as_word, command, cut, named, quoted, token
from swarm_hook_core.wording import and_more, duration, holder, purpose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.head.movement import Commit, Dropped, Movement

NAMED = 4  # sessions named in one line
LOST_NAMED = 3  # commits
LONGEST_REF = 100  # characters of a branch's name
AGAIN = "the same command again goes ahead"

# deed: (words for a coming command, words for a past one); {} stands for its target
_DEEDS = {
    "switch": ("switch this work tree to {}", "switched this work tree"),
    "reset": ("move the branch of this work tree to {}", "reset the branch of this work tree"),
    "rebase": ("rebase the branch of this work tree", "rebased the branch of this work tree"),
    "amend": ("replace the last commit", "replaced the last commit"),
    "merge": ("merge {} into the branch of this work tree", "merged into the branch of this work tree"),
    "pull": ("pull into the branch of this work tree", "pulled into the branch of this work tree"),
    "move-branch": ("move or rename the branch {}", "moved or renamed a branch"),
}


def would_move(
    tool: str, by: str, movement: Movement, head: Head, others: Sequence[Held], own_label: str, top: str, is_here: bool
) -> str:
    """Return the denial of a command that moves HEAD under `others`, the live sessions of the work tree `top`.

    is_here  True if the call is made in that work tree
    """
    deed = _DEEDS[movement.deed][0].format(_ref(movement.target))
    if not is_here:
        deed = deed.replace("this work tree", f"the work tree {named(top)}")
    return (
        f"swarm: {tool} ({command(by)}) would {deed}, now on {on(head)}. {working(others, own_label)} work"
        f"{'s' if len(others) == 1 else ''} in it, too: one HEAD and one index for all. {_instead(movement, top)} If it"
        f" has to be here, {AGAIN}, and they are told."
    )


def lost(commits: Sequence[Commit] | None, top: str = "") -> str:
    """Return sentences about the commits that no other ref has, with a blank before; empty without any.

    top  a folder of the repository that stays, for the command that keeps them
    """
    if commits is None:
        return " Git did not tell in time if commits there are on a branch."
    if not commits:
        return ""
    some = ", ".join(f"{named(one.name)} {quoted(one.subject)}" for one in commits[:LOST_NAMED])
    count, way = "1 commit there is", ""
    if len(commits) > 1:
        more = " or more" if len(commits) == MOST_LOST else ""
        count = f"{len(commits)}{more} commits there are"
    if len(commits) > LOST_NAMED:
        some += ", ..."
    if top:
        way = f" `git -C {as_word(top)} branch NAME {commits[0].name}` keeps the commits."
    return f" {count} on no other branch or tag: {some}.{way}"


def tree_has_gone(root: str, around: str) -> str:
    """Return the sentences about the work tree `root` of a session; `around`: the one that git finds there now."""
    return (
        f"swarm: {named(root)}, the work tree in which this session began, has gone: it was removed, or emptied. In"
        f" that folder git uses the checkout around it, {named(around)}."
    )


def moves(by: str, movement: Movement, others: Sequence[Held], own_label: str) -> str:
    """Return the notice about such a command that goes ahead."""
    deed = _DEEDS[movement.deed][0].format(_ref(movement.target))
    return f"swarm: {command(by)} may {deed}. In the same work tree: {working(others, own_label)}."


def _instead(movement: Movement, top: str) -> str:
    """Return the advice: a work tree of one's own."""
    target = movement.target
    if movement.deed != "switch" or not target or not _is_plain(target):
        return f"Work in a tree of your own: `git worktree add -b BRANCH {_beside(top, 'BRANCH')}`."
    words = f"{_beside(top, target)} {target}"
    if movement.is_new:
        words = f"-b {target} {_beside(top, target)}"
    return f"Work in a tree of your own: `git worktree add {words}`."


def _beside(top: str, branch: str) -> str:
    name = f"{os.path.basename(top)}-{branch.rpartition('/')[2]}"
    if _is_plain(name):
        return f"../{name}"
    return "../FOLDER"


def _is_plain(text: str) -> bool:
    return all(letter.isalnum() or letter in "-_./" for letter in text) and not text.startswith("-")


def was_moved(deed: str, who: str, since: float, before: Head, now: Head) -> str:
    """Return the notice that HEAD has moved since the session last knew it; `who` is empty for an unknown mover."""
    if who:
        fact = f"{who} {_DEEDS[deed][1]} {duration(since)} ago"
    else:
        fact = "this work tree's branch was switched, by a person or a script"
    was, is_now = on(before), on(now)
    if was == is_now:
        was, is_now = (f"{is_now} ({cut(head.commit, 8).rstrip('…')})" for head in (before, now))
    return f"swarm: {fact}: it was on {was}, and is on {is_now} now. Read files again before you go on with them."


def commits_elsewhere(tool: str, by: str, fact: str, now: Head) -> str:
    """Return the denial of a commit to another branch than its session knew; `fact`: the notice of the change."""
    return (
        f"{fact} So {tool} ({command(by)}) was not run: it would commit to {on(now)}. If that is meant, {AGAIN}."
        " If not, leave this work tree as it is, and commit in one of your own (`git worktree add`)."
    )


def removes_lock(tool: str, by: str, path: str, age: float, pid: int) -> str:
    """Return the denial of a command that removes a lock of git's; `pid`: a git that runs there, or 0."""
    runs = f"git (process {pid}) runs in this work tree" if pid else f"it was made {duration(age)} ago"
    locked = os.path.basename(path).removesuffix(".lock")
    return (
        f"swarm: {tool} ({command(by)}) would remove {named(path)}, the lock of a git command that may still run:"
        f" {runs}. Without it two commands write one {named(locked)}. Wait a few seconds and look again. If no git"
        f" runs there, {AGAIN}."
    )


def stale_index(tool: str, by: str, path: str, now: Head) -> str:
    """Return the denial of a commit from a private index that is older than HEAD."""
    return (
        f"swarm: {tool} ({command(by)}) would commit from {named(path)} (GIT_INDEX_FILE), which is older than the last"
        f" move of {on(now)}: the commit would undo what was committed since. First `git read-tree HEAD` into it, then"
        f" stage your files again. If it is meant, {AGAIN}."
    )


def drops_commits(tool: str, by: str, dropped: Dropped, others: Sequence[Held], own_label: str) -> str:
    """Return the denial of a forced push that drops commits which its session has not made, or unknown ones."""
    branch, remote = _ref(dropped.branch), named(dropped.remote, LONGEST_REF)
    if dropped.commits is None:
        fact = f"would replace {branch} on {remote}, with commits that are not known here"
        way = f"`git fetch` first, and see if they are yours (`git log {branch}..{remote}/{branch}`)."
    else:
        some = ", ".join(f"{one.name} {quoted(one.subject)}" for one in dropped.commits[:NAMED])
        count, more = len(dropped.commits), len(dropped.commits) - NAMED
        if more > 0:
            some += f" and {more} more"
        fact = f"would drop {count} commit{'s' if count > 1 else ''} of {branch} on {remote} that this session has not"
        fact += f" made: {some}"
        way = "Keep them: `git pull --rebase`, then push without force. Or ask their author."
    return (
        f"swarm: {tool} ({command(by)}) {fact}. In the same work tree: {working(others, own_label)}. {way} If it is"
        f" meant, {AGAIN}."
    )


def of_passing(text: str) -> str:
    """Return the `text` of a denial for a call that goes ahead: without its last sentence, the way past it."""
    return text[: text.rindex(" If ")]


def working(others: Sequence[Held], own_label: str) -> str:
    """Return the sessions in words: ``codex 5f0c (working on "...") and claude ab12``."""
    names = []
    for one in others[:NAMED]:
        identity = token(own_label, "identity")
        names.append(holder(one, identity)[0] + purpose(one, identity))
    if len(others) > NAMED:
        names.append(f"{len(others) - NAMED} more")
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def on(head: Head) -> str:
    """Return a HEAD in words: the branch, or the commit."""
    if head.branch:
        return _ref(head.branch)
    return f"a detached HEAD ({cut(head.commit, 12).rstrip('…')})"


def _ref(name: str) -> str:
    if name:
        return named(name, LONGEST_REF)
    return "another commit"


# ------------------------------------------------------------------------------------------------ news

SETTLED_SECONDS = 120  # a command that was let pass this long ago has moved HEAD by now, or does not


def words_of(
    runtime: str, session_id: str, session: Session, top: str, note: Note, head: Head, reader: LockReader, now: float
) -> str:
    """Return the words about a HEAD that has moved since the session's `note`, or an empty text.

    Moves by the session itself are no news, nor are ordinary commits on the same branch.
    """
    if not note.at_ns or note.head == head:
        return ""
    move = heads.moved(top)
    if move is not None and (move.at_ns <= note.at_ns or (move.runtime, move.session_id) == (runtime, session_id)):
        move = None
        if not note.head.is_known:
            return ""
    if move is None:
        if note.head.is_elsewhere(head):
            return was_moved("", "", 0, note.head, head)
        return ""
    before = note.head if note.head.commit else move.before
    if before == head or (move.deed == "switch" and before.branch == head.branch != ""):
        return ""  # the command has failed, and other commits came meanwhile
    found = reader.holder(move.runtime, move.session_id)
    who = "a session that has ended"
    if found is not None:
        who = working([Held(top, found[0], found[1], "")], session.label)
    return was_moved(move.deed, who, now - move.at_ns / 1e9, before, head)


def beside(runtime: str, session_id: str, session: Session, top: str, reader: LockReader, now: float) -> str:
    """Return the words about a moved HEAD for a call that runs no git, and note that they were told."""
    note, head = heads.noted(runtime, session_id, top), heads.read(top)
    if note is None or head is None:
        return ""
    words = words_of(runtime, session_id, session, top, note, head, reader, now)
    if words or is_settled(top, now):
        heads.note(runtime, session_id, top, head, note.told)
    return words


def is_settled(top: str, now: float) -> bool:
    """Return True if no command can still be about to move HEAD of the work tree `top`."""
    move = heads.moved(top)
    return move is None or move.at_ns / 1e9 < now - SETTLED_SECONDS


def at_turn(runtime: str, session_id: str, folder: str, driver: Any) -> str:
    """Return the words for a session that begins, or begins a turn, about a moved HEAD; note the present one."""
    top = heads.top_of(folder)
    if top is None:
        return ""
    head, note = heads.read(top), heads.noted(runtime, session_id, top)
    if head is None:
        return ""
    words, told = _of_lost_tree(runtime, session_id, os.path.realpath(folder), top), set()
    if note is not None:
        told = note.told
    if note is not None and note.head != head:
        reader = StoreReader(local_store(), driver)
        session = reader.session(runtime, session_id)
        if session is not None:
            moved = words_of(runtime, session_id, session, top, note, head, reader, time.time())
            words = "\n".join(filter(None, (words, moved)))
    said, tree = list[str](), tree_at(top)
    if tree is not None:
        said, told = _of_settings(tree, told)
    heads.note(runtime, session_id, top, head, told)
    return "\n".join(filter(None, (words, *said)))


def _of_lost_tree(runtime: str, session_id: str, folder: str, top: str) -> str:
    """Return the words about a work tree of the session that has gone from `folder`, told once; mostly empty.

    top  the work tree that git finds there now
    """
    while folder != top and folder != os.path.dirname(folder):
        if heads.noted(runtime, session_id, folder) is not None:
            heads.forget_note(runtime, session_id, folder)
            return tree_has_gone(folder, top)
        folder = os.path.dirname(folder)
    return ""


# The settings of a repository that are part of no commit: a change of them is told once, as a turn begins.
#
# ``info/exclude`` hides files from ``git status``, ``info/attributes`` has git convert or merge contents in another
# way, and ``core.worktree`` has git act on another folder. No hook of git's tells of a change, and no diff shows it.

SECONDS = 0.5  # for git's answers
FILES = 3  # in the words


def _of_settings(tree: Tree, told: set[str]) -> tuple[list[str], set[str]]:
    """Return sentences about changes since the session's facts `told`, and its facts from now on.

    Without facts of these kinds in `told` there is no news: the session learns them here.
    """
    now = {f"{name}={_state(tree, name)}" for name in ("info/exclude", "info/attributes", "config")}
    known = {fact for fact in told if fact.partition("=")[0] in _WORDS}
    place = {fact for fact in known if fact.startswith("core.worktree=")}
    if any(fact.startswith("config=") for fact in now - known):
        place = {f"core.worktree={zlib.crc32(_worktree(tree).encode())}"}
    now |= place
    words: list[str] = []
    if known:
        words = [_WORDS[fact.partition("=")[0]](tree) for fact in sorted(now - known)]
    return [one for one in words if one], (told - known) | now


def _state(tree: Tree, name: str) -> int:
    try:
        return os.stat(os.path.join(tree.common, name)).st_mtime_ns
    except OSError:
        return 0  # missing


def _worktree(tree: Tree) -> str:
    try:
        return Repository(tree.top, SECONDS).setting("core.worktree")
    except (NoAnswer, Refused):
        return ""  # as if it were not set


def _excluded(tree: Tree) -> str:
    try:
        files = Repository(tree.top, SECONDS).hidden([""])
    except (NoAnswer, Refused):
        return ""  # git was too slow: the files are protected all the same
    if not files:
        return ""
    shown = ", ".join(named(one) for one in files[:FILES]) + and_more(len(files) - FILES)
    return (
        f"swarm: .git/info/exclude has changed, and hides from `git status`: {shown}. No commit has them: they stay the"
        " work of who made them."
    )


def _attributes(_tree: Tree) -> str:
    return "swarm: .git/info/attributes has changed: git may merge or convert files of this repository in another way."


def _moved(tree: Tree) -> str:
    place = _worktree(tree)
    if not place:
        return ""
    return f"swarm: core.worktree of this repository is {named(place)} now: git commands here act on that folder."


_WORDS = {
    "info/exclude": _excluded,
    "info/attributes": _attributes,
    "config": lambda _tree: "",
    "core.worktree": _moved,
}
