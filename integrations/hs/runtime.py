"""The bash harness (wedow/harness): the tools that write files, and the marks of its processes."""

from __future__ import annotations

from swarm_hook_core.config import Dialect, RuntimeConfig, paths_under_keys

RUNTIME = RuntimeConfig(
    runtime_name="hs",
    env_prefix="HS",
    scratch_dir_name="swarm-hs",
    write_tools={"write_file", "str_replace", "edit_file"},
    replaces={"write_file"},
    extract_paths=paths_under_keys("path"),
    # The harness is a script. The process of one of its commands ends with the session.
    client_marks=("/commands/",),
    dialect=Dialect(tools={"bash": "Bash"}),
)
