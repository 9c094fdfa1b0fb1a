"""The release of the client that started this hook: some of its ways are only known for certain releases."""

from __future__ import annotations

import os

from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.json_text import loads_object
from swarm_hook_core.process import client_process
from swarm_hook_core.spawn import run
from swarm_hook_core.state import read_private, state_dir, write_private

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
