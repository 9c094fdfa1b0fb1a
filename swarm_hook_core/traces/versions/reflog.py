"""The commits that HEAD has had since some time, by its reflog, and the content that they have of a file."""

from __future__ import annotations

import os

from swarm_hook_core.git_repository import NoAnswer, Refused, Repository
from swarm_hook_core.repository import tree_over
from swarm_hook_core.traces.journal import SLACK_NS

SECONDS = 2.0  # for git's answer
MOST_COMMITS = 200  # since a file's first version; more are not compared
MOST_CONTENTS = 12  # of one file in these commits


def contents_since(path: str, at_ns: int) -> list[bytes] | None:
    """Return the file's different contents in the commits that HEAD has had since some time, empty for a missing file.

    Return [] if HEAD has not moved since then, None if its commits are not known.
    """
    tree = tree_over(os.path.dirname(path))
    if tree is None:
        return []  # no commit at all
    log = os.path.join(tree.own, "logs", "HEAD")
    try:
        moved_ns = os.stat(log).st_mtime_ns
        if moved_ns <= at_ns - SLACK_NS:
            return []
        with open(log, "rb") as file:
            commits = _commits_since(file.read().split(b"\n"), at_ns, moved_ns)
    except OSError:
        return None  # a repository without a reflog
    name = os.path.relpath(path, tree.top)
    if not 0 < len(commits) <= MOST_COMMITS or "\n" in name:
        return None
    asked = "".join(f"{commit}:{name}\n" for commit in commits)
    repository = Repository(tree.top, SECONDS)
    try:
        answers = repository.ask("cat-file", "--batch-check", stdin=asked).split("\n")[:-1]
        found = dict.fromkeys(answer.split(" ")[0] * (not answer.endswith(" missing")) for answer in answers)
        if len(found) > MOST_CONTENTS:
            return None
        return [_content(repository, one) for one in found]
    except (NoAnswer, Refused):
        return None  # a commit without its contents, or a busy machine


def _content(repository: Repository, blob: str) -> bytes:
    if not blob:
        return b""
    return repository.ask("cat-file", "blob", blob).encode("utf-8", "surrogateescape")


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
