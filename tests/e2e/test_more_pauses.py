"""A person works while the model of one of the other clients thinks: the pause after a write belongs to no call."""

from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from swarm_mcp.play.models import Player, Step, play

from .client import Client
from .ground import Ground, own_ground, wait_for
from .marketplace import Marketplace
from .more import prepared
from .pi import Pi, alone

NAMES = ("pi", "opencode", "kilo", "omp", "cline", "hermes", "kimi", "copilot", "qwen", "grok", "gemini")
CASES = [pytest.param(name, marks=pytest.mark.xdist_group(f"more-{name}"), id=name) for name in NAMES]
SAVED = "line two\na person's\n"


@pytest.fixture(params=CASES)
def other(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with ExitStack() as stack:
        found: Client
        if request.param == "pi":
            ground = stack.enter_context(own_ground("pi", clients=alone(tmp_path_factory.mktemp("clients"))))
            found = Pi(ground)
            found.prepare()
        else:
            found = stack.enter_context(prepared(request.param))
        Marketplace(found.ground, "install").install(request.param)
        yield found


def marks(ground: Ground) -> list[Path]:
    """Return the marks of ends of calls that no session has noted yet."""
    return [path for path in ground.root.rglob("ended/*") if path.name.isdigit()]


def test_a_person_s_lines_in_the_file_that_the_session_has_written_stay(other: Client) -> None:
    """The model edits a file with its client's own tool, and a person saves more of it in the pause after that."""
    ground, path = other.ground, other.ground.checkout / "notes.md"
    calls = other.change("notes.md", "line one", "line two")

    def moves() -> Generator[Step, list[str], None]:
        for call in calls:
            yield Step(calls=(call,))
        assert wait_for(lambda: bool(marks(ground)), 20), "the end of the edit is not marked"
        path.write_text(path.read_text() + "a person's\n")
        yield Step(calls=(other.shell("git checkout notes.md"),))

    other.models.players["pause"] = Player(moves())
    other.ask(play("pause"))
    assert path.read_text() == SAVED, other.results("pause")
    assert "a person's" in other.last_result("pause"), other.results("pause")
