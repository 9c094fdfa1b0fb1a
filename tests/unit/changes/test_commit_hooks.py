"""`swarm-mcp commit` with hooks that stage everything, put unstaged changes aside, or rewrite files.

The hooks here do the same as pre-commit, lint-staged and husky; tests/e2e/test_commit_hooks.py has the real ones.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.commits import commits, git, hook, of, refusal
from support.files import folder_at, program_at
from support.traced import Player, checkout
from support.world import ready_store

pytestmark = pytest.mark.slow

PRE_COMMIT = """
tree=$(git write-tree)
git diff --no-ext-diff --ignore-submodules --binary --exit-code --no-color $tree -- >{aside}/patch && exit 0
git -c submodule.recurse=0 checkout -- . || exit 1
{check}
git apply --whitespace=nowarn {aside}/patch"""

LINT_STAGED = """
unset GIT_DIR GIT_WORK_TREE
cd "$(git rev-parse --show-toplevel)"
stash=$(git stash create)
git diff --binary --unified=0 --no-color --no-ext-diff --patch --submodule=short --output={aside}/patch
partly=$(git diff --name-only)
test -z "$partly" || git checkout --force -- $partly
{check}
test -s {aside}/patch && git apply -v --whitespace=nowarn --recount --unidiff-zero {aside}/patch
git add -- $(git diff --cached --name-only --diff-filter=ACMR)"""

STAGE_ALL = "{check}\ngit add -A"


@pytest.fixture
def work(tmp_path: Path, checks_have_time: None, no_faults: None) -> Path:
    ready_store()
    return checkout(tmp_path.resolve() / "work", "notes.md", "other.md", "mine.md")


@pytest.fixture
def me(work: Path) -> Player:
    """A session with changes in notes.md and mine.md, beside a peer's and a person's work of all kinds."""
    peer, me = Player("codex", work), Player("codex", work)
    (work / "other.md").write_text("alpha\nPERSON\ngamma\n")
    me.edits("notes.md", "alpha", "MINE")
    me.edits("mine.md", "beta", "MINE")
    peer.edits("notes.md", "gamma", "PEER")
    peer.writes("new.md", "PEER\n")
    return me


@pytest.mark.parametrize("manager", [PRE_COMMIT, LINT_STAGED, STAGE_ALL])
def test_others_work_stays_where_it_is(work: Path, me: Player, manager: str, tmp_path: Path) -> None:
    seen = folder_at(tmp_path / "seen")
    check = f"cat {work}/notes.md {work}/new.md {work}/other.md >{seen}/there; cat notes.md mine.md >{seen}/here"
    hook(work, "pre-commit", manager.format(check=check, aside=seen))
    done = commits(me, work)
    assert (manager == PRE_COMMIT) != (seen / "here").exists()  # it has found nothing to put aside
    if manager != PRE_COMMIT:
        assert (seen / "there").read_text() == "MINE\nbeta\nPEER\nPEER\nalpha\nPERSON\ngamma\n"
        assert (seen / "here").read_text() == "MINE\nbeta\ngamma\nalpha\nMINE\ngamma\n"
    assert git(work, "show", "--format=", "--name-only", "HEAD").split() == ["mine.md", "notes.md"]
    assert git(work, "show", "HEAD:notes.md") == "MINE\nbeta\ngamma\n"
    assert done.rewritten == [] and git(work, "stash", "list") == "" and git(work, "worktree", "prune", "-v") == ""
    assert git(work, "status", "--porcelain") == " M notes.md\n M other.md\n?? new.md\n"


def test_files_that_a_hook_rewrites(work: Path, me: Player) -> None:
    hook(work, "pre-commit", "sed -i.bak s/MINE/NEAT/ notes.md mine.md; rm *.bak; echo x >made.md; git add -A")
    done = of(me, work).make()
    assert git(work, "show", "HEAD:notes.md") == "NEAT\nbeta\ngamma\n"
    assert (work / "mine.md").read_text() == git(work, "show", "HEAD:mine.md") == "alpha\nNEAT\ngamma\n"
    assert (work / "made.md").read_text() == "x\n"
    assert (work / "notes.md").read_text() == "MINE\nbeta\nPEER\n", "it has others' lines"
    assert done.rewritten == ["notes.md"]
    assert git(work, "status", "--porcelain") == " M notes.md\n M other.md\n?? new.md\n"
    subprocess.run(done.apply.split(" "), check=True)
    assert (work / "notes.md").read_text() == "NEAT\nbeta\nPEER\n"


def test_a_hook_that_rewrites_and_fails(work: Path, me: Player) -> None:
    hook(work, "pre-commit", "grep -q NEAT notes.md || { sed -i.bak s/MINE/NEAT/ notes.md; echo reformatted; exit 1; }")
    said = refusal(me, work)
    assert said.startswith(
        "the pre-commit hook failed: reformatted; it has changed notes.md in a copy of the work tree: `git"
    )
    assert (work / "notes.md").read_text() == "MINE\nbeta\nPEER\n"
    me.runs("cat notes.md")
    me.runs(said.split("`")[1])
    commits(me, work)
    assert git(work, "show", "HEAD:notes.md") == "NEAT\nbeta\ngamma\n"


def test_ignored_files_are_there_and_stay_out(work: Path, me: Player) -> None:
    (work / ".git/info/exclude").write_text("node_modules/\n.env\n.husky/_/\n")
    for name in ("node_modules/.bin/tool", ".husky/_/pre-commit"):
        program_at(
            work / name, "#!/bin/sh\ntest -x node_modules/.bin/tool && test -f .env && git add -A && echo $0 ran\n"
        )
    (work / ".env").write_text("x\n")
    git(work, "config", "core.hooksPath", ".husky/_")
    assert ".husky/_/pre-commit ran" in commits(me, work).output
    assert git(work, "show", "--format=", "--name-only", "HEAD").split() == ["mine.md", "notes.md"]
    assert (work / "node_modules/.bin/tool").exists()


def test_the_hooks_see_the_branch_and_the_message(work: Path, me: Player) -> None:
    hook(
        work,
        "prepare-commit-msg",
        'printf "$(git symbolic-ref --short HEAD): %s\\n" "$(cat .git/COMMIT_EDITMSG)" >"$1"',
    )
    branch = git(work, "symbolic-ref", "--short", "HEAD").strip()
    commits(me, work)
    assert git(work, "log", "-1", "--format=%s") == f"{branch}: mine\n"


def test_alone_the_hooks_run_in_the_work_tree(work: Path) -> None:
    alone = Player("codex", work)
    alone.edits("notes.md", "alpha", "MINE")
    hook(work, "pre-commit", "sed -i.bak s/MINE/NEAT/ notes.md; rm *.bak; git add -u; pwd")
    assert of(alone, work).make().output == f"{work}\n"
    assert git(work, "show", "HEAD:notes.md") == "NEAT\nbeta\ngamma\n" == (work / "notes.md").read_text()
    assert git(work, "status", "--porcelain") == ""


def test_a_write_of_another_while_the_hooks_run(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from swarm_mcp.changes.commit import Making

    peer, me = Player("codex", work), Player("codex", work)
    me.edits("notes.md", "alpha", "MINE")
    hook(work, "pre-commit", "echo x >made.md; git add -A")
    run = Making.hook

    def hook_beside_a_peer(self: Making, name: str, *words: str, **more: object) -> None:
        if name == "pre-commit" and not (work / "new.md").exists():
            peer.writes("new.md", "PEER\n")
        run(self, name, *words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Making, "hook", hook_beside_a_peer)
    of(me, work).make()
    assert "new.md" not in git(work, "show", "--format=", "--name-only", "HEAD")
    assert git(work, "show", "HEAD:notes.md") == "MINE\nbeta\ngamma\n"
