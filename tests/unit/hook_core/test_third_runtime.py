"""A third runtime is one RuntimeConfig and one folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from support.sessions import ROOT, Ran, new_session, peer_locks, ready_store

COMMON = f"""\
import os, sys
sys.path.insert(1, {str(ROOT)!r})
from swarm_hook_core.config import RuntimeConfig, paths_under_keys
from swarm_hook_core.core import HookCore
core = HookCore(
    RuntimeConfig(
        runtime_name="editor",
        env_prefix="ED",
        scratch_dir_name="swarm-editor",
        write_tools={{"save_buffer"}},
        extract_paths=paths_under_keys("buffer"),
    )
)
"""
ENTRY = "import sys\nfrom _common import core\nsys.exit(core.run_{}_hook(sys.stdin))\n"
HOOKS = ("session_start", "pre_tool_use", "session_end")


def test_a_third_runtime_takes_less_than_thirty_lines(tmp_path: Path) -> None:
    folder = tmp_path / "integrations" / "editor" / "hooks"
    folder.mkdir(parents=True)
    (folder / "_common.py").write_text(COMMON)
    for hook in HOOKS:
        (folder / f"{hook}.py").write_text(ENTRY.format(hook))
    assert sum(len(path.read_text().splitlines()) for path in folder.iterdir()) < 30

    ready_store()
    me = new_session()
    (tmp_path / "repo").mkdir()
    facts = {"session_id": me, "cwd": str(tmp_path / "repo")}

    def run(hook: str, **more: object) -> Ran:
        command = [sys.executable, "-E", "-s", "-S", str(folder / f"{hook}.py")]
        payload = json.dumps({**facts, **more})
        done = subprocess.run(
            command,
            input=payload,
            capture_output=True,
            text=True,
            env={**os.environ, "SWARM_ED_LABEL": "my editor"},
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr, 0)

    def save(path: str, tool: str = "save_buffer") -> str:
        return run("pre_tool_use", tool_name=tool, tool_input={"buffer": path}).reason

    assert f"my editor session:{me[:8]}" in run("session_start", source="startup").context
    assert save("f") == ""
    peer_locks(tmp_path / "repo", tmp_path / "repo" / "f", "mine", "the peer")
    reason = save("../repo/f")
    assert reason.startswith(
        f'swarm lock blocked save_buffer for {tmp_path / "repo" / "f"}: held by "the peer" (note: "mine";'
    )
    assert save("g") == "" and save("f", tool="Write") == "", "other runtimes' tools are not this one's"
    assert run("session_end").out == ""
