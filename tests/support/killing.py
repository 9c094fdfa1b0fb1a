"""Work that is killed at one of its steps, as by ``kill -9``."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from swarm_mcp.changes.commit import Commit

STEPS = ("subprocess.Popen", "os.rename", "os.link", "os.remove", "os.mkdir", "os.chmod", "os.utime")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
MOST = 140  # more steps than a commit of the tests has


def is_step(event: str, given: tuple[object, ...]) -> bool:
    """Return True for an audit event of a program that starts, or of a file that changes."""
    if event == "open":
        return isinstance(given[0], str) and bool(int(given[2]) & WRITES)  # type: ignore[call-overload]
    return event in STEPS


def killed_at(commit: Commit, step: int) -> bool:
    """Commit in a process that kills itself before that `step`. Return False if it ended before."""
    left = [step]

    def hook(event: str, given: tuple[object, ...]) -> None:
        if is_step(event, given):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    return _killed(commit.make, lambda: sys.addaudithook(hook))


def changing_steps(commit: Commit, seen: Callable[[], object]) -> list[int]:
    """Commit in a forked process. Return the steps before which `seen` is another than before the step ahead of them.

    A kill before any other step leaves the same as one before the step ahead of it. The start of a guardian counts, too.
    """
    source, sink = os.pipe()
    step, begun, last = 0, False, seen()

    def hook(event: str, given: tuple[object, ...]) -> None:
        nonlocal step, begun, last
        if is_step(event, given):
            step += 1
            found = begun, seen()
            if found != last:
                last = found
                os.write(sink, f"{step}\n".encode())
            begun = begun or (event == "subprocess.Popen" and "guardian" in str(given[1]))

    assert not _killed(commit.make, lambda: sys.addaudithook(hook))
    os.close(sink)
    with open(source) as file:
        return [int(line) for line in file]


# Calls that change nothing that another process could see: a kill before one is a kill before the next one.
LOOKING = frozenset(
    "fspath fsencode fsdecode getpid getppid stat lstat fstat readlink listdir scandir access read readinto readall"
    " seek tell fileno isatty kill getcwd is_dir _path_normpath __exit__".split()
)


def killed_before_call(work: Callable[[], object], step: int) -> bool:
    """Work in a process that kills itself before its system call of that number. Return False if it ended before.

    A system call is a call of a function of ``os`` or of a method of an open file, but for those that only look.
    """
    left = [step]

    def profile(_frame: FrameType, event: str, called: object) -> None:
        if event == "c_call" and _is_system_call(called):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    return _killed(work, lambda: sys.setprofile(profile))


def _is_system_call(called: object) -> bool:
    owner = getattr(called, "__module__", None) or type(getattr(called, "__self__", None)).__module__
    return owner in ("posix", "_io", "io", "fcntl") and getattr(called, "__name__", "") not in LOOKING


def _killed(work: Callable[[], object], prepare: Callable[[], object]) -> bool:
    """Work in a forked process after `prepare`. Return True if it was killed, False if it ended by itself."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            prepare()
            work()
            sys.setprofile(None)
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, 1, -signal.SIGKILL)
    return code < 0
