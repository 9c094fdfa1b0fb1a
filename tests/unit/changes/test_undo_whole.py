"""`swarm-mcp undo` of all that a session can do to a file: each comes back as it was, and an undo of that undo too."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from support.world import Agent, World

from swarm_hook_core.state import state_dir
from swarm_hook_core.traces.versions import NO_FILE, NOT_KEPT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checks_have_time", "no_faults")]

LARGE = 2 * 1024 * 1024
DEEDS = {
    "a mode": "chmod +x plain",
    "a mode taken away": "chmod -x program",
    "a mode and a line": "chmod +x plain && echo mine >> plain",
    "a link made": "ln -s plain new",
    "a link retargeted": "ln -sfn program link",
    "a link removed": "rm link",
    "a link renamed": "mv link moved",
    "a link made a file": "rm link && echo mine > link",
    "a file made a link": "rm plain && ln -s program plain",
    "a folder of links": "mkdir box && ln -s ../plain box/one && ln -s nowhere box/two",
    "a file renamed": "mv plain moved",
    "a file renamed and changed": "mv plain moved && echo mine >> moved",
    "a file removed and made again": "rm plain && echo mine > plain",
    "a program removed": "rm program",
    "binary changed": "printf 'x\\0y' > binary",
    "binary removed": "rm binary",
    "binary made": "printf 'x\\0y' > new",
    "large made": f"head -c {LARGE} /dev/zero > new",
    "large changed": f"head -c {LARGE} /dev/zero > large",
    "large removed": "rm large",
    "large renamed": "mv large moved",
    "large made small": "echo mine > large",
    "a file grown large": f"head -c {LARGE} /dev/zero >> plain",
    "a mode of a large file": "chmod +x large",
    "line ends": "sed -i 's/$/\\r/' plain",
    "the last newline": "printf alpha > plain",
    "emptied": "true > plain",
}


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return ``{name: (type and permissions, content or target)}`` of all files."""
    found = {}
    for path in sorted(folder.rglob("*")):
        inside, kind = path.relative_to(folder), path.lstat().st_mode
        if stat.S_ISLNK(kind):
            found[str(inside)] = (stat.S_IFLNK, os.fsencode(os.readlink(path)))
        elif stat.S_ISREG(kind) and inside.parts[0] != ".git":
            found[str(inside)] = (kind, path.read_bytes())
    return found


@pytest.fixture
def both(tmp_path: Path) -> tuple[World, Agent, Agent]:
    world = World(tmp_path, "plain", "other.md")
    for name, content in {"binary": b"a\0b", "large": b"line\n" * (LARGE // 5), "program": b"#!/bin/sh\n"}.items():
        (world.repo / name).write_bytes(content)
    (world.repo / "program").chmod(0o755)
    (world.repo / "link").symlink_to("plain")
    world.commit()
    peer = world.session("claude-code")
    peer.edit("other.md")
    return world, world.session("codex"), peer


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.sampled
def test_each_deed_is_taken_back_and_that_as_well(deed: str, both: tuple[World, Agent, Agent]) -> None:
    world, me, _peer = both
    before = state(world.repo)
    verdict = me.bash(DEEDS[deed])
    after = state(world.repo)
    assert not verdict.denied and after != before
    done = world.ground.swarm("undo", "--session", me.session_id, "--json")
    assert done.code == 0 and state(world.repo) == before, done
    done = world.ground.swarm("undo", "--undo", done.json["id"], "--json")
    assert done.code == 0 and state(world.repo) == after, done
    done = world.ground.swarm("undo", "--undo", done.json["id"], "--json")
    assert done.code == 0 and state(world.repo) == before, done


def test_an_ended_session_is_called_by_the_name_of_its_client(both: tuple[World, Agent, Agent]) -> None:
    world, me, _peer = both
    before = state(world.repo)
    me.edit("plain", "alpha", "MINE")
    world.sql("DELETE FROM instances WHERE id = ?", me.id)
    world.sql("DELETE FROM swarm_sessions WHERE instance_id = ?", me.id)
    wrong = world.ground.swarm("undo", "--session", "nobody")
    assert wrong.code == 1 and "; authors here: " in wrong.err and f"codex {me.session_id[:8]}" in wrong.err, wrong
    done = world.ground.swarm("undo", "--session", "codex")
    assert done.code == 0 and state(world.repo) == before, done


OF_BOTH = {  # the other's deed after the session's
    "a link": ("ln -sfn program link", "ln -sfn other.md link"),
    "binary": ("printf 'x\\0y' > binary", "printf 'z\\0z' > binary"),
    "large": ("echo mine >> large", "echo theirs >> large"),
}


@pytest.mark.parametrize("case", OF_BOTH)
def test_a_whole_file_of_two_sessions_is_named_and_left_alone(
    case: str, both: tuple[World, Agent, Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, me, peer = both
    monkeypatch.setenv("SWARM_AUTO", "notice")
    mine, theirs = OF_BOTH[case]
    me.bash(mine)
    assert not peer.bash(theirs).denied
    after = state(world.repo)
    done = world.ground.swarm("undo", "--session", me.session_id, "--json")
    assert done.code == 1 and "claude-code" in done.json["error"], done
    assert state(world.repo) == after


def test_a_person_s_change_of_a_large_file_is_named(both: tuple[World, Agent, Agent]) -> None:
    world, me, _peer = both
    me.bash("echo mine >> large")
    me.turn_ends()
    world.write("large", "a person's\n" * (LARGE // 10))
    done = world.ground.swarm("undo", "--session", me.session_id, "--json")
    assert done.code == 1 and "large" in done.json["error"] and "a person" in done.json["error"], done


def test_a_large_file_that_a_person_had_changed_before_is_not_the_commit_s(both: tuple[World, Agent, Agent]) -> None:
    world, me, _peer = both
    world.write("large", "a person's\n" * (LARGE // 10))
    me.bash("echo mine >> large")
    done = world.ground.swarm("undo", "--session", me.session_id, "--json")
    assert done.code == 1 and "neither kept nor in the last commit" in done.json["error"], done


def test_a_large_file_that_was_missing_before_goes_though_its_version_was_pruned(
    both: tuple[World, Agent, Agent],
) -> None:
    world, me, _peer = both
    (world.repo / "large").unlink()
    me.bash(f"head -c {LARGE} /dev/zero > large")
    me.turn_ends()
    marks = [
        path for path in Path(state_dir(), "kept").rglob("*large*") if stat.S_IMODE(path.lstat().st_mode) == NO_FILE
    ]
    assert marks
    for path in marks:
        path.chmod(NOT_KEPT)
    done = world.ground.swarm("undo", "--session", me.session_id, "--json")
    assert done.code == 0 and not (world.repo / "large").exists(), done
