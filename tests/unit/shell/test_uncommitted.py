"""The effects of git commands on uncommitted changes, compared with a real run."""

from __future__ import annotations

import os
import shlex

import pytest
from support.checkouts import AMPLE, Checkout

from swarm_hook_core.git_repository import NoAnswer
from swarm_hook_core.shell.model import UNKNOWN, GitCall
from swarm_hook_core.shell.programs.git.uncommitted import swept
from swarm_hook_core.stakes.owners import Changed

pytestmark = pytest.mark.slow

# State, then the command: as it is run. `dirty` has b.txt changed, staged.txt changed and staged, u.txt and n/x.txt
# untracked, i.log ignored; `torn` is in the middle of a merge.
LOSES = """
dirty checkout -- b.txt
dirty checkout -- b.txt a.txt
dirty checkout b.txt
dirty checkout .
dirty checkout -- '*.txt'
dirty checkout HEAD -- .
dirty checkout HEAD staged.txt
dirty checkout feature -- a.txt src b.txt
dirty checkout -f
dirty checkout -f feature
dirty checkout --force -b topic
dirty checkout -fb topic feature
dirty switch -f feature
dirty switch --force feature
dirty switch --discard-changes feature
dirty restore .
dirty restore b.txt
dirty restore -SW .
dirty restore --staged --worktree b.txt staged.txt
dirty restore -s HEAD~1 -- b.txt
dirty restore --source=HEAD --worktree staged.txt
dirty reset --hard
dirty reset -q --hard HEAD~1
dirty reset --hard origin/main
dirty reset --merge
dirty stash
dirty stash -q
dirty stash -m words
dirty stash push
dirty stash push -m words
dirty stash push b.txt
dirty stash push -- b.txt a.txt
dirty stash push -u -- n b.txt
dirty stash -u
dirty stash -a
dirty stash --all
dirty stash --include-untracked
dirty stash -k
dirty stash --keep-index
dirty stash push --staged
dirty stash save words
dirty stash save -u words
dirty clean -f
dirty clean -fd
dirty clean -fdx
dirty clean -fX
dirty clean -f n
dirty clean -fd -e u.txt
dirty rm -f b.txt
dirty rm -f staged.txt
dirty rm -rf .
dirty mv -f a.txt b.txt
dirty read-tree -u --reset feature
dirty read-tree -m -u HEAD
dirty checkout-index -fa
dirty checkout-index -f b.txt
torn merge --abort
torn reset --merge
torn reset --hard
torn checkout --theirs src/c.py
torn checkout -f
picking cherry-pick --abort
picking cherry-pick --skip
rebasing rebase --abort
rebasing rebase --skip
applying am --abort
"""
LEAVES = """
dirty checkout feature
dirty checkout -b topic
dirty checkout -m feature
dirty checkout --orphan topic
dirty checkout nothing-like-it
dirty switch feature
dirty switch -c topic
dirty switch -m feature
dirty switch --orphan topic
dirty restore --staged .
dirty restore -S staged.txt
dirty reset
dirty reset -q HEAD~1
dirty reset --soft HEAD~1
dirty reset --keep HEAD~1
dirty reset -- staged.txt
dirty stash list
dirty stash show
dirty stash create
dirty stash apply
dirty stash pop
dirty stash drop
dirty stash branch topic
dirty stash push -- a.txt
dirty clean -n
dirty clean -f src
dirty rm b.txt
dirty rm --cached b.txt
dirty rm -f a.txt
dirty merge feature
dirty merge --no-edit clash
dirty merge --squash feature
dirty rebase feature
dirty cherry-pick feature
dirty cherry-pick -n feature~1
dirty revert --no-edit HEAD
dirty pull
dirty pull --rebase
dirty pull . feature
dirty bisect start feature main
dirty fetch
dirty checkout-index -a
dirty branch -D feature
dirty worktree add ../elsewhere feature
torn merge --quit
"""
TAKES = """
dirty add .
dirty add -A
dirty add --all
dirty add -u
dirty add b.txt a.txt
dirty add u.txt n
dirty add -f i.log
dirty add ':!b.txt'
dirty stage b.txt
dirty commit -m x
dirty commit -am x
dirty commit --all -m x
dirty commit b.txt -m x
dirty commit -m x -- b.txt a.txt
dirty commit -i b.txt -m x
dirty commit -o b.txt -m x
dirty commit --amend --no-edit
dirty ci -m x
dirty update-index b.txt
torn commit --no-edit -am x
"""


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


@pytest.fixture
def scene(checkout):
    """A copy of a template by its name, or one that goes on from there."""

    def made(name: str) -> Checkout:
        if name not in ("picking", "rebasing", "applying"):
            return checkout(name)
        here = checkout("clean")
        if name == "rebasing":
            here.git("checkout", "-q", "clash")
            here.git("rebase", "main", check=False)
        elif name == "picking":
            here.git("cherry-pick", "clash", "feature", check=False)
        else:
            here.git("format-patch", "-q", "-o", str(here.top.parent / "patches"), "-1", "clash")
            here.git("am", str(here.top.parent / "patches" / "0001-clash.patch"), check=False)
        here.write(**{"b.txt": "half done\n", "staged.txt": "s2\n"})
        here.git("add", "staged.txt")
        return here

    return made


def asked(here: Checkout, line: str, **more) -> tuple[set[str], set[str]]:
    """Return the uncommitted files that ``git <line>`` would lose, and those it would take along."""
    call = GitCall(str(here.top), shlex.split(line) if isinstance(line, str) else line, f"git {line}", **more)
    told = swept(call, [str(here.top / name) for name in sorted(not_committed(here))], AMPLE)
    lost, taken = ({os.path.relpath(path, here.top) for path in paths} for paths in told)
    return lost, taken


def not_committed(here: Checkout) -> set[str]:
    """The files that are not as they were committed, ignored ones included."""
    told = here.git("status", "--porcelain", "-z", "--no-renames", "-uall", "--ignored=matching").split("\0")
    return {row[3:] for row in told if row}


@pytest.mark.parametrize("row", [*rows(LOSES), *rows(LEAVES)])
@pytest.mark.sampled
def test_what_would_be_lost_is_what_is_lost(scene, row: str):
    state, line = row.split(" ", 1)
    here = scene(state)
    here.git("status")
    before, dirty = here.files(), not_committed(here)
    lost, taken = asked(here, line)
    here.git(*shlex.split(line), check=False)
    after = here.files()
    assert lost == {name for name in dirty if name in before and after.get(name) != before[name]}
    assert bool(lost) is (row in rows(LOSES)) and not taken


@pytest.mark.parametrize("row", rows(TAKES))
@pytest.mark.sampled
def test_what_would_go_along_is_what_does(scene, row: str):
    state, line = row.split(" ", 1)
    here = scene(state)

    def recorded() -> tuple[dict[str, str], dict[str, str]]:
        return here.entries("ls-files", "-s", "-z"), here.entries("ls-tree", "-r", "-z", "HEAD")

    before, contents, dirty = recorded(), here.files(), not_committed(here)
    lost, taken = asked(here, line)
    here.git(*shlex.split(line), check=False)
    (index, head), (index_then, head_then) = recorded(), before
    moved = {name for name in dirty if (index.get(name), head.get(name)) != (index_then.get(name), head_then.get(name))}
    assert taken == moved and taken and not lost and here.files() == contents


def test_what_is_put_aside_by_itself_counts_as_lost_though_it_comes_back(checkout):
    here = checkout("dirty")
    changed = {"b.txt", "staged.txt"}
    for line in ("rebase --autostash feature", "rebase --autostash --keep-base feature", "merge --autostash feature"):
        assert asked(here, line) == (changed, set()), line
    assert asked(here, "pull --autostash")[0] == asked(here, "pull --rebase --autostash")[0] == changed
    assert asked(here, "-c rebase.autoStash=true") == (set(), set())
    assert asked(here, "rebase feature", top=["-c", "rebase.autoStash=true"])[0] == changed
    here.git("config", "rebase.autoStash", "true")
    assert asked(here, "rebase feature")[0] == asked(here, "pull --rebase")[0] == changed
    assert asked(here, "rebase --no-autostash feature") == asked(here, "merge feature") == (set(), set())
    here.git("config", "merge.autoStash", "true")
    assert asked(here, "merge feature")[0] == asked(here, "pull")[0] == changed


def test_what_is_moved_goes_along(checkout):
    here = checkout("dirty")
    assert asked(here, "mv b.txt z.txt") == (set(), {"b.txt"})
    assert asked(here, "mv b.txt src") == (set(), {"b.txt"})
    here.put("src/c.py", "half done\n")
    assert asked(here, "mv src lib") == (set(), {"src/c.py"})


def test_what_goes_on_commits_what_is_staged(scene):
    here = scene("torn")
    here.put("src/c.py", "solved\n")
    here.git("add", "src/c.py")
    assert asked(here, "merge --continue") == (set(), {"src/c.py"})


def test_where_a_commit_is_computed_what_no_commit_has_is_lost_all_the_same(templates):
    here = templates["dirty"]
    for line in (
        ["reset", "--hard", UNKNOWN],
        ["checkout", "-f", UNKNOWN],
        ["checkout", UNKNOWN, "--", "."],
        ["restore", "-s", UNKNOWN, "."],
    ):
        assert asked(here, line)[0] >= {"b.txt"}, line
    assert asked(here, ["checkout", UNKNOWN]) == asked(here, ["merge", UNKNOWN]) == (set(), set())
    assert asked(here, "reset --hard origin/main", after=True)[0] == {"b.txt", "staged.txt"}
    assert asked(here, "reset --hard no-such-branch") == (set(), set()), "git refuses"


def test_forms_that_ask_for_each_piece_and_what_nobody_can_tell_are_left_out(templates):
    here = templates["dirty"]
    for line in (
        "checkout -p",
        "restore -p .",
        "stash -p",
        "add -p",
        "clean -fi",
        "wild",
        "no-such-command",
        "lfs pull",
    ):
        assert asked(here, line) == (set(), set()), line


def test_aliases_and_folders_are_followed(checkout):
    here = checkout("dirty")
    here.git("config", "alias.undo", "checkout --")
    assert asked(here, "undo .") == ({"b.txt"}, set())
    call = GitCall(str(here.top / "src"), ["checkout", "--", "../b.txt"], "")
    assert swept(call, [str(here.top / "b.txt")], AMPLE) == ([str(here.top / "b.txt")], [])
    assert swept(GitCall(str(here.top / "src"), ["checkout", "."], ""), [str(here.top / "b.txt")], AMPLE) == ([], [])


def test_which_files_are_not_as_they_were_committed(templates):
    here = templates["dirty"]
    changed = Changed().below(str(here.top), str(here.top))
    found = {os.path.relpath(file, here.top): is_new for file, is_new in changed.items()}
    assert found == {"b.txt": False, "staged.txt": False, "n/x.txt": True, "u.txt": True}


def test_a_work_tree_is_removed_with_what_is_in_it(checkout, tmp_path):
    here = checkout("clean")
    here.git("worktree", "add", "-q", str(tmp_path / "linked"), "feature")
    linked = Checkout(tmp_path / "linked")
    linked.write(**{"b.txt": "half done\n", "new.txt": "new\n"})
    files = [str(linked.top / name) for name in ("b.txt", "new.txt")] + [str(here.top / "b.txt")]
    for words in (
        ["worktree", "remove", "--force", str(linked.top)],
        ["worktree", "remove", "-f", "../linked"],
        ["worktree", "remove", "-ff", "linked"],
    ):
        lost, taken = swept(GitCall(str(here.top), words, ""), files, AMPLE)
        assert sorted(lost) == files[:2] and not taken, words
    assert swept(GitCall(str(here.top), ["worktree", "remove", "linked"], ""), files, AMPLE) == ([], [])
    assert swept(GitCall(str(here.top), ["worktree", "remove", "-f", "none"], ""), files, AMPLE) == ([], [])
    # The other way round, nothing of the first tree is touched from the second.
    here.put("b.txt", "half done\n")
    call = GitCall(str(linked.top), ["stash", "-u"], "")
    assert sorted(swept(call, files, AMPLE)[0]) == files[:2]


def test_without_a_commit_without_a_repository_and_out_of_time(tmp_path):
    here = Checkout(tmp_path / "new")
    here.top.mkdir()
    assert swept(GitCall(str(here.top), ["add", "."], ""), [str(here.top / "a.txt")], AMPLE) == ([], [])
    here.git("init", "-q")
    here.put("a.txt", "a\n")
    assert asked(here, "add .") == (set(), {"a.txt"})
    here.git("add", ".")
    assert asked(here, "commit -m x") == (set(), {"a.txt"})
    assert asked(here, "rm -f a.txt") == ({"a.txt"}, set())
    file = str(here.top / "a.txt")
    with pytest.raises(NoAnswer):
        swept(GitCall(str(here.top), ["add", "."], ""), [file], 0.0)
    assert Changed().below(str(here.top), str(here.top)) == {file: False}


def test_asking_changes_nothing(checkout):
    here = checkout("dirty")
    here.git("status")
    os.utime(here.top / "a.txt")
    before = here.footprint()
    Changed().below(str(here.top), str(here.top))
    for words in (["stash", "-u"], ["worktree", "remove", "-f", "none"]):
        swept(GitCall(str(here.top), words, ""), [str(here.top / "b.txt")], AMPLE)
    assert here.footprint() == before
