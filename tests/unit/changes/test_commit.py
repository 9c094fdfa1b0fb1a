"""`swarm-mcp commit`: the author's lines alone, beside all other work in the same files and index."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest
from support.commits import commits, git, refusal
from support.traced import Player, checkout, lines_of, notes_an_end
from support.world import ready_store, some_time_passes

from swarm_hook_core.traces import INPUTS
from swarm_hook_core.traces.versions import replay
from swarm_mcp.changes.planning import plan_session

pytestmark = pytest.mark.slow


@pytest.fixture
def work(tmp_path: Path, checks_have_time: None, no_faults: None) -> Path:
    """A repository with committed files of three lines (alpha, beta, gamma)."""
    ready_store()
    made = checkout(tmp_path.resolve() / "work", "notes.md", "other.md", "sub/deep.md")
    git(made, "reflog", "expire", "--expire=all", "HEAD")  # its times are seconds: the commits here are old ones
    return made


def test_one_files_hunks_of_two_sessions_and_a_person(work: Path) -> None:
    one, two = Player("codex", work), Player("codex", work)
    (work / "other.md").write_text("PERSON\nbeta\ngamma\n")
    one.edits("notes.md", "alpha", "ONE")
    two.edits("notes.md", "gamma", "TWO")
    two.edits("other.md", "gamma", "TWO")
    done = commits(one, work)
    assert git(work, "show", "HEAD:notes.md") == "ONE\nbeta\ngamma\n"
    assert git(work, "show", "HEAD", "--stat", "--format=%s").split()[0] == "mine"
    assert git(work, "diff", "--cached", "--name-only") == ""
    assert [one.words for one in done.left_out] == ["notes.md line 3", "other.md line 1", "other.md line 3"]
    assert [line.authors[0].session_id for line in lines_of(str(work / "notes.md")) if line.authors] == [two.session_id]
    commits(two, work)
    assert git(work, "show", "HEAD:notes.md") == "ONE\nbeta\nTWO\n"
    assert git(work, "show", "HEAD:other.md") == "alpha\nbeta\nTWO\n"
    commits(None, work)
    assert git(work, "show", "HEAD:other.md") == "PERSON\nbeta\nTWO\n"
    assert git(work, "status", "--porcelain") == ""


def test_a_disk_that_fails_makes_no_line_of_a_person_the_session_s(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the session's inputs, a save right after its edit would be its own. One that cannot be read is there."""
    one = Player("codex", work)
    one.edits("notes.md", "alpha", "ONE")
    with open(work / "notes.md", "a") as file:
        file.write("PERSON\n")
    one.edits("other.md", "alpha", "ONE")
    real = replay.read_private

    def failing(path: str, limit: int) -> bytes:
        if path.endswith(INPUTS):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(path, limit)

    with monkeypatch.context() as patched:
        patched.setattr(replay, "read_private", failing)
        assert "Input/output error" in refusal(one, work)
    commits(one, work)
    assert git(work, "show", "HEAD:notes.md") == "ONE\nbeta\ngamma\n"


FORMATS = """#!/bin/sh
for one in notes.md other.md; do sed 's/gamma/GAMMA/' $one > $one.tmp; cat $one.tmp > $one; rm $one.tmp; done
"""


def test_an_unread_command_takes_no_line_of_a_person_along(work: Path) -> None:
    (work / "fmt").write_text(FORMATS)
    (work / "fmt").chmod(0o755)
    git(work, "add", "fmt")
    git(work, "commit", "-qm", "a formatter")
    me = Player("codex", work)
    (work / "notes.md").write_text("PERSON\nbeta\ngamma\n")
    me.edits("other.md", "alpha", "MINE")
    some_time_passes()
    me.runs("./fmt")
    notes_an_end()
    me.runs("true")
    assert "may have changes of yours and of others: notes.md" in refusal(me, work, "notes.md")
    done = commits(me, work)
    assert {one.path for one in done.left_out} == {"notes.md"}
    assert git(work, "show", "HEAD:other.md") == "MINE\nbeta\nGAMMA\n"
    assert git(work, "show", "HEAD:notes.md") == "alpha\nbeta\ngamma\n"
    assert plan_session(("codex", me.session_id), str(work), [], 0).files == []
    assert (work / "notes.md").read_text() == "PERSON\nbeta\nGAMMA\n"


def overlap(work: Path, one: Player, two: Player) -> str:
    one.edits("notes.md", "beta", "ONE")
    two.runs("cat notes.md")
    two.edits("notes.md", "ONE", "ONE and TWO\nTWO")
    return "notes.md lines 2 to 3"


def test_a_place_of_two_authors_is_refused_and_named(work: Path) -> None:
    one, two = Player("codex", work), Player("codex", work)
    two.edits("other.md", "alpha", "TWO")
    place = overlap(work, one, two)
    assert place in (said := refusal(two, work)) and one.session_id[:4] in said and "other.md" in said
    commits(two, work, "other.md")
    assert git(work, "show", "--format=", "--name-only", "HEAD").split() == ["other.md"]


def test_nothing_of_ones_own(work: Path) -> None:
    one, two = Player("codex", work), Player("codex", work)
    assert refusal(one, work) == "nothing of yours to commit"
    two.edits("notes.md", "alpha", "TWO")
    assert refusal(one, work).startswith("nothing of yours to commit: notes.md line 1 (")
    assert refusal(one, work, "notes.md").startswith("nothing of yours to commit: notes.md line 1 (")


def _crlf(work: Path, me: Player) -> None:
    git(work, "config", "core.autocrlf", "true")
    (work / "notes.md").write_bytes(b"alpha\r\nbeta\r\ngamma\r\n")


CHANGES = {
    # name: (shell commands of the session, {path: content or None in the commit})
    "a new file": ("printf 'one\\ntwo' > new.txt", {"new.txt": b"one\ntwo"}),
    "a removed file": ("rm notes.md", {"notes.md": None}),
    "a mode": ("chmod +x notes.md", {"notes.md": b"alpha\nbeta\ngamma\n"}),
    "a rename": ("git mv notes.md moved.md", {"notes.md": None, "moved.md": b"alpha\nbeta\ngamma\n"}),
    "a file removed by git": ("git rm -q notes.md", {"notes.md": None}),
    "a link": ("ln -s notes.md link", {"link": b"notes.md"}),
    "no newline at the end": ("printf 'alpha\\nbeta\\ngamma' > notes.md", {"notes.md": b"alpha\nbeta\ngamma"}),
    "binary": ("printf 'a\\0b' > new.bin", {"new.bin": b"a\0b"}),
    "an odd name": ("echo x > ' odd \"ü.txt'", {' odd "ü.txt': b"x\n"}),
    "line ends of the work tree": (
        "git config core.autocrlf true; printf 'alpha\\r\\nX\\r\\ngamma\\r\\n' > notes.md",
        {"notes.md": b"alpha\nX\ngamma\n"},
    ),
    "a filter": (
        "git config filter.up.clean 'tr a-z A-Z'; echo 'up.txt filter=up' > .git/info/attributes; echo abc > up.txt",
        {"up.txt": b"ABC\n"},
    ),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.sampled
def test_kinds_of_changes(work: Path, name: str, me: Player, peer: Player) -> None:
    peer.edits("other.md", "beta", "PEER")
    command, expected = CHANGES[name]
    for part in command.split("; "):
        me.runs("cat notes.md")
        assert "denied" not in me.runs(part)
    commits(me, work)
    changed = git(work, "show", "-z", "--format=", "--name-only", "--no-renames", "HEAD").split("\0")[:-1]
    assert sorted(changed) == sorted(expected)
    for path, content in expected.items():
        if content is not None:
            done = subprocess.run(["git", "show", f"HEAD:{path}"], cwd=work, capture_output=True, check=True)
            assert done.stdout == content
    assert git(work, "diff", "--cached", "--name-only") == ""
    assert git(work, "status", "--porcelain").split() == ["M", "other.md"]
    if name == "a mode":
        assert git(work, "ls-tree", "HEAD", "notes.md").startswith("100755")
