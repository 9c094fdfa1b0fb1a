"""Sessions: one row for each, for any number of registrations from any place, until it is provably gone."""

import json
import os
import time
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import many_processes as crowd
from support.fixtures import Ground, Sleeper

from swarm_hook_core.lookup.sqlite import EVIDENCE
from swarm_hook_core.process import FUTURE_SECONDS, RECLAIM_SECONDS, departed, host_id, start_time
from swarm_mcp.domain import new_id
from swarm_mcp.errors import SwarmError
from swarm_mcp.hooks.session_hooks import scope_summary
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

ME = (os.getpid(), start_time(os.getpid()))


def ids(ground: Ground, scope: str = "") -> list[str]:
    with ground.store(read_only=True) as store:
        return [row["id"] for row in store.instances.in_scope(scope or ground.scope)]


def test_registering_again_renews_the_same_instance(ground: Ground):
    first = ground.session("s", "a", state="idle", client=ME)
    ground.backdate(first, 500)
    sub = ground.repo / "sub"
    again = ground.session("s", "a b", directory=str(sub), state="working", client=ME, lease_seconds=50)
    assert again["id"] == first["id"] and again["registered_at"] == first["registered_at"]
    assert (again["label"], again["directory"], again["scope"]) == ("a b", str(sub), ground.scope)
    assert again["heartbeat"] >= first["heartbeat"]
    assert again["lease_until"] == again["heartbeat"] + 50
    (session,) = ground.sql("SELECT * FROM swarm_sessions")
    assert (session["state"], session["last_seen"], session["lease_seconds"]) == ("working", again["heartbeat"], 50)
    assert ids(ground) == [first["id"]]


def test_the_runtime_and_the_whole_id_tell_sessions_apart(ground: Ground, store: Store):
    same = "0199e2f1-0000-7000-8000-00000000000"
    rows = [
        ground.session(same + "1"), ground.session(same + "2"), ground.session(same + "1", runtime="codex"),
        ground.session(same), ground.session(same + "1 "), ground.session((same + "1").upper()),
    ]  # fmt: skip
    assert len({row["id"] for row in rows}) == 6 == len(ids(ground))
    assert store.instances.of_session("codex", same + "1")["id"] == rows[2]["id"]
    assert {row["id"] for row in store.instances.of_session_id(same + "1")} == {rows[0]["id"], rows[2]["id"]}
    assert store.instances.of_session("codex", same) is None


def test_sixteen_processes_register_one_session(ground: Ground):
    ground.store().close()
    body = """
store = Store()
gate()
for _ in range(5):
    row = store.instances.register(Registration(arguments, runtime="codex", session_id="one", lease_seconds=60))
    report(row["id"])
"""
    members = crowd.run(body, [ground.scope] * 16)
    assert [(member.code, member.err, len(member.reports)) for member in members] == [(0, "", 5)] * 16
    assert {found for member in members for found in member.reports} == set(ids(ground))
    assert len(ids(ground)) == 1
    assert len(ground.sql("SELECT id FROM events WHERE type = 'instance.registered'")) == 1


def test_hooks_take_over_the_instance_that_was_reserved_for_their_session(ground: Ground):
    """A worker's starter may have made its row already, with a lease and a role."""
    waiting = ground.plain(
        "role:reviewer", preassigned_id="reserved", lease_seconds=50, directory="/else", scope="/else"
    )
    row = ground.session("s", "", preassigned_id="reserved", lease_seconds=600, client=ME)
    assert (row["id"], row["label"], row["directory"], row["scope"]) == ("reserved", "role:reviewer", "/else", "/else")
    assert (row["adopted"], row["lease_until"]) == (0, row["heartbeat"] + 600) and row["registered_at"] == waiting[
        "registered_at"
    ]
    assert ground.sql("SELECT session_id FROM swarm_sessions") == [{"session_id": "s"}]


def test_a_session_whose_row_another_program_removed_comes_back_under_its_id(ground: Ground):
    first = ground.session("s")
    ground.sql("DELETE FROM instances")
    assert ids(ground) == []
    assert ground.session("s")["id"] == first["id"]
    assert ids(ground) == [first["id"]]


def test_two_sessions_with_one_reserved_id_are_two(ground: Ground, monkeypatch):
    """A shared daemon gives every session the environment of the terminal that started it."""
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", "reserved")
    argv = ["register", "--runtime", "codex", "--json", "--lease-seconds", "60", "--session-id"]
    found = [ground.swarm(*argv, name) for name in ("1", "2", "1", "2")]
    assert [done.code for done in found] == [0] * 4
    assert found[0].json["id"] == found[2].json["id"] == "reserved"
    assert found[1].json["id"] == found[3].json["id"] != "reserved"


def test_instance_ids_are_random_uuids():
    made = {new_id() for _ in range(200)}
    assert len(made) == 200
    assert {(uuid.UUID(text).version, uuid.UUID(text).variant) for text in made} == {(4, uuid.RFC_4122)}


def test_plain_registrations_are_new_each_time(ground: Ground):
    first, second = ground.plain("same"), ground.plain("same")
    assert first["id"] != second["id"]
    assert (first["adopted"], first["lease_until"]) == (1, None)


def test_a_whole_label_with_a_session_word_is_that_session(ground: Ground):
    first = ground.plain("identity:a session:x")
    ground.backdate(first, 40)
    again = ground.plain("identity:a session:x")
    assert again["id"] == first["id"] and again["heartbeat"] >= first["heartbeat"]
    others = [
        ground.plain("identity:a session:x more"), ground.plain("identity:a session:x", directory="/else"),
        ground.plain("identity:a session:x", scope="/else"),
    ]  # fmt: skip
    assert len({first["id"], *(row["id"] for row in others)}) == 4
    payloads = [
        json.loads(row["payload"]) for row in ground.sql("SELECT payload FROM events WHERE subject = ?", first["id"])
    ]
    assert [payload["adopted"] for payload in payloads] == [False, True]


def test_a_label_never_takes_over_a_session_of_hooks(ground: Ground):
    mine = ground.session("s", "claude-code session:12345678")
    assert ground.plain("claude-code session:12345678")["id"] != mine["id"]


def test_a_reserved_id_is_adopted_wherever_it_is(ground: Ground):
    first = ground.plain("a", preassigned_id="mine")
    assert first["id"] == "mine"
    again = ground.plain("b", preassigned_id="mine", directory="/elsewhere")
    assert (again["id"], again["scope"], again["directory"], again["label"]) == (
        "mine",
        ground.scope,
        ground.scope,
        "b",
    )


def test_adoption_wants_the_same_scope_and_folder(ground: Ground):
    first = ground.plain("a")
    assert ground.plain("b", adopt_id=first["id"])["label"] == "b"
    assert ground.plain("", adopt_id=first["id"])["label"] == "b"
    assert ground.plain("c", adopt_id=first["id"], directory="/else")["id"] != first["id"]
    assert ground.plain("c", adopt_id="fresh")["id"] == "fresh"


def test_a_lease_makes_a_placeholder_and_a_later_plain_registration_a_session(ground: Ground):
    leased = ground.plain("session:x", lease_seconds=600)
    assert (leased["adopted"], leased["lease_until"]) == (0, leased["heartbeat"] + 600)
    adopted = ground.plain("session:x")
    assert (adopted["id"], adopted["adopted"], adopted["lease_until"]) == (leased["id"], 1, None)


def test_registration_events_say_what_was_registered(ground: Ground):
    row = ground.plain("a", lease_seconds=600)
    (event,) = ground.sql("SELECT * FROM events")
    assert (event["type"], event["actor"], event["subject"], event["scope"]) == (
        "instance.registered", row["id"], row["id"], ground.scope,
    )  # fmt: skip
    assert json.loads(event["payload"]) == {
        "label": "a", "adopted": False, "pid": row["pid"], "directory": ground.scope, "root": ground.scope,
        "file_root": ground.scope, "lease_until": row["lease_until"],
    }  # fmt: skip


def furnish(ground: Ground, row: dict) -> None:
    ground.lock(row, "f")
    ground.lock(row, "/elsewhere/g")
    ground.lock(row, "/__swarm/spawn/x")
    for number, status in enumerate(["claimed", "in_progress", "blocked", "approval_required", "done", "open"]):
        ground.add("tasks", id=f"t{number}", scope=row["scope"], type="fix", title="T", requester="x",
                   assignee=row["id"], status=status)  # fmt: skip
    ground.add("messages", scope=row["scope"], sender="x", recipient=row["id"], content="to")
    ground.add("messages", scope=row["scope"], sender=row["id"], recipient="x", content="from")
    for key in (
        f"identity/workspace/herdr/{row['id']}",
        f"identity/herdr/{row['id']}",
        f"progress/{row['id']}",
        "other",
    ):
        ground.add("kv", scope=row["scope"], key=key, value="{}")


def nothing_left(ground: Ground, row: dict) -> None:
    assert ground.sql("SELECT id FROM instances WHERE id = ?", row["id"]) == []
    assert ground.sql("SELECT * FROM swarm_sessions WHERE instance_id = ?", row["id"]) == []
    assert ground.sql("SELECT id FROM context WHERE instance_id = ?", row["id"]) == []
    tasks = {task["id"]: (task["status"], task["assignee"]) for task in ground.sql("SELECT * FROM tasks")}
    assert tasks == {
        "t0": ("open", None), "t1": ("open", None), "t2": ("blocked", None), "t3": ("approval_required", None),
        "t4": ("done", row["id"]), "t5": ("open", row["id"]),
    }  # fmt: skip
    changed = {task["id"]: task["changed_at"] for task in ground.sql("SELECT id, changed_at FROM tasks")}
    now = time.time() * 1000
    assert all(abs(now - changed[name]) < 60_000 for name in ("t0", "t1", "t2", "t3")) and changed["t4"] == 0
    assert [message["content"] for message in ground.sql("SELECT content FROM messages")] == ["from"]
    assert {entry["key"] for entry in ground.sql("SELECT key FROM kv")} == {f"progress/{row['id']}", "other"}


def test_deregistering_frees_everything_at_once(ground: Ground):
    row = ground.session("s", "me")
    furnish(ground, row)
    before = ground.sql("SELECT changed_at FROM kv_scope_updates")
    done = ground.swarm("deregister", "--runtime", "claude-code", "--session-id", "s", "--json")
    assert done.json == {"ok": True, "id": row["id"], "scope": ground.scope}
    nothing_left(ground, row)
    assert ground.sql("SELECT changed_at FROM kv_scope_updates") > before
    (event,) = ground.sql("SELECT * FROM events WHERE type = 'instance.deregistered'")
    assert (event["actor"], event["subject"]) == (row["id"], row["id"])
    assert json.loads(event["payload"]) == {"label": "me", "pid": row["pid"]}
    again = ground.swarm("deregister", "--runtime", "claude-code", "--session-id", "s", "--json")
    assert (again.code, again.json["ok"]) == (0, True)


def test_reclaiming_frees_everything_at_once(ground: Ground):
    with Sleeper() as client:
        row = ground.session("s", "me", client=client.identity)
        furnish(ground, row)
        (last,) = ground.sql(f"SELECT heartbeat FROM instances WHERE id = '{row['id']}'")
    ground.session("another")
    nothing_left(ground, row)
    (event,) = ground.sql("SELECT * FROM events WHERE type = 'instance.stale_reclaimed'")
    assert (event["actor"], event["subject"]) == ("system", row["id"])
    assert json.loads(event["payload"]) == {
        "label": "me", "pid": row["pid"], "last_heartbeat": last["heartbeat"],
        "stale_threshold_secs": 30, "reclaim_threshold_secs": 60,
    }  # fmt: skip


def test_deregistering_by_session_leaves_others_of_the_same_beginning(ground: Ground):
    ground.session("12345678-a")
    left = ground.session("12345678-b")
    assert ground.swarm("deregister", "--runtime", "claude-code", "--session-id", "12345678-a").code == 0
    assert ground.swarm("deregister", "--runtime", "claude-code", "--session-id", "12345678").code == 0
    assert ground.swarm("deregister", "--runtime", "codex", "--session-id", "12345678-b").code == 0
    assert ids(ground) == [left["id"]]


def test_an_abandoned_session_goes_by_its_lease_and_not_before(ground: Ground):
    kept, left = ground.session("1", lease_seconds=3600, client=ME), ground.session("2", lease_seconds=3600, client=ME)
    ground.backdate(kept, 3500)
    ground.backdate(left, 3700)
    assert ids(ground) == [kept["id"]]
    assert ground.session("2", lease_seconds=3600, client=ME)["id"] == left["id"]  # it speaks again: never lost
    assert set(ids(ground)) == {kept["id"], left["id"]}


def test_a_returning_session_keeps_its_locks_through_its_own_lapse(ground: Ground):
    row = ground.session("s", lease_seconds=100)
    ground.lock(row, "f")
    ground.backdate(row, 200)
    ground.session("s", lease_seconds=100)
    assert [lock["file"] for lock in ground.swarm("locks", "--json").json] == [f"{ground.scope}/f"]


@pytest.mark.parametrize(("state", "stays"), [("idle", False), ("working", True)])
def test_an_idle_session_goes_with_its_terminal_though_its_client_lives(ground: Ground, state: str, stays: bool):
    """A shared daemon outlives its terminals; it still ends the turn it is in."""
    row = ground.session("s", client=ME, state=state)
    with Sleeper() as terminal:
        ground.sql("UPDATE swarm_sessions SET terminal_pid = ?, terminal_start = ?", *terminal.identity)
        assert ids(ground) == [row["id"]]
    assert ids(ground) == ([row["id"]] if stays else [])


@pytest.mark.parametrize(
    ("columns", "alive"),
    [
        ({"heartbeat": -59}, True), ({"heartbeat": -62}, False),
        ({"heartbeat": 20}, True), ({"heartbeat": 40}, False),
        ({"heartbeat": 40, "lease_until": 100}, True),
        ({"adopted": 0, "heartbeat": -4000, "lease_until": 5}, True),
        ({"adopted": 0, "heartbeat": 0, "lease_until": -5}, False),
        ({"adopted": 0, "heartbeat": -99999, "lease_until": None}, True),
        ({"heartbeat": -62, "pid": os.getpid()}, False),
        ({"heartbeat": 0, "pid": 2**22 + 1}, True),
    ],
)  # fmt: skip
def test_sessions_of_other_implementations_go_by_the_contracts_rules(ground: Ground, columns: dict, alive: bool):
    ground.store().close()
    now = int(time.time())
    row = {name: now + value if name in ("heartbeat", "lease_until") and value is not None else value
           for name, value in columns.items()}  # fmt: skip
    ground.stranger("them", **row)
    assert ids(ground) == (["them"] if alive else [])
    ground.session("somebody")
    assert (ground.sql("SELECT id FROM instances WHERE id = 'them'") != []) == alive


@given(
    st.tuples(
        st.sampled_from(["", "another/boot/1", host_id()]), st.sampled_from([0, ME[0], 2**22 + 1]),
        st.sampled_from(["", ME[1], "1"]), st.one_of(st.none(), st.integers(0, 10**6)), st.integers(0, 10**6),
        st.sampled_from([0, 1]), st.integers(0, 10**6), st.one_of(st.none(), st.integers(0, 10**6)),
    ),
    st.integers(0, 10**6),
)  # fmt: skip
def test_nobody_has_gone_without_proof_or_lapse(evidence: tuple, now: int):
    host, pid, started, last_seen, lease, adopted, heartbeat, lease_until = evidence
    given = ("host", "client_pid", "client_start", "last_seen", "lease_seconds", "adopted", "heartbeat", "lease_until")
    told = dict(zip(given, evidence))
    row = {name: told.get(name) for name in (part.strip().split(".")[1] for part in EVIDENCE.split(","))}
    gone = departed(row, now, host_id())
    if last_seen is not None:
        proven = host == host_id() and pid and started and (pid, started) != ME
        lapsed = bool(lease) and last_seen + lease < now
        assert gone == bool(proven or lapsed)
    elif adopted:
        assert gone == (heartbeat < now - RECLAIM_SECONDS or (lease_until is None and heartbeat > now + FUTURE_SECONDS))
    else:
        assert gone == (lease_until is not None and lease_until < now)


def test_an_identity_stays_inside_its_fence(ground: Ground, monkeypatch):
    inside, outside = ground.repo / "in", ground.repo / "inside-not"
    monkeypatch.setenv("SWARM_MCP_MY_WORK_ROOTS", os.pathsep.join([str(inside), "~/projects"]))
    label = "identity:my-work"
    ground.plain(label, directory=str(inside / "deep"))
    ground.session("1", label, directory=str(inside))
    ground.plain(label, directory=os.path.expanduser("~/projects/x"))
    for attempt in (
        {"directory": str(outside)}, {"directory": str(inside / ".." / "other")}, {"directory": "/"},
        {"directory": str(inside), "file_root": str(outside)},
    ):  # fmt: skip
        with pytest.raises(SwarmError):
            ground.plain(label, **attempt)
        with pytest.raises(SwarmError):
            ground.session("2", label, **attempt)
    ground.plain("identity:other", directory=str(outside))
    ground.plain("", directory=str(outside))
    assert len(ground.sql("SELECT id FROM instances")) == 5
    done = ground.swarm("register", str(outside), "--label", label, "--json")
    assert (done.code, done.out) == (1, "") and done.err.count("\n") == 1


def test_the_summary_counts_and_names_a_few(ground: Ground):
    me = ground.session("me", "identity:a me")
    peers = [ground.session(f"p{number}", f"identity:a peer{number}") for number in range(6)]
    for number, peer in enumerate(peers):
        ground.lock(peer, f"f{number}", "because\nof this" if number == 0 else "")
    ground.lock(me, "mine")
    ground.session("far", "identity:a far", scope="/far")
    with ground.store(read_only=True) as store:
        summary = scope_summary(store.database, me)
    assert (summary["peer_count"], summary["lock_count"]) == (6, 6)
    assert summary["peers"] == [f"peer{number} {peers[number]['id'][:8]}" for number in range(4)]
    assert len(summary["locks"]) == 4 and "because of this" in summary["locks"][0]
    assert f"{ground.scope}/f0" in summary["locks"][0] and " by peer0 " in summary["locks"][0]


def test_the_summary_hides_who_and_why_of_other_identities_but_not_whether(ground: Ground):
    me = ground.session("me", "identity:a me")
    them = ground.session("them", "identity:b secret-name")
    ground.lock(them, "f", "secret-note")
    with ground.store(read_only=True) as store:
        summary = scope_summary(store.database, me)
    assert (summary["peer_count"], summary["peers"], summary["lock_count"]) == (0, [], 1)
    assert "secret" not in json.dumps(summary) and f"{ground.scope}/f" in summary["locks"][0]


def test_register_hands_the_summary_to_hooks(ground: Ground):
    peer = ground.session("p", "peer")
    start = ["register", "--runtime", "codex", "--session-id", "s", "--label", "me", "--lease-seconds", "60", "--json"]
    assert ground.swarm(*start, "--source", "startup").json["summary"]["peers"] == [f"peer {peer['id'][:8]}"]
    assert "summary" not in ground.swarm(*start, "--state", "working").json, "a turn has nobody to tell"
    assert "summary" not in ground.swarm("register", "--json").json
