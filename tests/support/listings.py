"""The rows of a listing that a part of the store walks through."""

from collections.abc import Iterator
from typing import TypeVar

R = TypeVar("R")


def rows_of(walk: Iterator[tuple[str, R]]) -> list[R]:
    """All of them, without their cursors."""
    return [row for _, row in walk]
