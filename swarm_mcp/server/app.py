"""The server's life: from the client's first line to its last, or to the client's end."""

from __future__ import annotations

import _thread
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable

from swarm_hook_core.state import store_path
from swarm_mcp.errors import SwarmError
from swarm_mcp.server.calling_session import CallingSession
from swarm_mcp.server.handshake_cache import HandshakeCache
from swarm_mcp.server.heartbeat import Heartbeat
from swarm_mcp.server.stdio import ClientProcess, Incoming, Outgoing, claim_streams
from swarm_mcp.store import Store

UPKEEP_SECONDS = 30.0
SHORTEST_UPKEEP_SECONDS = 2.0
LEAVE_SECONDS = 3.0  # to wait for a busy store at the end: what is not left is the client's until that ends
# To go on after the client's last line without an answer getting through, and how often that is looked at meanwhile.
LINGER_SECONDS, LINGER_LOOKS = 1.6, 32
FINISH_SECONDS = 0.3  # to note what has been delivered
STUCK_SECONDS = 8.0  # after which the end comes without leaving
DEFERRED = 16  # notifications that the SDK need not be loaded for


def run(with_check: bool = False) -> int:
    """Serve on standard input and output; the exit code. `with_check` adds the tool that hooks call."""
    incoming, outgoing = claim_streams()
    session = CallingSession()
    shutdown = Shutdown(session)
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)
        # Who started us with SIGHUP ignored (nohup) wants us to outlive the terminal.
        if number is not None and (name != "SIGHUP" or signal.getsignal(number) != signal.SIG_IGN):
            signal.signal(number, lambda *_: shutdown.begin())
    outgoing.lost = shutdown.now
    incoming.ended = lambda: shutdown.linger(outgoing)
    _thread.start_new_thread(_watch, (session, shutdown))
    _thread.start_new_thread(Heartbeat(session).run, ())
    try:
        if session.preassigned:
            _join(session)
        if with_check:
            _thread.start_new_thread(_load_sdk, ())  # a write will be waiting for it
        handshakes = HandshakeCache()
        answered = _shake_hands(handshakes, incoming, outgoing)
        if answered is not None:
            sdk = _load_sdk()
            from swarm_mcp.server.tools import all_tools  # costs what a handshake must not

            calls = sdk.Calls(session, all_tools(with_check))
            shutdown.finish = calls.finish
            sdk.serve(calls, handshakes, incoming, outgoing, answered)
    except BaseException:
        _leave(session)
        raise
    shutdown.now()
    return 0


class Shutdown:
    """The server's end: it leaves the store once, from whichever thread first has a reason, and is gone.

    Other threads may be waiting in reads and in the store then; nothing is left to wait for but what
    `finish(seconds)` waits for.
    """

    def __init__(self, session: CallingSession):
        self._session = session
        self._leaving = _thread.allocate_lock()
        self.finish: Callable[[float], None] = lambda seconds: None

    def now(self) -> None:
        """Leave, and end this process."""
        if self._leaving.acquire(blocking=False):
            _thread.start_new_thread(self._give_up, ())
            self.finish(FINISH_SECONDS)
            _leave(self._session)
            os._exit(0)
        self._give_up()  # another thread is at it and ends us before this does

    def _give_up(self) -> None:
        time.sleep(STUCK_SECONDS)
        os._exit(0)

    def begin(self) -> None:
        """The same from a signal handler, which may have interrupted anything: an import, another leaving."""
        _thread.start_new_thread(self.now, ())

    def linger(self, outgoing: Outgoing) -> None:
        """End once the client has been given no answer for a while. What is answered sooner ends by itself."""
        _thread.start_new_thread(self._linger, (outgoing,))

    def _linger(self, outgoing: Outgoing) -> None:
        wrote_at, looks = outgoing.wrote_at, 0
        while looks < LINGER_LOOKS:  # and not by the clock: on a busy machine an answer and a look both take longer
            time.sleep(LINGER_SECONDS / LINGER_LOOKS)
            looks = looks + 1 if outgoing.wrote_at == wrote_at else 0
            wrote_at = outgoing.wrote_at
        self.now()


def _shake_hands(handshakes: HandshakeCache, incoming: Incoming, outgoing: Outgoing) -> list[object] | None:
    """Answer from the record as far as it goes; None where the client left before asking for more.

    What decides the SDK's view of the connection is put back for it to read; returned are the ids of the
    requests among that, whose answers the client has.
    """
    replayed: list[str] = []
    answered: list[object] = []
    notes = 0
    while True:
        line = incoming.read_line()
        if not line:
            return None
        if not line.strip():
            continue
        message = _parsed(line)
        if "id" not in message and "method" in message and notes < DEFERRED:
            replayed.append(line)
            notes += 1
            continue
        answer = handshakes.answer(message)
        if answer is None:
            if not message and not line.endswith("\n"):
                return None  # the client ended in the middle of a line
            incoming.put_back([*replayed, line])
            return answered
        outgoing.send(answer)
        # The first request decides the era, and each handshake the version.
        if not answered or message["method"] == "initialize":
            replayed.append(line)
            answered.append(message["id"])


def _parsed(line: str) -> dict:
    """The message in a line; empty where there is none, which is for the SDK to say."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _load_sdk():
    """The official SDK with our tools on it.

    Its models are hundreds of thousands of objects that stay: looking for garbage among them while they
    are made, and ever after, would take a tenth of the time.
    """
    gc.disable()
    from swarm_mcp.server import sdk

    gc.freeze()
    gc.enable()
    return sdk


def _watch(session: CallingSession, shutdown: Shutdown) -> None:
    """End with the client; until then, housekeeping."""
    client = ClientProcess(*session.client)
    pause = UPKEEP_SECONDS
    while not client.wait_for_end(pause):
        pause = _tidy(session)
    shutdown.now()


def _tidy(session: CallingSession) -> float:
    """Do what is due; the seconds until there is more, which is soon while much has piled up."""
    try:
        if os.path.isfile(store_path()):
            with Store(busy_seconds=LEAVE_SECONDS) as store:
                session.renew(store)
                store.cleanup.some()
                return max(SHORTEST_UPKEEP_SECONDS, store.cleanup.due_in())
    except Exception as error:
        print(f"swarm-mcp serve: upkeep: {type(error).__name__}: {error}", file=sys.stderr)
    return UPKEEP_SECONDS


def _join(session: CallingSession) -> None:
    try:
        with Store(busy_seconds=LEAVE_SECONDS) as store:
            session.join_preassigned(store)
    except SwarmError as error:
        print(f"swarm-mcp serve: {error}", file=sys.stderr)


def _leave(session: CallingSession) -> None:
    try:
        if os.path.isfile(store_path()):
            with Store(busy_seconds=LEAVE_SECONDS) as store:
                session.leave(store)
    except Exception as error:
        print(f"swarm-mcp serve: {type(error).__name__}: {error}", file=sys.stderr)
