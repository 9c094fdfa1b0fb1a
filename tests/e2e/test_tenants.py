"""A live session works in a linked work tree, and a session of the other client takes that away."""

import subprocess

import pytest

from .client import Client
from .clients import CLIENTS
from .conversation import Conversation
from .ground import wait_for

pytestmark = pytest.mark.ways("install")

TREE = ".claude/worktrees/wt"
PEER = "the-night-shift"


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("command", [f"git worktree remove --force {TREE}", f"mv {TREE} ../moved"], ids=["git", "mv"])
def test_the_tree_of_a_live_session_is_taken_once_both_know(both: dict[str, Client], name: str, command: str) -> None:
    client, (other,) = both[name], set(CLIENTS) - {name}
    peer, ground = both[other], client.ground
    ground.git(ground.checkout, "worktree", "add", "-q", "--detach", TREE)
    tree = ground.checkout / TREE
    ground.git(tree, "commit", "-q", "--allow-empty", "-m", "Parse empty lines")
    words = ["git", "rev-parse", "--short", "HEAD"]
    lost = subprocess.run(words, cwd=tree, capture_output=True, text=True, check=True).stdout.strip()
    with Conversation(client) as session, Conversation(peer, {f"SWARM_{peer.prefix}_LABEL": PEER}, tree) as tenant:
        tenant.run("works", peer.shell("ls"))
        session.run("tries", client.shell(command))
        told = client.last_result("tries")
        assert f"in which {PEER}" in told and f'{lost} "Parse empty lines"' in told, told
        assert (tree / ".git").exists(), "it was denied"
        assert wait_for(lambda: notices(client), 60)
        tenant.run("hears", peer.shell("ls"))
        assert "was stopped once from a call that would" in peer.said("hears") and lost in peer.said("hears")
        session.run("again", client.shell(command))
        assert not tree.exists(), client.last_result("again")
        assert wait_for(lambda: notices(client), 60)
        tenant.run("asks", peer.shell("ls"))
        if peer.name == "codex":
            assert notices(client), "it starts no hook in a folder that has gone: the message waits"
            return
        assert "makes a call to" in peer.said("asks") and f"branch NAME {lost}" in peer.said("asks")


def notices(client: Client) -> list[tuple[object, ...]]:
    """Return the messages that the next hook of their session tells."""
    return client.ground.coordinator.query("SELECT message_id FROM swarm_notices")
