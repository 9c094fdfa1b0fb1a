"""Where this user's state and settings live, and the small private files of the state.

The folders follow platformdirs' ``user_state_dir("swarm-mcp")`` and ``user_config_dir``, restated here because
hooks have the standard library only; tests hold them together. Everything is created with mode 0700.
"""

import os
import sys


def state_dir() -> str:
    """The private state folder (``SWARM_STATE_DIR`` overrides). It need not exist yet."""
    return user_folder("SWARM_STATE_DIR", "XDG_STATE_HOME", "~/.local/state")


def config_dir() -> str:
    """The folder of ``config.json`` (``SWARM_CONFIG_DIR`` overrides). It need not exist."""
    return user_folder("SWARM_CONFIG_DIR", "XDG_CONFIG_HOME", "~/.config")


def user_folder(override: str, base_variable: str, base: str) -> str:
    """Our folder of one kind: as the variable `override` says, else in the platform's place for it.

    On Linux that is the folder in `base_variable`, where it is absolute, else `base`.
    """
    chosen = absolute_setting(override)
    if chosen:
        return chosen
    given = os.environ.get(base_variable, "").strip()
    if os.path.isabs(given) and os.name != "nt":
        return os.path.join(given, "swarm-mcp")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/swarm-mcp")
    if os.name == "nt":
        given = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
        return os.path.join(given, "swarm-mcp", "swarm-mcp")
    return os.path.expanduser(f"{base}/swarm-mcp")


def watched_dir() -> str:
    """Where calls that are being watched have their records (``watching.records``): there only while some are."""
    return os.path.join(state_dir(), "watched")


def store_path() -> str:
    """The coordinator's database file: ``SWARM_DB_PATH``, else ``~/.swarm-mcp/swarm.db``."""
    return absolute_setting("SWARM_DB_PATH") or os.path.expanduser("~/.swarm-mcp/swarm.db")


def absolute_setting(variable: str) -> str:
    """The path in an environment variable; empty where it is not set.

    A relative one counts from the home folder: hooks run in many folders, which must all mean the same, and
    none of which is ours to write into.
    """
    value = os.environ.get(variable, "").strip()
    if not value:
        return ""
    return os.path.normpath(os.path.join(os.path.expanduser("~"), os.path.expanduser(value)))


def make_private(folder: str) -> None:
    """Create `folder` and what is missing above it, closed to other users.

    A folder that is there already is closed too where its name says it is ours: a setting may point
    at any folder. Raises OSError, also where somebody else owns it.
    """
    parent = os.path.dirname(folder)
    if parent and not os.path.isdir(parent):
        make_private(parent)
    try:
        os.mkdir(folder, 0o700)
        os.chmod(folder, 0o700)  # the process's umask may have taken our own rights as well
        return
    except FileExistsError:
        found = os.lstat(folder)
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o170000 != 0o040000):
        raise PermissionError(f"{folder} belongs to somebody else")
    if found.st_mode & 0o077 and "swarm" in os.path.basename(folder):
        os.chmod(folder, 0o700)


def write_private(path: str, text: str) -> None:
    """Replace `path` by `text` in one step, readable by this user alone."""
    make_private(os.path.dirname(path))
    scratch = f"{path}.{os.getpid()}.tmp"
    try:
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            write_all(handle, text.encode("utf-8", "surrogateescape"))
        finally:
            os.close(handle)
        os.replace(scratch, path)
    except OSError:
        if os.path.lexists(scratch):
            os.remove(scratch)
        raise


def write_all(handle: int, data: bytes) -> None:
    """Write all of `data`: one call to the system may take less."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
