"""A question that reaches the server when its asker has long given up does nothing any more.

It may be on its way for minutes, in a network that repeats it. Meanwhile the asker has connected anew, asked something
else, and believes the answer.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from swarm_mcp.team import TeamUnreachable, protocol
from swarm_mcp.team.server import TeamServer, init

from .engine import Engine
from .faults import SwallowingProxy

WANTS = [protocol.want("src/a.py")]


class Asker:
    """A machine with a stallable link to the server: its earlier requests arrive late, new ones in time."""

    def __init__(self, conninfo: str, link: SwallowingProxy):
        self.server, self.link = TeamServer(conninfo, "A"), link
        news = self.server.hello("r")["news"]
        self.news = self.server.beat("r", news["version"], news["mark"], [{"session": "s", "label": "s", "lease": 60}])[
            "news"
        ]

    def acquire(self, seconds: float = 2.0) -> tuple[int, int]:
        granted = self.server.acquire("r", "s", WANTS, self.news["version"], self.news["mark"], seconds=seconds)
        assert granted["ok"], granted
        return granted["locks"][0], granted["fences"][0]

    def late(self, question: Callable[[], object]) -> None:
        """Send a request that arrives when the link is healed."""
        self.link.stall()
        with pytest.raises(TeamUnreachable):
            question()

    def locks(self) -> list[tuple[int, int]]:
        """Return the server's rows once everything has arrived."""
        self.link.heal()
        self.server.listen(0.3)
        return [(row["lock"], row["fence"]) for row in self.server.mine("r")["locks"]]


@pytest.fixture
def asker(tmp_path: Path) -> Iterator[Asker]:
    engine = Engine(tmp_path / "data").create().start()
    init(engine.dsn())
    with SwallowingProxy("127.0.0.1", engine.port) as link:
        made = Asker(engine.dsn(port=link.port), link)
        with contextlib.closing(made.server):
            yield made
    engine.kill()


def test_a_late_release_does_not_take_what_is_believed(asker: Asker) -> None:
    granted = asker.acquire()
    asker.late(lambda: asker.server.release("r", [granted], seconds=0.3))
    assert asker.acquire() == granted
    assert asker.locks() == [granted]


def test_a_late_request_does_not_grant_what_nobody_wants(asker: Asker) -> None:
    asker.late(lambda: asker.acquire(0.3))
    assert asker.server.release("r", []) == 0
    assert asker.locks() == []


def test_an_end_that_is_late_does_not_end_a_session_that_has_begun_anew(asker: Asker) -> None:
    asker.late(lambda: asker.server.end("r", ["s"], seconds=0.3))
    granted = asker.acquire()
    assert asker.locks() == [granted]


def test_a_late_hello_does_not_speak_for_a_machine_again(asker: Asker) -> None:
    asker.late(lambda: asker.server.hello("r", seconds=0.3))
    granted = asker.acquire()
    assert asker.locks() == [granted]
    assert asker.server.release("r", [granted])
