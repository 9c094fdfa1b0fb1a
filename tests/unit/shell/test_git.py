"""The files that git commands would touch, compared with a real run."""

from __future__ import annotations

import os
import shlex
import shutil

import pytest
from support.checkouts import AMPLE, ODD, Checkout, changed
from support.files import folder_at, program_at

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.shell import effects_of
from swarm_hook_core.shell.model import UNKNOWN, Found, GitCall
from swarm_hook_core.shell.programs.git import listings
from swarm_hook_core.shell.programs.git.listings import without_global_options, work_tree
from swarm_hook_core.shell.programs.git.named_files import Pathspec
from swarm_hook_core.shell.programs.git.table import only_reads
from swarm_hook_core.shell.programs.git.touched_files import touched
from swarm_hook_core.shell.programs.patch import files_in, unquoted

pytestmark = pytest.mark.slow

# Each is run, and its changes must have been reported: files of the work tree, and for those that stage or commit,
# entries of the index and of HEAD. Behind a `+`: files that are named, and so count though they stay equal.
RUN = """
clean checkout feature
dirty checkout feature
dirty checkout -f feature
dirty checkout -b topic
clean checkout -b topic feature
clean checkout elsewhere
clean checkout -q --track origin/elsewhere
dirty checkout b.txt
dirty checkout .
dirty checkout -- b.txt a.txt + a.txt
dirty checkout -- 'b*'
dirty checkout HEAD -- .
dirty checkout HEAD staged.txt
dirty checkout feature -- a.txt src
clean checkout HEAD~1 -- src/c.py
dirty checkout nothing-like-it
torn checkout --ours src/c.py
torn checkout -f
dirty switch feature
dirty switch -c topic
dirty switch --discard-changes feature
clean switch elsewhere
dirty restore .
dirty restore b.txt
dirty restore --staged .
dirty restore -SW .
dirty restore -s HEAD~1 -- src
clean restore --source=feature .
dirty reset
dirty reset -q HEAD~1
dirty reset --hard
dirty reset --hard HEAD~1
dirty reset --hard origin/main
clean reset --keep HEAD~1
torn reset --merge
dirty stash
dirty stash -u
dirty stash -a
dirty stash push -- b.txt a.txt
dirty stash push -u -- n
dirty stash apply stash@{0}
clean stash apply 0
dirty stash drop
clean stash branch topic
dirty clean -f
dirty clean -fd
dirty clean -fdx
dirty clean -fX
dirty clean -f n
dirty clean -fd -e u.txt
clean clean -fdx
clean merge --no-edit feature
clean merge origin/main
clean merge
clean merge -s ours feature
clean merge --squash feature
torn merge --abort
torn merge --quit
clean rebase feature
clean rebase feature main
clean rebase origin/main
clean rebase HEAD~1
clean rebase --onto HEAD~1 feature~1 feature
dirty rebase --autostash feature
clean cherry-pick feature
clean cherry-pick -n feature~1
clean cherry-pick main..feature
clean cherry-pick feature~1 feature
clean revert --no-edit HEAD
clean pull --ff-only
clean pull origin main
clean bisect start feature main
clean bisect start feature HEAD~1
clean bisect start
clean rm b.txt
dirty rm -r src
dirty rm --cached a.txt
dirty rm -f staged.txt
clean rm -r '*.py'
clean mv b.txt z.txt
clean mv a.txt b.txt src
clean mv src lib
dirty add .
dirty add -A
dirty add -u
dirty add b.txt a.txt
dirty add u.txt n
dirty add -f i.log
dirty add ':!b.txt'
dirty stage b.txt
dirty commit -m x
dirty commit -am x
dirty commit b.txt -m x
dirty commit -m x -- b.txt a.txt
dirty commit -i b.txt -m x
dirty commit --amend --no-edit
dirty ci -m x
dirty update-index b.txt
dirty read-tree -u --reset feature
dirty checkout-index -fa
dirty checkout-index -f b.txt
"""
STAGE = {"add", "commit", "ci", "rm", "mv", "stage", "update-index"}


@pytest.mark.parametrize("scene", [line for line in RUN.splitlines() if line])
@pytest.mark.sampled
def test_what_is_said_is_what_happens(checkout, scene: str):
    line, _, named = scene.partition(" + ")
    state, line = line.split(" ", 1)
    words = shlex.split(line)
    here = checkout(state)
    touch = here.ask(line)
    assert touch.changes_repository
    assert touch.unsure is (words[0] == "pull")

    def contents() -> tuple:
        staged = words[0] in STAGE
        index = here.entries("ls-files", "-s", "-z") if staged else {}
        head = here.entries("ls-tree", "-r", "-z", "HEAD") if staged else {}
        # Files that a rebase takes away and puts back are written, too.
        times = {name: (here.top / name).stat().st_mtime_ns for name in here.files() if words[0] == "rebase"}
        return here.files(), index, head, times

    if "--keep" in words:
        here.git("status")  # the copy has new times, which this command records in the index
    before = contents()
    here.git(*words, check=False)
    truth = set().union(*(changed(old, new) for old, new in zip(before, contents())))
    if words[0] == "add":  # staged before, and untouched by this
        truth &= changed(before[1], here.entries("ls-files", "-s", "-z"))
    assert touch.certain == truth | set(named.split())


def test_what_changes_the_repository_alone(templates):
    for line in (
        "fetch|push origin HEAD:x|tag v1|branch x|branch -D feature|config a.b c|gc|notes add|remote add x y|am x|prune"
        "|reflog expire --all|update-ref -d x|symbolic-ref HEAD x|worktree add x|stash clear|reset --soft HEAD~1"
    ).split("|"):
        touch = templates["dirty"].ask(line)
        assert (touch.certain, touch.unsure, touch.changes_repository) == (set(), False, True), line


@pytest.mark.parametrize(
    "line",
    """status | log -p | diff HEAD~1 | show feature:a.txt | blame a.txt | grep -n c | ls-files -m | rev-parse HEAD
    branch -vv | branch --list 'f*' | branch --merged main | branch -a | branch --show-current | tag | tag -l 'v*'
    tag -n3 | remote -v | remote show origin | remote get-url origin | config --get user.name | config user.name
    config -l | config list | stash list | stash show -p | worktree list | submodule | submodule status | bisect log
    reflog | reflog show main | reflog main | notes | notes show | symbolic-ref HEAD | hash-object a.txt | checkout
    archive HEAD | add -n . | add --dry-run -A | rm -nr . | mv -n a.txt b.txt | clean -nd | clean -ndx
    commit --dry-run | push --dry-run | fetch --dry-run | apply --stat x | apply --check x | lfs ls-files
    sparse-checkout list | update-index --refresh | commit -h | stash --help | help commit | st | st -uno
    bundle verify x | replace -l | rerere status | var -l
    """.replace("\n", " | ").split(" | "),
)
def test_reading_touches_nothing(templates, line: str):
    if line.strip():
        touch = templates["dirty"].ask(line.strip())
        assert (touch.certain, touch.unsure, touch.changes_repository) == (set(), False, False)


@pytest.mark.parametrize(
    ("line", "certain", "unsure"),
    [
        (["checkout", UNKNOWN], set(), True),
        (["merge", f"{UNKNOWN}x"], set(), True),
        (["add", "b.txt", UNKNOWN], {"b.txt"}, True),
        (["commit", "-m", UNKNOWN], {"staged.txt"}, False),
        (["commit", "-am", UNKNOWN], {"staged.txt", "b.txt"}, False),
        ("add -p", set(), True),
        ("add -p a.txt", set(), False),
        ("stash -p", set(), True),
        ("checkout -p", set(), True),
        ("restore -p a.txt", set(), False),
        ("commit -p -m x", {"staged.txt"}, True),
        ("pull", {"src/d.py"}, True),
        ("pull --rebase origin elsewhere", {"src/d.py"}, True),
        ("pull nowhere", {"src/d.py"}, True),
        ("rebase -i HEAD~1", set(), True),
        ("filter-branch --all", set(), True),
        ("sparse-checkout set src", set(), True),
        ("lfs pull", set(), True),
        ("bisect run make", set(), True),
        ("wild", set(), True),
        ("no-such-command", set(), True),
        ("merge no-such-branch", set(), True),
        ("stash pop stash@{7}", set(), False),
        ("clean -fdi", set(), True),
        ("update-index --stdin", set(), True),
        ("add", set(), False),
        ("gui", set(), False),
    ],
)
def test_what_git_cannot_tell_is_unsure(templates, line, certain, unsure):
    touch = templates["dirty"].ask(line)
    assert (touch.certain, touch.unsure) == (certain, unsure)


def test_what_a_command_before_may_have_changed_is_unsure(templates):
    for line, certain, unsure in (
        ("reset --hard origin/main", {"b.txt", "staged.txt", "src/d.py"}, True),
        ("checkout made-just-now", set(), True),
        ("add b.txt", {"b.txt"}, False),
    ):
        touch = templates["dirty"].ask(line, after=True)
        assert (touch.certain, touch.unsure) == (certain, unsure), line


def test_an_alias_that_runs_a_shell_or_is_unknown_is_no_change_of_the_repository(templates):
    assert templates["dirty"].ask("ci -m x").changes_repository
    assert not templates["dirty"].ask("wild").changes_repository
    assert templates["dirty"].ask("own", top=["-c", "alias.own=checkout ."]).certain == {"b.txt"}


def test_only_what_peers_hold_is_said_and_folders_through_what_is_in_them(templates):
    here = templates["dirty"]
    assert here.ask("checkout .", ["a.txt"]).certain == set()
    assert here.ask("add .", ["n", "src"]).certain == {"n"}
    assert here.ask("clean -fd", ["n"]).certain == {"n"}
    assert here.ask("checkout feature", ["src"]).certain == {"src"}
    assert here.ask("checkout -- src", ["src"]).certain == set(), "nothing differs in it"
    assert here.ask("checkout -- src/c.py", ["src"]).certain == {"src"}, "named"
    assert here.ask("mv src lib", ["src", "lib/d.py", "lib/e.py"]).certain == {"src", "lib/d.py"}
    assert here.ask("stash", ["."]).certain == {"."} and here.ask("stash", [".."]).certain == {".."}
    assert here.ask("gc", [".git"]).changes_repository
    assert here.ask("stash", [".git", "../elsewhere"]).certain == set()


def test_locks_are_found_by_any_name(checkout, tmp_path):
    here = checkout("dirty")
    (tmp_path / "way").symlink_to(here.top)
    (here.top / "link.txt").symlink_to("a.txt")
    held = [str(tmp_path / "way" / "b.txt"), str(here.top / "link.txt")]
    call = GitCall(str(tmp_path / "way" / "src"), ["add", ".."], "")
    assert sorted(touched(call, held, AMPLE).certain) == sorted(held)
    assert touched(GitCall(str(here.top), ["rm", "a.txt"], ""), held, AMPLE).certain == held[1:]


def test_words_are_seen_from_the_folder_they_are_written_in(templates):
    here = templates["dirty"]
    assert here.ask("checkout -- ../b.txt", folder="src").certain == {"b.txt"}
    assert here.ask("checkout .", folder="src").certain == set()
    assert here.ask("add :/", folder="src").certain == {"b.txt", "u.txt", "n/x.txt"}
    assert here.ask("add -A", folder="src").certain == {"b.txt", "u.txt", "n/x.txt"}
    assert here.ask("clean -fd", folder="src").certain == set()
    assert here.ask(["rm", str(here.top / "a.txt")], folder="sub").certain == {"a.txt"}


def test_words_that_stand_for_files_of_the_disk(templates):
    here = templates["dirty"]
    mark = "\0mark\0"
    found = {mark: [Found(str(here.top), lambda path: path.endswith(".py"))]}
    assert here.ask(["checkout", "--", mark], ["a.txt", "src/c.py", "lib/d.py"], found=found).certain == {
        "src/c.py",
        "lib/d.py",
    }
    assert here.ask(["add", mark], found=found).certain == set()
    here_too = {mark: [Found(str(here.top), lambda path: None)]}
    assert here.ask(["add", mark], found=here_too).unsure


def test_another_index_or_repository_is_asked_about_where_the_command_says_so(templates, tmp_path):
    here = templates["dirty"]
    touch = here.ask("commit -m x", environment={"GIT_INDEX_FILE": str(tmp_path / "none")})
    assert "a.txt" in touch.certain, "an empty index removes it all"
    outside = GitCall(str(tmp_path), ["checkout", "."], "", [f"--git-dir={here.top}/.git", f"--work-tree={here.top}"])
    assert touched(outside, [str(here.top / "b.txt")], AMPLE).certain == [str(here.top / "b.txt")]
    assert touched(GitCall(str(tmp_path), ["checkout", "."], ""), [str(tmp_path / "x")], AMPLE).certain == []


def test_asking_changes_nothing(checkout):
    here = checkout("dirty")
    here.git("status")  # the index knows the times of the copy
    os.utime(here.top / "a.txt")  # and here is one to refresh
    before = here.footprint()
    for scene in RUN.splitlines():
        if scene:
            here.ask(shlex.split(scene.partition(" + ")[0])[1:], ["a.txt", "b.txt", "src", "u.txt", "n/x.txt"])
    assert here.footprint() == before


def test_hooks_filters_and_drivers_of_the_repository_are_not_run(checkout, tmp_path):
    here = checkout("dirty")
    trap = program_at(tmp_path / "trap", f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    for setting in "core.fsmonitor diff.external diff.py.textconv core.pager filter.lfs.clean core.editor".split():
        here.git("config", setting, str(trap))
    here.put(".gitattributes", "*.py diff=py\n*.txt filter=lfs\n")
    for hook in ("post-index-change", "post-checkout", "pre-commit", "reference-transaction"):
        shutil.copy(trap, here.top / ".git" / "hooks" / hook)
    here.put("src/c.py", "other\n")
    for line in ("checkout feature", "checkout .", "add -A", "commit -am x", "stash -u", "merge feature", "clean -fdx"):
        here.ask(line)
    assert not (tmp_path / "sprung").exists()
    assert here.ask("add -A", ["b.txt"]).certain == {"b.txt"}


def test_out_of_time_is_unsure(templates):
    here = templates["dirty"]
    call = GitCall(str(here.top), ["checkout", "."], "")
    touch = touched(call, [str(here.top / "b.txt")], 0.0)
    assert touch.unsure and touch.changes_repository and not touch.certain
    assert not touched(call, [], 0.0).unsure


def test_other_work_trees_and_repositories_within(checkout, tmp_path):
    here = checkout("clean")
    here.git("worktree", "add", "-q", "tree", "feature")
    assert work_tree(str(here.top / "tree" / "src")) == str(here.top / "tree")
    assert work_tree(str(here.top / "src")) == str(here.top)
    assert work_tree(str(tmp_path.parent)) is None
    held = ["tree/a.txt", "a.txt"]
    assert here.ask("checkout feature", held).certain == {"a.txt"}
    inner = Checkout(here.top / "tree")
    touch = touched(GitCall(str(inner.top), ["checkout", "--detach", "main"], ""), [str(inner.top / "a.txt")], AMPLE)
    assert touch.certain == [str(inner.top / "a.txt")]
    nested = Checkout(here.top / "nested")
    nested.top.mkdir()
    nested.git("init", "-q")
    nested.put("x.txt", "x\n")
    assert here.ask("clean -fd", ["nested/x.txt"]).certain == set(), "git spares repositories"
    assert here.ask("clean -ffd", ["nested/x.txt"]).certain == {"nested/x.txt"}
    assert here.ask("add -A", ["nested/x.txt"]).certain == set()


def test_a_repository_without_a_commit(tmp_path):
    here = Checkout(tmp_path / "new")
    here.top.mkdir()
    here.git("init", "-q")
    here.put("a.txt", "a\n")
    assert here.ask("add .", ["a.txt"]).certain == {"a.txt"}
    here.git("add", ".")
    assert here.ask("commit -m x", ["a.txt"]).certain == {"a.txt"}


def test_a_rebase_and_a_series_of_picks_that_stopped(checkout):
    here = checkout("clean")
    here.git("checkout", "-q", "clash")
    here.commit("more", a="more\n")
    here.git("rebase", "main", check=False)
    assert here.ask("rebase --continue").certain >= {"a.txt"}
    assert here.ask("rebase --abort").certain == {"src/c.py", "a.txt"}
    here.git("rebase", "--abort")
    here.git("checkout", "-q", "main")
    here.git("cherry-pick", "clash~1", "clash", check=False)
    assert here.ask("cherry-pick --abort").certain == {"src/c.py"}
    assert here.ask("cherry-pick --continue").certain >= {"a.txt"}


class Said:
    """The effects of a shell command in a checkout, with paths relative to its top."""

    def __init__(self, here: Checkout, command: str, folder: str = ""):
        self.here = here
        effects = effects_of(command, str(here.top / folder), {**os.environ, "HOME": str(here.top / "home")})
        self.writes = [self._short(os.path.join(one.folder, one.path)) for one in effects.writes]
        self.trees = {self._short(one.root): one.admits for one in effects.trees}
        self.git = [(self._short(one.folder), *one.words) for one in effects.git]
        self.guesses = [one.why for one in effects.guesses]
        self.calls = effects.git

    def _short(self, path: str) -> str:
        return os.path.relpath(path, self.here.top)

    def admitted(self, *names: str) -> set[str]:
        """Return the `names` that lie in one of the trees, and are admitted there."""
        return {
            name for name in names for root, admits in self.trees.items()
            if (root == "." or name == root or name.startswith(root + "/")) and admits(str(self.here.top / name))
        }  # fmt: skip


READING = """git status -sb; git log --oneline -5; git diff HEAD~1 -- src; git -C src show HEAD:./c.py
git --no-pager branch -vv
git rev-parse --show-toplevel; git ls-files | wc -l; git stash list; git remote -v; git config --get user.name
git blame a.txt
git -c color.ui=always diff --stat; git archive HEAD >/dev/null; git format-patch --stdout -1 >/dev/null
git describe --always
git --version; git help commit; git add -n .; git grep -n c; git worktree list; git -C "$SOMEWHERE" status
git apply --check x"""


def test_reading_is_no_effect(templates):
    for command in READING.replace("\n", "; ").split("; "):
        said = Said(templates["dirty"], command)
        assert (said.writes, said.trees, said.git, said.guesses) == ([], {}, [], []), command


def test_calls_are_handed_on_with_their_folder(templates):
    here = templates["dirty"]
    assert Said(here, "cd src && git -C .. --no-pager checkout -- a.txt").git == [(".", "checkout", "--", "a.txt")]
    assert Said(here, "for f in a b; do git add $f.txt; done").git == [(".", "add", "a.txt"), (".", "add", "b.txt")]
    assert Said(here, "git -C src -C .. stash -u && git pull", "sub").git == [("sub", "stash", "-u"), ("sub", "pull")]
    (call,) = Said(here, "GIT_INDEX_FILE=other git --git-dir=.git -c a.b=c add -A").calls
    assert call.environment == {"GIT_INDEX_FILE": f"{here.top}/other"}
    assert call.top == [f"--git-dir={here.top}/.git", "-c", "a.b=c"]
    in_turn = Said(here, "git add . && git fetch && git reset --hard origin/main").calls
    assert [one.after for one in in_turn] == [False, False, True]
    lost = Said(here, 'git -C "$NOBODY_KNOWS$(date)" commit -am x')
    assert lost.guesses == ["git commit, in a folder that is not known"] and not lost.git
    assert Said(here, 'git "$(date)"').guesses == ["a computed git command"]


def test_files_that_git_is_told_to_write(templates):
    here = templates["clean"]
    for command, writes, trees in (
        ("git archive -o out.tar HEAD", ["out.tar"], []),
        ("git diff --output=x.diff", ["x.diff"], []),
        ("git log -p --output x.diff", ["x.diff"], []),
        ("git bundle create all.bundle --all", ["all.bundle"], []),
        ("git clone -q --depth 1 https://example.org/some/tool.git", [], ["tool"]),
        ("git clone git@example.org:tool lib/here", [], ["lib/here"]),
        ("git clone --bare ../x/.git", [], ["x.git"]),
        ("git init sub", [], ["sub/.git"]),
        ("git worktree add ../tree -b topic", [], ["../tree"]),
        ("git worktree remove tree", [], ["tree"]),
        ("git submodule add https://example.org/m.git", [".gitmodules"], ["m"]),
        ("git config -f own.ini a.b c", ["own.ini"], []),
        ("git config --global a.b c", ["home/.gitconfig"], []),
        ("git merge-file ours.txt base.txt theirs.txt", ["ours.txt"], []),
        ("git merge-file -p ours.txt base.txt theirs.txt", [], []),
        ("git rebase -x 'echo > log.txt' main", ["log.txt"], []),
        ("git bisect run touch seen", ["seen"], []),
        ("git lfs track '*.bin'", [".gitattributes"], []),
    ):
        said = Said(here, command)
        assert (said.writes, list(said.trees)) == (writes, trees), command
    made = Said(here, "git format-patch -2 -o out")
    assert made.admitted("out/0001-x.patch", "out/x.patch", "0001-x.patch") == {"out/0001-x.patch"}


def test_patches_name_their_files(checkout, limits):
    limits(listings, SECONDS=AMPLE)
    here = checkout("clean")
    here.put("fix.patch", here.git("diff", "main", "feature"))
    every = ["a.txt", "src/c.py", ODD, "src/new.py"]
    assert sorted(Said(here, "git apply fix.patch").writes) == sorted(every)
    assert sorted(Said(here, "git apply -R --exclude='*.txt' ../fix.patch", "src").writes) == ["src/c.py", "src/new.py"]
    assert Said(here, "git apply --stat fix.patch").writes == Said(here, "git apply --cached fix.patch").writes == []
    assert Said(here, "git apply --cached fix.patch").git == [(".", "apply", "--cached", "fix.patch")]
    for command, locked in (
        ("git apply --cached fix.patch", every),
        ("git diff main feature | git apply --cached", every),
    ):
        (call,) = effects_of(command, str(here.top)).git
        touch = touched(call, [str(here.top / name) for name in (*locked, "lib/other.py")], AMPLE)
        assert sorted(touch.certain) == sorted(str(here.top / name) for name in locked) and not touch.unsure, command
    (call,) = effects_of("git apply --cached later.patch", str(here.top)).git
    assert touched(call, [str(here.top / "a.txt")], AMPLE).unsure
    heredoc = "git apply - <<'EOF'\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-b\n+x\nEOF"
    assert Said(here, heredoc).writes == ["b.txt"]
    assert Said(here, "git apply later.patch").guesses
    for diff, how in (("diff", REPLACE), ("diff HEAD -- a.txt", REPLACE), ("diff main feature", EDIT), ("show", EDIT)):
        tree = effects_of(f"git {diff} | git apply -R", str(here.top)).trees[0]
        assert tree.how == how, diff
    piped = Said(here, "git diff main feature -- src | git apply")
    assert piped.admitted(*every) == {"src/c.py", "src/new.py"}
    mailed = Said(here, "git format-patch --stdout -1 feature | git am")
    assert mailed.admitted(*every) == {ODD} and mailed.git == [(".", "am")]


def test_what_git_lists_is_found(templates):
    here = templates["dirty"]
    names = ["a.txt", "b.txt", "staged.txt", "src/c.py", "src/d.py", "u.txt", "i.log", "n/x.txt"]
    for listing, found in (
        ("git ls-files", set(names[:5])),
        ("git ls-files -m", {"b.txt"}),
        ("git ls-files -o --exclude-standard", {"u.txt", "n/x.txt"}),
        ("git ls-files 's*'", {"staged.txt", "src/c.py", "src/d.py"}),
        ("git diff --name-only", {"b.txt"}),
        ("git diff --name-only HEAD", {"b.txt", "staged.txt"}),
        ("git diff --cached --name-only", {"staged.txt"}),
        ("git diff --name-only main...feature", {"a.txt"}),
        ("git show --name-only --format= feature~1", {"a.txt"}),
        ("git grep -l 2", {"src/c.py", "staged.txt"}),
        ("git -C src ls-files", {"src/c.py", "src/d.py"}),
    ):
        folder = "cd src && " if "-C src" in listing else ""
        said = Said(here, f"{folder}rm $({listing.replace(' -C src', '')})")
        assert said.admitted(*names) == found, listing
    assert Said(here, "touch $(git rev-parse --show-toplevel)/x", "src").writes == ["x"]
    (call,) = Said(here, "git add $(git ls-files -m)").calls
    assert touched(call, [str(here.top / name) for name in names], AMPLE).certain == [str(here.top / "b.txt")]


def test_global_options_are_taken_off():
    words = "-C a --no-pager -c x.y=z -C b --git-dir d --work-tree=t -p commit -m x".split()
    assert without_global_options(words) == (
        ["a", "b"],
        ["-c", "x.y=z", "--git-dir=d", "--work-tree=t"],
        ["commit", "-m", "x"],
    )
    assert only_reads(without_global_options(["--version"])[2]) and only_reads(without_global_options(["-C"])[2])
    assert without_global_options([])[2] == []


SPECS = """a.txt|.|src|src/|./src/../b.txt|*.py|src/*|*|?.txt|[ab].txt|[!a].txt|[^ab]*|s*/*.py|nothing
:/|:/src|:(top)src|:!src|:^*.txt|:(exclude)*.py|:(literal)*.txt|src/deep|src/deep/*|src/*/f.py|*deep*|src*|[|[a"""


def test_pathspecs_mean_what_they_mean_to_git(checkout):
    here = checkout("clean")
    here.put("src/deep/f.py", "f\n")
    here.put("st*r", "star\n")
    here.git("add", "-A")
    every = [name for name in here.git("ls-files", "-z").split("\0") if name]
    for folder in ("", "src"):
        for spec in SPECS.replace("\n", "|").split("|"):
            told = here.git("ls-files", "-z", "--full-name", "--", spec, folder=folder, check=False)
            ours = Pathspec([spec], folder, str(here.top))
            assert {name for name in every if ours.matches(name)} == set(told.split("\0")) - {""}, (folder, spec)
    unreadable = Pathspec([":(glob)*", "a.txt"], "", str(here.top))
    assert unreadable.is_unsure and unreadable.matches("a.txt") is True and unreadable.matches("b.txt") is None


def test_the_files_of_patches(checkout):
    here = checkout("clean")
    patch = here.git("diff", "--binary", "-M", "main", "feature")
    names = here.git("diff", "--name-only", "-z", "main", "feature").split("\0")
    assert {path for path, _top, _how in files_in(patch)} == set(names) - {""}
    here.git("mv", "a.txt", "moved.txt")
    here.put("src/c.py", "-- removed\n++ added\n")
    renamed = here.git("diff", "-M", "HEAD")
    moved = [("a.txt", True, REMOVE), ("moved.txt", True, EDIT), ("src/c.py", True, EDIT)]
    assert list(files_in(renamed)) == moved
    moved[:2] = [("a.txt", True, EDIT), ("moved.txt", True, REMOVE)]
    assert list(files_in(renamed, reverse=True)) == moved
    itself = "diff --git a/f b/f\nsimilarity index 100%\nrename from f\nrename to f\n"
    assert list(files_in(itself)) == [("f", True, EDIT)], "git leaves such a file where it is"
    plain = "--- x/old.c\t2020-01-01\n+++ x/new.c\n@@ -1 +1 @@\n--- gone\n+++ come\n"
    assert list(files_in(plain)) == [("old.c", False, EDIT), ("new.c", False, EDIT)]
    assert list(files_in("--- a/b/c\n+++ /dev/null\n", 2, "under")) == [("under/c", False, EDIT)]
    guessed = files_in("--- a/src/c\n+++ b/src/c\n--- a/d\n+++ b/d\n", None, "", "src")
    assert list(guessed) == [("c", False, EDIT)], "as git guesses"
    assert unquoted('"n\\303\\244 \\"me\\t"') == 'nä "me\t' and unquoted("plain") == "plain"


def test_lock_git_is_the_lock_on_the_git_folder(ground):
    mine, peer = ground.session("one"), ground.session("two")
    inside = folder_at(ground.repo / "deep")
    deep = ground.session("three", directory=str(inside), scope=ground.scope)
    taken = ground.swarm("lock", "--git", "--note", "rebasing", "--as", mine["id"])
    assert taken.out == f"locked {ground.repo}/.git\n"
    for other, words in ((peer, [".git"]), (peer, ["--git"]), (deep, ["--git"]), (deep, ["../.git"])):
        refused = ground.swarm("lock", *words, "--as", other["id"])
        assert refused.code == 1 and "rebasing" in refused.err, words
    assert "is not yours" in ground.swarm("unlock", "--git", "--as", deep["id"]).err
    assert len(ground.swarm("locks", "--json").json) == 1, "only one's own goes"
    assert ground.swarm("unlock", "--git", "--as", mine["id"]).out == f"unlocked {ground.repo}/.git\n"
    assert ground.swarm("lock", ".git", "--as", peer["id"]).code == 0
    assert ground.swarm("unlock", "--git", "--as", peer["id"]).code == 0
    assert ground.swarm("locks", "--json").json == []


def test_lock_git_wants_a_repository_and_no_file(ground, tmp_path):
    outside = folder_at(tmp_path / "outside")
    instance = ground.session("one", directory=str(outside))
    for verb in ("lock", "unlock"):
        nowhere = ground.swarm(verb, "--git", "--as", instance["id"])
        assert (nowhere.code, nowhere.err) == (1, f"swarm-mcp {verb}: {outside} is not in a git repository\n")
        assert "--git" in ground.swarm(verb, "--git", "a.txt", "--as", instance["id"]).err


def test_what_a_submodule_names_is_not_run_either(checkout, tmp_path):
    here, inner = checkout("clean"), Checkout(tmp_path / "inner")
    inner.put("f.txt", "1\n")
    inner.put(".gitattributes", "* filter=any\n")
    inner.git("init", "-q")
    inner.git("add", "-A")
    inner.git("commit", "-q", "-m", "x")
    here.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.top), "module")
    here.git("commit", "-q", "-am", "x")
    trap = program_at(tmp_path / "trap", f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    here.git("-C", "module", "config", "filter.any.clean", str(trap))
    here.git("config", "submodule.module.ignore", "none")
    here.put("module/f.txt", "2\n")
    for line in ("add -A", "commit -am x", "stash -u", "checkout .", "reset --hard"):
        here.ask(line, ["sub", "module/f.txt", "a.txt"])
    assert not (tmp_path / "sprung").exists()
