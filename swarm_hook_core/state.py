"""Where this user's state lives, and the small private files in it.

The folders follow platformdirs' ``user_state_dir("swarm-mcp")``, restated here because hooks have
the standard library only; a test holds the two together. Everything is created with mode 0700.
"""

from __future__ import annotations

import os
import sys


def state_dir() -> str:
    """The private state folder (``SWARM_STATE_DIR`` overrides). It need not exist yet."""
    override = os.environ.get("SWARM_STATE_DIR", "").strip()
    if override:
        return os.path.abspath(override)
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/swarm-mcp")
    if os.name == "nt":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
        return os.path.join(base, "swarm-mcp", "swarm-mcp")
    base = os.environ.get("XDG_STATE_HOME", "").strip() or os.path.expanduser("~/.local/state")
    return os.path.join(base, "swarm-mcp")


def store_path() -> str:
    """The coordinator's database file: ``SWARM_DB_PATH``, else ``~/.swarm-mcp/swarm.db``."""
    override = os.environ.get("SWARM_DB_PATH", "").strip()
    return os.path.abspath(override or os.path.expanduser("~/.swarm-mcp/swarm.db"))


def make_private(folder: str) -> None:
    """Create `folder` and close it to other users. Raises OSError, also where it is not ours."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    found = os.lstat(folder)
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or (found.st_mode & 0o170000) != 0o040000):
        raise PermissionError(f"{folder} belongs to somebody else")
    if found.st_mode & 0o077:
        os.chmod(folder, 0o700)


def write_private(path: str, text: str) -> None:
    """Replace `path` by `text` in one step, readable by this user alone."""
    make_private(os.path.dirname(path))
    scratch = f"{path}.{os.getpid()}.tmp"
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(handle, text.encode("utf-8", "surrogateescape"))
    finally:
        os.close(handle)
    os.replace(scratch, path)
