"""pi: the tools that write files, and how it reads the paths they name."""

from __future__ import annotations

import os
from typing import Any

from swarm_hook_core.config import PLUGIN, Dialect, RuntimeConfig, paths_under_keys

# Every blank that pi takes for a space: U+00A0, U+2000 to U+200A, U+202F, U+205F, U+3000.
_BLANKS = dict.fromkeys((0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " ")
_named = paths_under_keys("path", "file_path")


def extract_paths(tool_input: Any) -> list[str]:
    """Return the paths as pi will open them: without the ``@`` of a mention, with plain blanks, ``~`` as the home."""
    found = []
    for path in _named(tool_input):
        path = path.removeprefix("@").translate(_BLANKS)
        home = path == "~" or path.startswith("~/")
        found.append(os.path.expanduser("~") + path[1:] if home else path)
    return found


RUNTIME = RuntimeConfig(
    runtime_name="pi",
    env_prefix="PI",
    scratch_dir_name="swarm-pi",
    write_tools={"write", "edit"},
    replaces={"write"},
    extract_paths=extract_paths,
    merges=PLUGIN,
    dialect=Dialect(tools={"bash": "Bash", "powershell": "PowerShell"}),
)
