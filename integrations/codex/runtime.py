"""Codex: the tool that writes files, and the patch it names them in."""

from swarm_hook_core.config import RuntimeConfig, changes_in_patch, paths_in_patch

RUNTIME = RuntimeConfig(
    runtime_name="codex",
    env_prefix="CODEX",
    scratch_dir_name="swarm-codex",
    write_tools={"apply_patch"},
    extract_paths=paths_in_patch,
    extract_changes=changes_in_patch,
)
