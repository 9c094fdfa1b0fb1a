"""Contents that an undo and a patch read, of the work tree and of the last commit: each is read up to its bound only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.altered import Listening
from support.traced import checkout, git

from swarm_hook_core import git_repository
from swarm_hook_core.git_repository import Repository
from swarm_hook_core.traces.versions import LIMIT_BYTES
from swarm_mcp.changes import dirty
from swarm_mcp.changes.dirty import LastCommit, last_commits


def test_the_last_commit_s_large_files_are_not_read(tmp_path: Path, listening: Listening) -> None:
    work = checkout(tmp_path.resolve() / "work")
    names = {"small": b"x\n", "largest": b"x" * LIMIT_BYTES, "large": b"x" * (LIMIT_BYTES + 1), "two\nlines": b"y\n"}
    names["large\nlines"] = names["large"]
    for name, content in names.items():
        (work / name).write_bytes(content)
    git(work, "add", ".")
    git(work, "commit", "-qm", "more")
    asked = listening(Repository, "ask")
    found = last_commits([str(work / name) for name in (*names, "missing")])
    assert max(len(call.result) for call in asked) < LIMIT_BYTES + 1000
    for name, content in names.items():
        is_large = len(content) > LIMIT_BYTES
        one = found[str(work / name)]
        assert (one.content, one.is_large) == (None if is_large else content, is_large), name
        assert one.at
    assert found[str(work / "missing")] == LastCommit(None, 0)
    assert git_repository.sizes(Repository(str(work), 20), ["HEAD:small", "HEAD:no\nfile", "HEAD:no"]) == [
        2,
        None,
        None,
    ]


PRESENT = {
    "a file": (lambda path: path.write_bytes(b"text\n"), b"text\n"),
    "a link": (lambda path: path.symlink_to("nowhere"), b"nowhere"),
    "a folder": (lambda path: path.mkdir(), None),
    "a pipe": (lambda path: os.mkfifo(path), None),
    "too large": (lambda path: (path.touch(), os.truncate(path, dirty.LARGEST + 1)), None),
    "the largest": (lambda path: (path.touch(), os.truncate(path, dirty.LARGEST)), bytes(dirty.LARGEST)),
    "missing": (lambda path: None, None),
}


@pytest.mark.parametrize("kind", PRESENT)
def test_a_present_file(kind: str, tmp_path: Path) -> None:
    make, content = PRESENT[kind]
    make(tmp_path / "file")
    facts, found = dirty.present(str(tmp_path / "file"))
    assert found == content and (facts is None) == (kind == "missing")


def test_below_a_file_there_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert dirty.present(str(tmp_path / "file" / "below")) == (None, None)
