"""Commands run in one repository that reach into another one, with another session at work."""

import os
import shutil
from pathlib import Path

import pytest
from support.sessions import ready_store
from support.traced import Player, checkout, git

from swarm_hook_core import shell, traces
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.traces import elsewhere, journal

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_faults")]


@pytest.fixture
def here(tmp_path: Path, checks_have_time: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository of the session; the other one is ``other`` beside it, and ``inner/lib`` lies inside of it."""
    ready_store()
    monkeypatch.setenv("HOME", str(tmp_path.resolve()))
    checkout(tmp_path.resolve() / "other", "notes.md", "src/deep.md")
    work = checkout(tmp_path.resolve() / "work", "mine.md", "sub/x.md")
    checkout(work / "inner" / "lib", "notes.md")
    return work


LOST = {
    "git -C": "git -C ../other stash",
    "git -C by its path": "git -C {other} checkout -- .",
    "cd": "cd ../other && git checkout -- .",
    "cd home": "cd && git -C other reset --hard",
    "git dir": "git --git-dir={other}/.git --work-tree={other} checkout -f",
    "here-document": "cat > {other}/notes.md <<'EOF'\nnew\nEOF",
    "home": "cp mine.md ~/other/notes.md",
    "variable": 'cp mine.md "$HOME/other/notes.md"',
    "another variable": "d={other}; cp mine.md $d/notes.md",
    "remove": "rm -rf ../other/notes.md",
    "remove all": "rm -rf ../other",
    "remove all around": "rm -rf {around}",
    "remove by a pattern": "rm -rf {around}/oth*",
    "pattern": "cp mine.md {around}/o*r/notes.md",
    "quotes in it": "cp mine.md {around}/ot'her'/notes.md",
    "find": "find {around} -name notes.md -delete",
    "inner repository": "rm -rf inner",
    "pattern inside": "cp mine.md inner/*/notes.md",
}


@pytest.mark.parametrize("command", LOST.values(), ids=LOST)
def test_what_a_peer_has_in_another_repository_is_not_lost(command: str, here: Path) -> None:
    other = here.parent / "other"
    me, peer, third = Player("codex", here), Player("claude-code", other), Player("codex", here / "inner" / "lib")
    for player in (peer, third):
        assert player.edits("notes.md", "beta", "PEER") == ""
    said = me.runs(command.format(other=other, around=other.parent))
    assert said.startswith("denied: ") and "notes.md" in said
    assert "PEER" in (other / "notes.md").read_text() and "PEER" in (here / "inner/lib/notes.md").read_text()


@pytest.mark.parametrize("command", ["rm -rf ../other", "cp mine.md ../other/notes.md", "git -C ../other stash"])
def test_what_a_peer_wrote_there_while_it_was_alone_is_not_lost_either(command: str, here: Path) -> None:
    me, peer = Player("codex", here), Player("codex", here.parent / "other")
    assert peer.runs("sed -i s/beta/PEER/ notes.md") == ""
    assert me.runs(command).startswith("denied: ")


def test_work_trees_of_the_other_clone_are_known(here: Path) -> None:
    other, tree = here.parent / "other", here.parent / "trees" / "topic"
    git(other, "worktree", "add", "-q", str(tree), "-b", "topic")
    me, peer = Player("codex", here), Player("codex", other)
    assert peer.edits("src/deep.md", "beta", "PEER") == ""
    peer.folder = tree
    assert peer.edits("notes.md", "beta", "PEER") == ""
    assert me.runs(f"cp mine.md {tree}/notes.md").startswith("denied: ")
    assert Player("codex", here).runs(f"rm -rf {tree.parent}").startswith("denied: ")


def test_a_folder_of_repositories_is_looked_into(here: Path) -> None:
    me, peer = Player("codex", here.parent), Player("codex", here.parent / "other")
    assert peer.edits("notes.md", "beta", "PEER") == ""
    assert me.runs("rm -rf *").startswith("denied: ")
    assert Player("codex", here.parent).runs("rm -r oth*").startswith("denied: ")
    assert me.runs("cat other/notes.md && echo new > other/notes.md").startswith("denied: "), "what it shows is to come"
    assert me.runs("cat other/notes.md") == "" == me.runs("echo new > other/notes.md")


def test_a_repository_around_ones_own_is_known(here: Path) -> None:
    me, peer = Player("codex", here / "inner" / "lib"), Player("codex", here)
    assert peer.edits("mine.md", "beta", "PEER") == ""
    assert me.runs("rm ../../mine.md").startswith("denied: ")
    assert me.runs(f"git -C {here} checkout .").startswith("denied: ")


def test_another_servers_tool_that_writes_there_is_looked_at(here: Path) -> None:
    other = here.parent / "other"
    me, peer = Player("codex", here), Player("codex", other)
    assert peer.edits("notes.md", "beta", "PEER") == ""
    given = {"path": str(other / "notes.md"), "content": "new\n"}
    assert "after you last saw it" in me.denied("mcp__filesystem__write_file", given)


def test_where_only_that_session_has_left_something_nothing_is_read(here: Path, failing) -> None:
    other = here.parent / "other"
    me = Player("codex", here)
    failing(shell, "effects_of", pytest.fail.Exception)
    assert me.writes(str(other / "notes.md"), "mine\n") == ""
    assert me.runs(f"ls {other} && printf x >> ../other/notes.md") == ""


# -- the text alone ---------------------------------------------------------------------------------

TOPS = ["/home/me/code/other", "/srv/shared/trees/topic-1"]
LEADS = {
    "cat > /home/me/code/other/a": True,
    "cat > /elsewhere/Other/a": True,
    'rm -rf "/home/me/code"': True,
    "rm -rf /home/me/": True,
    "find / -name x -delete": True,
    "rm -rf /home/me/co\\de/o*": True,
    "rm -rf /*/me/code/x": True,
    "git -C /srv/shared/trees/topic-1 stash": True,
    "cp a /srv/shared/trees/top[i]c-1/": True,
    "cd ..": True,
    "cp a ~/b": True,
    "cp a $X": True,
    "cp a `x`": True,
    "cd; rm a": True,
    "cd": True,
    "cd - && rm a": True,
    "(cd) && rm a": True,
    "cd 2>/dev/null && rm a": True,
    "cat > other/a": True,
    "ls -l && echo hi > out.txt": False,
    "cd src && make 2>/dev/null | grep -v '*.py'": False,
    "cd /home/me/code/work && git checkout -- *.py": False,
    "rm -rf /home/me/code/work/build/*": False,
    "rm -rf /home/me/code/workshop/x": False,
    "rm -rf /home/me/code/workshop/*": True,
    "rm -rf /usr/lib/x": False,
    "git commit -am 'half of it' && git push": False,
    "python3 -m pytest tests/unit -q": False,
}


@pytest.mark.parametrize(("command", "leads"), LEADS.items())
def test_what_the_text_of_a_command_says_of_where_it_leads(command: str, leads: bool) -> None:
    call = ToolCall("Bash", {"command": command}, "s", "/home/me/code/work")
    assert elsewhere.could_lead(call, {"one": TOPS[:1], "two": TOPS[1:]}) is leads


def test_a_place_that_does_not_say_where_it_is_may_be_anywhere(here: Path) -> None:
    call = ToolCall("Bash", {"command": "true"}, "s", str(here))
    assert elsewhere.could_lead(call, {"one": []}) and not elsewhere.could_lead(call, {})
    assert elsewhere.could_lead(ToolCall("Bash", {"command": "rm x"}, "s", "/home/me"), {"one": TOPS[:1]})


def test_a_journal_says_where_its_place_is_also_when_it_has_begun_anew(here: Path, limits) -> None:
    limits(traces, JOURNAL_BYTES=300)
    me = Player("codex", here)
    os.symlink(here, here.parent / "link")
    me.folder = here.parent / "link" / "sub"
    for number in range(12):
        me.runs(f"echo {number} > x.md")
        (path,) = traces.others_in(traces.place_of(str(here)), "")
        assert journal.folder_of(path) == str(here)
        assert journal.owner_of(journal.read(path)) == ("codex", me.session_id)
    assert os.path.exists(path + ".1")
    plain = here.parent / "plain"
    plain.mkdir()
    me.folder = plain
    me.runs("echo 1 > x.md")
    (path,) = traces.others_in(traces.place_of(str(plain)), "")
    assert journal.folder_of(path) == str(plain)
    shutil.rmtree(os.path.dirname(path))
    assert journal.folder_of(path) == ""
