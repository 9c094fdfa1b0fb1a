"""Parsed commands of other sessions, noted for the program in front of the check."""

from __future__ import annotations

import os
import time
from pathlib import Path

from support.traced import Player

from swarm_hook_core.state import state_dir
from swarm_hook_core.traces import place_of, settled


def told(work: Path) -> list[bytes]:
    folder = Path(settled.settled_dir(place_of(str(work))))
    return [path.read_bytes() for path in sorted(folder.glob("*"))]


def ran_alone(work: Path, command: str) -> tuple[Player, Player, Path]:
    """Let a session run a command alone; return it, another one, and the first one's journal."""
    first, second = Player("claude-code", work), Player("codex", work)
    assert first.runs(command) == ""
    (journal,) = Path(place_of(str(work))).glob("claude-code.*")
    return first, second, journal


def test_a_parsed_command_is_settled_with_its_files(work: Path) -> None:
    _first, second, journal = ran_alone(work, "touch made{1,2}.md # *")
    assert told(work) == []
    second.edits("notes.md", "notes", "other")
    (text,) = told(work)
    number, _, keys = text.partition(b"\n")
    assert int(number) == journal.stat().st_size
    for name in ("made1.md", "made2.md"):
        assert b"\0%s/%s\n" % (bytes(work), name.encode()) in keys
    second.edits("other.md", "other", "third")
    assert told(work) == [text], "nothing new was parsed"


def test_a_command_that_writes_a_folder_stays_unsettled(work: Path) -> None:
    _first, second, _journal = ran_alone(work, "cp -r sub copied")
    second.edits("notes.md", "notes", "other")
    assert told(work) == []


def test_old_files_are_removed(work: Path) -> None:
    _first, second, _journal = ran_alone(work, "touch made{1,2}.md")
    second.edits("notes.md", "notes", "other")
    settled.prune(time.time())
    assert told(work)
    settled.prune(time.time() + 90000)
    assert not told(work) and not os.listdir(os.path.join(state_dir(), "settled"))
