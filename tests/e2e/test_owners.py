"""Owners of uncommitted work within one session, and after a formatter that the client runs."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from swarm_mcp.play.models import play

from .appserver import trust_hooks
from .checks import assert_text
from .client import Client
from .clients import Codex
from .ground import wait_for
from .test_own_commit import asked
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


SPACED = "f( 1 )\ng( 2 )\nh( 3 )\n"
BEFORE = {"spaces": SPACED, "line ends": SPACED.replace("\n", "\r\n"), "a byte order mark": f"\ufeff{SPACED}"}
FORMATTED = "f(1)\ng(22)\nh(3)\n"
FORMATTER = """\
import sys
sys.stdin.read()
with open("w.ts", "rb") as file:
    text = file.read()
with open("w.ts", "wb") as file:
    file.write(text.removeprefix(b"\\xef\\xbb\\xbf").replace(b"( ", b"(").replace(b" )", b")").replace(b"\\r\\n", b"\\n"))
"""
EDITS = {"claude-code": "Edit|Write", "codex": "apply_patch|Edit|Write"}


@contextmanager
def formatter(client: Client) -> Iterator[None]:
    """Have the client run a formatter after each edit, by a hook in its user's settings."""
    home = client.ground.home
    program = home / "formatter.py"
    program.write_text(FORMATTER)
    hook = {"type": "command", "command": f"{sys.executable} {program}"}
    group = {"matcher": EDITS[client.name], "hooks": [hook]}
    settings = home / (".claude/settings.json" if client.name == "claude-code" else ".codex/hooks.json")
    before = settings.read_text() if settings.exists() else ""
    given = json.loads(before or "{}")
    given.setdefault("hooks", {}).setdefault("PostToolUse", []).append(group)
    settings.write_text(json.dumps(given))
    try:
        if client.name == "codex":
            trust_hooks(client.ground)
        yield
    finally:
        if before:
            settings.write_text(before)
        else:
            settings.unlink()


@pytest.mark.parametrize("what", BEFORE)
def test_a_session_keeps_a_file_that_its_client_s_formatter_lays_out(what: str, client: Client) -> None:
    ground, file = client.ground, client.ground.checkout / "w.ts"
    file.write_bytes(BEFORE[what].encode())
    ground.commit(ground.checkout)
    for name, value in (("user.name", "t"), ("user.email", "t@t")):
        ground.git(ground.checkout, "config", name, value)
    edit, more = client.change("w.ts", "g( 2 )", "g( 22 )"), client.change("w.ts", "h(3)", "h( 33 )")
    blame, commit = client.shell("swarm-mcp blame w.ts"), client.shell("swarm-mcp commit -m formatted w.ts")
    with formatter(client):
        client.run("formatted", *edit, blame, commit, *more, client.shell("cat w.ts; git checkout -- w.ts"))
    told = client.results("formatted")
    assert "g(22)" in told[len(edit)] and "a person" not in told[len(edit)], told
    assert asked(client, "log", "-1", "--format=%s") == "formatted\n", told
    assert asked(client, "show", "HEAD:w.ts") == FORMATTED, told
    assert "h(33)" in told[-1], told
    assert file.read_text() == FORMATTED and asked(client, "status", "--porcelain", "w.ts") == "", told
