"""Holders: a session, one of its agents, a person's shell, or only a lease."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess

import pytest
from support import sessions
from support.fixtures import SWARM, Ground, wait_for

from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

RUNTIMES = ("claude-code", "codex")


def labels(ground: Ground) -> list[str]:
    return [row["label"] for row in ground.sql("SELECT label FROM instances ORDER BY rowid")]


def test_a_persons_lock_ends_with_the_shell(ground: Ground):
    """In a terminal of its own, outside of any session, the shell holds, and its locks end with it."""
    out = ground.folder / "out"
    line = shlex.join(SWARM)
    script = ground.folder / "typed.sh"
    script.write_text(f"""cd {ground.repo}
{line} lock f --note mine > {out} 2>&1
{line} unlock nothing >> {out} 2>&1
{line} lock g >> {out} 2>&1
{line} unlock g >> {out} 2>&1
read wait
""")
    terminal, inner = pty.openpty()
    shell = subprocess.Popen(["sh", script], stdin=inner, stdout=inner, stderr=inner, start_new_session=True)
    os.close(inner)
    try:
        wait_for(lambda: out.exists() and out.read_text().count("\n") >= 4, 20)
        assert out.read_text() == (
            f"locked {ground.repo}/f; there is no such file yet\nunlock failed: {ground.repo}/nothing was not locked\n"
            f"locked {ground.repo}/g; there is no such file yet\nunlocked {ground.repo}/g\n"
        )
        peer = ground.session("peer", "peer")
        with ground.store() as store:
            (lock,) = store.locks.held(ground.scope)
            assert (lock["file"], lock["content"]) == (f"{ground.repo}/f", "mine")
            assert "origin:terminal" in lock["owner_label"]
            os.write(terminal, b"\n")
            assert shell.wait(timeout=60) == 0
            assert store.locks.acquire(peer, f"{ground.repo}/f")["fence"] > lock["fence"]
    finally:
        shell.kill()
        shell.wait()
        os.close(terminal)


def test_where_nobody_can_be_there_no_shell_holds(ground: Ground):
    done = ground.process("lock", "f", stdin=subprocess.DEVNULL)
    assert done.code == 1 and "no session is registered" in done.err


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


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_a_subagent_holds_goes_with_it(ground: Ground, store: Store, runtime: str):
    me = ground.session("me", "me", runtime=runtime)
    store.locks.acquire(me, "kept")
    for file, agent in (("one", "a1"), ("two", "a2")):
        store.locks.acquire_all(me, request(me, [file], agent=agent))
    done = hook(runtime, sessions.subagent_payload("SubagentStop", "me", "a1", ground.repo))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    wait_for(lambda: len(list(store.locks.held(ground.scope))) == 2)
    assert sorted(os.path.basename(lock["file"]) for lock in store.locks.held(ground.scope)) == ["kept", "two"]
    assert ground.sql("SELECT payload FROM events WHERE type = 'context.lock_released'")[0]["payload"].count("a1")


def test_nothing_is_started_for_a_subagent_that_held_nothing(ground: Ground, monkeypatch):
    mark = ground.folder / "called"
    command = ground.folder / "swarm-mcp"
    command.write_text(f"#!/bin/sh\ntouch {mark}\n")
    command.chmod(0o755)
    ground.session("me", "me")
    monkeypatch.setenv("SWARM_MCP_BIN", str(command))
    hook("claude-code", sessions.subagent_payload("SubagentStop", "me", "a1", ground.repo))
    assert not mark.exists()
