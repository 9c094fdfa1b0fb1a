"""`swarm-mcp commit`, killed before each of its steps: the repository is as before or as after, and nothing is locked."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.commits import git, of
from support.traced import Player, checkout
from support.world import ready_store

from swarm_hook_core.repository import tree_at
from swarm_mcp.changes.commit import Commit
from swarm_mcp.changes.commit.landing import Workshop

pytestmark = pytest.mark.slow

STEPS = ("subprocess.Popen", "open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.chmod", "os.utime")


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


def killed_at(commit: Commit, step: int) -> bool:
    """Commit in a process that kills itself before that `step`. Return False if it ended before."""
    pid = os.fork()
    if not pid:
        left = [step]

        def hook(event: str, _given: object) -> None:
            if event in STEPS:
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)

        code = 1
        try:
            sys.addaudithook(hook)
            commit.make()
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("has_guardian", [True, False])
def test_killed_before_each_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checks_have_time: None, no_faults: None, has_guardian: bool
) -> None:
    ready_store()
    work = checkout(tmp_path.resolve() / "work", "notes.md", "other.md")
    one, two = Player("codex", work), Player("codex", work)
    one.edits("notes.md", "alpha", "ONE")
    two.edits("notes.md", "gamma", "TWO")
    two.edits("other.md", "gamma", "STAGED")
    git(work, "add", "other.md")
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
        (work / ".git/index").write_bytes(index)
        step += (15, 2)[step > 110]  # the last ones are the landing
    assert killed > 20 and len(ends) == 2
