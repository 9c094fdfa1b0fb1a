"""The commits that HEAD has had since some time, by its reflog, and the content that they have of a file."""

from __future__ import annotations

import os

from swarm_hook_core.repository import tree_over
from swarm_hook_core.shell.programs.git.repository import NoAnswer, Refused, Repository
from swarm_hook_core.traces.journal import SLACK_NS

SECONDS = 2.0  # for git's answer
MOST_COMMITS = 200  # since a file's first version; more are not compared


def committed_anew_after(path: str, at_ns: int) -> bool:
    """Return True if HEAD may have got another content of the file since that time.

    The file's content is compared in all commits that the reflog of HEAD has since then.
    """
    tree = tree_over(os.path.dirname(path))
    if tree is None:
        return False  # no commit at all
    log = os.path.join(tree.own, "logs", "HEAD")
    try:
        moved_ns = os.stat(log).st_mtime_ns
        if moved_ns <= at_ns - SLACK_NS:
            return False
        with open(log, "rb") as file:
            commits = _commits_since(file.read().split(b"\n"), at_ns, moved_ns)
    except OSError:
        return True  # a repository without a reflog
    name = os.path.relpath(path, tree.top)
    if not 0 < len(commits) <= MOST_COMMITS or "\n" in name:
        return True
    asked = "".join(f"{commit}:{name}\n" for commit in commits)
    try:
        answers = Repository(tree.top, SECONDS).ask("cat-file", "--batch-check", stdin=asked).split("\n")[:-1]
    except (NoAnswer, Refused):
        return True  # unknown
    return len({answer.endswith(" missing") or answer for answer in answers}) > 1


def _commits_since(log: list[bytes], at_ns: int, moved_ns: int) -> list[str]:
    """Return the commits of HEAD since a time, with the one before it, from the lines of a reflog.

    Empty if the times there are not to be trusted: the last one is not that of the reflog's own change, `moved_ns`.
    """
    moves = []  # (time in seconds, old commit, new commit)
    for line in log:
        words = line.partition(b"\t")[0].split(b" ")
        if len(words) > 4 and words[-2].isdigit():
            moves.append((int(words[-2]), words[0].decode(), words[1].decode()))
    if not moves or abs(moves[-1][0] - moved_ns // 10**9) > 1:
        return []
    first_s = (at_ns - SLACK_NS) // 10**9
    later = next(at for at, move in enumerate(moves) if move[0] >= first_s or move is moves[-1])
    return list(dict.fromkeys(commit for move in moves[later:] for commit in move[1:]))
