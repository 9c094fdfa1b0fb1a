"""Codex as it starts without flags: terminals share one background server, where the hooks run."""

import pytest

from swarm_mcp.play.models import Gate, Step, play

from .checks import assert_denied
from .clients import Codex
from .ground import wait_for

pytestmark = [pytest.mark.only("codex"), pytest.mark.ways("install")]
SHARED = ["codex"]


@pytest.fixture
def codex(client: Codex) -> Codex:
    client.model = client.code_model
    return client


def test_locks_hold_in_the_shared_server(codex: Codex) -> None:
    codex.ground.coordinator.peer_lock("notes.md")
    with codex.interactive(command=SHARED) as terminal:
        codex.turn(terminal, "work", codex.replace("notes.md", "line one", "line two"))
    assert_denied(codex, "work", "notes.md")


def test_each_terminal_is_a_session(codex: Codex) -> None:
    coordinator = codex.ground.coordinator
    with codex.interactive(command=SHARED) as one, codex.interactive(command=SHARED) as two:
        codex.turn(one, "first", codex.create("one.md", "one\n"))
        codex.turn(two, "second", codex.create("two.md", "two\n"))
        assert len(coordinator.sessions()) == 2, coordinator.sessions()


@pytest.mark.thorough
def test_each_terminal_publishes_its_own_pane(codex: Codex) -> None:
    """S29: the server has the first terminal's environment."""
    coordinator = codex.ground.coordinator
    gates = {name: Gate() for name in ("one", "two")}
    for name, gate in gates.items():
        last = Step(text=f"The script {name} is over.", gate=gate)
        codex.models.script(name, codex.create(f"{name}.md", "new\n"), last)
    with (
        codex.interactive(env={"HERDR_PANE_ID": "p_1"}, command=SHARED) as first,
        codex.interactive(env={"HERDR_PANE_ID": "p_2"}, command=SHARED) as second,
    ):
        for terminal, name in ((first, "one"), (second, "two")):
            terminal.enter(play(name))
            assert gates[name].wait_reached(), terminal.screen()
        sessions = coordinator.sessions()
        values = [str(coordinator.kv(f"identity/workspace/herdr/{row['id']}")) for row in sessions]
    panes = [[pane for pane in ("p_1", "p_2") if pane in value] for value in values]
    assert sorted(panes) == [["p_1"], ["p_2"]], f"published for {len(sessions)} sessions: {values}"


def test_leaving_a_terminal_ends_its_session(codex: Codex) -> None:
    """S30: the server lives on."""
    coordinator = codex.ground.coordinator
    with codex.interactive(command=SHARED) as terminal:
        codex.turn(terminal, "work", codex.create("one.md", "one\n"))
        assert len(coordinator.sessions()) == 1, coordinator.sessions()
        terminal.enter(codex.leave)
        terminal.wait_ended()
        gone = wait_for(lambda: coordinator.sessions() == [], 6.0, 0.3)
    assert gone, f"still registered 6 s after the terminal was left: {coordinator.sessions()}"
