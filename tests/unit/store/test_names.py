"""Locks on names that are no files: a port, a database, a device."""

import json
import subprocess
from pathlib import Path

import pytest
from support.files import folder_at
from support.fixtures import SWARM, Ground, wait_for

from swarm_mcp.store.lock_request import name_at, reach_of
from swarm_mcp.team.places import reach_at, spot_of


@pytest.fixture
def trees(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A linked work tree of the checkout."""
    monkeypatch.setenv("SWARM_DB_PATH", ground.database)
    user = ["-c", "user.name=t", "-c", "user.email=t@t"]
    for words in (["init", "-q"], [*user, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *words], cwd=ground.repo, check=True)
    linked = ground.folder / "linked"
    subprocess.run(["git", "worktree", "add", "-q", str(linked)], cwd=ground.repo, check=True, capture_output=True)
    return linked


def test_a_name_is_locked_in_all_work_trees_and_nowhere_else(ground: Ground, trees: Path) -> None:
    ann, bob = ground.session("ann"), ground.session("bob", directory=str(trees))
    apart = folder_at(ground.folder / "apart")
    other = ground.session("carol", directory=str(apart))
    taken = ground.swarm("lock", "--name", "port:3000", "--note", "dev server", "--as", ann["id"])
    assert (taken.code, taken.out) == (0, "locked name:port:3000\n")
    refused = ground.swarm("lock", "--name", "port:3000", "--as", bob["id"], cwd=trees)
    assert refused.code == 1 and "name:port:3000 by" in refused.err and "dev server" in refused.err
    assert ground.swarm("lock", "name:port:3000", "--as", other["id"], cwd=apart).code == 0, "another repository"
    assert ground.swarm("lock", "--name", "port:3001", "--as", bob["id"], cwd=trees).code == 0, "another name"
    why = ground.swarm("why", "--name", "port:3000", "--as", bob["id"], cwd=trees)
    assert why.out.startswith("name:port:3000\n  exclusive, held by") and "a write by" not in why.out, why.out
    found = json.loads(ground.swarm("why", "name:port:3000", "--json", cwd=trees).out)
    assert len(found["held"]) == 1 and found["write"] is None
    assert "name:port:3000" in ground.swarm("locks").out
    gone = ground.swarm("unlock", "--name", "port:3000", "--as", ann["id"])
    assert (gone.code, gone.out) == (0, "unlocked name:port:3000\n")
    assert ground.swarm("lock", "--name", "port:3000", "--as", bob["id"], cwd=trees).code == 0


def test_it_is_shared_leased_waited_for_and_handed_over(ground: Ground, trees: Path) -> None:
    ann, bob = ground.session("ann"), ground.session("bob", directory=str(trees))
    for who, cwd in ((ann, ground.repo), (bob, trees)):
        done = ground.swarm("lock", "--name", "db:test", "--shared", "--as", who["id"], cwd=cwd)
        assert done.code == 0, done.err
    also = ground.session("dora")
    assert ground.swarm("lock", "name:db:test", "--shared", "--as", also["id"]).out == "locked name:db:test (shared)\n"
    rows = [json.loads(ground.swarm("locks", "--json").out)[at]["file"] for at in (0, 1)]
    assert rows == ["name:db:test"] * 2, "two of one scope"
    for who, cwd in ((bob, trees), (also, ground.repo)):
        assert ground.swarm("unlock", "--name", "db:test", "--as", who["id"], cwd=cwd).code == 0
    asked = ground.swarm("request-lock", "name:db:test", "--reason", "mine", "--as", bob["id"], cwd=trees)
    assert asked.out.endswith("for name:db:test\n"), asked.err
    assert ground.swarm("lock", "--name", "db:test", "--ttl", "60", "--as", ann["id"]).code == 0
    fence = json.loads(ground.swarm("renew", "name:db:test", "--ttl", "90", "--as", ann["id"], "--json").out)["fence"]
    waiter = subprocess.Popen(
        [*SWARM, "hold", "--name", "db:test", "--wait", "60", "--as", bob["id"], "--", "echo", "mine"],
        cwd=trees, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(lambda: ground.sql("SELECT 1 FROM swarm_waiters"))
    assert ground.swarm("unlock", "--name", "db:test", "--fence", str(fence), "--as", ann["id"]).code == 0
    assert waiter.communicate(timeout=60)[0] == "mine\n" and waiter.returncode == 0
    assert ground.sql("SELECT 1 FROM context WHERE type = 'lock'") == []


def test_a_file_that_is_meant_as_a_name_is_told(ground: Ground, trees: Path, ann: dict) -> None:
    said = ground.swarm("lock", "port:3000", "--as", ann["id"]).out
    assert said.count("\n") == 1 and "there is no file port:3000: `--name port:3000`" in said, said
    assert "--name port:3000" in json.loads(ground.swarm("lock", "port:3000", "--as", ann["id"], "--json").out)["hint"]
    (ground.repo / "a:b").touch()
    assert "name" not in ground.swarm("lock", "a:b", "--as", ann["id"]).out, "it is a file"
    for wrong in ("a b", "a/b", "x" * 201):
        refused = ground.swarm("lock", "--name", wrong, "--as", ann["id"])
        assert refused.code == 1 and refused.err.count("\n") == 1 and "such as port:3000" in refused.err, refused.err
    both = ground.swarm("lock", "--name", "a", "--pattern", "--as", ann["id"])
    assert both.code == 2 and "exclude" in both.err


def test_a_folder_s_lock_and_the_repository_s_are_no_obstacle(ground: Ground, trees: Path) -> None:
    ann, bob = ground.session("ann"), ground.session("bob")
    for words in ((".",), ("--git",), ("**", "--pattern")):
        assert ground.swarm("lock", *words, "--as", ann["id"]).code == 0
    assert ground.swarm("lock", "--name", "port:3000", "--as", bob["id"]).code == 0
    assert ground.swarm("unlock", "--all", "--as", bob["id"]).out == "unlocked name:port:3000\n"


def test_a_team_shares_it_by_the_repository(ground: Ground, trees: Path) -> None:
    reach = name_at("port:3000", str(trees))
    spot = spot_of(reach, str(ground.repo))
    assert spot is not None and spot.shown == "name:port:3000"
    there = reach_at(spot, str(ground.repo))
    assert there == reach
    other = folder_at(ground.folder / "other")
    subprocess.run(["git", "init", "-q"], cwd=other, check=True)
    assert spot_of(name_at("port:3000", str(other)), str(ground.repo)) is None
    assert reach_of(ground.session("ann"), reach.key or "").key == reach.key
