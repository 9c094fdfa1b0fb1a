"""The relay of ``native/relay.c`` in Python, for installations where that could not be compiled (``hook.py``).

It asks the checker of the client that started this hook (``swarm_mcp.checker`` has the protocol). It imports modules
that an interpreter has at hand: anything more would cost as much as the answer.
"""

import posix
import sys
from time import monotonic_ns, time_ns

RELEASE = "0.1.0"  # of this plugin
EVENTS = ("pre_tool_use", "post_tool_use", "turn", "subagent")
ANCESTORS = 8  # processes between a client and its hook, and the client
BEGIN_SECONDS = 0.05  # for a busy checker to begin
_NOTE_FLAGS = posix.O_WRONLY | posix.O_APPEND | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC
CHECK_SECONDS, EVENT_SECONDS = 2.2, 1.0  # for an answer before a tool, and at any other event
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Payload:
    """The payload as a hook reads it from its standard input."""

    def __init__(self, data: bytes):
        self.buffer, self._data = self, data

    def read(self) -> bytes:
        """Return all of it."""
        return self._data


def ask(client: str, event: str) -> None:
    """Print the answer of a checker and end this process; return if there is no answer.

    The payload is in `sys.stdin` then.
    """
    if event not in EVENTS:
        return
    folder = _folder()
    if not folder:
        return
    payload = _read()  # before a checker is kept waiting for it
    sys.stdin = Payload(payload)  # type: ignore[assignment]
    began_ns = time_ns()
    seconds = EVENT_SECONDS
    if event == "pre_tool_use":
        seconds = CHECK_SECONDS
    end_ns = monotonic_ns() + int(seconds * 1e9)
    try:
        checker = _connected(folder)
    except (OSError, ValueError, IndexError):
        checker = None  # no folder, or a process that has just ended
    if checker is None:
        _note(folder, "none")
        return
    try:
        checker.settimeout(BEGIN_SECONDS)
        if checker.recv(1) != b"B":
            raise OSError
    except OSError:
        _note(folder, "busy")
        return
    try:
        told = [RELEASE, client, event, str(posix.getppid()), str(end_ns)]
        environment = [name + b"=" + value for name, value in posix.environ.items()]
        words = [*[word.encode() for word in told], posix.getcwdb()]
        status, output = _asked(checker, words, environment, payload, end_ns)
    except (OSError, ValueError):
        _note(folder, "not answered")
        posix.environ[b"SWARM_TRIED_NS"] = str(began_ns).encode()  # of an `os` that is loaded from here on
        posix.putenv(b"SWARM_TRIED_NS", str(began_ns).encode())
        return
    try:
        while output:
            output = output[posix.write(1, output) :]
    except OSError:
        pass  # the client has left
    posix._exit(status)


def _folder() -> str:
    """Return the folder of the checkers, as ``swarm_hook_core/state.py`` does; empty where only that can tell."""
    given, state, home = [posix.environ.get(name, b"") for name in (b"SWARM_STATE_DIR", b"XDG_STATE_HOME", b"HOME")]
    if given:
        found = given
    elif state:
        found = state + b"/swarm-mcp"
    elif sys.platform == "darwin":
        found = home + b"/Library/Application Support/swarm-mcp"
    else:
        found = home + b"/.local/state/swarm-mcp"
    if not found.startswith(b"/") or (given or state or home).endswith(b" "):
        return ""
    return found.decode("utf-8", "surrogateescape") + "/checkers"


def _stat(pid: int) -> "list[bytes]":
    """Return the words about a process behind its name: the second is its parent, the twentieth its start."""
    handle = posix.open(f"/proc/{pid}/stat", posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        return posix.read(handle, 1024).rpartition(b")")[2].split()
    finally:
        posix.close(handle)


def _connected(folder: str) -> "Any":
    """Return a connection to the checker of the nearest ancestor with one, or None. Raises OSError."""
    there = posix.open(folder, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    found = posix.fstat(there)
    names = posix.listdir(there)
    if found.st_uid != posix.geteuid() or found.st_mode & 0o77:
        return None
    pid = posix.getppid()
    for _ in range(ANCESTORS):
        if pid <= 1:
            break
        words = _stat(pid)
        name = f"{pid}-{words[19].decode()}"
        if name in names:
            from _socket import AF_UNIX, SOCK_STREAM, socket

            checker = socket(AF_UNIX, SOCK_STREAM)
            checker.settimeout(0.01)
            checker.connect(f"/proc/self/fd/{there}/{name}")
            if _is_server_of(checker, pid):
                return checker
        pid = int(words[1])
    return None


def _is_server_of(checker: "Any", client: int) -> bool:
    """Return True if the process at the other end is a server that the process `client` has started."""
    from _socket import SO_PEERCRED, SOL_SOCKET

    data = checker.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)
    pid, user = [int.from_bytes(data[place : place + 4], sys.byteorder) for place in (0, 4)]
    handle = posix.open(f"/proc/{pid}/cmdline", posix.O_RDONLY | posix.O_CLOEXEC)
    words = posix.read(handle, 4096).split(b"\0")
    posix.close(handle)
    if user != posix.geteuid() or not (b"serve" in words or b"acp" in words):
        return False
    for _ in range(ANCESTORS):
        if pid == client or pid <= 1:
            break
        pid = int(_stat(pid)[1])
    return pid == client


def _read() -> bytes:
    parts = []
    try:
        while part := posix.read(0, 1 << 20):
            parts.append(part)
    except OSError:
        pass  # it is closed: the hook records a fault about an empty payload
    return b"".join(parts)


def _asked(
    checker: "Any", words: "list[bytes]", environment: "list[bytes]", payload: bytes, end_ns: int
) -> "tuple[int, bytes]":
    """Return exit status and output of the hook. `words`: those that begin the head. Raises OSError, ValueError."""
    head = b"".join(word + b"\0" for word in [*words, *environment])
    checker.settimeout((end_ns - monotonic_ns()) / 1e9)
    checker.sendall(b"%08x%08x" % (len(head), len(payload)) + head + payload)
    answer = b""
    while len(answer) < 10 or len(answer) < 10 + int(answer[2:10], 16):
        checker.settimeout((end_ns - monotonic_ns()) / 1e9)
        part = checker.recv(1 << 20)
        if not part:
            raise OSError
        answer += part
    return int(answer[:2], 16), answer[10:]


def _note(folder: str, why: str) -> None:
    """Note why no checker has answered, for `swarm-mcp doctor`: only where checkers have made the file."""
    try:
        handle = posix.open(f"{folder}/alone", _NOTE_FLAGS)
        if posix.fstat(handle).st_size < 65536:
            posix.write(handle, f"{time_ns() // 10**9} {why}\n".encode())
        posix.close(handle)
    except OSError:
        return  # there are no checkers, or the disk is full
