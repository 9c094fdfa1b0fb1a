"""A commit that holds some of a file's changes leaves the others protected."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.commits import commits, git
from support.traced import Player, checkout
from support.world import ready_store, some_time_passes

from swarm_hook_core.traces import file_changes
from swarm_mcp.answers.edits import edits
from swarm_mcp.answers.people import People
from swarm_mcp.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_faults")]

DESTROYERS = ("git checkout notes.md", "git restore notes.md", "git checkout .", "git stash", "git reset --hard")


@pytest.fixture
def work(tmp_path: Path, checks_have_time: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with committed files of three lines (alpha, beta, gamma)."""
    ready_store()
    made = checkout(tmp_path.resolve() / "work", "notes.md", "other.md")
    git(made, "reflog", "expire", "--expire=all", "HEAD")  # its times are seconds: the commits here are old ones
    later = int(time.time()) + 600  # for the commits to come: git counts whole seconds
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_DATE", f"@{later} +0000")
        monkeypatch.setenv(f"GIT_{role}_NAME", "t")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@t")
    return made


def by_swarm(work: Path, whose: Player | None) -> None:
    commits(whose, work)


def by_hand(work: Path, whose: Player | None) -> None:
    """Commit the first hunk of the file, as `git commit -p` does."""
    _choose(work, "commit", "-qm", "a hunk", "-p", "notes.md")


def by_index(work: Path, whose: Player | None) -> None:
    _choose(work, "add", "-p", "notes.md")
    git(work, "commit", "-qm", "a hunk")


def by_amending(work: Path, whose: Player | None) -> None:
    _choose(work, "add", "-p", "notes.md")
    git(work, "commit", "-q", "--amend", "--reset-author", "--no-edit")


def by_plumbing(work: Path, whose: Player | None) -> None:
    """Commit the first line alone, as another program does that makes its own tree."""
    blob = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], cwd=work, input=b"ONE\nbeta\ngamma\n", capture_output=True, check=True
    )  # fmt: skip
    git(work, "update-index", "--cacheinfo", f"100644,{blob.stdout.decode().strip()},notes.md")
    git(work, "commit", "-qm", "another tool's")


def _choose(work: Path, *words: str) -> None:
    """Take the first hunk, and leave the others."""
    subprocess.run(["git", *words], cwd=work, input=b"s\ny\nn\n", capture_output=True, check=True)
    assert git(work, "show", "HEAD:notes.md" if words[0] == "commit" else ":notes.md") == "ONE\nbeta\ngamma\n"


WAYS = [by_swarm, by_hand, by_index, by_amending, by_plumbing]


CASES = [*((by_swarm, command) for command in DESTROYERS), *((way, DESTROYERS[0]) for way in WAYS[1:])]


@pytest.mark.parametrize(("commit", "command"), CASES)
def test_a_peer_s_lines_stay_protected_from_the_committer(
    commit: Callable[[Path, Player | None], None], command: str, work: Path
) -> None:
    me, peer = Player("codex", work), Player("claude-code", work)
    me.edits("notes.md", "alpha", "ONE")
    peer.edits("notes.md", "gamma", "TWO")
    me.runs("cat notes.md")
    commit(work, me)
    assert me.runs(command).startswith("denied: ")
    assert (work / "notes.md").read_text() == "ONE\nbeta\nTWO\n"


@pytest.mark.parametrize("commit", WAYS)
def test_lines_of_the_one_who_wrote_first_stay_protected(
    commit: Callable[[Path, Player | None], None], work: Path
) -> None:
    first, last, me = Player("codex", work), Player("claude-code", work), Player("codex", work)
    first.edits("notes.md", "gamma", "TWO")
    last.runs("cat notes.md")
    last.edits("notes.md", "alpha", "ONE")
    commit(work, last)
    for one in (me, last):
        said = one.runs("git checkout notes.md")
        assert said.startswith("denied: ") and first.row["label"].split()[-1] in said, said


@pytest.mark.parametrize("commit", WAYS)
def test_a_person_s_lines_stay_protected(commit: Callable[[Path, Player | None], None], work: Path) -> None:
    peer, me = Player("claude-code", work), Player("codex", work)
    (work / "notes.md").write_text("alpha\nbeta\nPERSON\n")
    some_time_passes()
    peer.edits("notes.md", "alpha", "ONE")
    commit(work, peer)
    said = me.runs("git checkout notes.md")
    assert said.startswith("denied: ") and "a person" in said, said


def test_a_file_without_lines_stays_protected_until_its_present_content_is_committed(work: Path) -> None:
    me, peer = Player("codex", work), Player("claude-code", work)
    peer.runs("printf '\\0one' > notes.md")
    git(work, "add", "notes.md")
    peer.runs("printf '\\0two' > notes.md")
    git(work, "commit", "-qm", "the staged content, from before the last write")
    assert me.runs("git checkout notes.md").startswith("denied: ")
    git(work, "commit", "-qam", "all")
    assert me.runs("git checkout notes.md") == ""


def test_what_was_committed_whole_is_protected_no_more(work: Path) -> None:
    me, peer = Player("codex", work), Player("claude-code", work)
    peer.edits("notes.md", "gamma", "TWO")
    git(work, "commit", "-qam", "the peer's")
    me.runs("cat notes.md")
    me.edits("notes.md", "alpha", "ONE")
    assert me.runs("git checkout notes.md") == ""


def test_the_owner_itself_may_discard_the_rest(work: Path) -> None:
    me, peer = Player("codex", work), Player("claude-code", work)
    me.edits("notes.md", "alpha", "ONE")
    peer.edits("notes.md", "gamma", "TWO")
    by_swarm(work, me)
    assert peer.runs("git checkout notes.md") == ""


def test_the_rest_is_listed_by_its_owner(work: Path) -> None:
    me, peer = Player("codex", work), Player("claude-code", work)
    me.edits("notes.md", "alpha", "ONE")
    peer.edits("notes.md", "gamma", "TWO")
    by_swarm(work, me)
    with Store() as store:
        found = edits(store, str(work), People(store, ""))
    assert [(os.path.basename(one.path), one.instance_id) for one in found] == [("notes.md", peer.id)]


def test_without_time_the_rest_counts_as_protected(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me, peer = Player("codex", work), Player("claude-code", work)
    me.edits("notes.md", "alpha", "ONE")
    peer.edits("notes.md", "gamma", "TWO")
    by_swarm(work, me)
    monkeypatch.setattr(file_changes, "SECONDS", 0)
    assert me.runs("git checkout notes.md").startswith("denied: ")
