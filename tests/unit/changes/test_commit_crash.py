"""`swarm-mcp commit`, killed before each of its steps: the repository is as before or as after, and nothing is locked."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.commits import git, of
from support.killing import killed_at
from support.traced import Player, checkout
from support.world import ready_store

from swarm_hook_core.repository import tree_at
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


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


REWRITES = "#!/bin/sh\nsed -i.bak s/MINE/NEAT/ mine.md; rm mine.md.bak; git add -A\n"


@pytest.mark.parametrize(("has_guardian", "has_hook"), [(True, False), (False, False), (False, True)])
def test_killed_before_each_step(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    checks_have_time: None,
    no_faults: None,
    has_guardian: bool,
    has_hook: bool,
) -> None:
    ready_store()
    work = checkout(tmp_path.resolve() / "work", "mine.md", "notes.md", "other.md")
    one, two = Player("codex", work), Player("codex", work)
    one.edits("notes.md", "alpha", "ONE")
    two.edits("notes.md", "gamma", "TWO")
    two.edits("other.md", "gamma", "STAGED")
    git(work, "add", "other.md")
    if has_hook:
        one.edits("mine.md", "beta", "MINE")
        (work / ".git/hooks").mkdir(exist_ok=True)
        (work / ".git/hooks/pre-commit").write_text(REWRITES)
        (work / ".git/hooks/pre-commit").chmod(0o755)
    commit = of(one, work)
    tree = tree_at(str(work))
    assert tree is not None
    workshop = Workshop(tree.top, tree.own)
    if not has_guardian:
        monkeypatch.setattr(Workshop, "_guard", lambda _self: None)
    old, before, after = git(work, "rev-parse", "HEAD").strip(), state(work), None
    index = (work / ".git/index").read_bytes()
    killed, ends = 0, set()
    step = 1 if has_guardian else 2
    while killed_at(commit, step):
        killed += 1
        if has_guardian:
            until(lambda: not any(map(os.path.exists, (workshop.path("record"), workshop.own + "/index.swarm"))))
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
        step += (7, 1)[step > 40]  # the last ones are the landing
    assert killed > 20 and len(ends) == 2
