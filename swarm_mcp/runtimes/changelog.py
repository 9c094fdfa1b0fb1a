"""The changelog of this installation: changes since an earlier release."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import plugin_folder

UNRELEASED = "Unreleased"
_HEADING = re.compile(r"## \[?([^\]\s]+)\]?(?: - (\d{4}-\d{2}-\d{2}))?")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_SENTENCE = re.compile(r"(.+?[.!?])(?= [A-Z`\"])")


@dataclass(frozen=True)
class Entry:
    """One change: its release, its `kind` (Added, Changed, ...), and its text in one line."""

    release: str
    kind: str
    text: str

    @property
    def first_sentence(self) -> str:
        """Return the first sentence of the text."""
        found = _SENTENCE.match(self.text)
        if found:
            return found[1]
        return self.text


def file() -> Path:
    """Return where this installation has the changelog. Raises SwarmError where it has lost its files."""
    return Path(plugin_folder()) / "CHANGELOG.md"


def entries(text: str) -> list[Entry]:
    """Return every entry of a changelog, in its order."""
    found: list[Entry] = []
    release = kind = ""
    for line in text.splitlines():
        heading = _HEADING.fullmatch(line)
        if heading:
            release, kind = heading[1], ""
        elif line.startswith("### "):
            kind = line[4:].strip()
        elif line.startswith("- ") and kind:
            found.append(Entry(release, kind, _LINK.sub(r"\1", line[2:].strip())))
        elif line.startswith("  ") and line.strip() and kind and found:
            last = found.pop()
            found.append(Entry(last.release, last.kind, _LINK.sub(r"\1", f"{last.text} {line.strip()}")))
        elif line.startswith("## "):
            kind = ""
    return found


def since(version: str) -> list[Entry]:
    """Return the changes after release `version`, as far as this installation knows."""
    try:
        text = file().read_text(encoding="utf-8")
    except (OSError, UnicodeError, SwarmError):  # a checkout may lack it; news are no need
        return []
    return [entry for entry in entries(text) if entry.release == UNRELEASED or newer(entry.release, version)]


def newer(version: str, other: str) -> bool:
    """Return True if release `version` came after `other`."""
    return _numbers(version) > _numbers(other)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version.partition("+")[0])[:3])
