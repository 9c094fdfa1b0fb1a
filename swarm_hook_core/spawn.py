"""Start programs without ``subprocess``, which costs as much to import as a whole check."""

import os
import time

LONGEST_OUTPUT = 32 * 1024 * 1024  # bytes; a program with more output is no answer


class Result:
    """The end of a command. `code` is None if it could not be started or ran out of time."""

    __slots__ = ("code", "stdout", "stderr")

    def __init__(self, code: "int | None", stdout: str = "", stderr: str = ""):
        self.code = code
        self.stdout = stdout
        self.stderr = stderr


def run(
    argv: list[str], seconds: float, leave_running: bool = False, stdin: str = "",
    environment: "dict[str, str] | None" = None,
) -> Result:  # fmt: skip
    """Run `argv` on the text `stdin`, for at most `seconds`, with `environment` added to ours.

    Out of time, its whole process group is killed, or left to finish where `leave_running`.
    """
    if os.name != "posix":
        return _run_portably(argv, seconds, stdin, {**os.environ, **(environment or {})})
    in_read, in_write = os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY), None)
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    handles = [handle for handle in (out_read, err_read, in_write) if handle is not None]
    try:
        pid = os.posix_spawnp(
            argv[0],
            argv,
            {**os.environ, **(environment or {})},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, in_read, 0),
                (os.POSIX_SPAWN_DUP2, out_write, 1),
                (os.POSIX_SPAWN_DUP2, err_write, 2),
            ],
            setpgroup=0,
        )
    except OSError as error:
        for handle in handles:
            os.close(handle)
        return Result(None, stderr=f"{argv[0]}: {error.strerror}")
    finally:
        for handle in (in_read, out_write, err_write):
            os.close(handle)
    end = time.monotonic() + seconds
    stdout, stderr, is_whole = _exchange(handles, stdin, end)
    code = _reap(pid, end)
    for handle in handles:  # not before: a program that goes on to write would be ended by that
        os.close(handle)
    if (code is None or not is_whole) and not leave_running:
        _kill_group(pid)  # also children of a wrapper that has ended, which hold our pipe
    if code is None:
        return Result(None, stdout, stderr or f"no answer within {seconds:g} s")
    return Result(code, stdout, stderr)


def _exchange(handles: list[int], stdin: str, end: float) -> tuple[str, str, bool]:
    """Write `stdin` to a program and read its output and errors, until `end` (monotonic).

    `handles`: our ends of the pipes for output, errors and, with a text to write, input. That one is closed, and taken
    off the list, once all is written. Return both texts, and True if the program has closed its ends.
    """
    import select

    received: dict[int, list[bytes]] = {pipe: [] for pipe in handles[:2]}
    poll = select.poll()
    for pipe in received:
        poll.register(pipe, select.POLLIN | select.POLLHUP)
    to_give = memoryview(stdin.encode("utf-8", "surrogateescape"))
    for in_write in handles[2:]:
        os.set_blocking(in_write, False)  # a program that does not read must not block us
        poll.register(in_write, select.POLLOUT)
    open_pipes, size = set(received), 0
    while open_pipes and size <= LONGEST_OUTPUT:
        left = end - time.monotonic()
        if left <= 0:
            break
        for handle, _event in poll.poll(max(1, int(left * 1000))):
            if handle not in received:
                to_give = _give(handle, to_give)
                if not to_give:
                    poll.unregister(handle)
                    os.close(handle)
                    handles.remove(handle)
                continue
            chunk = os.read(handle, 65536)
            size += len(chunk)
            if chunk and size <= LONGEST_OUTPUT:
                received[handle].append(chunk)
            else:
                poll.unregister(handle)
                open_pipes.discard(handle)
    stdout, stderr = [b"".join(parts).decode("utf-8", "surrogateescape") for parts in received.values()]
    return stdout, stderr, not open_pipes


def start_detached(argv: list[str]) -> None:
    """Start `argv` and forget it: no input, no output, a session of its own. Raises OSError."""
    if os.name != "posix":
        import subprocess

        null = subprocess.DEVNULL
        subprocess.Popen(argv, stdin=null, stdout=null, stderr=null, start_new_session=True)
        return
    # On its own standard streams a client would wait for the child; in its group it would kill it.
    streams = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
        (os.POSIX_SPAWN_DUP2, 0, 1),
        (os.POSIX_SPAWN_DUP2, 0, 2),
    ]
    environment = {**os.environ}
    try:
        os.posix_spawnp(argv[0], argv, environment, file_actions=streams, setsid=True)
    except NotImplementedError:
        os.posix_spawnp(argv[0], argv, environment, file_actions=streams, setpgroup=0)


def _give(handle: int, data: memoryview) -> memoryview:
    """Write some of `data` and return the rest; empty once the reader is gone."""
    try:
        return data[os.write(handle, data) :]
    except BlockingIOError:  # the pipe is full
        return data
    except OSError:  # the reader is gone
        return data[:0]


def _reap(pid: int, end: float) -> "int | None":
    """Return the exit code of `pid`, waited for until `end` (monotonic), else None."""
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= end:
            return None
        time.sleep(0.002)


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, 9)
        os.waitpid(pid, 0)
    except OSError:  # it has ended already
        return


def _run_portably(argv: list[str], seconds: float, stdin: str, environment: dict[str, str]) -> Result:
    import subprocess

    try:
        done = subprocess.run(
            argv, input=stdin, env=environment, capture_output=True, timeout=seconds, encoding="utf-8", errors="replace"
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:  # not started, or too slow
        return Result(None, stderr=str(error))
    return Result(done.returncode, done.stdout, done.stderr)
