"""Another program's odd rows in the contract's tables never keep a command or tool from answering."""

import pytest
from support.fixtures import Ground
from support.foreign_client import BASE_TABLES, Other
from support.toolbox import Hands

from swarm_mcp.errors import LockRefused

pytestmark = pytest.mark.slow

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


@pytest.fixture
def other(ground: Ground):
    """The other program, the maker of the file."""
    them = Other(ground.database)
    yield them
    them.connection.close()


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
def test_rows_may_vanish_from_any_table(ground: Ground, other: Other, table: str):
    mine = busy_session(ground)
    other.change(f"DELETE FROM {table}")
    everything_answers(ground, mine)


@pytest.mark.parametrize("table", BASE_TABLES)
def test_rows_that_the_contract_does_not_foresee_do_no_harm(ground: Ground, other: Other, table: str):
    mine = busy_session(ground)
    for row in ODD_ROWS[table]:
        row = {"scope": "{scope}", **row}
        for name, value in {"{scope}": ground.scope, "{me}": mine["id"]}.items():
            row = {key: text.replace(name, value) if isinstance(text, str) else text for key, text in row.items()}
        marks = ", ".join("?" * len(row))
        other.change(f"INSERT OR REPLACE INTO {table} ({', '.join(row)}) VALUES ({marks})", *row.values())
    everything_answers(ground, mine)
