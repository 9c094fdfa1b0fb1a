"""The built-in plugins as executables, for other plugins to start; and our command, where PATH has none.

A guard that stands before ``tools/write_file`` hands allowed calls on to the next executable of that name in
``HARNESS_SOURCES``, and a provider may build on another: so what is built in has executables too, in the state folder,
which start this installation. The loop itself needs none of them.
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
import zlib

from swarm_hook_core.state import make_private, state_dir
from swarm_mcp import __version__

KEPT_DAYS = 30
ON_PATH = "path"  # the folder in it that is the last on the PATH of everything a run starts
_TOOL, _PROVIDER = "plugins/core/tools/{}", "plugins/{0}/providers/{0}"


def root() -> str:
    """Return the folder with ``plugins/`` and ``bin/harness``, made where it is missing; empty where it cannot be."""
    from swarm_mcp.installation import coordinator_command
    from swarm_mcp.loop.providers.choice import BUILT_IN
    from swarm_mcp.loop.tools import NAMES

    command = shlex.join(coordinator_command())
    files = {"bin/harness": "loop --", f"{ON_PATH}/swarm-mcp": ""}
    files.update({_TOOL.format(name): f"loop tool {name} --" for name in NAMES})
    files.update({_PROVIDER.format(name): f"loop provider {name} --" for name in BUILT_IN})
    mark = zlib.crc32(repr((__version__, command, files)).encode())
    folder = os.path.join(state_dir(), "loop", f"plugins-{mark:08x}")
    if os.path.isdir(folder):
        return folder
    try:
        _write(folder, {name: f'#!/bin/sh\nexec {command} {words} "$@"\n' for name, words in files.items()})
        _forget_old(os.path.dirname(folder), folder)
    except OSError:
        return folder if os.path.isdir(folder) else ""
    return folder


def _write(folder: str, files: dict[str, str]) -> None:
    """The whole folder at once: another run may be looking."""
    made = f"{folder}.{os.getpid()}.tmp"
    make_private(made)
    try:
        for name, text in files.items():
            path = os.path.join(made, name)
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o700)
        os.rename(made, folder)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not os.path.isdir(folder):  # somebody was faster
            raise


def _forget_old(base: str, mine: str) -> None:
    """Remove what installations have left that are gone."""
    oldest = time.time() - KEPT_DAYS * 86400
    for name in os.listdir(base):
        path = os.path.join(base, name)
        if name.startswith("plugins-") and path != mine and os.stat(path).st_mtime < oldest:
            shutil.rmtree(path, ignore_errors=True)
