"""A session's sweep over files with lines of several is denied; the undo that the denial names does it for its own."""

import re

import pytest

from .checks import assert_text
from .client import Client
from .clients import CLIENTS
from .conversation import Conversation

pytestmark = pytest.mark.ways("install")

COMMITTED = "one\ntwo\nthree\nfour\nfive\n"
OTHERS = "one\ntwo\nPEER\nfour\nPERSON\n"
NAMED = re.compile(r"`(swarm-mcp undo [^`]+)`")


@pytest.mark.parametrize("command", ["git checkout .", "git stash"])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_denied_sweep_names_the_undo_of_the_session_s_own_lines(
    both: dict[str, Client], name: str, command: str
) -> None:
    client, (peer,) = both[name], [one for one in both.values() if one.name != name]
    ground = client.ground
    (ground.checkout / "shared.md").write_text(COMMITTED)
    (ground.checkout / "own.md").write_text(COMMITTED)
    ground.commit(ground.checkout)
    (ground.checkout / "shared.md").write_text(COMMITTED.replace("five", "PERSON"))
    with Conversation(client) as session, Conversation(peer) as other:
        other.run("peer", peer.replace("shared.md", "three", "PEER"))
        session.run("mine", client.replace("shared.md", "one", "MINE"), client.replace("own.md", "one", "MINE"))
        session.run("sweep", client.shell(command))
        assert_text(client, "shared.md", OTHERS.replace("one", "MINE"))
        named = NAMED.search(client.last_result("sweep"))
        assert named, client.last_result("sweep")
        session.run("undo", client.shell(named.group(1)))
        assert_text(client, "shared.md", OTHERS)
        assert_text(client, "own.md", COMMITTED)
        back = NAMED.search(client.last_result("undo"))
        assert back, client.last_result("undo")
        session.run("back", client.shell(back.group(1)))
        assert_text(client, "shared.md", OTHERS.replace("one", "MINE"))
        assert_text(client, "own.md", COMMITTED.replace("one", "MINE"))
