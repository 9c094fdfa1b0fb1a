"""The main thread and the agents of one session, at `keep`: each one's uncommitted work is a peer's for the others."""

import os
from pathlib import Path
from typing import Any

import pytest
from support.altered import Limits
from support.traced import Player, git

from swarm_hook_core import session_events
from swarm_hook_core.hooks import SessionEvent
from swarm_hook_core.traces import AGENTS, journal_name, others, place_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_faults")]


class Thread(Player):
    """An agent of the session `main`, or with an empty `agent` its main thread."""

    def __init__(self, main: Player, agent: str):
        self.__dict__.update(main.__dict__)
        self.agent = agent

    def check(self, tool: str, given: Any, agent: str = "") -> Any:
        return Player.check(self, tool, given, self.agent)

    def tells(self, name: str) -> None:
        """Have the client tell of this agent's begin or end."""
        session_events.has_subagent(
            self.core, SessionEvent(self.session_id, str(self.folder), f"Subagent{name}", self.agent)
        )


@pytest.fixture(params=["claude-code", "codex"])
def main(request: pytest.FixtureRequest, work: Path) -> Thread:
    return Thread(Player(request.param, work), "")


@pytest.fixture
def agents(main: Thread) -> tuple[Thread, Thread]:
    found = Thread(main, "a1"), Thread(main, "b2")
    for one in found:
        one.tells("Start")
    return found


def marker(main: Player) -> Path:
    return Path(place_of(str(main.folder)), journal_name(main.runtime, main.session_id) + AGENTS)


# (agent that changes the file, agent that overwrites it, name of the first one in the denial)
PAIRS = {
    "siblings": (1, 2, "agent a1 of this session"),
    "an agent's work by the main thread": (1, 0, "your agent a1 of this session"),
    "the main thread's by an agent": (0, 1, "the main thread of this session"),
}
LOSSES = {
    "overwrite": "echo x > notes.md",
    "remove": "rm notes.md",
    "checkout": "git checkout -- notes.md",
    "restore": "git restore .",
    "stash": "git stash",
    "reset": "git reset --hard",
    "folder": "rm -rf ../work",
}


@pytest.mark.parametrize(("first", "second", "words"), PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("command", LOSSES.values(), ids=LOSSES)
@pytest.mark.sampled
def test_unseen_work_of_one_is_not_lost_by_another(
    command: str, first: int, second: int, words: str, main: Thread, agents: tuple[Thread, Thread]
) -> None:
    owner, other = (main, *agents)[first], (main, *agents)[second]
    assert other.runs("cat notes.md") == ""
    assert owner.edits("notes.md", "beta", "THEIRS") == ""
    said = other.runs(command)
    assert said.startswith("denied: ") and words in said, said
    assert "THEIRS" in (main.folder / "notes.md").read_text()
    assert owner.runs(command) == "", "its own work is its own"


def test_a_look_lets_an_overwrite_pass(main: Thread, agents: tuple[Thread, Thread]) -> None:
    one, other = agents
    one.edits("notes.md", "beta", "THEIRS")
    assert other.writes("notes.md", "x\n").startswith("denied: ")
    assert one.runs("cat notes.md") == "", "a look of its writer is none of the other's"
    assert other.writes("notes.md", "x\n").startswith("denied: ")
    assert other.runs("cat notes.md") == ""
    assert other.writes("notes.md", "x\n") == ""
    assert "was changed by agent b2 of this session" in one.edits("notes.md", "x", "y")


@pytest.mark.sampled
def test_work_from_before_an_agent_began_is_known_to_it(main: Thread) -> None:
    main.edits("notes.md", "beta", "BEFORE")
    main.runs("echo BEFORE > other.md")
    agent = Thread(main, "a1")
    agent.tells("Start")
    assert agent.runs("echo x > notes.md; git checkout -- other.md") == ""
    main.runs("echo AFTER > other.md")
    assert agent.runs("rm other.md").startswith("denied: ")


def test_work_of_an_agent_that_still_runs_is_its_own_for_one_that_begins_later(main: Thread) -> None:
    one, other = Thread(main, "a1"), Thread(main, "b2")
    one.tells("Start")
    one.edits("notes.md", "beta", "THEIRS")
    other.tells("Start")
    assert other.runs("git checkout -- notes.md").startswith("denied: ")
    one.tells("Stop")
    third = Thread(main, "c3")
    third.tells("Start")
    assert third.runs("git checkout -- notes.md") == ""


def test_an_agent_without_a_told_beginning_begins_with_its_first_call(main: Thread) -> None:
    main.edits("notes.md", "beta", "BEFORE")
    agent = Thread(main, "a1")
    assert agent.runs("rm notes.md") == ""
    assert agent.runs("echo x > other.md") == ""
    assert main.runs("rm other.md").startswith("denied: ")


def test_the_main_thread_may_write_over_its_agents_work_once_they_have_ended(
    main: Thread, agents: tuple[Thread, Thread]
) -> None:
    one, other = agents
    one.edits("notes.md", "beta", "THEIRS")
    other.edits("other.md", "beta", "THEIRS")
    assert main.writes("notes.md", "x\n").startswith("denied: ")
    one.tells("Stop")
    assert main.writes("notes.md", "x\n") == ""
    assert main.writes("other.md", "x\n").startswith("denied: "), "that one still runs"
    assert "y" not in other.runs("echo y > notes.md") or "denied: " in other.runs("echo y > notes.md")
    other.tells("Stop")
    assert not marker(main).exists()
    assert main.runs("git checkout -- .") == ""


def test_an_agent_that_is_silent_for_long_has_ended(
    main: Thread, agents: tuple[Thread, Thread], limits: Limits
) -> None:
    agents[0].edits("notes.md", "beta", "THEIRS")
    limits(others, SILENT_NS=0)
    assert main.runs("rm notes.md") == ""


def test_an_agent_s_stash_entry_is_its_own(main: Thread, agents: tuple[Thread, Thread]) -> None:
    one, other = agents
    one.edits("notes.md", "beta", "THEIRS")
    assert one.runs("git stash") == ""
    assert "agent a1 of this session" in other.runs("git stash pop")
    assert one.runs("git stash pop") == ""
    assert "THEIRS" in (main.folder / "notes.md").read_text()


def test_committed_work_is_free(main: Thread, agents: tuple[Thread, Thread]) -> None:
    agents[0].edits("notes.md", "beta", "THEIRS")
    git(main.folder, "commit", "-qam", "theirs")
    assert agents[1].writes("notes.md", "x\n") == ""


def test_other_sessions_see_one_session(main: Thread, agents: tuple[Thread, Thread]) -> None:
    peer = Player("codex", main.folder)
    agents[0].edits("notes.md", "beta", "THEIRS")
    main.edits("other.md", "beta", "THEIRS")
    assert "changed by agent a1 of " in peer.runs("echo x > notes.md")
    assert peer.runs("rm other.md").startswith("denied: ")
    agents[0].tells("Stop")
    assert peer.runs("echo x > notes.md").startswith("denied: ")


def test_a_session_without_agents_has_no_file_of_them(main: Thread) -> None:
    main.edits("notes.md", "beta", "mine")
    assert main.runs("git checkout -- notes.md") == "" and not marker(main).exists()


def test_an_agent_that_begins_while_the_last_one_ends_is_noted(main: Thread, agents: tuple[Thread, Thread]) -> None:
    path = marker(main)
    handle = os.open(path, os.O_RDWR)
    agents[0].tells("Stop")
    agents[1].tells("Stop")
    assert not path.exists()
    os.close(handle)
    third = Thread(main, "c3")
    third.tells("Start")
    assert path.exists() and b"c3" in path.read_bytes()
