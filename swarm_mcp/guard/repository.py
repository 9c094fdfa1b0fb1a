"""The guard's questions to git: the place of a repository, and the files of a commit or a push."""

from __future__ import annotations

import os
from collections.abc import Mapping

from swarm_hook_core import git
from swarm_mcp.errors import SwarmError

GIT_SECONDS = 3.0
MOST_COMMITS = 1000  # of one push that are looked through

_NOTHING = "0" * 40


class Repository:
    """The repository around `folder`, as git sees it from there.

    top     the work tree, links resolved
    own     its git folder; `common`: the one it shares with its other work trees
    """

    def __init__(self, folder: str):
        self.folder = folder
        # One question each: a folder's name may have newlines itself.
        self.top, self.own, common = (
            self.ask("rev-parse", name).removesuffix("\n")
            for name in ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
        )
        self.common = os.path.realpath(os.path.join(folder, common))

    def ask(self, *words: str, wrong: str | None = None) -> str:
        """Return the output of ``git <words>``. If git fails, return `wrong`, or raise SwarmError if that is None."""
        done = git.ask(words, self.folder, GIT_SECONDS)
        if done.code == 0:
            return str(done.stdout)
        if wrong is not None and done.code is not None:
            return wrong
        raise SwarmError(f"git {words[0]}: {done.stderr.strip() or 'failed'}")

    def text(self, *words: str) -> str:
        """`ask` without the newline at its end; empty where git fails or prints nothing."""
        return self.ask(*words, wrong="").removesuffix("\n")

    def staged(self) -> list[str]:
        """The files that a commit would change, remove or add, relative to the work tree."""
        return _names(self.ask("diff", "--cached", "--name-only", "-z", "--no-renames", *git.NO_PROGRAMS))

    def pushed(self, lines: list[str], remote: str) -> list[str]:
        """Return the files of all commits that a push would carry.

        `lines` as git gives them to pre-push: local ref, local commit, remote ref, remote commit. Commits that any
        branch of the remote was last seen to hold are not carried again.
        """
        found: dict[str, None] = {}
        known = ""
        if remote:
            known = self.text("for-each-ref", "--count=1", f"refs/remotes/{remote}/")
        without = ["--not", f"--remotes={remote}" if known else "--remotes"]
        for line in lines:
            words = line.rsplit(" ", 3)  # the local one may be any revision, with blanks in it
            if len(words) != 4 or not words[1].strip("0"):
                continue  # a branch is removed there: no commit goes anywhere
            there = words[3].strip("0") and self.ask("cat-file", "-e", words[3], wrong="missing") == ""
            base = []
            if there:
                base = [f"^{words[3]}"]
            found.update(dict.fromkeys(_names(self.ask(*_LOG, words[1], *base, *without, "--"))))
        return list(found)


_LOG = (
    "log", "--format=", "--name-only", "-z", "-c", "--no-renames", *git.NO_PROGRAMS, f"--max-count={MOST_COMMITS}",
)  # fmt: skip


def pushes(text: str, environment: Mapping[str, str]) -> list[str]:
    """Return the lines of pre-push's standard input `text`, or the same from variables of the pre-commit framework."""
    lines = [line for line in text.split("\n") if line]
    here = environment.get("PRE_COMMIT_TO_REF") or environment.get("PRE_COMMIT_LOCAL_BRANCH")
    if not lines and here:
        lines = [f"refs/local {here} refs/remote {environment.get('PRE_COMMIT_FROM_REF') or _NOTHING}"]
    return lines


def _names(printed: str) -> list[str]:
    return [name for name in printed.split("\0") if name]
