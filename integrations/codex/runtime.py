"""Codex: the tool that writes files, and the patch it names them in."""

from __future__ import annotations

from typing import Any

from swarm_hook_core.config import ALLOWED, Dialect, RuntimeConfig, changes_in_patch


def _without_statement(payload: dict[str, Any]) -> dict[str, Any]:
    """`payload` with a command as its model wrote it, where a statement of ours was put in front of it."""
    if isinstance(payload.get("tool_input"), dict):
        command = payload["tool_input"].get("command")
    else:
        command = None
    if not isinstance(command, str) or command[:3] != ". '":
        return payload
    from swarm_hook_core.kernel.planning import without

    return without(payload)


RUNTIME = RuntimeConfig(
    runtime_name="codex",
    env_prefix="CODEX",
    scratch_dir_name="swarm-codex",
    write_tools={"apply_patch"},
    extract_changes=changes_in_patch,
    transcript="rollout",
    dialect=Dialect(amend=_without_statement),
    kernel="statement",
    kernel_versions=("0.169.0", "0.171.0"),
    merges=ALLOWED,
    merge_versions=("0.169.0", "0.171.0"),
)
