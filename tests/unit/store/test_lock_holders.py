"""Holders: a session, one of its agents, a person's shell, or only a lease."""

import json
import subprocess

import pytest
from support import sessions
from support.fixtures import Ground

RUNTIMES = ("claude-code", "codex")


def labels(ground: Ground) -> list[str]:
    return [row["label"] for row in ground.sql("SELECT label FROM instances ORDER BY rowid")]


def test_a_detached_lock_needs_no_process_and_goes_with_its_lease(ground: Ground):
    assert "--detach wants --ttl" in ground.swarm("lock", "f", "--detach").err
    answer = ground.swarm("lock", "f", "g", "--detach", "--ttl", "100", "--json").json
    holder = answer["instance_id"]
    assert [lock["ttl"] for lock in answer["locks"]] == [100, 100]
    assert ground.swarm("unlock", "f", "--as", holder).code == 0
    assert ground.swarm("whoami").code == 1, "nobody here is it"
    ground.sql("UPDATE context SET renewed = renewed - 99")
    with ground.store() as store:
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


def test_the_clock_of_the_day_does_not_end_a_detached_lock(ground: Ground):
    ground.swarm("lock", "f", "--detach", "--ttl", "100")
    ground.sql("UPDATE swarm_sessions SET last_seen = last_seen - 3600")
    ground.sql("UPDATE instances SET heartbeat = heartbeat - 3600")
    with ground.store() as store:
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


def test_nothing_is_started_for_a_subagent_that_held_nothing(ground: Ground, monkeypatch):
    mark = ground.folder / "called"
    command = ground.folder / "swarm-mcp"
    command.write_text(f"#!/bin/sh\ntouch {mark}\n")
    command.chmod(0o755)
    ground.session("me", "me")
    monkeypatch.setenv("SWARM_MCP_BIN", str(command))
    hook("claude-code", sessions.subagent_payload("SubagentStop", "me", "a1", ground.repo))
    assert not mark.exists()
