"""A person works while a model thinks, and the session's next call would throw that work away."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from swarm_mcp.play.models import Player, Step, play

from .client import Call, Client
from .ground import has_text, wait_for
from .played_peer import PlayedPeer

pytestmark = pytest.mark.ways("install")

PROMISED = pytest.mark.promise(
    "a person's uncommitted work is not lost at keep, also beside one session",
    only=("claude-code-install-a command", "codex-install-a tool"),
)
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
    return log_of(client).count(LOGS[client.name][1]) >= count


def log_of(client: Client) -> str:
    """Return the client's newest log."""
    logs = sorted((client.ground.home / LOGS[client.name][0]).rglob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    return logs[-1].read_text() if logs else ""


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
        client.ground.git(folder, "checkout", "-q", "--", "b.txt", "d.txt")
        for call in (*WRITES[written](client), *client.look("d.txt")):
            yield Step(calls=(call,))
            made += 1
        assert wait_for(lambda: results_on_disk(client, made), 60), "a whole write"
        save(folder)
        yield Step(calls=(client.create("d.txt", "fresh\n"),))
        if "a person's\n" not in (folder / "d.txt").read_text():
            lost.append("a whole write")

    client.models.players["pause"] = Player(moves())
    client.ask(play("pause"))
    assert lost == [], client.results("pause")
    told = [said for said in client.results("pause") if "a person's work" in said]
    assert len(told) >= len(DESTROYERS), client.results("pause")


def in_background(client: Client, command: str) -> Call:
    """Return the call of a command that goes on after its launch."""
    call = client.shell(command)
    if client.name == "claude-code":
        call["input"]["run_in_background"] = True
    else:
        call["arguments"]["yield_time_ms"] = 250
    return call


NOTICES = {"claude-code": "<task-notification>", "codex": '"CommandExecution"'}


def test_a_command_in_the_background_may_write_until_its_end(client: Client) -> None:
    """A person's save after that end is the person's alone."""
    folder = client.ground.checkout
    for name in FILES:
        (folder / name).write_text(BEFORE)
    client.ground.commit(folder)
    go, command = folder / "go", "until [ -e go ]; do sleep 0.05; done; echo built >> d.txt"

    def owners(name: str) -> list[list[bool]]:
        """Return the persons among the possible authors of each uncommitted line."""
        argv = [str(client.ground.bin / "swarm-mcp"), "blame", name, "--json"]
        lines = json.loads(client.ground.run(argv, cwd=folder).stdout)["lines"]
        return [[author["is_person"] for author in line["authors"]] for line in lines if line["authors"]]

    def moves() -> Generator[Step, list[str], None]:
        yield Step(calls=(in_background(client, f"sh -c '{command}'"),))
        yield Step(calls=(client.shell("ls"),))
        assert wait_for(lambda: results_on_disk(client, 2), 60)
        before = log_of(client).count(NOTICES[client.name])
        go.touch()
        assert wait_for(lambda: log_of(client).count(NOTICES[client.name]) > before, 60), "no end in the log"
        assert owners("d.txt") == [[False, True]]
        (folder / "e.txt").write_text(SAVED)
        assert owners("e.txt") == [[True]]
        yield Step(calls=(client.shell("git checkout e.txt"),))

    client.models.players["background"] = Player(moves())
    client.ask(play("background"))
    assert has_text(folder / "e.txt", SAVED), client.results("background")


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
