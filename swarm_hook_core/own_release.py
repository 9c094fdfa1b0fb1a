"""The coordinator's release that a plugin brings along by ``uvx``, for plugins that come from a repository alone.

Where `swarm-mcp` is not on this machine and uv is, a session's start says so, once, and then has uv fetch the release
with the plugin's own number, in the background. The release itself then leaves a launcher in the state folder
(``swarm-mcp fetched``), which hooks and ``integrations/coordinator.sh`` start: never uv, which may ask the network.
"""

import os
import time

from swarm_hook_core import DISTRIBUTION, __version__
from swarm_hook_core.state import state_dir, write_private

AGAIN_SECONDS = 600  # between two attempts to fetch it
PLACES = ("~/.local/bin", "~/.cargo/bin", "/opt/homebrew/bin", "/usr/local/bin")  # of uv, beside those on PATH


def launcher() -> str:
    """Where the launcher of the fetched release is. It need not be there."""
    return os.path.join(state_dir(), "fetched", f"swarm-mcp-{__version__}")


def command() -> list:
    """The argv prefix of the fetched release; empty where there is none, or a person wants none."""
    path = launcher()
    if not os.access(path, os.X_OK):
        return []
    if not is_wanted():
        os.remove(path)  # the server's launcher cannot read settings
        return []
    return [path]


def is_wanted(prefix: str = "", folder: str = "") -> bool:
    """Whether uv may fetch the release, as far as a person has said."""
    from swarm_hook_core import settings

    return settings.uvx(prefix, folder).value != "off"


def uv() -> str:
    """The path of uv; empty where there is none."""
    for folder in (*os.environ.get("PATH", os.defpath).split(os.pathsep), *map(os.path.expanduser, PLACES)):
        path = os.path.join(folder, "uv")
        if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


def is_news(of_fetching: bool) -> bool:
    """Whether the user has not been told before that this release is fetched, or that none is; from now on it has."""
    told = f"{launcher()}.told" if of_fetching else os.path.join(os.path.dirname(launcher()), "told-none")
    if os.path.exists(told):
        return False
    try:
        write_private(told, "")
    except OSError:
        pass  # nowhere to remember it: it is said again
    return True


def fetch() -> None:
    """Have uv fetch the release, by a process that nobody waits for; nothing where that was tried a while ago.

    Raises OSError.
    """
    program, tried = uv(), f"{launcher()}.tried"
    if not program or (os.path.exists(tried) and 0 <= time.time() - os.stat(tried).st_mtime < AGAIN_SECONDS):
        return
    write_private(tried, "")
    from swarm_hook_core.spawn import start_detached

    # From a folder that no repository has a say in.
    line = 'cd / && exec "$0" tool run --quiet --from "$1" swarm-mcp fetched >"$2" 2>&1'
    start_detached(["/bin/sh", "-c", line, program, f"{DISTRIBUTION}=={__version__}", log()])


def log() -> str:
    """Where uv says what became of the last attempt to fetch the release. It need not be there."""
    return f"{launcher()}.log"
