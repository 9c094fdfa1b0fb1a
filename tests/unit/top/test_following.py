"""The times of reading: after a commit, when something is typed, and now and then."""

import threading
from collections.abc import Iterator

import pytest
from support.altered import Limits
from support.busy_checkout import session
from support.fixtures import Ground, wait_for

from swarm_mcp.errors import StoreUnavailable
from swarm_mcp.view.top import following
from swarm_mcp.view.top.following import Follower
from swarm_mcp.view.top.picture import Picture, Trouble, Wish


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
    limits(following, REST_SECONDS=3600.0)
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
    limits(following, LEAST_PAUSE=3600.0)
    watched.follower.start(Wish())
    wait_for(lambda: watched.told)
    for words in ("a", "ab"):
        watched.follower.wish(Wish(words))
        wait_for(lambda: watched.told[-1] == Picture(words, ()))  # noqa: B023


def test_without_a_commit_it_looks_now_and_then(watched: Watched, limits: Limits):
    limits(following, REST_SECONDS=0.01, LEAST_PAUSE=0.01)
    watched.follower.start(Wish())
    wait_for(lambda: len(watched.told) > 3)


def test_trouble_is_told_and_a_fault_of_ours_as_what_it_is(watched: Watched):
    watched.trouble = StoreUnavailable("locked\nfor long")
    watched.follower.start(Wish())
    wait_for(lambda: watched.told == [Trouble("locked for long")])
    watched.trouble = ZeroDivisionError()
    watched.follower.wish(Wish("again"))
    wait_for(lambda: watched.told[1:] == [watched.trouble])
