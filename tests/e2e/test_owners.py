"""Owners of uncommitted work within one session, and work trees that a session leaves, in real clients."""

import pytest

from .checks import assert_text
from .client import Client
from .clients import Codex
from .ground import wait_for
from .models import play
from .test_persons_work import COMMANDS

pytestmark = pytest.mark.ways("install")

CHANGE = ("notes.md", "line one", "line two")


def test_agents_and_the_main_thread_do_not_lose_each_other_s_work(client: Client) -> None:
    """The first agent changes a file and goes on. The others may lose the change after that agent's end alone.

    The second agent tries each command that destroys uncommitted work in public reports.
    """
    if isinstance(client, Codex):
        client.model = client.code_model
    client.models.script("first", client.replace(*CHANGE), client.create("idea.md", "idea\n"))
    commands = [one.replace("FILE", "notes.md").replace("NEW", "idea.md") for one in COMMANDS.values()]
    client.models.script("second", *map(client.shell, commands))
    running = client.hold("first", 2)
    first, second = client.sub_agent("first"), client.sub_agent("second", "another")
    # The first agent has begun and changed the file before the second one begins: it still runs.
    calls = [first[0], client.shell("git stash"), client.shell("rm notes.md"), second[0], *first[1:]]
    with client.held("work", *calls, client.shell("echo main > notes.md"), at=1) as live:
        assert running.wait_reached(), client.results("first")
        later = client.hold("work", len(calls))
        live.gate.open()
        assert later.wait_reached(), client.results("work")
        assert wait_for(lambda: len(client.results("second")) == len(commands), 40), "the sibling came to no end"
        told = client.results("work")[1:3]
        assert all("your agent" in one and "of this session" in one for one in told), told
        told = client.results("second")
        assert all("agent" in one and "of this session" in one for one in told), told
        assert_text(client, "notes.md", "line two\n")
        assert_text(client, "idea.md", "idea\n")
        running.open()
        assert wait_for(lambda: not agents_in(client), 20), agents_in(client)
        later.open()
        assert live.process.wait(60) == 0
    assert_text(client, "notes.md", "main\n")


def agents_in(client: Client) -> list[str]:
    """Return swarm's files of running agents."""
    return [path.read_text() for path in client.ground.home.rglob("traces/*/*.agents")]


def test_a_session_in_a_linked_work_tree_is_stopped_once_before_it_writes_outside(client: Client) -> None:
    tree = client.ground.tmp / f"linked-{client.name}"
    client.ground.git(client.ground.checkout, "worktree", "add", "-q", str(tree))
    file = client.ground.checkout / "new.md"
    write = client.shell(f"echo x > {file}") if isinstance(client, Codex) else client.create("new.md", "x\n")
    client.models.script("work", write)
    assert client.ground.start(client.command(play("work"), None, None, ()), cwd=tree).wait(60) == 0
    told = client.last_result("work")
    assert "which lies in the main checkout" in told and str(tree / "new.md") in told, told
    assert not file.exists()
