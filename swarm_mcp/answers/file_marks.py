"""Marks that change when a file grows or is replaced, without reading it."""

from __future__ import annotations

import os
from collections.abc import Iterable

Marks = dict[str, tuple[int, int]]  # path -> size in bytes, time of its last change in ns


def file_marks(paths: Iterable[str]) -> Marks:
    """The marks of those files that are there: they differ from earlier ones once a file has changed."""
    found = {}
    for path in paths:
        try:
            there = os.stat(path)
        except OSError:  # not there
            continue
        found[path] = there.st_size, there.st_mtime_ns
    return found
