"""Processes that are killed in the middle of their work on a store, by the hundred.

`fork` starts one: it reports begun and acknowledged deeds, and may be told a statement before which to kill itself.
Made for a helper process of a test: forking needs a single thread.
"""

import json
import os
import random
import signal
import time
import traceback
from pathlib import Path

from swarm_hook_core.process import start_time
from swarm_mcp.domain import Session
from swarm_mcp.errors import LockRefused, Refused
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration

STATE = {
    "instances": "SELECT label FROM instances",
    "sessions": "SELECT session_id, label FROM swarm_sessions JOIN instances ON id = instance_id",
    "locks": "SELECT file, content, label FROM context LEFT JOIN instances i ON i.id = instance_id WHERE type = 'lock'",
    "kv": "SELECT key, value, owner_identity FROM kv",
    "messages": "SELECT content, read, label FROM messages LEFT JOIN instances i ON i.id = recipient",
    "deliveries": "SELECT m.content FROM swarm_deliveries LEFT JOIN messages m ON m.id = message_id",
    "tasks": "SELECT title, status, label, result FROM tasks LEFT JOIN instances i ON i.id = assignee",
    # Every event with its subject: a missing or extra one shows.
    "events": "SELECT e.type, e.actor, coalesce(t.title, e.subject) AS subject FROM events e"
    " LEFT JOIN tasks t ON t.id = e.subject",
}


class Mortal:
    """A connection that kills its process before the statement with that number."""

    def __init__(self, connection, last: int):
        self.connection, self.left = connection, last

    def execute(self, *arguments):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.connection.execute(*arguments)

    def __getattr__(self, name: str):
        return getattr(self.connection, name)


class Dead(BaseException):
    """The process was killed here."""


class Dying:
    """A connection that fails for good from a certain statement on."""

    def __init__(self, connection, left: int):
        self.connection, self.left = connection, left

    def execute(self, *arguments):
        self.left -= 1
        if self.left <= 0:
            raise Dead
        return self.connection.execute(*arguments)

    def __getattr__(self, name: str):
        return getattr(self.connection, name)


def deeds(store: Store, folder: str):
    """Return one of every deed, in a possible order: (its name, its function)."""
    parent = os.getppid()
    facts = {"runtime": "codex", "client": (parent, start_time(parent)), "lease_seconds": 86400}
    rows: dict[str, Session] = {}
    task: dict = {}
    taken: list = []

    def join(name: str) -> None:
        request = Registration(folder, label=name, session_id=name, preassigned_id=name, **facts)
        rows[name] = store.instances.register(request)

    def request() -> None:
        task.update(
            store.tasks.request(rows["me"], {"type": "fix", "title": "a task", "assignee": rows["me"].id})["task"]
        )

    yield "register", lambda: join("me")
    yield "register a peer", lambda: join("peer")
    yield "register again", lambda: join("me")
    yield "lock", lambda: store.locks.acquire(rows["me"], "f", "first")
    yield "lock another", lambda: store.locks.acquire(rows["me"], "g", "second")
    yield "lock again", lambda: store.locks.acquire(rows["me"], "f", "renewed")
    yield "unlock", lambda: store.locks.release(rows["me"], "f")
    yield "set", lambda: store.kv.put(rows["me"], "k", "1")
    yield "append", lambda: store.kv.append(rows["me"], "k", "2")
    yield "delete", lambda: store.kv.delete(rows["me"], "k")
    yield "send", lambda: store.messages.send(rows["peer"], rows["me"].id, "hello")
    yield "broadcast", lambda: store.messages.broadcast(rows["peer"], "all of you")
    yield "take", lambda: taken.extend(store.messages.take(rows["me"], 1))
    yield "acknowledge", lambda: store.messages.acknowledge([message["id"] for message in taken])
    yield "request", request
    yield (
        "request a dependent",
        lambda: store.tasks.request(rows["peer"], {"type": "test", "title": "dependent", "depends_on": [task["id"]]}),
    )
    yield "claim", lambda: store.tasks.claim(rows["me"], task["id"], ignore_unread=True)
    yield "lock for the task", lambda: store.locks.acquire(rows["me"], "h", "task", task_id=task["id"])
    yield "report", lambda: store.tasks.report_progress(rows["me"], task["id"], "half")
    yield "end", lambda: store.tasks.end(rows["me"], task["id"], "done", "fine")
    yield "claim the next", lambda: store.tasks.claim_next(rows["peer"], ignore_unread=True)
    yield "leave", lambda: store.instances.remove(rows["peer"].id)
    yield "leave too", lambda: store.instances.remove(rows["me"].id)


def state(path: str) -> dict:
    """Return the content of the store, in words that are the same in every run, after SQLite's integrity check."""
    with Store(path) as store:
        found = store.database.rows("PRAGMA integrity_check")
        assert found == [{"integrity_check": "ok"}], found
        return {
            name: sorted(map(str, map(tuple, map(dict.values, store.database.rows(sql)))))
            for name, sql in STATE.items()
        }


def fork(path: str, life) -> tuple[int, int]:
    """Start a process that opens the store and does `life(store, say)`. Returns its pid, and the descriptor of its
    words.
    """
    source, sink = os.pipe()
    pid = os.fork()
    if pid:
        os.close(sink)
        return pid, source
    code = 1
    try:
        os.close(source)
        with Store(path) as store:
            life(store, lambda *words: os.write(sink, (json.dumps(words) + "\n").encode()))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def bury(pid: int, source: int) -> list[list]:
    """Wait for a process of `fork`; all it said."""
    with open(source, "rb") as said:
        lines = said.read().splitlines()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, -signal.SIGKILL), f"a process failed, with exit code {code}"
    return [json.loads(line) for line in lines]


def each_statement(path: str, empty: str, folder: str, part: int, parts: int) -> dict:
    """Kill a process before its every `parts`-th statement, starting with `part`: ``{kills, wrong}``.

    Each works on a copy of the store at `empty`. The result must be the state before or after the interrupted deed: no
    acknowledged deed lost, none half done.
    """
    before = [found for word, *_, found in _run(path, empty, folder, 0, watched=True) if word == "did"]
    names = ["nothing yet", *(name for name, _deed in deeds(None, folder)), "the end"]  # type: ignore[arg-type]
    wrong, last = [], part
    while True:
        said = _run(path, empty, folder, last)
        found = state(path)
        done = sum(word == "did" for word, *_ in said) - 1
        if found not in before[done : done + 2]:
            differs = {name: (before[done][name], rows) for name, rows in found.items() if rows != before[done][name]}
            wrong.append(f"killed before statement {last}, in {names[done + 1]!r}: {differs}")
        if done + 1 == len(before):
            return {"kills": (last - part) // parts, "wrong": wrong}
        last += parts


def _run(path: str, empty: str, folder: str, last: int, watched: bool = False) -> list[list]:
    for ending in ("", "-wal", "-shm", "-journal"):
        Path(path + ending).unlink(missing_ok=True)
    Path(path).write_bytes(Path(empty).read_bytes())

    def life(store: Store, say) -> None:
        store.database.connection = Mortal(store.database.connection, last)
        say("did", state(path) if watched else {})
        for _name, deed in deeds(store, folder):
            deed()
            say("did", state(path) if watched else {})

    return bury(*fork(path, life))


def at_any_moment(path: str, folder: str, kills: int, seed: int) -> dict:
    """Run three processes at a time with random deeds and random kills: ``{kills, acknowledged, wrong}``.

    All work on one store; it must hold everything that they were told.
    """
    pick = random.Random(seed)
    said: list[list] = []
    running: list[tuple[int, int]] = []
    for number in range(kills):
        while len(running) < 3:
            name = f"{number}-{len(running)}-{seed}"
            running.append(fork(path, lambda store, say, name=name: _anything(store, say, name, folder)))
        time.sleep(pick.uniform(0, 0.05))
        victim = running.pop(pick.randrange(3))
        os.kill(victim[0], signal.SIGKILL)
        said += bury(*victim)
    for victim in running:
        os.kill(victim[0], signal.SIGKILL)
        said += bury(*victim)
    return {"kills": kills + len(running), "acknowledged": len(said), "wrong": _missing(path, said)}


def _anything(store: Store, say, name: str, folder: str) -> None:
    pick = random.Random(name)
    parent = os.getppid()
    given = {"runtime": "codex", "session_id": name, "client": (parent, start_time(parent)), "lease_seconds": 86400}
    me = store.instances.register(Registration(folder, label=name, **given))
    say("registered", me["id"])
    for count in range(10_000):
        text = f"{name}-{count}"
        try:
            match pick.randrange(7):
                case 0:
                    say("locked", me["id"], store.locks.acquire(me, text)["id"])
                case 1:
                    file = pick.choice("abc")
                    store.locks.acquire(me, file)
                    store.locks.release(me, file)
                case 2:
                    store.kv.append(me, "log", json.dumps(text))
                    say("appended", text)
                case 3:
                    store.messages.send(me, me["id"], text)
                    say("sent", text)
                case 4:
                    messages = store.messages.take(me, 2)
                    # Written to the client, then killed before saying so: that one may come twice. Not the others.
                    store.messages.acknowledge([message["id"] for message in messages])
                    for message in messages:
                        say("read", message["content"])
                case 5:
                    say("requested", store.tasks.request(me, {"type": "fix", "title": text})["task"]["id"])
                case 6:
                    say("claimed", store.tasks.claim_next(me, ignore_unread=True)["task"]["id"], me["id"])
        except (LockRefused, Refused):
            pass


def _missing(path: str, said: list[list]) -> list[str]:
    """Return acknowledged deeds that are missing in the store, and contradictions in it."""
    state(path)  # is it whole?
    with Store(path) as store:
        tasks = {row["id"]: row for row in store.database.rows("SELECT id, status, assignee FROM tasks")}
        log = store.database.row("SELECT value FROM kv WHERE key = 'log'")
        known = {
            "registered": {row["id"] for row in store.database.rows("SELECT id FROM instances")},
            "locked": {row["id"] for row in store.database.rows("SELECT id FROM context")},
            "appended": set(json.loads(log["value"])) if log else set(),
            "sent": {row["content"] for row in store.database.rows("SELECT content FROM messages")},
            "read": {row["content"] for row in store.database.rows("SELECT content FROM messages WHERE read = 1")},
            "requested": set(tasks),
            "claimed": {(row["id"], row["assignee"]) for row in tasks.values() if row["status"] == "in_progress"},
        }
        wrong = []
        for kind, *facts in said:
            fact = tuple(facts) if kind == "claimed" else facts[-1]
            if fact not in known[kind]:
                wrong.append(f"{kind} {fact} is not in the store")
        # The events tell the same story as the rows they were written with.
        held: dict[tuple, str] = {}
        for row in store.database.rows(
            "SELECT type, actor, subject, json_extract(payload, '$.id') AS lock FROM events"
            " WHERE type IN ('context.lock_acquired', 'context.lock_released') ORDER BY id"
        ):
            if row["type"] == "context.lock_acquired":
                held[row["actor"], row["subject"]] = row["lock"]
            elif held.pop((row["actor"], row["subject"]), None) is None:
                wrong.append(f"an event says that {row['subject']} was released, none that it had been locked")
        there = {(row["instance_id"], row["file"]): row["id"] for row in store.database.rows("SELECT * FROM context")}
        if there != held:
            wrong.append(f"locks without events, or events without locks: {set(there.items()) ^ set(held.items())}")
        for kind, event, table in (("sent", "message.sent", "messages"), ("requested", "task.created", "tasks")):
            count = f"(SELECT count(*) FROM events WHERE type = '{event}') - (SELECT count(*) FROM {table})"
            if store.database.rows(f"SELECT {count} AS n") != [{"n": 0}]:
                wrong.append(f"{kind}: as many rows as events there are not")
        return wrong
