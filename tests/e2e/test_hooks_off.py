"""Settings that keep a client from running hooks, and a user's own MCP server called `swarm`."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from swarm_mcp.play.clients import SERVER

from .checks import assert_denied, assert_text
from .client import Client
from .clients import SERVER_START, Codex
from .ground import FILES, Ground, client_folder, sweep, wait_for
from .marketplace import Marketplace
from .more import NAMES, OtherClient, prepared

CHANGE = ("notes.md", "line one", "line two")
OFF = {"disableAllHooks": True}


def failures(ground: Ground, *before: str) -> list[dict[str, Any]]:
    """Return the checks of doctor that fail; `before`: words before its command."""
    done = ground.run([*before, "swarm-mcp", "doctor", "--json"])
    report = json.loads(done.stdout)
    failed = [check for check in report["checks"] if check["status"] == "fail"]
    assert done.returncode == int(bool(failed)) and report["ok"] is not bool(failed)
    return failed


def assert_lands(client: Client, script: str) -> None:
    """Assert that a write to a locked file is not denied."""
    client.ground.coordinator.peer_lock("notes.md")
    client.run(script, *client.change(*CHANGE))
    assert_text(client, "notes.md", "line two\n")


def assert_denied_again(client: Client) -> None:
    (client.ground.checkout / "notes.md").write_text(FILES["notes.md"])
    client.run("again", *client.change(*CHANGE))
    assert_denied(client, "again", "notes.md")


@pytest.mark.only("claude-code")
@pytest.mark.ways("install")
@pytest.mark.parametrize("name", [".claude/settings.json", ".claude/settings.local.json"])
def test_claude_code_s_project(client: Client, name: str) -> None:
    ground = client.ground
    file = ground.checkout / name
    file.parent.mkdir()
    file.write_text(json.dumps(OFF))
    assert_lands(client, "work")
    (failed,) = failures(ground)
    assert str(file) in failed["message"] and failed["mend"]
    assert "Nothing failed" not in ground.run(["swarm-mcp", "doctor"]).stdout
    file.write_text("{}")
    assert failures(ground) == []
    assert_denied_again(client)


@pytest.mark.only("claude-code")
@pytest.mark.ways("install")
@pytest.mark.parametrize("off", [OFF, {"enabledPlugins": {"swarm@swarm": False}}], ids=["all", "plugin"])
def test_hooks_that_are_switched_off_in_a_running_session_are_told_at_once(client: Client, off: dict) -> None:
    ground = client.ground
    file = ground.checkout / ".claude" / "settings.local.json"
    file.parent.mkdir()
    file.write_text("{}")

    def told() -> list[Any]:
        return ground.coordinator.query("SELECT payload FROM events WHERE subject = 'hooks'")

    with client.interactive() as terminal:
        client.turn(terminal, "work", client.shell("true"))
        file.write_text(json.dumps(off))
        assert wait_for(told, 60) and str(file) in told()[0][0]


@pytest.mark.only("claude-code")
@pytest.mark.ways("install")
def test_a_person_s_local_settings_outrank_the_project_s(client: Client) -> None:
    folder = client.ground.checkout / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(OFF))
    (folder / "settings.local.json").write_text(json.dumps({"disableAllHooks": False}))
    assert failures(client.ground) == []
    client.ground.coordinator.peer_lock("notes.md")
    assert_denied_again(client)


@pytest.mark.only("claude-code")
@pytest.mark.ways("install")
@pytest.mark.parametrize(
    ("name", "policy", "lands"),
    [
        ("managed-settings.json", OFF, True),
        ("managed-settings.d/10-hooks.json", OFF, True),
        ("managed-settings.json", {"allowManagedHooksOnly": True}, True),
        ("managed-settings.json", {"allowManagedHooksOnly": True, "enabledPlugins": {"swarm@swarm": True}}, False),
    ],
    ids=["all off", "added", "managed only", "managed only and ours"],
)
def test_claude_code_s_policies(
    client: Client, monkeypatch: pytest.MonkeyPatch, name: str, policy: dict[str, Any], lands: bool
) -> None:
    before = with_policy(client.ground, f"claude-code/{name}", policy)
    plain: Callable[..., list[str]] = client.command
    monkeypatch.setattr(client, "command", lambda *given: [*before, *plain(*given)])
    if lands:
        assert_lands(client, "work")
        (failed,) = failures(client.ground, *before)
        assert f"/etc/claude-code/{name}" in failed["message"] and not failed["mend"]
    else:
        assert failures(client.ground, *before) == []
        client.ground.coordinator.peer_lock("notes.md")
        assert_denied_again(client)


def with_policy(ground: Ground, name: str, policy: dict[str, Any] | str) -> list[str]:
    """Return the words before a command that run it with `policy` in a file of a private copy of /etc.

    A policy that is no text is written as JSON.
    """
    enter = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    if not shutil.which("unshare") or subprocess.run([*enter, "mount", "--bind", "/etc", "/etc"]).returncode:
        pytest.skip("no mount namespaces here")
    copy = ground.tmp / "etc"
    shutil.rmtree(copy, ignore_errors=True)
    # Files that only root may read are of no use to the client.
    subprocess.run(["cp", "--archive", "/etc/.", str(copy)], capture_output=True, check=False)
    file = copy / name
    file.parent.mkdir(parents=True)
    file.write_text(policy if isinstance(policy, str) else json.dumps(policy))
    return [*enter, "sh", "-c", f'mount --bind "{copy}" /etc && exec "$@"', "sh"]


@pytest.mark.parametrize("name", ["qwen"])
def test_the_project_of_another_client(name: str) -> None:
    with prepared(name) as client:
        Marketplace(client.ground, "install").install(name)
        client.ground.renew()
        file = Path(client.ground.checkout, f".{name}", "settings.json")
        file.parent.mkdir()
        file.write_text(json.dumps(OFF))
        assert_lands(client, "work")
        failed = [check for check in failures(client.ground) if check["name"] == f"{name} hooks"]
        assert [str(file) in check["message"] for check in failed] == [True]
        file.unlink()
        assert failures(client.ground) == []
        assert_denied_again(client)


CASES = [pytest.param(name, marks=pytest.mark.xdist_group(f"more-{name}"), id=name) for name in NAMES]


@pytest.fixture(params=CASES)
def other(request: pytest.FixtureRequest) -> Iterator[OtherClient]:
    """A client whose user had a server called `swarm` before swarm was installed."""
    sweep()
    with prepared(request.param) as client:
        client.add_server("swarm", SERVER["command"], SERVER["args"])
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
            file.write(
                f"\n[mcp_servers.swarm]\ncommand = {json.dumps(SERVER['command'])}\nargs = {json.dumps(SERVER['args'])}\n"
            )
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
