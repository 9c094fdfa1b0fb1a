"""Locks that hold in every work tree and clone of a repository that takes part, and in no other."""

import subprocess
import time
from pathlib import Path

import pytest
from support.fixtures import Ground
from support.sessions import new_session, ready_store, start, write
from support.toolbox import Hands

from swarm_hook_core import repository
from swarm_hook_core.lookup import Peers
from swarm_hook_core.lookup import sqlite as logical
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_mcp.errors import LockRefused, SwarmError
from swarm_mcp.guard.check import refusals
from swarm_mcp.locking.explaining import verdict
from swarm_mcp.store.lock_request import request
from swarm_mcp.store.refusals import Attempt

pytestmark = pytest.mark.slow


def git(folder: Path, *words: str) -> str:
    settings = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "protocol.file.allow=always")
    done = subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()


class Trees:
    """`main`, its work tree `linked` (inside of it, as some clients make them), a `clone`, and `other`, no kin."""

    def __init__(self, ground: Ground):
        self.ground, base = ground, ground.folder
        for name in ("main", "other"):
            (base / name / "src").mkdir(parents=True)
            (base / name / "src" / "f").write_text(name)
            git(base, "init", "-q", name)
            git(base / name, "add", "src")
            git(base / name, "commit", "-qm", f"first of {name}")
        git(base / "main", "worktree", "add", "-q", "trees/linked")
        git(base, "clone", "-q", "main", "clone")
        self.main, self.other, self.clone = base / "main", base / "other", base / "clone"
        self.linked = self.main / "trees" / "linked"
        self.rows = {one: ground.session(one, f"label-{one}", directory=str(self.of(one)))
                     for one in ("main", "linked", "clone", "other")}  # fmt: skip

    def of(self, name: str) -> Path:
        found = getattr(self, name)
        assert isinstance(found, Path)
        return found

    def take(self, name: str, *files: str, logical: bool = True, **given) -> dict:
        """The session of that work tree locks files there."""
        with self.ground.store() as store:
            wanted = request(self.rows[name], list(files), logical=logical, **given)
            return store.locks.acquire_all(self.rows[name], wanted)[0]

    def refused(self, name: str, *files: str, logical: bool = True, **given) -> str:
        """The file that keeps such a request from being granted; empty where it is granted, and released again."""
        try:
            self.take(name, *files, logical=logical, **given)
        except LockRefused as refusal:
            return str(refusal.active["file"])
        with self.ground.store() as store:
            for file in files:
                store.locks.release(self.rows[name], file)
        return ""

    def write(self, name: str, file: str) -> str:
        """Why a write of that session to that file of its work tree is refused, by the hooks' own code."""
        with self.ground.store() as store:
            return verdict(store, self.rows[name], str(self.of(name) / file))["reason"] or ""


@pytest.fixture
def trees(ground: Ground) -> Trees:
    return Trees(ground)


def test_without_being_asked_a_lock_stays_in_its_work_tree(trees: Trees):
    trees.take("main", "src/f", logical=False)
    for name in ("linked", "clone"):
        assert not trees.write(name, "src/f")
        assert not trees.refused(name, "src/f") and not trees.refused(name, "src/f", logical=False)
    assert trees.ground.sql("SELECT repository FROM context") == [{"repository": None}]


@pytest.mark.parametrize("other", ["linked", "clone"])
@pytest.mark.parametrize(
    ("held", "wanted"), [("src/f", "src/f"), ("src", "src/f"), ("src/f", "src"), ("src", "src/new/g")]
)
@pytest.mark.sampled
def test_whichever_came_first_they_meet_in_all_work_trees(trees: Trees, other: str, held: str, wanted: str):
    first = trees.take("main", held)
    assert trees.refused(other, wanted) == first["file"]
    assert not trees.refused(other, "elsewhere")
    assert not trees.refused("other", wanted), "another repository with the same paths"
    assert not trees.refused(other, wanted, logical=False), "a work tree that takes no part"


def test_those_who_share_it_share_it_everywhere(trees: Trees):
    trees.take("main", "src/f", mode="shared")
    trees.take("clone", "src/f", mode="shared")
    assert trees.refused("linked", "src/f") in (str(trees.main / "src" / "f"), str(trees.clone / "src" / "f"))
    trees.take("linked", "src", mode="shared")
    assert trees.refused("main", "src/f", mode="exclusive")


def test_the_whole_of_a_work_tree(trees: Trees):
    trees.take("clone", ".")
    assert trees.refused("linked", "src/f") == trees.refused("main", "new") == str(trees.clone)


def test_a_work_tree_takes_part_by_a_lock_of_that_kind(trees: Trees):
    trees.take("main", "src/f")
    assert not trees.write("clone", "src/f") and not trees.write("linked", "src/f")
    trees.take("clone", "unrelated")
    reason = trees.write("clone", "src/f")
    assert f"for {trees.clone}/src/f (the same file of another work tree, {trees.main}/src/f, is locked" in reason
    assert "held by label-main" in reason
    assert not trees.write("clone", "src/g") and not trees.write("linked", "src/f")
    assert trees.refused("clone", "src/f", logical=False) == str(trees.main / "src" / "f")
    with trees.ground.store() as store:
        store.locks.release(trees.rows["clone"], "unrelated")
    assert not trees.write("clone", "src/f"), "no longer"


def test_a_plain_lock_of_a_work_tree_that_takes_part_is_met_as_well(trees: Trees):
    trees.take("clone", "src/f", logical=False)
    assert not trees.refused("main", "src/f")
    trees.take("clone", "unrelated")
    assert trees.refused("main", "src") == str(trees.clone / "src" / "f")


def test_the_setting_makes_every_lock_of_a_clone_one_of_all_work_trees(trees: Trees):
    git(trees.main, "config", "swarm.logical", "true")
    lock = trees.take("linked", "src/f", logical=False)
    first = git(trees.main, "rev-list", "--max-parents=0", "HEAD")
    assert lock["repository"] == f"{first}:src/f"
    assert "label-linked" in trees.write("main", "src/f")
    assert trees.refused("main", "src/f", logical=False) == str(trees.linked / "src" / "f")
    assert not trees.write("clone", "src/f"), "another clone has settings of its own"
    git(trees.clone, "config", "swarm.logical", "yes")
    assert "label-linked" in trees.write("clone", "src/f")
    git(trees.clone, "config", "swarm.logical", "off")
    assert not trees.write("clone", "src/f")


def test_a_clone_that_nobody_has_asked_about_is_known_at_its_first_write(trees: Trees):
    trees.take("main", "src/f")
    git(trees.clone, "config", "swarm.logical", "true")
    tree = repository.tree_at(str(trees.clone))
    assert tree and not repository.remembered(tree)
    assert trees.write("clone", "src/f")
    again = repository.tree_at(str(trees.clone))
    assert again and repository.remembered(again) == git(trees.main, "rev-list", "--max-parents=0", "HEAD")


def test_one_work_tree_alone_can_be_set(trees: Trees):
    git(trees.main, "config", "extensions.worktreeConfig", "true")
    git(trees.linked, "config", "--worktree", "swarm.logical", "true")
    trees.take("clone", "src/f")
    assert trees.write("linked", "src/f") and not trees.write("main", "src/f")


def test_another_repository_in_the_same_place_is_another(trees: Trees):
    old = repository.tree_at(str(trees.other))
    assert old and repository.learn(old, 10)
    subprocess.run(["rm", "-rf", str(trees.other)], check=True)
    git(trees.ground.folder, "clone", "-q", "main", "other")
    new = repository.tree_at(str(trees.other))
    assert new and repository.learn(new, 10) == git(trees.main, "rev-list", "--max-parents=0", "HEAD")


def test_a_repository_that_lacks_its_beginning_is_one_of_its_own_work_trees(trees: Trees):
    (trees.main / "more").write_text("x")
    git(trees.main, "add", "more")
    git(trees.main, "commit", "-qm", "second")
    git(trees.ground.folder, "clone", "-q", "--depth=1", f"file://{trees.main}", "shallow")
    shallow = trees.ground.folder / "shallow"
    git(shallow, "worktree", "add", "-q", "../beside")
    for name in ("shallow", "beside"):
        trees.rows[name] = trees.ground.session(name, name, directory=str(trees.ground.folder / name))
    lock = trees.take("shallow", "src/f")
    assert lock["repository"].startswith("folder=") and lock["repository"].endswith(":src/f")
    assert trees.refused("beside", "src/f") == str(shallow / "src" / "f")
    assert not trees.refused("main", "src/f")


def test_what_cannot_be_is_said(trees: Trees, tmp_path: Path):
    with pytest.raises(SwarmError, match="is a pattern: a lock of every work tree is on a file"):
        trees.take("main", "src/*.py")
    outside = trees.ground.session("outside", directory=str(tmp_path))
    with pytest.raises(SwarmError, match="is in no git repository"):
        request(outside, ["x"], logical=True)
    assert not trees.ground.sql("SELECT * FROM context")


def test_a_pattern_is_of_one_work_tree_and_meets_what_holds_in_all(trees: Trees):
    git(trees.main, "config", "swarm.logical", "true")
    trees.take("main", "src/**/*.sql", logical=False)
    assert not trees.write("linked", "src/a.sql"), "of one work tree"
    assert trees.refused("linked", "src/a.sql", logical=False) == str(trees.main / "src/**/*.sql"), "it could not hold"
    with trees.ground.store() as store:
        store.locks.release(trees.rows["main"], "src/**/*.sql")
    (trees.linked / "src" / "deep").mkdir()
    trees.take("linked", "src/deep", logical=False)
    assert trees.refused("main", "src/*/x.sql", logical=False) == str(trees.linked / "src" / "deep")


def test_what_lies_below_a_folder_is_found_by_its_name_here(trees: Trees):
    trees.take("main", "src/f")
    trees.take("clone", "unrelated")
    peers = Peers(StoreReader(trees.ground.database), trees.rows["clone"]["id"], time.time())
    (held,) = peers.under([str(trees.clone)])
    assert (held.file, held.elsewhere) == (str(trees.clone / "src" / "f"), str(trees.main / "src" / "f"))
    assert peers.under([str(trees.clone / "src")]) and not peers.under([str(trees.clone / "doc")])


def test_who_comes_later_waits_behind_who_waits_elsewhere(trees: Trees):
    trees.take("main", "src/f")
    with trees.ground.store() as store:
        wanted = request(trees.rows["clone"], ["src/f"], logical=True)
        ticket = store.queue.join(trees.rows["clone"], wanted, 60)
        store.locks.release(trees.rows["main"], "src/f")
        with pytest.raises(LockRefused):
            store.locks.acquire_all(trees.rows["linked"], request(trees.rows["linked"], ["src"], logical=True))
        assert store.locks.acquire_all(trees.rows["clone"], wanted._replace(ticket=ticket))


def test_whoever_was_refused_elsewhere_hears_when_it_is_free(trees: Trees):
    trees.take("main", "src/f")
    trees.take("clone", "unrelated")
    me, file = trees.rows["clone"], str(trees.clone / "src" / "f")
    with trees.ground.store() as store:
        assert store.denials.report(me, file, trees.rows["main"]["id"], Attempt("Write"))
        assert StoreReader(trees.ground.database).was_denied(
            me["id"], Peers(store.as_hooks_read_it(), me["id"], time.time()).on([file])[0], time.time() - 60
        )
        store.locks.release(trees.rows["main"], "src/f")
        (message,) = store.messages.peek(me)
    assert "is free" in message["content"]


def test_a_check_loads_nothing_of_this_where_no_lock_is_of_that_kind(trees: Trees, monkeypatch):
    trees.take("main", "src/f", logical=False)

    called = []
    for name in ("over", "under"):  # a fault in them would not fail the check: it lets the call pass
        monkeypatch.setattr(logical, name, lambda *_words, name=name: called.append(name) or [])
    assert not trees.write("clone", "src/f") and called == []
    trees.take("main", "src/f")
    assert not trees.write("clone", "src/f") and "over" in called


def test_the_hook_denies_the_same_file_of_another_work_tree(trees: Trees):
    ready_store()
    me = new_session()
    git(trees.clone, "config", "swarm.logical", "true")
    assert start("claude-code", me, trees.clone).context
    assert not write("claude-code", me, trees.clone, trees.clone / "src" / "f").reason
    trees.take("main", "src")
    reason = write("claude-code", me, trees.clone, trees.clone / "src" / "f").reason
    assert f"(the same folder of another work tree, {trees.main}/src, is locked for all work trees)" in reason
    assert not write("claude-code", me, trees.clone, trees.clone / "doc").reason


def test_the_flag_and_the_argument(trees: Trees):
    ground = trees.ground
    done = ground.swarm("lock", "src/f", "--logical", "--as", "label-main", cwd=trees.main)
    assert done.code == 0, done
    (lock,) = ground.swarm("locks", "--json", cwd=trees.main).json
    assert lock["repository"].endswith(":src/f")
    assert "all work trees" in ground.swarm("locks", cwd=trees.main).out
    clone = Hands(ground, trees.rows["clone"])
    assert clone.value("lock_file", file="src/f", logical=True)["active"]["id"] == lock["id"]
    assert clone.value("lock_file", file="src/f")["ok"] is True
    assert ground.swarm("lock", "x*y", "--logical", "--as", "label-main", cwd=trees.main).code == 1


def test_the_commit_guard_knows_them(trees: Trees):
    trees.take("main", "src/f", "other")
    (trees.clone / "src" / "f").write_text("changed")
    git(trees.clone, "add", "src")
    assert refusals("pre-commit", str(trees.clone), trees.rows["clone"]["id"]) == []
    git(trees.clone, "config", "swarm.logical", "true")
    (refusal,) = refusals("pre-commit", str(trees.clone), trees.rows["clone"]["id"])
    assert refusal.file == "src/f" and refusal.lock["owner_label"] == "label-main"
