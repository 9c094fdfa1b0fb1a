"""Claude Code: the tools that write files, and where they name them."""

from swarm_hook_core.config import RuntimeConfig, paths_under_keys

RUNTIME = RuntimeConfig(
    runtime_name="claude-code",
    env_prefix="CC",
    scratch_dir_name="swarm-cc",
    write_tools={"Write", "Edit", "MultiEdit", "NotebookEdit"},
    replaces={"Write"},
    transcript="blocks",
    harmless_tools="TodoWrite TaskCreate TaskUpdate CronCreate CronDelete TeamCreate TeamDelete".split(),
    extract_paths=paths_under_keys("file_path", "notebook_path", "path", "file", "filepath"),
    kernel="shell",
)
