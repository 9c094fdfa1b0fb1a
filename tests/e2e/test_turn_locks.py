"""At level `turn` a session's first write of a file locks it for its turn: the ends of turns in the real clients."""

from collections.abc import Callable

import pytest

from swarm_mcp.play.models import Gate, Step, play

from .client import Call, Client
from .clients import ClaudeCode, Codex
from .conversation import Conversation
from .ground import wait_for
from .played_peer import PlayedPeer

pytestmark = pytest.mark.ways("install")

CHANGE = ("notes.md", "line one", "line two")
SOON = 10.0  # seconds for a hook on a busy machine, after its client's output
ENDLESS = "tail -f /dev/null"


@pytest.fixture(autouse=True)
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All sessions of these tests are at level `turn`."""
    found = request.getfixturevalue("both" if "both" in request.fixturenames else "client")
    some_client = next(iter(found.values())) if isinstance(found, dict) else found
    monkeypatch.setitem(some_client.ground.env, "SWARM_AUTO", "turn")


@pytest.fixture
def peer(client: Client) -> PlayedPeer:
    """Another session that wants to write."""
    return PlayedPeer(client.ground)


def edit(client: Client, file: str, old: str, new: str) -> list[Step]:
    """Replace one line; Claude Code's tool wants the file to have been read."""
    reads = [Step((client.read(file),))] if isinstance(client, ClaudeCode) else []
    return [*reads, Step((client.replace(file, old, new),))]


def held_after(client: Client, script: str, *steps: Step | Call) -> Gate:
    """Write a script that is held before its closing words."""
    client.models.script(script, *steps)
    return client.hold(script, len(client.models.scripts[script]) - 1)


def written(client: Client, peer: PlayedPeer, say: Callable[[str], object]) -> Gate:
    """Start a turn that has written a file, closed to the peer since; it goes on until the gate opens.

    `say` prompts the session.
    """
    gate = held_after(client, "work", *edit(client, *CHANGE))
    say(play("work"))
    assert gate.wait_reached()
    assert "notes.md" in peer.denied("notes.md")
    return gate


def automatic(client: Client) -> list[str]:
    """The files that are locked automatically, as `locks` shows them."""
    checkout = client.ground.checkout
    return [
        row["file"].removeprefix(f"{checkout}/") for row in client.ground.coordinator.locks() if row["mode"] == "auto"
    ]


def assert_free(peer: PlayedPeer, file: str, when: str) -> None:
    """The peer may write `file` by now."""
    denied = wait_for(lambda: not peer.denied(file), SOON)
    assert denied, f"{file} is still locked {when}: {peer.denied(file)}"


@pytest.mark.promise("at turn a written file is its session's until the turn ends", only=("claude-code",))
def test_a_file_is_locked_from_its_first_write_to_the_turns_end(client: Client, peer: PlayedPeer) -> None:
    with Conversation(client) as session:
        gate = written(client, peer, session.say)
        assert peer.denied("other.md") == ""
        assert automatic(client) == ["notes.md"]
        gate.open()
        session.wait()
        assert_free(peer, "notes.md", "after Stop")
        assert automatic(client) == []


def test_two_that_want_each_others_file(both: dict[str, Client]) -> None:
    """Both are denied, and free at their turns' ends: neither waits."""
    own = {"claude-code": ("notes.md", "line one", "first"), "codex": ("other.md", "other", "second")}
    wanted = {"claude-code": ("other.md", "second", "first"), "codex": ("notes.md", "first", "second")}
    gates = {}
    for name, client in both.items():
        own_steps = edit(client, *own[name])
        client.models.script(name, *own_steps, *edit(client, *wanted[name]))
        gates[name] = client.hold(name, len(own_steps)), client.hold(name, len(client.models.scripts[name]) - 1)
    with Conversation(both["claude-code"]) as one, Conversation(both["codex"]) as two:
        one.say(play("claude-code"))
        two.say(play("codex"))
        for moment in (0, 1):  # each has written its own file; each has been denied the other's
            for name in both:
                assert gates[name][moment].wait_reached()
            for name in both:
                gates[name][moment].open()
        one.wait()
        two.wait()
        for name, client in both.items():
            assert "PreToolUse" in client.last_result(name), client.results(name)
        one.run("again", *edit(both["claude-code"], *wanted["claude-code"]))
    checkout = both["codex"].ground.checkout
    assert (checkout / "notes.md").read_text() == "first\n"
    assert (checkout / "other.md").read_text() == "first\n"


def test_an_interrupted_turn_has_ended_by_the_next_prompt(client: Client, peer: PlayedPeer) -> None:
    """Claude Code fires no hook when its turn is interrupted, Codex does: its lock has gone at once."""
    with client.interactive() as terminal:
        gate = written(client, peer, terminal.enter)
        terminal.press("Escape")
        if isinstance(client, Codex):
            assert_free(peer, "notes.md", "after the hook of Codex's interruption")
        gate.open()
        terminal.wait_for(client.ready)
        next_gate = held_after(client, "next", client.shell("true"))
        terminal.press("C-u")  # Claude Code puts the interrupted prompt back
        terminal.enter(play("next"))
        assert next_gate.wait_reached()
        assert_free(peer, "notes.md", "in the turn after")
        next_gate.open()


@pytest.mark.only("claude-code")  # no hook of Codex runs then
def test_a_turn_that_an_error_of_the_model_ends_frees(client: Client, peer: PlayedPeer) -> None:
    gate = held_after(client, "work", *edit(client, *CHANGE), Step(error="no more for today"))
    with Conversation(client) as session:
        session.say(play("work"))
        assert gate.wait_reached()
        assert "notes.md" in peer.denied("notes.md")
        gate.open()
        assert_free(peer, "notes.md", "after the error")


@pytest.mark.from_git
def test_a_killed_client_frees_at_once(client: Client, peer: PlayedPeer) -> None:
    with Conversation(client) as session:
        written(client, peer, session.say)
        session.kill()
        assert_free(peer, "notes.md", "after its client was killed")
        assert automatic(client) == []


def test_the_sessions_end_frees(client: Client, peer: PlayedPeer) -> None:
    """A one-shot run is one turn and one session."""
    client.run("work", *edit(client, *CHANGE))
    assert peer.denied("notes.md") == ""
    assert automatic(client) == []


def test_a_background_command_does_not_prolong_a_turn(client: Client, peer: PlayedPeer) -> None:
    if isinstance(client, ClaudeCode):
        call = client.shell(ENDLESS)
        call["input"]["run_in_background"] = True
    else:
        call = client.shell(ENDLESS)
        call["arguments"]["yield_time_ms"] = 250
    with Conversation(client) as session:
        session.run("work", *edit(client, *CHANGE), call)
        assert any(ENDLESS in line for line in client.ground.command_lines()), "nothing runs in the background"
        assert_free(peer, "notes.md", "while a command runs in the background")


def test_a_sub_agents_file_is_free_when_it_stops(client: Client, peer: PlayedPeer) -> None:
    if isinstance(client, Codex):
        client.model = client.code_model
    errand = held_after(client, "errand", *edit(client, *CHANGE))
    parent = held_after(client, "work", *client.sub_agent("errand"))
    with Conversation(client) as session:
        session.say(play("work"))
        assert errand.wait_reached()
        assert "notes.md" in peer.denied("notes.md")
        errand.open()
        assert parent.wait_reached()
        assert_free(peer, "notes.md", "after SubagentStop, in its session's turn")
        parent.open()
        session.wait()


def test_compacting_and_resuming_change_nothing(client: Client, peer: PlayedPeer) -> None:
    """The session is the same before and after, and so are its turns."""
    with client.interactive() as terminal:
        client.turn(terminal, "first", *edit(client, *CHANGE))
        assert_free(peer, "notes.md", "after the first turn")
        terminal.enter("/compact")
        terminal.wait_for(client.compacted, 30)
        gate = held_after(client, "second", *edit(client, "other.md", "other", "another"))
        terminal.enter(play("second"))
        assert gate.wait_reached()
        assert "other.md" in peer.denied("other.md")
        assert peer.denied("notes.md") == ""
        gate.open()
        assert_free(peer, "other.md", "after the turn that followed /compact")


def test_a_resumed_session_takes_up_no_old_turn(client: Client, peer: PlayedPeer) -> None:
    """Killed in mid-turn and resumed, in a new turn of its own."""
    first = client.run("first", client.create("new.md", "new\n"))
    with client.held("work", *edit(client, *CHANGE), at=len(edit(client, *CHANGE)), resume=first.session) as doomed:
        assert "notes.md" in peer.denied("notes.md")
        doomed.kill()
    with client.held("again", *edit(client, "other.md", "other", "another"), at=0, resume=first.session):
        assert peer.denied("notes.md") == ""
        assert automatic(client) == []


def test_sub_agents_of_one_session_are_kept_apart(client: Client) -> None:
    """Of two that run side by side, the first to write a file has it until it stops; the other is denied."""
    if isinstance(client, Codex):
        client.model = client.code_model
    one = held_after(client, "one", *edit(client, *CHANGE))
    client.models.script("two", *edit(client, "notes.md", "line two", "line three"))
    two = client.hold("two", 0)
    (start_one, *_), (start_two, *wait) = (client.sub_agent(script, script) for script in ("one", "two"))
    steps = [Step((start_one, start_two))] if isinstance(client, ClaudeCode) else [start_one, start_two, *wait]
    with Conversation(client) as session:
        session.begin("work", *steps)
        assert one.wait_reached() and two.wait_reached()
        two.open()
        assert wait_for(lambda: "PreToolUse" in "".join(client.results("two")), SOON), client.results("two")
        one.open()
        session.wait()
    assert (client.ground.checkout / "notes.md").read_text() == "line two\n"


def test_a_lock_taken_on_it_outlasts_the_turn(client: Client, peer: PlayedPeer) -> None:
    lock = client.shell("swarm-mcp lock notes.md --note 'for longer'")
    with Conversation(client) as session:
        session.run("work", *edit(client, *CHANGE), lock)
        assert "for longer" in peer.denied("notes.md"), client.results("work")
