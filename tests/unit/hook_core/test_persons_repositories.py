"""A person's uncommitted work in repositories of all kinds, and on a whole day of ordinary work."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from support.altered import Failing, Limits
from support.files import files_at, folder_at
from support.traced import Player, checkout, git, lost_in
from support.world import commit_all, saves, some_time_passes, typed

from swarm_hook_core.git_repository import NoAnswer, Repository
from swarm_hook_core.state import ended_mark

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_faults")]


# kind -> commands that make the repository so, with a person's work in it
KINDS = {
    "plain": "echo mine > notes.md",
    # other.md is the same to git
    "crlf": r"""git config core.autocrlf true; printf 'alpha\r\nbeta\r\ngamma\r\n' > other.md
        printf 'alpha\r\nbeta\r\nmine\r\n' > notes.md""",
    "filter": r"""git config filter.up.clean 'tr a-z A-Z'; git config filter.up.smudge 'tr A-Z a-z'
        echo '*.md filter=up' > .gitattributes; git add --renormalize .; git add .; git commit -qm filtered
        printf 'alpha\nmine\n' > notes.md""",
    "sparse checkout": "git sparse-checkout set --no-cone /notes.md /other.md; test ! -e sub; echo mine > notes.md",
    "detached HEAD": "git checkout -q --detach; echo mine > notes.md",
    "rebase in progress": r"""git checkout -q -b side; echo side > notes.md; git commit -qam side
        git checkout -q main; echo main > notes.md; git commit -qam main
        ! git rebase side; printf 'resolved\nby hand\n' > notes.md""",
    "binary": r"printf '\0\1\2mine' > notes.md",
    "mode": "chmod 755 notes.md",
    "renamed": "echo mine >> notes.md; git mv notes.md renamed.md",
    "link": "ln -sf sub/deep.md notes.md",
    "fsmonitor": "git config core.fsmonitor true; git config core.untrackedCache true; echo mine > notes.md",
    "staged": "echo mine > notes.md; git add .",
    "touched": "echo mine > notes.md; touch other.md",  # newer, and the same
    # the files are older than the index, so that git need not compare contents
    "LFS": r"""git lfs install --local; git lfs track '*.md'; find . -name '*.md' -exec touch -t 202311142200 {} +
        git add --renormalize .; git add .; git commit -qm lfs; git cat-file blob HEAD:notes.md | grep git-lfs
        printf 'alpha\nmine\n' > notes.md""",
}


# kind -> the person's lines in the denial
LINES = {
    "plain": "notes.md: 1 line (1)", "crlf": "notes.md: 1 line (3)", "filter": "notes.md: uncommitted changes",
    "LFS": "notes.md: uncommitted changes", "sparse checkout": "notes.md: 1 line (1)", "staged": "notes.md: 1 line (1)",
    "binary": "notes.md: uncommitted changes", "mode": "notes.md: its mode or type", "fsmonitor": "notes.md: 1 line (1)",
}  # fmt: skip
OWN = (
    "git checkout -- other.md",
    "git stash push -- other.md",
    "git restore other.md",
    "rm other.md",
    "echo x > other.md",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled
def test_a_sweep_is_refused_and_a_clean_file_and_the_session_s_own_work_may_go(kind: str, work: Path) -> None:
    if kind == "LFS" and shutil.which("git-lfs") is None:
        pytest.skip("git-lfs is not installed")
    me = Player("codex", work)
    me.runs("ls")
    typed(work, KINDS[kind])
    said = me.denied("Bash", {"command": "git reset --hard"})
    assert "a person's work" in said and ("renamed.md" if kind == "renamed" else "notes.md") in said
    assert "other.md" not in said and LINES.get(kind, "") in said
    assert me.denied("Bash", {"command": OWN[0]}) == ""
    some_time_passes()
    assert me.edits("other.md", "beta", "MINE") == ""
    for command in OWN:
        assert me.denied("Bash", {"command": command}) == "", command
    assert me.denied("Bash", {"command": "git reset --hard"}), "the person's is there still"


def test_a_partial_clone_fetches_nothing(work: Path, tmp_path: Path) -> None:
    """HEAD's contents are not here: to ask for them would use the network."""
    git(work, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{work}", "partial")
    partial = tmp_path / "partial"
    (work / "notes.md").write_text("of another commit\n")
    git(work, "commit", "-qam", "newer")
    git(partial, "fetch", "-q")
    git(partial, "update-ref", "HEAD", "origin/main")
    objects = sorted(os.listdir(partial / ".git" / "objects" / "pack"))
    me, peer = Player("codex", partial), Player("claude-code", partial)
    me.runs("ls")
    saves(partial / "notes.md", "a person's\n")
    for command in ("git reset --hard", "git checkout .", "git stash", "rm notes.md", "echo x > notes.md"):
        assert "notes.md" in me.denied("Bash", {"command": command}), command
    assert peer.edits("other.md", "beta", "PEER") == ""
    assert "other.md" in me.denied("Bash", {"command": "git checkout other.md"})
    assert "other.md" in me.denied(*me.writing("other.md", "x\n"))
    assert peer.denied("Bash", {"command": "git checkout -- other.md"}) == ""
    assert sorted(os.listdir(partial / ".git" / "objects" / "pack")) == objects


def test_before_the_first_commit(tmp_path: Path, work: Path) -> None:
    fresh = folder_at(tmp_path / "fresh")
    git(fresh, "init", "-q")
    me = Player("codex", fresh)
    me.runs("ls")
    (fresh / "idea.md").write_text("one\n")
    git(fresh, "add", "idea.md")
    (fresh / "new.md").write_text("two\n")
    for command in ("git rm -f idea.md", "git clean -fd", "rm idea.md", "echo x > new.md"):
        assert "a person's work" in me.denied("Bash", {"command": command}), command


def test_a_submodule_and_a_repository_inside(work: Path, tmp_path: Path) -> None:
    library = checkout(tmp_path / "library", "lib.md")
    git(work, "submodule", "add", "-q", str(library), "lib")
    git(work, "commit", "-qm", "lib")
    me = Player("codex", work)
    me.runs("ls")
    (work / "lib" / "lib.md").write_text("mine\n")
    assert "lib.md" in me.denied("Bash", {"command": "rm -rf lib"})
    assert "lib.md" in me.denied("Bash", {"command": "git -C lib checkout ."})
    assert "lib.md" in me.denied("Bash", {"command": f"rm -rf {shlex.quote(str(work))}"})
    assert me.denied("Bash", {"command": "git checkout ."}) == "", "git leaves the work inside of a submodule alone"


def test_if_git_does_not_answer(work: Path, failing: Failing, me: Player) -> None:
    me.runs("ls")
    (work / "notes.md").write_text("mine\n")
    failing(Repository, "untracked", NoAnswer("out of time"))
    for command in ("git checkout .", "git reset --hard", "git stash", "git clean -fd"):
        assert "too slow" in me.denied("Bash", {"command": command}), command
    for command in ("rm notes.md", "rm -rf sub", "git switch main", "git merge side", "echo x > notes.md"):
        assert me.denied("Bash", {"command": command}) == "", command


def test_a_folder_that_passes_is_kept_within_bounds(work: Path, monkeypatch, limits: Limits) -> None:
    from swarm_hook_core.stakes import verdict

    limits(verdict, MOST_BYTES=10)
    monkeypatch.setenv("SWARM_PROTECT", "off")
    me = Player("codex", work)
    (work / "pile").mkdir()
    files_at(work / "pile", dict.fromkeys("abcd", "four"))
    assert me.runs("rm -r pile") == "" and not (work / "pile").exists()
    assert len(lost_in(work)) == 2


def test_many_files_are_asked_about(work: Path) -> None:
    for number in range(1500):
        (work / f"f{number}").write_text("x")
    commit_all(work, "many")
    me = Player("codex", work)
    me.runs("ls")
    (work / "f7").write_text("mine")
    assert "f7" in me.denied("Bash", {"command": "git checkout ."})
    assert (work / "f7").exists()


@pytest.mark.slow
@pytest.mark.parametrize("folders", [10, pytest.param(100, marks=pytest.mark.thorough)])
def test_a_large_repository(work: Path, folders: int) -> None:
    """A person's file among many is found in git's two seconds; if a slow machine does not, the words say so."""
    for number in range(folders):
        folder = folder_at(work / "many" / f"d{number}")
        for other in range(1000):
            (folder / f"f{other}").touch()
    commit_all(work, "many")
    me = Player("codex", work)
    me.runs("ls")
    saves(work / "many" / "d4" / "f42", "a person's\n")
    for command in ("git reset --hard", "git checkout .", "git stash"):
        said = me.denied("Bash", {"command": command})
        assert "many/d4/f42" in said or "too slow" in said, said
    assert "f42" in me.denied("Bash", {"command": "rm many/d4/f42"})
    assert me.denied("Bash", {"command": "rm notes.md"}) == ""


DAY = """
agent: git status --short
agent: ls -la
agent: cat notes.md
agent: grep -rn alpha .
edit: notes.md | beta | BETA
agent: git diff
agent: python3 check.py > check.log
agent: python3 check.py > check.log 2>&1
agent: cat check.log
agent: rm check.log
agent: git add notes.md
agent: git commit -qm "notes: beta"
agent: git log --oneline -3
agent: echo scratch > scratch.txt
agent: mv scratch.txt scratch2.txt
agent: rm scratch2.txt
write: plan.txt | one
agent: cp plan.txt plan2.txt
agent: rm -f plan2.txt
person: printf 'person one\\nperson two\\n' >> other.md
agent: git status --short
agent: git diff -- other.md
refused: git checkout .
refused: git checkout -- other.md
refused: git stash
edit: notes.md | gamma | GAMMA
agent: git checkout -- notes.md
edit: notes.md | gamma | GAMMA
agent: git stash push -q -- notes.md
agent: git stash pop -q
agent: git restore notes.md
refused: git reset --hard
refused: git reset --hard HEAD
agent: git reset -q
agent: rm plan.txt
agent: python3 gen.py
agent: git status --short
agent: rm -rf build
agent: python3 gen.py
agent: git clean -fdq build
agent: python3 gen.py
person: echo 'remember the milk' > todo.txt
agent: ls
refused: git clean -fd
refused: git clean -fdx
refused: rm -rf ./*
refused: rm todo.txt
agent: git clean -fdq build
agent: cat todo.txt
agent: sed -i 's/alpha/ALPHA/' sub/deep.md
agent: git checkout -- sub/deep.md
person: sed -i 's/beta/person/' sub/deep.md
agent: git diff sub
refused: git restore sub
refused: git checkout HEAD -- sub/deep.md
edit: sub/deep.md | gamma | agent
refused: git checkout -- sub/deep.md
refused: rm -r sub
refused: cp notes.md sub/deep.md
agent: git add sub/deep.md
refused: git restore --staged --worktree sub/deep.md
person: git add -A && git commit -qm "mine"
agent: git log --oneline -1
edit: sub/deep.md | alpha | again
agent: git checkout .
agent: git switch -q -c topic
agent: echo line >> notes.md
agent: git commit -qam topic
agent: git switch -q main
agent: git merge -q topic
agent: git branch -d topic
agent: python3 format.py
agent: git diff --stat
agent: git checkout -- notes.md other.md
agent: python3 format.py && git stash -q && git stash drop -q
person: echo 'a late idea' >> notes.md
agent: python3 check.py
refused: git switch -f -c other
refused: git stash -u
refused: git rebase --autostash HEAD~1
refused: git checkout -f
agent: git switch -q -c other
agent: git switch -q main
agent: cat notes.md
agent: echo '# a new beginning' | cat - notes.md > notes.new
agent: rm notes.new
agent: git worktree add -q ../beside
agent: git worktree remove --force ../beside
person: rm todo.txt
agent: git checkout -- todo.txt
agent: mkdir -p out && echo x > out/a && echo y > out/b
agent: rm -r out
agent: git add -A
agent: git commit -qm "all of it"
agent: git reset -q --hard
"""
CHECK = "import sys\nprint('all is well')\n"
GEN = "import os\nos.makedirs('build', exist_ok=True)\nfor n in 'abc': open('build/' + n, 'w').write(n)\n"
FORMAT = "for n in ('notes.md', 'other.md'):\n    t = open(n).read()\n    open(n, 'w').write(t.upper() + ' ')\n"


def ends(player: Player) -> None:
    """Leave the mark that the client's hook leaves after a call."""
    Path(ended_mark()).parent.mkdir(exist_ok=True)
    Path(ended_mark()).write_bytes(b"")
    some_time_passes()


@pytest.mark.thorough
def test_no_false_refusal_and_each_sweep_over_a_person_s_lines_is_refused(work: Path) -> None:
    git(work, "config", "user.name", "t")
    git(work, "config", "user.email", "t@t")
    for name, text in (("check.py", CHECK), ("gen.py", GEN), ("format.py", FORMAT)):
        (work / name).write_text(text)
    commit_all(work, "tools")
    agent = Player("claude-code", work)
    deeds = [line.partition(": ") for line in DAY.strip().splitlines()]
    assert len(deeds) >= 60
    for kind, _, deed in deeds:
        parts = deed.split(" | ")
        before = {path: path.read_bytes() for path in work.rglob("*") if path.is_file() and ".git" not in path.parts}
        if kind == "person":
            subprocess.run(["bash", "-c", deed], cwd=work, check=True, capture_output=True)
            some_time_passes()
            continue
        if kind == "edit":
            said = agent.edits(*parts)
        elif kind == "write":
            said = agent.writes(parts[0], parts[1] + "\n")
        else:
            said = agent.runs(deed)
            if "would stage a person's work" in said or "would commit a person's work" in said:
                said = agent.runs(deed)  # told once of each file that goes along
        if kind == "refused":
            assert said.startswith("denied: ") and "a person's work" in said, (deed, said)
            assert before == {path: path.read_bytes() for path in before if os.path.lexists(path)}, deed
        else:
            assert said == "", (deed, said)
            ends(agent)
