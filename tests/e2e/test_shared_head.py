"""Two sessions in one work tree: one moves HEAD, and the other commits; a whole write is judged by its text.

The mover is denied once, with the other's name; having been told, it switches. The other is told before its commit
lands on a branch that it does not know.
"""

import subprocess

import pytest

from .client import Client
from .clients import CLIENTS
from .conversation import Conversation

pytestmark = pytest.mark.ways("install")

GIT = "git -c user.name=e2e -c user.email=e2e@localhost"
PEER = "the-night-shift"
# the client of the session under test, and its model: one that refuses to overwrite unread files, one that does not
SESSIONS = [("claude-code", "claude-haiku-4-5"), ("claude-code", "claude-opus-5-5"), ("codex", "")]


@pytest.fixture(params=SESSIONS, ids=["-".join(filter(None, one)) for one in SESSIONS])
def pair(
    request: pytest.FixtureRequest, both: dict[str, Client], monkeypatch: pytest.MonkeyPatch
) -> tuple[Client, Client]:
    """The session's client, with its model, and the other one's."""
    name, model = request.param
    (other,) = set(CLIENTS) - {name}
    if model:
        monkeypatch.setitem(both[name].ground.env, "ANTHROPIC_MODEL", model)
    return both[name], both[other]


def branch_of(client: Client) -> str:
    return asked(client, "branch", "--show-current").strip()


def asked(client: Client, *words: str) -> str:
    """Return git's answer in the checkout."""
    command = ["git", *words]
    return subprocess.run(command, cwd=client.ground.checkout, capture_output=True, text=True, check=True).stdout


@pytest.mark.promise("HEAD is not moved under another session without a word")
def test_a_switch_is_denied_once_and_the_other_is_told_before_its_commit(pair: tuple[Client, Client]) -> None:
    client, peer = pair
    first = branch_of(client)
    client.ground.git(client.ground.checkout, "branch", "feature")
    commit = f"{GIT} commit -q --allow-empty -m night"
    with Conversation(client) as session, Conversation(peer, env={f"SWARM_{peer.prefix}_LABEL": PEER}) as other:
        client.ground.models.script("works", *(peer.shell(command) for command in ("ls", commit, commit)))
        before_the_commit = peer.hold("works", 1)
        other.say("Please <<play works>> now.")
        assert before_the_commit.wait_reached()
        session.run("tries", client.shell("git switch feature"))
        told = client.last_result("tries")
        assert PEER in told and "git worktree add" in told and "the same command again goes ahead" in told, told
        assert branch_of(client) == first
        session.run("again", client.shell("git switch feature"))
        assert branch_of(client) == "feature", client.last_result("again")

        before_the_commit.open()
        other.wait()
        _listed, told, meant = peer.results("works")
        assert "switched this work tree" in told and f"it was on {first}, and is on feature now" in told, told
        assert "PreToolUse" in told and "PreToolUse" not in meant, (told, meant)
        assert asked(client, "log", "--format=%s").split("\n").count("night") == 1


def test_the_denial_of_a_whole_write_shows_the_change_and_a_text_that_keeps_it_passes(
    pair: tuple[Client, Client],
) -> None:
    client, peer = pair
    file = client.ground.checkout / "whole.md"
    file.write_text("alpha\nbeta\ngamma\n")
    client.ground.commit(client.ground.checkout)

    def overwrites(middle: str) -> str:
        return f"cat > whole.md <<'EOF'\nMINE\n{middle}\ngamma\nEOF\n"

    with Conversation(client) as session, Conversation(peer) as other:
        session.run("reads", client.shell("cat whole.md"))
        other.run("changes", peer.shell("sed -i s/beta/PEER/ whole.md"))
        for script in ("first", "second"):
            session.run(script, client.shell(overwrites("beta")))
            told = client.last_result(script)
            assert "| -beta" in told and "| +PEER" in told, told
            assert file.read_text() == "alpha\nPEER\ngamma\n", "denied, however often it is tried"
        session.run("third", client.shell(overwrites("PEER")))
        assert file.read_text() == "MINE\nPEER\ngamma\n", client.last_result("third")
