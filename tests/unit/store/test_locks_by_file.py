"""`locks --file`: one file's lock, under every name and from every folder, at a cost independent of the table's size."""

import pytest
from support.fixtures import Ground

from swarm_mcp.store import Store, grants

pytestmark = pytest.mark.slow

MANY = 100_000


def files(ground: Ground, *argv: str, **options) -> list[str]:
    done = ground.swarm("locks", *argv, "--json", **options)
    assert done.code == 0, done
    return [row["file"] for row in done.json]


def test_only_that_file_in_whatever_scope(ground: Ground):
    one = ground.session("1", "one")
    far = ground.session("2", "far", directory="/far", scope="/far")
    ground.lock(one, "a")
    ground.lock(one, "b")
    ground.lock(far, f"{ground.scope}/c", "note")
    assert files(ground, "--file", "a") == [f"{ground.scope}/a"]
    assert files(ground, "--file", "c") == [f"{ground.scope}/c"], "taken in another scope, and held all the same"
    assert files(ground, "--file", "free") == []
    assert files(ground, "--file", "b", "--file", "a", "--file", "./b") == [f"{ground.scope}/b", f"{ground.scope}/a"]
    (shown,) = ground.swarm("locks", "--file", "c", "--json").json
    (listed,) = ground.swarm("locks", "--scope", "/far", "--json").json
    assert shown == listed, "the same shape as in the listing"
    assert ground.swarm("locks", "--file", "c").out == f"  far {far['id'][:8]}  c  — note\n"
    assert ground.swarm("locks", "--file", "free").out == "(no locks)\n"


def test_a_relative_name_counts_from_here_and_from_the_sessions_folder(ground: Ground):
    sub = ground.repo / "sub"
    sub.mkdir()
    tree = ground.folder / "tree"
    (tree / ".git").mkdir(parents=True)
    one = ground.session("1", directory=str(sub))
    in_tree = ground.session("2", directory=str(tree), file_root=ground.scope, scope=ground.scope)
    ground.lock(one, "f")
    ground.lock(in_tree, "g")
    assert files(ground, "--file", "f", "--as", one["id"]) == [f"{sub}/f"]
    assert files(ground, "--file", "f", "--as", in_tree["id"]) == []
    assert files(ground, "--file", "f", "--as", in_tree["id"], cwd=sub) == [f"{sub}/f"]
    assert files(ground, "--file", "g", "--as", in_tree["id"], cwd=tree) == [f"{ground.scope}/g"]
    assert files(ground, "--file", f"{tree}/g", "--as", in_tree["id"], cwd=sub) == [f"{ground.scope}/g"]
    assert files(ground, "--file", "../sub/f", cwd=sub) == [f"{sub}/f"]


def test_a_hundred_thousand_locks_cost_nothing(ground: Ground, monkeypatch):
    """Counted in steps of the database's own machine, undisturbed by a busy processor."""
    one = ground.session("1")
    ground.lock(one, "f")
    steps = []

    class Counting(Store):
        def __init__(self, *words, **named):
            super().__init__(*words, **named)
            self.database.connection.set_progress_handler(lambda: steps.append(1), 10)

    monkeypatch.setattr("swarm_mcp.cli.commands.locks.Store", Counting)
    assert files(ground, "--file", "f") == [f"{ground.scope}/f"]
    few = len(steps)
    ground.sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
        " INSERT INTO context (id, scope, instance_id, file, type, content, path_key)"
        " SELECT 'lock ' || i, ?, ?, ? || '/many/' || i, 'lock', '', ? || '/many/' || i FROM n",
        MANY, ground.scope, one["id"], ground.scope, ground.scope,
    )  # fmt: skip
    steps.clear()
    assert files(ground, "--file", "f") == [f"{ground.scope}/f"]
    assert 0 < len(steps) <= few * 1.5 + 2, (few, len(steps))
    steps.clear()
    assert files(ground, "--file", "many/77777") == [f"{ground.scope}/many/77777"]
    assert len(steps) <= few * 1.5 + 2


def test_a_row_that_the_table_does_not_take_is_an_error_and_not_tried_for_ever(ground: Ground, monkeypatch) -> None:
    """Here two grants of one id."""
    me = ground.session("me")
    monkeypatch.setattr(grants, "new_id", lambda: "one")
    with ground.store() as store:
        store.locks.acquire(me, "a.py")
        with pytest.raises(Exception, match="UNIQUE"):
            store.locks.acquire(me, "b.py")
        assert [lock.file for lock in store.locks.of(me["id"])] == [str(ground.repo / "a.py")]
