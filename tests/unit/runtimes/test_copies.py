"""`doctor` on copies of swarm-mcp: the one that runs here, and the one of a client's plugin."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import repository
from support.fixtures import SWARM, Ground

from swarm_hook_core import own_release
from swarm_mcp.doctor.copies import of_plugin, which_copy
from swarm_mcp.runtimes import bundle, codex_plugin, runtime

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugin that looks for its command, on a machine without one."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(own_release, "PLACES", ())
    monkeypatch.delenv("SWARM_UVX")
    bundle.write(tmp_path / "plugin")
    return tmp_path / "plugin"


def said(client: str, root: Path) -> tuple[str, str]:
    finding = of_plugin(runtime(client), root)
    assert finding.name == f"{client} command"
    return finding.status, finding.message


@pytest.mark.parametrize("client", ["claude-code", "codex", "pi"])
def test_a_plugin_that_was_installed_names_this_copy(client: str, tmp_path: Path) -> None:
    root = tmp_path / "plugin"
    bundle.write(root, local=True)
    assert said(client, root)[0] == "ok" and said(client, root)[1].startswith("this one")


def test_what_codex_copies_names_it_as_well(tmp_path: Path) -> None:
    bundle.write(tmp_path / "plugin", local=True)
    for name, content in codex_plugin.files_of(tmp_path / "plugin").items():
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / name).write_bytes(content)
    assert said("codex", tmp_path / "copy")[1].startswith("this one")


def test_a_plugin_that_names_another_copy(tmp_path: Path) -> None:
    root = tmp_path / "plugin"
    bundle.write(root, local=True)
    record = root / "install.json"
    for words, status in (([sys.executable, "-m", "swarm_mcp"], "info"), (["/none/such"], "fail")):
        record.write_text(json.dumps({**json.loads(record.read_text()), "coordinator": words}))
        assert said("claude-code", root)[0] == status


def test_a_plugin_that_looks_for_its_command(plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, words = said("claude-code", plugin)
    assert (status, words) == ("warn", "none; its sessions can lock nothing")
    (tmp_path / "bin" / "uv").symlink_to(sys.executable)
    assert said("claude-code", plugin) == ("info", "none yet; the next session's start has uv fetch it")
    Path(own_release.log()).parent.mkdir(parents=True)
    Path(own_release.log()).write_text("error: no such index\nhint: none\n")
    assert said("claude-code", plugin) == ("warn", "none; uv could not fetch it: error: no such index")
    monkeypatch.setenv("SWARM_UVX", "off")
    assert said("claude-code", plugin)[0] == "warn"
    monkeypatch.delenv("SWARM_UVX")
    subprocess.run([*SWARM, "fetched"], check=True, capture_output=True, timeout=60)
    assert said("codex", plugin) == ("ok", f"the plugin's own, fetched by uv: {own_release.launcher()}")
    ours = tmp_path / "bin" / "swarm-mcp"
    ours.write_text("#!/bin/sh\n: swarm_mcp.cli.main\n")
    ours.chmod(0o755)
    assert said("pi", plugin) == ("ok", f"found on PATH: {ours}")
    monkeypatch.setenv("SWARM_MCP_BIN", "true")
    shutil.copy("/bin/true", tmp_path / "bin" / "true")
    assert said("pi", plugin)[0] == "info"


def test_this_process_knows_what_it_is(ground: Ground) -> None:
    assert which_copy().startswith("installed in ")
    subprocess.run([*SWARM, "fetched"], check=True, capture_output=True, timeout=60)
    assert which_copy().startswith("the plugin's own, fetched by uv: ")


def test_a_checkout_is_called_one(ground: Ground) -> None:
    code = "from swarm_mcp.doctor.copies import which_copy; print(which_copy())"
    env = {**os.environ, "PYTHONPATH": str(repository.ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=ground.repo, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("a checkout: "), done.stderr
