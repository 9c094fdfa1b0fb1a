"""Codex's part of a marketplace folder: little, whole as a plugin, and with hooks that deny."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from support.fixtures import Ground
from support.requirement import requirement

from swarm_mcp.runtimes import bundle
from swarm_mcp.runtimes.codex_plugin import files_of

pytestmark = pytest.mark.slow


@pytest.fixture
def marketplace(tmp_path: Path) -> Path:
    folder = tmp_path / 'an $odd `folder` "of" mine' / "marketplace"
    bundle.write(folder, local=True)
    return folder


def commands(files: dict[str, bytes]) -> dict[str, str]:
    tree = json.loads(files["integrations/codex/hooks.json"])["hooks"]
    return {event: hook["command"] for event, (group,) in tree.items() for hook in group["hooks"] if "command" in hook}


def test_it_is_small_and_whole(marketplace: Path) -> None:
    files = files_of(marketplace)
    assert len(files) < 20 and not [name for name in files if name.endswith((".py", ".sh"))]
    manifest = json.loads(files[".codex-plugin/plugin.json"])
    named = [value for value in manifest.values() if str(value).startswith("./")]
    assert named and all(any(name.startswith(value[2:]) for name in files) for value in named)
    assert all("CLAUDE_PLUGIN_ROOT" not in command for command in commands(files).values())


@requirement("P-06")
def test_its_hooks_deny_from_the_marketplace_folder(ground: Ground, marketplace: Path) -> None:
    ground.session("mine", "me", runtime="codex")
    ground.lock(ground.session("peer", "peer"), "held.py", "because")
    patch = "*** Begin Patch\n*** Add File: held.py\n+x\n*** End Patch\n"
    payload = {"session_id": "mine", "cwd": ground.scope, "hook_event_name": "PreToolUse",
               "tool_name": "apply_patch", "tool_input": {"command": patch}}  # fmt: skip
    env = {name: os.environ[name] for name in ("HOME", "PATH", "SWARM_STATE_DIR")}
    done = subprocess.run(
        ["/bin/sh", "-c", commands(files_of(marketplace))["PreToolUse"]], input=json.dumps(payload), text=True,
        capture_output=True, env={**env, "SWARM_DB_PATH": ground.database}, cwd=ground.repo, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "") and "swarm lock blocked" in done.stdout


@pytest.mark.parametrize("gone", [bundle.ENTRY, bundle.HOOK], ids=["hook.py", "hook.sh"])
def test_a_marketplace_folder_that_is_gone_denies_nothing(marketplace: Path, gone: str) -> None:
    wired = commands(files_of(marketplace))
    (marketplace / gone).unlink()
    for event in ("PreToolUse", "PostToolUse"):
        done = subprocess.run(["/bin/sh", "-c", wired[event]], input="{}", capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, ""), (event, done)


def test_new_code_leaves_it_as_it_is_and_another_name_of_the_server_does_not(marketplace: Path) -> None:
    before = files_of(marketplace)
    (marketplace / "swarm_hook_core" / "core.py").write_text("# newer\n")
    assert files_of(marketplace) == before
    bundle.write(marketplace, local=True, servers={"codex": "swarm-locks"})
    assert files_of(marketplace) != before and set(files_of(marketplace)) == set(before)


def test_of_a_folder_that_is_not_whole_there_is_nothing(tmp_path: Path) -> None:
    assert files_of(tmp_path) == {}
