"""What the guard asks of git: where a repository lies, and which files a commit or a push would carry."""

from __future__ import annotations

import os
import subprocess

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
        names = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
        answer = self.ask("rev-parse", *names).decode("utf-8", "surrogateescape").split("\n")
        self.top, self.own = answer[0], answer[1]
        self.common = os.path.realpath(os.path.join(folder, answer[2]))

    def ask(self, *words: str, wrong: bytes | None = None) -> bytes:
        """Standard output of ``git <words>``; `wrong` where git fails, SwarmError where that is None."""
        # No pager, no colours, no lock on the index: this must not get into the way of the commit that it looks at.
        settings = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
        argv = ["git", "-c", "diff.relative=false", "-c", "core.quotePath=false", *words]
        try:
            done = subprocess.run(
                argv, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=GIT_SECONDS, env=settings
            )
        except FileNotFoundError:
            raise SwarmError("git was not found") from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SwarmError(f"git {words[0]}: {error}") from None
        if done.returncode == 0:
            return done.stdout
        if wrong is not None:
            return wrong
        raise SwarmError(f"git {words[0]}: {done.stderr.decode('utf-8', 'replace').strip() or 'failed'}")

    def text(self, *words: str) -> str:
        """`ask` as text without the newline at its end; empty where git fails or prints nothing."""
        return self.ask(*words, wrong=b"").decode("utf-8", "surrogateescape").removesuffix("\n")

    def staged(self) -> list[str]:
        """The files that a commit would change, remove or add, relative to the work tree."""
        return _names(self.ask("diff", "--cached", "--name-only", "-z", "--no-renames", "--no-ext-diff"))

    def pushed(self, lines: list[str], remote: str) -> list[str]:
        """The files of all commits that a push would carry.

        `lines` as git gives them to pre-push: local ref, local commit, remote ref, remote commit. What any branch of
        the remote was last seen to hold is not carried again.
        """
        found: dict[str, None] = {}
        known = self.text("for-each-ref", "--count=1", f"refs/remotes/{remote}/") if remote else ""
        without = ["--not", f"--remotes={remote}" if known else "--remotes"]
        for line in lines:
            words = line.split()
            if len(words) != 4 or not words[1].strip("0"):
                continue  # a branch is removed there: no commit goes anywhere
            there = words[3].strip("0") and self.ask("cat-file", "-e", words[3], wrong=b"missing") == b""
            base = [f"^{words[3]}"] if there else []
            found.update(dict.fromkeys(_names(self.ask(*_LOG, words[1], *base, *without, "--"))))
        return list(found)


_LOG = (
    "log", "--format=", "--name-only", "-z", "-c", "--no-renames", "--no-ext-diff", f"--max-count={MOST_COMMITS}",
)  # fmt: skip


def pushes(text: str, environment) -> list[str]:
    """The lines of pre-push's standard input `text`, or what the pre-commit framework says of it in its place."""
    lines = text.splitlines()
    here = environment.get("PRE_COMMIT_TO_REF") or environment.get("PRE_COMMIT_LOCAL_BRANCH")
    if not lines and here:
        lines = [f"refs/local {here} refs/remote {environment.get('PRE_COMMIT_FROM_REF') or _NOTHING}"]
    return lines


def _names(raw: bytes) -> list[str]:
    return [os.fsdecode(name) for name in (one.strip(b"\n") for one in raw.split(b"\0")) if name]
