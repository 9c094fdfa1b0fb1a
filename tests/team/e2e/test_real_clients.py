"""Claude Code on one machine and Codex on another: private homes and stores, a clone of one repository in each.

The models are played; hooks, MCP servers, team agents and the PostgreSQL server are the real ones.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from e2e.client import Client
from e2e.clients import ClaudeCode, Codex
from e2e.ground import Ground, Lacking, wait_for
from e2e.marketplace import Marketplace

from swarm_mcp.team.protocol import SESSION_LEASE
from team.history.engine import Engine
from team.history.faults import SwallowingProxy

CHANGE = ("notes.md", "line one", "line two")


class Pair(NamedTuple):
    """Claude Code on its machine, Codex on another, and the link that the second one has to the server."""

    claude: Client
    codex: Client
    link: SwallowingProxy


def text_of(client: Client) -> str:
    return (client.ground.checkout / CHANGE[0]).read_text()


@pytest.fixture
def pair(engine: Engine, team: str, repository: str) -> Iterator[Pair]:
    made: list[Client] = []
    with contextlib.ExitStack() as stack:
        link = stack.enter_context(SwallowingProxy("127.0.0.1", engine.port))
        places = (("north", ClaudeCode, team), ("south", Codex, team.replace(str(engine.port), str(link.port))))
        for machine, kind, server in places:
            try:
                ground = Ground(f"team_{machine}")
            except Lacking as lacking:
                pytest.skip(str(lacking))
            stack.callback(ground.close)
            # The environment of its commands is also that of its sessions' servers and hooks.
            ground.env["SWARM_TEAM_MACHINE"] = machine
            client = kind(ground)
            client.prepare()
            Marketplace(ground, "install").install(client.name)
            ground.coordinator.text("team", "join", server, "--repository", repository)
            stack.callback(ground.coordinator.text, "team", "leave", allowed=(0, 1))
            made.append(client)
        yield Pair(made[0], made[1], link)


@pytest.mark.promise("a lock holds on every machine of a team")
def test_a_lock_in_claude_code_denies_codex_elsewhere_which_waits_is_woken_and_writes(pair: Pair) -> None:
    claude, codex, _ = pair
    lock = claude.swarm_tools(("lock_file", {"file": CHANGE[0], "reason": "renumbering"}))
    unlock = claude.swarm_tools(("unlock_file", {"file": CHANGE[0]}))[-1]
    wait = codex.swarm_tools(("lock_file", {"file": CHANGE[0], "wait_seconds": 120}))
    steps = [codex.replace(*CHANGE), *wait, codex.replace(*CHANGE)]
    with claude.held("holds", *lock, unlock, at=len(lock)) as holder:
        with codex.held("wants", *steps, at=1) as wanting:
            denied = codex.last_result("wants")
            assert "swarm lock blocked" in denied and "renumbering" in denied and " on north-" in denied, denied
            assert text_of(codex) == "line one\n"
            wanting.gate.open()
            assert wait_for(lambda: claude.ground.coordinator.json("why", CHANGE[0])["waiting"], 60), "no place in line"
            holder.go_on()
            wanting.process.wait(120)
    assert text_of(codex) == "line two\n", codex.results("wants")
    assert text_of(claude) == "line one\n", "it is another clone"


def test_a_wait_goes_on_after_the_link_was_cut(pair: Pair) -> None:
    claude, codex, link = pair
    lock = claude.swarm_tools(("lock_file", {"file": CHANGE[0], "reason": "renumbering"}))
    unlock = claude.swarm_tools(("unlock_file", {"file": CHANGE[0]}))[-1]
    wait = codex.swarm_tools(("lock_file", {"file": CHANGE[0], "wait_seconds": 240}))
    with claude.held("holds", *lock, unlock, at=len(lock)) as holder:
        with codex.held("wants", *wait, codex.replace(*CHANGE)) as wanting:
            wanting.gate.open()
            assert wait_for(lambda: claude.ground.coordinator.json("why", CHANGE[0])["waiting"], 60), "no place in line"
            link.cut()
            coordinator = codex.ground.coordinator
            assert wait_for(lambda: not _repository(codex)["fresh"], 60), "it still counts as fresh"
            holder.go_on()
            assert wait_for(lambda: not claude.ground.coordinator.locks(), 60)
            assert text_of(codex) == "line one\n" and coordinator.json("why", CHANGE[0])["held"], "what it knew last"
            link.heal()
            wanting.process.wait(240)
    assert text_of(codex) == "line two\n", codex.results("wants")


def test_a_machine_that_slept_past_its_lease_no_longer_believes_its_locks(pair: Pair) -> None:
    """Everything on the first machine is stopped, as on a laptop with a closed lid."""
    claude, codex, _ = pair
    lock = claude.swarm_tools(("lock_file", {"file": CHANGE[0], "reason": "renumbering"}))
    wait = codex.swarm_tools(("lock_file", {"file": CHANGE[0], "wait_seconds": 240}))
    with claude.held("holds", *lock, claude.read(CHANGE[0]), claude.replace(*CHANGE), at=len(lock) + 1) as holder:
        sleeping = claude.ground.own_processes()
        for pid in sleeping:
            os.kill(pid, signal.SIGSTOP)
        try:
            begun = time.monotonic()
            with codex.held("wants", *wait, codex.replace(*CHANGE)) as wanting:
                written = codex.hold("wants", len(wait) + 1)
                wanting.gate.open()
                assert written.wait_reached(240), "it was never woken"
                assert time.monotonic() - begun > SESSION_LEASE / 2, "it was taken from a machine that may be there"
                assert text_of(codex) == "line two\n", codex.results("wants")
                for pid in sleeping:
                    os.kill(pid, signal.SIGCONT)
                assert wait_for(lambda: _repository(claude)["fresh"], 60), "it has not come back"
                holder.go_on()
                written.open()
                wanting.process.wait(120)
        finally:
            for pid in sleeping:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
    assert text_of(claude) == "line one\n"
    assert "swarm lock blocked" in claude.last_result("holds") and " on south-" in claude.last_result("holds")


def _repository(client: Client) -> dict:
    (one,) = client.ground.coordinator.json("team", "status", allowed=(0, 1))["repositories"]
    assert isinstance(one, dict)
    return one
