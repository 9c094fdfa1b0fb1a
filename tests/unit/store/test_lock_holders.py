"""Holders of locks and the cost of an uncontended lock: grants, releases by number, and names hidden by identity."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from support import sessions
from support.altered import Call, Listening
from support.files import program_at
from support.fixtures import Ground
from support.query_plans import scans

from swarm_hook_core import paths
from swarm_mcp.errors import LockRefused, Refused
from swarm_mcp.store import Store
from swarm_mcp.store import locks as store_locks
from swarm_mcp.store.lock_request import request
from swarm_mcp.store.reactions import SIGN_SECONDS

RUNTIMES = ("claude-code", "codex")


def labels(ground: Ground) -> list[str]:
    return [row["label"] for row in ground.sql("SELECT label FROM instances ORDER BY rowid")]


def test_a_detached_lock_needs_no_process_and_goes_with_its_lease(ground: Ground, store: Store):
    assert "--detach wants --ttl" in ground.swarm("lock", "f", "--detach").err
    answer = ground.swarm("lock", "f", "g", "--detach", "--ttl", "100", "--json").json
    holder = answer["instance_id"]
    assert [lock["ttl"] for lock in answer["locks"]] == [100, 100]
    assert ground.swarm("unlock", "f", "--as", holder).code == 0
    assert ground.swarm("whoami").code == 1, "nobody here is it"
    ground.sql("UPDATE context SET renewed = renewed - 99")
    assert len(list(store.locks.held(ground.scope))) == 1
    store.leases.some()
    ground.sql("UPDATE context SET renewed = renewed - 2")
    store.leases.some()
    assert labels(ground) == []


def test_a_detached_lock_that_is_refused_leaves_nobody(ground: Ground):
    peer = ground.session("peer", "peer")
    ground.lock(peer, "f")
    assert ground.swarm("lock", "f", "--detach", "--ttl", "100").code == 1
    assert ground.swarm("lock", "g", "--detach", "--ttl", "0.1").code == 1
    assert labels(ground) == ["peer"]


def test_the_clock_of_the_day_does_not_end_a_detached_lock(ground: Ground, store: Store):
    ground.swarm("lock", "f", "--detach", "--ttl", "100")
    ground.sql("UPDATE swarm_sessions SET last_seen = last_seen - 3600")
    ground.sql("UPDATE instances SET heartbeat = heartbeat - 3600")
    assert store.instances.gone() == [] and len(list(store.locks.held(ground.scope))) == 1


def hook(runtime: str, payload: dict) -> subprocess.CompletedProcess:
    return subprocess.run(
        sessions.argv(runtime, "subagent"), input=json.dumps(payload), capture_output=True, text=True,
        timeout=30,
    )  # fmt: skip


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_subagent_is_told_its_id(ground: Ground, runtime: str):
    done = hook(runtime, sessions.subagent_payload("SubagentStart", "me", "a17", ground.repo))
    assert (done.returncode, done.stderr) == (0, "")
    (inner,) = json.loads(done.stdout).values()
    assert inner["hookEventName"] == "SubagentStart" and "agent `a17`" in inner["additionalContext"]
    assert hook(runtime, sessions.subagent_payload("SubagentStart", "me", "", ground.repo)).stdout == ""


def test_nothing_is_started_for_a_subagent_that_held_nothing(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    mark = ground.folder / "called"
    command = program_at(ground.folder / "swarm-mcp", f"#!/bin/sh\ntouch {mark}\n")
    ground.session("me", "me")
    monkeypatch.setenv("SWARM_MCP_BIN", str(command))
    hook("claude-code", sessions.subagent_payload("SubagentStop", "me", "a1", ground.repo))
    assert not mark.exists()


@pytest.fixture
def resolved(listening: Listening) -> list[Call]:
    """The calls for paths that a release has resolved."""
    return listening(store_locks, "reach_of")


@pytest.mark.parametrize("file", ["src/a.py", "src", "src/*.py", "/__swarm/mutex", "missing/b.py"])
def test_a_process_releases_its_own_grant_unresolved(ground: Ground, resolved: list[Call], file: str, store: Store):
    me = ground.session("1")
    lock = store.locks.acquire(me, file)
    assert store.locks.release(me, file, "", lock.fence) == 1
    assert resolved == [] and store.locks.of(me.id) == []
    with pytest.raises(Refused):
        store.locks.release(me, file, "", lock.fence)


def test_a_link_that_leads_elsewhere_since_keeps_no_lock(ground: Ground, resolved: list[Call], store: Store):
    me, link = ground.session("1"), Path(ground.scope, "link")
    for name in ("one", "two"):
        Path(ground.scope, name).mkdir()
    link.symlink_to("one")
    lock = store.locks.acquire(me, "link/f")
    link.unlink()
    link.symlink_to("two")
    assert store.locks.release(me, "link/f", "", lock.fence) == 1 and resolved == []


def test_a_path_that_was_locked_before_is_looked_at_again(ground: Ground, store: Store):
    me, folder = ground.session("1"), Path(ground.scope, "folder")
    file = str(folder / "f")

    def check() -> None:
        lock, key = store.locks.acquire(me, file), paths.key_of(file)
        store.locks.release(me, file, "", lock.fence)
        assert (lock.path_key, lock.base) == (key, key if os.path.isdir(file) else None)

    check()  # missing
    folder.mkdir()
    Path(file).touch()
    check()
    os.unlink(file)
    os.mkdir(file)
    check()
    folder.rename(f"{folder}.real")
    folder.symlink_to("folder.real")
    check()
    os.rmdir(file)
    Path(file).symlink_to(Path(ground.scope, "elsewhere"))
    check()


def test_letter_case_is_asked_of_the_disk_each_time(ground: Ground, monkeypatch: pytest.MonkeyPatch, store: Store):
    me, file = ground.session("1"), Path(ground.scope, "Name")
    file.touch()
    for caseless in (False, True, False):
        monkeypatch.setattr(paths.PlainPath, "look", lambda _path, told=caseless: (False, told))
        lock = store.locks.acquire(me, str(file))
        store.locks.release(me, str(file), "", lock.fence)
        assert (lock.path_key or "").startswith(paths.NO_CASE) is caseless


def test_a_fence_of_another_file_or_holder_releases_nothing(ground: Ground, store: Store):
    me, peer = ground.session("1"), ground.session("2")
    lock, other = store.locks.acquire(me, "f"), store.locks.acquire(me, "g")
    for session, file in ((peer, "f"), (me, "g")):
        with pytest.raises(Refused):
            store.locks.release(session, file, "", lock.fence)
    assert {row.fence for row in store.locks.of(me.id)} == {lock.fence, other.fence}


def test_a_lock_that_another_process_has_renewed_is_found_by_its_path(ground: Ground, resolved: list[Call]):
    me = ground.session("1")
    with Store() as store, Store() as elsewhere:
        lock = store.locks.acquire(me, "f")
        assert elsewhere.locks.acquire(me, "f", "a new id, the same grant").fence == lock.fence
        assert store.locks.release(me, "f", "", lock.fence) == 1 and [call.given[1] for call in resolved] == ["f"]


def test_no_lock_statement_walks_through_all_locks(ground: Ground):
    me, peer = ground.session("1"), ground.session("2")
    other = os.path.join(ground.scope, "other")

    def deeds() -> None:
        with Store() as store:
            fence = store.locks.acquire(me, "f").fence
            store.locks.release(me, "f", "", fence)
            store.locks.acquire(me, "f")
            store.locks.release(me, "f")
            store.locks.acquire(peer, other)
            list(store.locks.held(ground.scope, ""))
            store.locks.on(other)
            store.locks.of(peer.id)
            store.locks.release_all(peer)

    with Store() as store:
        walks = [step for step, _ in scans(store, deeds) if step.startswith(("SCAN c ", "SCAN context"))]
    # An index of rows that are not there, or of their first row alone.
    assert [step for step in walks if "INDEX swarm_lock" not in step] == []


ACQUIRE, RELEASE, EACH_MORE = 6, 5, 3


class Counted:
    """The statements of a store, as SQLite traces them: with BEGIN and COMMIT."""

    def __init__(self, store: Store):
        self.store = store
        self.seen: list[str] = []

    def __enter__(self) -> list[str]:
        self.store.database.connection.set_trace_callback(self.seen.append)
        return self.seen

    def __exit__(self, *_exception) -> None:
        self.store.database.connection.set_trace_callback(None)


@pytest.fixture
def me(ground: Ground) -> dict:
    (ground.repo / "src").mkdir(parents=True, exist_ok=True)
    return ground.session("me")


def elsewhere(ground: Ground) -> None:
    """Others hold much, but nothing that is asked for here."""
    other = ground.session("other")
    with ground.store() as store:
        for number in range(20):
            store.locks.acquire(other, f"src/theirs_{number}.py")
        store.locks.acquire_all(other, request(other, ["docs/**/*.md"]))
        store.locks.acquire_all(other, request(other, ["src/shared.py"], mode="shared", ttl=60.0))


@pytest.mark.parametrize("beside_others", [False, True])
@pytest.mark.parametrize("file", ["src/a.py", "new/folder/b.py", "src/"])
def test_an_acquire_that_meets_nothing_and_its_release(
    ground: Ground, store: Store, me, file: str, beside_others: bool
):
    if beside_others and file != "src/":
        elsewhere(ground)
    for _ in range(2):
        with Counted(store) as acquired:
            lock = store.locks.acquire(me, file, note="why")
        with Counted(store) as released:
            assert store.locks.release(me, file, "", lock.fence) == 1
        assert (len(acquired), len(released)) == (ACQUIRE, RELEASE), [*acquired, *released]


def test_several_at_once_are_asked_about_together(ground: Ground, me: dict):
    names = [f"src/{number}.py" for number in range(5)]
    with ground.store() as store, Counted(store) as seen:
        store.locks.acquire_all(me, request(me, names))
    assert len(seen) == ACQUIRE + EACH_MORE * 4, seen


def test_a_sign_of_life_is_written_down_now_and_then(ground: Ground, me: dict, monkeypatch, store: Store):
    began = store.now()
    monkeypatch.setattr(type(store.database), "now", lambda _self: began + SIGN_SECONDS + 1)
    with Counted(store) as seen:
        store.locks.acquire(me, "src/a.py")
    assert len(seen) == ACQUIRE + 2, seen
    (row,) = ground.sql("SELECT last_seen FROM swarm_sessions")
    assert row["last_seen"] == began + SIGN_SECONDS + 1


def test_a_release_by_fence_leaves_what_another_agent_holds(store: Store, me: dict):
    (one,) = store.locks.acquire_all(me, request(me, ["f"], agent="one", mode="shared"))
    (two,) = store.locks.acquire_all(me, request(me, ["f"], agent="two", mode="shared"))
    assert store.locks.release(me, "f", "", one.fence) == 1
    assert [lock.fence for lock in store.locks.of(me["id"])] == [two.fence]


SECRETS = ("secret-name", "secret-note", "identity:b")


@pytest.fixture
def sides(ground: Ground) -> tuple[Ground, dict, dict]:
    """A session of identity a, and one of identity b that holds a file."""
    mine = ground.session("1", "identity:a me")
    theirs = ground.session("2", "identity:b secret-name")
    ground.lock(theirs, "f", "secret-note")
    return ground, mine, theirs


def test_the_command_refuses_without_saying_who_or_why(sides: tuple[Ground, dict, dict]):
    ground, mine, theirs = sides
    shown = ground.swarm("lock", "f", "--as", mine["id"], "--json")
    assert shown.json["active"] == {"hidden": True, "reason": "cross_identity", "file": f"{ground.scope}/f"}
    text = ground.swarm("lock", "f", "--as", mine["id"])
    assert text.code == 1 and f"{ground.scope}/f" in text.err
    for secret in (*SECRETS, theirs["id"], theirs["id"][:8]):
        assert secret not in shown.out and secret not in text.err


@pytest.mark.parametrize("command", ["locks", "inspect", "status"])
@pytest.mark.parametrize("way", ["--as", "shell", "identity"])
def test_listings_show_the_file_and_nothing_else_of_the_lock(sides, monkeypatch, command: str, way: str):
    ground, mine, _ = sides
    argv = [command, "--as", mine["id"]] if way == "--as" else [command]
    if way == "shell":
        monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "1")
    if way == "identity":
        monkeypatch.setenv("AGENT_IDENTITY", "a")
    found = ground.swarm(*argv, "--json").json
    locks = json.dumps(found if command == "locks" else found["locks"])
    assert f"{ground.scope}/f" in locks
    assert not any(secret in locks for secret in SECRETS), locks
    lines = [
        line
        for line in ground.swarm(*argv).out.splitlines()
        if line.rstrip().endswith("—") or "/f" in line or " f " in line
    ]
    assert lines and not any(secret in line for secret in SECRETS for line in lines), lines


def test_ones_own_identity_and_sessions_without_one_see_everything(sides: tuple[Ground, dict, dict]):
    ground, _, theirs = sides
    kin, plain = ground.session("3", "identity:b kin"), ground.session("4", "plain")
    for viewer in (theirs, kin, plain):
        (lock,) = ground.swarm("locks", "--json", "--as", viewer["id"]).json
        assert (lock["owner_label"], lock["content"]) == ("identity:b secret-name", "secret-note")
    for viewer in (kin, plain):
        with pytest.raises(LockRefused) as refusal:
            ground.lock(viewer, "f")
        assert refusal.value.active["owner"]["label"] == "identity:b secret-name"


def test_hidden_locks_keep_their_pane_to_themselves(ground: Ground):
    mine = ground.session("1", "identity:a me")
    argv = [
        "register",
        "--runtime",
        "codex",
        "--session-id",
        "2",
        "--label",
        "identity:b x",
        "--lease-seconds",
        "60",
        "--pane",
        "p_9",
    ]
    theirs = ground.swarm(*argv, "--json").json
    ground.lock(theirs, "f")
    assert "p_9" not in ground.swarm("locks", "--json", "--as", mine["id"]).out
    assert "p_9" in ground.swarm("locks", "--json", "--as", theirs["id"]).out
