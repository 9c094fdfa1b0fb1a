"""A session hears of others' uncommitted changes at its start and at each turn, in the real client."""

import pytest

from .client import Client

pytestmark = pytest.mark.ways("install")


@pytest.mark.promise("a session hears of others' uncommitted changes")
def test_a_session_is_told_of_others_changes_when_it_starts_and_at_its_next_turn(client: Client) -> None:
    first, second = client.create("plan.md", "mine\n"), client.create("sub/more.md", "mine\n")
    with client.held("peer", first, second, at=1) as peer, client.interactive() as terminal:
        client.turn(terminal, "one")
        assert _news(client, "one") == ["plan.md"]
        gate = client.hold("peer", 2)
        peer.gate.open()
        assert gate.wait_reached()
        client.turn(terminal, "two")
        assert _news(client, "two") == ["plan.md", "sub/more.md"], "each once, with what it was told before"
        client.ground.commit(client.ground.checkout)
        client.run("three")
        assert _news(client, "three") == []
        gate.open()


def _news(client: Client, script: str) -> list[str]:
    """The files that the model has been told of by then, as often as it was."""
    by = f": by {client.name} "
    lines = [line for line in client.context(script).splitlines() if line.startswith("- ") and by in line]
    assert all(" ago" in line or " now" in line for line in lines), lines
    return [name for line in lines for name in line[2:].partition(": by ")[0].split(", ")]
