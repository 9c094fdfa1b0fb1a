"""Fixtures of the dispatch tests."""

from collections.abc import Iterator

import pytest
from support import supervised
from support.fixtures import Ground
from support.supervised import GATEWAY


@pytest.fixture
def lead(ground: Ground) -> Iterator[dict]:
    """A session that may start workers; these end with the test."""
    yield ground.session("lead", GATEWAY)
    supervised.end_all(ground)
