"""Work trees of tasks: made for a worker, merged, thrown away only where that is asked; all with the real git."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from support import supervised
from support.fixtures import Ground, wait_for
from support.supervised import GATEWAY, alive, dispatch, over, reaches, run_of, task

from swarm_hook_core import repository
from swarm_mcp.agents.dispatch import task_trees
from swarm_mcp.agents.dispatch.git_commands import git
from swarm_mcp.errors import Refused

pytestmark = pytest.mark.slow
COMMIT = "git add -A; git commit -qm"


@pytest.fixture
def repo(ground: Ground) -> Path:
    """The checkout as a real repository, with one commit on main."""
    git(str(ground.repo), "init", "-q", "-b", "main")
    for name, value in {"user.name": "Ann", "user.email": "ann@example.org"}.items():
        git(str(ground.repo), "config", name, value)
    (ground.repo / "a.txt").write_text("one\ntwo\nthree\n")
    (ground.repo / "src").mkdir()
    (ground.repo / "src" / "b.txt").write_text("b\n")
    commit(ground.repo, "begin")
    return ground.repo


@pytest.fixture
def lead(ground: Ground, repo: Path):
    yield ground.session("lead", f"{GATEWAY} lead")
    supervised.end_all(ground)


def commit(folder: Path, subject: str) -> None:
    git(str(folder), "add", "-A")
    git(str(folder), "commit", "-q", "-m", subject)


def subjects(folder: Path, what: str = "HEAD") -> list[str]:
    return git(str(folder), "log", "--format=%s", what).splitlines()


def branches(folder: Path) -> list[str]:
    return git(str(folder), "for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()


def tree_of(ground: Ground, answer: dict) -> Path:
    found = task_trees.of_task(str(ground.repo), answer["task_id"])
    assert found
    return Path(found.top)


def worked(ground: Ground, lead: dict, title: str, script: str, status: str = "done", **given) -> dict:
    """Return a dispatch with a work tree after its worker has run `script` and gone."""
    answer = dispatch(ground, lead, title, script, worktree=True, **given)
    reaches(ground, answer, status)
    over(ground, answer)
    return answer


def merge(ground: Ground, *words: str, who: str = "lead", **options):
    return ground.swarm("merge", *words, "--as", who, **options)


# ----------------------------------------------------------------------------- the way it should go


def test_a_worker_has_a_work_tree_of_its_own_and_merge_brings_its_commits_back(
    ground: Ground, repo: Path, lead: dict
) -> None:
    script = f"pwd > where; cat > told; echo 1 > new.txt; {COMMIT} First; echo 2 >> a.txt; {COMMIT} Second; echo fine"
    (repo / "a.txt").write_text("one\ntwo\nthree\nmine\n")  # of the person, not committed
    answer = worked(ground, lead, "Do it: well, now!", script)
    tree = tree_of(ground, answer)
    assert tree.parent == Path(os.environ["SWARM_STATE_DIR"]).resolve() / "worktrees" / "repo"
    assert tree.name == f"do-it-well-now-{answer['task_id'][:8]}"
    assert (tree / "where").read_text().strip() == str(tree)
    assert "work tree of the repository for this task alone" in (tree / "told").read_text()
    assert run_of(ground, answer)["cwd"] == str(tree)
    result = task(ground, answer)["result"]
    assert result == f"fine\n\n[2 commits on branch swarm/{tree.name}: swarm-mcp worker merge {answer['task_id'][:8]}]"
    assert (repo / "a.txt").read_text().endswith("mine\n") and not (repo / "new.txt").exists()
    assert subjects(repo) == ["begin"]

    listed = ground.swarm("merge")
    assert f"[done]  Do it: well, now!\n  {tree}, branch swarm/{tree.name}: 2 commits for main" in listed.out
    stopped = merge(ground, answer["task_id"][:8])
    assert stopped.code == 1 and "it would overwrite uncommitted changes in 1 file here" in stopped.err
    assert "\n  a.txt\n" in stopped.err and (repo / "a.txt").read_text().endswith("mine\n")
    git(str(repo), "checkout", "-q", "a.txt")

    done = merge(ground, answer["task_id"][:8])
    assert (done.code, done.err) == (0, "")
    assert "2 commits brought to main: Do it: well, now!" in done.out
    assert subjects(repo) == ["Second", "First", "begin"]
    assert git(str(repo), "status", "--porcelain") == ""
    assert not tree.exists() and branches(repo) == ["main"] and ground.swarm("merge").out.startswith("(no task")
    assert ground.sql("SELECT * FROM context") == []
    assert subprocess.run(["git", "-C", repo, "config", "--get-regexp", "swarm"], check=False).returncode == 1


def test_while_there_are_task_trees_locks_hold_in_all_work_trees(ground: Ground, repo: Path, lead: dict) -> None:
    wait = "swarm-mcp lock src/b.txt > said 2>&1; while [ ! -e go ]; do sleep 0.05; done"
    answer = dispatch(ground, lead, "Hold it", wait, worktree=True)
    reaches(ground, answer, "in_progress")
    tree = Path(wait_for(lambda: task_trees.of_task(str(repo), answer["task_id"])).top)
    said = wait_for(lambda: (tree / "said").exists() and (tree / "said").read_text())
    other = ground.session("other", "identity:p")
    held = ground.swarm("lock", "src/b.txt", "--as", other["id"])
    assert held.code == 1 and f"{tree}/src/b.txt" in held.err, (said, held)
    refused = merge(ground, answer["task_id"])
    assert refused.code == 1 and "is at work in its work tree" in refused.err
    (tree / "go").touch()
    over(ground, answer)
    assert repository.opted_in(repository.tree_at(str(repo), True))
    assert merge(ground, answer["task_id"]).code == 0  # it commits the worker's leftovers: `said` and `go`
    assert subjects(repo) == ["Hold it", "begin"]
    assert not repository.opted_in(repository.tree_at(str(repo), True))


def test_what_was_locked_before_the_first_work_tree_holds_in_it_too(ground: Ground, repo: Path, lead: dict) -> None:
    other = ground.session("other", "identity:p")
    for file in ("src/b.txt", "new.txt"):
        assert ground.swarm("lock", file, "--as", other["id"], "--note", "mine").code == 0
    try_it = "for f in src/b.txt new.txt a.txt; do swarm-mcp lock $f >> said 2>&1; echo $f $? >> codes; done"
    answer = worked(ground, lead, "Meets it", try_it)
    tree = tree_of(ground, answer)
    assert (tree / "codes").read_text().splitlines() == ["src/b.txt 1", "new.txt 1", "a.txt 0"], (
        tree / "said"
    ).read_text()
    with ground.store() as store:
        assert store.locks.spread(str(repo)) == 0
    assert ground.swarm("unlock", "src/b.txt", "--as", other["id"]).code == 0


def test_what_a_repository_says_of_logical_locks_is_kept(ground: Ground, repo: Path, lead: dict) -> None:
    git(str(repo), "config", "swarm.logical", "false")
    answer = worked(ground, lead, "Off", "true")
    assert git(str(repo), "config", "swarm.logical") == "false"
    git(str(repo), "config", "swarm.logical", "true")
    assert merge(ground, answer["task_id"]).code == 0
    assert git(str(repo), "config", "swarm.logical") == "true"


def test_commits_are_put_on_top_of_what_has_come_meanwhile_in_their_order(
    ground: Ground, repo: Path, lead: dict
) -> None:
    one = worked(ground, lead, "One", f"echo 1 > one; {COMMIT} 1a; echo 2 > one; {COMMIT} 1b")
    two = worked(ground, lead, "Two", f"echo 1 > two; {COMMIT} 2a; git switch -qc else; echo 2 > two; {COMMIT} 2b")
    failed = worked(ground, lead, "Not this", "echo 3 > three; exit 3", status="failed")
    (repo / "mine").write_text("x")
    commit(repo, "Mine")
    done = merge(ground, "--all", "--json")
    assert [(one["task_id"], one["files"]) for one in done.json["merged"]] == [
        (one["task_id"], ["one"]), (two["task_id"], ["two"])
    ]  # fmt: skip
    assert subjects(repo) == ["2b", "2a", "1b", "1a", "Mine", "begin"]
    left = task_trees.of_task(str(repo), failed["task_id"])
    assert left and branches(repo) == ["main", left.branch]
    said = task(ground, failed)["result"]
    assert "[no commit on branch" in said and "1 file not committed" in said


def test_a_task_begins_with_what_the_tasks_before_it_have_done(ground: Ground, repo: Path, lead: dict) -> None:
    one = worked(ground, lead, "One", f"echo 1 > one; {COMMIT} 1")
    two = worked(ground, lead, "Two", f"echo 2 > two; {COMMIT} 2")
    both = worked(ground, lead, "Both", f"cat one two > both; {COMMIT} 3", depends_on=(one["task_id"], two["task_id"]))
    last = worked(ground, lead, "Last", f"cat both > last; {COMMIT} 4", depends_on=(both["task_id"],))
    done = merge(ground, *(each["task_id"] for each in (last, both, two, one)))
    assert done.code == 0, done
    assert (repo / "last").read_text() == "1\n2\n" and branches(repo) == ["main"]
    assert {"1", "2", "3", "4"} <= set(subjects(repo))
    sides = [worked(ground, lead, f"Side {n}", f"echo {n} > a.txt; {COMMIT} side{n}")["task_id"] for n in (1, 2)]
    torn = worked(ground, lead, "Torn", "echo never", status="failed", depends_on=tuple(sides))
    assert "the work of earlier tasks conflicts in a.txt" in task(ground, torn)["result"]
    assert task_trees.of_task(str(repo), torn["task_id"]) is None and len(branches(repo)) == 3


# -------------------------------------------------------------------------------------- obstacles


@pytest.mark.parametrize("is_line", [True, False])
def test_a_conflict_stops_with_the_files_named_and_nothing_changed(
    ground: Ground, repo: Path, lead: dict, is_line: bool
) -> None:
    script = f"echo 2 > new; {COMMIT} Good; echo theirs > a.txt; echo theirs > src/b.txt; {COMMIT} Bad"
    if not is_line:
        script = f"git switch -qc side; echo s > side; {COMMIT} Side; git switch -q -; {script}; git merge -q side"
    answer = worked(ground, lead, "Clash", script)
    (repo / "a.txt").write_text("ours\n")
    (repo / "src" / "b.txt").write_text("ours\n")
    commit(repo, "Ours")
    before = (git(str(repo), "rev-parse", "HEAD"), git(str(tree_of(ground, answer)), "rev-parse", "HEAD"))
    done = merge(ground, answer["task_id"])
    which = "Bad conflicts with main in 2 files" if is_line else "its work conflicts with main in 2 files"
    assert done.code == 1 and which in done.err and "\n  a.txt\n  src/b.txt\nnext: cd " in done.err
    told = merge(ground, answer["task_id"], "--json").json
    assert told["files"] == ["a.txt", "src/b.txt"] and told["merged"] == []
    tree = tree_of(ground, answer)
    assert before == (git(str(repo), "rev-parse", "HEAD"), git(str(tree), "rev-parse", "HEAD"))
    assert [git(str(folder), "status", "--porcelain") for folder in (repo, tree)] == ["", ""]
    assert ground.sql("SELECT * FROM context") == []
    # As it was told: resolved in the task's own work tree.
    words = ["rebase", "main"] if is_line else ["merge", "main"]
    subprocess.run(["git", "-C", tree, *words], check=False, capture_output=True)
    stopped = merge(ground, answer["task_id"])
    assert stopped.code == 1 and f"a {words[0]} is under way in its work tree" in stopped.err
    for name in ("a.txt", "src/b.txt"):
        (tree / name).write_text("both\n")
    git(str(tree), "add", "-A")
    git(str(tree), "-c", "core.editor=true", words[0], "--continue")
    assert merge(ground, answer["task_id"]).code == 0
    assert (repo / "a.txt").read_text() == "both\n" and (repo / "new").exists() and "Bad" in subjects(repo)


def test_what_another_session_holds_keeps_a_merge_out(ground: Ground, repo: Path, lead: dict) -> None:
    answer = worked(ground, lead, "Edit", f"echo 2 > src/b.txt; {COMMIT} Edit")
    other = ground.session("other", "identity:p")
    for held in ("src/b.txt", ".git", "src"):
        assert ground.swarm("lock", held, "--as", other["id"]).code == 0
        done = merge(ground, answer["task_id"])
        assert done.code == 1 and "File is already locked" in done.err and subjects(repo) == ["begin"], done
        assert ground.swarm("unlock", held, "--as", other["id"]).code == 0
    ground.swarm("lock", "src/b.txt", "--as", lead["id"])  # the merging session's own locks are no obstacle
    assert merge(ground, answer["task_id"]).code == 0
    assert [row["file"] for row in ground.sql("SELECT file FROM context")] == [str(repo / "src" / "b.txt")]


def test_what_was_not_committed_stops_a_merge_unless_it_is_to_be_committed(
    ground: Ground, repo: Path, lead: dict
) -> None:
    answer = worked(ground, lead, "Half", "echo 3 > half; exit 3", status="failed")
    done = merge(ground, answer["task_id"])
    assert done.code == 1 and "1 file is not committed in its work tree" in done.err and "\n  half\n" in done.err
    assert merge(ground, answer["task_id"], "--commit").code == 0
    assert subjects(repo) == ["Half", "begin"] and (repo / "half").read_text() == "3\n"


def test_a_merge_goes_to_the_branch_that_the_task_began_on(ground: Ground, repo: Path, lead: dict) -> None:
    answer = worked(ground, lead, "There", f"echo 3 > there; {COMMIT} There")
    git(str(repo), "switch", "-q", "-c", "other")
    done = merge(ground, answer["task_id"])
    assert done.code == 1 and "it began on main, and this work tree is on other" in done.err
    assert merge(ground, answer["task_id"], "--here").code == 0
    assert subjects(repo, "other") == ["There", "begin"] and subjects(repo, "main") == ["begin"]
    assert branches(repo) == ["main", "other"]


def test_a_merge_that_was_killed_is_taken_up_again(ground: Ground, repo: Path, lead: dict) -> None:
    """A merge that dies at any git command leaves all commits, and the next one brings them back."""
    answers = [worked(ground, lead, f"T{n}", f"echo {n} > f{n}; {COMMIT} c{n}a; echo x >> f{n}; {COMMIT} c{n}b")
               for n in range(6)]  # fmt: skip
    (repo / "mine").write_text("x")
    commit(repo, "Mine")
    shim = ground.folder / "bin" / "git"
    shim.parent.mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    for number, answer in enumerate(answers):
        verb = ("rebase", "log", "diff", "merge --ff-only", "worktree", "branch")[number]
        # It kills the command that started it once git has done its work.
        shim.write_text(f'#!/bin/sh\n{real} "$@"\ncode=$?\ncase "$*" in *"{verb}"*) kill -9 $PPID;; esac\nexit $code\n')
        shim.chmod(0o755)
        path = f"{shim.parent}{os.pathsep}{os.environ['PATH']}"
        killed = ground.process("merge", answer["task_id"], "--as", lead["id"], env={**os.environ, "PATH": path})
        assert killed.code == -signal.SIGKILL, (verb, killed)
        done = merge(ground, answer["task_id"], "--wait", "5")
        if verb == "branch":  # the tree had gone; only the branch is left
            assert done.code == 1 and f"c{number}b" in subjects(repo)
        else:
            assert done.code == 0, (verb, done)
    assert subjects(repo) == [f"c{n}{part}" for n in reversed(range(6)) for part in "ba"] + ["Mine", "begin"]
    assert task_trees.task_trees(repository.tree_at(str(repo), True)) == []


# ------------------------------------------------------------------------------------- thrown away


def test_a_task_tree_is_thrown_away_where_that_is_asked_and_only_then(ground: Ground, repo: Path, lead: dict) -> None:
    script = f"echo 1 > new; {COMMIT} New; echo 2 > rest; while :; do sleep 0.05; done"
    answer = dispatch(ground, lead, "Wrong way", script, worktree=True)
    tree = wait_for(lambda: task_trees.of_task(str(repo), answer["task_id"]))
    wait_for(lambda: Path(tree.top, "rest").exists())
    assert ground.swarm("cancel", answer["task_id"], "--as", lead["id"], "--wait", "10").code == 0
    over(ground, answer)
    assert Path(tree.top, "rest").read_text() == "2\n" and tree.branch in branches(repo)
    other = ground.session("other", "identity:p")
    assert "or a gateway" in ground.swarm("cancel", answer["task_id"], "--discard", "--as", other["id"]).err
    visitor = ground.session("visitor", "identity:p", directory=tree.top)
    done = ground.swarm("cancel", answer["task_id"], "--discard", "--as", lead["id"])
    assert done.code == 1 and "nothing was thrown away" in done.err and Path(tree.top, "rest").exists()
    with ground.store() as store:
        store.instances.remove(visitor["id"])
    tip = git(tree.top, "rev-parse", "HEAD")
    done = ground.swarm("cancel", answer["task_id"], "--discard", "--as", lead["id"])
    assert (done.code, done.err) == (0, "")
    assert f"thrown away: the work tree {tree.top}, with 1 uncommitted file in it" in done.out
    assert f"git branch {tree.branch} {tip[:12]} has its commits back" in done.out
    assert not os.path.exists(tree.top) and branches(repo) == ["main"]


def test_a_running_task_is_cancelled_and_thrown_away_in_one_go(ground: Ground, repo: Path, lead: dict) -> None:
    answer = dispatch(ground, lead, "Wrong way", "echo 2 > rest; while :; do sleep 0.05; done", worktree=True)
    tree = wait_for(lambda: task_trees.of_task(str(repo), answer["task_id"]))
    done = ground.swarm("cancel", answer["task_id"][:8], "--discard", "--as", lead["id"], "--json")
    assert done.code == 0 and done.json["discarded"]["path"] == tree.top, done
    assert task(ground, answer)["status"] == "cancelled" and not os.path.exists(tree.top)


# ----------------------------------------------------------------------------------- odd grounds


def test_without_a_repository_with_a_commit_there_is_no_work_tree(ground: Ground) -> None:
    lead = ground.session("lead", GATEWAY)
    git(str(ground.repo), "init", "-q")
    for folder, words in ((ground.folder, "is not in a git repository"), (ground.repo, "has no commit yet")):
        with pytest.raises(Refused, match=words):
            dispatch(ground, lead, "Do it", "true", worktree=True, cwd=str(folder))
    with pytest.raises(Refused, match="worktree are for process and tmux"):
        dispatch(ground, lead, "Do it", worktree=True, spawner="herdr", harness="claude")


def test_where_git_knows_nobodys_name_what_was_done_is_committed_all_the_same(
    ground: Ground, repo: Path, lead: dict
) -> None:
    for name in ("user.name", "user.email"):
        git(str(repo), "config", "--unset", name)
    git(str(repo), "config", "user.useConfigOnly", "true")
    answer = worked(ground, lead, "Nobody", "echo 1 > new")
    (repo / "mine").write_text("x")
    git(str(repo), "add", "-A")
    git(str(repo), "-c", "user.name=Ann", "-c", "user.email=a@b.c", "commit", "-qm", "Mine")
    assert merge(ground, answer["task_id"]).code == 0
    assert git(str(repo), "log", "-1", "--format=%s by %an") == "Nobody by swarm-mcp"


def test_a_worker_that_was_killed_goes_on_in_its_work_tree(ground: Ground, repo: Path, lead: dict) -> None:
    script = "if [ -e half ]; then echo whole >> half; else echo half > half; sleep 600; fi"
    answer = dispatch(ground, lead, "In two goes", script, worktree=True, cwd=str(repo / "src"))
    tree = wait_for(lambda: task_trees.of_task(str(repo), answer["task_id"]))
    half = Path(tree.top, "src", "half")
    wait_for(half.exists)
    row = run_of(ground, answer)
    os.kill(row["supervisor_pid"], signal.SIGKILL)
    wait_for(lambda: not alive(row["supervisor_pid"], row["supervisor_start"]) and not alive(row["child_pid"]))
    assert Path(tree.top).exists()
    again = dispatch(ground, lead, "", script, resume=answer["task_id"], cwd=str(repo / "src"))
    assert reaches(ground, again, "done") and half.read_text() == "half\nwhole\n"
    over(ground, again)
    assert subjects(Path(tree.top))[0] == "In two goes"


def test_what_its_maker_left_when_it_was_killed_is_made_anew(ground: Ground, repo: Path, lead: dict) -> None:
    with ground.store() as store:
        made = store.tasks.request(lead, {"type": "implement", "title": "Anew"})["task"]
    top = task_trees.working_folder(str(repo), made["id"], "Anew")
    git(str(repo), "worktree", "add", "--lock", "-b", f"swarm/{os.path.basename(top)}", top)
    (Path(top) / "a.txt").unlink()
    tree = task_trees.make(str(repo), task_row(ground, made["id"]))
    assert tree.top == top and (Path(top) / "a.txt").exists()
    assert task_trees.make(str(repo), task_row(ground, made["id"])) == tree


def task_row(ground: Ground, task_id: str):
    with ground.store() as store:
        return store.tasks.get(ground.scope, task_id)


def test_ten_at_once_each_have_their_own(ground: Ground, repo: Path, lead: dict, monkeypatch) -> None:
    monkeypatch.setenv("SWARM_MAX_WORKERS", "0")
    answers = [dispatch(ground, lead, f"W{n}", f"echo {n} > w{n}; {COMMIT} w{n}", worktree=True) for n in range(10)]
    for answer in answers:
        reaches(ground, answer, "done", 60)
        over(ground, answer)
    done = merge(ground, "--all", "--json")
    assert (done.code, len(done.json["merged"])) == (0, 10), done
    assert sorted(subjects(repo)) == sorted(["begin", *(f"w{n}" for n in range(10))])


def test_the_tree_of_a_task_that_the_store_has_forgotten(ground: Ground, repo: Path, lead: dict) -> None:
    answer = worked(ground, lead, "Old", f"echo 1 > old; {COMMIT} Old")
    ground.sql("DELETE FROM tasks")
    ground.sql("DELETE FROM swarm_runs")
    assert "[gone]  Old" in ground.swarm("merge").out
    assert json.loads(ground.swarm("merge", "--json").out)[0]["commits"] == 1
    assert merge(ground, answer["task_id"]).code == 0 and subjects(repo) == ["Old", "begin"]
