"""Locks that change hands: given, asked for, taken; and the guard's word to a former holder."""

import json
import os
import subprocess

import pytest
from support import sessions
from support.fixtures import Ground, Sleeper
from support.toolbox import Hands

from swarm_mcp.errors import LockRefused, Refused, UnknownInstance
from swarm_mcp.guard.check import refusals
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

RUNTIME = "claude-code"


def events(store, kind: str) -> list[dict]:
    rows = store.database.rows("SELECT * FROM events WHERE type = ? ORDER BY id", (kind,))
    return [{**row, **json.loads(row["payload"])} for row in rows]


def mail(store, row: dict) -> list[str]:
    return [message["content"] for message in store.messages.peek(row)]


def holders(store, file: str) -> list[str]:
    return [lock["owner_label"] for lock in store.locks.on(file)]


def test_a_transfer_is_one_step_with_a_new_fence(ground: Ground, store: Store):
    giver, taker, third = (ground.session(name, name) for name in ("giver", "taker", "third"))
    file = str(ground.repo / "f")
    (lock,) = store.locks.acquire_all(giver, request(giver, [file], ttl=60, note="old"))
    with pytest.raises(LockRefused):
        store.locks.acquire(third, file)
    ticket = store.queue.join(third, request(third, [file]), None)
    row = store.transfers.transfer(giver, file, taker["id"], fence=lock["fence"], note="yours")
    assert (row["fence"], row["content"], row["ttl"]) == (lock["fence"] + 1, "yours", 60)
    assert holders(store, file) == ["taker"]
    (released,), acquired = events(store, "context.lock_released"), events(store, "context.lock_acquired")
    assert (released["reason"], released["to"], released["actor"]) == ("transferred", taker["id"], giver["id"])
    assert (acquired[-1]["from"], acquired[-1]["actor"]) == (giver["id"], taker["id"])
    assert f"giver {giver['id'][:8]} (instance" in mail(store, taker)[0] and "yours" in mail(store, taker)[0]
    assert ["still in line" in text for text in mail(store, third)] == [True], "told once, and not that it is free"
    assert store.queue.has(ticket, third["id"])
    with pytest.raises(Refused):
        store.transfers.transfer(giver, file, taker["id"])


def test_a_lock_that_the_taker_shares_already_becomes_one_though_its_folder_is_a_link_now(ground: Ground, store: Store):
    giver, taker = ground.session("giver", "giver"), ground.session("taker", "taker")
    folder = ground.repo / "place"
    folder.mkdir()
    store.locks.acquire_all(giver, request(giver, [f"{folder}/f"], mode="shared"))
    folder.rename(ground.repo / "real")
    folder.symlink_to("real")
    store.locks.acquire_all(taker, request(taker, [f"{folder}/f"], mode="shared"))
    store.transfers.transfer(giver, f"{folder}/f", taker["id"])
    assert len(store.locks.of(taker["id"])) == 1


def test_a_lock_is_not_handed_to_who_could_not_use_it(ground: Ground, store: Store):
    giver, taker = ground.session("giver", "identity:a giver"), ground.session("taker", "identity:b taker")
    friend = ground.session("friend", "identity:a friend")
    elsewhere = ground.session("far", "identity:a far", directory=str(ground.folder))
    store.locks.acquire(giver, "src/f")
    store.locks.acquire(giver, "src/")
    with pytest.raises(Refused, match="another identity"):
        store.transfers.transfer(giver, "src/f", taker["id"])
    with pytest.raises(UnknownInstance):
        store.transfers.transfer(giver, "src/f", elsewhere["id"])
    with pytest.raises(Refused, match="this session itself"):
        store.transfers.transfer(giver, "src/f", giver["id"])
    with pytest.raises(Refused, match="you also hold .*src, which meets it"):
        store.transfers.transfer(giver, "src/f", friend["id"])
    with pytest.raises(Refused, match="holds no lock"):
        store.transfers.transfer(friend, "src/f", giver["id"])
    assert len(store.locks.of(giver["id"])) == 2


def test_a_request_is_told_once_by_the_next_hook_or_the_next_poll(ground: Ground, store: Store):
    holder, peer = ground.session("holder", "holder"), ground.session("peer", "peer")
    store.locks.acquire(holder, "f")
    for _ in range(2):
        (asked,) = store.transfers.request(peer, "f", "two minutes")
        assert asked["instance_id"] == holder["id"]
    assert len(mail(store, holder)) == 1, "asked twice, told once"
    assert [event["why"] for event in events(store, "context.lock_requested")] == ["two minutes"] * 2
    (notice,) = store.notices.take(holder)
    assert f"peer {peer['id'][:8]} (instance" in notice["text"] and "two minutes" in notice["text"]
    store.messages.acknowledge([notice["id"]])
    assert mail(store, holder) == store.notices.take(holder) == []
    store.transfers.request(peer, "f")
    store.messages.acknowledge([message["id"] for message in store.messages.take(holder)])
    assert store.notices.take(holder) == [], "a poll has delivered it"
    store.locks.release(holder, "f")
    assert any("is free" in text for text in mail(store, peer))


def test_a_request_wants_somebody_to_ask(ground: Ground, store: Store):
    holder, stranger = ground.session("holder", "identity:a h"), ground.session("stranger", "identity:b s")
    with pytest.raises(Refused, match="nobody keeps"):
        store.transfers.request(stranger, "f")
    store.locks.acquire(holder, "f")
    with pytest.raises(Refused, match="ask the person"):
        store.transfers.request(stranger, "f")
    assert mail(store, holder) == []


def test_what_the_dead_held_anybody_may_take(ground: Ground, store: Store):
    with Sleeper() as client:
        holder = ground.session("holder", "holder", client=client.identity)
        ground.lock(holder, "f")
    thief = ground.session("thief", "thief", client=(0, ""))
    ground.sql("INSERT INTO context (id, instance_id, scope, file, path_key, type, content) VALUES"
               " ('x', 'long-gone', ?, ?, ?, 'lock', '')", ground.scope, f"{ground.scope}/g", f"{ground.scope}/g")  # fmt: skip
    done = store.transfers.steal(thief, "g", "it is dead")
    assert [row["instance_id"] for row in done["taken"]] == ["long-gone"]
    (event,) = events(store, "context.lock_stolen")
    assert (event["actor"], event["holder"], event["why"]) == (thief["id"], "long-gone", "it is dead")
    assert store.transfers.steal(thief, "f")["lock"]["fence"] > done["lock"]["fence"]


def test_what_the_living_hold_goes_only_by_force(ground: Ground, store: Store):
    holder, thief, third = (ground.session(name, name) for name in ("holder", "thief", "third"))
    store.locks.acquire(holder, "src/")
    store.locks.acquire(third, "src2/g")
    with pytest.raises(LockRefused):
        store.transfers.steal(thief, "src/f")
    with pytest.raises(LockRefused):  # the file locked below is taken by name
        store.transfers.steal(thief, "src2/", "why", force=True)
    assert holders(store, f"{ground.scope}/src2/g") == ["third"]
    done = store.transfers.steal(thief, "src/f", "it hangs", force=True)
    assert [row["instance_id"] for row in done["taken"]] == [holder["id"]]
    assert holders(store, f"{ground.scope}/src/f") == ["thief"] and store.locks.of(holder["id"]) == []
    (text,) = mail(store, holder)
    assert "was taken by thief" in text and "it hangs" in text
    assert "it hangs" in sessions.write(RUNTIME, "holder", ground.repo, ground.repo / "src/f").reason


def test_only_a_person_uses_force(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    holder, thief = ground.session("holder", "holder"), ground.session("thief", "thief")
    ground.lock(holder, "f")
    steal = ("steal", "f", "--as", thief["id"], "--force")
    assert "--force wants --reason" in ground.swarm(*steal).err
    done = ground.swarm(*steal, "--reason", "late")
    assert done.code == 1 and "only a person" in done.err
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")
    monkeypatch.setenv("CLAUDECODE", "1")
    assert "only a person" in ground.swarm(*steal, "--reason", "late").err, "an agent's shell is no person's"
    monkeypatch.delenv("CLAUDECODE")
    answer = ground.swarm(*steal, "--reason", "late", "--json").json
    assert answer["ok"] and [row["holder"] for row in answer["taken"]] == [holder["id"]]


def test_the_tools_answer(ground: Ground):
    holder, peer = ground.session("holder", "holder"), ground.session("peer", "peer")
    mine, theirs = Hands(ground, holder), Hands(ground, peer)
    fence = ground.lock(holder, "f")["fence"]
    assert theirs.value("request_lock", file="f", reason="soon")["asked"][0]["holder"] == holder["id"]
    assert mine.value("renew_lock", file="f", fence=fence, ttl_seconds=60)["ttl"] == 60
    assert "no longer good" in mine.value("renew_lock", file="f", fence=999)["error"]
    assert mine.value("transfer_lock", file="f", to=peer["id"])["fence"] == fence + 1
    assert mine.value("steal_lock", file="f")["active"]["owner"]["id"] == peer["id"]


def test_the_guard_refuses_what_a_stale_holder_commits(ground: Ground, store: Store):
    os.rmdir(ground.repo / ".git")
    subprocess.run(["git", "init", "-q", ground.repo], check=True)
    for name in ("f", "g"):
        (ground.repo / name).write_text("x")
    subprocess.run(["git", "add", "."], cwd=ground.repo, check=True)
    holder, peer = ground.session("holder", "holder"), ground.session("peer", "peer")
    for name in ("f", "g"):
        store.locks.acquire_all(holder, request(holder, [str(ground.repo / name)], ttl=5))
    ground.sql("UPDATE context SET renewed = renewed - 6")
    store.leases.some()
    assert refusals("pre-commit", str(ground.repo), holder["id"]) == [], "nobody has had it since"
    store.locks.acquire(peer, "f")
    store.locks.release(peer, "f")
    (refusal,) = refusals("pre-commit", str(ground.repo), holder["id"])
    assert (refusal.file, refusal.lock["owner_label"], refusal.lock["lapsed"]) == ("f", "peer", True)
    assert refusals("pre-commit", str(ground.repo), peer["id"]) == []
    done = ground.swarm("guard", "check", "--hook", "pre-commit", "--as", holder["id"])
    assert done.code == 1 and "your lock lapsed" in done.err
    assert f"peer {peer['id'][:8]} has locked it since" in done.err
    store.locks.acquire(holder, "f")
    assert refusals("pre-commit", str(ground.repo), holder["id"]) == [], "it has looked again"
