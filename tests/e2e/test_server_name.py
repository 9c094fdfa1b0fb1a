"""A user's own MCP server called `swarm` stays, and swarm's tools get another name."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .clients import SERVER_START, Codex
from .ground import Ground, client_folder, sweep
from .marketplace import Marketplace
from .more import NAMES, OtherClient, prepared

THEIRS = [str(Path(__file__).with_name("files_server.py"))]
CASES = [pytest.param(name, marks=pytest.mark.xdist_group(f"more-{name}"), id=name) for name in NAMES]


@pytest.fixture(params=CASES)
def other(request: pytest.FixtureRequest) -> Iterator[OtherClient]:
    """A client whose user had a server called `swarm` before swarm was installed."""
    sweep()
    with prepared(request.param) as client:
        client.add_server("swarm", sys.executable, THEIRS)
        Marketplace(client.ground, "install").install(client.name)
        yield client


def test_both_servers_are_there(other: OtherClient) -> None:
    file = str(other.ground.checkout / "notes.md")
    # Not all of them wait for servers; a model needs longer for its first word than they to start.
    theirs = [other.shell(f"sleep {SERVER_START}"), *other.server_tool("swarm", "read_file", {"path": file})]
    ours = other.server_tool("swarm-locks", "lock_file", {"file": "notes.md", "reason": "beside theirs"})
    with other.held("work", *theirs, *ours, at=len(theirs) + len(ours)) as live:
        told = other.results("work")
        assert "line one" in told[1], told
        locks = other.ground.coordinator.locks()
        assert len(locks) == 1, told
        (session,) = other.ground.coordinator.sessions()
        assert locks[0]["instance_id"] == session["id"], "a lock of that very session"
        live.go_on()
    assert "fail" not in _named(other.ground, other.name)


def test_codex_has_both() -> None:
    sweep()
    ground = Ground("server-name", clients=client_folder())
    try:
        codex = Codex(ground)
        codex.prepare()
        with open(ground.home / ".codex" / "config.toml", "a") as file:
            file.write(f"\n[mcp_servers.swarm]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(THEIRS)}\n")
        Marketplace(ground, "install").install("codex")
        wait, _ = codex.swarm_tools(("whoami", {}))
        theirs = {"path": str(ground.checkout / "notes.md")}
        calls = [{"name": "read_file", "namespace": "mcp__swarm", "arguments": theirs}]
        calls += [{"name": "whoami", "namespace": "mcp__swarm_locks", "arguments": {}}]
        codex.run("work", wait, *calls)
        told = codex.results("work")
        assert "line one" in told[1] and "origin:codex" in told[2], told
        assert "ok" in _named(ground, "codex")
    finally:
        ground.close()


def _named(ground: Ground, client: str) -> list[str]:
    """Return `doctor`'s status and words about the server's name."""
    checks = json.loads(ground.run(["swarm-mcp", "doctor", "--json"], seconds=120).stdout)["checks"]
    return [word for check in checks if check["name"] == f"{client} server name"
            for word in (check["status"], check["message"])]  # fmt: skip
