"""What is Claude Code's alone: the tools that write files, and where they name them."""

import os
import sys

# The plugin's root, found from here: the client runs us from its cache, or from a clone in place.
sys.path.insert(1, os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..")))

from swarm_hook_core.config import RuntimeConfig, paths_under_keys
from swarm_hook_core.core import HookCore

core = HookCore(
    RuntimeConfig(
        runtime_name="claude-code",
        env_prefix="CC",
        scratch_dir_name="swarm-cc",
        write_tools={"Write", "Edit", "MultiEdit", "NotebookEdit"},
        extract_paths=paths_under_keys("file_path", "notebook_path", "path", "file", "filepath"),
    )
)
write_paths_for_tool = core.write_paths_for_tool
