"""Killed at any point or under load, processes leave a whole store: nothing is lost, nothing half done."""

import json
import os
import shutil
from collections import Counter

import pytest
from support import many_processes as crowd
from support.fixtures import Ground

from swarm_hook_core.process import start_time

pytestmark = pytest.mark.slow


PARTS = 3
RANDOM_KILLS = 40


@pytest.mark.parametrize("part", [1, *(pytest.param(part, marks=pytest.mark.thorough) for part in range(2, PARTS + 1))])
def test_killed_before_each_statement(ground: Ground, part: int):
    assert _kill_at_each(ground, part, PARTS)["kills"] > 50


@pytest.mark.thorough
def test_killed_before_each_statement_with_a_rollback_journal(ground: Ground, rollback_journal):
    assert _kill_at_each(ground, 1, 7)["kills"] > 20
    assert ground.sql("PRAGMA journal_mode")[0]["journal_mode"] == "delete"


def _kill_at_each(ground: Ground, part: int, parts: int) -> dict:
    ground.store().close()
    empty = str(ground.folder / "empty.db")
    shutil.copy(ground.database, empty)
    body = "from support import crashing\ngate()\nreport(crashing.each_statement(*arguments))"
    (member,) = crowd.run(body, [[ground.database, empty, ground.scope, part, parts]])
    assert (member.code, member.err) == (0, "")
    (report,) = member.reports
    assert report["wrong"] == []
    return report


@pytest.mark.parametrize("seed", (1, 2))
def test_killed_at_any_moment(ground: Ground, seed: int):
    ground.store().close()
    body = "from support import crashing\ngate()\nreport(crashing.at_any_moment(*arguments))"
    (member,) = crowd.run(body, [[ground.database, ground.scope, RANDOM_KILLS, seed]])
    assert (member.code, member.err) == (0, "")
    (report,) = member.reports
    assert report["wrong"] == []
    assert report["kills"] > RANDOM_KILLS and report["acknowledged"] > RANDOM_KILLS


SECONDS = float(os.environ.get("SWARM_LOAD_SECONDS", "3"))
PROCESSES = int(os.environ.get("SWARM_LOAD_PROCESSES", "8"))

# Each member does the next possible thing and keeps account of acknowledged writes.
MEMBER = """
import random
from swarm_mcp.errors import Refused
store = Store()
me = store.instances.get(arguments["me"])
peers, name, folder = arguments["peers"], arguments["name"], arguments["folder"]
kinds = ("locked", "doubly held", "unlocked", "appended", "requested", "claimed", "sent", "got", "errors", "deeds")
account = {kind: [] for kind in kinds}
pick, count = random.Random(name), 0

def lock():
    file = pick.choice("abcd")
    try:
        store.locks.acquire(me, file)
    except LockRefused:
        return
    account["locked"].append(file)
    mark = os.path.join(folder, file)
    try:  # a second witness, which knows nothing of the store
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        account["doubly held"].append(file)
    else:
        os.unlink(mark)
    if store.locks.release(me, file) == 1:
        account["unlocked"].append(file)

def append():
    value = f"{name}-{count}"
    store.kv.append(me, f"log/{int(name) % 4}", json.dumps(value))
    account["appended"].append(value)

def request():
    account["requested"].append(store.tasks.request(me, {"type": "fix", "title": f"{name}-{count}"})["task"]["id"])

def claim():
    try:
        account["claimed"].append(store.tasks.claim_next(me, ignore_unread=True)["task"]["id"])
    except Refused:
        pass

def send():
    content = f"{name}-{count}"
    store.messages.send(me, pick.choice(peers), content)
    account["sent"].append(content)

def poll():
    messages = store.messages.take(me, 10)
    store.messages.acknowledge([message["id"] for message in messages])
    account["got"] += [message["content"] for message in messages]

gate()
end = time.monotonic() + arguments["seconds"]
while time.monotonic() < end:
    count += 1
    deed = pick.choice((lock, lock, append, request, claim, send, poll))
    try:
        deed()
        account["deeds"].append(deed.__name__)
    except Exception as error:
        account["errors"].append(f"{deed.__name__}: {type(error).__name__}: {error}")
report(account)
"""


@pytest.fixture(params=["write-ahead log", pytest.param("rollback journal", marks=pytest.mark.thorough)])
def journal(request) -> str:
    """The store's journal: an affected SQLite uses the second one."""
    if request.param == "rollback journal":
        request.getfixturevalue("rollback_journal")
    return request.param


def test_under_load_nothing_fails_nothing_is_lost_and_nothing_is_had_twice(ground: Ground, journal: str):
    client = (os.getpid(), start_time(os.getpid()))  # outlives the members, so that they do not count as dead
    rows = [ground.session(f"s{number}", client=client) for number in range(PROCESSES)]
    mode = ground.sql("PRAGMA journal_mode")[0]["journal_mode"]
    assert mode == ("wal" if journal == "write-ahead log" else "delete")
    ids = [row["id"] for row in rows]
    arguments = [
        {"me": row["id"], "peers": ids, "name": str(number), "folder": str(ground.folder), "seconds": SECONDS}
        for number, row in enumerate(rows)
    ]
    members = crowd.run(MEMBER, arguments, seconds=SECONDS + 120)
    assert [(member.code, member.err) for member in members] == [(0, "")] * PROCESSES
    accounts = [member.reports[0] for member in members]
    total = {kind: [item for account in accounts for item in account[kind]] for kind in accounts[0]}
    print(
        {kind: len(items) for kind, items in total.items()}, [sum(map(len, account.values())) for account in accounts]
    )

    assert total["errors"] == [] and total["doubly held"] == []
    # The amount of work in three seconds depends on the disk; only starvation is our fault.
    assert all(account["deeds"] for account in accounts), "somebody starved"
    assert ground.integrity() == "ok"
    events = {row["type"]: row["n"] for row in ground.sql("SELECT type, count(*) AS n FROM events GROUP BY type")}

    # Locks: each taken one was given back, and each of both left one event.
    assert ground.sql("SELECT * FROM context") == []
    assert Counter(total["locked"]) == Counter(total["unlocked"])
    assert len(total["locked"]) == events["context.lock_acquired"] == events["context.lock_released"]
    # Values: exactly the acknowledged ones, once.
    stored = [
        item for row in ground.sql("SELECT value FROM kv WHERE key LIKE 'log/%'") for item in json.loads(row["value"])
    ]
    assert Counter(stored) == Counter(total["appended"]) and len(set(stored)) == len(stored)
    # Tasks: as many as requested, each claimed at most once, by the acknowledged session.
    tasks = {
        row["id"]: (row["status"], row["assignee"]) for row in ground.sql("SELECT id, status, assignee FROM tasks")
    }
    assert sorted(tasks) == sorted(total["requested"])
    assert len(set(total["claimed"])) == len(total["claimed"])
    claimed = {task_id: row["id"] for row, account in zip(rows, accounts) for task_id in account["claimed"]}
    assert tasks == {
        task_id: ("in_progress", claimed[task_id]) if task_id in claimed else ("open", None) for task_id in tasks
    }
    # Messages: each arrived once, or is still there to be had.
    waiting = [row["content"] for row in ground.sql("SELECT content FROM messages WHERE read = 0")]
    arrived = [
        content for content in total["got"] + waiting if not content.startswith("[auto] ")
    ]  # those: "it is free"
    assert Counter(arrived) == Counter(total["sent"]) and len(set(arrived)) == len(arrived)
    assert ground.sql("SELECT * FROM swarm_deliveries") == []
