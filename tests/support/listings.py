"""The rows of a listing that a part of the store walks through, and the lines of a record."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

R = TypeVar("R")


def rows_of(walk: Iterator[tuple[str, R]]) -> list[R]:
    """All of them, without their cursors."""
    return [row for _, row in walk]


def lines_of(file: Path) -> list[str]:
    """Return the lines of a record; an absent one is empty."""
    return file.read_text().splitlines() if file.exists() else []
