"""`swarm-mcp doctor --play`: the installed client is started on a scripted model, and its answer is what the files show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from swarm_mcp.play.playing import CLIENTS

from .appserver import trust_hooks
from .client import Client
from .ground import Ground, own_ground
from .marketplace import Marketplace
from .more import prepared
from .pi import Pi, alone
from .test_hooks_off import OFF, with_policy

MAIN = ("claude-code", "codex")
# A policy that switches hooks off, its file in /etc, and a mode.
POLICIES: dict[str, tuple[str, dict[str, Any] | str, str]] = {
    "grok": ("grok/requirements.toml", "allow_managed_hooks_only = true\n", "default"),
    "copilot": ("github-copilot/managed-settings.json", {"enabledPlugins": {"swarm@swarm": False}}, "allow-all"),
}
# Settings of the project that can switch hooks off, and a mode; Copilot reads them in a folder that it trusts.
PROJECTS = {"qwen": (".qwen/settings.json", ""), "copilot": (".github/copilot/settings.json", "allow-all")}
SERVICES = ("api.anthropic.com", "api.openai.com")


def played(ground: Ground, name: str, *before: str, mode: str = "") -> list[dict[str, Any]]:
    """Return the findings of a play; `before`: words before the command."""
    words = ["--mode", mode] if mode else []
    before_it = files_in(ground.checkout)
    done = ground.run([*before, "swarm-mcp", "doctor", "--play", name, *words, "--json"], seconds=600)
    assert files_in(ground.checkout) == before_it, "the person's checkout has changed"
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert done.returncode == int(any(check["status"] == "fail" for check in report["checks"])), report
    assert ground.models.exchanges() == [], "the person's own service was asked"
    return list(report["checks"])


def files_in(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts}


def failed(ground: Ground, name: str, *before: str, mode: str = "") -> dict[str, Any]:
    """Return the first finding of a play. All fail."""
    checks = played(ground, name, *before, mode=mode)
    assert {check["status"] for check in checks} == {"fail"}, checks
    return checks[0]


@pytest.mark.ways("install")
def test_a_client_that_is_as_it_should_be(client: Client) -> None:
    checks = played(client.ground, client.name)
    assert {check["status"] for check in checks} == {"ok"}, checks
    for check in checks:
        ways = check["details"]["ways"]
        assert f"{len(ways)} of {len(ways)} denied" in check["message"] and set(ways.values()) == {"denied"}
        assert check["details"]["free_file_written"], check
        assert not [host for host in check["details"]["tried_to_reach"] if host.startswith(SERVICES)], check


@pytest.fixture
def wired(client: Client) -> Iterator[Path]:
    """The file with the hooks that the client runs, for a fault in it that is taken out in the end."""
    data, copies = client.ground.home / ".local/share/swarm-mcp", client.ground.home / ".codex/plugins/cache"
    (file,) = (copies if client.name == "codex" else data).rglob(f"integrations/{client.name}/hooks.json")
    before = file.read_bytes()
    yield file
    file.write_bytes(before)
    if client.name == "codex":
        trust_hooks(client.ground)


@pytest.mark.ways("install")
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("exit 0", "was not denied: it was let pass"),
        ("""echo '{"decision": "deny", "reason": "swarm lock blocked: notes.md"}'""", 'was not denied: {"decision"'),
    ],
    ids=["prints nothing", "another dialect"],
)
def test_a_hook_that_does_not_deny_is_named(client: Client, wired: Path, command: str, words: str) -> None:
    tree = json.loads(wired.read_text())
    tree["hooks"]["PreToolUse"][0]["hooks"][0]["command"] = command
    change(client, wired, tree)
    found = failed(client.ground, client.name)
    assert "writes to a locked file landed" in found["message"] and words in found["message"], found
    assert found["mend"] == f"swarm-mcp install --client {client.name}", found


@pytest.mark.ways("install")
@pytest.mark.parametrize(("event", "lands"), [("PreToolUse", True), ("SessionStart", False)])
def test_an_event_that_is_missing_is_named(client: Client, wired: Path, event: str, lands: bool) -> None:
    tree = json.loads(wired.read_text())
    del tree["hooks"][event]
    change(client, wired, tree)
    found = failed(client.ground, client.name)
    assert f"has no hook for {event}" in found["message"] and found["mend"], found
    assert ("landed" in found["message"]) is lands, found


def change(client: Client, wired: Path, tree: object) -> None:
    wired.write_text(json.dumps(tree))
    if client.name == "codex":
        trust_hooks(client.ground)


@pytest.mark.only("claude-code")
@pytest.mark.ways("install")
@pytest.mark.parametrize("name", [".claude/settings.json", ".claude/settings.local.json"])
def test_settings_of_the_project_that_switch_hooks_off(client: Client, name: str) -> None:
    file = client.ground.checkout / name
    file.parent.mkdir()
    file.write_text(json.dumps(OFF))
    found = failed(client.ground, client.name)
    assert "landed" in found["message"] and str(file) in found["message"] and str(file) in found["mend"], found


@pytest.mark.only("claude-code")
@pytest.mark.ways("install")
@pytest.mark.parametrize("policy", [OFF, {"allowManagedHooksOnly": True}], ids=["all off", "managed only"])
def test_a_policy_that_switches_hooks_off(client: Client, policy: dict[str, Any]) -> None:
    before = with_policy(client.ground, "claude-code/managed-settings.json", policy)
    found = failed(client.ground, client.name, *before)
    assert "landed" in found["message"] and "/etc/claude-code/managed-settings.json" in found["message"], found
    assert not found["mend"], found


@pytest.mark.only("claude-code")
@pytest.mark.ways("install")
def test_a_service_in_the_settings_is_never_reached_and_one_in_a_policy_is_refused(client: Client) -> None:
    there = {"ANTHROPIC_BASE_URL": client.ground.env["ANTHROPIC_BASE_URL"]}
    folder = client.ground.checkout / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps({"env": there, "apiKeyHelper": "touch asked; echo key"}))
    assert [check["status"] for check in played(client.ground, client.name)] == ["ok"]
    assert not (client.ground.checkout / "asked").exists()
    before = with_policy(client.ground, "claude-code/managed-settings.json", {"env": there})
    found = failed(client.ground, client.name, *before)
    assert "not played: env.ANTHROPIC_BASE_URL in /etc/claude-code" in found["message"], found


@pytest.mark.parametrize("name", [name for name in CLIENTS if name not in (*MAIN, "pi")])
def test_another_client(name: str) -> None:
    with prepared(name) as client:
        Marketplace(client.ground, "install").install(name)
        client.ground.renew()
        checks = played(client.ground, name)
        assert {check["status"] for check in checks} == {"ok"}, checks
        if name in PROJECTS:
            file_name, mode = PROJECTS[name]
            file = client.ground.checkout / file_name
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps(OFF))
            found = failed(client.ground, name, mode=mode)
            assert "landed" in found["message"] and str(file) in found["message"] and found["mend"], found
            file.unlink()
        if name in POLICIES:
            file_name, policy, mode = POLICIES[name]
            found = failed(client.ground, name, *with_policy(client.ground, file_name, policy), mode=mode)
            assert "landed" in found["message"] and f"/etc/{file_name}" in found["message"] and not found["mend"], found
        if name in ("opencode", "kilo"):
            variable = f"{name.upper()}_PURE"
            found = failed(client.ground, name, "env", f"{variable}=1", mode="auto")
            assert "landed" in found["message"] and found["mend"] == f"unset {variable}", found


def test_pi(tmp_path: Path) -> None:
    with own_ground("play_pi", clients=alone(tmp_path)) as ground:
        Pi(ground).prepare()
        Marketplace(ground, "install").install("pi")
        assert [check["status"] for check in played(ground, "pi")] == ["ok"]
