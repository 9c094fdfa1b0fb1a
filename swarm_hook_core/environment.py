"""The settings a hook takes from its environment, each with its order of precedence.

PFX stands for the runtime's own prefix (``CC``, ``CODEX``). A blank value counts as unset. Session and folder come from
the hook's payload, never from here: Codex's shared daemon gives every session the environment of the terminal that
started it.
"""

from __future__ import annotations

import os

from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.json_text import loads_object
from swarm_hook_core.process import client_process, run
from swarm_hook_core.state import read_private, state_dir, write_private

DEFAULT_LEASE_SECONDS = 86400
ON = ("1", "true", "yes", "on")
LARGEST_FILE = 16384  # characters of a role or a tracker
_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


def first_set(*names: str) -> str:
    """The first non-blank value among these variables, trimmed; else empty."""
    for name in names:
        value = os.environ.get(name, "").strip()
        if value:
            return value
    return ""


def is_on(name: str) -> bool:
    """Return True if a variable is 1, true, yes or on, in any case."""
    return first_set(name).lower() in ON


def is_word(text: str) -> bool:
    """Return True if `text` can stand in a label as one token's value."""
    return bool(text) and not set(text) - _WORD


def identity(prefix: str) -> str:
    """Return the identity this session works under, without ``identity:``; may be empty."""
    name = first_set(f"SWARM_{prefix}_IDENTITY", "SWARM_HERMES_IDENTITY", "AGENT_IDENTITY", "SWARM_IDENTITY")
    if name.startswith("identity:"):
        name = name[len("identity:") :]
    if is_word(name):
        return name
    return ""


def scope(prefix: str) -> str:
    """The scope the user chose; empty where the coordinator should take the git root."""
    return first_set(f"SWARM_{prefix}_SCOPE", "SWARM_HERMES_SCOPE", "SWARM_MCP_SCOPE")


def file_root(prefix: str) -> str:
    """Return the folder that really has this session's files, for worktrees that stand for another folder."""
    return first_set(f"SWARM_{prefix}_FILE_ROOT", "SWARM_HERMES_FILE_ROOT", "SWARM_MCP_FILE_ROOT")


def label_override(prefix: str) -> str:
    """Return a label that replaces the composed one; may be empty."""
    return " ".join(first_set(f"SWARM_{prefix}_LABEL", "SWARM_HERMES_LABEL").split())


def mode(prefix: str) -> str:
    """``gateway`` or ``worker``."""
    value = first_set(f"SWARM_{prefix}_ROLE", "SWARM_ROLE").lower()
    if value == "gateway":
        return value
    return "worker"


def role(prefix: str, cwd: str, chosen_scope: str) -> str:
    """Return the routing role of a session in `cwd`; may be empty.

    The runtime's variable, then the nearest ``.swarm-role`` file up to the scope, then ``SWARM_AGENT_ROLE``, then
    ``planner`` for a gateway.
    """
    value = (
        first_set(f"SWARM_{prefix}_AGENT_ROLE")
        or nearest_file(cwd, chosen_scope, ".swarm-role")
        or first_set("SWARM_AGENT_ROLE")
        or ("planner" if mode(prefix) == "gateway" else "")
    ).lower()
    if is_word(value) and value != "worker":
        return value
    return ""


def lease_seconds(prefix: str) -> int:
    """Return the seconds for which a silent session keeps its locks; 0 for no limit."""
    value = first_set(f"SWARM_{prefix}_LEASE_SECONDS", "SWARM_LEASE_SECONDS")
    try:
        if value:
            return max(0, int(value))
        return DEFAULT_LEASE_SECONDS
    except ValueError:  # no number
        return DEFAULT_LEASE_SECONDS


def pane() -> str:
    """Return the herdr pane this process was started in; may be empty."""
    return first_set("HERDR_PANE_ID", "HERDR_PANE")


def nearest_file(cwd: str, top: str, *names: str) -> str:
    """Return the text of the nearest file of one of these names, from folder `cwd` up to `top`; may be empty.

    JSON is returned whole, of any other file the first line that is no comment.
    """
    folder, top = os.path.abspath(cwd) if cwd else "", os.path.abspath(top) if top else ""
    while folder:
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):  # a pipe of that name would keep us waiting
                return _said_in(path)
        parent = os.path.dirname(folder)
        if folder in (top, parent):
            return ""
        folder = parent
    return ""


def _said_in(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(LARGEST_FILE).strip()
    except OSError:  # it has just gone
        return ""
    if text.startswith("{"):
        return text
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in lines if line and not line.startswith("#")), "")


# The release of the client that started this hook: some of its ways are only known for certain releases.

SECONDS = 1.0  # for a client's answer
INTERPRETERS = ("node", "bun", "deno")
PARENTS = 5  # folders above a script that may have its package's file
LONGEST = 64 * 1024  # bytes of a command line


def client_version(config: RuntimeConfig) -> str:
    """Return the release of the client that started this hook, or ""; asked once for each program file."""
    pid, _ = client_process(config.client_marks)
    program = ""
    if os.path.isdir("/proc/self"):
        program = f"/proc/{pid}/exe"
    try:
        state = os.stat(program)
        if os.path.basename(os.readlink(program)) in INTERPRETERS:
            return _of_package(pid)
    except OSError:
        return ""  # the client has ended, or is not visible
    mark = f"{state.st_dev} {state.st_ino} {state.st_mtime_ns}"
    known = os.path.join(state_dir(), "kernel", f"{config.runtime_name}-version")
    try:
        noted, _, version = read_private(known, 1000).decode().partition("\n")
        if noted == mark:
            return version
    except (OSError, ValueError):
        pass  # not asked yet

    output = run([os.readlink(program), "--version"], SECONDS).stdout.split()
    version = next((word for word in output if word[:1].isdigit()), "").rstrip(".")
    write_private(known, f"{mark}\n{version}")
    return version


def _of_package(pid: int) -> str:
    """Return the version of the package with the script that the interpreter `pid` runs, or "". Raises OSError."""
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = os.fsdecode(file.read(LONGEST)).split("\0")
    script = next((word for word in words[1:] if word[:1] not in ("", "-")), "")
    folder = os.path.dirname(os.path.realpath(os.path.join(f"/proc/{pid}/cwd", script)))
    for _ in range(PARENTS):
        path = os.path.join(folder, "package.json")
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="surrogateescape") as text:
                version = loads_object(text.read()).get("version")
            if isinstance(version, str):
                return version  # else a file that only says how to load scripts
        folder = os.path.dirname(folder)
    return ""
