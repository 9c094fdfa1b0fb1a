"""A check's words and actions in a joined work tree, by the freshness of this machine's copy."""

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.altered import Limits
from support.sessions import hook_core, mistakes, new_session, peer_locks, ready_store, run, start, write, write_payload

from swarm_hook_core import clock, team
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.process import host_id
from swarm_hook_core.state import state_dir, team_socket
from swarm_mcp.store import Store, driver

pytestmark = pytest.mark.slow


class Tree:
    """A work tree that has joined, and a session in it."""

    def __init__(self, top: Path):
        self.top = top
        top.mkdir()
        subprocess.run(["git", "init", "-q", str(top)], check=True)
        ready_store()
        self.me = new_session()
        assert start("claude-code", self.me, top).context  # before the clone counts as joined: a team agent would look
        os.makedirs(Path(state_dir(), "team", "clones"))
        with Store() as store:
            with store.database.writing():
                store.database.change(
                    "INSERT INTO swarm_team_trees (top, repository) VALUES (?, 'example.org/app')", (str(top),)
                )
                store.database.change(
                    "INSERT INTO swarm_team_repositories (id, epoch, version, state) VALUES ('example.org/app', 'e', 1, 'joined')"
                )

    def fresh(self, seconds: float, booted: str | None = None, state: str = "joined", silent: int = 0) -> None:
        """Make the copy fresh for so many seconds from now, or stale: then the server was last heard of 15 min ago."""
        said_at = int(time.time()) - (silent or (900 if seconds < 0 else 0))
        with Store(tells=False) as store, store.database.writing():
            store.database.change(
                "UPDATE swarm_team_repositories SET fresh_until = ?, booted = ?, said_at = ?, state = ?",
                (clock.now() + seconds, clock.boot(host_id()) if booted is None else booted, said_at, state),
            )

    def shell(self, command: str, **env: str) -> str:
        payload = write_payload("claude-code", self.me, self.top, "f")
        return run(
            "claude-code", "pre_tool_use", {**payload, "tool_name": "Bash", "tool_input": {"command": command}}, env
        ).out


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "clone")


def test_nothing_is_said_while_it_is_fresh(tree: Tree) -> None:
    tree.fresh(60)
    assert write("claude-code", tree.me, tree.top, tree.top / "f").out == ""
    assert tree.shell("echo x > f") == ""
    assert mistakes() == []


def test_a_session_is_told_once_for_each_time_without_news_and_its_calls_go_ahead(tree: Tree) -> None:
    tree.fresh(-1)
    told = write("claude-code", tree.me, tree.top, tree.top / "f").out
    assert "has not heard from the server of example.org/app for 15 min" in told and '"deny"' not in told
    assert write("claude-code", tree.me, tree.top, tree.top / "f").out == ""
    assert tree.shell("echo x > f") == ""
    tree.fresh(-0.5)
    assert "has not heard" in tree.shell("echo x > f"), "it has been fresh in between"
    assert mistakes() == []


def test_what_becomes_fresh_while_a_check_looks_at_the_locks_is_not_fresh_for_it(tree: Tree, monkeypatch) -> None:
    """The news that make it fresh may have brought the lock that was looked for in vain."""
    tree.fresh(-1)
    core = hook_core("claude-code")
    core.driver = driver.load()
    look = StoreReader.locks_on

    def look_too_early(reader: StoreReader, keys: list[str]) -> list:
        found = look(reader, keys)
        tree.fresh(60)
        return found

    monkeypatch.setattr(StoreReader, "locks_on", look_too_early)
    verdict = core.check(ToolCall("Write", {"file_path": str(tree.top / "f"), "content": ""}, tree.me, str(tree.top)))
    assert verdict.denial is None and "has not heard from the server" in verdict.notice


@pytest.fixture
def agent(tree: Tree) -> Iterator[None]:
    """A team agent that, once it is called, brings the lock of another session."""

    def answer() -> None:
        with contextlib.suppress(OSError):
            listener.accept()[0].close()
            peer_locks(tree.top, tree.top / "f", "theirs")
            while True:  # whoever calls is told at once
                tree.fresh(60, state="following")
                listener.accept()[0].close()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(team_socket())
        listener.listen()
        answering = threading.Thread(target=answer)
        answering.start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
        answering.join()


@pytest.mark.parametrize("how", ["by its clock", "by the time of day"])
def test_a_machine_that_has_slept_asks_again_before_it_answers(
    how: str, tree: Tree, agent: None, checks_have_time: None, limits: Limits
) -> None:
    limits(team, ANEW_SECONDS=30.0)
    tree.fresh(-1 if how == "by its clock" else 60, state="following", silent=900 if how == "by the time of day" else 0)
    core = hook_core("claude-code")
    core.driver = driver.load()
    verdict = core.check(ToolCall("Write", {"file_path": str(tree.top / "f"), "content": ""}, tree.me, str(tree.top)))
    assert verdict.denial is not None and "theirs" in verdict.denial.reason


def test_without_an_agent_it_does_not_wait(tree: Tree) -> None:
    tree.fresh(-1, state="following")
    assert "has not heard from the server" in write("claude-code", tree.me, tree.top, tree.top / "f").out


@pytest.mark.parametrize("tool", ["write", "shell"])
def test_strict_denies(tree: Tree, tool: str) -> None:
    tree.fresh(-1)
    for _ in range(2):
        told = (
            write("claude-code", tree.me, tree.top, tree.top / "f", SWARM_STRICT="1").out
            if tool == "write"
            else tree.shell("echo x > f", SWARM_STRICT="1")
        )
        assert '"deny"' in told and "`strict` is on" in told
    assert tree.shell("ls -l", SWARM_STRICT="1") == "", "it writes nothing"
    assert mistakes() == []


def test_what_was_known_denies_all_the_same(tree: Tree) -> None:
    tree.fresh(-1)
    peer_locks(tree.top, tree.top / "f", "mine")
    assert "held by" in write("claude-code", tree.me, tree.top, tree.top / "f").reason


def test_other_work_trees_are_not_concerned(tree: Tree, tmp_path: Path) -> None:
    tree.fresh(-1)
    (tmp_path / "clone-beside").mkdir()
    assert write("claude-code", tree.me, tree.top, tmp_path / "clone-beside" / "f").out == ""
    assert tree.shell(f"echo x > {tmp_path}/other") == ""
    assert "has not heard" in tree.shell(f"cd {tmp_path} && echo x > clone/f")


def test_a_link_into_the_work_tree_leads_there(tree: Tree, tmp_path: Path) -> None:
    tree.fresh(-1)
    (tmp_path / "link").symlink_to(tree.top)
    assert "has not heard" in write("claude-code", tree.me, tmp_path, tmp_path / "link" / "f").out


def test_an_earlier_start_of_the_machine_proves_nothing(tree: Tree) -> None:
    tree.fresh(60, booted="another")
    assert "has not heard" in write("claude-code", tree.me, tree.top, tree.top / "f").out


def test_a_tree_that_has_heard_nothing_yet_is_not_fresh(tree: Tree) -> None:
    assert "since it has joined" in write("claude-code", tree.me, tree.top, tree.top / "f").out
