"""The check asked of the session's MCP server (`--transport mcp_tool`): the same answers, dead or alive."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from . import test_denial, test_lock_reach, test_unseen_writes
from .checks import assert_denied, assert_text
from .client import Client
from .clients import Codex
from .coordinator import PERSON
from .ground import Ground, wait_for

pytestmark = pytest.mark.ways("mcp_tool")
CHANGE = ("notes.md", "line one", "line two")
SCRATCH = {"claude-code": "swarm-cc", "codex": "swarm-codex"}
HOOK_LIMIT = 5  # seconds that a client waits for a hook's answer

# Every scenario of the command's denials, asked of the server: these each time, the others where there is time.
SAMPLE = (
    "a_locked_file_stays_as_it_is",
    "own_lock_does_not_block",
    "sub_agents_are_denied",
    "both_ends_of_a_move",
    "notebooks",
)


def _asked_of_the_server(name: str, test):
    scenario = types.FunctionType(test.__code__, test.__globals__, name, test.__defaults__, test.__closure__)
    scenario.pytestmark = list(getattr(test, "pytestmark", ()))
    return scenario if name.removeprefix("test_") in SAMPLE else pytest.mark.thorough(scenario)


for _name, _test in vars(test_denial).items():
    if _name.startswith("test_"):
        globals()[_name] = _asked_of_the_server(_name, _test)


@pytest.mark.only("claude-code")  # Codex does not tell such a hook the calling agent
def test_sub_agents_of_one_session_exclude_each_other(client: Client) -> None:
    test_lock_reach.test_sub_agents_of_one_session_exclude_each_other(client)


@pytest.mark.only("claude-code")
def test_what_the_session_has_read_itself_is_known(client: Client) -> None:
    test_unseen_writes.test_claude_code(client, test_unseen_writes.FAMILIES[-1])


def servers(client: Client) -> set[int]:
    """The MCP servers of ours that run in this client's home."""
    found = set()
    for pid in client.ground.own_processes():
        told = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True).stdout
        if "swarm_mcp" in told and "serve" in told.split("main()")[-1].split():
            found.add(pid)
    return found


def answering(client: Client) -> set[int]:
    """Return the servers that answer their session's hooks."""
    state = client.ground.home / ".local/state/swarm-mcp" / SCRATCH[client.name]
    return {int(path.read_text().split()[0]) for path in state.glob("*/server")} & servers(client)


@pytest.mark.promise("the server's answer is the command's")
def test_it_is_the_server_that_answers(client: Client) -> None:
    faults = client.ground.home / ".local/state/swarm-mcp/faults.jsonl"
    faults.unlink(missing_ok=True)  # others break the store of this home, too
    client.ground.coordinator.peer_lock("notes.md")
    with client.held("work", client.replace(*CHANGE), client.create("free.md", "free\n"), at=1) as live:
        assert wait_for(lambda: answering(client), 60)
        live.go_on()
    assert "swarm lock blocked" in client.results("work")[0]
    assert_text(client, "free.md", "free\n")
    assert not faults.exists(), faults.read_text()


def test_a_server_killed_in_the_middle_takes_no_lock_with_it(client: Client) -> None:
    """Claude Code starts another for the next hook; Codex does not, and the command stands in."""
    client.ground.coordinator.peer_lock("notes.md")
    free = client.create("free.md", "free\n")
    with client.held("work", client.replace(*CHANGE), free, client.replace(*CHANGE), at=1) as live:
        (dead,) = wait_for(lambda: answering(client), 60)
        os.kill(dead, signal.SIGKILL)
        live.go_on()
    assert_text(client, "free.md", "free\n")
    first, _, last = client.results("work")
    assert "swarm lock blocked" in first and "swarm lock blocked" in last
    assert_denied(client, "work", "notes.md")


def test_a_session_that_nobody_knows_is_checked_and_known_again(client: Client) -> None:
    coordinator = client.ground.coordinator
    coordinator.peer_lock("notes.md")
    with client.held("work", client.replace(*CHANGE)) as live:
        (own,) = coordinator.sessions()
        coordinator.json("deregister", "--as", own["id"], "--force")
        assert coordinator.sessions() == []
        live.go_on()
    assert_denied(client, "work", "notes.md")


@pytest.mark.only("codex")
def test_in_codex_s_shared_server(client: Codex) -> None:
    """One MCP server for each conversation there."""
    client.model = client.code_model
    client.ground.coordinator.peer_lock("notes.md")
    with client.interactive(command=["codex"]) as one, client.interactive(command=["codex"]) as two:
        client.turn(one, "first", client.replace(*CHANGE), client.create("one.md", "one\n"))
        client.turn(two, "second", client.replace(*CHANGE), client.create("two.md", "two\n"))
        assert len(answering(client)) == 2
    for script in ("first", "second"):
        assert "swarm lock blocked" in client.results(script)[0]
    assert_text(client, "notes.md", "line one\n")
    assert_text(client, "one.md", "one\n")
    assert_text(client, "two.md", "two\n")


# -- a server that is late or never comes --


@contextmanager
def servers_that(ground: Ground, first: str) -> Iterator[None]:
    """`swarm-mcp serve` does `first` before anything else."""
    command = ground.bin / "swarm-mcp"
    real = command.readlink()
    command.unlink()
    command.write_text(f'#!/bin/sh\n[ "$1" = serve ] && {{ {first}; }}\nexec {real} "$@"\n')
    command.chmod(0o755)
    try:
        yield
    finally:
        command.unlink()
        command.symlink_to(real)


@pytest.mark.ways("git-mcp_tool")
@pytest.mark.parametrize("first", ["exit 1", "sleep 20", "sleep 3"])
def test_a_server_that_is_late_or_never_comes(client: Client, first: str) -> None:
    """Both clients wait for a server that is starting, for as long as a hook may take; the command stands in."""
    client.ground.coordinator.peer_lock("notes.md")
    with servers_that(client.ground, first):
        client.run("work", client.create("free.md", "free\n"), client.replace(*CHANGE))
    assert_denied(client, "work", "notes.md")
    assert_text(client, "free.md", "free\n")
    assert max(client.call_seconds("work")) < HOOK_LIMIT + 2


# -- installing --


@pytest.mark.ways("none")
def test_install_keeps_the_transport_and_doctor_names_it(newcomer: Client) -> None:
    ground, name = newcomer.ground, newcomer.name

    def swarm(*words: str) -> dict:
        done = ground.run(["swarm-mcp", *words, "--json"])
        assert done.returncode == 0, done.stdout + done.stderr
        return dict(json.loads(done.stdout))

    def installed(*words: str) -> str:
        (result,) = swarm("install", "--client", name, *words)["results"]
        return str(result["transport"])

    def doctor() -> dict[str, dict]:
        return {check["name"]: check for check in swarm("doctor")["checks"]}

    assert installed() == "command"
    assert doctor()[f"{name} transport"]["message"].startswith("command")
    assert installed("--transport", "mcp_tool") == "mcp_tool"
    assert installed() == "mcp_tool"
    found = doctor()
    assert "hangs" in found[f"{name} transport"]["message"]
    proof = found[f"{name} enforcement"]
    assert proof["status"] == "ok" and proof["details"]["server_milliseconds"] > 0 and proof["details"]["command"]
    assert found["plugin_discovery"]["status"] == "ok"
    assert installed("--transport", "command") == "command"
    assert "server_milliseconds" not in doctor()[f"{name} enforcement"]["details"]
    assert not list(Path(ground.home).rglob("stand-in.sh"))


def test_uninstall_leaves_nothing(newcomer: Client) -> None:
    ground, install = newcomer.ground, ("install", "--client", newcomer.name, "--transport")
    for words in ((*install, "mcp_tool"), (*install, "command"), ("uninstall",)):
        done = ground.run(["swarm-mcp", *words], env=PERSON)
        assert done.returncode == 0, done.stdout + done.stderr
    config = ground.home / ".codex" / "config.toml"
    assert not config.exists() or "swarm@swarm" not in config.read_text(), "trust in a hook of the other transport"
    assert shutil.which("swarm-mcp", path=str(ground.bin)) and not list(ground.home.rglob("stand-in.sh"))
