"""The checker, a process of the session's MCP server, in the real clients: hooks start no Python of their own."""

import os
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from swarm_mcp.play.models import Player, Step, play

from .checks import assert_denied, assert_text
from .client import Client
from .ground import Ground, wait_for

pytestmark = pytest.mark.ways("install")
TRIES = 20  # a hook whose checker has no 50 ms of a busy machine runs alone
DENIES = """import sys
if "pre_tool_use" in sys.argv:
    print("the check ran in a process of its own", file=sys.stderr)
    sys.exit(2)
"""
SANDBOXES = {
    "claude-code": [("--settings", '{"sandbox": {"enabled": true}}')],
    "codex": [("-s", "workspace-write"), ("-s", "read-only")],
}


@contextmanager
def hooks_alone_deny(ground: Ground) -> Iterator[None]:
    """Have each check deny the call that runs in a process of its own."""
    entries = [path for path in ground.root.rglob("integrations/hook.py") if ground.checkout not in path.parents]
    assert entries, "no plugin is installed"
    texts = [path.read_text() for path in entries]
    try:
        for path in entries:
            path.write_text(DENIES)
        yield
    finally:
        for path, text in zip(entries, texts):
            path.write_text(text)


def answers(ground: Ground) -> int:
    """Return the number of hooks that checkers have answered."""
    return sum(int(path.read_text().split()[0] or 0) for path in _records(ground) if path.read_text())


def _records(ground: Ground) -> list[Path]:
    return [path for path in ground.root.rglob("checkers/*.answered") if ground.checkout not in path.parents]


def checkers(ground: Ground) -> list[int]:
    """Return the pids of the living checkers of this ground's clients."""
    names = {path.name.removesuffix(".answered").encode() for path in _records(ground)}
    found = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0") if folder.name.isdigit() else []
        except OSError:  # it has just ended
            continue
        if words[-3:-2] == [b"checker"] and words[-2] in names:
            found.append(int(folder.name))
    return found


def has_begun(ground: Ground) -> bool:
    """Return True once a checker waits for calls."""
    return bool(_records(ground))


@pytest.mark.promise("a call is checked by a process that is warm", only=("claude-code",))
def test_checks_start_no_python(client: Client) -> None:
    ground, before = client.ground, []
    ground.coordinator.register_peer()

    def moves() -> Generator[Step, list[str], None]:
        yield Step(calls=(client.create("first.md", "first\n"),))
        assert wait_for(lambda: has_begun(ground), 60), "no checker was started"
        before.append(answers(ground))
        with hooks_alone_deny(ground):
            for number in range(TRIES):
                yield Step(calls=(client.create(f"{number}.md", "second\n"),))
                if (ground.checkout / f"{number}.md").exists():
                    break

    client.models.players["work"] = Player(moves())
    client.ask(play("work"))
    assert_text(client, "first.md", "first\n")
    assert list(ground.checkout.glob("[0-9]*.md")), client.results("work")
    assert answers(ground) > before[0]


@pytest.mark.promise("a checker denies a write to a locked file as a process does", only=("codex",))
def test_a_lock_denies_beside_free_writes(client: Client) -> None:
    writes = [client.create("free.md", "free\n"), client.replace("free.md", "free", "changed")]
    with client.held("work", *writes, client.replace("notes.md", "line one", "line two"), at=2) as live:
        client.ground.coordinator.peer_lock("notes.md")
        assert wait_for(lambda: has_begun(client.ground), 60), "no checker was started"
        live.go_on()
    assert_text(client, "free.md", "changed\n")
    assert_denied(client, "work", "notes.md")
    assert_text(client, "notes.md", "line one\n")


@pytest.mark.parametrize("ends", [signal.SIGKILL, signal.SIGSTOP])
def test_a_checker_that_is_gone_or_stopped_leaves_the_check_to_a_process(client: Client, ends: signal.Signals) -> None:
    write = client.create("free.md", "free\n")
    with client.held("work", write, client.replace("notes.md", "line one", "line two"), at=1) as live:
        client.ground.coordinator.peer_lock("notes.md")
        assert wait_for(lambda: bool(checkers(client.ground)), 60), "no checker was started"
        stopped = checkers(client.ground)
        for pid in stopped:
            os.kill(pid, ends)
        try:
            live.go_on()
            assert_denied(client, "work", "notes.md")
        finally:
            for pid in stopped if ends == signal.SIGSTOP else ():
                with suppress(ProcessLookupError):  # its server has ended it
                    os.kill(pid, signal.SIGCONT)
    assert_text(client, "notes.md", "line one\n")


def test_it_holds_within_the_clients_own_sandboxes(client: Client) -> None:
    client.ground.coordinator.register_peer()
    for number, sandbox in enumerate(SANDBOXES[client.name]):
        writes = [client.create(f"{name}{number}.md", "free\n") for name in ("one", "two")]
        script, change = f"work{number}", client.replace("notes.md", "line one", "line two")
        with client.held(script, *writes, change, at=2, extra=sandbox) as live:
            peer = client.ground.coordinator.peer_lock("notes.md")
            live.go_on()
        assert_denied(client, script, "notes.md")
        if "read-only" not in sandbox:
            assert_text(client, f"two{number}.md", "free\n")
        client.ground.coordinator.json("unlock", "notes.md", "--as", peer)
