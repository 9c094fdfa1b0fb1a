"""Calling the coordinator by name: find the ``swarm-mcp`` command, run it, give up in time.

``subprocess`` costs as much to import as a whole check, so children are spawned directly.
"""

import os
import time

LONGEST_OUTPUT = 32 * 1024 * 1024  # bytes; what talks more than this is not answering


class Result:
    """How a command ended. `code` is None where it could not be started or ran out of time."""

    __slots__ = ("code", "stdout", "stderr")

    def __init__(self, code, stdout="", stderr=""):
        self.code = code
        self.stdout = stdout
        self.stderr = stderr


def command() -> list[str]:
    """The coordinator's argv prefix; empty where there is none.

    ``SWARM_MCP_BIN`` (words as a shell splits them), else what `swarm-mcp install` wrote into the
    plugin, else ``swarm-mcp`` on PATH, if that is this program.
    """
    return chosen_command() or _installed() or _on_path()


def chosen_command() -> list[str]:
    """What ``SWARM_MCP_BIN`` names, where that can be run; else empty."""
    setting = os.environ.get("SWARM_MCP_BIN", "").strip()
    if not setting:
        return []
    words = setting.split()
    if any(mark in setting for mark in "'\"\\"):
        import shlex

        try:
            words = shlex.split(setting)
        except ValueError:
            return []
    return _words_on_path(words)


def run(argv: list[str], seconds: float, leave_running: bool = False, stdin: str = "", **settings: str) -> Result:
    """Run `argv` on the text `stdin`, for at most `seconds`, `settings` added to its environment.

    Out of time, its whole process group is killed, or left to finish where `leave_running`.
    """
    if os.name != "posix":
        return _run_portably(argv, seconds, stdin, settings)
    import select

    in_read, in_write = os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY), None)
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    try:
        pid = os.posix_spawnp(
            argv[0],
            argv,
            {**os.environ, **settings},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, in_read, 0),
                (os.POSIX_SPAWN_DUP2, out_write, 1),
                (os.POSIX_SPAWN_DUP2, err_write, 2),
            ],
            setpgroup=0,
        )
    except OSError as error:
        for handle in (out_read, err_read, in_write):
            if handle is not None:
                os.close(handle)
        return Result(None, stderr=f"{argv[0]}: {error.strerror}")
    finally:
        for handle in (in_read, out_write, err_write):
            os.close(handle)
    received = {out_read: [], err_read: []}
    poll = select.poll()
    for handle in received:
        poll.register(handle, select.POLLIN | select.POLLHUP)
    to_give = memoryview(stdin.encode("utf-8", "surrogateescape"))
    if in_write is not None:
        os.set_blocking(in_write, False)  # what does not read must not keep us
        poll.register(in_write, select.POLLOUT)
    open_pipes, size = set(received), 0
    end = time.monotonic() + seconds
    while open_pipes and size <= LONGEST_OUTPUT:
        left = end - time.monotonic()
        if left <= 0:
            break
        for handle, _event in poll.poll(max(1, int(left * 1000))):
            if handle == in_write:
                to_give = _give(in_write, to_give)
                if not to_give:
                    poll.unregister(in_write)
                    os.close(in_write)
                    in_write = None
                continue
            chunk = os.read(handle, 65536)
            size += len(chunk)
            if chunk and size <= LONGEST_OUTPUT:
                received[handle].append(chunk)
            else:
                poll.unregister(handle)
                open_pipes.discard(handle)
    code = _reap(pid, end)
    for handle in (out_read, err_read, in_write):
        if handle is not None:
            os.close(handle)
    if (code is None or open_pipes) and not leave_running:
        _kill_group(pid)  # also what a wrapper that has ended left behind, holding our pipe
    text = [b"".join(parts).decode("utf-8", "surrogateescape") for parts in received.values()]
    if code is None:
        return Result(None, text[0], text[1] or f"no answer within {seconds:g} s")
    return Result(code, text[0], text[1])


def note_denial(runtime: str, payload: dict, held, file: str, path: str = "") -> None:
    """Have it noted that this session waits for `file`, which `held` keeps from it, by a command that nobody waits for.

    What explains the decision later goes along, such as the `path` it would have written. Without a coordinator, or a
    session to be told, nothing happens. Raises OSError.
    """
    session_id = payload.get("session_id")
    argv = command() if session_id and isinstance(session_id, str) else []
    if argv:
        words = ["--runtime", runtime, "--session-id", session_id, "--holder", held.instance_id]
        facts = {"--target": path, "--directory": payload.get("cwd"), "--agent": payload.get("agent_id")}
        facts["--fence"] = str(held.fence) if isinstance(held.fence, int) else ""
        words += [f"{flag}={value}" for flag, value in facts.items() if value and isinstance(value, str)]
        start_detached([*argv, "denied", *words, "--tool", str(payload.get("tool_name")), "--", file])


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
    try:
        os.posix_spawnp(argv[0], argv, os.environ, file_actions=streams, setsid=True)
    except NotImplementedError:
        os.posix_spawnp(argv[0], argv, os.environ, file_actions=streams, setpgroup=0)


def _give(handle: int, data):
    """Write some of `data`; what is left of it, nothing where nobody reads any more."""
    try:
        return data[os.write(handle, data) :]
    except BlockingIOError:
        return data
    except OSError:
        return data[:0]


def _reap(pid: int, end: float):
    """Exit code of `pid`, waited for until `end` (monotonic), else None."""
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
    except OSError:
        return


def _run_portably(argv: list[str], seconds: float, stdin: str, settings: dict[str, str]) -> Result:
    import subprocess

    try:
        done = subprocess.run(
            argv, input=stdin, capture_output=True, timeout=seconds, encoding="utf-8", errors="replace",
            env={**os.environ, **settings},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return Result(None, stderr=str(error))
    return Result(done.returncode, done.stdout, done.stderr)


def recorded(name: str) -> object:
    """What `swarm-mcp install` wrote down as `name` at the plugin's root; None where there is nothing readable."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.path.join(root, "install.json")
    if not os.path.isfile(path):  # a pipe of that name would keep us waiting
        return None
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    from swarm_hook_core.payload import loads

    try:
        record = loads(text)
    except (ValueError, RecursionError):
        return None
    return record.get(name) if isinstance(record, dict) else None


def _installed() -> list[str]:
    """The command that `swarm-mcp install` recorded at the plugin's root, if it still exists."""
    words = recorded("coordinator")
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        return []
    needed = [word for word in words if os.path.isabs(word)]
    return words if all(os.path.exists(word) for word in needed) else []


def _on_path() -> list[str]:
    from swarm_hook_core.command_on_path import find

    ours, _other = find()
    return [ours] if ours else []


def _words_on_path(words: list[str]) -> list[str]:
    if not words:
        return []
    first = words[0]
    if first.endswith((".ts", ".js")) and os.path.isfile(first):
        program = _words_on_path(["bun" if first.endswith(".ts") else "node"])
        return program + words if program else []
    if os.sep in first:
        return words if os.access(first, os.X_OK) and not os.path.isdir(first) else []
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        candidate = os.path.join(folder, first)
        if folder and os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return [candidate, *words[1:]]
    return []
