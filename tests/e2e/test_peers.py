"""Claude Code and Codex side by side: each keeps off the other's locked files."""

import json

import pytest
from support.requirement import requirement

from .checks import assert_denied, assert_text
from .client import Client
from .clients import CLIENTS
from .models import play

# Tests that do not depend on the way of installing run in one of them; a few in both, as a sample.
pytestmark = pytest.mark.ways("install")

PAIRS = [(holder, writer) for holder in CLIENTS for writer in CLIENTS if holder != writer]


@pytest.mark.promise("locks hold between clients")
@pytest.mark.parametrize(("holder", "writer"), PAIRS, ids=lambda name: name)
@requirement("P-23")
def test_each_other_s_locks(both: dict[str, Client], holder: str, writer: str) -> None:
    coordinator = both[holder].ground.coordinator
    lock = both[holder].swarm_tools(("lock_file", {"file": "notes.md", "reason": "from the other kind"}))
    with both[holder].held("holding", *lock, at=len(lock)) as live:
        assert len(coordinator.locks()) == 1, both[holder].results("holding")
        both[writer].run("writing", both[writer].replace("notes.md", "line one", "line two"))
        assert_denied(both[writer], "writing", "notes.md", holder=f"held by {holder} ", note="from the other kind")
        both[writer].run("elsewhere", both[writer].create("free.md", "free\n"))
        assert_text(both[writer], "free.md", "free\n")
        live.go_on()
    both[writer].run("afterwards", both[writer].replace("notes.md", "line one", "line two"))
    assert_text(both[writer], "notes.md", "line two\n")


@pytest.mark.parametrize(("holder", "writer"), PAIRS, ids=lambda name: name)
def test_a_killed_peer_of_the_other_kind(both: dict[str, Client], holder: str, writer: str) -> None:
    coordinator = both[holder].ground.coordinator
    with both[holder].held("holding", both[holder].create("new.md", "new\n")) as live:
        (own,) = coordinator.sessions()
        coordinator.lock(own["id"], "notes.md", "never to be released")
        live.kill()
    both[writer].run("writing", both[writer].replace("notes.md", "line one", "line two"))
    assert_text(both[writer], "notes.md", "line two\n")


@pytest.mark.promise("mail reaches models")
def test_a_model_hears_of_its_mail_at_its_next_prompt_and_at_its_next_call(client: Client) -> None:
    coordinator = client.ground.coordinator
    peer = coordinator.register_peer("night-shift")

    def send(words: str) -> None:
        coordinator.text("send", "--to", own["id"], words, "--as", peer)

    with client.interactive() as terminal:
        client.turn(terminal, "one", client.shell("ls"))
        (own,) = (row for row in coordinator.sessions() if row["id"] != peer)
        send("before a prompt")
        client.turn(terminal, "two", client.shell("ls"), client.shell("ls -a"))
        assert _times_told(client, "two", "before a prompt") == 1, client.said("two")
        assert "before a prompt" in client.context("two")
        client.models.script("three", client.shell("ls"), client.shell("ls -a"))
        gate = client.hold("three", 0)
        terminal.enter(play("three"))
        assert gate.wait_reached()
        send("before a call")
        gate.open()
        terminal.wait_for("The script three is over", 60)
        assert "before a call" not in client.context("three")
        assert _times_told(client, "three", "before a call") == 1, client.said("three")
        unread = [row["content"] for row in coordinator.json("messages", "--to", own["id"]) if not row["read"]]
        assert unread == ["before a prompt", "before a call"], "a line is no delivery"


def _times_told(client: Client, script: str, words: str) -> int:
    """Return the number of times that the newest request of `script` has a message with these words."""
    body = json.dumps(client.exchanges(script)[-1].body)
    return body.count(f"It says: {json.dumps(json.dumps(words))[1:-1]}")
