"""The verb `team` without a server, and the name of a repository for every origin of its clone."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from support.altered import Failing, Limits
from support.files import folder_at, program_at
from support.fixtures import Ground

from swarm_hook_core import clock, repository
from swarm_hook_core.process import host_id
from swarm_hook_core.repository import Tree
from swarm_hook_core.state import shares_locks
from swarm_mcp.doctor.own_checks import Asked
from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes.base import Finding
from swarm_mcp.store import Store
from swarm_mcp.team import TeamUnreachable, memberships, standing, verb
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.team.places import (
    CONFIGURED,
    FIRST_COMMIT,
    REMOTE,
    checked,
    identify,
    normalised,
    remote_of,
    upstream_of,
)

pytestmark = pytest.mark.thorough


SERVER = "postgresql://me@db.example.org/team"


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True)
    return done.stdout.strip()


class Played:
    """A server and a team agent that are played: the agent does its work as soon as it is poked, where it `works`."""

    def __init__(self, ground: Ground):
        self.ground = ground
        self.works = True
        self.asked: list[tuple[str, str]] = []
        self.is_told: dict | None = None  # the agent's status

    def ask(self, server: str, repository: str) -> None:
        self.asked.append((server, repository))

    def status(self, *_: object, **__: object) -> dict | None:
        return self.is_told

    def poke(self) -> None:
        if not self.works:
            return
        with Store(self.ground.database, tells=False) as store, store.database.writing():
            joined = memberships.memberships()
            TeamRows(store).set_trees({top: one.repository for one in joined for top in one.tops})
            now = {"fresh_until": clock.now() + 60, "booted": clock.boot(host_id()), "said_at": int(time.time())}
            for one in joined:
                TeamRows(store).note(one.repository, state="following", **now)


@pytest.fixture
def played(ground: Ground, monkeypatch: pytest.MonkeyPatch, limits: Limits, answering) -> Played:
    (ground.repo / ".git").rmdir()
    git(ground.folder, "init", "-q", str(ground.repo))
    git(ground.repo, "remote", "add", "origin", "git@example.org:org/app.git")
    found = Played(ground)
    monkeypatch.setattr(verb, "_ask", found.ask)
    monkeypatch.setattr(verb, "_give_back", lambda *_: None)
    answering(found)
    limits(verb, FIRST_SECONDS=0.3, LEAVE_SECONDS=0.3)
    return found


def test_a_clone_joins_and_leaves_and_nothing_is_left(ground: Ground, played: Played, store: Store) -> None:
    config = (ground.repo / ".git" / "config").read_bytes()
    done = ground.swarm("team", "join", SERVER)
    assert done.code == 0, done
    assert "this is example.org/org/app there, by the URL of its remote" in done.out
    assert played.asked == [(SERVER, "example.org/org/app")]
    assert git(ground.repo, "config", "swarm.logical") == "true" and shares_locks()
    assert git(ground.repo, "status", "--porcelain") == "", "nothing is written into the checkout"
    again = ground.swarm("team", "join", SERVER, "--json").json
    assert again["ok"] and not again["new"] and again["work_trees"] == [ground.scope]
    assert ground.swarm("team", "leave").code == 0
    assert not shares_locks() and memberships.memberships() == []
    assert (ground.repo / ".git" / "config").read_bytes() == config
    assert TeamRows(store).trees() == {} and TeamRows(store).repositories() == {}
    assert "has joined no team" in ground.swarm("team", "leave").err


@pytest.mark.parametrize(("before", "meanwhile", "after"), [
    ("true", None, "true"),
    ("false", None, "false"),
    ("", "false", "false"),
    ("true", "false", "false"),
])  # fmt: skip
def test_leaving_gives_the_setting_back_that_joining_has_changed(
    ground: Ground, played: Played, before: str, meanwhile: str | None, after: str
) -> None:
    if before:
        git(ground.repo, "config", "swarm.logical", before)
    assert ground.swarm("team", "join", SERVER).code == 0
    assert git(ground.repo, "config", "swarm.logical") == "true"
    if meanwhile:
        git(ground.repo, "config", "swarm.logical", meanwhile)
    assert ground.swarm("team", "leave").code == 0
    assert git(ground.repo, "config", "swarm.logical") == after


def test_a_password_is_told_where_it_belongs(ground: Ground, played: Played) -> None:
    done = ground.swarm("team", "join", "postgresql://me:pa55word@db.example.org/team")
    assert done.code == 1 and ".pgpass" in done.err and "service file" in done.err and "pa55word" not in done.err
    assert memberships.memberships() == [] and played.asked == []


def test_nothing_is_written_down_of_a_server_that_cannot_be_reached(
    ground: Ground, played: Played, failing: Failing
) -> None:
    failing(verb, "_ask", TeamUnreachable("no route"))
    done = ground.swarm("team", "join", SERVER)
    assert (done.code, done.err) == (1, "swarm-mcp team: no route\n")
    assert not shares_locks() and git(ground.repo, "config", "swarm.logical") == ""


def test_one_server_and_one_name_at_a_time(ground: Ground, played: Played) -> None:
    assert ground.swarm("team", "join", SERVER).code == 0
    for words in (["other-service"], [SERVER, "--repository", "another"]):
        assert "`swarm-mcp team leave` comes first" in ground.swarm("team", "join", *words).err


def test_a_fork_is_told_of_the_repository_that_it_comes_from(ground: Ground, played: Played) -> None:
    git(ground.repo, "remote", "add", "upstream", "https://example.org/them/app")
    done = ground.swarm("team", "join", SERVER)
    assert "--repository example.org/them/app" in done.out
    assert ground.swarm("team", "leave").code == 0
    done = ground.swarm("team", "join", SERVER, "--repository", "example.org/them/app")
    assert done.code == 0 and "this is example.org/them/app there, by the name given" in done.out
    assert "upstream" not in done.out


def test_joining_says_where_nothing_comes_of_it(ground: Ground, played: Played) -> None:
    played.works = False
    done = ground.swarm("team", "join", SERVER)
    assert done.code == 1 and "the team agent does not start" in done.err
    assert memberships.memberships(), "it is joined: the agent may start later"


def test_where_there_is_no_repository(ground: Ground, played: Played) -> None:
    done = ground.swarm("team", "join", SERVER, cwd=ground.folder)
    assert done.code == 1 and "is not in a git repository" in done.err


def test_status_at_a_glance_says_how_fresh_it_is(ground: Ground, played: Played) -> None:
    assert "team" not in ground.swarm("status").out + ground.swarm("status", "--json").out
    assert ground.swarm("team", "join", SERVER).code == 0
    assert "team: example.org/org/app, fresh\n" in ground.swarm("status").out
    assert ground.swarm("status", "--json").json["team"]["fresh"] is True
    played.works = False
    with ground.store() as store, TeamRows(store).writing():
        TeamRows(store).note("example.org/org/app", fresh_until=clock.now() - 1, said_at=int(time.time()) - 900)
    assert "its server was not heard of for 15 min: swarm-mcp team status" in ground.swarm("status").out


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"shares": False, "not_shared": []}, "messages, tasks and values: the server is older"),
        (
            {"shares": True, "not_shared": [["value", "large", "it has 200000 bytes"]]},
            "value large: it has 200000 bytes",
        ),
        ({"shares": True, "not_shared": []}, ""),
    ],
)
def test_status_and_doctor_say_what_stays_on_this_machine(
    ground: Ground, played: Played, monkeypatch: pytest.MonkeyPatch, facts: dict, said: str
) -> None:
    assert ground.swarm("team", "join", SERVER).code == 0
    repository = {"repository": "example.org/org/app", **facts}
    played.is_told = {"pid": 1, "servers": [{"server": SERVER, "repositories": [repository]}]}
    monkeypatch.setattr(standing, "_told", lambda *_: {"error": "", "milliseconds": 1.0, "machines": []})
    monkeypatch.setattr(standing, "_proof", lambda _: Finding("team proof", "ok", ""))
    shown = ground.swarm("team", "status").out
    (found, _) = standing.findings(Asked("", ()))
    assert ("on this machine only" in shown) is bool(said) and said in shown
    assert (found.status == "warn") is bool(said) and said in found.message


def test_the_status_of_nobody(ground: Ground) -> None:
    assert ground.swarm("team", "status").out == "no clone on this machine has joined a team\n"
    assert ground.swarm("team", "status", "--json").json["ok"] is True


def clone_git(folder: Path, *words: str) -> str:
    told = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]
    done = subprocess.run(["git", "-C", str(folder), *told, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A repository with two commits."""
    folder = folder_at(tmp_path / "origin")
    clone_git(folder, "init", "-q", "-b", "main")
    for text in ("one", "two"):
        (folder / "f").write_text(text)
        clone_git(folder, "add", "f")
        clone_git(folder, "commit", "-qm", text)
    return folder


def cloned(origin: Path, name: str, *options: str, remote: str = "") -> Path:
    folder = origin.parent / name
    clone_git(origin.parent, "clone", "-q", *options, origin.as_uri(), str(folder))
    if remote:
        clone_git(folder, "remote", "set-url", "origin", remote)
    return folder


def tree(folder: Path) -> Tree:
    found = repository.tree_at(str(folder))
    assert found is not None
    return found


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/Org/app.git",
        "https://user:secret@EXAMPLE.org:8443/org/app/",
        "http://example.org//org/app.git/",
        "ssh://git@example.org:2222/org/app.git",
        "git+ssh://git@example.org/org/app",
        "git@example.org:org/app.git",
        "git@example.org:/org/app.git",
        "example.org:org/app",
        "git://example.org./org/app",
        "https://example.org/org/%61pp",
    ],
)
def test_one_repository_has_one_name_however_it_is_fetched(url: str) -> None:
    assert normalised(url) == "example.org/org/app"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("git@ssh.github.com:org/app.git", "github.com/org/app"),
        ("ssh://git@altssh.gitlab.com:443/org/sub/app.git", "gitlab.com/org/sub/app"),
        ("https://dev.azure.com/org/project/_git/app", "dev.azure.com/org/project/app"),
        ("git@ssh.dev.azure.com:v3/org/project/app", "dev.azure.com/org/project/app"),
        ("https://bitbucket.example.org/scm/key/app.git", "bitbucket.example.org/key/app"),
        ("ssh://git@bitbucket.example.org:7999/key/app.git", "bitbucket.example.org/key/app"),
        ("git@[2001:db8::1]:org/app.git", "2001:db8::1/org/app"),
        ("ssh://git@[2001:db8::1]:22/org/app.git", "2001:db8::1/org/app"),
        ("git@192.0.2.7:app.git", "192.0.2.7/app"),
    ],
)
def test_hosts_that_go_by_several_names_or_paths(url: str, name: str) -> None:
    assert normalised(url) == name


@pytest.mark.parametrize(
    "url",
    [
        "/srv/git/app.git",
        "../app",
        "./a:b",
        "file:///srv/git/app.git",
        "http://local_proxy@127.0.0.1:41729/git/org/app",
        "http://localhost:3000/org/app.git",
        "http://[::1]/org/app",
        "git@localhost:org/app",
        "https://example.org/",
        "https://[broken/app",
        "",
    ],
)
def test_a_remote_on_this_machine_names_nothing_elsewhere(url: str) -> None:
    assert normalised(url) == ""


@pytest.mark.parametrize("name", ["work", "github.com-work"])
def test_a_persons_own_name_for_a_host_is_looked_up_in_the_configuration_of_ssh(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = program_at(
        tmp_path / "bin" / "ssh", '#!/bin/sh\n[ "$1 $2" = "-G --" ] && echo "user git" && echo "hostname GitHub.com"\n'
    )
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    assert normalised(f"git@{name}:org/app.git") == "github.com/org/app"
    assert normalised("git@example.org:org/app.git") == "example.org/org/app", "a name of the internet is not looked up"


def test_the_remote_names_a_clone_and_its_own_configuration_is_applied(origin: Path) -> None:
    clone = cloned(origin, "clone", remote="short:org/app.git")
    clone_git(clone, "config", "url.https://example.org/.insteadOf", "short:")
    assert identify(tree(clone)) == ("example.org/org/app", REMOTE)
    clone_git(clone, "remote", "rename", "origin", "only")
    assert identify(tree(clone)) == ("example.org/org/app", REMOTE)
    clone_git(clone, "remote", "add", "other", "https://example.org/other")
    assert remote_of(tree(clone)) == "", "which of the two it is, nobody can say"


def test_committed_configuration_comes_first_and_reaches_shallow_clones(origin: Path) -> None:
    (origin / ".swarmconfig").write_text(
        '[swarm]\n\trepository = team/app  # ours\n[include]\n\tpath = ".git/config"\n'
    )
    clone_git(origin, "add", ".swarmconfig")
    clone_git(origin, "commit", "-qm", "what it is called")
    clone = cloned(origin, "shallow", "--depth", "1", remote="https://example.org/org/app")
    assert identify(tree(clone)) == ("team/app", CONFIGURED)
    (clone / ".swarmconfig").write_text("[swarm]\n\trepository = something/else\n")
    assert identify(tree(clone)).id == "team/app", "what is not committed is not the same in other clones"


def test_the_first_commit_names_a_clone_without_a_remote_for_others(origin: Path) -> None:
    first = clone_git(origin, "rev-list", "--max-parents=0", "HEAD")
    clone = cloned(origin, "clone")
    assert identify(tree(clone)) == identify(tree(origin)) == (f"commit:{first}", FIRST_COMMIT)


def test_a_shallow_clone_that_nothing_names_is_told_what_to_do(origin: Path) -> None:
    clone = cloned(origin, "shallow", "--depth", "1")
    with pytest.raises(SwarmError, match="its remote is on this machine, and a shallow clone .*swarm.repository NAME"):
        identify(tree(clone))
    empty = folder_at(origin.parent / "empty")
    clone_git(empty, "init", "-q")
    with pytest.raises(SwarmError, match="it has no remote, and it has no commit yet"):
        identify(tree(empty))


def test_a_fork_is_a_repository_of_its_own_and_knows_where_it_comes_from(origin: Path) -> None:
    fork = cloned(origin, "fork", remote="git@example.org:me/app.git")
    assert upstream_of(tree(fork)) == ""
    clone_git(fork, "remote", "add", "upstream", "https://example.org/org/app.git")
    assert identify(tree(fork)).id == "example.org/me/app"
    assert upstream_of(tree(fork)) == "example.org/org/app"


@pytest.mark.parametrize("text", ["", "  ", "two words", "tab\there", "bell\a", "x" * 201])
def test_what_cannot_be_a_name_is_refused(text: str) -> None:
    with pytest.raises(SwarmError, match="cannot name a repository"):
        checked(text)
