"""A client's own rewind takes a peer's lines along: its next prompt tells, and `swarm-mcp undo` brings them back."""

import re
from uuid import uuid4

import pytest

from swarm_mcp.play.models import play

from .client import Client
from .conversation import Conversation
from .ground import has_text, wait_for
from .test_merged_writes import BEFORE, FILE, commit, read

pytestmark = [
    pytest.mark.ways("install"),
    pytest.mark.promise(
        "a client's own rewind that takes others' lines along is told, and can be undone", only=("typed",)
    ),
]


def undone(client: Client, said: str) -> str:
    """Type the command that the model was told; return the file's text then."""
    found = re.search(r"took back 1 line of \w+ \w+ in work.md: tell your user. `swarm-mcp (undo --undo \w+)`", said)
    assert found, re.findall(r"swarm: .{,400}", said) or said[-4000:]
    client.ground.coordinator.json(*found[1].split())
    return (client.ground.checkout / FILE).read_text()


def test_a_rewind_of_claude_code(both: dict[str, Client]) -> None:
    client, peer = both["claude-code"], both["codex"]
    path, message = client.ground.checkout / FILE, str(uuid4())
    path.write_text(BEFORE)
    commit(client, client.ground.checkout)
    client.models.script("work", read(client, FILE), client.replace(FILE, "line 8", "by me"))
    client.models.script("next", client.shell("true"))
    env = {"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "1"}
    with Conversation(client, env=env) as session, Conversation(peer) as another:
        session.say(f"Please {play('work')} now.", message)
        session.wait()
        another.run("change", read(peer, FILE), peer.replace(FILE, "line 2", "by another"))
        assert "by another" in path.read_text() and "by me" in path.read_text()
        answer = session.rewind(message)
        assert path.read_text() == BEFORE, answer
        session.say(play("next"))
        session.wait()
    assert undone(client, client.said("next")) == BEFORE.replace("line 2", "by another")


def test_a_rewind_that_is_typed_at_claude_code(both: dict[str, Client]) -> None:
    client, peer = both["claude-code"], both["codex"]
    path = client.ground.checkout / FILE
    path.write_text(BEFORE)
    commit(client, client.ground.checkout)
    with Conversation(peer) as another, client.interactive() as terminal:
        client.turn(terminal, "work", read(client, FILE), client.replace(FILE, "line 8", "by me"))
        another.run("change", read(peer, FILE), peer.replace(FILE, "line 2", "by another"))
        assert "by another" in path.read_text() and "by me" in path.read_text()
        terminal.enter("/rewind")
        for shown, key in (
            (r"❯ \(current\)", "Up"),
            (r"❯ Please", "Enter"),
            (r"❯ 1\. Restore code and conversation", "Down"),
            (r"❯ 2\.", "Down"),
            (r"❯ 3\. Restore code", "Enter"),
        ):
            terminal.wait_for(shown)
            terminal.press(key)
        assert wait_for(lambda: has_text(path, BEFORE), 20), terminal.screen()
        terminal.wait_until_gone("Restore code")
        client.turn(terminal, "next", client.shell("true"))
    assert undone(client, client.said("next")) == BEFORE.replace("line 2", "by another")
