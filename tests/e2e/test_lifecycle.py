"""A session is in the store for exactly as long as it lives, in all its fates."""

import json
import re

import pytest
from support.requirement import requirement

from swarm_hook_core.naming import holder_name
from swarm_mcp.play.models import Step, play

from .checks import assert_denied, assert_text, play_a_compaction
from .client import Client
from .coordinator import PEER_NAME
from .ground import IDENTITY, wait_for

# Tests that do not depend on the way of installing run in one of them; a few in both, as a sample.
pytestmark = pytest.mark.ways("install")

CHANGE = ("notes.md", "line one", "line two")
PANE = "p_77"
GONE = 6.0  # seconds that an interactive client may take for its end after its screen is gone


@pytest.mark.promise("a session is known from its start", only=("install",))
@pytest.mark.each_way
@pytest.mark.from_git
@pytest.mark.from_clone
@requirement("P-23")
def test_registered_before_the_first_tool_call(client: Client) -> None:
    """S1: one row, labelled, named to the model, and gone after the session's end."""
    coordinator = client.ground.coordinator
    with client.held("work", client.create("new.md", "new\n")) as live:
        sessions = coordinator.sessions()
        live.go_on()
    assert len(sessions) == 1, sessions
    label = sessions[0]["label"]
    short = r"session:[0-9a-f]{8}"
    assert re.fullmatch(rf"identity:{IDENTITY} {client.name} platform:cli origin:{client.name} {short}", label), label
    assert sessions[0]["id"] in client.context("work"), "the model was not told as whom it is registered"
    assert coordinator.sessions() == []


@pytest.mark.thorough
@requirement("P-07")
def test_the_model_hears_of_peers_and_locks(client: Client) -> None:
    client.ground.coordinator.peer_lock("notes.md")
    client.run("work", client.create("new.md", "new\n"))
    context = client.context("work")
    assert [word for word in (PEER_NAME, "notes.md", "careful surgery") if word not in context] == []


@pytest.mark.only("claude-code")
def test_a_session_that_enters_a_work_tree_is_known_there_at_once(client: Client) -> None:
    """Its scope follows within the turn, and its fence: the main checkout is another work tree from then on."""
    ground, tree = client.ground, client.ground.checkout / ".claude" / "worktrees" / "wt"
    search = {"name": "ToolSearch", "input": {"query": "select:EnterWorktree"}}
    enter = {"name": "EnterWorktree", "input": {"name": "wt"}}
    with client.held("work", search, enter, client.shell(f"echo x > {ground.checkout}/notes.md"), at=2) as live:
        where = "SELECT directory, scope FROM instances"
        assert wait_for(lambda: ground.coordinator.query(where) == [(str(tree), str(tree))], 30)
        live.go_on()
    assert "work tree" in client.last_result("work"), client.last_result("work")
    assert (ground.checkout / "notes.md").read_text() != "x\n"


@requirement("P-13")
def test_a_lone_session_leaves_no_locks(client: Client) -> None:
    """S2."""
    coordinator = client.ground.coordinator
    with client.held("work", client.create("new.md", "new\n"), client.replace(*CHANGE), at=1) as live:
        assert len(coordinator.sessions()) == 1
        assert coordinator.locks() == []
        live.go_on()
    assert_text(client, "new.md", "new\n")
    assert_text(client, "notes.md", "line two\n")
    assert coordinator.locks() == []


@pytest.mark.promise("nothing is written into the checkout")
@pytest.mark.from_git
@requirement("A-50", "C-61")
def test_the_checkout_holds_nothing_of_ours(client: Client) -> None:
    ground = client.ground
    client.run("work", client.create("new.md", "new\n"))
    listed = ground.run(["git", "status", "--porcelain", "--ignored"]).stdout
    assert listed.split() == ["??", "new.md"], listed


@pytest.mark.thorough
def test_no_identity_joins_all_the_same(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """S21."""
    monkeypatch.delitem(client.ground.env, "AGENT_IDENTITY")
    with client.held("work", client.replace(*CHANGE)) as live:
        sessions = client.ground.coordinator.sessions()
        live.go_on()
    assert [s["label"].startswith(f"{client.name} platform:cli") for s in sessions] == [True], sessions
    assert_text(client, "notes.md", "line two\n")


@pytest.mark.thorough
def test_the_pane_is_published_for_as_long_as_the_session_lives(client: Client) -> None:
    """S6."""
    coordinator = client.ground.coordinator
    with client.held("work", client.create("new.md", "new\n"), env={"HERDR_PANE_ID": PANE}) as live:
        (own,) = coordinator.sessions()
        key = f"identity/workspace/herdr/{own['id']}"
        published = coordinator.kv(key)
        live.go_on()
    assert PANE in str(published)
    assert coordinator.kv(key) is None
    assert coordinator.sessions() == []


@pytest.mark.promise("a resumed session is checked", only=("codex",))
@pytest.mark.from_git
def test_a_resumed_session_is_checked(client: Client) -> None:
    """S8."""
    first = client.run("first", client.create("new.md", "new\n"))
    client.ground.coordinator.peer_lock("notes.md")
    again = client.run("second", client.replace(*CHANGE), resume=first.session)
    assert again.session == first.session
    assert_denied(client, "second", "notes.md")


@pytest.mark.only("claude-code")
def test_a_second_client_of_a_session_ends_for_itself_alone(client: Client) -> None:
    """A session that is open in two clients keeps its locks when one of them ends. Codex cannot open one twice."""
    coordinator = client.ground.coordinator
    first = client.run("first", client.create("new.md", "new\n"))
    with client.held("work", client.replace("new.md", "new", "newer"), resume=first.session) as live:
        (holder,) = coordinator.sessions()
        coordinator.lock(holder["id"], "notes.md", "mine for now")
        again = client.run("second", client.create("other.md", "other\n"), resume=first.session)
        assert again.session == first.session
        assert [session["id"] for session in coordinator.sessions()] == [holder["id"]]
        client.run("third", client.replace(*CHANGE))
        name = holder_name(holder["label"], holder["id"])
        assert_denied(client, "third", "notes.md", holder=name, note="mine for now")
        live.go_on()
    assert_text(client, "new.md", "newer\n")
    assert coordinator.sessions() == [] == coordinator.locks()


def test_a_forked_session_is_checked(client: Client) -> None:
    """S14: a fork has an id of its own."""
    first = client.run("first", client.create("new.md", "new\n"))
    client.ground.coordinator.peer_lock("notes.md")
    fork = client.run("second", client.replace(*CHANGE), fork=first.session)
    assert fork.session != first.session
    assert_denied(client, "second", "notes.md")


def test_sessions_started_together_are_told_apart(client: Client) -> None:
    """S27: Codex's ids share their first digits when sessions start within a minute."""
    coordinator = client.ground.coordinator
    label = f"SWARM_{client.prefix}_LABEL"
    with (
        client.held("one", client.create("new.md", "new\n"), env={label: "the-first"}) as one,
        client.held("two", client.replace(*CHANGE), env={label: "the-second"}) as two,
    ):
        sessions = coordinator.sessions()
        assert len(sessions) == 2, sessions
        (holder,) = [session for session in sessions if "the-first" in session["label"]]
        coordinator.lock(holder["id"], "notes.md", "mine for now")
        two.go_on()
        one.go_on()
    assert_denied(client, "two", "notes.md", holder="the-first", note="mine for now")
    assert_text(client, "new.md", "new\n")


@pytest.mark.promise("a lock ends with its client's process", only=("claude-code",))
@pytest.mark.from_git
def test_a_killed_session_frees_its_locks(client: Client) -> None:
    """S28: death is proven, not waited for; the next check already passes."""
    coordinator = client.ground.coordinator
    label = {f"SWARM_{client.prefix}_LABEL": "the-doomed"}
    with client.held("next", client.replace(*CHANGE)) as survivor:
        with client.held("work", client.create("new.md", "new\n"), env=label) as doomed:
            (holder,) = [session for session in coordinator.sessions() if "the-doomed" in session["label"]]
            coordinator.lock(holder["id"], "notes.md", "never to be released")
            doomed.kill()
        survivor.go_on()
    assert_text(client, "notes.md", "line two\n")
    assert coordinator.locks() == []
    assert holder["id"] not in [session["id"] for session in coordinator.sessions()]


@pytest.mark.thorough
def test_a_killed_session_leaves_no_process(client: Client) -> None:
    with client.held("work", client.create("new.md", "new\n")) as doomed:
        doomed.kill()
        left = wait_for(lambda: not client.ground.own_processes(), 5.0)
    assert left, f"alive 5 s after the client was killed: {client.ground.own_processes()}"


def test_a_lock_taken_between_two_turns_counts(client: Client) -> None:
    """S7: the end of a turn is not the end of the session."""
    coordinator = client.ground.coordinator
    with client.interactive() as terminal:
        client.turn(terminal, "first", client.create("new.md", "new\n"))
        before = coordinator.sessions()
        coordinator.peer_lock("notes.md")
        client.turn(terminal, "second", client.replace(*CHANGE))
        after = coordinator.sessions()
        terminal.enter(client.leave)
        terminal.wait_ended()
    assert_text(client, "new.md", "new\n")
    assert_denied(client, "second", "notes.md")
    assert len(before) == 1 and [s["id"] for s in before] == [s["id"] for s in after], (before, after)
    assert wait_for(lambda: coordinator.sessions() == [], GONE), coordinator.sessions()


@pytest.mark.only("claude-code")
def test_a_turn_that_the_service_has_broken_off_is_over_once_the_client_waits(client: Client) -> None:
    """Claude Code ends such a turn without a Stop, and after a while notifies of being idle."""
    settings = client.ground.home / ".claude.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "messageIdleNotifThresholdMs": 500}))

    def states() -> list:
        return client.ground.coordinator.query("SELECT state FROM swarm_sessions")

    client.models.script("work", client.create("new.md", "new\n"), Step(error="no such thing"))
    gate = client.hold("work", 1)
    with client.interactive() as terminal:
        terminal.enter(play("work"))
        assert gate.wait_reached() and states() == [("working",)]
        gate.open()
        assert wait_for(lambda: states() == [("idle",)], 20), terminal.screen()


def test_compacting_changes_nothing(client: Client) -> None:
    """S12."""
    play_a_compaction(client, [client.create("new.md", "new\n")], [client.replace(*CHANGE)])


def test_clearing_goes_on_as_a_new_session(client: Client) -> None:
    """S13: a new session id, checked from its first write on."""
    coordinator = client.ground.coordinator
    with client.interactive() as terminal:
        client.turn(terminal, "first", client.create("new.md", "new\n"))
        before = coordinator.sessions()
        coordinator.peer_lock("notes.md")
        terminal.enter("/clear")
        terminal.wait_until_gone(r"The script first is over")
        terminal.wait_for(client.ready)
        client.turn(terminal, "second", client.replace(*CHANGE))
        after = coordinator.sessions()
        terminal.enter(client.leave)
        terminal.wait_ended()
    assert_denied(client, "second", "notes.md")
    assert {s["id"] for s in after} - {s["id"] for s in before}, f"no new session after clear: {after}"
    assert wait_for(lambda: coordinator.sessions() == [], GONE), coordinator.sessions()


def test_a_killed_terminal_frees_its_locks(client: Client) -> None:
    """Closing the window is the usual way to go; it kills without a word in Codex."""
    coordinator = client.ground.coordinator
    with client.interactive() as terminal:
        client.turn(terminal, "first", client.create("new.md", "new\n"))
        (own,) = coordinator.sessions()
        coordinator.lock(own["id"], "notes.md", "never to be released")
        terminal.close()
        wait_for(lambda: not client.ground.own_processes(), 10.0)
    client.models.script("next", client.replace(*CHANGE))
    client.ask(play("next"))
    assert_text(client, "notes.md", "line two\n")
