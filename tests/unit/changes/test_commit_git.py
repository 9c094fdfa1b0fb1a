"""`swarm-mcp commit` in repositories of all kinds: hooks, a shared index with the work of others, states of git."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.altered import Limits
from support.commits import commits, git, hook, of, refusal
from support.traced import Player

pytestmark = pytest.mark.slow


@pytest.fixture
def me(work: Path) -> Player:
    """A session that has changed the first line of notes.md, beside a peer that has changed its last one."""
    peer, me = Player("codex", work), Player("codex", work)
    me.edits("notes.md", "alpha", "MINE")
    peer.edits("notes.md", "gamma", "PEER")
    return me


def test_staged_work_of_others_stays_staged(work: Path, me: Player) -> None:
    git(work, "add", "notes.md")  # both lines
    commits(me, work)
    assert git(work, "show", "HEAD:notes.md") == "MINE\nbeta\ngamma\n"
    assert git(work, "show", ":notes.md") == "MINE\nbeta\nPEER\n"
    assert git(work, "status", "--porcelain") == "M  notes.md\n"


def test_staged_work_that_does_not_merge_is_left_and_named(work: Path, me: Player) -> None:
    name = git(work, "hash-object", "-w", "other.md").strip()
    (work / ".git/x").write_text("THEIRS\nbeta\ngamma\n")
    name = git(work, "hash-object", "-w", ".git/x").strip()
    git(work, "update-index", "--cacheinfo", f"100644,{name},notes.md")
    assert commits(me, work).staged == ["notes.md"]
    assert git(work, "show", ":notes.md") == "THEIRS\nbeta\ngamma\n"


def test_hooks_see_the_commit_alone(work: Path, me: Player) -> None:
    seen = work / ".git/seen"
    hook(work, "pre-commit", f"git show :notes.md >{seen}; git diff --cached --name-only >>{seen}; echo checked")
    hook(work, "commit-msg", 'printf "\\nId: 1\\n" >>"$1"')
    hook(work, "post-commit", "git log -1 --format=%s >.git/after")
    assert "checked" in commits(me, work).output
    assert (work / ".git/seen").read_text() == "MINE\nbeta\ngamma\nnotes.md\n"
    assert git(work, "log", "-1", "--format=%B").split("\n")[:2] == ["mine", ""]
    assert (work / ".git/after").read_text() == "mine\n"


def test_a_hook_that_fails(work: Path, me: Player) -> None:
    hook(work, "pre-commit", "echo 'line 3 is bad' >&2; exit 1")
    assert refusal(me, work) == "the pre-commit hook failed: line 3 is bad"


def test_a_hook_that_stages_something(work: Path, me: Player) -> None:
    hook(work, "pre-commit", "echo made >made.txt; git add made.txt")
    of(me, work).make()
    assert git(work, "show", "--format=", "--name-only", "HEAD").split() == ["made.txt", "notes.md"]
    assert git(work, "status", "--porcelain") == " M notes.md\n"


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("git merge -q --no-commit --no-ff side", "a merge is in progress"),
        ("touch .git/index.lock", "another git command has locked the index"),
        ("git config user.useConfigOnly true", "git var"),
    ],
)
def test_states_that_refuse(work: Path, me: Player, before: str, words: str, monkeypatch, limits: Limits) -> None:
    from swarm_mcp.changes.commit import landing

    limits(landing, PATIENCE=0.1)
    if "useConfigOnly" in before:
        for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"):
            monkeypatch.delenv(name, raising=False)
        if git(work, "config", "user.email", fails=True):
            pytest.skip("this machine's git knows an author")
    if "side" in before:
        base = git(work, "commit-tree", "-p", "HEAD", "-m", "side", "HEAD^{tree}").strip()
        git(work, "update-ref", "refs/heads/side", base)
    git(work, "-c", f"alias.x=!{before}", "x")
    index = work / ".git/index.lock"
    had_lock = index.exists()
    if had_lock:
        with pytest.raises(Exception, match=words):
            of(me, work).make()
        assert index.exists()  # it is not ours
        return
    assert words in refusal(me, work)


def test_detached_and_first_commit(work: Path, me: Player, tmp_path: Path) -> None:
    git(work, "checkout", "-q", "--detach")
    assert commits(me, work).branch == ""
    git(work, "checkout", "-q", "--orphan", "new")
    git(work, "rm", "-q", "-f", "--cached", "-r", ".")
    other = Player("codex", work)
    other.writes("first.txt", "one\n")
    commits(other, work, "first.txt")
    assert git(work, "ls-tree", "--name-only", "HEAD") == "first.txt\n"
    assert git(work, "log", "--format=%s") == "mine\n"


def test_a_branch_that_moved_meanwhile(work: Path, me: Player) -> None:
    once, tree = work / ".git/moved", "HEAD^{tree}"
    made = f"git commit-tree -p HEAD -m other {tree} | xargs git update-ref HEAD"
    hook(work, "pre-commit", f"test -e {once} || (touch {once}; {made})")
    commits(me, work)
    assert git(work, "log", "-2", "--format=%s") == "mine\nother\n"


def test_a_linked_work_tree(work: Path, tmp_path: Path, no_faults: None) -> None:
    git(work, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "side")
    linked = (tmp_path / "linked").resolve()
    me, peer = Player("codex", linked), Player("codex", linked)
    me.edits("notes.md", "alpha", "MINE")
    peer.edits("notes.md", "gamma", "PEER")
    done = of(me, linked).make()
    assert done.branch == "side" and git(linked, "show", "HEAD:notes.md") == "MINE\nbeta\ngamma\n"
    assert git(linked, "status", "--porcelain") == " M notes.md\n" and git(work, "status", "--porcelain") == ""


def test_signed_with_ssh(work: Path, me: Player, tmp_path: Path) -> None:
    key = tmp_path / "key"
    made = git(work, "-c", f"alias.k=!ssh-keygen -q -t ed25519 -N '' -f {key} && echo made", "k", fails=True)
    if "made" not in made:
        pytest.skip("no ssh-keygen")
    for name, value in (("gpg.format", "ssh"), ("user.signingkey", str(key)), ("commit.gpgsign", "true")):
        git(work, "config", name, value)
    commits(me, work)
    assert "BEGIN SSH SIGNATURE" in git(work, "cat-file", "commit", "HEAD")
