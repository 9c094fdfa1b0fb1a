"""An installation of an earlier release, with writes checked by the session's MCP server (`--transport mcp_tool`)."""

import json
import subprocess
from pathlib import Path

import pytest
from support.fixtures import SWARM, Ground

from swarm_mcp.doctor import enforcement
from swarm_mcp.runtimes import bundle, runtime
from swarm_mcp.runtimes.installed import Installed
from swarm_mcp.runtimes.owned_folder import RECORD, read_record

pytestmark = pytest.mark.slow

STAND_IN = "integrations/stand-in.sh"
CLIENTS = ("claude-code", "codex")


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A marketplace folder as the earlier release left it."""
    folder = tmp_path / "marketplace"
    bundle.write(folder, local=True)
    record = read_record(folder)
    record["transports"] = dict.fromkeys(CLIENTS, "mcp_tool")
    record["files"] = sorted([*record["files"], STAND_IN])
    (folder / RECORD).write_text(json.dumps(record))
    (folder / STAND_IN).write_text("exec cat\n")
    for client in CLIENTS:
        path = folder / f"integrations/{client}/hooks.json"
        tree = json.loads(path.read_text())
        (group,) = tree["hooks"]["PreToolUse"]
        (hook,) = group["hooks"]
        script = f'"${{CLAUDE_PLUGIN_ROOT}}/{STAND_IN}"'
        standing_in = f" && [ -r {script} ] && exec /bin/sh {script} swarm-x '' "
        command = hook["command"].replace(" && exec ", standing_in, 1)
        group["hooks"] = [{"type": "mcp_tool", "tool": "check_write"}, {**hook, "command": command}]
        path.write_text(json.dumps(tree))
    return folder


@pytest.mark.parametrize("client", CLIENTS)
def test_doctor_names_it_and_an_install_takes_it_away(client: str, earlier: Path) -> None:
    installed = Installed(earlier, f"integrations/{client}")
    (found,) = enforcement.earlier_checks(runtime(client), installed)
    assert (found.status, found.mend) == ("warn", f"swarm-mcp install --client {client}")
    old = installed.commands()
    bundle.write(earlier, local=True)
    assert enforcement.earlier_checks(runtime(client), installed) == []
    assert not (earlier / STAND_IN).exists() and "transports" not in read_record(earlier)
    # A session that runs on keeps the old command in mind, and has it checked all the same.
    (command,) = [hook.command for hook in old if hook.event == "PreToolUse"]
    assert STAND_IN in command
    assert enforcement.prove(runtime(client), Installed(earlier, f"integrations/{client}", old)).status == "ok"


def test_install_says_that_the_option_is_gone(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "codex").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    done = ground.swarm("install", "--dry-run", "--client", "codex", "--transport", "mcp_tool")
    assert done.code == 0 and "--transport is gone" in done.err and done.err.count("\n") == 1


def test_a_plugin_of_an_earlier_release_starts_the_server() -> None:
    done = subprocess.run(
        [*SWARM, "serve", "--transport", "mcp_tool"], input=b"", capture_output=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == (b"", b"")
