"""A person's slash commands and a model's calls, inside the clients."""

import json

import pytest
from support.requirement import requirement

from swarm_mcp.play.models import play

from .checks import assert_denied
from .client import Client
from .clients import Codex
from .coordinator import PEER_NAME

# Tests that do not depend on the way of installing run in one of them; a few in both, as a sample.
pytestmark = pytest.mark.ways("install")

TYPED = {"claude-code": "/swarm status", "codex": "$swarm:swarm status"}


def ask_for_status(client: Client, *extra: str, first: str = "true") -> str:
    """Type the command; the scripted model runs the skill's command. Returns the model's view of it."""
    client.ground.coordinator.peer_lock("notes.md")
    client.models.script("status", client.shell(f"{first}; swarm-mcp status"))
    client.ask(f"{TYPED[client.name]} {play('status')}", extra=extra)
    assert "swarm-mcp status" in client.context("status"), "the command did not unfold into the skill's text"
    return client.last_result("status")


@pytest.mark.promise("people and models read the state", only=("codex-install",))
@pytest.mark.from_git
@pytest.mark.from_clone
@requirement("P-25")
def test_the_status_command(client: Client) -> None:
    """S5."""
    shown = ask_for_status(client)
    assert PEER_NAME in shown and "notes.md" in shown, shown
    assert client.name in shown, f"the session itself is not in its status: {shown}"


@pytest.mark.only("codex")
def test_the_status_command_in_a_read_only_sandbox(client: Codex) -> None:
    shown = ask_for_status(client, "-s", "read-only", first="touch written")
    assert not (client.ground.checkout / "written").exists(), "the sandbox lets the shell write: nothing is proven"
    assert PEER_NAME in shown and "notes.md" in shown, shown


def test_the_server_knows_its_session(client: Client) -> None:
    coordinator = client.ground.coordinator
    with client.held("work", *client.swarm_tools(("whoami", {})), at=-2) as live:
        (own,) = coordinator.sessions()
        live.go_on()
    assert own["id"] in client.last_result("work"), client.results("work")


@pytest.mark.promise("a model's lock denies another session's write", only=("claude-code",))
def test_a_lock_taken_by_the_model_denies_another_session(client: Client) -> None:
    """`lock_file` from inside one session, a write from another, and the holder's own write passes."""
    coordinator = client.ground.coordinator
    file = str(client.ground.checkout / "notes.md")
    label = {f"SWARM_{client.prefix}_LABEL": "the-holder"}
    lock = client.swarm_tools(("lock_file", {"file": file, "reason": "taken from inside"}))
    own_write = client.replace("notes.md", "line one", "line two")
    with client.held("holding", *lock, own_write, at=len(lock), env=label) as holder:
        held = [(row["file"], row.get("content")) for row in coordinator.locks()]
        client.run("other", client.replace("notes.md", "line one", "mine"))
        assert_denied(client, "other", "notes.md", holder="the-holder", note="taken from inside")
        holder.go_on()
    assert held == [(file, "taken from inside")], (held, client.results("holding"))
    assert (client.ground.checkout / "notes.md").read_text() == "line two\n", json.dumps(client.results("holding"))
    assert coordinator.locks() == [], "the lock outlived its session"
