"""Mutual exclusion: one holder a file, under every name, in every process, until it lets go or provably dies."""

import json
import os
import signal
import time
import unicodedata

import pytest
from support import many_processes as crowd
from support.files import folder_at
from support.fixtures import Ground, Sleeper, wait_for

from swarm_hook_core.paths import ignores_case
from swarm_hook_core.process import start_time
from swarm_mcp.errors import LockRefused, SwarmError
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

pytestmark = pytest.mark.slow


def holders(ground: Ground, path: str) -> list[str]:
    with ground.store(read_only=True) as store:
        return [row["instance_id"] for row in store.locks.on(path)]


def refused(ground: Ground, instance: dict, file, *words) -> dict:
    with pytest.raises(LockRefused) as refusal:
        ground.lock(instance, file, *words)
    return refusal.value.active


def test_a_lock_and_its_refusal(ground: Ground):
    one, two = ground.session("1", "one"), ground.session("2", "two")
    lock = ground.lock(one, "src/a.py", "why")
    active = refused(ground, two, "src/a.py")
    contract = ["id", "instance_id", "file", "type", "content", "created_at", "owner", "active_tasks"]
    assert list(active) == [*contract, "fence"]
    assert (active["id"], active["instance_id"], active["content"]) == (lock["id"], one["id"], "why")
    assert active["file"] == f"{ground.scope}/src/a.py" and active["active_tasks"] == []
    assert list(active["owner"]) == [
        "id", "label", "heartbeat", "heartbeat_age_seconds", "stale", "reclaimable", "active",
    ]  # fmt: skip
    assert (active["owner"]["stale"], active["owner"]["reclaimable"], active["owner"]["active"]) == (False, False, True)


def test_a_refusal_shows_at_most_five_tasks_in_work(ground: Ground):
    one, two = ground.session("1", "one"), ground.session("2", "two")
    ground.lock(one, "f")
    for number, status in enumerate(["claimed"] * 4 + ["in_progress"] * 3 + ["done", "open"]):
        ground.add("tasks", id=f"t{number}", scope=ground.scope, type="fix", title="T", requester="x",
                   assignee=one["id"], status=status)  # fmt: skip
    tasks = refused(ground, two, "f")["active_tasks"]
    assert len(tasks) == 5 and {task["status"] for task in tasks} <= {"claimed", "in_progress"}
    assert list(tasks[0]) == ["id", "type", "title", "status"]


def test_a_relock_renews_id_note_time_and_task_in_one_row(ground: Ground):
    one = ground.session("1")
    first = ground.lock(one, "f", "a")
    ground.sql("UPDATE context SET created_at = created_at - 100")
    second = ground.lock(one, "f", "b", False, "task-1")
    (row,) = ground.sql("SELECT * FROM context")
    assert row["id"] == second["id"] != first["id"]
    assert (row["content"], row["task_id"], row["created_at"]) == ("b", "task-1", second["created_at"])


def test_a_session_that_was_silent_for_long_keeps_what_it_asks_for_again(ground: Ground):
    """Its heartbeat counts before its locks are judged: its place is still free."""
    one = ground.session("1", "one", lease_seconds=600)
    lock = ground.lock(one, "a.py", "first")
    ground.backdate(one, 700)
    again = ground.lock(one, "a.py", "second")
    assert again["fence"] == lock["fence"] and holders(ground, f"{ground.scope}/a.py") == [one["id"]]
    assert [row["id"] for row in ground.sql("SELECT id FROM instances")] == [one["id"]]


def test_a_relock_never_lets_a_peer_in(ground: Ground):
    """The holder locks again and again for as long as any of its peers still tries."""
    holder, peers = ground.session("h"), [ground.session(str(number)) for number in range(3)]
    ground.lock(holder, "f")
    body = """
store, got, tries = Store(), [], 0
gate()
while len(os.listdir(arguments["done"])) < 3 if arguments["owner"] else tries < 40:
    tries += 1
    try:
        got.append(store.locks.acquire(Session(arguments["row"]), "f").fence)
    except LockRefused:
        got.append(None)
open(f"{arguments['done']}/{os.getpid()}", "w").close()
report(sorted(set(got), key=str))
"""
    done = folder_at(ground.folder / "done")
    crew = [{"row": row, "owner": row is holder, "done": str(done)} for row in (holder, *peers)]
    ended = crowd.run(body, crew)
    assert [member.reports for member in ended] == [[[1]], *[[[None]]] * 3], ended
    assert holders(ground, f"{ground.scope}/f") == [holder["id"]]


@pytest.fixture
def names(ground: Ground) -> Ground:
    """A file `real/f`, and links to it and to its folder."""
    (ground.repo / "real" / "deep").mkdir(parents=True)
    (ground.repo / "real" / "f").write_text("")
    (ground.repo / "folder").symlink_to("real")
    (ground.repo / "far").symlink_to(ground.repo / "real" / "deep")
    (ground.repo / "file").symlink_to("real/f")
    (ground.repo / "twice").symlink_to("file")
    (ground.folder / "outside").symlink_to(ground.repo)
    return ground


SPELLINGS = [
    "real/f", "./real//f", "real/../real/f", "folder/f", "file", "twice", "real/deep/../f", "{repo}/real/f",
    "{repo}/folder/../real/f", "{outside}/folder/f", "{outside}/file", "//{repo}/real/f", " real/f ", "{repo}/real/f/",
]  # fmt: skip


def spelled(ground: Ground, text: str) -> str:
    return text.format(repo=ground.scope, outside=ground.folder / "outside")


@pytest.mark.parametrize("mine", SPELLINGS)
@pytest.mark.sampled
def test_every_spelling_of_a_file_is_the_same_lock(names: Ground, mine: str):
    one, two = names.session("1"), names.session("2")
    names.lock(one, spelled(names, mine))
    for theirs in SPELLINGS:
        assert refused(names, two, spelled(names, theirs))["instance_id"] == one["id"], theirs
    names.lock(one, spelled(names, "file"))
    assert names.sql("SELECT count(*) AS n FROM context") == [{"n": 1}]
    with names.store() as store:
        assert store.locks.release(one, spelled(names, "twice")) == 1


def test_a_link_out_of_a_linked_folder_is_resolved_both_ways(names: Ground):
    """`far/../g` is repo/g to an editor that normalises and repo/real/g to the kernel."""
    one, two = names.session("1"), names.session("2")
    names.lock(one, "real/g")
    assert refused(names, two, "folder/g")
    names.lock(two, "g")


LATER = ["place/f", "place/", "place/*", "place/**/f", "place/./f"]


@pytest.mark.parametrize("becomes", ["a link", "a folder"])
@pytest.mark.parametrize("mine", LATER)
@pytest.mark.sampled
def test_one_spelling_is_one_lock_though_its_folder_becomes_a_link(names: Ground, mine: str, becomes: str):
    """A hook looks for every spelling of a written path, so a later lock has to meet the earlier one."""
    one, two = names.session("1"), names.session("2")
    place, elsewhere = names.repo / "place", names.repo / "elsewhere"
    if becomes == "a link":
        place.mkdir()
    else:
        place.symlink_to("real")
    names.lock(one, mine)
    if becomes == "a link":
        place.rename(elsewhere)
        place.symlink_to("real")
    else:
        place.unlink()
        place.mkdir()
    for theirs in LATER:
        assert refused(names, two, theirs)["instance_id"] == one["id"], theirs
    names.lock(one, mine)
    assert names.sql("SELECT count(*) AS n FROM context") == [{"n": 1}], "it is that lock still"
    with names.store() as store:
        assert store.locks.release(one, mine) == 1
        assert store.locks.acquire_all(two, request(two, LATER))


@pytest.mark.parametrize(
    "name", ["Ünïcode ☃.md", "two  blanks", "-dash", "a'b\"c", "new\nline", "x" * 200, "%_", "ＦＵＬＬ"]
)
def test_odd_names_are_names(ground: Ground, name: str):
    one, two = ground.session("1"), ground.session("2")
    assert ground.lock(one, name)["file"] == f"{ground.scope}/{name}"
    assert refused(ground, two, name)["file"] == f"{ground.scope}/{name}"
    ground.lock(two, name + "2")


def test_letter_case_and_unicode_form_follow_the_file_system(ground: Ground):
    one, two = ground.session("1"), ground.session("2")
    (ground.repo / "Café.TXT").write_text("")
    ground.lock(one, "Café.TXT")
    others = ["café.txt", unicodedata.normalize("NFD", "Café.TXT")]
    if ignores_case(str(ground.repo / "Café.TXT")):
        assert all(refused(ground, two, other) for other in others)
    else:
        assert all(ground.lock(two, other) for other in others)


def test_a_lock_holds_in_every_scope(ground: Ground):
    elsewhere = folder_at(ground.folder / "elsewhere")
    one, two = ground.session("1"), ground.session("2", directory=str(elsewhere))
    three = ground.session("3", scope="/another/scope")
    assert len({one["scope"], two["scope"], three["scope"]}) == 3
    ground.lock(one, "f")
    for peer in (two, three):
        assert refused(ground, peer, f"{ground.scope}/f")["instance_id"] == one["id"]
    ground.lock(two, "f")
    assert holders(ground, str(elsewhere / "f")) == [two["id"]]
    assert [lock["file"] for lock in ground.swarm("locks", "--json").json] == [f"{ground.scope}/f"]


def test_a_file_root_stands_for_the_folder_it_names(ground: Ground):
    tree = ground.folder / "worktree"
    (tree / ".git").mkdir(parents=True)
    at_home = ground.session("1")
    in_tree = ground.session("2", directory=str(tree), file_root=ground.scope)
    assert ground.lock(in_tree, f"{tree}/src/a.py")["file"] == f"{ground.scope}/src/a.py"
    assert refused(ground, at_home, "src/a.py")["instance_id"] == in_tree["id"]
    assert ground.lock(in_tree, "b.py")["file"] == f"{ground.scope}/b.py"
    assert refused(ground, at_home, "b.py")


@pytest.mark.parametrize("file", ["", "   ", "a\0b", "\udcff"])
def test_what_names_no_file_is_refused(ground: Ground, file: str):
    with pytest.raises(SwarmError):
        ground.lock(ground.session("1"), file)
    assert ground.sql("SELECT count(*) AS n FROM context") == [{"n": 0}]


@pytest.mark.parametrize("path", ["/aaswarm/x", "/__SWARM/x", "/xyswarm/deep/er"])
def test_a_path_that_looks_like_a_mutex_is_a_path(ground: Ground, path: str):
    ground.lock(ground.session("1"), path)
    assert [lock["file"] for lock in ground.swarm("locks", "--json").json] == [path]


def test_mutexes_share_the_table_and_stay_out_of_listings(ground: Ground):
    one, two = ground.session("1"), ground.session("2")
    ground.lock(one, "/__swarm/spawn/x")
    assert refused(ground, two, "/__swarm/spawn/x")
    assert ground.swarm("locks", "--json").json == []


def foreign_lock(ground: Ground, file, holder: str = "f1", scope: str = "/their/scope") -> None:
    ground.add(
        "context", id=f"lock of {file}", scope=scope, instance_id=holder, file=str(file), type="lock", content=""
    )


@pytest.mark.parametrize(
    ("theirs", "mine"),
    [
        ("real/f", "real/f"), ("real/f", "folder/f"), ("real/f", "file"), ("folder/f", "real/f"),
        ("folder/Übersicht.md", "real/Übersicht.md"), ("folder/ABC.md", "real/ABC.md"), ("folder/ẞ", "real/ẞ"),
        ("file", "real/f"), ("twice", "folder/f"), ("far/new", "real/deep/new"),
    ],
)  # fmt: skip
def test_a_foreign_lock_is_honoured_by_whatever_spelling(names: Ground, theirs: str, mine: str):
    one = names.session("1")
    names.stranger("f1")
    foreign_lock(names, names.repo / theirs)
    assert refused(names, one, mine)["instance_id"] == "f1"
    assert holders(names, str(names.repo / mine)) == ["f1"]


def test_a_foreign_lock_of_ones_own_session_is_ones_own(names: Ground):
    """Another program locked on this session's behalf."""
    one = names.session("1")
    foreign_lock(names, names.repo / "folder" / "f", one["id"])
    names.lock(one, "real/f", "mine")
    assert [row["content"] for row in names.sql("SELECT content FROM context")] == ["mine"]


def test_a_foreign_lock_goes_with_its_holders_heartbeat(ground: Ground):
    one = ground.session("1")
    ground.stranger("f1", heartbeat=int(time.time()) - 50)
    foreign_lock(ground, ground.repo / "a")
    assert refused(ground, one, "a")["owner"]["stale"] is True
    ground.sql("UPDATE instances SET heartbeat = heartbeat - 20 WHERE id = 'f1'")
    assert holders(ground, f"{ground.scope}/a") == []
    ground.lock(one, "a")
    assert ground.sql("SELECT id FROM instances WHERE id = 'f1'") == []


def test_a_lock_without_a_holder_blocks_nobody(ground: Ground):
    one = ground.session("1")
    foreign_lock(ground, ground.repo / "a", "never registered")
    assert ground.swarm("locks", "--scope", "/their/scope", "--json").json == []
    ground.lock(one, "a")
    assert holders(ground, f"{ground.scope}/a") == [one["id"]]


def test_many_foreign_locks_of_one_name_hide_none(ground: Ground):
    one = ground.session("1")
    ground.stranger("f1")
    (ground.repo / "real").mkdir()
    (ground.repo / "link").symlink_to("real")
    ground.sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)"
        " INSERT INTO context (id, scope, instance_id, file, type, content)"
        " SELECT 'other ' || i, '/their/scope', 'f1', '/other/' || i || '/__init__.py', 'lock', '' FROM n"
    )
    foreign_lock(ground, ground.repo / "link" / "__init__.py")
    assert refused(ground, one, "real/__init__.py")["instance_id"] == "f1"


def test_rows_that_are_no_proper_text_break_nothing(ground: Ground):
    one = ground.session("1")
    ground.stranger("f1")
    ground.sql(
        "INSERT INTO context (id, scope, instance_id, file, type, content)"
        " VALUES ('raw', '/s', 'f1', CAST(x'2fff2f66' AS TEXT), 'lock', CAST(x'ff' AS TEXT))"
    )
    ground.add("context", id="nul", scope="/s", instance_id="f1", file="/a\0b", type="lock", content="")
    ground.lock(one, "f")
    for argv in (
        ["locks", "--scope", "/s", "--json"],
        ["locks", "--scope", "/s"],
        ["inspect", "--scope", "/s"],
        ["cleanup"],
    ):
        assert ground.process(*argv).code == 0, argv


def test_a_client_that_is_dead_and_unburied_counts_as_dead(ground: Ground):
    two = ground.session("2")
    with Sleeper() as client:
        ground.lock(ground.session("1", client=client.identity), "f")
        os.kill(client.pid, signal.SIGKILL)
        wait_for(lambda: holders(ground, f"{ground.scope}/f") == [])
        ground.lock(two, "f")


def test_a_machine_that_was_restarted_has_none_of_its_old_clients(ground: Ground, store: Store):
    one = ground.session("1", client=(os.getpid(), start_time(os.getpid())))
    ground.lock(one, "f")
    before_the_restart = store.here.replace("/", "/0", 1)
    ground.sql("UPDATE swarm_sessions SET host = ?", before_the_restart)
    assert holders(ground, f"{ground.scope}/f") == []


@pytest.mark.parametrize("seconds", [59, 61])
def test_a_plain_session_that_has_departed_is_never_told_locked_in_vain(ground: Ground, seconds: int):
    one = ground.plain("one")
    ground.backdate(one, seconds)
    done = ground.swarm("lock", "f", "--as", one["id"])
    listed = ground.swarm("locks", "--json").json
    assert (done.code == 0) == bool(listed), done


def test_a_relock_by_a_departed_session_leaves_no_lock_without_holder(ground: Ground, store: Store):
    one = ground.plain("one")
    ground.lock(one, "f")
    ground.backdate(one, 61)
    with pytest.raises(SwarmError):
        ground.lock(one, "f")
    assert store.locks.on(f"{ground.scope}/f") == []
    ground.lock(ground.session("2"), "f")


def test_every_change_has_its_event_with_what_it_concerns(ground: Ground, store: Store):
    one = ground.session("1", "one")
    first = ground.lock(one, "f", "a")
    second = ground.lock(one, "f", "b")
    store.locks.release(one, "f")
    store.locks.release(one, "f")
    with pytest.raises(LockRefused):
        ground.lock(one, "g") and ground.lock(two := ground.session("2"), "g")
    rows = ground.sql("SELECT * FROM events WHERE type LIKE 'context.%' ORDER BY id")
    path = f"{ground.scope}/f"
    assert [(row["type"], row["actor"], row["subject"]) for row in rows] == [
        ("context.lock_acquired", one["id"], path), ("context.lock_acquired", one["id"], path),
        ("context.lock_released", one["id"], path), ("context.lock_acquired", one["id"], f"{ground.scope}/g"),
        ("context.lock_denied", two["id"], f"{ground.scope}/g"),
    ]  # fmt: skip
    # Payloads are the contract's; facts of our own stand in a column of our own.
    assert [(json.loads(row["payload"]), json.loads(row["facts"])) for row in rows[:2]] == [
        ({"id": first["id"], "content": "a"}, {"fence": 1, "key": path}),
        ({"id": second["id"], "content": "b"}, {"fence": 1, "key": path, "was": "exclusive"}),
    ]
    assert {row["scope"] for row in rows} == {ground.scope}
