"""A person works while a model thinks, and the session's next call would throw that work away."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from .client import Client
from .ground import has_text, wait_for
from .models import Player, Step, play
from .played_peer import PlayedPeer

pytestmark = pytest.mark.ways("install")

PROMISED = pytest.mark.promise("a person's uncommitted work is not lost at keep, also beside one session")
BEFORE = "alpha\nbeta\n"
SAVED = BEFORE + "a person's\n"
FILES = ("b.txt", "d.txt", "e.txt")
WRITES = {
    "a tool": lambda client: client.change("b.txt", "alpha", "mine"),
    "a command": lambda client: [client.shell("echo mine > b.txt")],
}
DESTROYERS = {
    "checkout of a file": "git checkout d.txt",
    "checkout": "git checkout .",
    "restore": "git restore d.txt",
    "stash": "git stash",
    "clean": "git clean -fd",
    "remove": "rm d.txt",
    "remove a new file": "rm new.txt",
}


# client -> the folder of its logs, and the mark of a result in a line
LOGS = {
    "claude-code": (".claude/projects", '"type":"tool_result"'),
    "codex": (".codex/sessions", 'call_output","'),
}


def results_on_disk(client: Client, count: int) -> bool:
    """Return True if the client's log of a session has so many results of calls."""
    name, mark = LOGS[client.name]
    logs = sorted((client.ground.home / name).rglob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    return bool(logs) and logs[-1].read_text().count(mark) >= count


def save(folder: Path) -> None:
    """Save two files as a person does in an editor that reports nothing."""
    (folder / "d.txt").write_text(SAVED)
    (folder / "new.txt").write_text("a person's\n")


@pytest.mark.parametrize(
    ("written", "beside"),
    [
        pytest.param("a tool", "alone", marks=PROMISED),
        pytest.param("a command", "beside a peer", marks=PROMISED),
        ("a tool", "beside a peer"),
        ("a command", "alone"),
    ],
)
def test_a_person_s_lines_of_a_pause_stay(client: Client, written: str, beside: str) -> None:
    """All commands in turn, each after a write of the session and a person's save in the pause after that."""
    folder = client.ground.checkout
    for name in FILES:
        (folder / name).write_text(BEFORE)
    client.ground.commit(folder)
    if beside == "beside a peer":
        PlayedPeer(client.ground).edits("e.txt", "alpha", "peer")
    lost: list[str] = []

    def moves() -> Generator[Step, list[str], None]:
        made = 0
        for name, command in DESTROYERS.items():
            client.ground.git(folder, "checkout", "-q", "--", "b.txt", "d.txt")
            for call in WRITES[written](client):
                yield Step(calls=(call,))
                made += 1
            assert wait_for(lambda: results_on_disk(client, made), 60), name  # noqa: B023
            save(folder)
            yield Step(calls=(client.shell(command),))
            made += 1
            if not (has_text(folder / "d.txt", SAVED) and has_text(folder / "new.txt", "a person's\n")):
                lost.append(name)

    client.models.players["pause"] = Player(moves())
    client.ask(play("pause"))
    assert lost == [], client.results("pause")
    told = [said for said in client.results("pause") if "a person's work" in said]
    assert len(told) >= len(DESTROYERS), client.results("pause")


REFUSING = {"claude-code": ("--permission-mode", "plan"), "codex": ("-c", 'sandbox_mode="read-only"')}


def test_a_write_that_the_client_refuses_keeps_no_peer_out(client: Client) -> None:
    """Our check lets it pass, the client does not: a peer replaces the file in the pause after that."""
    folder, peer = client.ground.checkout, PlayedPeer(client.ground)
    (folder / "b.txt").write_text(BEFORE)
    client.ground.commit(folder)

    def moves() -> Generator[Step, list[str], None]:
        calls = client.change("b.txt", "alpha", "mine")
        for call in calls:
            yield Step(calls=(call,))
        assert wait_for(lambda: results_on_disk(client, len(calls)), 60)
        peer.creates("b.txt", "a peer's\n")

    client.models.players["refused"] = Player(moves())
    client.ask(play("refused"), extra=REFUSING[client.name])
    assert has_text(folder / "b.txt", "a peer's\n"), client.results("refused")
