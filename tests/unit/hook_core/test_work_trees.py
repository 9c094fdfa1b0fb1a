"""Work trees of other sessions: a write into one is stopped once, and one with a live session is not taken away."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.altered import Limits
from support.fixtures import Sleeper
from support.traced import Player, git
from support.world import some_time_passes

from swarm_hook_core import fence
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.state import config_path
from swarm_hook_core.traces.head.news import at_turn
from swarm_mcp.store import Store

from .conftest import Commands

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_faults")]


@pytest.fixture
def trees(work: Path, limits: Limits) -> Path:
    """The folder of a main checkout `work`, two work trees linked to it, and another repository `apart`."""
    limits(fence, APART_NS=0)
    git(work, "worktree", "add", "-q", str(work / ".trees" / "mine"))
    git(work, "worktree", "add", "-q", str(work.parent / "theirs"))
    (work.parent / "apart").mkdir()
    git(work.parent / "apart", "init", "-q")
    (work.parent / "nowhere").mkdir()
    return work.parent


@pytest.fixture
def me(trees: Path) -> Player:
    return Player("claude-code", trees / "work" / ".trees" / "mine")


def rows(text: str) -> list[str]:
    """Return the lines of a text."""
    return [line.strip() for line in text.strip().split("\n")]


WRITES: dict[str, Callable[[str], tuple[str, dict[str, str]]]] = {
    "Write": lambda path: ("Write", {"file_path": path, "content": "x\n"}),
    "Edit": lambda path: ("Edit", {"file_path": path, "old_string": "beta", "new_string": "x"}),
    "redirection": lambda path: ("Bash", {"command": f"echo x > {path}"}),
    "append": lambda path: ("Bash", {"command": f"echo x >> {path}"}),
    "removal": lambda path: ("Bash", {"command": f"rm {path}"}),
    "folder": lambda path: ("Bash", {"command": f"rm -r {path}"}),
    "cd": lambda path: ("Bash", {"command": f"cd {Path(path).parent} && sed -i s/a/b/ {Path(path).name}"}),
    "copy": lambda path: ("Bash", {"command": f"cp notes.md {path}"}),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize(
    ("target", "place"), [("work/notes.md", "the main checkout"), ("theirs/sub/deep.md", "another work tree")]
)
@pytest.mark.sampled
def test_a_write_into_another_work_tree_is_denied_once(write, target: str, place: str, trees: Path, me: Player) -> None:
    call = write(str(trees / target))
    said = me.denied(*call)
    assert f"which lies in {place}" in said and str(me.folder / target.partition("/")[2]) in said, said
    assert me.denied(*call) == "", "it has been told, and means it"
    assert me.denied(*WRITES["Write"](str(trees / target.partition("/")[0] / "other.md"))) == "", "once for each tree"


FREE = {
    "own": "work/.trees/mine/notes.md",
    "another repository": "apart/notes.md",
    "outside of any": "nowhere/notes.md",
    "git's own files": "work/.git/info/attributes",
}


@pytest.mark.parametrize("write", [WRITES["Write"], WRITES["redirection"]], ids=["Write", "redirection"])
@pytest.mark.parametrize("target", FREE.values(), ids=FREE)
@pytest.mark.sampled
def test_other_files_are_free(write, target: str, trees: Path, me: Player) -> None:
    assert me.denied(*write(str(trees / target))) == ""


@pytest.mark.parametrize("place", ["work", "apart", "nowhere"])
def test_a_session_that_began_outside_of_linked_work_trees_is_free(place: str, trees: Path) -> None:
    me = Player("claude-code", trees / place)
    assert me.denied(*WRITES["Write"](str(trees / "theirs" / "notes.md"))) == ""


CROSSING = ["git checkout -b x", "git commit -qam x", "git reset --hard", "git add -A", "git stash", "git merge main",
            "git symbolic-ref HEAD refs/heads/x"]  # fmt: skip
SHARED = ["git log", "git fetch", "git push origin main", "git branch x", "git worktree list", "git tag x"]


@pytest.mark.parametrize("command", CROSSING)
def test_a_git_command_in_another_work_tree_is_denied_once(command: str, trees: Path, me: Player) -> None:
    for call in (f"cd ../.. && {command}", command.replace("git", f"git -C {trees / 'work'}", 1)):
        said = me.denied("Bash", {"command": call})
        if call.startswith("cd"):
            assert f"the files, the index or HEAD of the main checkout {trees / 'work'}" in said, said
            assert f"`git -C {me.folder} ...`" in said
        else:
            assert said == "", "once for each tree"
    assert "another work tree" in me.denied("Bash", {"command": f"cd {trees / 'theirs'} && {command}"})
    assert me.denied("Bash", {"command": command}) == "", "its own"


@pytest.mark.parametrize("command", SHARED)
def test_a_git_command_about_what_all_trees_share_is_free(command: str, me: Player) -> None:
    assert me.told("Bash", {"command": f"cd ../.. && {command}"}) == ""


def test_the_folder_of_the_call_does_not_count(trees: Path, me: Player) -> None:
    for number, (name, denied) in enumerate((("notes.md", True), (str(me.folder / "notes.md"), False))):
        given = {"command": f"echo x > {name}"}
        call = ToolCall("Bash", given, me.session_id, str(trees / ("theirs", "work")[number]))
        verdict = me.core.check(call)
        assert (verdict is not None and verdict.denial is not None) is denied, name


def test_a_submodule_lies_in_the_work_tree_around_it(trees: Path, me: Player) -> None:
    git(trees / "apart", "commit", "-q", "--allow-empty", "-m", "start")
    for top in (trees / "work", me.folder):
        git(top, "submodule", "add", "-q", str(trees / "apart"), "sm")
    assert me.denied(*WRITES["Write"](str(me.folder / "sm" / "f"))) == ""
    assert "the main checkout" in me.denied(*WRITES["Write"](str(trees / "work" / "sm" / "f")))
    within = Player("claude-code", trees / "work" / "sm")
    assert within.denied(*WRITES["Write"](str(trees / "work" / "notes.md"))) == "", "a submodule is no linked work tree"


def test_it_is_told_at_notice_and_nothing_is_said_when_off(trees: Path, me: Player, monkeypatch) -> None:
    call = WRITES["Edit"](str(trees / "work" / "notes.md"))
    monkeypatch.setenv("SWARM_AUTO", "off")
    assert me.told(*call) == ""
    monkeypatch.setenv("SWARM_AUTO", "notice")
    monkeypatch.setenv("SWARM_FENCE", "off")
    assert me.told(*call) == ""
    monkeypatch.delenv("SWARM_FENCE")
    assert "the main checkout" in me.told(*call)
    assert me.told(*call) == ""


@pytest.mark.parametrize("place", ["work", "work/.trees/mine"])
def test_it_can_be_switched_off_in_either_work_tree(place: str, trees: Path, me: Player) -> None:
    path = Path(config_path())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"checkouts": {{"{trees / place}": {{"fence": "off"}}}}}}')
    path.chmod(0o600)
    assert me.denied(*WRITES["Write"](str(trees / "work" / "notes.md"))) == ""


def test_calls_side_by_side_are_all_denied_and_each_agent_is_told(trees: Path, me: Player, limits: Limits) -> None:
    limits(fence, APART_NS=10**12)
    call = WRITES["Write"](str(trees / "work" / "notes.md"))
    assert me.denied(*call) and me.denied(*call), "the model cannot have read the first answer yet"
    limits(fence, APART_NS=0)
    assert me.denied(*call, agent="a1"), "which has a context of its own"
    assert me.denied(*call) == "" == me.denied(*call, agent="a1")


def test_two_processes_that_answer_one_call_answer_alike(trees: Path, me: Player) -> None:
    tool, given = WRITES["Write"](str(trees / "work" / "notes.md"))
    for number, denied in (("1", True), ("1", True), ("2", False)):
        call = ToolCall(tool, given, me.session_id, str(me.folder), id=number)
        verdict = me.core.check(call)
        assert (verdict is not None and verdict.denial is not None) is denied


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
    limits(fence, APART_NS=0)
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
def tenant_me(work: Path, tenant: Player) -> Player:
    return Player("claude-code", work, "identity:p me")


@pytest.mark.parametrize("command", [*REMOVALS.values(), *MOVES.values()], ids=[*REMOVALS, *MOVES])
@pytest.mark.sampled
def test_a_call_that_takes_the_tree_away_is_denied_once(command: str, tree: Path, tenant_me: Player) -> None:
    said = tenant_me.denied("Bash", {"command": command})
    assert f"would {'move away' if command in MOVES.values() else 'remove'} {tree}, in which tenant" in said, said
    assert " lives, since " in said and "1 commit there is on no other branch or tag" in said, said
    assert '"Parse empty lines"' in said and "`git branch NAME " in said and "the same command again goes ahead" in said
    assert tenant_me.denied("Bash", {"command": command}) == "", "it has been told, and means it"


def test_the_session_there_hears_of_both_calls(
    tree: Path, tenant_me: Player, tenant: Player, commands: Commands
) -> None:
    commands.run = True
    name = git(tree, "rev-parse", "--short", "HEAD").strip()
    call = ToolCall("Bash", {"command": REMOVALS["git worktree remove"]}, tenant_me.session_id, str(tenant_me.folder))
    for what in ("was stopped once from a call that would remove", "makes a call to remove"):
        tenant_me.core.judge(call)
        with Store() as store:
            (notice,) = store.notices.take(store.instances.get(tenant.id))
            store.messages.acknowledge([notice.id])
        assert f"{what} {tree} (`git worktree remove --force {TREE}`), in which you work" in notice.text, notice.text
        assert f"`git -C {tenant_me.folder} branch NAME {name}` keeps them" in notice.text, notice.text


def test_a_new_commit_there_is_told_again(tree: Path, tenant_me: Player) -> None:
    call = ("Bash", {"command": REMOVALS["git worktree remove"]})
    assert tenant_me.denied(*call) and tenant_me.denied(*call) == ""
    commit(tree, "More lines")
    assert "2 commits there are on no other branch or tag" in tenant_me.denied(*call)
    assert tenant_me.denied(*call) == ""


def test_a_record_that_prune_would_drop_is_told(tree: Path, work: Path, tenant_me: Player) -> None:
    tree.rename(work.parent / "moved")
    said = tenant_me.denied("Bash", {"command": "git worktree prune"})
    assert f"would drop git's record of {tree}" in said and '"Parse empty lines"' in said, said
    assert tenant_me.denied("Bash", {"command": "git worktree prune"}) == ""


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
def test_a_tool_of_another_server_is_denied_as_well(tool: str, given: dict, tenant_me: Player) -> None:
    assert TREE in tenant_me.denied(tool, given)
    assert tenant_me.denied(tool, given) == ""


def test_commits_on_a_branch_are_not_lost_unless_it_goes_along(tree: Path, tenant_me: Player) -> None:
    git(tree, "checkout", "-q", "-b", "feature")
    said = tenant_me.denied("Bash", {"command": f"git worktree remove {TREE}"})
    assert "in which tenant" in said and "no other branch" not in said, said
    commit(tree, "More lines")
    said = tenant_me.denied("Bash", {"command": f"git worktree remove --force {TREE} && git branch -D feature"})
    assert "2 commits there are on no other branch or tag: " in said and '"More lines"' in said, said


@pytest.mark.parametrize(
    "command", ["git branch -D feature", "git branch -df feature", "git update-ref -d refs/heads/feature"]
)
def test_the_branch_of_a_tree_that_has_gone_is_held(
    command: str, tree: Path, work: Path, tenant_me: Player, tenant: Player
) -> None:
    git(tree, "checkout", "-q", "-b", "feature")
    tenant.is_prompted()
    assert tenant_me.denied("Bash", {"command": f"git worktree remove --force {TREE}"})
    git(work, "worktree", "remove", "--force", TREE)
    said = tenant_me.denied("Bash", {"command": command})
    assert f"would delete the branch feature of {tree}, in which codex" in said, said
    assert '"Parse empty lines"' in said and "`git branch NAME " in said, said
    assert tenant_me.denied("Bash", {"command": command}) == ""
    assert tenant_me.denied("Bash", {"command": command.replace("feature", "other")}) == ""


def test_the_client_s_own_tool_is_held(tree: Path, work: Path, tenant: Player) -> None:
    git(tree, "checkout", "-q", "-b", "feature")
    me = Player("claude-code", work)
    for given, is_denied in (({"action": "keep"}, False), ({"action": "remove", "discard_changes": True}, True)) * 2:
        call = ToolCall("ExitWorktree", given, me.session_id, str(tree))
        verdict = me.core.check(call)
        denial = verdict.denial if verdict is not None else None
        assert (denial is not None) is is_denied, given
        if denial is not None:
            assert "would remove" in denial.reason and '"Parse empty lines"' in denial.reason, denial.reason
            break


GONE = {
    "emptied": "rm -rf {0}/.git {0}/*",
    "removed": "git worktree remove --force {0}",
    "pruned": "rm -rf {0}; git worktree prune",
}


@pytest.mark.parametrize("how", GONE)
def test_a_session_whose_tree_has_gone_is_told_before_its_next_command(
    how: str, tree: Path, work: Path, tenant: Player, limits: Limits
) -> None:
    limits(fence, APART_NS=0)
    assert tenant.runs("ls") == ""
    subprocess.run(["sh", "-c", GONE[how].format(TREE)], cwd=work, check=True)
    tenant.folder = tree if tree.exists() else work  # the client starts the next command there
    said = tenant.denied("Bash", {"command": "git status"})
    assert f"{tree}, the work tree in which this session began, has gone" in said, said
    assert f"git uses the checkout around it, {work}" in said and "the same command again goes ahead" in said
    assert tenant.denied("Bash", {"command": "git status"}) == ""


def test_a_session_whose_tree_was_emptied_between_turns_is_told_at_its_prompt(tree: Path, tenant: Player) -> None:
    def prompted() -> str:
        return at_turn("codex", tenant.session_id, str(tree), tenant.core.driver)

    assert prompted() == ""
    (tree / ".git").unlink()
    assert f"{tree}, the work tree in which this session began, has gone" in prompted()
    assert prompted() == ""


def test_a_session_that_takes_its_own_tree_away_knows(tree: Path, work: Path, tenant: Player, limits: Limits) -> None:
    limits(fence, APART_NS=0)
    assert tenant.runs(f"cd {work} && git worktree remove --force {TREE}") == "" and not tree.exists()
    tenant.folder = work
    assert tenant.denied("Bash", {"command": "git status"}) == ""


def test_a_session_outside_of_any_work_tree_is_not_told(work: Path) -> None:
    plain = Player("codex", work.parent)
    assert plain.told("Bash", {"command": "ls"}) == ""
    git(work.parent, "init", "-q")
    assert plain.told("Bash", {"command": "ls"}) == "", "the repository is its own"


def test_uncommitted_work_there_is_named_and_stays_protected(tree: Path, tenant_me: Player, tenant: Player) -> None:
    tenant.edits("other.md", "beta", "PEER")
    call = ("Bash", {"command": REMOVALS["git worktree remove"]})
    said = tenant_me.denied(*call)
    assert '"Parse empty lines"' in said and "other.md" in said, said
    assert "other.md" in tenant_me.denied(*call), "as without a session there"


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
@pytest.mark.sampled
def test_a_call_that_leaves_the_tree_is_silent(command: str, work: Path, tenant_me: Player) -> None:
    (work / ".claude/worktrees/old").mkdir()
    assert tenant_me.told("Bash", {"command": command}) == ""


TOLD = rows("""
    jj undo
    jj op restore abc
    jj workspace forget wt
    jj abandon abc
    jj edit main
    but undo
    but discard k3
    gt sync
    gt up
    sl undo
    sl goto main
    git undo
    git-branchless undo
""")
DISCARDING = rows("""
    but discard notes.md
    jj restore notes.md
    jj restore
    jj abandon
    sl revert --all
    sl goto -C main
    gt reset --hard
""")


def test_commands_of_other_tools_are_told_or_asked_of_git(work: Path) -> None:
    me = Player("claude-code", work)
    for command in [*TOLD, *DISCARDING]:
        assert me.told("Bash", {"command": command}) == "", command
    peer = Player("codex", work, "identity:p tenant")
    peer.edits("notes.md", "beta", "PEER")
    for command in DISCARDING:
        for _ in range(2):
            said = me.denied("Bash", {"command": command})
            assert (
                "notes.md" in said and "tenant" in said and f"`{command}`" in said.replace("git reset", "gt reset")
            ), said
    for command in TOLD:
        said = me.told("Bash", {"command": command})
        assert f"Bash (`{command}`) may discard or move the work of others" in said and "tenant" in said, (
            command,
            said,
        )
    for command in ("jj log", "but status", "gt log", "sl status", "jj op log", "git sw --help"):
        assert me.told("Bash", {"command": command}) == "", command


def test_a_tree_that_another_tool_removes_is_held(tree: Path, tenant_me: Player) -> None:
    said = tenant_me.denied("Bash", {"command": f"but worktree destroy {TREE}"})
    assert f"would remove {tree}" in said and '"Parse empty lines"' in said, said


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


def test_a_session_of_a_linked_tree_is_not_denied_twice(
    tree: Path, work: Path, tenant_me: Player, limits: Limits
) -> None:
    limits(fence, APART_NS=0)
    git(work, "worktree", "add", "-q", str(work.parent / "mine"))
    linked = Player("claude-code", work.parent / "mine")
    call = ("Bash", {"command": f"git worktree remove --force {tree}"})
    assert "in which" in linked.denied(*call) and linked.denied(*call) == ""


def test_at_notice_it_is_told_and_goes_ahead(tree: Path, tenant_me: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_AUTO", "notice")
    assert "in which tenant" in tenant_me.told("Bash", {"command": REMOVALS["rm and prune"]})
    monkeypatch.setenv("SWARM_AUTO", "off")
    assert tenant_me.told("Bash", {"command": REMOVALS["rm and prune"]}) == ""


def test_tenant_two_processes_that_answer_one_call_answer_alike(tree: Path, tenant_me: Player, limits: Limits) -> None:
    for number, denied in (("1", True), ("1", True), ("2", False)):
        call = ToolCall("Bash", {"command": f"rm -rf {TREE}"}, tenant_me.session_id, str(tenant_me.folder), id=number)
        verdict = tenant_me.core.check(call)
        assert (verdict is not None and verdict.denial is not None) is denied
    limits(fence, APART_NS=10**12)
    some_time_passes()
    assert tenant_me.denied("Bash", {"command": f"rm -rf {TREE}"}), "the model cannot have read the first answer yet"
