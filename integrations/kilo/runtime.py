"""Kilo: the tools that write files, and where they name them."""

from __future__ import annotations

from swarm_hook_core.config import Dialect, RuntimeConfig, patch_or_path

RUNTIME = RuntimeConfig(
    runtime_name="kilo",
    env_prefix="KILO",
    scratch_dir_name="swarm-kilo",
    write_tools={"write", "edit", "apply_patch"},
    replaces={"write"},
    extract_changes=patch_or_path("patchText", "filePath", whole="content"),
    dialect=Dialect(tools={"bash": "Bash"}),
)
