"""OpenCode: the tools that write files, and where they name them."""

from __future__ import annotations

from swarm_hook_core.config import PLUGIN, Dialect, RuntimeConfig, patch_or_path

RUNTIME = RuntimeConfig(
    runtime_name="opencode",
    env_prefix="OPENCODE",
    scratch_dir_name="swarm-opencode",
    write_tools={"write", "edit", "apply_patch"},
    replaces={"write"},
    extract_changes=patch_or_path("patchText", "filePath", whole="content"),
    merges=PLUGIN,
    dialect=Dialect(tools={"bash": "Bash"}),
)
