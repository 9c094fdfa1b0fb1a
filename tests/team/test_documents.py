"""Documents on a real server: changed by one at a time, told in order, and kept as long as is promised."""

import threading

import pytest

from swarm_mcp.team import TeamRefused
from swarm_mcp.team.protocol import (
    DOCUMENT,
    DOCUMENT_GONE,
    EPOCH,
    GRACE,
    MESSAGE,
    MOST_BODY,
    REFUSED,
    STALE,
    TASK,
    TRACE,
    UNKNOWN_SESSION,
    VALUE,
    item,
)  # fmt: skip
from swarm_mcp.team.server import connect
from team.machines import Machine


@pytest.fixture
def machines(team, repository):
    """Two machines with a session each."""
    found = [Machine(team, name, repository, f"{name}-s") for name in ("laptop", "sandbox")]
    yield found
    for one in found:
        one.server.close()


def documents(machine: Machine) -> dict[tuple[str, str], dict]:
    found = machine.server.look(machine.repository)["all"]["documents"]
    assert [row["version"] for row in found] == sorted(row["version"] for row in found)
    return {(row["kind"], row["key"]): row for row in found}


def test_a_change_is_based_on_a_version_and_one_of_two_wins(machines):
    laptop, sandbox = machines
    first = laptop.put(VALUE, "k", 0, {"text": "a", "n": [1, 2.5, None, "ü"]})
    assert first["ok"] and laptop.put(VALUE, "k", 0, {"n": [1, 2.5, None, "ü"], "text": "a"}) == first  # asked again
    late = sandbox.put(VALUE, "k", 0, {"text": "a", "n": [1, 2.5, None, "ü"]})
    assert late.pop("member")
    assert late == {
        "ok": False, "why": STALE, "version": first["version"], "body": {"text": "a", "n": [1, 2.5, None, "ü"]},
        "machine": "laptop",
    }  # fmt: skip
    assert sandbox.put(VALUE, "k", first["version"], "ab")["version"] == first["version"] + 1
    assert laptop.put(VALUE, "k", first["version"], "ab")["why"] == STALE  # the same text, and not the same change
    assert sandbox.put(VALUE, "k", first["version"], None)["why"] == STALE
    gone = laptop.put(VALUE, "k", first["version"] + 1, None)
    assert gone == {"ok": True, "version": first["version"] + 2}
    assert laptop.put(VALUE, "k", first["version"] + 1, None) == {"ok": True, "version": 0} and not documents(laptop)
    assert sandbox.put(VALUE, "k", gone["version"], "x") | {"member": ""} == {
        "ok": False, "why": STALE, "version": 0, "body": None, "machine": "", "member": ""
    }  # fmt: skip
    sandbox.beat()
    told = [(change["kind"], change["version"], change["body"]) for change in sandbox.changes[-3:]]
    assert [(kind, version) for kind, version, _ in told] == [
        (DOCUMENT, first["version"]), (DOCUMENT, first["version"] + 1), (DOCUMENT_GONE, gone["version"])
    ]  # fmt: skip
    assert all(version == body["version"] and body["key"] == "k" for _, version, body in told)
    assert (told[1][2]["body"], told[1][2]["machine"], told[2][2]["machine"]) == ("ab", "sandbox", "laptop")
    assert "body" not in told[2][2] and told[2][2]["reason"] == "removed"
    assert sandbox.changes[-1]["session"] == "" and sandbox.changes[-1]["machine"] == "laptop"


def test_many_at_once_each_for_itself_and_in_calls_that_are_not_too_large(machines):
    laptop, sandbox = machines
    sandbox.put(VALUE, "5", 0, "taken")
    items = [item(VALUE, str(number), 0, "x" * 30_000) for number in range(250)]
    items[7:7] = [item(VALUE, "large", 0, "x" * MOST_BODY), item(VALUE, "nul", 0, "a\0"), item(VALUE, "half", 0, "\ud800"),
                  item(VALUE, "k" * 513, 0, 1), item("note", "k", 0, 1), item(MESSAGE, "m", 0, None)]  # fmt: skip
    answers = laptop.server.put(laptop.repository, items, laptop.version, laptop.mark)
    wrong = {number: answer["why"] for number, answer in enumerate(answers) if not answer["ok"]}
    assert wrong == {5: STALE, **dict.fromkeys(range(7, 13), REFUSED)}
    assert len(documents(laptop)) == 250
    assert laptop.acquire("laptop-s", "a")["ok"]  # small messages are not sent before large ones, either
    sandbox.changes.clear()
    parts: list[list[int]] = []
    while (news := sandbox.server.beat(sandbox.repository, sandbox.version, sandbox.mark)["news"])["changes"]:
        parts.append([len(change["body"].get("body", "")) for change in news["changes"]])
        sandbox.take(news)
    assert len(parts) == 8 and all(sum(part[:-1]) < 1024 * 1024 for part in parts)
    assert [change["version"] for change in sandbox.changes] == list(range(3, sandbox.version + 1))
    assert laptop.server.put(laptop.repository, [], laptop.version, laptop.mark) == []


def test_a_message_is_put_once_and_says_whom_it_is_of(machines):
    laptop, sandbox = machines
    body = {"sender": "laptop-s", "recipient": "sandbox-s", "content": "hello"}
    sent = laptop.put(MESSAGE, "m1", 0, body)
    for seen in (0, sent["version"], 77):
        assert laptop.put(MESSAGE, "m1", seen, body) == sent
    assert laptop.put(MESSAGE, "m1", sent["version"], {**body, "content": "other"})["why"] == STALE
    assert sandbox.put(MESSAGE, "m2", 0, body)["why"] == REFUSED, "forged"
    assert sandbox.put(MESSAGE, "m2", 0, {**body, "sender": ""})["ok"]
    assert sandbox.put(MESSAGE, "m3", 0, {**body, "sender": "a session that ended while its machine was away"})["ok"]
    assert laptop.put(MESSAGE, "m1", sent["version"], None)["why"] == REFUSED
    assert documents(sandbox)[MESSAGE, "m3"]["machine"] == "sandbox"


def test_a_task_is_claimed_once_and_by_a_session_that_the_server_knows(machines):
    laptop, sandbox = machines
    version = laptop.put(TASK, "t", 0, {"status": "open", "assignee": None})["version"]
    nobody = {"status": "claimed", "assignee": "nobody"}
    assert laptop.put(TASK, "t", version, nobody) == {"ok": False, "why": UNKNOWN_SESSION}
    assert laptop.put(TASK, "t2", 0, nobody)["ok"], "made for somebody who is to come"
    answers, start = {}, threading.Barrier(2)

    def claim(machine):
        start.wait()
        body = {"status": "claimed", "assignee": f"{machine.server.machine}-s"}
        answers[machine.server.machine] = machine.put(TASK, "t", version, body)

    threads = [threading.Thread(target=claim, args=(one,)) for one in machines]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    (winner,) = [name for name, answer in answers.items() if answer["ok"]]
    (loser,) = [answer for answer in answers.values() if not answer["ok"]]
    assert (loser["why"], loser["body"]["assignee"], loser["machine"]) == (STALE, f"{winner}-s", winner)
    ended = {"status": "done", "assignee": "gone since"}
    assert laptop.put(TASK, "t", loser["version"], ended)["ok"], "what has ended may be of one who has"


def test_what_is_over_is_removed_by_the_next_change_and_told(machines, team):
    laptop, sandbox = machines
    laptop.put(MESSAGE, "old", 0, {"sender": ""})
    laptop.put(TRACE, "old", 0, "edited")
    laptop.put(TASK, "old", 0, {"status": "done"})
    laptop.put(TASK, "open", 0, {"status": "open"})
    laptop.put(VALUE, "v", 0, 1)
    with connect(team) as admin:
        kept = dict(admin.execute(
            "SELECT d.kind || ' ' || d.key, extract(epoch FROM until - at)::float8 FROM swarm_team.documents d"
            " JOIN swarm_team.repositories r ON r.key = d.repository WHERE r.name = %s", (laptop.repository,),
        ).fetchall())  # fmt: skip
        assert kept == {"message old": 86400, "trace old": 7200, "task old": 172800, "task open": None, "value v": None}
        admin.execute("UPDATE swarm_team.documents SET until = clock_timestamp() - interval '1 s' WHERE key = 'old'")
    sandbox.beat()
    sandbox.put(VALUE, "v2", 0, 2)
    assert set(documents(laptop)) == {(TASK, "open"), (VALUE, "v"), (VALUE, "v2")}
    laptop.beat()
    gone = [change["body"] for change in laptop.changes if change["kind"] == DOCUMENT_GONE]
    assert {(body["kind"], body["key"], body["reason"]) for body in gone} == {
        (kind, "old", "expired") for kind in (MESSAGE, TRACE, TASK)
    }
    assert laptop.put(TRACE, "old", 0, "edited")["ok"]


def test_there_is_room_for_so_much_and_what_is_removed_makes_room(machines, team):
    laptop, _ = machines
    part = "x" * 130_000
    items = [item(VALUE, str(number), 0, part) for number in range(130)]
    answers = laptop.server.put(laptop.repository, items, laptop.version, laptop.mark, seconds=10)
    full = [number for number, answer in enumerate(answers) if not answer["ok"]]
    assert full == [129] and answers[129]["why"] == REFUSED and "16 MiB" in answers[129]["error"]
    assert laptop.put(VALUE, "0", answers[0]["version"], "y" * 130_000)["ok"], "no larger than before"
    assert laptop.put(VALUE, "1", answers[1]["version"], None)["ok"]
    assert laptop.put(VALUE, "129", 0, part)["ok"]
    with connect(team) as admin:
        counted, there = admin.execute(
            "SELECT r.documents_size, (SELECT sum(size) FROM swarm_team.documents d WHERE d.repository = r.key)"
            " FROM swarm_team.repositories r WHERE r.name = %s", (laptop.repository,),
        ).fetchone()  # fmt: skip
    assert counted == there == 129 * 130_000


def test_documents_outlive_what_makes_grants_void(machines, team):
    laptop, sandbox = machines
    version = laptop.put(TASK, "t", 0, {"status": "open"})["version"]
    laptop.mark += 1  # like a machine that has seen the server's lost changes
    (answer,) = laptop.server.put(laptop.repository, [item(VALUE, "v", 0, 1)], laptop.version, laptop.mark)
    assert answer == {"ok": False, "why": EPOCH}
    assert sandbox.put(VALUE, "v", 0, 1)["why"] == EPOCH
    laptop.hello()
    assert documents(laptop)[TASK, "t"]["version"] == version
    assert laptop.version > version + 1_000_000, "no version is given a second time"
    claim = {"status": "claimed", "assignee": "laptop-s"}
    held_up = laptop.put(TASK, "t", version, claim)
    assert (held_up["why"], held_up["seconds"] > 0) == (GRACE, True)
    assert laptop.put(VALUE, "v", 0, 1)["ok"] and laptop.put(TASK, "t2", 0, {"status": "open"})["ok"]
    assert laptop.put(TASK, "t", version, claim, again=True)["ok"], "as it was before"
    assert laptop.put(TASK, "t", version, None)["why"] == STALE


def test_a_server_without_documents_goes_on_with_locks_and_is_brought_up(engine, repository, monkeypatch):
    from swarm_mcp.team import server as team_server

    with connect(engine.dsn()) as admin:
        admin.execute("CREATE DATABASE older")
    server = engine.dsn(database="older")
    every = team_server.migrations()
    monkeypatch.setattr(team_server, "migrations", lambda: every[:1])
    assert team_server.init(server).applied == ["0001_team"]
    laptop = Machine(server, "laptop", repository, "laptop-s")
    assert laptop.get("laptop-s", "a")["ok"]
    assert laptop.server.hello(repository)["schema"] == 1
    assert "documents" not in laptop.server.look(repository)["all"]
    with pytest.raises(TeamRefused, match="swarm-mcp team init") as refusal:
        laptop.put(VALUE, "v", 0, 1)
    assert refusal.value.answer["code"] == "no_team"
    monkeypatch.setattr(team_server, "migrations", lambda: every)
    assert "0002_documents" in team_server.init(server).applied
    assert laptop.put(VALUE, "v", 0, 1)["ok"] and laptop.held() == ["a"]
    assert laptop.server.hello(repository)["schema"] >= 2
    laptop.server.close()
