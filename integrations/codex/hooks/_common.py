"""What is Codex's alone: the tool that writes files, and the patch it names them in."""

import os
import sys

# The plugin's root, found from here: the client runs us from its cache.
sys.path.insert(1, os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..")))

from swarm_hook_core.config import RuntimeConfig, paths_in_patch
from swarm_hook_core.core import HookCore

core = HookCore(
    RuntimeConfig(
        runtime_name="codex",
        env_prefix="CODEX",
        scratch_dir_name="swarm-codex",
        write_tools={"apply_patch"},
        extract_paths=paths_in_patch,
    )
)
write_paths_for_tool = core.write_paths_for_tool
