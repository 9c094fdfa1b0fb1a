"""What is pi's alone: the tools that write files, and how it reads the paths they name."""

import os
import sys

# The plugin's root, found from here: pi runs us from a package's folder, or from a clone in place.
sys.path.insert(1, os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..")))

from swarm_hook_core.config import RuntimeConfig, paths_under_keys
from swarm_hook_core.core import HookCore

# Every blank that pi takes for a space: U+00A0, U+2000 to U+200A, U+202F, U+205F, U+3000.
_BLANKS = dict.fromkeys((0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " ")
_named = paths_under_keys("path", "file_path")


def extract_paths(tool_input):
    """The paths as pi will open them: without the ``@`` of a mention, with plain blanks, ``~`` as the home folder."""
    found = []
    for path in _named(tool_input):
        path = path.removeprefix("@").translate(_BLANKS)
        home = path == "~" or path.startswith("~/")
        found.append(os.path.expanduser("~") + path[1:] if home else path)
    return found


core = HookCore(
    RuntimeConfig(
        runtime_name="pi",
        env_prefix="PI",
        scratch_dir_name="swarm-pi",
        write_tools={"write", "edit"},
        extract_paths=extract_paths,
    )
)
write_paths_for_tool = core.write_paths_for_tool
