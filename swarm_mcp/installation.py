"""This installation of swarm-mcp: its interpreter, command line and plugin files, and the folder that clients get."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from swarm_hook_core.state import data_dir, read_private, state_dir, write_private
from swarm_mcp.folders import plugin_folder

RELAY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "swarm_relay")
NOT_COMPILED = os.path.join(os.path.dirname(RELAY), "not-compiled")  # why a wheel that was built here lacks it
RELAY_NOTE = "relay"  # in the state folder
NOTE_BYTES = 8192
_PACKAGES = ("swarm_mcp", "swarm_hook_core", "pysqlite3", "sqlite_utils", "platformdirs", "jsonschema")


def interpreter() -> str:
    """Return the real interpreter behind this process: no shim, no virtual environment to look up first."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def relay() -> str:
    """Return the relay in C, the command of a hook; empty where it cannot serve.

    A platform's wheel has it, and a wheel that was built beside a C compiler.
    """
    import subprocess

    if not os.access(RELAY, os.X_OK):
        return ""
    try:
        done = subprocess.run([RELAY], capture_output=True, timeout=5, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):  # of another machine
        return ""
    return RELAY if done.returncode == 0 else ""


def leave_relay() -> None:
    """Write the relay's path into the state folder, for ``integrations/hook.sh``."""
    path = os.path.join(state_dir(), RELAY_NOTE)
    try:
        if os.path.lexists(RELAY):
            if read_private(path, NOTE_BYTES).decode("utf-8", "surrogateescape") == f"{RELAY}\n":
                return
        elif not os.path.lexists(path):
            return
    except OSError:  # it was never written
        pass
    program = relay()
    try:
        if program:
            write_private(path, f"{program}\n")
        elif os.path.lexists(path):
            os.remove(path)
    except OSError:
        return  # hooks use the relay in Python


def coordinator_command() -> list[str]:
    """Return how hooks start this coordinator: the real interpreter, without ``site``, on our folders alone."""
    return command_of("from swarm_mcp.cli.main import main; import os; os._exit(main())")


def command_of(statements: str) -> list[str]:
    """Return the command that runs `statements` in a process of this installation, as `coordinator_command` does."""
    from importlib.util import find_spec

    folders: list[str] = []
    for name in _PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin:
            folder = os.path.dirname(os.path.dirname(os.path.abspath(spec.origin)))
            if folder not in folders:
                folders.append(folder)
    code = f"import sys; sys.path[:0] = {folders!r}; {statements}"
    return [interpreter(), "-I", "-S", "-c", code]


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
