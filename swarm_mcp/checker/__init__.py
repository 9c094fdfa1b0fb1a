"""The checker: a process of the client's MCP server that has the hook core loaded and answers for the client's hooks.

    <state folder>/checkers/<pid>-<start>         the socket, named by the client's process
    <state folder>/checkers/<pid>-<start>.lock    held by the checker's server; has the server's pid
    <state folder>/checkers/<pid>-<start>.answered   the number of its answers, the time of all, and its processor time,
                                                  in nanoseconds
    <state folder>/checkers/alone                 hooks that ran as processes of their own: a time and the reason a line

The hook's command is a relay (``native/relay.c``, ``integrations/relay.py``). It finds the socket by its ancestors, and
is told that the checker begins (`BEGUN`). It sends the lengths of a head and of the payload, eight hexadecimal digits
each, the head, and the payload. The head is words with a NUL behind each: `WORDS`, then the relay's environment. The
answer is the exit status in two hexadecimal digits, the length of the output in eight, and the output. A closed
connection is no answer: the relay runs the hook as a process of its own.

A plugin that lives in its client's process asks without a relay (``integrations/checker.ts``): the parent is its own
process, and the end of its patience is "+" and nanoseconds from now.

`Keeper` is the server's side, ``process`` the checker, and the state of a call that it puts on.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time

from swarm_hook_core.process import start_time
from swarm_hook_core.state import make_private, open_in_private, state_dir
from swarm_mcp.installation import command_of, leave_relay

BEGUN = b"B"
SIZES = 16  # bytes
WORDS = ("release", "client", "event", "parent", "end", "folder")
LARGEST_HEAD = 16 * 1024 * 1024  # bytes
LARGEST_PAYLOAD = 1024 * 1024 * 1024
EVENTS = ("pre_tool_use", "post_tool_use", "turn", "subagent")  # a session's start and end are processes of their own


def checkers_dir() -> str:
    """Return the folder of the sockets. It need not exist."""
    return os.path.join(state_dir(), "checkers")


def name_of(client: tuple[int, str]) -> str:
    """Return the name of the socket for the process of a client, by its pid and start time."""
    return f"{client[0]}-{client[1]}"


def is_living(name: str) -> bool:
    """Return True if the client with this socket still runs."""
    pid, _, started = name.partition(".")[0].partition("-")
    return pid.isdecimal() and start_time(int(pid)) == started


# The server's side: the socket, and the checker's process. The first hook that asks starts it.


SHORTEST_LIFE = 1.0  # seconds; a checker that fails sooner is broken, and the next one waits
LONGEST_PAUSE = 60.0
WAITING = 64  # calls at once
LARGEST_NOTES = 32 * 1024  # bytes; relays end at twice as many
# Of glibc: the memory of a large block, such as a whole journal, goes back to the system with it. By default the first
# one raises this limit, and later ones stay among small blocks.
MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(128 * 1024)}
WORD = "checker"  # names the process in lists of processes


class Keeper:
    """Keeps the checker of the process `client`, pid and start time. `run` belongs in a daemon thread."""

    def __init__(self, client: tuple[int, str]):
        self._client = client
        self._pause = 0.0

    def run(self) -> None:
        """Have one checker answer for the client, as long as this server lives; never returns but after a fault."""
        try:
            if self._client[0] and self._client[1] and hasattr(os, "posix_spawn"):
                self._keep()
        except OSError as error:  # hooks run as processes
            print(f"swarm-mcp serve: checker: {error}", file=sys.stderr)

    def _keep(self) -> None:
        import fcntl

        folder, name = checkers_dir(), name_of(self._client)
        make_private(folder)
        os.chmod(folder, 0o700)
        lock = open_in_private(os.path.join(folder, f"{name}.lock"), os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX)  # another server of this client may keep a checker: this one is its heir
        os.ftruncate(lock, 0)
        os.write(lock, b"%d" % os.getpid())
        _remove_old(folder)
        _begin_notes(os.path.join(folder, "alone"))
        leave_relay()
        listener = listening(folder, name)
        while True:
            # The hook that asks first runs as a process: it does not wait for a checker to start.
            select.select([listener], [], [])
            _refuse(listener)
            began, has_failed = time.monotonic(), True
            try:
                has_failed = self._answer(listener, name)
            except OSError as error:  # no process could be started, as on a machine without memory
                print(f"swarm-mcp serve: checker: {error}", file=sys.stderr)
            if has_failed and time.monotonic() - began < SHORTEST_LIFE:
                self._pause = min(LONGEST_PAUSE, 2 * self._pause + 0.1)
            else:
                self._pause = 0.0
            end = time.monotonic() + self._pause
            while (left := end - time.monotonic()) > 0:
                if select.select([listener], [], [], left)[0]:
                    _refuse(listener)

    @staticmethod
    def _answer(listener: socket.socket, name: str) -> bool:
        """Run a checker on the socket until it ends. Return True if it failed.

        A checker ends without a failure where nobody awaits its answer.
        """
        ours, its = os.pipe()  # its read end is told of our end, however we end
        try:
            streams = [
                (os.POSIX_SPAWN_DUP2, ours, 0),
                (os.POSIX_SPAWN_DUP2, listener.fileno(), 3),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_RDWR, 0),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ]
            words = [*command_of("from swarm_mcp.checker.process import main; main()"), WORD, name]
            pid = os.posix_spawn(words[0], words, {**os.environ, **MEMORY}, file_actions=streams)
            os.close(ours)
            ours = -1
            while os.WIFSTOPPED(status := os.waitpid(pid, os.WUNTRACED)[1]):
                os.kill(pid, signal.SIGKILL)  # stopped, it would keep each hook waiting
            return status not in (0, signal.SIGALRM)
        finally:
            if ours >= 0:
                os.close(ours)
            os.close(its)


def listening(folder: str, name: str) -> socket.socket:
    """Return a socket that listens at `name` in `folder`, in place of one without a listener.

    On Linux this process keeps the socket's file open as well: that shows a plugin in its client's process that the
    file is ours.
    """
    listener = socket.socket(socket.AF_UNIX)
    scratch = f"{name}.new"
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Through the folder's handle: a socket's path has room for some hundred bytes only.
        at = f"/proc/self/fd/{handle}" if os.path.isdir("/proc/self/fd") else folder
        if os.path.lexists(os.path.join(folder, scratch)):
            os.remove(os.path.join(folder, scratch))
        listener.bind(f"{at}/{scratch}")
        listener.listen(WAITING)
        if hasattr(os, "O_PATH"):
            os.open(scratch, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
        os.replace(scratch, name, src_dir_fd=handle, dst_dir_fd=handle)
    finally:
        os.close(handle)
    import fcntl

    high = fcntl.fcntl(listener.fileno(), fcntl.F_DUPFD_CLOEXEC, 16)  # no number that the checker uses
    listener.close()
    return socket.socket(fileno=high)


def _refuse(listener: socket.socket) -> None:
    """Close the connections that wait: their hooks run as processes."""
    listener.setblocking(False)
    while True:
        try:
            listener.accept()[0].close()
        except OSError:  # no more
            break


def _begin_notes(path: str) -> None:
    """Make the file of relays' notes about hooks that ran alone; begin it anew once it is long."""
    handle = open_in_private(path, os.O_RDWR | os.O_CREAT)
    try:
        if os.fstat(handle).st_size > LARGEST_NOTES:
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _remove_old(folder: str) -> None:
    """Remove the sockets and locks of clients that have ended."""
    for name in os.listdir(folder):
        if name != "alone" and not is_living(name):
            try:
                os.remove(os.path.join(folder, name))
            except OSError:
                continue  # another server was faster, or a person has put a folder here
