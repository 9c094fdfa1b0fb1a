"""`swarm-mcp` alone: the front page at a terminal, the MCP server in a pipe."""

import os
import subprocess

import pytest
from support.fixtures import SWARM, Ground
from support.screen import Played

from swarm_mcp.installation import marketplace_folder
from swarm_mcp.store.lock_request import request

pytestmark = pytest.mark.slow

FIVE = ["install", "status", "lock", "unlock", "why"]


def front_page(ground: Ground, columns: int = 80, code: int = 0, words: tuple[str, ...] = ()) -> list[str]:
    """The lines that stand on a terminal, with the prompt that follows them."""
    with Played([*SWARM, *words], columns=columns, cwd=ground.repo) as played:
        assert played.ended() == code, played.screen.text
        assert [word for word in played.screen.broken if "/" not in word] == []
        return played.screen.lines


def verbs_in(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")]


@pytest.mark.parametrize("columns", [80, 120])
def test_it_has_the_five_verbs_and_fits_a_screen(ground: Ground, columns: int):
    me = ground.session("me", "identity:ours")
    for number in range(30):
        ground.lock(me, f"src/a-folder-with-a-rather-long-name/{number:02}.txt")
    lines = front_page(ground, columns)
    assert len(lines) <= 24 and max(map(len, lines)) <= columns
    assert verbs_in(lines[lines.index("Start here") :]) == FIVE
    assert "1 session, 30 locks" in lines and "and 25 more locks: swarm-mcp locks" in lines
    assert any("29.txt" in line for line in lines)


def test_who_waits_is_counted(ground: Ground):
    me, peer = ground.session("me", "identity:ours"), ground.session("peer", "identity:ours")
    ground.lock(me, "a.txt")
    with ground.store() as store:
        store.queue.join(peer, request(peer, ["a.txt"]), 60)
    (line,) = (line for line in front_page(ground) if line.startswith("a.txt"))
    assert line.endswith("  1")


def test_an_empty_checkout_is_told_the_first_step(ground: Ground):
    assert "Begin with: swarm-mcp install" in " ".join(" ".join(front_page(ground)).split())
    marketplace_folder().mkdir(parents=True)
    words = " ".join(" ".join(front_page(ground)).split())
    assert "An agent that you start here takes part by itself." in words and "Begin with" not in words


def test_a_store_that_cannot_be_read_hides_no_command(ground: Ground):
    ground.session("me")
    with open(ground.database, "wb") as file:
        file.write(b"no database at all" * 100)
    lines = front_page(ground, code=1)
    assert "swarm-mcp doctor" in " ".join(lines) and verbs_in(lines[lines.index("Start here") :]) == FIVE


def test_in_a_pipe_it_is_the_server(ground: Ground):
    done = subprocess.run(SWARM, input=b"", capture_output=True, cwd=ground.repo, timeout=60)
    assert done.returncode == 0 and b"Start here" not in done.stdout
    assert b"serving MCP on standard input" in done.stderr and done.stderr.count(b"\n") == 1, "and says so"


def test_typed_at_a_terminal_and_read_elsewhere_it_is_the_same_as_text(ground: Ground):
    ours, theirs = os.openpty()
    try:
        done = subprocess.run(SWARM, stdin=theirs, capture_output=True, text=True, cwd=ground.repo, timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and verbs_in(lines[lines.index("Start here") :]) == FIVE and "\x1b" not in done.stdout


def test_an_empty_word_is_no_command(ground: Ground):
    assert ground.swarm("").code == 2
