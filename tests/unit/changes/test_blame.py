"""``swarm-mcp blame``: the author of each line."""

from __future__ import annotations

import pytest
from support.world import World

FILE = "notes.md"


def test_each_line_has_its_author(world: World) -> None:
    world.write(FILE, "alpha\nbeta\nPERSON\n")
    me = world.session("codex")
    me.edit(FILE, "beta", "MINE\n\tindented")
    rows = world.swarm("blame", FILE).json["lines"]
    head = world.git("rev-parse", "HEAD").strip()
    assert [(row["line"], row["text"], row["committed"], row["commit"]) for row in rows] == [
        (1, "alpha\n", True, head), (2, "MINE\n", False, None), (3, "\tindented\n", False, None),
        (4, "PERSON\n", False, None),
    ]  # fmt: skip
    (author,) = rows[1]["authors"]
    assert (author["name"], author["tool"]) == (f"codex {me.id[:8]}", "apply_patch")
    assert author["at"] and author["instance_id"] == me.id
    assert rows[3]["authors"][0]["is_person"] and rows[0]["author"]
    lines = world.ground.swarm("blame", FILE).out.splitlines()
    assert [line.split()[0] for line in lines] == [head[:8], "codex", "codex", "a"]
    assert lines[2].endswith("3      indented")
    assert len(world.ground.swarm("blame", FILE, "--uncommitted").out.splitlines()) == 3


def test_a_line_names_the_task_of_its_session_at_that_time(world: World) -> None:
    me, other = world.session("codex"), world.session()
    with world.store() as store:
        task = store.tasks.request(store.instances.get(other.id), {"type": "implement", "title": "Renumber"})["task"]
        store.tasks.claim(store.instances.get(me.id), task["id"])
    me.edit(FILE, "beta", "MINE")
    (row,) = world.swarm("blame", FILE, "--uncommitted").json["lines"]
    assert row["authors"][0]["task"] == {"id": task["id"], "title": "Renumber"}
    assert f"(task {task['id'][:8]})" in world.ground.swarm("blame", FILE).out


def test_an_agent_and_several_authors_are_named(world: World) -> None:
    one, two = world.session("codex"), world.session("codex")
    two.edit("other.md", "alpha", "x")
    change = {"command": f"*** Begin Patch\n*** Update File: {FILE}\n@@\n-gamma\n+BOTH\n*** End Patch"}
    one.ask("apply_patch", change, "helper")
    two.edit(FILE, "gamma", "BOTH")
    (row,) = world.swarm("blame", FILE, "--uncommitted").json["lines"]
    assert {author["agent"] for author in row["authors"]} == {"helper", None}
    assert " or " in world.ground.swarm("blame", FILE, "--uncommitted").out


@pytest.mark.parametrize("made", ["binary", "untracked", "first commit", "ends alone", "missing"])
@pytest.mark.sampled
def test_odd_files(made: str, world: World) -> None:
    path = world.repo / FILE
    if made == "binary":
        path.write_bytes(b"a\0b")
        found = world.swarm("blame", FILE).json
        assert (found["reason"], found["lines"], found["authors"][0]["name"]) == ("binary", [], "a person")
        return
    if made == "missing":
        done = world.ground.swarm("blame", "nothing.md")
        assert done.code == 1 and "is no file" in done.err
        return
    if made == "untracked":
        world.write("new.md", "a\nb\n")
        found = world.swarm("blame", "new.md").json
    elif made == "first commit":
        world.git("update-ref", "-d", "HEAD")
        found = world.swarm("blame", FILE).json
    else:
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        found = world.swarm("blame", FILE).json
    assert found["lines"] and not any(line["committed"] for line in found["lines"])
    assert {author["name"] for line in found["lines"] for author in line["authors"]} == {"a person"}
