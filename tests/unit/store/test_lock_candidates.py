"""Locks found through indexes are those that comparing every row would find; and few rows are read for it."""

import os
import tempfile
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.altered import Listening
from support.fixtures import put_empty_store

from swarm_hook_core import wildcards
from swarm_hook_core.paths import NO_CASE
from swarm_mcp.domain import Lock, keeps_out
from swarm_mcp.store import Store, grants, lock_finder, lock_rows
from swarm_mcp.store.lock_listing import Holder
from swarm_mcp.store.lock_request import Reach, meet, reach_in
from swarm_mcp.store.lock_rows import Asking, first_look, globs, numbered, question

pytestmark = pytest.mark.slow

TOP = "/no such folder"
NAMES = ("a", "b", "A", "src", "x.py", "X.PY", "y.md", "[z]", "ä*")
PARTS = ("**", "*", "*.py", "?", "[ab]", "[!x]*", "a", "src", "x.py", "*.md", "\\[z]", "s*c", "ä*")
SESSIONS = ("me", "other", "third", "gone")


def _key(path: str, caseless: bool) -> str:
    return NO_CASE + wildcards.folded(path) if caseless else path


def _is_good(pattern: str) -> bool:
    try:
        return bool(wildcards.parsed(pattern))
    except wildcards.PatternUnreadable:  # such a pattern names no path
        return False


paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(lambda names: "/".join([TOP, *names]))
patterns = st.builds(
    lambda first, parts, last: first + "/".join(parts) + last,
    st.sampled_from(("", "", "/", "./")),
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=4),
    st.sampled_from(("", "", "/")),
).filter(_is_good)


@st.composite
def places(draw, caseless: bool, keyless: bool = False) -> dict:
    """Return the object of a lock, in the columns of its row."""
    kind = draw(st.sampled_from(("file", "file", "folder", "pattern")))
    path = draw(paths)
    if kind == "pattern":
        base, pattern = os.path.dirname(path), draw(patterns)
        file = os.path.join(base, pattern.lstrip("/"))
        reach = reach_in({"file": file, "pattern": pattern, "base": _key(base, caseless)})
        assert reach
        return {"file": file, "path_key": reach.key, "pattern": pattern, "base": reach.base}
    real = path if caseless else draw(st.sampled_from((path, path, path, draw(paths))))  # it may be named by a link
    key = _key(real, caseless)
    if keyless and kind == "file" and draw(st.booleans()):
        return {"file": path, "path_key": None, "pattern": None, "base": None}
    return {"file": path, "path_key": key, "pattern": None, "base": key if kind == "folder" else None}


@st.composite
def worlds(draw) -> tuple[list[dict], Reach]:
    rows = []
    asked_caseless = draw(st.booleans())
    for number in range(draw(st.integers(0, 12))):
        row = draw(places(asked_caseless or draw(st.booleans()), keyless=not asked_caseless))
        row.update(id=f"lock {number}", instance_id=draw(st.sampled_from(SESSIONS)), created_at=number)
        row.update(agent=draw(st.sampled_from((None, "one"))), mode=draw(st.sampled_from((None, "shared"))))
        rows.append(row)
    asked = draw(places(asked_caseless))
    if not asked["pattern"]:
        asked["keys"] = [asked["path_key"], asked["file"], _key(asked["file"], True)]
    reach = reach_in(asked)
    assert reach
    return rows, reach


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "store", "swarm.db")
        put_empty_store(path)
        with Store(path) as opened:
            for name in SESSIONS:
                heartbeat = 0 if name == "gone" else int(time.time()) + 10_000
                opened.database.change(
                    "INSERT INTO instances (id, directory, pid, label, heartbeat, adopted, lease_until)"
                    " VALUES (?, '/', 1, ?, ?, 0, ?)",
                    (name, name, heartbeat, heartbeat),
                )
            yield opened


def fill(store: Store, rows: list[dict]) -> None:
    with store.database.writing():
        store.database.change("DELETE FROM context")
        for row in rows:
            names = ", ".join(row)
            insert = f"INSERT INTO context (scope, type, content, {names}) VALUES (?, 'lock', ''{', ?' * len(row)})"
            store.database.change(insert, (row["id"], *row.values()))


def compared(rows: list[dict], reach: Reach) -> list[str]:
    """Return the result of comparing every row."""
    return [row["id"] for row in rows if (there := reach_in(row)) and meet(reach, there)]


@given(worlds())
@pytest.mark.thorough
def test_what_is_found_is_what_comparing_all_rows_finds(store: Store, world: tuple[list[dict], Reach]):
    rows, reach = world
    fill(store, rows)
    assert [lock.id for lock in lock_rows.in_place(store.database, reach)] == compared(rows, reach)


@given(worlds(), st.sampled_from(("", "one", "two")), st.sampled_from(("exclusive", "shared")))
@pytest.mark.thorough
def test_whoever_asks_meets_one_that_keeps_it_out_or_all_that_matters(
    store: Store, world: tuple[list[dict], Reach], agent: str, mode: str
):
    rows, reach = world
    fill(store, rows)
    asking, few = Asking("me", agent, mode), lock_rows.FEW
    lock_rows.FEW = 2
    try:
        found = {lock.id for lock in lock_rows.in_place(store.database, reach, asking)}
    finally:
        lock_rows.FEW = few
    met = [row for row in rows if row["id"] in compared(rows, reach)]
    assert found <= {row["id"] for row in met}
    keeping = {row["id"] for row in met if keeps_out(Lock(row), *asking[:3])}
    live = {row["id"] for row in met if row["instance_id"] != "gone"}
    if keeping & live:
        assert found & keeping & live
    else:
        own = {row["id"] for row in met if lock_finder.is_same(Lock(row), reach)}
        assert keeping | own <= found


@given(worlds(), st.sampled_from(("", "one", "two")), st.sampled_from(("exclusive", "shared")))
def test_the_first_look_misses_nothing_that_the_question_finds(
    store: Store, world: tuple[list[dict], Reach], agent: str, mode: str
):
    rows, reach = world
    fill(store, rows)
    asking = Asking("me", agent, mode)
    condition, values = first_look(reach, asking)
    sql, given_once = numbered(f"SELECT {condition} AS met", values)
    (told,) = store.database.rows(sql, given_once)
    sql, values = question(reach, asking)
    assert bool(told["met"]) == bool(store.database.rows(sql, values))


def test_a_file_in_a_place_of_letter_case_inside_of_one_without_is_met_by_a_pattern(store: Store):
    row = {"file": "/A/disk/X.py", "path_key": "/A/disk/X.py", "base": None, "pattern": None}
    fill(store, [{**row, "id": "lock", "instance_id": "other", "created_at": 1, "agent": None, "mode": None}])
    reach = reach_in({"file": "/A/*.py", "pattern": "*.py", "base": "nocase:/a"})
    assert reach and [lock.id for lock in lock_rows.in_place(store.database, reach)] == ["lock"]


@given(patterns, st.booleans(), paths)
def test_what_a_pattern_covers_is_in_its_globs(store: Store, pattern: str, fold: bool, path: str):
    segments = (*wildcards.of_path(TOP, fold), *wildcards.parsed(pattern, fold))
    whole = wildcards.folded(path) if fold else path
    files, folders, too_deep = globs(segments, wildcards.folded(TOP) if fold else TOP)
    sql = f"SELECT ? GLOB ? AS file, {' OR '.join(['? GLOB ?'] * len(folders))} AS folder, ? GLOB ? AS deep"
    values = (whole, files, *(value for glob in folders for value in (whole, glob)), whole, too_deep)
    told = store.database.rows(sql, values)[0]
    if wildcards.covers(segments, whole):
        assert told["file"] and not told["deep"]
    if wildcards.overlap(wildcards.of_path(whole, deep=True), segments):
        assert told["folder"] and not told["deep"]


@pytest.mark.parametrize("asking", [None, Asking("me", "one", "shared")])
@pytest.mark.parametrize(
    "asked",
    [
        {"file": "/a/b", "path_key": "/a/b", "base": None},
        {"file": "/a/b", "path_key": "/a/b", "base": "/a/b"},
        {"file": "/a/b/src/**/*.py", "pattern": "src/**/*.py", "base": "/a/b"},
        {"file": "/A/b/*.py", "pattern": "*.py", "base": "nocase:/a/b"},
        {"file": "/__swarm/x", "path_key": None, "base": None},
    ],
)
def test_only_indexes_of_locks_are_asked(store: Store, asked: dict, asking: Asking | None):
    reach = reach_in(asked)
    assert reach
    sql, values = question(reach, asking)
    plan = [row["detail"] for row in store.database.rows(f"EXPLAIN QUERY PLAN {sql}", values)]
    steps = [step for step in plan if step.startswith(("SEARCH", "SCAN", "MULTI"))]
    assert len(steps) == sql.count("SELECT"), plan
    unkeyed = [step for step in steps if "path_key=?" in step and "IS NULL" in sql]
    assert all("INDEX swarm_lock_" in step and step.startswith("SEARCH") for step in steps), plan
    assert len(unkeyed) <= 2, plan  # by name, and patterns by folder: never all without a key
    condition, values = first_look(reach, asking or Asking("me"))
    plan = [row["detail"] for row in store.database.rows(f"EXPLAIN QUERY PLAN SELECT {condition}", values)]
    walks = [step for step in plan if step.startswith("SCAN") and step != "SCAN CONSTANT ROW"]
    # The index of locks with another spelling than their key: its first entry suffices.
    assert all("swarm_lock_spelling_idx" in step for step in walks), plan


def test_whoever_holds_a_hundredth_lock_below_is_among_those_a_waiter_waits_for(store: Store):
    """The locks that are looked at first are all of one holder; a circle through another one must still be found."""
    row = {"base": None, "pattern": None, "agent": None, "mode": None, "created_at": 1}
    files = [f"{TOP}/{number}.py" for number in range(lock_rows.FEW * 2)]
    rows = [{**row, "id": file, "file": file, "path_key": file, "instance_id": "other"} for file in files]
    rows[-1]["instance_id"], rows[-2]["agent"], rows[-3]["instance_id"] = "third", "one", "gone"
    fill(store, rows)
    reach = reach_in({"file": f"{TOP}/*.py", "pattern": "*.py", "base": TOP})
    kept = grants._keeping(store.database, Holder("me"), "exclusive", [reach])
    assert sorted(kept) == [("other", ""), ("other", "one"), ("third", "")]


@pytest.mark.parametrize(("holder", "asked", "most"), [("me", "*.py", 0), ("other", "*.md", 0), ("other", "*.py", 2)])
def test_of_the_many_locks_below_a_pattern_few_are_read(
    store: Store, listening: Listening, holder: str, asked: str, most: int
):
    row = {"base": None, "pattern": None, "agent": None, "mode": None, "created_at": 1, "instance_id": holder}
    files = [f"{TOP}/{number}.py" for number in range(300)]
    fill(store, [{**row, "id": file, "file": file, "path_key": file} for file in files])
    read = listening(store.database, "rows")
    reach = reach_in({"file": f"{TOP}/{asked}", "pattern": asked, "base": TOP})
    assert bool(lock_rows.in_place(store.database, reach, Asking("me"))) == bool(most)
    assert sum(len(call.result) for call in read) <= most * lock_rows.FEW
