"""`swarm-mcp install` and the steps after it, on real clients."""

import hashlib
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import repository
from support.requirement import requirement

from .appserver import AppServer, hooks, trust_hooks
from .checks import assert_denied, assert_text
from .client import Client
from .clients import Codex
from .coordinator import PATIENCE, PERSON
from .ground import FILES, Ground, wait_for
from .marketplace import PLUGIN, Marketplace

CHANGE = ("notes.md", "line one", "line two")
SETTINGS = (".claude.json", ".claude/settings.json", ".codex/config.toml")


def contents(folder: Path) -> dict[str, str]:
    """Return every file below `folder`, with a digest of its content."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_dry_run_touches_nothing(newcomer: Client) -> None:
    ground = newcomer.ground
    before = contents(ground.home)
    done = ground.run(["swarm-mcp", "install", "--client", newcomer.name, "--dry-run"])
    assert done.returncode == 0, done.stderr
    assert contents(ground.home) == before


@pytest.mark.promise("uninstalling leaves nothing", only=("codex",))
def test_uninstalling_leaves_nothing(newcomer: Client) -> None:
    """Only the clients' own logs and caches may stay, and none of them is a plugin of ours."""
    ground = newcomer.ground
    Marketplace(ground, "install").install(newcomer.name)
    done = ground.run(["swarm-mcp", "uninstall"], env=PERSON)
    assert done.returncode == 0, done.stderr or done.stdout
    left = [name for name in contents(ground.home) if "swarm" in name and "mcp-logs" not in name]
    assert left == []
    settings = [ground.home / name for name in SETTINGS]
    assert [str(file) for file in settings if file.exists() and "swarm@swarm" in file.read_text()] == []
    ground.coordinator.peer_lock("notes.md")
    newcomer.run("work", newcomer.replace(*CHANGE))
    assert_text(newcomer, "notes.md", "line two\n")


@pytest.mark.promise("doctor proves the installation", only=("claude-code",))
def test_doctor_is_content_after_an_installation_and_not_without_trust(newcomer: Client) -> None:
    ground = newcomer.ground
    Marketplace(ground, "install").install(newcomer.name)
    report = ground.coordinator.json("doctor", allowed=(0, 1))
    assert report["ok"] is True, [check for check in report["checks"] if check["status"] == "fail"]
    if newcomer.name == "codex":  # one more file in the plugin's folder makes all its hooks untrusted
        (codex_copy(ground) / "stray").touch()
    else:
        ground.run(["claude", "plugin", "disable", "swarm@swarm"])
    report = ground.coordinator.json("doctor", allowed=(1,))
    failed = [check for check in report["checks"] if check["status"] == "fail"]
    assert newcomer.name in str(failed), report["checks"]


@pytest.mark.parametrize("signal_name", ["SIGINT", "SIGKILL"])
@pytest.mark.parametrize("at", ["adding the marketplace", "installed swarm@swarm"])
def test_an_interrupted_installation_is_mended_by_the_next(newcomer: Client, at: str, signal_name: str) -> None:
    ground = newcomer.ground
    command = ground.start(["swarm-mcp", "install", "--client", newcomer.name], keep_output=True)
    assert command.stdout
    assert next((line for line in command.stdout if at in line), ""), "steps are said as they happen"
    command.send_signal(signal.Signals[signal_name])
    command.wait(PATIENCE)
    assert wait_for(lambda: not ground.own_processes(), PATIENCE), "what had begun comes to its end"
    Marketplace(ground, "install").install(newcomer.name)
    report = ground.coordinator.json("doctor")
    assert [check["status"] for check in report["checks"] if check["name"].startswith(newcomer.name)].count("ok") >= 2


@pytest.mark.ways("install")
def test_installing_again_disturbs_no_live_session(client: Client) -> None:
    """Codex drops the hooks of a running session when the plugin's folder changes below it."""
    ground = client.ground
    ground.coordinator.peer_lock("notes.md")
    with client.held("work", client.create("new.md", "new\n"), client.replace(*CHANGE), at=1) as live:
        done = ground.run(["swarm-mcp", "install", "--client", client.name])
        assert done.returncode == 0, done.stderr or done.stdout
        live.go_on()
    assert_denied(client, "work", "notes.md")
    client.run("later", client.replace(*CHANGE))
    assert_denied(client, "later", "notes.md")


@pytest.mark.ways("install")
@requirement("P-06")
def test_an_upgrade(client: Client) -> None:
    """A live Claude Code session stays checked; Codex restarts into it (it drops hooks that changed)."""
    ground = client.ground
    ground.coordinator.peer_lock("notes.md")
    for script in (ground.home / ".local/share").rglob("runtime.py"):
        script.write_text("# as an older release had it\n" + script.read_text())
    with client.held("work", client.create("new.md", "new\n"), client.replace(*CHANGE), at=1) as live:
        done = ground.run(["swarm-mcp", "install", "--client", client.name])
        assert done.returncode == 0, done.stderr or done.stdout
        live.go_on()
    if client.name == "claude-code":
        assert_denied(client, "work", "notes.md")
    else:
        (ground.checkout / "notes.md").write_text(FILES["notes.md"])
    client.run("later", client.replace(*CHANGE))
    assert_denied(client, "later", "notes.md")


def test_an_upgrade_says_what_has_changed_and_a_first_installation_nothing(newcomer: Client) -> None:
    ground = newcomer.ground
    install = ["install", "--client", newcomer.name]
    assert ground.coordinator.json(*install)["upgrade"] is None
    folder = ground.home / ".local/share/swarm-mcp/marketplace"
    for name in ("install.json", ".claude-plugin/plugin.json", "codex/.codex-plugin/plugin.json"):
        tree = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**tree, "version": "0.0.9"}))
    title, client, *calls = {
        "claude-code": (
            "Claude Code",
            "claude",
            "marketplace remove swarm",
            f"marketplace add {folder}",
            f"install {PLUGIN}",
        ),
        "codex": ("Codex", "codex", f"remove {PLUGIN}", f"add {PLUGIN}"),
    }[newcomer.name]
    for call in calls:
        done = ground.run([client, "plugin", *call.split()])
        assert done.returncode == 0, done.stderr
    done = ground.run(["swarm-mcp", *install])
    assert done.returncode == 0, done.stderr
    told = done.stdout.partition(f"; {title} had 0.0.9. Changes:\n")[2].splitlines()
    assert told[0].startswith("  Changed: ") and told[-1] == "Check with: swarm-mcp doctor --play", done.stdout
    assert len(told) <= 12
    assert ground.coordinator.json(*install)["upgrade"] is None, "it is said once"


@requirement("P-05")
def test_the_manifests_of_a_release_are_what_the_client_takes(newcomer: Client) -> None:
    """With the version and the address that the steps of a release put into them."""
    ground = newcomer.ground
    clone = repository.copied(ground.root / "release")
    for words in (["version", "4.5.6"], ["address", "https://example.org/us/swarm"]):
        subprocess.run([sys.executable, "-B", str(clone / ".ci/release.py"), *words], check=True)
    client = {"claude-code": "claude", "codex": "codex"}[newcomer.name]
    if client == "claude":
        for manifest in (".claude-plugin/plugin.json", ".claude-plugin/marketplace.json"):
            done = ground.run([client, "plugin", "validate", str(clone / manifest)])
            assert done.returncode == 0, done.stdout + done.stderr
    for words in (["marketplace", "add", str(clone)], ["install" if client == "claude" else "add", PLUGIN]):
        done = ground.run([client, "plugin", *words])
        assert done.returncode == 0, done.stdout + done.stderr
    listed = ground.run([client, "plugin", "list"]).stdout
    assert "4.5.6" in listed, listed


def codex_copy(ground: Ground) -> Path:
    (copy,) = (ground.home / ".codex/plugins/cache/swarm/swarm").iterdir()
    return copy


def test_a_local_bundle_that_a_client_is_given_by_hand(newcomer: Client) -> None:
    ground = newcomer.ground
    Marketplace(ground, "local").install(newcomer.name)
    if newcomer.name == "codex":
        assert len(contents(codex_copy(ground))) < 20, "it copies no code"
    ground.coordinator.peer_lock("notes.md")
    newcomer.run("work", newcomer.replace(*CHANGE))
    assert_denied(newcomer, "work", "notes.md")


@pytest.mark.only("codex")
@pytest.mark.parametrize("earlier", ["a folder beside", "the whole folder"])
def test_an_upgrade_from_where_codex_had_the_plugin_from_before(newcomer: Client, earlier: str) -> None:
    ground = newcomer.ground
    ground.run(["swarm-mcp", "install", "--client", "codex"])
    ours = ground.home / ".local/share/swarm-mcp/marketplace"
    beside = ours.with_name("codex-plugin")
    given = ours
    if earlier == "a folder beside":
        given = beside
        shutil.copytree(ours / "codex", given)
        shutil.copytree(ours / ".agents", given / ".agents")
        names = sorted(contents(given))
        (given / "install.json").write_text(json.dumps({"name": "swarm", "version": "0", "files": names}))
    manifest = given / ".agents/plugins/marketplace.json"
    manifest.write_text(manifest.read_text().replace("./codex/", "./"))
    for words in ("marketplace remove swarm", f"marketplace add {given}", "add swarm@swarm"):
        done = ground.run(["codex", "plugin", *words.split()])
        assert done.returncode == 0, done.stderr
    assert (codex_copy(ground) / "swarm_hook_core").exists() is (given == ours)
    trust_hooks(ground)
    Marketplace(ground, "install").install("codex")
    report = ground.coordinator.json("doctor", allowed=(0, 1))
    found = {check["name"]: check["status"] for check in report["checks"]}
    assert (found["codex plugin"], found["codex hooks"]) == ("ok", "ok"), report["checks"]
    assert not beside.exists() and not (codex_copy(ground) / "swarm_hook_core").exists()
    assert str(ours) in (ground.home / ".codex/config.toml").read_text()
    ground.coordinator.peer_lock("notes.md")
    newcomer.run("work", newcomer.replace(*CHANGE))
    assert_denied(newcomer, "work", "notes.md")
    assert ground.run(["swarm-mcp", "uninstall"], env=PERSON).returncode == 0
    assert not ours.exists() and not beside.exists()


@pytest.mark.each_way
@pytest.mark.from_clone
@pytest.mark.only("codex")
def test_hooks_stay_trusted(client: Codex) -> None:
    """Any new file in the installed plugin loses the trust: sessions must not add one."""
    for script in ("first", "second"):
        client.run(script, client.create(f"{script}.md", "new\n"), client.shell("swarm-mcp status"))
    with AppServer(client.ground) as server:
        states = {hook["key"]: hook["trustStatus"] for hook in hooks(server, client.ground)}
    assert states and set(states.values()) == {"trusted"}, states


@pytest.mark.ways("clone")
def test_a_clone_that_serves_as_marketplace_stays_clean(client: Client) -> None:
    """Claude Code runs the plugin right there."""
    client.run("work", client.create("new.md", "new\n"), client.shell("swarm-mcp status"))
    done = client.ground.run(["git", "status", "--porcelain"], cwd=client.ground.root / "clone")
    assert (done.returncode, done.stdout) == (0, "")
