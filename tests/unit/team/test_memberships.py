"""Records of the clones that have joined a team, and how a server may be named in them."""

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from swarm_hook_core import repository
from swarm_hook_core.state import state_dir
from swarm_mcp.errors import SwarmError
from swarm_mcp.team import memberships
from swarm_mcp.team.memberships import Membership, checked_server, machine

pytestmark = pytest.mark.thorough


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        [
            "git",
            "-C",
            str(folder),
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.org",
            "-c",
            "protocol.file.allow=always",
            *words,
        ],
        check=True,
        capture_output=True,
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def member(folder: Path, joined_at: int = 1) -> Membership:
    tree = repository.tree_at(str(folder))
    assert tree is not None
    return Membership(tree.common, tree.top, "example.org/app", "remote", "postgresql://me@db/team", joined_at)


def test_a_clone_is_remembered_with_all_its_work_trees_until_it_leaves(clone: Path) -> None:
    git(clone, "worktree", "add", "-q", "../beside")
    one = member(clone)
    assert memberships.memberships() == []
    memberships.remember(one)
    assert memberships.memberships() == [one]
    beside = repository.tree_at(str(clone.parent / "beside"))
    assert beside is not None and memberships.membership_of(beside) == one
    assert one.tops == [str(clone), str(clone.parent / "beside")]
    file = next(Path(state_dir(), "team", "clones").iterdir())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    memberships.forget(one)
    memberships.forget(one)
    assert memberships.memberships() == [] and memberships.membership_of(beside) is None


def test_the_work_tree_of_a_submodule_is_known(clone: Path) -> None:
    inner = clone.parent / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "commit", "-q", "--allow-empty", "-m", "first")
    git(clone, "submodule", "--quiet", "add", str(inner), "sub")
    assert member(clone / "sub").tops == [str(clone / "sub")]
    assert member(clone).tops == [str(clone)]


def test_a_clone_that_has_gone_has_no_work_trees(clone: Path) -> None:
    one = member(clone)
    assert one.is_there
    clone.rename(clone.parent / "moved")
    assert not one.is_there and one.tops == []


def test_a_broken_record_is_left_out(clone: Path) -> None:
    memberships.remember(member(clone))
    folder = Path(state_dir(), "team", "clones")
    (folder / "x.json").write_text("{")
    (folder / "y.json").write_text("[]")
    (folder / "z.json").write_text("{}")
    assert len(memberships.memberships()) == 1


def test_a_machine_keeps_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_TEAM_MACHINE", "Ann's laptop")
    name = machine()
    assert re.fullmatch("Ann-s-laptop-[0-9a-f]{6}", name)
    monkeypatch.setenv("SWARM_TEAM_MACHINE", "other")
    assert machine() == name
    assert os.listdir(memberships.team_folder()) == ["machine"]


@pytest.mark.parametrize(
    ("given", "server"),
    [
        ("postgresql://me@db.example.org:5433/team?sslmode=verify-full", None),
        ("postgres://db/team?passfile=/run/pgpass", None),
        ("postgresql:///team?host=/run/postgresql", None),
        ("host=db dbname=team user=me", None),
        ("our-team", "service=our-team"),
        ("service=our.team_2", "service=our.team_2"),
    ],
)
def test_servers(given: str, server: str | None) -> None:
    assert checked_server(given) == (server or given)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:pa55word@db/team",
        "postgresql://me:@db/team",
        "postgresql://me@db/team?password=pa55word",
        "postgresql://me@db/team?sslpassword=pa55word",
        "host=db password=pa55word",
        "password = 'pa55word' host=db",
    ],
)
def test_a_password_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(SwarmError, match="pgpass") as error:
        checked_server(text)
    assert "pa55word" not in str(error.value)


@pytest.mark.parametrize("text", ["", "mysql://db/team", "a b", "postgresql://[db/team"])
def test_what_names_no_server_is_refused(text: str) -> None:
    with pytest.raises(SwarmError):
        checked_server(text)
