"""Asks the checker of this Hermes for a hook's answer, in place of a process (``swarm_mcp.checker`` has the protocol).

``integrations/checker.ts`` does the same for clients in JavaScript. Any fault counts as no answer.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from functools import lru_cache
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

EVENTS = ("pre_tool_use", "post_tool_use", "turn", "subagent")


class Unanswered(Exception):
    """No checker has answered. `tried_ns`: the time of a request that it may have acted on, or 0."""

    def __init__(self, tried_ns: int = 0):
        self.tried_ns = tried_ns


def ask(event: str, payload: bytes, environment: dict[str, str], folder: str) -> bytes | None:
    """Return the output of Hermes's hook at an event, or None without a question. Raises Unanswered.

    `folder`: of the plugin's files for all clients.
    """
    state = _state(environment)
    if event not in EVENTS or not state or not os.path.exists("/proc/self/stat"):
        return None
    if event == "post_tool_use" and not _is_awaited(state):
        return b""
    began_ns, tried_ns, place = time.time_ns(), 0, os.path.join(state, "checkers")
    relay: Any = None
    why = "none"
    try:
        relay = _loaded(f"{folder}/relay.py")
        seconds = {"pre_tool_use": relay.CHECK_SECONDS}.get(event, relay.EVENT_SECONDS)
        end_ns = time.monotonic_ns() + int(seconds * 1e9)
        with _connected(relay, place) as checker:
            why = "busy"
            checker.settimeout(relay.BEGIN_SECONDS)
            if checker.recv(1) == b"B":
                why, tried_ns = "not answered", began_ns
                told = [
                    relay.RELEASE,
                    "hermes",
                    event,
                    str(os.getpid()),
                    f"+{end_ns - time.monotonic_ns()}",
                    os.getcwd(),
                ]
                entries = [os.fsencode(f"{name}={value}") for name, value in environment.items()]
                output: bytes = relay._asked(checker, [os.fsencode(word) for word in told], entries, payload, end_ns)[1]
                return output
    except Exception:  # falls through to no answer
        pass
    if relay:
        relay._note(place, why)
    raise Unanswered(tried_ns)


def _state(environment: dict[str, str]) -> str:
    """Return the state folder, as ``swarm_hook_core/state.py`` does; empty where only that can tell."""
    given, state, home = [environment.get(name, "") for name in ("SWARM_STATE_DIR", "XDG_STATE_HOME", "HOME")]
    usual = f"{home}/Library/Application Support" if sys.platform == "darwin" else f"{home}/.local/state"
    found = given or os.path.join(state or usual, "swarm-mcp")
    base = given or state or home
    if not base.startswith("/") or base != base.strip():
        return ""
    return found


def mark_end(session: str, agent: str, environment: dict[str, str]) -> None:
    """Mark the end of the last call that this agent had open, for ``swarm_hook_core.traces`` (`Trail.leave`)."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        mark = os.open(f"{_state(environment)}/ended/{os.getpid()}", flags, 0o600)
    except OSError:
        return  # there is no folder: marks are not read
    try:
        os.write(mark, f"{session}\0{agent}".encode("utf-8", "surrogateescape"))
    finally:
        os.close(mark)


def _is_awaited(state: str) -> bool:
    """Return False if neither this call nor words are waited for."""
    return any(os.path.isdir(os.path.join(state, name)) for name in ("watched", "unheard", "awaited"))


@lru_cache(1)
def _loaded(path: str) -> Any:
    spec = spec_from_file_location("swarm_relay", path)
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _connected(relay: Any, folder: str) -> socket.socket:
    """Return a connection to the checker of this process, or of the nearest above it. Raises OSError."""
    there = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found, pid = os.fstat(there), os.getpid()
        if found.st_uid != os.geteuid() or found.st_mode & 0o77:
            raise OSError(f"{folder} is not private")
        for _ in range(relay.ANCESTORS):
            words = relay._stat(pid)
            checker = socket.socket(socket.AF_UNIX)
            try:
                checker.settimeout(0.01)
                checker.connect(f"/proc/self/fd/{there}/{pid}-{words[19].decode()}")
                if relay._is_server_of(checker, pid):
                    return checker
            except OSError:
                pass  # the checker is of another process above
            checker.close()
            pid = int(words[1])
            if pid <= 1:
                break
    finally:
        os.close(there)
    raise OSError("there is no checker")
