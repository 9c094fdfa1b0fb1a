"""Requests to this machine's team agent, the one process here that speaks to the team's server.

It listens on a Unix socket in the state folder and answers one line of JSON with another. It is started on demand. This
module loads little, since ordinary verbs use it. No answer takes longer than its given time.

`confirm` returns a `Confirmation`: ``answer`` is one of

  granted       the team has granted all of them: ``fences`` of each lock by its id; ``settled``: every machine knows
  held          another session has one of them: the rows have been removed here. ``by`` is the other's lock
                (``protocol.LockRow``); the store mostly has it by now, and refuses in its own words
  unreachable   they hold on this machine only: ``error`` says why. They are confirmed when the server is back, or
                removed, with a message to their holder
  local         none of them is in a team's repository
"""

from __future__ import annotations

import json
import os
import socket
import time
from zlib import crc32

from swarm_hook_core.spawn import start_detached
from swarm_hook_core.state import make_private, state_dir
from swarm_mcp.installation import coordinator_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    from typing_extensions import NotRequired

    class Confirmation(TypedDict):
        """The answer to `confirm`: see this module's beginning."""

        answer: str
        fences: NotRequired[dict[str, int]]
        settled: NotRequired[bool]
        by: NotRequired[dict[str, Any]]
        error: NotRequired[str]


REACH_SECONDS = 2.0  # until a verb says that the team cannot be reached
SETTLE_SECONDS = 8.0  # longer than a mirror's lease: after it, a grant counts even if other machines stay silent
START_PAUSE = 0.02
LONGEST_PATH = 100  # bytes of a socket's path; systems take 104 or 108
GRANTED, HELD, UNREACHABLE, LOCAL = "granted", "held", "unreachable", "local"


def confirm(
    lock_ids: list[str], seconds: float = REACH_SECONDS, settle_seconds: float = SETTLE_SECONDS
) -> Confirmation:
    """Have the team grant these locks of this machine, all or none, within `seconds`.

    After a grant, wait up to `settle_seconds` more until it is settled.
    """
    asked = {"ask": "confirm", "locks": lock_ids, "seconds": seconds, "settle": settle_seconds}
    return _confirmed(asked, seconds, seconds + settle_seconds)


def confirm_documents(documents: list[tuple[str, str]], seconds: float = REACH_SECONDS) -> Confirmation:
    """Tell the team, within `seconds`, about the latest change to tasks here: ``[("task", id)]``.

    The ``answer`` is `GRANTED`; `HELD`: another machine was first with one of them, and its version is here by now;
    `UNREACHABLE` with ``error``: the change is posted when the server is back, unless it is undone before; `LOCAL`: no
    team has a part in them.
    """
    return _confirmed({"ask": "confirm", "documents": documents, "seconds": seconds}, seconds, seconds)


def _confirmed(asked: dict[str, Any], start_seconds: float, seconds: float) -> Confirmation:
    try:
        answer: Any = _ask(asked, start_seconds, seconds)
        answer.setdefault("answer", UNREACHABLE)
        found: Confirmation = answer
        return found
    except OSError as error:
        if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
            why = "the team agent does not start"
        elif isinstance(error, TimeoutError):
            why = "the team agent did not answer in time"
        else:
            why = str(error)
        return {"answer": UNREACHABLE, "error": why}


def poke() -> None:
    """Tell the agent that shared rows or memberships have changed. Never waits for it; never fails.

    A missing agent is started, and looks for itself.
    """
    try:
        with _connected() as connection:
            connection.settimeout(0.2)
            connection.sendall(b'{"ask": "poke"}\n')
    except OSError:
        try:
            start()
        except OSError:
            return  # the next request to the agent reports that it cannot be started


def status(seconds: float = REACH_SECONDS, starts: bool = False, machines: bool = False) -> dict[str, Any] | None:
    """Return the agent's status (``agent.Agent.status``), or None without an agent.

    With `machines` the agent keeps a list of machines for a while.
    """
    try:
        found: dict[str, Any] = _ask({"ask": "status", "machines": machines}, seconds if starts else 0.0, seconds)
        return found
    except OSError:  # no agent
        return None


def is_there() -> bool:
    """Return True if an agent listens."""
    try:
        _connected().close()
    except OSError:  # no agent
        return False
    return True


def stop(seconds: float = REACH_SECONDS) -> bool:
    """Have the agent end. Returns True if there was one."""
    try:
        _ask({"ask": "stop"}, 0.0, seconds)
    except OSError:  # no agent
        return False
    return True


def start() -> None:
    """Start the agent, detached. Where one runs already the new one ends at once. Raises OSError."""
    start_detached([*coordinator_command(), "team", "agent"])


def socket_path() -> str:
    """Return where the agent listens: in the state folder, or where that has too long a name, in a private one."""
    path = os.path.join(state_dir(), "team", "agent.sock")
    if len(os.fsencode(path)) <= LONGEST_PATH:
        return path
    if hasattr(os, "getuid"):
        user = os.getuid()
    else:
        user = 0
    return f"/tmp/swarm-team-{user}-{crc32(os.fsencode(path)):08x}/agent.sock"


def _ask(asked: dict[str, Any], start_seconds: float, seconds: float) -> Any:
    """Return the agent's answer, within `seconds` from now. Raises OSError.

    One that does not run is started, and waited for `start_seconds` at most; 0: it is not.
    """
    begun = time.monotonic()
    started = False
    while True:
        try:
            connection = _connected()
            break
        except OSError:
            if time.monotonic() - begun >= start_seconds:
                raise
            if not started:
                start()
                started = True
            time.sleep(START_PAUSE)
    with connection:
        connection.settimeout(max(0.05, begun + seconds - time.monotonic()))
        connection.sendall(json.dumps(asked).encode() + b"\n")
        received = b""
        while not received.endswith(b"\n"):
            connection.settimeout(max(0.05, begun + seconds + 0.2 - time.monotonic()))
            some = connection.recv(65536)
            if not some:
                raise ConnectionError("the team agent has ended")
            received += some
    try:
        answer = json.loads(received)
    except (ValueError, RecursionError):
        raise ConnectionError("the team agent has given no answer") from None
    if isinstance(answer, dict):
        return answer
    return {}


def _connected() -> socket.socket:
    path = socket_path()
    if hasattr(os, "getuid") and os.lstat(os.path.dirname(path)).st_uid != os.getuid():
        raise PermissionError(f"{os.path.dirname(path)} belongs to somebody else")
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(0.5)
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


def listening() -> socket.socket:
    """Return the agent's own end of the socket. For the elected agent only: it replaces another's socket."""
    path = socket_path()
    make_private(os.path.dirname(path))
    if os.path.lexists(path):
        os.remove(path)
    here = socket.socket(socket.AF_UNIX)
    here.bind(path)
    os.chmod(path, 0o600)
    here.listen(64)
    return here
