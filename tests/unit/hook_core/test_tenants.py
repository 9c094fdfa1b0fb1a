"""A work tree with another live session is not removed or moved in silence."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.altered import Limits
from support.fixtures import Sleeper
from support.traced import Player, git
from support.world import some_time_passes

from swarm_hook_core import fence, tenants
from swarm_hook_core.hooks import ToolCall
from swarm_mcp.store import Store

from .conftest import Commands

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_faults")]
TREE = ".claude/worktrees/wt"
REMOVALS = {
    "git worktree remove": f"git worktree remove --force {TREE}",
    "of an unchanged one": f"git worktree remove {TREE}",
    "rm and prune": f"rm -rf {TREE} && git worktree prune",
    "rm of a folder over it": "rm -rf .claude",
    "all that are listed": "git worktree list --porcelain | grep ^worktree | cut -d' ' -f2 | xargs -n1 git worktree remove -f",
    "a loop": 'for w in .claude/worktrees/*; do git worktree remove --force "$w"; done',
    "clean": "git clean -ffdxq",
    "find": f"find {TREE} -delete",
    "rsync": "rsync -a --delete ../empty/ .claude/worktrees/",
    "python": f"python3 -c 'import shutil; shutil.rmtree(\"{TREE}\")'",
    "git's own part": "rm -rf .git/worktrees/wt",
    "its .git": f"rm {TREE}/.git",
}
MOVES = {"mv": f"mv {TREE} ../x", "git worktree move": f"git worktree move {TREE} ../x"}


@pytest.fixture
def tree(work: Path, limits: Limits) -> Path:
    """A linked work tree of the checkout `work` with a commit that no ref has."""
    limits(tenants, APART_NS=0)
    git(work, "worktree", "add", "-q", "--detach", TREE)
    (work.parent / "empty").mkdir()
    found = work / TREE
    commit(found, "Parse empty lines")
    return found


def commit(tree: Path, subject: str) -> str:
    (tree / "notes.md").write_text(f"{subject}\n")
    git(tree, "commit", "-qam", subject)
    return git(tree, "rev-parse", "--short", "HEAD").strip()


@pytest.fixture
def tenant(tree: Path) -> Player:
    return Player("codex", tree, "identity:p tenant")


@pytest.fixture
def me(work: Path, tenant: Player) -> Player:
    return Player("claude-code", work, "identity:p me")


@pytest.mark.parametrize("command", [*REMOVALS.values(), *MOVES.values()], ids=[*REMOVALS, *MOVES])
def test_a_call_that_takes_the_tree_away_is_denied_once(command: str, tree: Path, me: Player) -> None:
    said = me.denied("Bash", {"command": command})
    assert f"would {'move away' if command in MOVES.values() else 'remove'} {tree}, in which tenant" in said, said
    assert " lives, since " in said and "1 commit there is on no other branch or tag" in said, said
    assert '"Parse empty lines"' in said and "`git branch NAME " in said and "the same command again goes ahead" in said
    assert me.denied("Bash", {"command": command}) == "", "it has been told, and means it"


def test_the_session_there_hears_of_both_calls(tree: Path, me: Player, tenant: Player, commands: Commands) -> None:
    commands.run = True
    name = git(tree, "rev-parse", "--short", "HEAD").strip()
    call = ToolCall("Bash", {"command": REMOVALS["git worktree remove"]}, me.session_id, str(me.folder))
    for what in ("was stopped once from a call that would remove", "makes a call to remove"):
        me.core.judge(call)
        with Store() as store:
            (notice,) = store.notices.take(store.instances.get(tenant.id))
            store.messages.acknowledge([notice.id])
        assert f"{what} {tree} (`git worktree remove --force {TREE}`), in which you work" in notice.text, notice.text
        assert f"`git -C {me.folder} branch NAME {name}` keeps them" in notice.text, notice.text


def test_a_new_commit_there_is_told_again(tree: Path, me: Player) -> None:
    call = ("Bash", {"command": REMOVALS["git worktree remove"]})
    assert me.denied(*call) and me.denied(*call) == ""
    commit(tree, "More lines")
    assert "2 commits there are on no other branch or tag" in me.denied(*call)
    assert me.denied(*call) == ""


def test_a_record_that_prune_would_drop_is_told(tree: Path, work: Path, me: Player) -> None:
    tree.rename(work.parent / "moved")
    said = me.denied("Bash", {"command": "git worktree prune"})
    assert f"would drop git's record of {tree}" in said and '"Parse empty lines"' in said, said
    assert me.denied("Bash", {"command": "git worktree prune"}) == ""


@pytest.mark.parametrize(
    "tool, given",
    [
        ("mcp__git__git_worktree", {"path": ".", "mode": "remove", "worktreePath": TREE, "force": True}),
        ("mcp__git__git_worktree", {"path": ".", "mode": "move", "worktreePath": TREE, "newPath": "../x"}),
        ("mcp__files__delete_directory", {"path": TREE}),
        ("mcp__files__move_file", {"source": TREE, "destination": "../x"}),
        ("mcp__shell__run_command", {"command": f"rm -rf {TREE}"}),
    ],
)
def test_a_tool_of_another_server_is_denied_as_well(tool: str, given: dict, me: Player) -> None:
    assert TREE in me.denied(tool, given)
    assert me.denied(tool, given) == ""


def test_commits_on_a_branch_are_not_lost_unless_it_goes_along(tree: Path, me: Player) -> None:
    git(tree, "checkout", "-q", "-b", "feature")
    said = me.denied("Bash", {"command": f"git worktree remove {TREE}"})
    assert "in which tenant" in said and "no other branch" not in said, said
    commit(tree, "More lines")
    said = me.denied("Bash", {"command": f"git worktree remove --force {TREE} && git branch -D feature"})
    assert "2 commits there are on no other branch or tag: " in said and '"More lines"' in said, said


def test_uncommitted_work_there_is_named_and_stays_protected(tree: Path, me: Player, tenant: Player) -> None:
    tenant.edits("other.md", "beta", "PEER")
    call = ("Bash", {"command": REMOVALS["git worktree remove"]})
    said = me.denied(*call)
    assert '"Parse empty lines"' in said and "other.md" in said, said
    assert "other.md" in me.denied(*call), "as without a session there"


SILENT = {
    "another folder": "rm -rf .claude/worktrees/old",
    "files there": f"find {TREE} -name '*.pyc' -delete",
    "one file there": f"rm -f {TREE}/no-such-file",
    "clean": "git clean -fdxq",
    "an empty folder": "rmdir .claude/worktrees/wt",
    "list": "git worktree list",
    "add": "git worktree add -q ../new",
    "prune": "git worktree prune",
}


@pytest.mark.parametrize("command", SILENT.values(), ids=SILENT)
def test_a_call_that_leaves_the_tree_is_silent(command: str, work: Path, me: Player) -> None:
    (work / ".claude/worktrees/old").mkdir()
    assert me.told("Bash", {"command": command}) == ""


def test_an_own_tree_and_one_without_a_session_are_free(tree: Path, work: Path) -> None:
    call = ("Bash", {"command": f"git worktree remove --force {tree}"})
    assert Player("claude-code", work).denied(*call) == "", "no session lives there"
    assert "in which" not in Player("claude-code", tree).denied(*call), "it is its own"


@pytest.fixture
def child(tree: Path) -> Iterator[tuple[Sleeper, int]]:
    """A live process, and a process that it has started."""
    script = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, flush=True); sys.stdin.read()"
    with Sleeper() as parent:
        parent.end()
        parent.process = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert parent.process.stdout
        below = int(parent.process.stdout.readline())
        yield parent, below
        os.kill(below, 9)
        for pipe in (parent.process.stdin, parent.process.stdout):
            assert pipe
            pipe.close()


def test_a_session_that_it_has_started_itself_is_its_own(tree: Path, work: Path, child: tuple[Sleeper, int]) -> None:
    from swarm_hook_core.process import start_time

    parent, below = child
    call = ("Bash", {"command": f"git worktree remove --force {tree}"})
    Player("codex", tree, client=(below, start_time(below)))
    own = Player("claude-code", work, client=(parent.process.pid, start_time(parent.process.pid)))
    assert own.denied(*call) == ""
    assert Player("claude-code", work).denied(*call), "another's"


def test_a_session_that_has_died_is_no_tenant(tree: Path, work: Path) -> None:
    with Sleeper() as client:
        Player("codex", tree, client=client.identity)
    assert Player("claude-code", work).denied("Bash", {"command": f"rm -rf {tree}"}) == ""


def test_a_session_of_a_linked_tree_is_not_denied_twice(tree: Path, work: Path, me: Player, limits: Limits) -> None:
    limits(fence, APART_NS=0)
    git(work, "worktree", "add", "-q", str(work.parent / "mine"))
    linked = Player("claude-code", work.parent / "mine")
    call = ("Bash", {"command": f"git worktree remove --force {tree}"})
    assert "in which" in linked.denied(*call) and linked.denied(*call) == ""


def test_at_notice_it_is_told_and_goes_ahead(tree: Path, me: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_AUTO", "notice")
    assert "in which tenant" in me.told("Bash", {"command": REMOVALS["rm and prune"]})
    monkeypatch.setenv("SWARM_AUTO", "off")
    assert me.told("Bash", {"command": REMOVALS["rm and prune"]}) == ""


def test_two_processes_that_answer_one_call_answer_alike(tree: Path, me: Player, limits: Limits) -> None:
    for number, denied in (("1", True), ("1", True), ("2", False)):
        call = ToolCall("Bash", {"command": f"rm -rf {TREE}"}, me.session_id, str(me.folder), id=number)
        verdict = me.core.check(call)
        assert (verdict is not None and verdict.denial is not None) is denied
    limits(tenants, APART_NS=10**12)
    some_time_passes()
    assert me.denied("Bash", {"command": f"rm -rf {TREE}"}), "the model cannot have read the first answer yet"
