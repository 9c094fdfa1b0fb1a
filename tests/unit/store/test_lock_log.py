"""The history of a path's locks: all of it, under every name, with enough in a denial to understand the decision."""

import os
import time
from pathlib import Path

import pytest
from support.altered import Limits
from support.fixtures import Ground, Sleeper, take, wait_for
from support.sessions import RUNTIMES, join, mistakes, new_session, ready_store, start, write_payload
from support.sessions import run as run_hook
from support.toolbox import Hands

from swarm_hook_core import clock, denial
from swarm_mcp.errors import Deadlock, LockRefused
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request
from swarm_mcp.store.refusals import Attempt


def log(ground: Ground, *words: str, cwd: Path | None = None) -> list[dict]:
    done = ground.swarm("log", *words, "--json", cwd=cwd)
    assert done.code == 0, done
    return done.json["events"]


def kinds(events: list[dict]) -> list[str]:
    return [event["what"] for event in events]


@pytest.fixture
def pair(ground: Ground) -> tuple[dict, dict]:
    return ground.session("1", "identity:p one"), ground.session("2", "identity:p two")


def test_everything_that_can_happen_is_told_in_order(ground: Ground, pair: tuple[dict, dict], store: Store):
    one, two = pair
    file = ground.repo / "f"
    take(store, one, "f", note="first")
    take(store, one, "f")
    take(store, one, "f", mode="shared")
    with pytest.raises(LockRefused):
        take(store, two, "f")
    store.breaches.report(two, "Bash", "make", [{"file": str(file), "holder_id": one["id"], "kind": "changed",
                                                    "kept": "", "at": time.time()}])  # fmt: skip
    store.breaches.restored(two, str(file), "", "kept", ground.scope)
    store.locks.release(one, "f")
    take(store, one, "f", ttl=1.0)
    ground.sql("UPDATE context SET renewed = ?", clock.now() - 2)
    store.leases.some()
    take(store, one, "f")
    store.transfers.transfer(one, "f", two["id"])
    store.transfers.request(one, "f", "urgent")
    store.transfers.steal(one, "f", "it hangs", force=True)
    take(store, two, "g")
    store.queue.join(two, request(two, ["f"]), 60)
    with pytest.raises(Deadlock):
        store.queue.join(one, request(one, ["g"]), 60)
    events = log(ground, "f", "--limit", "100")
    assert [kind for kind in kinds(events) if kind != "denied"] == [
        "acquired", "renewed", "now shared", "altered", "restored", "released", "acquired", "lapsed", "acquired",
        "transferred", "acquired", "requested", "stolen", "stolen", "acquired",
    ]  # fmt: skip
    assert kinds(events).count("denied") == 1, "a request for a lock is no refusal"
    assert [event["id"] for event in events] == sorted(event["id"] for event in events)
    assert {event["rule"] for event in events} == {"file"} and {event["file"] for event in events} == {str(file)}
    assert events[0]["details"]["content"] == "first" and events[0]["label"] == "identity:p one"
    assert all(event["details"]["fence"] for event in events if event["what"] in ("acquired", "released", "lapsed"))
    (deadlock,) = [event for event in log(ground, "g") if event["what"] == "deadlock"]
    assert {one["label"] for one in deadlock["details"]["circle"]} == {"identity:p one", "identity:p two"}
    text = ground.swarm("log", "f", "--limit", "100").out
    assert len(text.splitlines()) == len(events)
    name = f"two {two['id'][:8]}"
    told = ("fence 1: first", "now shared", f"to {name}, by lock_file: held by", " changed what")
    assert [words for words in told if words not in text] == []


@pytest.mark.parametrize("first", ["request_lock", "lock_file"])
def test_a_refused_write_is_not_hidden_behind_a_request_for_the_lock(ground: Ground, pair, first: str, store: Store):
    one, two = pair
    file = str(ground.repo / "f")
    take(store, one, "f")
    if first == "request_lock":
        store.transfers.request(two, "f", "soon")
    else:
        with pytest.raises(LockRefused):
            take(store, two, "f")
    noted = ground.sql("SELECT file FROM swarm_denials WHERE instance_id = ?", two["id"])
    for _ in range(3):
        store.denials.report(two, file, one["id"], Attempt("Write"))
    with pytest.raises(LockRefused):
        take(store, two, "f")
    assert noted == [{"file": file}], "it hears when the file is free"
    denied = [event for event in log(ground, "f") if event["what"] == "denied"]
    requests = [] if first == "request_lock" else ["lock_file"]
    assert [event["details"]["tool"] for event in denied] == [*requests, "Write"]
    assert [event.get("repeated") for event in denied] == [None] * len(requests) + [3], "counted with what was refused"
    assert kinds(log(ground, "f")).count("requested") == (first == "request_lock")


def test_by_whatever_name_and_through_folders_and_patterns(ground: Ground, pair: tuple[dict, dict], store: Store):
    one, _ = pair
    (ground.repo / "src").mkdir()
    os.symlink(ground.repo / "src", ground.repo / "link")
    for file in ("src/f", "src", "src/**/f", "src/fg", "other", "src/*.py", "doc/**"):
        take(store, one, file)
        store.locks.release(one, file)
    take(store, one, "link/f")
    for word in ("src/f", "link/f", "src/../link/f", str(ground.repo / "link" / "f")):
        events = log(ground, word)
        assert [(event["what"], event["rule"]) for event in events] == [
            ("acquired", "file"), ("released", "file"), ("acquired", "folder"), ("released", "folder"),
            ("acquired", "pattern"), ("released", "pattern"), ("acquired", "file"),
        ], word  # fmt: skip
    assert [event["rule"] for event in log(ground, "src/**/f")] == ["pattern", "pattern"]
    assert kinds(log(ground, "src/f", "--limit", "2")) == ["released", "acquired"], "the newest, oldest first"
    assert ground.swarm("log", "nothing").out == "(nothing is known of nothing)\n"


def test_a_denial_is_in_the_history_of_what_was_denied_and_of_the_lock(ground: Ground, pair: tuple[dict, dict]):
    one, two = pair
    with ground.store() as store:
        take(store, one, "src")
        with pytest.raises(LockRefused):
            take(store, two, "src/f")
    assert kinds(log(ground, "src/f")) == kinds(log(ground, "src")) == ["acquired", "denied"]
    assert kinds(log(ground, "src/g")) == ["acquired"], "which nobody was denied"
    with ground.store() as store, pytest.raises(LockRefused):
        take(store, two, ".")
    assert log(ground, ".")[-1]["rule"] == "inside"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_hooks_denial_can_be_reconstructed(runtime: str, tmp_path: Path):
    ready_store()
    me, file = new_session(), tmp_path / "src" / "a.sql"
    assert start(runtime, me, tmp_path).context
    with Store() as store:
        peer = join(store, tmp_path, "peer-label")
        take(store, peer, "src/*.sql", mode="shared", agent="agent-9", note="busy")
        mine = store.instances.of_session(runtime, me)
    payload = write_payload(runtime, me, tmp_path, str(file))
    payload["agent_id"] = "agent-7"
    assert run_hook(runtime, "pre_tool_use", payload).reason
    ground = Ground.__new__(Ground)
    ground.repo = tmp_path
    (denied,) = wait_for(lambda: [one for one in log(ground, str(file), "--as", mine["id"]) if one["what"] == "denied"])
    details, lock = denied["details"], peer
    assert denied["instance_id"] == mine["id"] and denied["rule"] == "pattern" and abs(denied["at"] - time.time()) < 30
    assert details["path"] == str(file) and details["cwd"] == str(tmp_path)
    assert details["tool"] == {"claude-code": "Write", "codex": "apply_patch"}[runtime]
    assert (details["holder"], details["holder_label"], details["note"]) == (lock["id"], "peer-label", "busy")
    assert (details["mode"], details["agent"], details["pattern"]) == ("shared", "agent-9", "src/*.sql")
    assert details["fence"] == 1 and details["lock"] and details["denied_agent"] == "agent-7"
    assert details["session"] == [runtime, me] and "repeated" not in denied
    for again in range(2):
        assert run_hook(runtime, "pre_tool_use", {**payload, "tool_use_id": f"again-{again}"}).reason
    with Store() as store:  # the store hears of the third, too
        wait_for(lambda: store.database.rows("SELECT 1 FROM swarm_denials WHERE times = 3"))
    events = [one for one in log(ground, str(file), "--as", mine["id"]) if one["what"] == "denied"]
    assert [one["repeated"] for one in events] == [2], "no more events, but counted"
    assert mistakes() == []


def test_repeated_requests_are_counted(ground: Ground, pair: tuple[dict, dict]):
    one, two = pair
    ground.lock(one, "f")
    for _ in range(4):
        with pytest.raises(LockRefused):
            ground.lock(two, "f")
    (denied,) = [event for event in log(ground, "f") if event["what"] == "denied"]
    assert denied["repeated"] == 3 and len(denial.all_counts()) == 3
    assert "and 3 more within the minute" in ground.swarm("log", "f").out


def test_an_event_of_the_next_second_counts_no_call_twice_and_misses_none() -> None:
    for call, is_event in (("1", True), ("1", False), ("2", False), ("2", False), ("", False)):
        denial.add_count("i", "h", "k", call=call, event=is_event)
    known = denial.all_counts()
    for late in (0, 1, 5):
        at = known[0]["at"] + late
        assert denial.counted(known, "i", "h", "k", at, at + 61) == 2, f"call 2 and one without an id, {late}"


def test_the_count_is_bounded_and_survives_rubbish(ground: Ground, monkeypatch: pytest.MonkeyPatch, limits: Limits):
    limits(denial, MOST_BYTES=2000)
    for _ in range(60):
        denial.add_count("i", "h", "k")
    size = sum(
        os.path.getsize(path) for path in (denial.counts_path(), denial.counts_path() + ".1") if os.path.exists(path)
    )
    assert 0 < size < 5000 and denial.counted(denial.all_counts(), "i", "h", "k", 0, time.time() + 9) > 0
    Path(denial.counts_path()).write_text('{"at": 1\nnot json\n[]\n')
    assert all(one["instance"] == "i" for one in denial.all_counts())
    monkeypatch.setenv("SWARM_STATE_DIR", "/dev/null/nowhere")
    denial.add_count("i", "h", "k")


def test_one_agents_denial_by_another_is_an_event_and_no_wait(ground: Ground, pair: tuple[dict, dict], store: Store):
    one, _ = pair
    take(store, one, "f", agent="a-1")
    for _ in range(2):
        with pytest.raises(LockRefused):
            take(store, one, "f", agent="a-2")
    words = ("--runtime", "claude-code", "--session-id", "1", "--holder", one["id"], "--tool", "Write")
    assert ground.swarm("denied", f"{ground.scope}/f", *words, "--agent", "a-3").code == 0
    (denied,) = [event for event in log(ground, "f") if event["what"] == "denied"]
    assert (denied["details"]["denied_agent"], denied["details"]["agent"]) == ("a-2", "a-1")
    assert ground.sql("SELECT * FROM swarm_denials") == []


def test_strangers_have_no_names_and_say_nothing(ground: Ground):
    me = ground.session("1", "identity:p me")
    with Sleeper() as client:
        stranger = ground.session("2", "identity:q secret-label", client=client.identity)
        with ground.store() as store:
            take(store, stranger, "f", note="secret-note")
            with pytest.raises(LockRefused):
                take(store, me, "f")
            store.locks.release(stranger, "f")
            take(store, me, "f", note="mine")
            with pytest.raises(LockRefused):
                take(store, stranger, "f")
    with ground.store() as store:
        store.cleanup.clean()
    for words in ((), ("--json",)):
        out = ground.swarm("log", "f", "--as", me["id"], *words).out
        assert "secret" not in out and stranger["id"] not in out and "mine" in out, out
    events = log(ground, "f", "--as", me["id"])
    assert kinds(events) == ["acquired", "denied", "released", "acquired", "denied"]
    assert [event.get("hidden", False) for event in events] == [True, False, True, False, True]


def test_the_tool_answers_as_the_command_does(ground: Ground, pair: tuple[dict, dict]):
    one, two = pair
    ground.lock(one, "f")
    told = Hands(ground, two).value("lock_history", file="f")
    assert told == {"file": f"{ground.scope}/f", "events": log(ground, "f", "--as", two["id"])} and told["events"]
    assert len(Hands(ground, two).value("lock_history", file="f", limit=1)["events"]) == 1


def test_an_event_of_another_program_is_found_by_its_path(ground: Ground):
    row = ground.stranger("other") if ground.session("1", "one") else ""
    for file in ("f", "g"):
        ground.add("events", scope=ground.scope, type="context.lock_acquired", actor=row,
                   subject=f"{ground.scope}/{file}", payload='{"id": "x", "content": "theirs"}')  # fmt: skip
    ground.add("events", scope=ground.scope, type="context.odd", actor=None, subject=None, payload="nonsense")
    (event,) = log(ground, "f")
    assert (event["what"], event["label"], event["details"]["content"]) == ("acquired", "stranger", "theirs")


def test_bad_input_is_one_line(ground: Ground):
    for words in (
        ("--limit", "0"),
        ("f", "--limit", "0"),
        ("f", "--limit", "many"),
        ("f", "--as", "nobody"),
        ("a", "b"),
    ):
        done = ground.swarm("log", *words)
        code = 2 - ("nobody" in words)
        assert done.code == code and done.err.count("\n") == 1 and not done.out, words
