"""Automatic locks as commands show them: taken by a write, until its turn ends."""

import json
import re
import time

import pytest
from support import turns
from support.fixtures import Ground


@pytest.fixture
def file(ground: Ground) -> str:
    """A file that session `me` has written in its turn; `peer` is there too."""
    ground.session("me", "me", runtime="codex"), ground.session("peer", "peer", runtime="codex")
    path = str(ground.repo / "f")
    turns.write(("codex", "me"), path)
    return path


def test_listings_show_them(ground: Ground, file: str):
    assert "f  — editing it in this turn  [auto, " in ground.swarm("locks").out
    (row,) = json.loads(ground.swarm("locks", "--json").out)
    assert (row["file"], row["mode"], row["owner_label"]) == (file, "auto", "me")
    assert '("editing it in this turn")  [auto, ' in ground.swarm("status").out


def test_they_are_counted(ground: Ground, file: str):
    assert json.loads(ground.swarm("status", "--json").out)["lock_count"] == 1


def test_why_says_until_when(ground: Ground, file: str):
    told = ground.swarm("why", file).out
    assert "auto, held by me" in told
    assert re.search(r"until its turn ends, or in (9|10) min without a further write", told)
    assert "until its turn ends, at most 10 min after its last write to it" in told
    (held,) = json.loads(ground.swarm("why", file, "--json").out)["held"]
    assert held["mode"] == "auto"


def test_the_log_has_its_grant_and_its_end(ground: Ground, file: str):
    ground.swarm("locks")
    words = ("--runtime", "codex", "--session-id", "me", "--state", "idle", "--turn-over", str(time.time_ns()))
    assert ground.swarm("register", str(ground.repo), *words).code == 0
    begun, ended = ground.swarm("log", file).out.splitlines()
    assert "acquired" in begun and "mode auto" in begun
    assert "turn ended" in ended and "mode auto" in ended
    assert ground.swarm("locks").out == "(no locks)\n"
