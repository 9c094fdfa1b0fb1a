"""Processes: a call's own, the machine, the client behind a hook, proof that one is gone, and starting programs.

A process is named by machine, pid and start time, because pids are used again. "Gone" is only ever said on proof; a
process that cannot be looked at counts as alive.

A hook that runs as a process of its own is the one that a call comes from. A checker (``swarm_mcp.checker``) answers
for the hooks of its client: then that is the relay that has handed the call over, and `_Relay` holds its words.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

LONGEST_TRY_NS = 10 * 10**9  # of a checker, before the hook runs as a process

# thread -> git's answers, during one check that may ask the same again: tests and servers check in several threads
check_answers: dict[int, dict[tuple[object, ...], str]] = {}


class Abandoned(BaseException):
    """The relay has stopped waiting: the hook was killed, or runs as a process of its own by now.

    No ``Exception``: a check that goes on after a fault must not go on after this.
    """


class _Relay:
    """The relay whose call is answered now: its `pid` and `parent`; 0 while this process is a hook itself.

    A plugin that asks from the client's process has no relay: its `pid` is 0, and the client is the `parent`.
    """

    pid = 0
    parent = 0
    demand: Callable[[], None] | None = None
    found: dict[object, str] = {}


def answer_for(pid: int, parent: int, demand: Callable[[], None] | None) -> None:
    """Answer a call of the relay `pid` below `parent` from now on; 0 and 0: be the caller again.

    `demand()` raises Abandoned once the relay has stopped waiting.
    """
    _Relay.pid, _Relay.parent, _Relay.demand, _Relay.found = pid, parent, demand, {}


def is_answering() -> bool:
    """Return True while this process is a checker that answers a call."""
    return _Relay.demand is not None


def once_a_call(key: object, find: Callable[[], str]) -> str:
    """Return ``find()``; a checker finds it once for a call, since the environment stays as it is for so long."""
    if _Relay.demand is None:
        return find()
    if key not in _Relay.found:
        _Relay.found[key] = find()
    return _Relay.found[key]


def caller_pid() -> int:
    """Return the pid of the hook; where a plugin asks, this process stands for it."""
    return _Relay.pid or os.getpid()


def caller_parent() -> int:
    """Return the pid of the process that has started the hook: its client, or a shell of its client."""
    if _Relay.demand is None:
        return os.getppid()
    return _Relay.parent  # 0 for one outside of the namespace


def demand_waiting() -> None:
    """Raise Abandoned if the relay has stopped waiting: traces that are left from here on would be left twice."""
    if _Relay.demand is not None:
        _Relay.demand()


def tried_ns() -> int:
    """Return the time at which a relay handed this very call to a checker without an answer; 0 if that was not so."""
    told = os.environ.get("SWARM_TRIED_NS", "")
    if told.isdecimal() and 0 <= time.time_ns() - int(told) < LONGEST_TRY_NS:
        return int(told)
    return 0


# Processes of this machine.

SHELLS = frozenset(
    "sh bash dash zsh fish ksh ash busybox tcsh csh nu xonsh elvish pwsh mksh oksh yash osh rbash rzsh".split()
)


def _is(system: str) -> bool:
    return sys.platform.startswith(system)


def host_id() -> str:
    """``machine/boot/namespaces`` of this process; parts that cannot be read are empty.

    Pids mean something in their pid namespace only, start times in their time namespace. Looked up once a process.
    """
    own = os.getpid()
    if own not in _hosts:
        _hosts.clear()  # of the process that this one was forked from
        _hosts[own] = _host_id()
    return _hosts[own]


_hosts: dict[int, str] = {}  # pid of this process -> its `host_id`


def _host_id() -> str:
    if _is("linux"):
        machine = _read("/etc/machine-id") or os.uname().nodename
        boot = _read("/proc/sys/kernel/random/boot_id")
        return f"{machine}/{boot}/{_namespace('pid')}{_namespace('time')}"
    if _is("darwin"):
        values = _output(["/usr/sbin/sysctl", "-n", "kern.uuid", "kern.bootsessionuuid"]).split()
        return "/".join((values + ["", ""])[:2]) + "/"
    return f"{os.environ.get('COMPUTERNAME', '')}//"


def start_time(pid: int) -> str:
    """Return the start of `pid` in a unit of the system (compared for equality only).

    The empty string if it is not known; ``"-"`` for a zombie, which has ended already.
    """
    if _is("linux"):
        stat = _read(f"/proc/{pid}/stat")
        fields = stat[stat.rfind(")") + 2 :].split()
        if len(fields) < 20:
            return ""
        if fields[0] in ("Z", "X"):
            return "-"
        return fields[19]
    if _is("darwin"):
        state, _, started = _output(["/bin/ps", "-o", "state=,lstart=", "-p", str(pid)]).strip().partition(" ")
        if state.startswith("Z"):
            return "-"
        return "".join(started.split())
    return ""


def is_stopped(pid: int) -> bool:
    """Return True if `pid` has been stopped by a signal or a terminal."""
    if _is("linux"):
        stat = _read(f"/proc/{pid}/stat")
        return stat[stat.rfind(")") + 2 :][:1] in ("T", "t")
    if _is("darwin"):
        return _output(["/bin/ps", "-o", "state=", "-p", str(pid)]).strip().startswith("T")
    return False


def parent_of(pid: int) -> int:
    """The parent's pid, 0 where it cannot be told."""
    if pid == caller_pid():
        return caller_parent()
    if _is("linux"):
        stat = _read(f"/proc/{pid}/stat")
        fields = stat[stat.rfind(")") + 2 :].split()
        if len(fields) > 1:
            return int(fields[1])
        return 0
    if _is("darwin"):
        value = _output(["/bin/ps", "-o", "ppid=", "-p", str(pid)]).strip()
        if value.isdigit():
            return int(value)
        return 0
    return 0


def command_line(pid: int) -> str:
    """The arguments that `pid` was started with, as one text; empty where they cannot be told."""
    if _is("linux"):
        return _read(f"/proc/{pid}/cmdline").replace("\0", " ")
    if _is("darwin"):
        return _output(["/bin/ps", "-o", "command=", "-p", str(pid)])
    return ""


def program_name(pid: int) -> str:
    """The short name of the program that `pid` runs, empty where it cannot be told."""
    if _is("linux"):
        return _read(f"/proc/{pid}/comm")
    if _is("darwin"):
        return os.path.basename(_output(["/bin/ps", "-o", "comm=", "-p", str(pid)]).strip()).lstrip("-")
    return ""


def runs_app_server(pid: int) -> bool:
    """Return True if `pid` is a client's shared background server, which outlives its terminals (Linux)."""
    if _is("linux"):
        words = _read(f"/proc/{pid}/cmdline").split("\0")
    else:
        words = []
    return "app-server" in words[1:4]


def ancestors(below: int = 0) -> Iterator[int]:
    """Pids above this process, or above process `below`, nearest first; at most 24."""
    if below:
        pid = parent_of(below)
    else:
        pid = caller_parent()
    for _ in range(24):
        if pid <= 1:
            return
        yield pid
        pid = parent_of(pid)


KEEPER = "swarm-keeper"  # the name of the process that keeps the processes of a run (Linux)
# Scripts between a client and a server or plugin that it starts: Hermes has one for servers, Cline one for plugins,
# which it ends while a session rests.
BETWEEN = ("mcp_stdio_watchdog.py", "plugin-sandbox-bootstrap.js")
# Programs that adopt processes after their parent has ended, beside process 1 itself.
ADOPTERS = (KEEPER, "systemd", "init", "launchd", "tini", "dumb-init", "catatonit", "conmon")


def client_process(marks: Iterable[str] = ()) -> tuple[int, str]:
    """Return pid and start time of the client that started this hook or server; ``(0, "")`` if unknown.

    It is the nearest ancestor that was not started just to start us. Both clients run hooks through the user's shell:
    one with a known name, or one with our script in its arguments. A client that is a shell script itself is known by
    `marks`, one of them in its path.
    """
    if marks:
        script_pid = _script(marks)
    else:
        script_pid = 0
    if script_pid:
        started = start_time(script_pid)
        if started not in ("", "-"):
            return (script_pid, started)
        return (0, "")
    ours = _own_words()
    for pid in ancestors():
        if program_name(pid) in ADOPTERS:
            break  # our parent has ended
        if not _is_shell(pid) and not (ours and ours in command_line(pid)) and not _stands_between(pid):
            started = start_time(pid)
            if started not in ("", "-"):
                return (pid, started)
            return (0, "")
    return 0, ""


def above_shell(pid: int) -> int:
    """Return the parent of `pid` if that is a shell, else `pid` itself. Linux alone: elsewhere it costs a program."""
    if _is("linux") and program_name(pid) in SHELLS:
        return parent_of(pid)
    return pid


def _own_words() -> str:
    """Return the words of a shell's command line that tell it was started just for this process; may be empty.

    Hooks are wired as ``/bin/sh ".../integrations/hook.sh" CLIENT EVENT``, which becomes ``hook.py CLIENT EVENT`` or
    ``swarm-mcp hook EVENT --runtime CLIENT``.
    """
    path, *words = [word.replace(os.sep, "/") for word in sys.argv] or [""]
    if path.endswith("/integrations/hook.py"):
        return '" ' + " ".join(words[:2])
    if words[:1] == ["hook"] and words[2:3] == ["--runtime"]:
        return f'" {" ".join(words[3:4])} {words[1]}'
    places = path.split("/")[-4:]
    if len(places) == 4:
        return "/".join(places)
    return ""


def _is_shell(pid: int) -> bool:
    """Return True if `pid` is a shell. On Linux, a script run by its first line has the script's name."""
    return program_name(pid) in SHELLS or os.path.basename(command_line(pid).partition(" ")[0]) in SHELLS


def _stands_between(pid: int) -> bool:
    script = command_line(pid).split(" ")[1:2]
    return bool(script) and script[0].endswith(BETWEEN)


def _script(marks: Iterable[str]) -> int:
    """Return the nearest ancestor that is a shell running a script with one of `marks` in its path, or 0.

    A subshell has the command line of the script that it is part of; the outermost is the script itself.
    """
    found, line = 0, ""
    for pid in ancestors():
        if found:
            if command_line(pid) != line:
                break
            found = pid
        else:
            line = command_line(pid)
            _, _, rest = line.partition(" ")
            if _is_shell(pid) and rest.startswith("/") and any(mark in rest for mark in marks):
                found = pid
    return found


def gone(host: str, pid: int, started: str, here: str) -> bool:
    """Return True if the process (`host`, `pid`, `started`) provably no longer exists, seen from `here`."""
    if not host or not pid or not started:
        return False
    if host != here:
        machine, _, rest = host.partition("/")
        boot, _, namespace = rest.partition("/")
        my_machine, _, my_rest = here.partition("/")
        my_boot, _, my_namespace = my_rest.partition("/")
        if not machine or machine != my_machine:
            return False
        if boot != my_boot:
            return bool(boot and my_boot)  # the machine has been restarted since
        if namespace != my_namespace:
            return False  # pids mean something else there
    if host.startswith("/") or os.name != "posix":
        return False
    own = os.getpid()
    if pid == own or pid == os.getppid():
        # `start_time` of process `pid`, this one (`own`) or its parent: looked up once in each process
        now = _above.get((own, pid))
        if not now:
            now = _above[own, pid] = start_time(pid)
    elif _lives_on(pid, started):
        return False
    else:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:  # proof
            return True
        except OSError:
            pass  # it exists, and belongs to another user
        now = _followed(pid, started) or start_time(pid)
    return now == "-" or (now != "" and now != started)


def _followed(pid: int, started: str) -> str:
    """Return the start of `pid`, and have `_lives_on` tell of its end; "" outside of a checker, and if it has ended."""
    if not is_answering() or not hasattr(os, "pidfd_open"):
        return ""
    try:
        handle = os.pidfd_open(pid)
    except OSError:  # it has ended, or an old kernel, or too many open files
        return ""
    now = start_time(pid)  # after the handle: a pid that is used again has another start, or the handle tells it
    if now == started:
        while len(_handles) >= MOST_FOLLOWED:
            os.close(_handles.popitem()[1])
        _handles[pid, started] = handle
    else:
        os.close(handle)
    return now


def _lives_on(pid: int, started: str) -> bool:
    """Return True if that process is followed and has not ended: a checker beside many peers asks for each of them."""
    handle = _handles.get((pid, started))
    if handle is None:
        return False
    from select import poll

    ends = poll()
    ends.register(handle)
    if not ends.poll(0):
        return True
    os.close(_handles.pop((pid, started)))
    return False


MOST_FOLLOWED = 256  # processes

_handles: dict[tuple[int, str], int] = {}  # pid and start of a process -> a handle that is readable once it has ended

# pid of this process and of itself or its parent -> start time of the latter, which never changes
_above: dict[tuple[int, int], str] = {}


def _namespace(kind: str) -> str:
    try:
        return os.readlink(f"/proc/self/ns/{kind}")
    except OSError:  # no Linux
        return ""


def _read(path: str) -> str:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:  # the process has ended
        return ""
    try:
        return os.read(handle, 4096).decode("utf-8", "replace").strip()
    except OSError:  # the process has ended
        return ""
    finally:
        os.close(handle)


def _output(argv: list[str]) -> str:

    # `ps` prints times in the asker's zone and language; two askers must read the same.
    return run(argv, 1.0, environment={"TZ": "UTC", "LC_ALL": "C"}).stdout


# The rule by which a session has gone, and its locks with it.
#
# A session that hooks registered goes on proof of its client's death (or, idle, of its terminal's), of every client's
# if several have it open, or when it has shown no sign of life for its whole lease. Sessions of other implementations
# on the same file carry no process identity; they go by the rule those implementations themselves follow, 60 s without
# a heartbeat.

RECLAIM_SECONDS = 60
FUTURE_SECONDS = 30
SERVER_RUNTIME = "mcp"  # the runtime of sessions that no hook has registered, only an MCP server


def served_by(evidence: Any, host: str, pid: int, started: str) -> bool:
    """Return True if that session is known only through the MCP server of this very client process."""
    client = (evidence["host"], evidence["client_pid"], evidence["client_start"])
    return evidence["runtime"] == SERVER_RUNTIME and client == (host, pid, started)


def departed(evidence: Any, now: float, here: str) -> bool:
    """Return True if the session described by `evidence` has gone.

    `evidence`: the columns of ``lookup.sqlite.EVIDENCE`` by name; `now` in Unix seconds; `here` is
    ``process.host_id()`` of the caller.
    """
    host, heartbeat, last_seen = evidence["host"], evidence["heartbeat"], evidence["last_seen"]
    lease, lease_until = evidence["lease_seconds"], evidence["lease_until"]
    try:
        if last_seen is not None:
            # A client that outlives its terminals ends a running turn first, writing as it goes.
            left = gone(host or "", evidence["client_pid"] or 0, evidence["client_start"] or "", here) or (
                evidence["state"] == "idle"
                and gone(host or "", evidence["terminal_pid"] or 0, evidence["terminal_start"] or "", here)
            )
            if left and not living(host, clients_in(evidence["other_clients"]), here):
                return True
            return bool(lease) and last_seen + lease < now
        if evidence["adopted"]:
            if heartbeat < now - RECLAIM_SECONDS:
                return True
            return lease_until is None and heartbeat > now + FUTURE_SECONDS
        return lease_until is not None and lease_until < now
    except (TypeError, AttributeError, ValueError, OverflowError):
        return False  # a row with odd values proves nothing


def clients_in(text: str) -> list[Any]:
    """Return ``(pid, start time)`` of each other client that has a session open. `text` may be None.

    Words that name no process are left out.
    """
    parts = [word.partition(":") for word in (text or "").split()]
    return [(int(pid), started) for pid, _, started in parts if pid.isascii() and pid.isdigit() and len(pid) < 10]


def living(host: str | None, clients: Any, here: str) -> list[Any]:
    """Return those of `clients`, pairs of pid and start time on `host`, without proof that they have gone."""
    return [client for client in clients if not gone(host or "", client[0] or 0, client[1] or "", here)]


# Start programs without ``subprocess``, which costs as much to import as a whole check.

LONGEST_OUTPUT = 32 * 1024 * 1024  # bytes; a program with more output is no answer


class Result:
    """The end of a command. `code` is None if it could not be started or ran out of time."""

    __slots__ = ("code", "stdout", "stderr")

    def __init__(self, code: int | None, stdout: str = "", stderr: str = ""):
        self.code = code
        self.stdout = stdout
        self.stderr = stderr


def run(
    argv: list[str], seconds: float, leave_running: bool = False, stdin: str = "",
    environment: dict[str, str] | None = None,
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


def _reap(pid: int, end: float) -> int | None:
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
