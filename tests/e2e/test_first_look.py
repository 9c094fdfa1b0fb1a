"""The program in front of the check (`native/`), as the platform's wheel carries it, in the real clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from .checks import assert_denied, assert_text
from .client import Client
from .ground import Ground

pytestmark = pytest.mark.ways("install")
DENIES = """import sys
if "pre_tool_use" in sys.argv:
    print("the check was started in Python", file=sys.stderr)
    sys.exit(2)
"""
SANDBOXES = {
    "claude-code": [("--settings", '{"sandbox": {"enabled": true}}')],
    "codex": [("-s", "workspace-write"), ("-s", "read-only")],
}


@contextmanager
def python_denies(ground: Ground) -> Iterator[None]:
    """Have each start of the check in Python deny the call."""
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


def the_hook_has_it(client: Client) -> bool:
    """Return True if an installed hook of the client's names the program."""
    hooks = [path for path in client.ground.root.rglob("hooks.json") if client.ground.checkout not in path.parents]
    return any("swarm_mcp/bin/swarm_check" in path.read_text() for path in hooks)


def test_a_free_write_starts_no_python(client: Client) -> None:
    assert the_hook_has_it(client), "the wheel was built without the program: see PROGRAM in the Makefile"
    client.ground.coordinator.register_peer()
    steps = [client.create(f"{name}.md", f"{name}\n") for name in ("first", "second")]
    with client.held("work", *steps, client.replace("second.md", "second", "changed"), at=1) as live:
        with python_denies(client.ground):
            live.go_on()
    assert_text(client, "first.md", "first\n")
    assert_text(client, "second.md", "changed\n")


@pytest.mark.promise("a lock denies a write also after writes that passed without Python")
def test_a_lock_denies_beside_free_writes(client: Client) -> None:
    writes = [client.create("free.md", "free\n"), client.replace("free.md", "free", "changed")]
    with client.held("work", *writes, client.replace("notes.md", "line one", "line two"), at=2) as live:
        client.ground.coordinator.peer_lock("notes.md")
        live.go_on()
    assert_text(client, "free.md", "changed\n")
    assert_denied(client, "work", "notes.md")
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
