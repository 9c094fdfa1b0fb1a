"""This installation of swarm-mcp: its interpreter, command line and plugin files, and the folder that clients get."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from swarm_hook_core.state import data_dir
from swarm_mcp.folders import plugin_folder

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


def extra_command(extra: str) -> str:
    """Return the command that adds the optional part `extra` of our package to this installation, by its installer."""
    import shlex

    spec = shlex.quote(f"{_installed_from()}[{extra}]")
    prefix = Path(sys.prefix)
    if (prefix / "uv-receipt.toml").is_file():
        return f"uv tool install --force {spec}"
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx install --force {spec}"
    return f"{shlex.quote(sys.executable)} -m pip install {spec}"


def _installed_from() -> str:
    """The folder that our package was installed from; its name on the index where it was from there, or elsewhere."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    from swarm_hook_core import DISTRIBUTION

    try:
        told = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, OSError, ValueError, RecursionError):  # installed from the index
        return DISTRIBUTION
    if isinstance(told, dict):
        url = str(told.get("url", ""))
    else:
        url = ""
    folder = ""
    if url.startswith("file://"):
        folder = unquote(urlsplit(url).path)
    if os.path.isdir(folder):
        return folder
    return DISTRIBUTION


def plugin_source() -> Path:
    """Return `plugin_folder` as a path."""
    return Path(plugin_folder())


def marketplace_folder() -> Path:
    """Return the folder that `swarm-mcp install` hands to clients, in this user's data folder. It need not exist."""
    try:
        from platformdirs import user_data_path
    except Exception:  # the library is missing or broken
        return Path(data_dir()) / "marketplace"
    return user_data_path("swarm-mcp", appauthor=False) / "marketplace"
