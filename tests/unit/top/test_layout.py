"""The distribution of a screen's room, and the times of reading."""

import threading
from collections.abc import Iterator

import pytest
from support.altered import Limits
from support.busy_checkout import session
from support.fixtures import Ground, wait_for

from swarm_mcp.answers.size import width
from swarm_mcp.errors import StoreUnavailable
from swarm_mcp.view.top import picture, reading
from swarm_mcp.view.top.picture import Column, Follower, Picture, Row, Table, Trouble, Wish
from swarm_mcp.view.top.reading import ALL, SESSIONS, shared

LONG = ("claude-code " * 9 + "5f0c2f6e", "working", "12 min", "src/" * 20 + "a.py", "src/b.py", "Adds an index" * 9)


@pytest.mark.parametrize("room", [1, 5, 20, 39, 60, 79, 119, 400])
@pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)
def test_lines_fit_into_the_room_there_is(table: Table, room: int):
    table = table._replace(rows=(Row("1", LONG[: len(table.columns)]), Row("2", ("翻訳" * 40,) * len(table.columns))))
    sizes = reading.widths(table, room)
    assert sum(sizes) + reading.GAP * (len(sizes) - 1) <= max(room, 1)
    for row in table.rows:
        cells = reading.line(row, table.columns, sizes)
        assert [width(text) for text, _column in cells] == sizes
    assert width(reading.heading(table, sizes)) == sum(sizes) + reading.GAP * (len(sizes) - 1)


def test_what_tells_rows_apart_is_cut_last():
    row = Row("1", ("claude-code with-a-long-name 5f0c2f6e", "working", "1 s", "src/" * 9 + "end.py", "", "words " * 9))
    table = SESSIONS._replace(rows=(row,))
    cells = [text for text, _column in reading.line(row, table.columns, reading.widths(table, 79))]
    assert cells[0].startswith("claude-code") and cells[0].rstrip().endswith(" 5f0c2f6e")
    assert cells[3].rstrip().endswith("end.py"), "of a path the end is kept"
    narrow = reading.widths(table, 44)
    assert len(narrow) < len(table.columns), "columns are left out from the right"
    assert reading.line(row, table.columns, narrow)[0][0].rstrip().endswith(" 5f0c2f6e")


def test_a_title_says_how_many_are_not_shown():
    rows = (Row("1", ("a",)), Row("2", ("  1. in line",), is_below=True))
    assert Table("Locks", (Column("file", 9),), rows, 1).title == "Locks 1"
    assert Table("Locks", (Column("file", 9),), rows, 100_000).title == "Locks 100,000, 99,999 not shown"
    assert Table("Locks", (Column("file", 9),), rows, 1, searched=2000).title == "Locks 1 of the newest 2,000"


@pytest.mark.parametrize("lines", [4, 10, 22, 60])
@pytest.mark.parametrize("needs", [(2, 2, 2, 2), (100, 100, 100, 100), (2, 100, 3, 5), (40, 2, 2, 2)])
def test_all_lines_are_shared(needs: tuple[int, ...], lines: int):
    given = shared(list(needs), lines)
    assert sum(given) == lines and min(given) >= 1
    for need, lot, other in ((n, g, o) for n, g in zip(needs, given) for o in given[:-1]):
        assert lot >= need or lot >= min(other, lines // 4) - 1, "who needs more has no less than others"


class Watched:
    """A follower with the wished words as pictures."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.trouble: Exception | None = None
        self.follower = Follower(self._read, self.told.append)

    def _read(self, wish: Wish) -> Picture:
        if self.trouble:
            raise self.trouble
        return Picture(wish.words, ())


@pytest.fixture
def watched(ground: Ground, limits: Limits) -> Iterator[Watched]:
    """Only the test's own actions make it read."""
    limits(picture, REST_SECONDS=3600.0)
    made = Watched()
    yield made
    made.follower.stop()
    wait_for(lambda: not [one for one in threading.enumerate() if one.name.startswith("top ")])


def test_each_commit_is_news(ground: Ground, watched: Watched):
    one = session(ground, "5f0c2f6e")
    watched.follower.start(Wish())
    wait_for(lambda: len(watched.told) == 1)
    for number in range(3):
        before = len(watched.told)
        ground.lock(one, f"{number}.py")
        wait_for(lambda: len(watched.told) > before)  # noqa: B023


def test_what_is_typed_waits_for_no_pause(watched: Watched, limits: Limits):
    limits(picture, LEAST_PAUSE=3600.0)
    watched.follower.start(Wish())
    wait_for(lambda: watched.told)
    for words in ("a", "ab"):
        watched.follower.wish(Wish(words))
        wait_for(lambda: watched.told[-1] == Picture(words, ()))  # noqa: B023


def test_without_a_commit_it_looks_now_and_then(watched: Watched, limits: Limits):
    limits(picture, REST_SECONDS=0.01, LEAST_PAUSE=0.01)
    watched.follower.start(Wish())
    wait_for(lambda: len(watched.told) > 3)


def test_trouble_is_told_and_a_fault_of_ours_as_what_it_is(watched: Watched):
    watched.trouble = StoreUnavailable("locked\nfor long")
    watched.follower.start(Wish())
    wait_for(lambda: watched.told == [Trouble("locked for long")])
    watched.trouble = ZeroDivisionError()
    watched.follower.wish(Wish("again"))
    wait_for(lambda: watched.told[1:] == [watched.trouble])
