"""The places of this user's state and settings, and the small private files of the state.

The folders follow platformdirs' ``user_state_dir("swarm-mcp")`` and its like, restated here because hooks and the
doctor have the standard library only; tests hold them together. Everything is created with mode 0700.
"""

from __future__ import annotations

import os
import sys
import time

from swarm_hook_core import process

DEFAULT_STORE = "~/.swarm-mcp/swarm.db"
LONGEST_MARK = 1024  # bytes
LONGEST_SOCKET = 100  # bytes of a socket's path; systems take 104 or 108
TURN_SECONDS = 600  # after the last write of a turn that goes on, a file is free (``traces.turn_files``)
# Clients with one more shell between them and a hook, or perhaps with one.
SHELL_BETWEEN = ("auggie", "copilot", "cursor", "gemini", "grok", "letta", "qwen")
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")


def state_dir() -> str:
    """The private state folder (``SWARM_STATE_DIR`` overrides). It need not exist yet."""
    return user_folder("SWARM_STATE_DIR", "XDG_STATE_HOME", "~/.local/state")


def config_dir() -> str:
    """The folder of ``config.json`` (``SWARM_CONFIG_DIR`` overrides). It need not exist."""
    return user_folder("SWARM_CONFIG_DIR", "XDG_CONFIG_HOME", "~/.config")


def data_dir() -> str:
    """The folder of what `swarm-mcp install` hands to clients. On Windows the name of its author is left out."""
    if os.name == "nt":
        return os.path.dirname(user_folder("", "XDG_DATA_HOME", "~/.local/share"))
    return user_folder("", "XDG_DATA_HOME", "~/.local/share")


def has_settings() -> bool:
    """Return True if this user has a file of settings (``settings``)."""
    try:
        os.stat(config_path())
    except (OSError, ValueError):
        return False  # none, or a path that cannot be
    return True


def config_path() -> str:
    """The file of a person's settings (``settings``). It need not exist."""
    return os.path.join(config_dir(), "config.json")


def user_folder(override: str, base_variable: str, base: str) -> str:
    """Return our folder of one kind: the value of the variable `override` (may be empty), else the platform's place.

    On Linux that is the folder in `base_variable`, if it is absolute, else `base`.
    """
    return process.once_a_call((override, base_variable), lambda: _user_folder(override, base_variable, base))


def _user_folder(override: str, base_variable: str, base: str) -> str:
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
    """Return the folder of records of watched calls (``watching.records``). It exists only while there are some."""
    return os.path.join(state_dir(), "watched")


def edited_dir() -> str:
    """Return the folder with the last edit of each session that edits beside locks of others."""
    return os.path.join(state_dir(), "watched-edits")


def acting_dir() -> str:
    """Return the folder of the marks that holders leave of their own writes while files are being compared."""
    return os.path.join(state_dir(), "acting")


def is_watching() -> bool:
    """Return True if a call is being watched, or locked files around an edit."""
    return os.path.isdir(watched_dir()) or os.path.isdir(edited_dir())


def awaited_dir() -> str:
    """Return the folder of sessions with calls that others wait for (``traces.endings``). It exists only meanwhile."""
    return os.path.join(state_dir(), "awaited")


def ended_mark(client_pid: int = 0) -> str:
    """Return the file whose mtime is the end of a client's last call, as its hook after a call has left it.

    `client_pid`: the client's process, as of `hook_starter`; by default the one that has started this hook.
    """
    return os.path.join(state_dir(), "ended", str(client_pid or process.caller_parent()))


def hook_starter(runtime: str) -> int:
    """Return the process of the client that has started this hook."""
    pid = process.caller_parent()
    if runtime in SHELL_BETWEEN:
        from swarm_hook_core.process import above_shell

        pid = above_shell(pid)
    return pid


def end_by_mark(client_pid: int = 0) -> tuple[int, str, str]:
    """Return ``(time (ns), session id, agent)`` of the end of a client's last call; 0 without a mark.

    A mark by ``hook.sh`` is empty. A plugin's mark names the session and its agent: one process has several.
    """
    path = ended_mark(client_pid)
    try:
        found = os.stat(path)
        if not found.st_size:
            return found.st_mtime_ns, "", ""
        session_id, _, agent = read_private(path, LONGEST_MARK).decode("utf-8", "surrogateescape").partition("\0")
        return found.st_mtime_ns, session_id, agent
    except OSError:
        return 0, "", ""  # no hook has left one, or its end is noted


def client_note(name: str) -> str:
    """Return the file with the client of the session whose journal has this `name` (``traces.transcript``)."""
    return os.path.join(state_dir(), "ended", name)


def is_awaited() -> bool:
    """Return True if a session waits for the end of a call. Costs one look at the disk."""
    return os.path.isdir(awaited_dir())


def turn_mark() -> str:
    """Return the file whose time is the last time at which a write took a file for its turn (``traces.turn_files``)."""
    return os.path.join(state_dir(), "turn-files")


def has_turn_files() -> bool:
    """Return True if a session may have a file for its turn. Costs one look at the disk."""
    try:
        return abs(time.time() - os.stat(turn_mark()).st_mtime) <= TURN_SECONDS
    except OSError:
        return False  # no session here was ever at level `turn`


def has_plans(session_id: str = "") -> bool:
    """Return True if the kernel holds files for calls of this session (empty for any session). Costs one look."""
    return os.path.isdir(os.path.join(state_dir(), "kernel", name_of(session_id) if session_id else ""))


def clones_dir() -> str:
    """Return the folder of clones on this machine that share their locks with other machines."""
    return os.path.join(state_dir(), "team", "clones")


def team_socket() -> str:
    """Return where the team agent listens: in the state folder, or where that has too long a name, in a private one."""
    path = os.path.join(state_dir(), "team", "agent.sock")
    if len(os.fsencode(path)) <= LONGEST_SOCKET:
        return path
    from zlib import crc32

    user = os.getuid() if hasattr(os, "getuid") else 0
    return f"/tmp/swarm-team-{user}-{crc32(os.fsencode(path)):08x}/agent.sock"


def shares_locks() -> bool:
    """Return True if a clone on this machine shares its locks with other machines. Costs one look at the disk."""
    return os.path.isdir(clones_dir())


def store_path() -> str:
    """The coordinator's database file: ``SWARM_DB_PATH``, else ``~/.swarm-mcp/swarm.db``."""
    return process.once_a_call("store", lambda: absolute_setting("SWARM_DB_PATH") or os.path.expanduser(DEFAULT_STORE))


def local_store() -> str:
    """Return the path of the coordinator's database file, empty if missing. Raises OSError as `refuse_link` does."""
    path = store_path()
    refuse_link(path)
    if os.path.isfile(path):
        return path
    return ""


def refuse_link(path: str) -> None:
    """Raise OSError if the store is a symbolic link: it may lead into any file.

    A link on the way there, such as a folder's, is a person's own arrangement.
    """
    if os.path.islink(path):
        real = os.path.realpath(path)
        raise OSError(f"{path} is a symbolic link, which is not followed; if it is yours, set SWARM_DB_PATH to {real}")


def absolute_setting(variable: str) -> str:
    """Return the path in an environment variable; empty if it is not set.

    A relative path counts from the home folder. Hooks run in many folders, and must all mean the same place.
    """
    value = os.environ.get(variable, "").strip()
    if not value or os.path.isabs(value):
        return value and os.path.normpath(value)
    return os.path.normpath(os.path.join(os.path.expanduser("~"), os.path.expanduser(value)))


def name_of(word: str) -> str:
    """The name of a file or folder for an id from outside: the id where it is plain, else one that begins with `_`."""
    if word and len(word) <= 64 and not set(word) - PLAIN:
        return word
    from binascii import crc32

    raw = word.encode("utf-8", "surrogatepass")
    return f"_{raw[:24].hex()}_{len(raw)}_{crc32(raw):08x}"


def mark_of(path: str, like: str = "") -> str:
    """Return a text that changes with the file at `path`; with `like` from a store, only once it is another file."""
    try:
        found = os.stat(path)
    except OSError:  # missing
        return "-"
    if like.startswith("@"):
        return f"@{found.st_dev}:{found.st_ino}"
    return f"{found.st_mtime_ns}:{found.st_size}:{found.st_ino}"


def make_private(folder: str) -> None:
    """Create `folder` and the missing folders above it, closed to other users.

    An existing folder is closed too if its name says it is ours: a setting may point at any folder. Raises OSError,
    also for a folder of another user.
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


def write_private(path: str, text: str) -> os.stat_result:
    """Replace `path` by `text` in one step, readable by this user alone; return the new file's state."""
    try:
        make_private(os.path.dirname(path))  # an existing folder is closed to others, too
    except FileNotFoundError:
        pass  # another process has just removed it: it is made again below
    scratch = f"{path}.{os.getpid()}.tmp"
    try:
        handle = open_in_private(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            write_all(handle, text.encode("utf-8", "surrogateescape"))
            written = os.fstat(handle)
        finally:
            os.close(handle)
        os.replace(scratch, path)
        return written
    except OSError:
        if os.path.lexists(scratch):
            os.remove(scratch)
        raise


class NotOrdinary(OSError):
    """A folder, a link, a pipe or a device is in the place of a file of ours."""


_UNBLOCKED = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_LINK, _NO_READER = 40 if sys.platform == "linux" else 62, 6  # ELOOP; ENXIO, of a pipe or a socket


def open_private(path: str, flags: int, follows: bool = False, folder: int | None = None) -> int:
    """Open an ordinary file of ours, made for this user alone. Never waits, not even for a pipe's other end.

    `follows`: a person may have put a symbolic link there; `folder`: as ``dir_fd`` of ``os.open``. Raises NotOrdinary
    for anything but a plain file.
    """
    if follows:
        unblocked = _UNBLOCKED & ~getattr(os, "O_NOFOLLOW", 0)
    else:
        unblocked = _UNBLOCKED
    try:
        handle = os.open(path, flags | unblocked, 0o600, dir_fd=folder)
    except IsADirectoryError as error:
        raise _not_ordinary(path) from error
    except OSError as error:
        if error.errno in (_LINK, _NO_READER):
            raise _not_ordinary(path) from error
        raise
    try:
        if os.fstat(handle).st_mode & 0o170000 != 0o100000:
            raise _not_ordinary(path)
    except OSError:
        os.close(handle)
        raise
    return handle


def _not_ordinary(path: str) -> NotOrdinary:
    return NotOrdinary(f"{path} is no ordinary file")


def read_private(path: str, limit: int, follows: bool = False) -> bytes:
    """Return the first `limit` bytes of a file of ours, opened as `open_private` does. Raises OSError."""
    handle = open_private(path, os.O_RDONLY | getattr(os, "O_BINARY", 0), follows)
    try:
        return read_all(handle, limit)
    finally:
        os.close(handle)


def read_all(handle: int, limit: int) -> bytes:
    """Return the rest of an open file, at most `limit` bytes. One call to the system may give less."""
    parts = []
    while limit > 0 and (part := os.read(handle, min(limit, 1 << 20))):
        parts.append(part)
        limit -= len(part)
    if len(parts) == 1:
        return parts[0]
    return b"".join(parts)


def clear_place(path: str) -> None:
    """Remove an empty folder, a link or a pipe in the place of a file of ours. Raises OSError.

    All of these are empty. An ordinary file stays, and so does a folder with something in it.
    """
    kind = os.lstat(path).st_mode & 0o170000
    if kind == 0o040000:
        os.rmdir(path)
    elif kind != 0o100000:
        os.remove(path)


MOST_ATTEMPTS = 100  # to make a file in a folder that other processes remove whenever it is empty


def open_in_private(path: str, flags: int) -> int:
    """`open_private`; the folder of `path` is made if it is missing. Mostly that costs nothing."""
    for _ in range(MOST_ATTEMPTS):
        try:
            return open_private(path, flags)
        except FileNotFoundError:
            try:
                make_private(os.path.dirname(path))
            except FileNotFoundError:
                continue  # another process has just removed it, or the folder above it
    return open_private(path, flags)


def write_all(handle: int, data: bytes) -> None:
    """Write all of `data`: one call to the system may take less."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def lock_alone(handle: int, seconds: float = 0.5) -> None:
    """Lock an open file or folder until it is closed; on Windows there are no such locks.

    Raises OSError if another process keeps it locked for `seconds`: it may have been stopped.
    """
    try:
        import fcntl
    except ImportError:
        return  # Windows
    end = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > end:
                raise
        time.sleep(0.002)


def append_line(path: str, line: str, limit: int) -> None:
    """Add `line` to a private file; one that is longer than `limit` bytes then gets ``.1`` appended. Raises OSError."""
    make_private(os.path.dirname(path))
    handle = open_in_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        # One write call: lines of hooks that write at the same moment do not mix.
        os.write(handle, line.encode("utf-8", "backslashreplace") + b"\n")
        if os.fstat(handle).st_size > limit:
            rotate(path, handle)
    finally:
        os.close(handle)


def rotate(path: str, handle: int) -> None:
    """Rename the file at `path`, open as `handle`, to ``.1``, unless another process did so just now."""
    try:
        lock_alone(handle)  # Windows has none: two processes at once may rename it twice
    except OSError:
        return  # another process is at it, or was stopped there: a later one comes by again
    if is_at(path, handle):
        os.replace(path, path + ".1")


def is_at(path: str, handle: int) -> bool:
    """Return True if the file open as `handle` is still at `path`: it may have been renamed, or removed."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False  # there is none


def remove_older(folder: str, before: float) -> None:
    """Remove the files in a folder that were last changed before then, in Unix seconds."""
    try:
        names = os.listdir(folder)
    except OSError:  # there is no such folder
        return
    for name in names:
        path = os.path.join(folder, name)
        try:
            if os.lstat(path).st_mtime < before:
                os.remove(path)
        except OSError:  # another process was faster
            continue


# The record of faults inside hooks, which themselves stay silent. Its size is bounded.
#
# One JSON object a line: ``{"at": unix seconds, "runtime", "hook", "fault"}``. `swarm-mcp doctor` shows the newest.

LIMIT_BYTES = 128 * 1024
HOUR = 3600


def fault_log() -> str:
    """Path of the record; the one before it has ``.1`` appended."""
    return os.path.join(state_dir(), "faults.jsonl")


def record(runtime: str, hook: str, fault: str | BaseException) -> None:
    """Add one line. Never raises, since the caller has no one to tell."""
    try:
        if isinstance(fault, BaseException):
            fault = describe(fault)
        from swarm_hook_core.json_text import dumps

        line = dumps({"at": int(time.time()), "runtime": runtime, "hook": hook, "fault": fault[:500]})
        append_line(fault_log(), line, LIMIT_BYTES)
    except Exception:  # there is no one left to tell
        return


def record_hourly(runtime: str, hook: str, fault: str | BaseException) -> None:
    """Record a fault that every check would meet: once an hour at most."""
    try:
        if time.time() - os.stat(fault_log()).st_mtime < HOUR:
            return
    except OSError:
        pass  # no fault yet
    record(runtime, hook, fault)


def describe(error: BaseException) -> str:
    """An exception in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
