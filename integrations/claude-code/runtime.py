"""Claude Code: the tools that write files, and where they name them."""

from __future__ import annotations

import os

from swarm_hook_core.config import BESIDE, RuntimeConfig, paths_under_keys
from swarm_hook_core.hooks import ToolCall


def _asks(call: ToolCall) -> bool:
    """Return True at a terminal, where Claude Code asks its user. With ``-p`` it would deny without our words."""
    return os.environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli" and call.mode != "dontAsk"


RUNTIME = RuntimeConfig(
    runtime_name="claude-code",
    env_prefix="CC",
    scratch_dir_name="swarm-cc",
    write_tools={"Write", "Edit", "MultiEdit", "NotebookEdit"},
    replaces={"Write"},
    transcript="blocks",
    harmless_tools="TodoWrite TaskCreate TaskUpdate CronCreate CronDelete TeamCreate TeamDelete".split(),
    extract_paths=paths_under_keys("file_path", "notebook_path", "path", "file", "filepath"),
    kernel="shell",
    asks=_asks,
    merges=BESIDE,
    merge_versions=("2.1.330", "2.1.332"),
)
