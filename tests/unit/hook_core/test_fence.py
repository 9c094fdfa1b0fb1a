"""The fence: a session of a linked work tree is stopped once before it writes into another work tree."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.altered import Limits
from support.traced import Player, git

from swarm_hook_core import fence
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.state import config_path

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
def test_other_files_are_free(write, target: str, trees: Path, me: Player) -> None:
    assert me.denied(*write(str(trees / target))) == ""


@pytest.mark.parametrize("place", ["work", "apart", "nowhere"])
def test_a_session_that_began_outside_of_linked_work_trees_is_free(place: str, trees: Path) -> None:
    me = Player("claude-code", trees / place)
    assert me.denied(*WRITES["Write"](str(trees / "theirs" / "notes.md"))) == ""


def test_the_folder_of_the_call_does_not_count(trees: Path, me: Player) -> None:
    for number, (name, denied) in enumerate((("notes.md", True), (str(me.folder / "notes.md"), False))):
        given = {"command": f"echo x > {name}"}
        call = ToolCall("Bash", given, me.session_id, str(trees / ("theirs", "work")[number]))
        verdict = me.core.check(call)
        assert (verdict is not None and verdict.denial is not None) is denied, name


def test_a_submodule_lies_in_the_work_tree_around_it(trees: Path, me: Player) -> None:
    git(trees / "apart", "commit", "-q", "--allow-empty", "-m", "start")
    for top in (trees / "work", me.folder):
        git(top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(trees / "apart"), "sm")
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


def test_calls_side_by_side_are_all_denied_and_each_agent_is_told(trees: Path, me: Player, limits) -> None:
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
