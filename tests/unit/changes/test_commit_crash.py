"""`swarm-mcp commit`, killed before each of its steps: the repository is as before or as after, and nothing is locked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.commits import git, hook, of
from support.fixtures import wait_for
from support.killing import changing_steps, killed_at
from support.traced import Player, checkout
from support.world import ready_store

from swarm_hook_core.repository import tree_at
from swarm_mcp.changes.commit import Commit
from swarm_mcp.changes.commit.landing import Workshop

pytestmark = pytest.mark.slow


def state(work: Path) -> dict[str, str]:
    """Return all that others see of the repository, with the subject in place of a commit's name."""
    return {
        "head": git(work, "log", "--format=%s"),
        "index": git(work, "ls-files", "-s"),
        "status": git(work, "status", "--porcelain"),
        "staged": git(work, "diff", "--cached"),
        "tree": "".join(path.read_text() for path in sorted(work.glob("*.md"))),
        "left": " ".join(sorted(path.name for path in (work / ".git").glob("*.lock"))),
        "side": " ".join(sorted(path.name for path in (work / ".git").glob("index.*"))),
    }


def files(work: Path, workshop: Workshop) -> list[tuple[object, ...]]:
    """Return the files that the clearing up behind a killed commit finds, but for objects; private ones go in any case."""
    found = [workshop.path("record")]
    for folder, below, names in os.walk(work):
        if folder.endswith(".git"):
            below.remove("objects")
        found += [os.path.join(folder, name) for name in names]
    return [
        (path, (facts := os.stat(path)).st_ino, facts.st_size, facts.st_mtime_ns)
        for path in sorted(found)
        if os.path.exists(path)
    ]


REWRITES = "sed -i.bak s/MINE/NEAT/ mine.md; rm mine.md.bak; git add -A"


def planned(work: Path, has_hook: bool) -> tuple[Player, Commit, Workshop]:
    """Make a repository with work of two sessions; return the first one, a commit of its work, and that commit's workshop."""
    checkout(work, "mine.md", "notes.md", "other.md")
    one, two = Player("codex", work), Player("codex", work)
    one.edits("notes.md", "alpha", "ONE")
    two.edits("notes.md", "gamma", "TWO")
    two.edits("other.md", "gamma", "STAGED")
    git(work, "add", "other.md")
    if has_hook:
        one.edits("mine.md", "beta", "MINE")
        hook(work, "pre-commit", REWRITES)
    tree = tree_at(str(work))
    assert tree is not None
    return one, of(one, work), Workshop(tree.top, tree.own)


@pytest.mark.parametrize(("has_guardian", "has_hook"), [(True, False), (False, False), (False, True)])
@pytest.mark.sampled
def test_killed_before_each_step(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    checks_have_time: None,
    no_faults: None,
    has_guardian: bool,
    has_hook: bool,
) -> None:
    ready_store()
    if not has_guardian:
        monkeypatch.setattr(Workshop, "_guard", lambda _self: None)
    _one, commit, workshop = planned(tmp_path.resolve() / "whole", has_hook)
    steps = changing_steps(commit, lambda: files(tmp_path / "whole", workshop))
    work = tmp_path.resolve() / "work"
    one, commit, workshop = planned(work, has_hook)
    old, before, after = git(work, "rev-parse", "HEAD").strip(), state(work), None
    index = (work / ".git/index").read_bytes()
    ends = set()
    for step in sorted({*steps, *range(1 if has_guardian else 2, max(steps), 7)}):
        killed_at(commit, step)
        if has_guardian:
            wait_for(lambda: not any(map(os.path.exists, (workshop.path("record"), workshop.own + "/index.swarm"))))
        else:
            with workshop:
                pass
        found = state(work)
        ends.add(found["head"])
        if found["head"] == before["head"]:
            assert found == before, step
        else:
            assert sorted(found["status"].splitlines()) == [" M notes.md", "M  other.md"], step
            assert (found["left"], found["side"]) == ("", ""), step
            after = after or found
            assert found == after, step
            git(work, "update-ref", "HEAD", old)
            if has_hook:
                assert (work / "mine.md").read_text() == "alpha\nNEAT\ngamma\n"
                one.edits("mine.md", "NEAT", "MINE")
        (work / ".git/index").write_bytes(index)
    assert len(steps) > 5 and len(ends) == 2
