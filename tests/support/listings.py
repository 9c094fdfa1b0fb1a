"""The rows of a listing that a part of the store walks through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

R = TypeVar("R")


def rows_of(walk: Iterator[tuple[str, R]]) -> list[R]:
    """All of them, without their cursors."""
    return [row for _, row in walk]
