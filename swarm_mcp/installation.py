"""This installation of swarm-mcp: its interpreter, command line and plugin files, and the folder that clients get."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from swarm_hook_core.state import user_folder
from swarm_mcp.plugin_files import plugin_folder

_PACKAGES = ("swarm_mcp", "swarm_hook_core", "pysqlite3", "sqlite_utils", "mcp", "pydantic_core")


def interpreter() -> str:
    """Return the real interpreter behind this process: no shim, no virtual environment to look up first."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def coordinator_command() -> list[str]:
    """Return how hooks start this coordinator: the real interpreter, without ``site``, on our folders alone."""
    from importlib.util import find_spec

    folders: list[str] = []
    for name in _PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin:
            folder = os.path.dirname(os.path.dirname(os.path.abspath(spec.origin)))
            if folder not in folders:
                folders.append(folder)
    code = f"import os, sys; sys.path[:0] = {folders!r}; from swarm_mcp.cli.main import main; os._exit(main())"
    return [interpreter(), "-I", "-S", "-c", code]


def plugin_source() -> Path:
    """Return `plugin_folder` as a path."""
    return Path(plugin_folder())


def marketplace_folder() -> Path:
    """Return the folder that `swarm-mcp install` hands to clients, in this user's data folder. It need not exist."""
    try:
        from platformdirs import user_data_path
    except Exception:
        return Path(user_folder("", "XDG_DATA_HOME", "~/.local/share")) / "marketplace"
    return user_data_path("swarm-mcp", appauthor=False) / "marketplace"
