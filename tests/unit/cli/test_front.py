"""The first commands name things as a person does: lines, owners, workers, and each refusal by itself."""

import os

import pytest
from support.fixtures import Ground
from support.world import World

from swarm_mcp.answers.people import People
from swarm_mcp.answers.work import worker
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow


def test_blame_takes_a_line_and_lines(world: World) -> None:
    world.session("codex", "agent0").edit("notes.md", "beta", "THEIRS")
    (line,) = world.ground.swarm("blame", "notes.md:2").out.splitlines()
    assert line.split()[0] == "agent0" and line.split()[-2:] == ["2", "THEIRS"]
    assert [one["line"] for one in world.swarm("blame", "notes.md:1-2").json["lines"]] == [1, 2]
    done = world.ground.swarm("blame", "notes.md:900")
    assert done.code == 1 and "has no line 900" in done.err
    world.write("odd:2", "one\ntwo\nthree\n")
    assert len(world.swarm("blame", "odd:2").json["lines"]) == 3, "a file of that name"


def test_diff_of_a_missing_file_says_so(world: World) -> None:
    done = world.ground.swarm("diff", "nosuch.md")
    assert done.code == 1 and "nosuch.md is not there" in done.err and not done.out
    os.remove(world.repo / "other.md")
    assert "other.md" in world.ground.swarm("diff", "other.md").out, "a removed file is a change"
    assert world.ground.swarm("diff", "notes.md").code == 0


def test_the_kept_contents_have_owners_and_restoring_over_others_asks(world: World, monkeypatch) -> None:
    first, second = world.session("codex", "agent0"), world.session("claude-code", "agent1")
    first.edit("notes.md", "alpha", "FIRST")
    second.edit("notes.md", "FIRST", "SECOND")
    kept = world.swarm("restore", "--list", "notes.md").json
    assert kept and all(one["by"] for one in kept), kept
    assert {name for name in ("agent0", "agent1") for one in kept if name in one["by"]} == {"agent0", "agent1"}, kept
    before, asked = world.read("notes.md"), []

    def agreed(question: str, answer: bool | None) -> bool | None:
        asked.append(question)
        return answer

    monkeypatch.setattr("swarm_mcp.cli.commands.restore.agreed", lambda question: agreed(question, False))
    done = world.ground.swarm("restore", "notes.md", "--id", kept[-1]["id"])
    assert done.code == 1 and "is left as it is" in done.err and world.read("notes.md") == before
    assert "agent1" in asked[0] and "uncommitted changes of" in asked[0]
    monkeypatch.setattr("swarm_mcp.cli.commands.restore.agreed", lambda question: agreed(question, None))
    done = world.ground.swarm("restore", "notes.md", "--id", kept[-1]["id"])
    assert done.code == 0 and "without the uncommitted changes of" in done.out and world.read("notes.md") != before


def test_why_names_paths_from_where_the_reader_stands(world: World) -> None:
    world.write("sub/deep.md", "a person's\nown words\n")
    for folder, name in ((world.repo, "sub/deep.md"), (world.repo / "sub", "deep.md")):
        told = world.ground.swarm("why", name, cwd=folder).out
        assert f"`cat {name}`" in told and str(world.repo) not in told, told


def test_a_worker_keeps_its_name_and_the_newest_is_meant(ground: Ground, store: Store) -> None:
    done = ground.swarm("logs")
    assert done.code == 1 and "no agent has run here" in done.err
    me = ground.session("w", "origin:codex run:4f1c2b7e-0000-4000-8000-000000000001")
    run = {"scope": ground.scope, "instance_id": me.id, "harness": "codex", "cwd": ground.scope, "state": "running"}
    store.runs.begin({**run, "id": "4f1c2b7e-0000-4000-8000-000000000001", "record": ""})
    found = store.runs.get("4f1c2b7e-0000-4000-8000-000000000001")
    name = worker(store, found, People(store)).name
    store.instances.remove(me.id)
    assert worker(store, found, People(store)).name == name == "worker codex 4f1c2b7e"
    assert "4f1c2b7e" in ground.swarm("logs").err, "without an id the newest run is meant"
