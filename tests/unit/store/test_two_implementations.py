"""One file, written half by this implementation and half by another, or by a program with odd rows."""

import json
import os
import random
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import many_processes as crowd
from support import sessions
from support.fixtures import Ground
from support.foreign_client import BASE_TABLES, Other
from support.toolbox import Hands

from swarm_mcp.domain import Session
from swarm_mcp.errors import LockRefused, Refused
from swarm_mcp.store.changes import Changes

pytestmark = pytest.mark.slow


@pytest.fixture
def other(ground: Ground):
    """The other one, the maker of the file."""
    them = Other(ground.database)
    yield them
    them.connection.close()


@pytest.fixture
def file(ground: Ground) -> str:
    return f"{ground.scope}/src/a.py"


def refused(ground: Ground, instance: dict, file: str) -> str:
    """Return the session that keeps `instance` from `file`; empty if it has it now."""
    try:
        ground.lock(instance, file)
    except LockRefused as refusal:
        return refusal.answer["active"]["instance_id"]
    return ""


def new_mail(ground: Ground, instance: dict) -> list[str]:
    with ground.store() as store:
        found = store.messages.take(instance)
        store.messages.acknowledge([message["id"] for message in found])
    return [message["content"] for message in found]


def test_a_lock_of_either_keeps_the_other_out(ground: Ground, other: Other, file: str):
    theirs, mine = other.register(ground.scope, "them"), ground.session("s", "me")
    assert other.lock(theirs, file) == ""
    assert refused(ground, mine, file) == refused(ground, mine, "src/a.py") == theirs
    other.unlock(theirs, file)
    assert refused(ground, mine, "src/../src/a.py") == ""
    assert other.lock(theirs, file) == mine["id"]
    assert ground.swarm("unlock", file, "--as", mine["id"]).code == 0
    assert other.lock(theirs, file) == ""
    assert [lock["owner_label"] for lock in ground.swarm("locks", "--json").json] == ["them"]
    other.audit()


def test_a_lock_of_theirs_denies_a_write_in_a_client_whatever_else_its_row_says(
    ground: Ground, other: Other, file: str
):
    theirs, mine = other.register(ground.scope, "them"), sessions.new_session()
    sessions.start("claude-code", mine, ground.repo)
    other.lock(theirs, file)
    assert "held by them" in sessions.write("claude-code", mine, ground.repo, file).reason
    other.change("UPDATE context SET created_at = 'x', content = x'ff'")
    other.change("UPDATE instances SET label = x'ff', pid = 'x' WHERE id = ?", theirs)
    assert theirs in sessions.write("claude-code", mine, ground.repo, file).reason


@pytest.mark.parametrize("locked", ["{folder}/ln/src/b", "{folder}/ln/sub/../src/b"])
def test_a_lock_of_theirs_counts_under_its_spelling_until_its_holder_has_gone(
    ground: Ground, other: Other, locked: str
) -> None:
    """Our store gives such a row its key at the next opening: no hook waits for that."""
    (ground.folder / "ln").symlink_to(ground.scope)
    theirs, mine = other.register(ground.scope, "them"), sessions.new_session()
    sessions.start("claude-code", mine, ground.repo)
    other.lock(theirs, locked.format(folder=ground.folder))
    for spelled in ("src/b", f"{ground.folder}/ln/src/b", "sub/../src/b"):
        assert "held by them" in sessions.write("claude-code", mine, ground.repo, spelled).reason, spelled
    assert sessions.write("claude-code", mine, ground.repo, "src/c").reason == ""
    other.change("UPDATE instances SET heartbeat = heartbeat - 3600 WHERE id = ?", theirs)
    assert sessions.write("claude-code", mine, ground.repo, "src/b").reason == "", "after a minute without a sign"


RIVALS = """
import random
sys.path.insert(0, os.path.dirname(arguments["database"]))
sys.path.insert(0, arguments["tests"])
from support.foreign_client import BASE_TABLES, Other
database, file, them = arguments["database"], arguments["file"], arguments["them"]
random.seed(arguments["seed"])
other = Other(database)
me = other.register(arguments["scope"]) if them else None
store = None if them else Store(database)
row = store and store.instances.register(Registration(arguments["scope"], runtime="r", session_id=str(os.getpid())))
account = {"held": 0, "denied": 0, "shared": 0}
gate()
end = time.monotonic() + 1.2
while time.monotonic() < end:
    if them:
        other.heartbeat(me)
        got = other.lock(me, file) == ""
    else:
        try:
            got = bool(store.locks.acquire(row, file))
        except LockRefused:
            got = False
    if not got:
        account["denied"] += 1
        time.sleep(random.random() / 200)
        continue
    account["held"] += 1
    try:
        os.close(os.open(file + ".held", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        account["shared"] += 1
    time.sleep(random.random() / 500)
    try:
        os.unlink(file + ".held")
    except FileNotFoundError:
        pass
    other.unlock(me, file) if them else store.locks.release(row, file)
    time.sleep(random.random() / 200)
report(account)
"""


def test_six_processes_of_both_kinds_never_hold_one_file_together(ground: Ground, other: Other):
    held = ground.repo / "contended"
    given = {
        "database": ground.database,
        "file": str(held),
        "scope": ground.scope,
        "tests": os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")),
    }
    members = crowd.run(RIVALS, [{**given, "them": number % 2 == 0, "seed": number} for number in range(6)])
    assert [member.code for member in members] == [0] * 6, [member.err for member in members]
    accounts = [member.reports[0] for member in members]
    assert sum(account["shared"] for account in accounts) == 0, accounts
    for kind in (accounts[::2], accounts[1::2]):
        assert sum(account["held"] for account in kind) and sum(account["denied"] for account in kind), accounts
    other.audit()


def test_tasks_are_handed_over_both_ways(ground: Ground, other: Other):
    theirs, mine = other.register(ground.scope, "them"), ground.session("s", "me")
    asked = other.request(theirs, "for you", files=json.dumps([f"{ground.scope}/a"]), priority=5)
    hands = Hands(ground, mine)
    claimed = hands.value("claim_next_task")
    assert (claimed["task_id"], claimed["task"]["files"]) == (asked, [f"{ground.scope}/a"])
    assert not other.claim(theirs, asked)
    assert hands.value("complete_task", task_id=asked, summary="did it", files_changed=["a", "a"])["ok"]
    seen = other.task(asked)
    assert (seen["status"], json.loads(seen["result"])["files_changed"]) == ("done", [f"{ground.scope}/a"])
    assert "did it" in other.poll(theirs)[0]

    given = hands.value("request_task", type="test", title="for them", files=["a"], idempotency_key="k")["task_id"]
    assert other.claim(theirs, given)
    assert "in_progress" in hands.value("claim_task", task_id=given)["error"]
    assert other.end(theirs, given, result="fine")
    assert hands.value("get_task", task_id=given)["result"] == "fine"
    with pytest.raises(other.sqlite.IntegrityError):
        other.request(theirs, "twice", idempotency_key="k")
    other.request(theirs, "once", idempotency_key="theirs")
    again = hands.value("request_task", type="fix", title="mine", idempotency_key="theirs")
    assert again["existing"] is True
    other.audit()


def test_mail_goes_both_ways_and_each_message_is_read_once(ground: Ground, other: Other):
    theirs, mine = other.register(ground.scope, "them"), ground.session("s", "me")
    hands = Hands(ground, mine)
    assert hands.text("send_message", recipient=theirs, content="to them")
    assert hands.text("broadcast", content="to all")
    assert other.poll(theirs) == ["to them", "to all"] and other.poll(theirs) == []
    other.send(theirs, mine["id"], "to you")
    other.send(theirs, mine["id"], "too late")
    other.change("UPDATE messages SET read = 1 WHERE content = 'too late'")
    assert [message["content"] for message in hands.value("poll_messages")] == ["to you"]
    assert other.poll(mine["id"]) == []
    other.send(theirs, mine["id"], "on its way")
    assert hands.answer("poll_messages", sent=False).value  # taken, and the answer not written yet
    other.change("DELETE FROM messages")
    assert hands.value("poll_messages") == []
    other.audit()


def test_what_either_does_is_news_to_the_other(ground: Ground, other: Other, file: str):
    theirs, mine = other.register(ground.scope, "them"), ground.session("s", "me")
    hands = Hands(ground, mine)
    ours = (
        (0, lambda: hands.text("send_message", recipient=theirs, content="x")),
        (1, lambda: hands.value("request_task", type="fix", title="T")),
        (2, lambda: ground.session("another")),
        (3, lambda: hands.text("kv_set", key="k", value="v")),
    )
    for counter, act in ours:
        before = other.moment(theirs)
        act()
        assert other.moment(theirs)[counter] != before[counter], counter
    things = (
        ("new_messages", lambda: other.send(theirs, mine["id"], "x")),
        ("task_updates", lambda: other.request(theirs, "T")),
        ("instance_changes", lambda: other.register(ground.scope, "third")),
        ("kv_updates", lambda: other.put(theirs, "k2", "v")),
        ("lock_updates", lambda: other.lock(theirs, file)),
        ("lock_updates", lambda: other.unlock(theirs, file)),
    )
    with ground.store() as store, Changes(ground.database) as changes:
        for name, act in things:
            before = store.activity.moment(mine)
            while changes.wait(0.05):
                pass
            act()
            assert changes.wait(60), name
            assert store.activity.since(mine, before).changes == [name]
        for name, table in (  # of one that writes no events
            ("task_updates", "tasks SET changed_at = changed_at + 5000"),
            ("instance_changes", "instances SET registered_at = registered_at + 5"),
            ("kv_updates", "kv_scope_updates SET changed_at = changed_at + 5000"),
        ):
            before = store.activity.moment(mine)
            other.change(f"UPDATE {table}")
            assert store.activity.since(mine, before).changes == [name]


def test_each_reclaims_the_others_dead_and_leaves_the_living(ground: Ground, other: Other, file: str):
    quiet, plain = ground.session("s", "quiet"), ground.plain("plain")
    theirs, gone = other.register(ground.scope, "them"), other.register(ground.scope, "gone")
    other.lock(gone, file)
    ground.lock(quiet, "kept")
    # An hour without a heartbeat: hooks renew a session at its turns, and these may be long.
    other.change(
        "UPDATE instances SET heartbeat = heartbeat - 3600 WHERE id IN (?, ?, ?)", quiet["id"], plain["id"], gone
    )
    assert refused(ground, quiet, file) == ""  # ours reclaims theirs
    assert sorted(other.cleanup()) == [plain["id"]]  # and the lease is left alone
    assert other.lock(theirs, f"{ground.scope}/kept") == quiet["id"]
    assert [row["id"] for row in ground.swarm("instances", "--json").json] == [quiet["id"], theirs]
    other.change("UPDATE instances SET lease_until = unixepoch() - 1 WHERE id = ?", quiet["id"])
    assert other.cleanup() == [quiet["id"]]
    back = ground.session("s", "quiet")  # the same session, at its next turn
    assert back["id"] == quiet["id"] and refused(ground, back, "kept") == ""
    other.audit()


def test_a_session_that_their_server_adopts_goes_on_as_ours(ground: Ground, other: Other, file: str):
    mine = ground.session("s", "me session:s")
    ground.lock(mine, file)
    other.adopt(mine["id"])
    other.heartbeat(mine["id"])
    assert other.lock(mine["id"], file, "as their server") == ""
    assert refused(ground, mine, file) == ""
    renewed = ground.session("s", "me session:s")
    assert renewed["id"] == mine["id"] and renewed["lease_until"] > time.time()
    other.change("UPDATE instances SET heartbeat = heartbeat - 3600")
    assert other.cleanup() == []
    other.audit()


STEPS = st.lists(
    st.tuples(
        st.sampled_from("lock unlock request claim end send poll put leave".split()),
        st.integers(0, 3),
        st.integers(0, 2),
    ),
    max_size=25,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, seed=st.integers(0, 99))
def test_any_order_of_both_keeps_the_file_as_both_expect(ground: Ground, steps: list, seed: int):
    chance = random.Random(seed)
    other = Other(ground.database)
    for table in BASE_TABLES:
        other.change(f"DELETE FROM {table}")
    members = [None, None, None, None]
    held: dict[str, int] = {}
    sent: dict[int, list[str]] = {number: [] for number in range(4)}
    for step, who, what in steps:
        theirs, file = who % 2 == 0, f"{ground.scope}/{what}"
        if members[who] is None:
            label = f"member {who}"
            members[who] = other.register(ground.scope, label) if theirs else ground.plain(label)["id"]
        me = members[who]
        row = Session({} if theirs else ground.sql("SELECT * FROM instances WHERE id = ?", me)[0])
        if step == "lock":
            by = other.lock(me, file) if theirs else refused(ground, row, file)
            assert by == ("" if held.get(file, who) == who else members[held[file]]), (step, who, file)
            held.setdefault(file, who)
        elif step == "unlock":
            other.unlock(me, file) if theirs else ground.swarm("unlock", file, "--as", me)
            held = {name: holder for name, holder in held.items() if (name, holder) != (file, who)}
        elif step == "request":
            other.request(me, "T") if theirs else Hands(ground, row).value(
                "request_task", type="fix", title="T", files=[file]
            )
        elif step in ("claim", "end"):
            _work(ground, other, chance, step, me, row)
            if step == "end":  # it frees the task's files
                locks = other.rows("SELECT file, instance_id FROM context WHERE type = 'lock'")
                held = {lock["file"]: members.index(lock["instance_id"]) for lock in locks}
        elif step == "send":
            other.send(me, me, f"{who}") if theirs else ground.swarm("send", "--to", me, "--as", me, f"{who}")
            sent[who].append(f"{who}")
        elif step == "poll":
            got = other.poll(me) if theirs else new_mail(ground, row)
            assert [text for text in got if not text.startswith("[")] == sent[who]
            sent[who] = []
        elif step == "put":
            other.put(me, "k", "1") if theirs else ground.swarm("kv", "set", "k", "2", "--as", me)
        else:
            other.remove(me) if theirs else ground.swarm("deregister", "--as", me, "--force")
            members[who], sent[who] = None, []
            held = {name: holder for name, holder in held.items() if holder != who}
        kept = other.rows("SELECT file, instance_id FROM context WHERE type = 'lock'")
        assert {lock["file"]: lock["instance_id"] for lock in kept} == {
            name: members[holder] for name, holder in held.items()
        }
    other.audit()
    other.connection.close()


def _work(ground: Ground, other: Other, chance: random.Random, step: str, me: str, row: dict) -> None:
    """Claim or end some task, if there is one."""
    condition = "status = 'open'" if step == "claim" else f"status = 'in_progress' AND assignee = '{me}'"
    tasks = [found["id"] for found in other.rows(f"SELECT id FROM tasks WHERE {condition} ORDER BY id")]
    if not tasks:
        return
    task = chance.choice(tasks)
    if not row:
        assert other.claim(me, task) if step == "claim" else other.end(me, task)
        return
    with ground.store() as store:
        if step == "end":
            store.tasks.end(row, task, chance.choice(("done", "failed")))
            return
        try:
            store.tasks.claim(row, task)
        except Refused as refusal:
            assert refusal.answer["unread_message_count"]


FAR, BLOB = 9 * 10**18, b"\xff\xfe"
TASK = {"type": "fix", "title": "T", "requester": "{me}"}
LOCK = {"instance_id": "{me}", "type": "lock", "content": ""}
# {scope} and {me} are the session's; every row is of its scope unless it says otherwise.
ODD_ROWS: dict[str, list[dict]] = {
    "instances": [
        {"id": "odd", "directory": "", "pid": -1, "label": "", "heartbeat": "x"},
        {"id": "blob", "directory": "/", "pid": BLOB, "label": b"\xff role:planner"},
        {"id": "", "directory": "/", "pid": 0, "adopted": 0, "label": "identity:"},
    ],
    "messages": [
        {"sender": "nobody", "recipient": None, "content": ""},
        {"sender": "system", "recipient": "{me}", "content": BLOB, "created_at": -1},
        {"sender": "x", "recipient": "{me}", "content": "y", "created_at": "z"},
    ],
    "tasks": [
        {**TASK, "id": "t0", "title": BLOB, "requester": "x", "priority": "high", "created_at": "x"},
        {**TASK, "id": "t1", "type": "odd", "requester": "nobody", "status": "odd"},
        {**TASK, "id": "t2", "files": "[", "depends_on": "{"},
        {**TASK, "id": "t3", "status": "blocked"},
        {**TASK, "id": "t4", "requester": "x", "files": "[1, null]", "changed_at": FAR},
        {**TASK, "id": "t6", "status": "in_progress", "files": '["a\\u0000", "\\ud800", "", "relative"]'},
        {**TASK, "id": "t7", "status": "in_progress", "assignee": "{me}", "files": '["\\ud800", "a\\u0000"]'},
        {**TASK, "id": BLOB},
        {**TASK, "id": None},
        {**TASK, "id": b"t8", "status": "blocked"},
        {**TASK, "id": b"t9", "status": "claimed", "assignee": "ghost"},
        {**TASK, "id": "ta", "assignee": BLOB},
        {**TASK, "id": "tb", "status": "in_progress", "assignee": BLOB},
        {**TASK, "id": b"tc", "assignee": "{me}"},
        {**TASK, "id": "td", "status": "blocked", "assignee": BLOB, "depends_on": '["gone"]'},
        {**TASK, "id": "te", "status": "approval_required", "assignee": BLOB, "depends_on": "[1, {}]"},
        {**TASK, "id": "t5", "status": "in_progress", "assignee": "{me}", "expected_next_update_at": "x"},
    ],
    "context": [
        {**LOCK, "id": "c1", "instance_id": "nobody", "file": "relative"},
        {**LOCK, "id": "c2", "file": "", "content": BLOB},
        {**LOCK, "id": "c3", "file": "{scope}/n", "type": "note"},
        {**LOCK, "id": "c4", "scope": "", "file": "/__swarm/spawn/x/y", "task_id": "gone"},
        {**LOCK, "id": "c5", "file": "/x", "created_at": "x"},
        {**LOCK, "id": "c6", "file": "a\0b"},
    ],
    "events": [
        {"type": "odd", "payload": "{"},
        {"type": "context.lock_released", "payload": "[]", "created_at": "x"},
        {"type": "instance.deregistered", "actor": BLOB, "subject": BLOB, "payload": BLOB},
    ],
    "kv": [
        {"key": "k", "value": BLOB, "updated_at": "x"},
        {"key": "owner/planner", "value": "{"},
        {"key": "identity/workspace/herdr/{me}", "value": "[]", "owner_identity": ""},
    ],
    "kv_scope_updates": [{"changed_at": FAR}],
    "ui_commands": [{"kind": "odd", "payload": "{", "created_at": "x"}],
}
VERBS = (
    "whoami", "instances", "status", "inspect", "locks", "locks --file /x", "lock new", "unlock new", "tasks",
    "messages", "request-task fix T", "broadcast x", "kv list", "kv set k v", "ui list", "bootstrap", "roles",
    "doctor --no-clients", "watch --timeout 0 --since 0", "cleanup", "deregister --force",
)  # fmt: skip
CALLS: tuple[tuple[str, dict], ...] = (
    ("whoami", {}), ("list_instances", {}), ("bootstrap", {"include_terminal": True}), ("swarm_status", {}),
    ("list_tasks", {}), ("get_file_lock", {"file": "a"}), ("get_file_lock", {"file": "/x"}),
    ("lock_file", {"file": "a"}), ("claim_next_task", {"ignore_unread_messages": True}),
    ("request_task", {"type": "fix", "title": "T"}), ("broadcast", {"content": "x"}), ("poll_messages", {}),
    ("kv_list", {}), ("kv_append", {"key": "k", "value": "1"}), ("unlock_file", {"file": "a"}),
)  # fmt: skip


def busy_session(ground: Ground) -> dict:
    """A session with a row in every table, ours too."""
    peer = ground.session("p", "peer")
    mine = ground.session("s", "role:planner me", pane={"pane_id": "w1:p1"})
    ground.lock(peer, "theirs")
    with pytest.raises(LockRefused):
        ground.lock(mine, "theirs")
    ground.lock(mine, "mine")
    hands = Hands(ground, mine)
    task = hands.value("request_task", type="fix", title="T", files=["mine"])["task_id"]
    hands.value("request_task", type="test", title="U", depends_on=[task])
    hands.value("claim_task", task_id=task)
    Hands(ground, peer).text("send_message", recipient=mine["id"], content="x")
    hands.answer("poll_messages", sent=False)
    ground.swarm("ui", "move", "--target", "n", "--x", "1", "--y", "2", "--wait", "0", "--as", mine["id"])
    for table in (*BASE_TABLES, "swarm_sessions", "swarm_denials", "swarm_deliveries"):
        assert ground.sql(f"SELECT 1 FROM {table}"), table
    return mine


def everything_answers(ground: Ground, mine: dict) -> None:
    """Fail where a command or tool does not end in an answer or a refusal."""
    hands = Hands(ground, mine)
    for name, arguments in CALLS:
        hands.answer(name, **arguments)
    for verb in VERBS:
        for form in ([], ["--json"]):
            done = ground.swarm(*verb.split(), "--as", mine["id"], *form)
            assert done.code in (0, 1, 2) and "Traceback" not in done.err and done.err.count("\n") <= 1, (verb, done)
    hands.answer("deregister")
    assert ground.integrity() == "ok"


@pytest.mark.parametrize("table", BASE_TABLES)
@pytest.mark.sampled
def test_rows_may_vanish_from_any_table(ground: Ground, other: Other, table: str):
    mine = busy_session(ground)
    other.change(f"DELETE FROM {table}")
    everything_answers(ground, mine)


@pytest.mark.parametrize("table", BASE_TABLES)
@pytest.mark.sampled
def test_rows_that_the_contract_does_not_foresee_do_no_harm(ground: Ground, other: Other, table: str):
    mine = busy_session(ground)
    for row in ODD_ROWS[table]:
        row = {"scope": "{scope}", **row}
        for name, value in {"{scope}": ground.scope, "{me}": mine["id"]}.items():
            row = {key: text.replace(name, value) if isinstance(text, str) else text for key, text in row.items()}
        marks = ", ".join("?" * len(row))
        other.change(f"INSERT OR REPLACE INTO {table} ({', '.join(row)}) VALUES ({marks})", *row.values())
    everything_answers(ground, mine)
