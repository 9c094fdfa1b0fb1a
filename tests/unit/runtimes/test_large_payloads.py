"""No shell script of a hook takes more than linear time for its payload, in any shell that may be ``sh``.

``${text#*pattern}`` is quadratic in dash and bash: a payload of 10 MB would take hours, and a client lets the write
pass after seconds. The bound below is far above a busy machine's linear time, and far below that.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.sessions import ROOT, ready_store

pytestmark = pytest.mark.slow

INTEGRATIONS = ROOT / "integrations"
SECONDS = 600.0  # 200 KB took 20 s when the scripts were quadratic, so 10 MB would take 14 hours
MEMBERS = {
    "session_id": "abc",
    "tool_name": "Write",
    "tool_input": {"file_path": "/checkout/f", "content": 'a "tool_name": "b" \\ ü\n' * 400_000},
}
PAYLOADS = {
    ", ".join(order): json.dumps({name: MEMBERS[name] for name in order}, ensure_ascii=False).encode()
    for order in itertools.permutations(MEMBERS)
}
SHELLS = {
    "dash": ["dash"],
    "bash": ["bash", "--posix"],
    "busybox": ["busybox", "sh"],
    "zsh": ["zsh", "--emulate", "sh"],
}
# The hooks of hs that read the payload into a variable.
HS_HOOKS = ("assemble/40-swarm", "sources/90-swarm", "tool_exec/05-swarm-lock")


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> list[str]:
    argv = SHELLS[request.param]
    if not shutil.which(argv[0]):
        pytest.skip(f"there is no {argv[0]}")
    return argv


def ran(argv: list[str | Path], payload: bytes, **env: str) -> bytes:
    done = subprocess.run(
        argv, input=payload, env={**os.environ, **env}, capture_output=True, check=True, timeout=SECONDS
    )
    return done.stdout


def test_the_payload_is_over_10_mb() -> None:
    assert min(map(len, PAYLOADS.values())) > 10_000_000


@pytest.mark.parametrize("order", PAYLOADS)
def test_the_launcher_without_a_python_denies_in_linear_time(shell: list[str], order: str) -> None:
    ready_store()
    hook = [*shell, INTEGRATIONS / "hook.sh", "claude-code"]
    told = json.loads(ran([*hook, "pre_tool_use", "/nowhere/python"], PAYLOADS[order], SWARM_FAIL="closed"))
    assert told["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert ran([*hook, "post_tool_use"], PAYLOADS[order]) == b""


def test_the_guards_and_hooks_of_hs_take_linear_time(shell: list[str], tmp_path: Path) -> None:
    plugin, tools = tmp_path / "hs", tmp_path / "core" / "tools"
    shutil.copytree(INTEGRATIONS / "hs", plugin)
    (plugin / "lib" / "python.sh").write_text(f"python={sys.executable}\n")
    tools.mkdir(parents=True)
    (tools / "write_file").write_text("#!/bin/sh\nexec cat\n")
    (tools / "write_file").chmod(0o755)
    payload = PAYLOADS["tool_input, session_id, tool_name"]
    env = {"HARNESS_SOURCES": str(tools.parent), "HARNESS_SESSION": ""}
    assert ran([*shell, plugin / "tools" / "write_file", "--exec"], payload, **env).strip() == payload
    for name in HS_HOOKS:
        ran([*shell, plugin / "hooks.d" / name], payload, **env)
