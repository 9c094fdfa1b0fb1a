"""The owner of each uncommitted line, by the versions that sessions have kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.traced import Player

from swarm_hook_core.traces.versions.lines import lines_of

pytestmark = pytest.mark.usefixtures("no_faults")


def owners(file: Path, *players: Player) -> list[str]:
    """``text=owners`` of each line: `-` committed, the number of a player, `?` a person."""
    names = {player.session_id: str(number) for number, player in enumerate(players)}
    return [
        f"{line.text.decode().strip()}={'|'.join(names.get(one.session_id, '?') for one in line.authors) or '-'}"
        for line in lines_of(str(file))
    ]


def test_a_session_alone(work: Path) -> None:
    me = Player("codex", work)
    (work / "notes.md").write_text("alpha\nMINE\nbeta\ngamma\n")
    me.edits("notes.md", "beta", "THEIRS")
    me.edits("notes.md", "gamma", "gamma\nMORE")
    assert owners(work / "notes.md", me) == ["alpha=-", "MINE=?", "THEIRS=0", "gamma=-", "MORE=0"]


def test_two_sessions_and_a_person(work: Path) -> None:
    one, two, file = Player("codex", work), Player("claude-code", work), work / "notes.md"
    one.edits("notes.md", "alpha", "ONE")
    two.edits("notes.md", "gamma", "TWO")
    one.edits("notes.md", "beta", "beta\nAGAIN")
    assert owners(file, one, two) == ["ONE=0", "beta=-", "AGAIN=0", "TWO=1"]
    assert one.runs("true") == ""
    file.write_text(file.read_text() + "PERSON\n")
    two.edits("notes.md", "TWO", "TOO")
    assert owners(file, one, two) == ["ONE=0", "beta=-", "AGAIN=0", "TOO=1", "PERSON=?"]
