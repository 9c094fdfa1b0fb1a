"""Calls of two sessions that are checked at the same moment, before either has written: one of them waits its turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.sessions import mistakes, ready_store
from support.traced import Player, checkout

from swarm_hook_core.traces import Trail, meetings

OVERWRITE = ("Bash", {"command": "printf 'mine\\n' > notes.md"})


@pytest.fixture
def work(tmp_path: Path) -> Path:
    ready_store()
    return checkout(tmp_path.resolve() / "work", "notes.md", "other.md")


@pytest.fixture(autouse=True)
def _no_faults():
    yield
    assert mistakes() == []


def patch_of(player: Player) -> tuple[str, Any]:
    """A call that changes a line of the file, with the tool of the player's client."""
    if player.runtime == "codex":
        return "apply_patch", {
            "command": "*** Begin Patch\n*** Update File: notes.md\n@@\n-beta\n+BETA\n*** End Patch\n"
        }
    path = str(player.folder / "notes.md")
    return "Edit", {"file_path": path, "old_string": "beta", "new_string": "BETA"}


def meanwhile(monkeypatch: pytest.MonkeyPatch, method: str, player: Player, deed: Callable[[], None]) -> None:
    """Do `deed` right after the first call of `player` has gone through this method of its Trail."""
    through, done = getattr(Trail, method), []

    def stopped(trail: Trail, *given: Any) -> Any:
        found = through(trail, *given)
        if trail.call.session_id == player.session_id and not done:
            done.append(True)
            deed()
        return found

    monkeypatch.setattr(Trail, method, stopped)


@pytest.fixture(params=["claude-code", "codex"])
def pair(request: pytest.FixtureRequest, work: Path) -> tuple[Player, Player]:
    """Two sessions that have both left traces here."""
    players = Player(request.param, work), Player("codex", work)
    for player in players:
        assert player.runs(f"echo x > of-{player.session_id}") == ""
        assert player.runs("cat notes.md") == ""
    return players


def said_to(player: Player, call: tuple[str, Any]) -> str:
    """Why a call is denied, or what its model is told; "very moment" is in both where it met one that is to come."""
    verdict = player.check(*call)
    return f"denied: {verdict.denial.reason}" if verdict.denial is not None else str(verdict.notice)


@pytest.mark.parametrize("mine", [patch_of, lambda _player: OVERWRITE], ids=["edit", "overwrite"])
@pytest.mark.parametrize("theirs", [patch_of, lambda _player: OVERWRITE], ids=["edit", "overwrite"])
def test_one_that_is_checked_while_another_is_meets_it(mine, theirs, pair, monkeypatch: pytest.MonkeyPatch) -> None:
    me, peer = pair
    said: list[str] = []
    meanwhile(monkeypatch, "leave", me, lambda: said.append(said_to(peer, theirs(peer))))
    my_answer = said_to(me, mine(me))
    assert "very moment" in said[0] and "notes.md" in said[0]
    assert said[0].startswith("denied: ") is (theirs is not patch_of), "no edit is denied for what is no lock"
    if theirs is patch_of:
        assert "very moment" in my_answer, "it goes ahead: so both have been told, or one is denied"
        return
    assert my_answer == "", "the other one was denied"
    (me.folder / "notes.md").write_text("by me\n")
    assert peer.runs("cat notes.md") == "" and peer.denied(*OVERWRITE) == "", "once it has read what was written"


def test_two_that_have_both_noted_theirs_are_both_denied_and_pass_one_after_the_other(pair, monkeypatch) -> None:
    me, peer = pair
    said: list[str] = []

    def other() -> None:
        meanwhile(monkeypatch, "leave", peer, lambda: said.append(me.denied(*OVERWRITE)))
        said.append(peer.denied(*OVERWRITE))

    meanwhile(monkeypatch, "leave", me, other)
    me.denied(*OVERWRITE)
    assert any(said), "not all of them pass"
    assert me.denied(*OVERWRITE) == "" and "very moment" in peer.denied(*OVERWRITE)


def test_of_two_that_are_alone_and_begin_at_once_one_meets_the_other(work: Path, monkeypatch) -> None:
    me, peer = Player("codex", work), Player("codex", work)
    said: list[str] = []
    meanwhile(monkeypatch, "note_alone", me, lambda: said.append(peer.denied(*patch_of(peer))))
    assert "very moment" in me.told(*patch_of(me)) and said == [""]


def test_of_two_commands_of_sessions_that_are_alone_one_meets_the_other(work: Path, monkeypatch) -> None:
    me, peer = Player("codex", work), Player("claude-code", work)
    said: list[str] = []
    meanwhile(monkeypatch, "note_unread", me, lambda: said.append(peer.denied(*OVERWRITE)))
    mine = me.denied(*OVERWRITE)
    assert said == [""] and mine, "it was read after all, and met what the other one may have written"


def test_what_was_denied_is_nobody_s_obstacle(pair, monkeypatch: pytest.MonkeyPatch) -> None:
    me, peer = pair
    third = Player("codex", me.folder)
    peer.edits("notes.md", "beta", "PEER")
    assert me.denied(*OVERWRITE), "it would lose what the peer wrote"
    assert "very moment" not in third.denied(*OVERWRITE), "the one that was denied writes nothing"


def test_at_notice_nobody_is_denied(pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_AUTO", "notice")
    me, peer = pair
    said: list[str] = []
    meanwhile(monkeypatch, "leave", me, lambda: said.append(peer.denied(*OVERWRITE)))
    assert me.denied(*OVERWRITE) == "" and said == [""]


@pytest.mark.parametrize("theirs", [patch_of, lambda _player: OVERWRITE], ids=["edit", "overwrite"])
def test_an_edit_waits_until_a_write_that_was_let_pass_before_it_is_made(theirs, pair, monkeypatch) -> None:
    """Made before that one, it would be lost below it."""
    me, peer = pair
    notes = me.folder / "notes.md"
    assert peer.denied(*theirs(peer)) == ""
    waited: list[float] = []

    def paused(seconds: float) -> None:
        waited.append(seconds)
        notes.write_text("theirs\nbeta\n")

    monkeypatch.setattr(meetings.time, "sleep", paused)
    said = me.told(*patch_of(me))
    assert waited, "the edit was let pass while an overwrite of the file was still to come"
    assert notes.read_text() == "theirs\nbeta\n" and ("was changed by" in said or me.runtime == "claude-code")


def test_an_edit_does_not_wait_for_long(pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meetings, "WAIT_SECONDS", 0.05)
    me, peer = pair
    assert peer.denied(*OVERWRITE) == ""
    assert "at this very moment" in me.told(*patch_of(me)) or me.runtime == "claude-code"
