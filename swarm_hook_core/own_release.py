"""The coordinator's release that uv fetches for a plugin from a repository alone.

If this machine has uv and no `swarm-mcp`, a session's start says so, once, and then has uv fetch the release with the
plugin's own number, in the background. The release itself then leaves a launcher in the state folder (``swarm-mcp
fetched``). Hooks and ``integrations/coordinator.sh`` start that, never uv, which may use the network.
"""

from __future__ import annotations

import os
import time

from swarm_hook_core import DISTRIBUTION, __version__, process, settings
from swarm_hook_core.state import state_dir, write_private

AGAIN_SECONDS = 600  # between two attempts to fetch it
PLACES = ("~/.local/bin", "~/.cargo/bin", "/opt/homebrew/bin", "/usr/local/bin")  # of uv, beside those on PATH


def launcher() -> str:
    """Return the path of the launcher of the fetched release. It need not be there."""
    return os.path.join(state_dir(), "fetched", f"swarm-mcp-{__version__}")


def command() -> list[str]:
    """Return the argv prefix of the fetched release; empty if it was not fetched, or a person forbids it."""
    path = launcher()
    if not os.access(path, os.X_OK):
        return []
    if not is_wanted():
        try:
            os.remove(path)  # the server's launcher cannot read settings
        except FileNotFoundError:
            pass  # another process was faster
        return []
    return [path]


def is_wanted(prefix: str = "", folder: str = "") -> bool:
    """Return True unless a person's settings forbid uv to fetch the release."""
    return bool(settings.uvx(prefix, folder).value != "off")


def uv() -> str:
    """Return the path of uv; empty if it is not installed."""
    for folder in (*os.environ.get("PATH", os.defpath).split(os.pathsep), *map(os.path.expanduser, PLACES)):
        path = os.path.join(folder, "uv")
        if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


def is_news(of_fetching: bool) -> bool:
    """Return True, once, if the user has not been told that this release is fetched, or that it cannot be."""
    if of_fetching:
        told = f"{launcher()}.told"
    else:
        told = os.path.join(os.path.dirname(launcher()), "told-none")
    if os.path.exists(told):
        return False
    try:
        write_private(told, "")
    except OSError:
        pass  # nowhere to remember it: it is said again
    return True


def fetch() -> None:
    """Have uv fetch the release, in the background; do nothing soon after another attempt.

    Raises OSError.
    """
    program, tried = uv(), f"{launcher()}.tried"
    if not program or (os.path.exists(tried) and 0 <= time.time() - os.stat(tried).st_mtime < AGAIN_SECONDS):
        return
    write_private(tried, "")

    # From a folder that no repository has a say in.
    line = 'cd / && exec "$0" tool run --quiet --from "$1" swarm-mcp fetched >"$2" 2>&1'
    process.start_detached(["/bin/sh", "-c", line, program, f"{DISTRIBUTION}=={__version__}", log()])


def log() -> str:
    """Return the path of uv's output of the last attempt. It need not be there."""
    return f"{launcher()}.log"
