"""Commits of one author in a checkout where others work, too."""

import subprocess
from pathlib import Path

import pytest

from support.traced import Player
from swarm_mcp.changes.commit import Commit, Committed
from swarm_mcp.errors import Refused

PERSON = ("", "")


def git(work: Path, *words: str, fails: bool = False) -> str:
    done = subprocess.run(["git", *words], cwd=work, capture_output=True, check=False)
    assert fails or not done.returncode, done.stderr
    return done.stdout.decode("utf-8", "surrogateescape")


def hook(work: Path, name: str, text: str) -> None:
    """Write a hook of git's, as a shell script."""
    path = work / ".git/hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def of(author: Player | None, work: Path, *files: str, message: str = "mine") -> Commit:
    key = PERSON
    if author is not None:
        key = (author.runtime, author.session_id)
    names = ["/".join((str(work), file)) for file in files]
    return Commit(
        str(work),
        lambda one: one.session == key,
        lambda some: " and ".join(one.session_id[:4] or "a person" for one in some),
        [message],
        names,
    )


def commits(author: Player | None, work: Path, *files: str) -> Committed:
    """Commit, and see that nothing but the commit has changed: work tree, others' staged and unstaged changes."""
    tree = {path: path.read_bytes() for path in work.rglob("*") if path.is_file() and ".git" not in path.parts}
    done = of(author, work, *files).make()
    assert tree == {path: path.read_bytes() for path in work.rglob("*") if path.is_file() and ".git" not in path.parts}
    assert done.commit == git(work, "rev-parse", "HEAD").strip()
    assert not (work / ".git/index.lock").exists() and not (work / ".git/index.swarm").exists()
    return done


def refusal(author: Player | None, work: Path, *files: str) -> str:
    before = git(work, "rev-parse", "-q", "--verify", "HEAD", fails=True), (work / ".git/index").read_bytes()
    with pytest.raises(Refused) as found:
        of(author, work, *files).make()
    assert before == (git(work, "rev-parse", "-q", "--verify", "HEAD", fails=True), (work / ".git/index").read_bytes())
    assert not (work / ".git/index.lock").exists()
    return str(found.value)
