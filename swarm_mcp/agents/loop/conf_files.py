"""Variants of providers, as ``.conf`` files of lines ``name=value`` in ``providers/``.

Some are part of this package; a file of the same name in any source takes their place.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from swarm_mcp.agents.loop.settings import LoopFailure

BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bundled")
LARGEST = 65536


def named(found: Iterable[str], kind: str) -> dict[str, str]:
    """Return name -> path of the files in the folder `kind`, ours and of the sources `found`; the last of a name."""
    listed: dict[str, str] = {}
    for source in (BUNDLED, *found):
        folder = os.path.join(source, kind)
        if os.path.isdir(folder):
            names = sorted(os.listdir(folder))
        else:
            names = []
        listed.update({name[: -len(".conf")]: os.path.join(folder, name) for name in names if name.endswith(".conf")})
    return dict(sorted(listed.items()))


def read(path: str) -> list[tuple[str, str]]:
    """Return the names and values of a file, in order. Raises LoopFailure."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return pairs(file.read(LARGEST))
    except OSError as error:
        raise LoopFailure(f"{path}: {error.strerror}") from None


def pairs(text: str) -> list[tuple[str, str]]:
    """Return the names and values of lines ``name=value``; others, and comments, are left out."""
    parted = (line.partition("=") for line in text.splitlines() if not line.lstrip().startswith("#"))
    return [(name.strip(), value.strip()) for name, equals, value in parted if equals]
