"""Git commands that move HEAD or a branch, here or by a forced push. To add one, write its row in `ROWS`.

Branches are looked up in git's own files: git is not started. A command in doubt moves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.repository import Tree, tree_at, trees_beside
from swarm_hook_core.shell.call import Options
from swarm_hook_core.shell.model import GitCall, is_known
from swarm_hook_core.shell.programs.git.listings import cut
from swarm_hook_core.shell.programs.git.table import options_of
from swarm_hook_core.traces import journal
from swarm_hook_core.traces.head import MOST_LOST, Head, commit_of, read
from swarm_hook_core.traces.trail import MAKES_COMMITS

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
    "update-ref": ("", "--stdin", "ref", "move-branch"),
    "symbolic-ref": ("", "-d --delete", "head", "switch"),
}

BRANCHES = "refs/heads/"
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
    if not head.branch and word == head.commit:
        return None  # it is there already
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


def _ref(call: GitCall, words: list[str], options: Options, tree: Tree, head: Head) -> str | None:
    """Return the existing branch that ``update-ref`` moves or removes; `HEAD` for a detached one."""
    name = next(iter(options.operands), "")
    if name in ("HEAD", "@"):
        return head.branch or "HEAD"
    return name.removeprefix(BRANCHES) if name.startswith(BRANCHES) and commit_of(tree, name) else None


def _of_symbol(call: GitCall, words: list[str], options: Options, tree: Tree, head: Head) -> str | None:
    """Return the branch that ``symbolic-ref HEAD`` makes the present one; None if it is that already."""
    name, target = [*options.operands, "", ""][:2]
    target = target.removeprefix(BRANCHES)
    return target if name == "HEAD" and target not in ("", head.branch) else None


_TARGETS = {"branch": _branch, "commit": _commit, "moved": _moved, "ref": _ref, "head": _of_symbol}


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


# The commits that no other ref has: they are lost with a work tree, or as its HEAD or branch moves.

LOST_SECONDS = 1.0


def only_in(folder: str, revisions: Sequence[str], beside: Iterable[str] = ()) -> list[Commit] | None:
    """Return the commits of `revisions`, newest first, at most `MOST_LOST`; None if git does not answer.

    revisions  those of ``git log``, and what stays behind a ``--not``
    beside     tops of work trees whose detached HEADs stay, too
    """
    stay = [head.commit for head in map(read, beside) if head is not None and not head.branch]
    try:
        return _logged(Repository(folder, LOST_SECONDS), f"-{MOST_LOST}", *revisions, *filter(None, stay))
    except (NoAnswer, Refused):
        return None  # too slow, or a revision that it does not know


def left_behind(words: list[str], movement: Movement, top: str, head: Head) -> list[Commit] | None:
    """Return the commits that no ref has after ``git <words>``, which is `movement` in the work tree `top`.

    As `only_in`. Git is asked only for a detached HEAD, and for a branch that is set to another commit.
    """
    tree, operands = tree_at(top, is_real=True), options_of(words).operands
    if tree is None or movement.is_new:
        return []
    branch, tip, stays = head.branch, head.commit, ""
    if movement.deed == "reset":
        stays = movement.target
    elif movement.deed == "move-branch" and words[0] in ("update-ref", "branch"):
        if words[0] == "branch" and not options_of(words).has("-f", "--force"):
            return []  # it is renamed
        branch = "" if movement.target == "HEAD" else movement.target
        tip = f"{BRANCHES}{branch}" if branch else head.commit
        stays = next(iter(operands[1:2]), "") if not options_of(words).has("-d", "--delete") else ""
    elif movement.deed != "switch" or branch:
        return []
    elif _is_revision(movement.target):
        stays = movement.target
    if not tip or not is_known(stays):
        return []
    without = [f"--exclude={BRANCHES}{branch}"] if branch else []
    beside = [other for other in trees_beside(tree) if other != top]
    return only_in(top, [tip, "--not", *without, "--glob=refs/*", *filter(None, [stays])], beside)


# Forced pushes: the commits on the remote that one would drop, and that its session has not made.
#
# The remote-tracking branch tells the remote's commits; a remote in a folder of this machine is asked itself. No
# network is used. A commit is the session's own if the last command before it that makes commits was the session's:
# journals have the times of these (``commits``, and the texts of unparsed commands). All other commits are others'.

SECONDS = 0.5  # for git's answers about one push
MOST_COMMITS = 500  # dropped commits that are looked at
LONGEST_SECONDS = 600  # of a command that makes commits; a person may be asked in between
UNSURE_SECONDS = 5  # of a command of another session that may have made a commit, too
ONE_CALL_NS = 10**9  # entries closer than this are mostly of one call
_VERBS = tuple(verb.encode() for verb in MAKES_COMMITS)  # in the text of an unparsed command that may make commits
_LEASES = ("--force-with-lease", "--force-if-includes")
_FORCES = ("-f", "--force", "--mirror", *_LEASES)
_WITHOUT = ("-n", "--dry-run", "-d", "--delete", "--tags")


class Commit(NamedTuple):
    """A commit: `name` is its short id, `at` its time in Unix seconds, `subject` its first line."""

    name: str
    at: int
    subject: str


class Dropped(NamedTuple):
    """The part of one branch of a remote that a forced push drops.

    branch   the branch on the remote, `remote` its name; `tip`: its commit there, or "" if that is not known
    commits  the dropped commits, newest first; None if they are not known here
    """

    branch: str
    remote: str
    tip: str
    commits: list[Commit] | None


def is_forced(words: list[str]) -> bool:
    """Return True if ``git <words>``, a push, may replace a branch on the remote."""
    options = options_of(words)
    if options.has(*_WITHOUT):
        return False
    return options.has(*_FORCES) or any(one.startswith("+") for one in options.operands[1:])


def dropped_by(words: list[str], repository: Repository, head: Head, moved_to: str) -> list[Dropped]:
    """Return a Dropped for each branch of which ``git <words>``, a forced push, drops commits that are known or not.

    moved_to: the commit that an earlier command of the call moves the present branch to, or "".
    """
    options = options_of(words)
    all_forced, has_lease = options.has(*_FORCES), options.has(*_LEASES)
    refs = [one for one in options.operands[1:] if all_forced or one.startswith("+")]
    if all_forced and not options.operands[1:]:
        refs = [head.branch]
    found = []
    for ref in filter(None, refs):
        source = ref.lstrip("+").partition(":")[0]
        is_moved = bool(moved_to) and source in (head.branch, "HEAD", "@")
        try:
            one = _dropped(ref, options.operands[:1], repository, head, has_lease, moved_to if is_moved else "")
        except NoAnswer:
            one = Dropped(source, "the remote", "", None)
        if one is not None:
            found.append(one)
    return found


def _dropped(
    ref: str, remotes: list[str], repository: Repository, head: Head, has_lease: bool, moved_to: str
) -> Dropped | None:
    source, _, target = ref.lstrip("+").partition(":")
    if not source:
        return None  # the branch is removed, not replaced
    branch = (target or source).removeprefix("refs/heads/")
    if branch in ("HEAD", "@"):
        branch = head.branch
    remote = "".join(remotes) or _default_remote(repository, head)
    url = repository.setting(f"remote.{remote}.url") or remote
    tip = _commit_named(repository, f"refs/remotes/{remote}/{branch}")
    folder = _local(url, repository.top)
    if not folder:
        there = ""
    else:
        there = _commit_named(Repository(folder, SECONDS), f"refs/heads/{branch}")
    if there and there != tip:
        if has_lease and tip:
            return None  # git refuses it
        if not _commit_named(repository, there):
            return Dropped(branch, remote, there, None)
        tip = there
    if not tip:
        if folder or has_lease or not set(":/").intersection(url):
            return None  # the branch is new there; nothing to compare the lease with; no such remote
        return Dropped(branch, remote, "", None)
    commits = _only_in(tip, moved_to or source, repository)
    if commits:
        return Dropped(branch, remote, tip, commits)
    return None


def _default_remote(repository: Repository, head: Head) -> str:
    """Return the remote of a push that names none."""
    for name in (f"branch.{head.branch}.pushremote", "remote.pushdefault", f"branch.{head.branch}.remote"):
        found = repository.setting(name)
        if found:
            return found
    return "origin"


def _local(url: str, top: str) -> str:
    """Return the folder of a remote on this machine, or ""."""
    path = os.path.join(top, url.removeprefix("file://"))
    if os.path.isdir(path):
        return path
    return ""


def _commit_named(repository: Repository, name: str) -> str:
    """Return the id of the commit with this name, or "" if the repository has none."""
    try:
        return repository.ask("rev-parse", "--verify", "-q", f"{name}^{{commit}}").strip()
    except Refused:
        return ""  # no such commit


def _only_in(tip: str, source: str, repository: Repository) -> list[Commit]:
    """Return the commits of `tip` that `source` lacks."""
    try:
        return _logged(repository, f"-{MOST_COMMITS}", tip, "--not", source)
    except Refused:
        return []  # git refuses the push, too: no such source


def _logged(repository: Repository, *words: str) -> list[Commit]:
    """Return the commits of ``git log <words>``. Raises Refused, NoAnswer."""
    found = []
    for line in repository.ask("log", "--format=%h %ct %s", *words, "--").split("\n"):
        name, _, rest = line.partition(" ")
        at, _, subject = rest.partition(" ")
        if at.isdigit():
            found.append(Commit(name, int(at), subject))
    return found


# ------------------------------------------------------------------------------------------------ makers


def not_own(commits: list[Commit], own: bytes, others: list[bytes]) -> list[Commit]:
    """Return those of the `commits` that the session has not made, or not certainly.

    own, others  the journal entries of the session, and of each other one
    """
    spans, theirs = _spans(own), [span for data in others for span in _spans(data)]
    return [one for one in commits if not _is_own(one.at, spans, theirs)]


def _is_own(at: int, spans: list[tuple[int, float]], theirs: list[tuple[int, float]]) -> bool:
    """Return True if a commit made `at` falls into one of the `spans`, and no other session's command begins later.

    A command that begins in the second of the commit may have begun after it: then one of `theirs` that began just
    before, and is not known to have ended, may have made it.
    """
    starts = [start for start, end in spans if start <= at <= end]
    if not starts:
        return False
    since = max(starts)
    if since == at:
        since -= UNSURE_SECONDS
    return not any(since <= start <= at <= end for start, end in theirs)


def _spans(own: bytes) -> list[tuple[int, float]]:
    """Return ``(start, end)``, in Unix seconds, of the session's commands that make commits.

    A command ends at its agent's next call. Git's times are whole seconds.
    """
    found: list[tuple[int, float]] = []
    begun: dict[bytes, int] = {}  # agent -> begin of its command
    for words, line in journal.heads(own):
        agent, at_ns = words[2], int(words[0])
        if agent in begun and at_ns > begun[agent] + ONE_CALL_NS:
            start = begun.pop(agent)
            found.append((start // 10**9, min(at_ns, start + LONGEST_SECONDS * 10**9) / 1e9))
        if words[1] == b"commits" or (words[1] == b"ran" and b"git" in line and any(verb in line for verb in _VERBS)):
            begun.setdefault(agent, at_ns)
    return [*found, *((start // 10**9, start / 1e9 + LONGEST_SECONDS) for start in begun.values())]
