"""The name of a repository in a team, for every origin of its clone."""

import os
import subprocess
from pathlib import Path

import pytest

from swarm_hook_core import repository
from swarm_hook_core.repository import Tree
from swarm_mcp.errors import SwarmError
from swarm_mcp.team.repository_identity import (
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


def git(folder: Path, *words: str) -> str:
    told = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]
    done = subprocess.run(["git", "-C", str(folder), *told, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A repository with two commits."""
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for text in ("one", "two"):
        (folder / "f").write_text(text)
        git(folder, "add", "f")
        git(folder, "commit", "-qm", text)
    return folder


def cloned(origin: Path, name: str, *options: str, remote: str = "") -> Path:
    folder = origin.parent / name
    git(origin.parent, "clone", "-q", *options, origin.as_uri(), str(folder))
    if remote:
        git(folder, "remote", "set-url", "origin", remote)
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
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1 $2" = "-G --" ] && echo "user git" && echo "hostname GitHub.com"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    assert normalised(f"git@{name}:org/app.git") == "github.com/org/app"
    assert normalised("git@example.org:org/app.git") == "example.org/org/app", "a name of the internet is not looked up"


def test_the_remote_names_a_clone_and_its_own_configuration_is_applied(origin: Path) -> None:
    clone = cloned(origin, "clone", remote="short:org/app.git")
    git(clone, "config", "url.https://example.org/.insteadOf", "short:")
    assert identify(tree(clone)) == ("example.org/org/app", REMOTE)
    git(clone, "remote", "rename", "origin", "only")
    assert identify(tree(clone)) == ("example.org/org/app", REMOTE)
    git(clone, "remote", "add", "other", "https://example.org/other")
    assert remote_of(tree(clone)) == "", "which of the two it is, nobody can say"


def test_committed_configuration_comes_first_and_reaches_shallow_clones(origin: Path) -> None:
    (origin / ".swarmconfig").write_text(
        '[swarm]\n\trepository = team/app  # ours\n[include]\n\tpath = ".git/config"\n'
    )
    git(origin, "add", ".swarmconfig")
    git(origin, "commit", "-qm", "what it is called")
    clone = cloned(origin, "shallow", "--depth", "1", remote="https://example.org/org/app")
    assert identify(tree(clone)) == ("team/app", CONFIGURED)
    (clone / ".swarmconfig").write_text("[swarm]\n\trepository = something/else\n")
    assert identify(tree(clone)).id == "team/app", "what is not committed is not the same in other clones"


def test_the_first_commit_names_a_clone_without_a_remote_for_others(origin: Path) -> None:
    first = git(origin, "rev-list", "--max-parents=0", "HEAD")
    clone = cloned(origin, "clone")
    assert identify(tree(clone)) == identify(tree(origin)) == (f"commit:{first}", FIRST_COMMIT)


def test_a_shallow_clone_that_nothing_names_is_told_what_to_do(origin: Path) -> None:
    clone = cloned(origin, "shallow", "--depth", "1")
    with pytest.raises(SwarmError, match="its remote is on this machine, and a shallow clone .*swarm.repository NAME"):
        identify(tree(clone))
    empty = origin.parent / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    with pytest.raises(SwarmError, match="it has no remote, and it has no commit yet"):
        identify(tree(empty))


def test_a_fork_is_a_repository_of_its_own_and_knows_where_it_comes_from(origin: Path) -> None:
    fork = cloned(origin, "fork", remote="git@example.org:me/app.git")
    assert upstream_of(tree(fork)) == ""
    git(fork, "remote", "add", "upstream", "https://example.org/org/app.git")
    assert identify(tree(fork)).id == "example.org/me/app"
    assert upstream_of(tree(fork)) == "example.org/org/app"


@pytest.mark.parametrize("text", ["", "  ", "two words", "tab\there", "bell\a", "x" * 201])
def test_what_cannot_be_a_name_is_refused(text: str) -> None:
    with pytest.raises(SwarmError, match="cannot name a repository"):
        checked(text)
