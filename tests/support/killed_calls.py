"""A process that is killed as it enters its n-th system call, by ptrace: Linux alone has it in this form."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

TRACEME, SYSCALL, SETOPTIONS = 0, 24, 0x4200
SYSGOOD, EXITKILL = 1, 0x100000
STOPPED = signal.SIGTRAP | 0x80  # the signal of a stop at a system call
CAN_TRACE = sys.platform == "linux"
# Loaded here: between fork and exec another thread of the fork's parent may hold the loader's lock, for ever.
LIBC = ctypes.CDLL(None, use_errno=True)


def _ptrace(request: int, pid: int, data: int = 0) -> None:
    words = (ctypes.c_long(request), ctypes.c_long(pid), ctypes.c_void_p(None), ctypes.c_void_p(data))
    if LIBC.ptrace(*words) == -1:
        raise OSError(ctypes.get_errno(), "ptrace")


def killed_at(work: Callable[[], int], number: int) -> int | None:
    """Do the work in a fork of this process, and kill it as it enters that system call.

    Return the work's number, or None after the kill.
    """
    pid = os.fork()
    if not pid:
        try:
            _ptrace(TRACEME, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            os._exit(work())
        finally:
            os._exit(99)
    _pid, status = os.waitpid(pid, 0)
    assert os.WIFSTOPPED(status), status
    _ptrace(SETOPTIONS, pid, SYSGOOD | EXITKILL)
    stops, passed_on = 0, 0
    while True:
        _ptrace(SYSCALL, pid, passed_on)
        _pid, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        passed_on = os.WSTOPSIG(status)
        if passed_on == STOPPED:
            passed_on, stops = 0, stops + 1
            if stops == 2 * number - 1:  # each call stops twice: as it begins and as it ends
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return None
