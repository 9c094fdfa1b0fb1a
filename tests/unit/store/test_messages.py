"""Mail: its receivers, its delivery to one poller only, and its safety on the way."""

import json
import os
import re
import signal
import subprocess
import threading

import pytest
from support import many_processes as crowd
from support.fixtures import BARE_PYTHON, Ground, Sleeper
from support.query_plans import scans

from swarm_mcp.errors import Refused
from swarm_mcp.server.tools.messages import TOOLS
from swarm_mcp.store import Store
from swarm_mcp.store.messages import CLAIM_SECONDS

TOOL = {tool.name: tool for tool in TOOLS}


@pytest.fixture
def ann(ground: Ground) -> dict:
    """A session."""
    return ground.session("1", "ann")


@pytest.fixture
def bob(ground: Ground) -> dict:
    """Another one."""
    return ground.session("2", "bob", "codex")


def send(ground: Ground, sender: dict, recipient: dict, *contents: str) -> list[int]:
    with ground.store() as store:
        return [store.messages.send(sender, recipient["id"], content) for content in contents]


def take(ground: Ground, instance: dict, limit: int = 50) -> list[str]:
    """Return the messages for one more poller of this very process."""
    with ground.store() as store:
        return [mail["content"] for mail in store.messages.take(instance, limit)]


class Caller:
    """A tool's call as the session of `row` makes it."""

    def __init__(self, store, row: dict | None):
        self.store, self.row = store, row

    def member(self) -> dict:
        assert self.row
        return self.row


def call(ground: Ground, row: dict, name: str, **arguments):
    """One tool's answer, sent: text or value."""
    defaults = {key: spec["default"] for key, spec in TOOL[name].properties.items() if "default" in spec}
    with ground.store() as store:
        answer = TOOL[name].call(Caller(store, row), {**defaults, **arguments})
        if answer.on_sent:
            answer.on_sent(store)
    assert not answer.is_error
    return answer.text or answer.value


def test_a_message_is_one_row_and_one_event(ground: Ground, ann: dict, bob: dict):
    (message_id,) = send(ground, ann, bob, "hi 😀")
    (row,) = ground.sql("SELECT * FROM messages")
    assert row == {
        "id": message_id, "scope": ground.scope, "sender": ann["id"], "recipient": bob["id"], "content": "hi 😀",
        "created_at": row["created_at"], "read": 0,
    }  # fmt: skip
    (event,) = ground.sql("SELECT * FROM events WHERE type = 'message.sent'")
    assert (event["scope"], event["actor"], event["subject"]) == (ground.scope, ann["id"], bob["id"])
    assert json.loads(event["payload"]) == {"content": "hi 😀", "length": 5}


def test_identities_keep_apart_unless_told_otherwise(ground: Ground, store: Store, monkeypatch: pytest.MonkeyPatch):
    ann, eve = ground.session("1", "identity:a"), ground.session("2", "identity:b secret")
    plain = ground.session("3", "plain")
    with pytest.raises(Refused, match="Cross-identity coordination blocked") as refusal:
        store.messages.send(ann, eve["id"], "x")
    assert "secret" not in str(refusal.value)
    assert store.messages.broadcast(ann, "all") == [plain["id"]]
    assert sorted(store.messages.broadcast(plain, "all")) == sorted([ann["id"], eve["id"]])
    monkeypatch.setenv("SWARM_MCP_ALLOW_CROSS_IDENTITY", "1")
    assert store.messages.send(ann, eve["id"], "x")


def test_a_broadcast_reaches_every_live_session_and_is_one_event(ground: Ground, ann: dict, bob: dict, store: Store):
    foreign = ground.stranger("foreign")  # adopted by another implementation
    leased = ground.session("3", lease_seconds=600)
    ground.session("4", directory=str(ground.folder))
    ground.stranger("silent", heartbeat=1)
    assert sorted(store.messages.broadcast(ann, "all")) == sorted([bob["id"], foreign, leased["id"]])
    rows = ground.sql("SELECT recipient, content FROM messages")
    assert sorted(row["recipient"] for row in rows) == sorted([bob["id"], foreign, leased["id"]])
    (event,) = ground.sql("SELECT * FROM events WHERE type LIKE 'message.%'")
    assert (event["type"], event["actor"], event["subject"]) == ("message.broadcast", ann["id"], None)
    assert json.loads(event["payload"]) == {"content": "all", "recipients": 3, "length": 3}


def test_mail_comes_in_order_and_in_portions(ground: Ground, ann: dict, bob: dict, store: Store):
    send(ground, ann, bob, "1", "2", "3")
    assert [mail["content"] for mail in store.messages.peek(bob, 2)] == ["1", "2"]
    first = store.messages.take(bob, 2)
    assert [sorted(mail) for mail in first] == [["content", "created_at", "id", "sender"]] * 2
    assert [mail["content"] for mail in first] == ["1", "2"]
    assert store.messages.unread_count(bob) == 1
    assert [mail["content"] for mail in store.messages.peek(bob)] == ["3"]
    assert [mail["content"] for mail in store.messages.take(bob, 2)] == ["3"]
    assert store.messages.take(bob) == [] and store.messages.unread_count(bob) == 0
    assert store.messages.take(ann) == []


def test_others_see_a_message_as_unread_until_it_has_arrived(ground: Ground, ann: dict, bob: dict, store: Store):
    ids = send(ground, ann, bob, "1", "2")
    store.messages.take(bob, 1)
    assert [row["read"] for row in ground.sql("SELECT read FROM messages ORDER BY id")] == [0, 0]
    store.messages.acknowledge(ids[:1])
    assert [row["read"] for row in ground.sql("SELECT read FROM messages ORDER BY id")] == [1, 0]
    assert ground.sql("SELECT * FROM swarm_deliveries") == []
    store.messages.acknowledge([])


def test_a_claim_ends_with_its_process_or_its_time(ground: Ground, ann: dict, bob: dict):
    (message_id,) = send(ground, ann, bob, "once")

    def claimed_by(pid: int, start: str, age: int = 0, host: str = "") -> list[str]:
        ground.sql("DELETE FROM swarm_deliveries")
        with ground.store() as store:
            ground.add(
                "swarm_deliveries", message_id=message_id, host=host or store.here, pid=pid, start=start,
                taken_at=store.now() - age,
            )  # fmt: skip
            assert store.messages.unread_count(bob) == len(store.messages.peek(bob))
            return [mail["content"] for mail in store.messages.take(bob)]

    with Sleeper() as other:
        assert claimed_by(*other.identity) == []
        assert claimed_by(*other.identity, age=CLAIM_SECONDS - 5) == []
        assert claimed_by(*other.identity, age=CLAIM_SECONDS + 5) == ["once"]
        assert claimed_by(*other.identity, age=-CLAIM_SECONDS - 5) == ["once"], "a clock that was set back"
        assert claimed_by(other.pid, "another start") == ["once"], "that pid is another process by now"
    assert claimed_by(*other.identity) == ["once"], "the process has ended"
    assert claimed_by(*other.identity, host="elsewhere/boot/") == [], "nothing can be proven of another machine"


def test_mail_about_one_task_is_taken_by_itself(ground: Ground, ann: dict, bob: dict, store: Store):
    texts = ["[task:t1] one", "about [task:t1]", "[task:t10] ten", "[task:t1] two", "else"]
    send(ground, ann, bob, *texts)
    assert [mail["content"] for mail in store.messages.take(bob, 1, about="t1")] == [texts[0]]
    assert [mail["content"] for mail in store.messages.take(bob, -1, about="t1")] == [texts[3]]
    assert store.messages.take(bob, -1, about="t1") == store.messages.take(bob, -1, about="%") == []
    assert take(ground, bob) == ["about [task:t1]", "[task:t10] ten", "else"]


def test_old_claims_do_not_pile_up(ground: Ground, ann: dict, bob: dict):
    send(ground, ann, bob, "x")
    for message_id in range(1000, 1100):
        ground.add("swarm_deliveries", message_id=message_id, host="h", pid=1, start="s", taken_at=1)
    assert take(ground, bob) == ["x"]
    assert len(ground.sql("SELECT * FROM swarm_deliveries")) == 1


TAKER = (
    crowd.PRELUDE
    + """
with Store() as store:
    me = store.instances.get(arguments["me"])
    report([mail["content"] for mail in store.messages.take(me, arguments["limit"])])
    sys.stdin.readline()  # never answered
"""
)


def test_a_poller_killed_before_its_answer_loses_nothing(ground: Ground, ann: dict, bob: dict):
    send(ground, ann, bob, *(str(n) for n in range(8)))
    arguments = json.dumps({"me": bob["id"], "limit": 5})
    process = subprocess.Popen(
        [*BARE_PYTHON, "-c", TAKER, arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert json.loads(process.stdout.readline()) == ["0", "1", "2", "3", "4"]
        with ground.store() as store:
            later = store.messages.take(bob)
            assert [mail["content"] for mail in later] == ["5", "6", "7"], "the rest is free, those are on their way"
            store.messages.acknowledge([mail["id"] for mail in later])
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with ground.store() as store:
            assert store.messages.unread_count(bob) == 5
            again = store.messages.take(bob)
            assert [mail["content"] for mail in again] == ["0", "1", "2", "3", "4"]
            store.messages.acknowledge([mail["id"] for mail in again])
            assert store.messages.take(bob) == []
    finally:
        process.kill()
        process.communicate()


POLLER = """
with Store() as store:
    me = store.instances.get(arguments["me"])
    gate()
    seen, idle = [], 0
    while idle < 20:
        mail = store.messages.take(me, 3)
        store.messages.acknowledge([one["id"] for one in mail])
        seen += [one["content"] for one in mail]
        idle = 0 if mail else idle + 1
        if not mail:
            time.sleep(0.02)
    report(seen)
"""


def test_four_pollers_at_once_get_every_message_once(ground: Ground, ann: dict, bob: dict):
    contents = [str(n) for n in range(120)]
    send(ground, ann, bob, *contents[:60])
    with crowd.Crowd(POLLER, [{"me": bob["id"]}] * 4) as pollers:
        pollers.start()
        send(ground, ann, bob, *contents[60:])
        members = pollers.finish()
    assert [(member.code, member.err) for member in members] == [(0, "")] * 4
    got = [content for member in members for report in member.reports for content in report]
    assert sorted(got, key=int) == contents
    assert ground.sql("SELECT count(*) AS n FROM messages WHERE read = 0") == [{"n": 0}]
    assert take(ground, bob) == []


def test_two_calls_of_one_server_get_different_messages(ground: Ground, ann: dict, bob: dict):
    """A client may have two calls under way; both threads are the same process."""
    send(ground, ann, bob, *(str(n) for n in range(40)))
    gate, got = threading.Barrier(4), []

    def poll() -> None:
        with ground.store() as store:
            gate.wait()
            got.extend(mail["content"] for mail in store.messages.take(bob, 10))

    threads = [threading.Thread(target=poll) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got, key=int) == [str(n) for n in range(40)]


def test_polling_searches_only_the_own_inbox(ground: Ground, ann: dict, bob: dict, store: Store):
    send(ground, ann, bob, "x")
    assert scans(store, lambda: store.messages.take(bob)) == set()


def test_the_tools_refuse_in_words(ground: Ground, ann: dict):
    eve = ground.session("3", "identity:b")
    ann = ann.replace(label="identity:a")
    for recipient, words in (
        (ann["id"], "Cannot send a message to yourself"),
        ("nope", "Instance nope is not active in this scope"),
        (eve["id"], "Cross-identity coordination blocked"),
    ):
        assert call(ground, ann, "send_message", recipient=recipient, content="x").startswith(words)
    assert "empty" in call(ground, ann, "broadcast", content=" ")
    for recipient in (ann["id"], "nope", eve["id"]):
        assert list(call(ground, ann, "prompt_peer", recipient=recipient, message="x")) == ["error"]
    assert ground.sql("SELECT * FROM messages") == []


def test_an_answer_that_was_not_sent_is_not_acknowledged(ground: Ground, ann: dict, bob: dict, store: Store):
    send(ground, ann, bob, "x")
    TOOL["poll_messages"].call(Caller(store, bob), {"limit": 50})
    assert ground.sql("SELECT read FROM messages") == [{"read": 0}]


@pytest.mark.parametrize(
    "argv",
    [
        ["send", "x"], ["send", "--to", "bob"], ["broadcast"], ["prompt-peer", "--to", "bob"], ["prompt-peer"],
        ["prompt-peer", "bob", "x", "--message", "y"], ["messages", "--limit", "abc"], ["messages", "--to", "zzz"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_missing_or_wrong_is_said_in_one_line(ground: Ground, ann: dict, bob: dict, argv: list[str]):
    done = ground.swarm(*argv, "--as", "ann")
    code = 2 - ("zzz" in argv)  # a session that is not there is no wrong command line
    assert (done.code, done.out) == (code, "") and len(done.err.splitlines()) == 1
    assert ground.sql("SELECT * FROM messages") == []


def test_messages_lists_the_newest_and_marks_nothing(ground: Ground, ann: dict, bob: dict, store: Store):
    assert ground.swarm("messages").out == "(no messages)\n"
    assert ground.swarm("messages", "--json").json == []
    first, second = send(ground, ann, bob, "one", "two\nlines")
    (third,) = send(ground, bob, ann, "three")
    store.messages.acknowledge([first])
    rows = ground.swarm("messages", "--json", "--limit", "2").json
    assert [row["id"] for row in rows] == [second, third]
    assert list(rows[0]) == ["id", "sender", "recipient", "content", "created_at", "read"]
    assert [row["id"] for row in ground.swarm("messages", "--json", "--to", "bob").json] == [first, second]
    assert [row["id"] for row in ground.swarm("messages", "--json", "--from", "bob").json] == [third]
    assert ground.swarm("messages", "--limit", "0", "--json").json == []
    assert len(ground.swarm("messages", "--limit", "-1", "--json").json) == 3
    lines = ground.swarm("messages").out.splitlines()
    assert re.fullmatch(rf"  #{first}  (now|\d+ s ago)  ann {ann['id'][:8]} → bob {bob['id'][:8]}", lines[0])
    assert lines[1] == "    one"
    assert lines[2].startswith(f"* #{second}  ") and lines[3:5] == ["    two", "    lines"]
    assert ground.sql("SELECT count(*) AS n FROM messages WHERE read = 0") == [{"n": 2}]


def test_messages_of_other_identities_are_not_shown_and_do_not_count(ground: Ground):
    ann, eve = ground.session("1", "identity:a"), ground.session("2", "identity:b")
    kin = ground.session("3", "identity:a")
    send(ground, ann, kin, "ours")
    send(ground, eve, eve, "secret 1", "secret 2")
    shown = ground.swarm("messages", "--json", "--limit", "1", "--as", ann["id"]).json
    assert [row["content"] for row in shown] == ["ours"]
    assert len(ground.swarm("messages", "--json", "--as", eve["id"]).json) == 2
