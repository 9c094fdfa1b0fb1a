"""Running one command as a client does, and its cost.

Time and memory are taken in different runs. Time needs the cheapest start of the system, and that start (``vfork``)
makes Linux count the parent's memory as the child's: ``ru_maxrss`` of a child never falls below its parent's resident
size. Memory is therefore measured by a small launcher that forks.
"""

import os
import subprocess
import sys
import time
from typing import NamedTuple

# Forks, so that the child starts from the few anonymous pages of this bare interpreter, and reports the peak of the
# child and of its own children.
_LAUNCHER = """\
import posix as os, sys
pid = os.fork()
if not pid:
    os.execve(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
os.write(int(sys.argv[1]), b"%d" % usage.ru_maxrss)
os._exit(os.waitstatus_to_exitcode(status) & 255)
"""


class Ran(NamedTuple):
    """One run: wall-clock `seconds` from start to reaped, `cpu` seconds (children included), exit `code`, standard
    `output`.
    """

    seconds: float
    cpu: float
    code: int
    output: bytes


def run(argv: list[str], payload: bytes, env: dict[str, str], cwd: str, *, is_quiet: bool = False) -> Ran:
    """Start `argv` (first word an absolute path) in `cwd` with `payload` on standard input; wait for it.

    `payload` must fit a pipe (64 kB on Linux, 16 kB on macOS): it is there before the child starts. Errors are shown unless
    `is_quiet`.
    """
    source, feed = os.pipe()
    sink, out = os.pipe()
    os.write(feed, payload)
    os.close(feed)
    files: list[tuple[object, ...]] = [(os.POSIX_SPAWN_DUP2, source, 0), (os.POSIX_SPAWN_DUP2, out, 1)]
    if is_quiet:
        files.append((os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0))
    # posix_spawn has no working folder of its own; nothing else runs in this process meanwhile.
    os.chdir(cwd)
    began = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, env, file_actions=files)
    os.close(out)
    parts = []
    while part := os.read(sink, 65536):
        parts.append(part)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - began
    os.close(sink)
    os.close(source)
    return Ran(seconds, usage.ru_utime + usage.ru_stime, os.waitstatus_to_exitcode(status), b"".join(parts))


def peak_bytes(python: str, argv: list[str], payload: bytes, env: dict[str, str], cwd: str) -> tuple[int, bytes]:
    """Most memory that `argv` and its children had resident at once in one process, and its output."""
    source, sink = os.pipe()
    launcher = [python, "-I", "-S", "-c", _LAUNCHER, str(sink), *argv]
    done = subprocess.run(
        launcher, input=payload, stdout=subprocess.PIPE, env=env, cwd=cwd, pass_fds=[sink], check=True
    )
    os.close(sink)
    figure = int(os.read(source, 32))
    os.close(source)
    return (figure if sys.platform == "darwin" else figure * 1024), done.stdout
