"""Git commands that change something: with the user's hooks and filters, and without questions.

Questions about a repository that the user has not chosen to work with go through ``swarm_hook_core.git``: it runs no
program that the repository names.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from swarm_mcp.errors import SwarmError

# Variables in which git tells its hooks their repository: a command here is for another repository or work tree.
OF_A_HOOK = frozenset({
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_QUARANTINE_PATH", "GIT_REFLOG_ACTION",
})  # fmt: skip
UNASKED = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "GIT_SEQUENCE_EDITOR": "true", "GIT_MERGE_AUTOEDIT": "no"}
MOST_SAID = 500  # characters of git's complaint


class GitFailed(SwarmError):
    """A git command failed. `said` is all that it printed on standard error."""

    def __init__(self, words: tuple[str, ...], said: str):
        lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("hint:")]
        super().__init__(f"git {words[0]} failed: {' '.join(lines)[:MOST_SAID] or 'it did not say why'}")
        self.said = said


def tries(folder: str, *words: str, environment: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
    """Run ``git <words>`` in `folder`, with `environment` added to ours; how it ended. Raises SwarmError: no git."""
    inherited = {name: value for name, value in os.environ.items() if name not in OF_A_HOOK}
    try:
        return subprocess.run(
            ["git", "-C", folder, "-c", "core.quotePath=false", *words], stdin=subprocess.DEVNULL, capture_output=True,
            encoding="utf-8", errors="surrogateescape", env={**inherited, **environment, **UNASKED}, check=False,
        )  # fmt: skip
    except OSError as error:
        raise SwarmError(f"git cannot be started: {error.strerror or error}") from None


def git(folder: str, *words: str, environment: Mapping[str, str] = {}) -> str:
    """Return the output of ``git <words>`` in `folder`, without its last line end. Raises GitFailed."""
    done = tries(folder, *words, environment=environment)
    if done.returncode != 0:
        raise GitFailed(words, done.stderr or done.stdout)
    return done.stdout.removesuffix("\n")


def holds(folder: str, *words: str) -> bool:
    """Return True if ``git <words>``, a question answered by exit code, says yes."""
    return tries(folder, *words).returncode == 0


def paths(folder: str, *words: str) -> list[str]:
    """Return the paths that ``git <words>``, told to end each with a zero byte, prints. Raises GitFailed."""
    return [path for path in git(folder, *words).split("\0") if path]


def uncommitted(folder: str) -> list[str]:
    """Return the paths in a work tree that are not as its last commit has them, new ones too. Raises GitFailed."""
    words = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=none")
    return [entry[3:] for entry in paths(folder, *words)]


def commit_of(folder: str, name: str) -> str:
    """Return the commit that `name` stands for, or an empty text."""
    done = tries(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if done.returncode == 0:
        return done.stdout.strip()
    return ""


def branch_of(folder: str) -> str:
    """Return the branch that is checked out in a work tree, empty for none."""
    done = tries(folder, "symbolic-ref", "--quiet", "--short", "HEAD")
    if done.returncode == 0:
        return done.stdout.removesuffix("\n")
    return ""


def identity(folder: str) -> dict[str, str]:
    """Return variables for committing in `folder`: none if git knows the author, else swarm's own."""
    known = {role: holds(folder, "var", f"GIT_{role}_IDENT") for role in ("AUTHOR", "COMMITTER")}
    given = {"NAME": "swarm-mcp", "EMAIL": "swarm-mcp@localhost"}
    return {f"GIT_{role}_{part}": text for role, is_known in known.items() if not is_known
            for part, text in given.items()}  # fmt: skip


def is_ancestor(folder: str, older: str, newer: str) -> bool:
    """Return True if all of commit `older` is in `newer`."""
    return holds(folder, "merge-base", "--is-ancestor", older, newer)
