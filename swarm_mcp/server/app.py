"""The server's life: from the client's first line to its last, or to the client's end."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time

from swarm_hook_core.process import gone, host_id
from swarm_hook_core.state import store_path
from swarm_mcp.errors import SwarmError
from swarm_mcp.server.opening import Opening
from swarm_mcp.server.session import CallingSession
from swarm_mcp.server.wire import Incoming, Outgoing
from swarm_mcp.store import Store

WATCH_SECONDS = 1.0
UPKEEP_SECONDS = 30.0
LEAVE_SECONDS = 1.0


def run(with_check: bool = False) -> int:
    """Serve on standard input and output; the exit code. `with_check` adds the tool that hooks call."""
    session = CallingSession()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _end(session))
    incoming, outgoing = _claim_streams()
    threading.Thread(target=_watch, args=(session,), daemon=True).start()
    try:
        if session.preassigned:
            _join(session)
        opening = Opening("check" if with_check else "")
        if _open(opening, incoming, outgoing):
            from swarm_mcp.server.sdk import serve

            serve(session, opening, incoming, outgoing, with_check)
    except BrokenPipeError:
        pass  # the client has closed its end
    _leave(session)
    # Threads may be waiting in reads and in the store; there is nothing left to wait for.
    sys.stderr.flush()
    os._exit(0)


def _open(opening: Opening, incoming: Incoming, outgoing: Outgoing) -> bool:
    """Answer from the record as far as it goes; False where the client left before asking for more.

    What the SDK has to know of the handshake is put back for it to read.
    """
    handshake: list[str] = []
    while True:
        line = incoming.read_line()
        if not line:
            return False
        if not line.strip():
            continue
        message = _parsed(line)
        if message.get("method") == "notifications/initialized":
            handshake.append(line)
            continue
        answer = opening.answer(message) if "id" in message else None
        if answer is None:
            incoming.put_back([*handshake, line])
            return True
        outgoing.send(answer)
        if message["method"] == "initialize":
            outgoing.swallow(message["id"])
            handshake.append(line)


def _parsed(line: str) -> dict:
    """The message in a line; empty where there is none, which is for the SDK to say."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _claim_streams() -> tuple[Incoming, Outgoing]:
    """The client's two ends under numbers of their own: nothing that runs here may print into its input."""
    wire_in, wire_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return Incoming(wire_in), Outgoing(wire_out)


def _watch(session: CallingSession) -> None:
    """End with the client: one that was killed may leave our input open in a sibling. Also housekeeping."""
    pid, started = session.client
    here = host_id()
    cleaned = time.monotonic()
    while True:
        time.sleep(WATCH_SECONDS)
        if pid and gone(here, pid, started, here):
            _end(session)
        if time.monotonic() - cleaned > UPKEEP_SECONDS:
            cleaned = time.monotonic()
            _tidy(session)


def _tidy(session: CallingSession) -> None:
    try:
        if os.path.isfile(store_path()):
            with Store(busy_seconds=LEAVE_SECONDS) as store:
                session.renew(store)
                store.upkeep.some()
    except Exception as error:  # noqa: BLE001 - the next round may fare better; the session goes on
        print(f"swarm-mcp serve: upkeep: {type(error).__name__}: {error}", file=sys.stderr)


def _join(session: CallingSession) -> None:
    try:
        with Store(busy_seconds=LEAVE_SECONDS) as store:
            session.join_preassigned(store)
    except SwarmError as error:
        print(f"swarm-mcp serve: {error}", file=sys.stderr)


def _end(session: CallingSession) -> None:
    _leave(session)
    os._exit(0)


def _leave(session: CallingSession) -> None:
    try:
        if os.path.isfile(store_path()):
            with Store(busy_seconds=LEAVE_SECONDS) as store:
                session.leave(store)
    except SwarmError as error:
        print(f"swarm-mcp serve: {error}", file=sys.stderr)
