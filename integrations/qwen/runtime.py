"""Qwen Code: the tools that write files, and where they name them."""

from __future__ import annotations

from swarm_hook_core.config import Dialect, RuntimeConfig, in_own_folder, paths_under_keys

RUNTIME = RuntimeConfig(
    runtime_name="qwen",
    env_prefix="QWEN",
    scratch_dir_name="swarm-qwen",
    write_tools={"write_file", "edit", "notebook_edit"},
    replaces={"write_file"},
    transcript="parts",
    extract_paths=paths_under_keys("file_path", "notebook_path"),
    harmless_tools={
        "todo_write", "task_create", "task_update", "team_create", "team_delete", "cron_create", "cron_delete",
        "create_sub_session", "update_goal", "save_memory",
    },
    dialect=Dialect(
        fields={"turn": "prompt_id"},  # the results of tools are told of as if a prompt had been given
        tools={"run_shell_command": "Bash", "monitor": "Monitor"},
        amend=in_own_folder,
        unheard=lambda event, source: event in ("PreToolUse", "SubagentStart"),
    ),
)  # fmt: skip
