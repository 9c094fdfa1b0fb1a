"""`bootstrap`: all facts in one answer, and mail that counts as read only when delivered; `deregister`."""

import json
import os
import subprocess

import pytest
from support.command_line import option
from support.fixtures import SWARM, Ground, Sleeper
from support.toolbox import Hands

from swarm_mcp.store import Store, messages

TOOL_KEYS = ["instance", "peers", "unread_messages", "held_locks", "state_backend", "tasks", "work_tracker"]
CLI_KEYS = ["instance", "peers", "unread_messages", "tasks", "work_tracker"]
OPEN = ["open", "claimed", "in_progress", "blocked", "approval_required"]
ENDED = ["done", "failed", "cancelled"]


def mail(ground: Ground, row: dict, *contents: str) -> None:
    with ground.store() as store, store.database.writing():
        for content in contents:
            messages.post(store.database, row["scope"], "x", row["id"], content)


def unread(ground: Ground) -> list[str]:
    return [row["content"] for row in ground.sql("SELECT content FROM messages WHERE read = 0 ORDER BY id")]


def task(ground: Ground, name: str, **columns) -> None:
    ground.add(
        "tasks", **{"id": name, "scope": ground.scope, "type": "fix", "title": name, "requester": "x", **columns}
    )


@pytest.fixture
def sides(ground: Ground) -> tuple[Hands, Hands, Hands]:
    """Two sessions of identity p and one of q."""
    labels = (("1", "identity:p one"), ("2", "identity:p two"), ("3", "identity:q secret-name"))
    return tuple(Hands(ground, ground.session(name, label)) for name, label in labels)


def test_the_tools_answer(ground: Ground, sides: tuple[Hands, Hands, Hands], monkeypatch, store: Store):
    mine, peer, stranger = sides
    monkeypatch.setenv("HERMES_HOST_HOME", "/hermes")
    mail(ground, mine.row, "hello")
    ground.lock(mine.row, "f", "why")
    ground.lock(mine.row, "/__swarm/spawn/x")
    ground.lock(peer.row, "g")
    store.kv.put(mine.row, "config/work_tracker/p", '{"provider": "linear"}')
    task(ground, "t1", files=json.dumps([f"{ground.scope}/a.py"]))
    shown = mine.value("bootstrap")
    assert list(shown) == TOOL_KEYS
    assert shown["instance"] == mine.value("whoami")
    assert [(row["id"], row["adopted"]) for row in shown["peers"]] == [(peer.row["id"], 0)]
    assert [list(message) for message in shown["unread_messages"]] == [["id", "sender", "content", "created_at"]]
    assert [(lock["file"], lock["content"]) for lock in shown["held_locks"]] == [(f"{ground.scope}/f", "why")]
    assert shown["state_backend"] == {
        "backend": "sqlite", "db_path": ground.database, "db_path_source": "SWARM_DB_PATH",
        "default_db_path": os.path.expanduser("~/.swarm-mcp/swarm.db"), "scope": ground.scope,
        "home": os.path.expanduser("~"), "hermes_host_home": "/hermes", "hermes_profile_home": None,
    }  # fmt: skip
    assert [name for name in shown["tasks"] if name != "terminal_counts"] == OPEN
    (open_task,) = shown["tasks"]["open"]
    assert open_task["files"] == [f"{ground.scope}/a.py"] and "changed_at" in open_task
    assert shown["tasks"]["terminal_counts"] == {"done": 0, "failed": 0, "cancelled": 0}
    assert (shown["work_tracker"]["key"], shown["work_tracker"]["value"]) == (
        "config/work_tracker/p",
        {"provider": "linear"},
    )
    assert "secret" not in json.dumps(shown) and stranger.value("bootstrap")["work_tracker"] is None


def test_mail_is_read_once_the_answer_has_been_written(ground: Ground, sides: tuple[Hands, Hands, Hands]):
    mine, *_ = sides
    mail(ground, mine.row, "one", "two")
    assert len(mine.value("bootstrap", mark_read=False)["unread_messages"]) == 2
    assert unread(ground) == ["one", "two"]
    lost = mine.answer("bootstrap", sent=False)
    assert len(lost.value["unread_messages"]) == 2 and unread(ground) == ["one", "two"], "it never arrived"
    ground.sql("UPDATE swarm_deliveries SET pid = 4194305, start = '1'")  # the server that took it has died
    assert [message["content"] for message in mine.value("bootstrap")["unread_messages"]] == ["one", "two"]
    assert unread(ground) == [] and mine.value("bootstrap")["unread_messages"] == []


def test_a_refused_bootstrap_takes_no_mail(ground: Ground, sides: tuple[Hands, Hands, Hands]):
    mine, *_ = sides
    mail(ground, mine.row, "one")
    refused = mine.value("bootstrap", adopt_instance_id="nobody")
    assert list(refused) == ["error"] and "nobody" in refused["error"]
    assert unread(ground) == ["one"] and ground.sql("SELECT * FROM swarm_deliveries") == []


def test_ended_tasks_are_counted_and_shown_when_asked_for(ground: Ground, sides: tuple[Hands, Hands, Hands]):
    mine, *_ = sides
    for number in range(4):
        at = 1_000_000 + number
        task(
            ground, f"done{number}", status="done", created_at=at, updated_at=at, changed_at=at * 1000, priority=-number
        )
    task(ground, "failed0", status="failed")
    counts = {"done": 4, "failed": 1, "cancelled": 0}
    assert mine.value("bootstrap")["tasks"]["terminal_counts"] == counts
    whole = mine.value("bootstrap", include_terminal=True)["tasks"]
    assert {name: len(whole[name]) for name in ENDED} == counts
    newest = mine.value("bootstrap", terminal_limit=2)["tasks"]
    assert {row["id"] for row in newest["done"]} == {"done2", "done3"}, "those that ended last, not those created first"
    assert len(newest["failed"]) == 1 and newest["terminal_counts"] == counts


def test_bootstrap_joins_an_unregistered_connection_to_what_waits_for_it(ground: Ground, monkeypatch):
    monkeypatch.setenv("SWARM_MCP_DIRECTORY", ground.scope)
    waiting = ground.plain("role:worker", lease_seconds=600)
    hands = Hands(ground)
    elsewhere = ground.plain("elsewhere", lease_seconds=600, directory="/else", scope=ground.scope)
    taken = ground.session("s", "taken")
    for wanted in ("nobody", elsewhere["id"], taken["id"]):
        assert list(hands.value("bootstrap", adopt_instance_id=wanted)) == ["error"]
    assert len(ground.sql("SELECT id FROM instances")) == 3
    assert hands.text("whoami") == "Not registered. Call register first."
    shown = hands.value("bootstrap", adopt_instance_id=waiting["id"])
    assert shown["instance"]["id"] == waiting["id"] == hands.value("whoami")["id"]
    assert len(shown["peers"]) == 2 and len(ground.sql("SELECT id FROM instances")) == 3


def test_the_commands_answer_is_text_or_json(ground: Ground, sides: tuple[Hands, Hands, Hands]):
    mine, peer, stranger = sides
    mail(ground, mine.row, "hello\nyou")
    task(ground, "t1", status="done")
    text = ground.swarm("bootstrap", "--as", mine.row["id"], "--json")
    assert text.code == 0 and list(text.json) == CLI_KEYS
    assert [message["content"] for message in text.json["unread_messages"]] == ["hello\nyou"]
    again = ground.swarm("bootstrap", "--as", mine.row["id"], "--json")
    assert again.json == {**text.json, "unread_messages": [], "instance": again.json["instance"]}
    mail(ground, mine.row, "hello\nyou")
    lines = ground.swarm("bootstrap", "--as", mine.row["id"]).out.splitlines()
    assert lines[0] == f"session {mine.row['id']} (one {mine.row['id'][:8]}) in scope {ground.scope}"
    assert f"  two {peer.row['id'][:8]}  {peer.row['id']}" in lines and "secret" not in "".join(lines)
    assert lines[lines.index("      hello") + 1] == "      you" and "  t1  [done]  fix  t1" in lines
    assert unread(ground) == [], "what was printed has been read"
    assert list(text.json["tasks"]) == [*OPEN[:3], *ENDED, *OPEN[3:], "terminal_counts"]
    assert [row["id"] for row in text.json["tasks"]["done"]] == ["t1"]
    assert [(row["id"], row["label"]) for row in text.json["peers"]] == [
        (peer.row["id"], "identity:p two"), (stranger.row["id"], None),
    ]  # fmt: skip


@pytest.mark.parametrize("reader", ["closed pipe", "full disk"])
# below a buffer's size, so that it is lost only at the flush, and above
@pytest.mark.parametrize("length", [1, 200_000])
def test_mail_that_could_not_be_printed_stays_unread(ground: Ground, sides, reader: str, length: int):
    mine, *_ = sides
    mail(ground, mine.row, "x" * length)
    if reader == "full disk" and not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full to print to (Linux has it)")
    if reader == "full disk":
        target = os.open("/dev/full", os.O_WRONLY)
    else:
        read, target = os.pipe()
        os.close(read)
    try:
        done = subprocess.run(
            [*SWARM, "bootstrap", "--as", mine.row["id"]], stdout=target, stderr=subprocess.PIPE, text=True, timeout=60
        )
    finally:
        os.close(target)
    full = (1, "swarm-mcp bootstrap: cannot write the answer: No space left on device\n")
    assert (done.returncode, done.stderr) == (full if reader == "full disk" else (0, ""))
    assert len(unread(ground)) == 1
    assert len(ground.swarm("bootstrap", "--as", mine.row["id"], "--json").json["unread_messages"]) == 1


def test_a_reserved_id_is_registered_when_nobody_has_it_yet(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    assert ground.swarm("bootstrap").code == 1
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", "reserved")
    assert ground.swarm("bootstrap", "--as", "somebody").code == 1
    assert ground.sql("SELECT id FROM instances") == []
    shown = ground.swarm("bootstrap", "--label", "me", "--json").json["instance"]
    assert (shown["id"], shown["label"]) == ("reserved", "me")
    assert ground.swarm("bootstrap", "--json").json["instance"]["id"] == "reserved"
    assert len(ground.sql("SELECT id FROM instances")) == 1


def test_adoption_by_command_wants_the_same_place_or_the_reserved_id(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    waiting = ground.plain("w", lease_seconds=600)
    adopted = ground.swarm("bootstrap", "--adopt-instance-id", waiting["id"], "--json").json["instance"]
    assert (adopted["id"], adopted["adopted"], adopted["lease_until"]) == (waiting["id"], True, None)
    for argv in (["/else", "--adopt-instance-id", waiting["id"]], ["--adopt-instance-id", "nobody"]):
        refused = ground.swarm("bootstrap", *argv)
        assert (refused.code, refused.out) == (1, "") and refused.err.count("\n") == 1, refused
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", "nobody")
    assert ground.swarm("bootstrap", "--adopt-instance-id", "nobody", "--json").json["instance"]["id"] == "nobody"


def test_a_session_of_hooks_stays_one_when_it_registers_by_its_own_id(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    row = ground.session("s", "identity:p")
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", row["id"])
    shown = ground.swarm("register", "--label", "identity:p role:planner", "--json").json
    assert (shown["id"], shown["adopted"], shown["label"]) == (row["id"], False, "identity:p role:planner")
    assert shown["lease_until"] >= row["lease_until"], "others would reclaim it after a minute without its lease"


@pytest.fixture
def pair(ground: Ground) -> tuple[dict, dict]:
    """Two sessions of one scope; the first holds a file."""
    mine, peer = ground.session("mine", "identity:p one"), ground.session("theirs", "identity:p two")
    ground.lock(peer, "f")
    return mine, peer


def left(ground: Ground) -> set[str]:
    return {row["id"] for row in ground.sql("SELECT id FROM instances")}


def as_session(monkeypatch, way: str, row: dict, name: str) -> None:
    """Make this process one that works for session `row`."""
    if way == "shell":
        monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", name)
    if way == "variable":
        monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", row["id"])


@pytest.mark.parametrize("caller", ["shell", "variable", "nobody"])
@pytest.mark.parametrize("reference", ["id", "prefix", "label"])
@pytest.mark.sampled
def test_a_live_peer_stays_without_force(ground: Ground, pair, monkeypatch, caller: str, reference: str):
    mine, peer = pair
    as_session(monkeypatch, caller, mine, "mine")
    named = {"id": peer["id"], "prefix": peer["id"][:13], "label": "identity:p two"}[reference]
    told = ground.swarm("deregister", "--as", named)
    assert (told.code, told.out) == (1, "") and told.err.count("\n") == 1, told
    why = "only a person" if caller == "shell" else "--force"
    assert told.err.startswith("deregister failed: ") and why in told.err
    refused = ground.swarm("deregister", "--as", named, "--json")
    assert refused.code == 1 and refused.err == "" and list(refused.json) == ["error"] and why in refused.json["error"]
    assert left(ground) == {mine["id"], peer["id"]}
    assert len(ground.sql("SELECT id FROM context")) == 1
    monkeypatch.delenv("CLAUDE_CODE_SESSION_ID", raising=False)  # a person's
    assert ground.swarm("deregister", "--as", named, "--force", "--json").json["id"] == peer["id"]
    assert left(ground) == {mine["id"]} and ground.sql("SELECT id FROM context") == []


@pytest.mark.parametrize("caller", ["shell", "variable"])
@pytest.mark.parametrize("named", [True, False])
def test_ones_own_session_needs_no_force(ground: Ground, pair, monkeypatch, caller: str, named: bool):
    mine, peer = pair
    as_session(monkeypatch, caller, mine, "mine")
    argv = option("--as", named and mine["id"])
    assert ground.swarm("deregister", *argv).out == f"deregistered {mine['id']}\n"
    assert left(ground) == {peer["id"]}


def test_the_only_session_of_a_scope_is_the_one_that_is_meant(ground: Ground):
    row = ground.plain()
    assert ground.swarm("deregister", "--as", row["id"][:8], "--json").json == {
        "ok": True,
        "id": row["id"],
        "scope": ground.scope,
    }
    assert left(ground) == set()


def test_a_dead_peer_needs_no_force(ground: Ground, pair: tuple[dict, dict]):
    with Sleeper() as client:
        dead = ground.session("dead", "gone", client=client.identity)
        ground.lock(dead, "g")
    done = ground.swarm("deregister", "--as", dead["id"])
    assert done.code == 0 and dead["id"] not in left(ground)
    assert len(ground.sql("SELECT id FROM context")) == 1
    assert ground.swarm("deregister", "--as", dead["id"]).code == 1, "it is not on record any more"


def test_a_plain_registration_publishes_the_pane_it_is_made_in(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HERDR_PANE_ID", "p_3")
    row = ground.swarm("register", "--label", "session:x", "--json").json
    key = f"identity/workspace/herdr/{row['id']}"
    assert json.loads(ground.sql("SELECT value FROM kv WHERE key = ?", key)[0]["value"])["handle"] == "p_3"
    monkeypatch.setenv("HERDR_PANE_ID", "p_4")
    assert ground.swarm("register", "--label", "session:x", "--json").json["id"] == row["id"]
    assert json.loads(ground.sql("SELECT value FROM kv WHERE key = ?", key)[0]["value"])["handle"] == "p_4"


def test_what_is_registered_for_others_does_not_get_this_pane(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HERDR_PANE_ID", "p_3")
    ground.swarm("register", "--lease-seconds", "600")
    ground.swarm("register", "--runtime", "codex", "--session-id", "s")
    assert ground.sql("SELECT key FROM kv") == []
