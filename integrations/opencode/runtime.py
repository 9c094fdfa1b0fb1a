"""OpenCode: the tools that write files, and where they name them."""

from swarm_hook_core import EDIT, REPLACE
from swarm_hook_core.config import PLUGIN, Dialect, RuntimeConfig, paths_under_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_named = paths_under_keys("filePath")


def extract_changes(tool_input: "Any") -> list[tuple[str, str]]:
    """Return ``(path, how)`` of each file that a call of `write`, `edit` or `apply_patch` changes."""
    patch = None
    if isinstance(tool_input, dict):
        patch = tool_input.get("patchText")
    if isinstance(patch, str):
        from swarm_hook_core.patch_headers import changes_by_headers

        return changes_by_headers(patch)
    return [(path, REPLACE if "content" in tool_input else EDIT) for path in _named(tool_input)]


RUNTIME = RuntimeConfig(
    runtime_name="opencode",
    env_prefix="OPENCODE",
    scratch_dir_name="swarm-opencode",
    write_tools={"write", "edit", "apply_patch"},
    replaces={"write"},
    extract_changes=extract_changes,
    merges=PLUGIN,
    dialect=Dialect(tools={"bash": "Bash"}),
)
