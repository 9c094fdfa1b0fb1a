"""Machines of a team with a server in memory: following it, storms, and the records of joined clones."""

import os
import re
import stat
from pathlib import Path

import pytest
from support import following_cases
from support.document_storm import Storm
from support.fake_team import FakeTeam
from support.files import folder_at
from support.following_cases import *  # noqa: F403
from support.team_machines import REPOSITORY
from support.world import git

from swarm_hook_core import clock, repository
from swarm_hook_core.state import state_dir
from swarm_mcp.errors import LockRefused, SwarmError
from swarm_mcp.team import TeamUnreachable, memberships, protocol
from swarm_mcp.team.memberships import Membership, checked_server, machine
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.team.protocol import GRACE, MESSAGE, REFUSED, STALE, TASK, UNKNOWN_SESSION, VALUE, item

pytestmark = pytest.mark.thorough


def test_after_a_failover_grants_are_confirmed_anew_and_what_others_have_is_given_up(team, laptop, sandbox, one, other):
    laptop.take(one, "kept.py")
    version = team.repositories[REPOSITORY].version
    laptop.take(one, "lost.py")
    sandbox.follow()
    team.restore(REPOSITORY, version)
    sandbox.follow()
    assert sandbox.take(other, "lost.py")["answer"] == "granted"
    laptop.follow()
    sandbox.follow()
    assert sorted(laptop.held()) == [("kept.py", "here"), ("lost.py", "sandbox")]
    assert sorted(sandbox.held()) == [("kept.py", "laptop"), ("lost.py", "here")]
    assert laptop.row("kept.py")["team_fence"] == sandbox.row("kept.py")["team_fence"]
    first, second = laptop.mail(one)
    assert "failover" in first and "lost.py" in second


def test_after_a_new_epoch_known_locks_deny_until_their_machine_has_spoken_or_its_lease_is_over(team, laptop, sandbox):
    one, other = laptop.session("one"), sandbox.session("other")

    def denied(*files):
        for file in files:
            with pytest.raises(LockRefused):
                sandbox.lock(other, file)

    for file in ("a.py", "b.py"):
        laptop.take(one, file)
    sandbox.follow()
    denied("a.py", "b.py")
    team.void(REPOSITORY)
    for _ in range(2):
        sandbox.follow()
        denied("a.py", "b.py")
    sandbox.begin()  # another agent
    sandbox.follow()
    denied("a.py", "b.py")
    assert sandbox.mail(other) == []
    laptop.store.locks.release(one, "b.py")  # unknown to the server
    laptop.follow()
    sandbox.follow()
    assert sandbox.held() == [("a.py", "laptop")]
    assert sandbox.row("a.py")["team_fence"] == laptop.row("a.py")["team_fence"]
    (told,) = sandbox.mail(other)
    assert "b.py is free" in told and "no longer holds it" in told
    team.void(REPOSITORY)
    sandbox.follow()
    denied("a.py")
    team.grace = 0.0  # the laptop is cut off
    sandbox.follow()
    (told,) = sandbox.mail(other)
    assert "a.py is free" in told and "has lapsed" in told
    assert sandbox.take(other, "a.py")["answer"] == "granted"
    laptop.follow()
    assert laptop.held() == [("a.py", "sandbox")] and "a.py" in laptop.mail(one)[-1]


def test_after_a_new_epoch_the_line_is_what_it_was(team, laptop, sandbox):
    one, other, third = laptop.session("one"), sandbox.session("other"), sandbox.session("third")
    held = sandbox.take(other, "a.py") and sandbox.row("a.py")
    laptop.follow()
    wait = following_cases.waiting(laptop, one, "a.py")
    assert wait.advance(laptop.store) is None
    both = (laptop, sandbox)
    for each in both:
        each.follow()
    team.void(REPOSITORY)
    sandbox.follow()
    sandbox.store.locks.release(other, held["file"])
    with pytest.raises(LockRefused):  # the laptop's session goes first
        sandbox.lock(third, "a.py")
    for each in (*both, *both):
        each.follow()
    assert sandbox.mail(third) == []
    assert len(sandbox.ground.sql("SELECT 1 FROM swarm_waiters")) == 1
    wait.give_up(laptop.store)


def test_a_server_that_loses_grants_once_more_while_it_is_greeted_is_greeted_again(machines, team):
    laptop, _ = machines
    one = laptop.session("one")
    laptop.take(one, "a.py")
    version, after = team.repositories[REPOSITORY].version, laptop.server.after
    team.restore(REPOSITORY, version)
    after["hello"] = lambda: after.update(hello=lambda: team.restore(REPOSITORY, version))  # after the second one
    with pytest.raises(TeamUnreachable):
        laptop.follow()
    laptop.follow()
    assert laptop.row("a.py")["team_fence"]


def test_after_a_loss_nothing_is_fresh_before_all_who_were_there_have_been_heard(machines, team):
    """A machine that has not heard of it yet goes on with earlier grants, unknown here by now."""
    laptop, _ = machines

    def fresh_until():
        return TeamRows(laptop.store).repositories()[REPOSITORY].fresh_until

    laptop.follow()
    assert fresh_until() > clock.now()
    team.restore(REPOSITORY, team.repositories[REPOSITORY].version)
    team.grace = 5.0
    laptop.follow()
    assert fresh_until() is None
    laptop.follow()
    assert fresh_until() is None
    team.grace = 0.0
    laptop.follow()
    assert fresh_until() > clock.now()


def test_a_session_that_comes_back_late_does_not_believe_its_grants(team, laptop, sandbox, one: dict, other: dict):
    laptop.take(one, "a.py")
    laptop.take(one, "b.py")
    sandbox.session("other")
    team.clock += protocol.SESSION_LEASE + 1
    sandbox.follow()
    sandbox.server.reap(REPOSITORY)
    sandbox.follow()
    assert sandbox.held() == []
    assert sandbox.take(other, "a.py")["answer"] == "granted"
    laptop.follow()
    assert sorted(laptop.held()) == [("a.py", "sandbox"), ("b.py", "here")]
    assert laptop.row("b.py")["team_fence"]
    (told,) = laptop.mail(one)
    assert "a.py" in told


def test_a_replica_that_was_away_too_long_takes_everything(team, laptop, sandbox, one: dict, other: dict):
    laptop.take(one, "old.py")
    sandbox.take(other, "mine.py")
    laptop.store.locks.release(one, "old.py")
    laptop.take(one, "new.py")
    team.kept = 0
    laptop.follow()
    sandbox.follow()
    assert sorted(sandbox.held()) == [("mine.py", "here"), ("new.py", "laptop")]
    sandbox.begin()
    sandbox.ground.sql("UPDATE swarm_team_repositories SET version = 0")
    sandbox.begin()
    sandbox.follow()
    assert sorted(sandbox.held()) == [("mine.py", "here"), ("new.py", "laptop")]
    assert sandbox.row("mine.py")["team_fence"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(int(os.environ.get("SWARM_STORMS", "6"))))
def test_a_storm(tmp_path: Path, seed: int) -> None:
    Storm(tmp_path, seed, FakeTeam()).run(steps=120)


def test_documents_in_memory():
    team = FakeTeam()
    laptop, sandbox = team.server("laptop"), team.server("sandbox")
    for one in (laptop, sandbox):
        one.hello("app")
        one.beat("app", 0, 0, [{"session": f"{one.machine}-s", "label": "", "lease": 60}])

    def put(machine, *given, **more):
        return machine.put("app", [item(*given, **more)], 0, 0)[0]

    first = put(laptop, VALUE, "k", 0, "a")
    assert first["ok"] and put(laptop, VALUE, "k", 0, "a") == first
    late = put(sandbox, VALUE, "k", 0, "a")
    assert (late["ok"], late["why"], late["version"], late["machine"]) == (False, STALE, first["version"], "laptop")
    assert put(sandbox, VALUE, "k", first["version"], "ab")["ok"]
    assert put(laptop, VALUE, "k", first["version"], "ab")["why"] == STALE

    task = put(laptop, TASK, "t", 0, {"status": "open", "assignee": None})["version"]
    claim = {"status": "claimed", "assignee": "sandbox-s"}
    assert put(sandbox, TASK, "t", task, {**claim, "assignee": "nobody"})["why"] == UNKNOWN_SESSION
    team.grace = 1.0
    assert put(sandbox, TASK, "t", task, claim)["why"] == GRACE
    team.grace = 0.0
    assert put(sandbox, TASK, "t", task, claim)["ok"]
    assert put(laptop, TASK, "t", task, {"status": "claimed", "assignee": "laptop-s"})["body"] == claim

    assert put(laptop, MESSAGE, "m", 0, {"sender": "sandbox-s"})["why"] == REFUSED
    sent = put(laptop, MESSAGE, "m", 0, {"sender": "laptop-s"})
    assert put(laptop, MESSAGE, "m", sent["version"], {"sender": "laptop-s"}) == sent
    assert put(laptop, MESSAGE, "m", 0, None)["why"] == REFUSED
    assert put(laptop, VALUE, "k2", 0, "\0")["why"] == REFUSED and put(laptop, VALUE, "k2", 0, "\\u0000")["ok"]

    assert put(laptop, VALUE, "k2", 1, None)["why"] == STALE
    gone = laptop.look("app")["all"]["documents"][-1]
    assert put(laptop, VALUE, "k2", gone["version"], None)["ok"] and put(laptop, VALUE, "k2", 0, None)["version"] == 0
    kinds = [change["kind"] for change in sandbox.beat("app", 1, 7)["news"]["changes"]]
    assert kinds == ["session", *["document"] * 6, "document_gone"]
    assert [row["key"] for row in sandbox.hello("app")["news"]["all"]["documents"]] == ["k", "t", "m"]
    assert "documents" not in laptop.mine("app")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = folder_at(tmp_path / "clone")
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
    inner = folder_at(clone.parent / "inner")
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
