"""The server's life: from the client's first line to its last, or to the client's end."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
from collections.abc import Callable

from swarm_hook_core.state import store_path
from swarm_mcp.errors import SwarmError
from swarm_mcp.mcp.protocol import ProtocolError, Refusal, Request, messages_in
from swarm_mcp.mcp.server import Connection
from swarm_mcp.mcp.streams import Incoming, Outgoing, claim_streams
from swarm_mcp.server.calling_session import CallingSession
from swarm_mcp.server.client_process import ClientProcess
from swarm_mcp.server.heartbeat import Heartbeat
from swarm_mcp.server.service import Service
from swarm_mcp.server.standard_error import StandardError
from swarm_mcp.store import Store

UPKEEP_SECONDS = 30.0
SHORTEST_UPKEEP_SECONDS = 2.0
LEAVE_SECONDS = 3.0  # to wait for a busy store at the end; a session that stays in it lasts as long as the client
# After the client's last line: time without a delivered answer until the server ends, and looks meanwhile.
LINGER_SECONDS, LINGER_LOOKS = 1.6, 32
WORKING_SECONDS = 0.001  # of processor time between two looks: an answer is being made
FINISH_SECONDS = 0.3  # to note delivered answers in the store
MOST_GREETINGS = 16  # messages answered before the event loop. Only the event loop reads while a client does not read
STUCK_SECONDS = 8.0  # until the server ends although it could not leave the store


def run(lists_all: bool = False) -> int:
    """Serve on standard input and output; return the exit code. `lists_all`: see ``Service``."""
    incoming, outgoing = claim_streams(StandardError)
    session = CallingSession()
    service = Service(session, lists_all)
    shutdown = Shutdown(session, service.finish)
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)
        # A server started with SIGHUP ignored (nohup) outlives its terminal.
        if number is not None and (name != "SIGHUP" or signal.getsignal(number) != signal.SIG_IGN):
            signal.signal(number, lambda *_: shutdown.begin())
    outgoing.lost = shutdown.now
    incoming.ended = lambda: shutdown.linger(outgoing)
    _thread.start_new_thread(_watch, (session, shutdown))
    _thread.start_new_thread(Heartbeat(session).run, ())
    _thread.start_new_thread(_keep_checker, (session.client,))
    try:
        if session.preassigned:
            try:
                with Store(busy_seconds=LEAVE_SECONDS) as store:
                    session.join_preassigned(store)
            except SwarmError as error:
                print(f"swarm-mcp serve: {error}", file=sys.stderr)
        connection = Connection(service.server)
        if _greet(service, connection, incoming, outgoing):
            from swarm_mcp.server.serving import serve  # loads asyncio; the handshake does not wait for that

            serve(service, connection, incoming, outgoing)
    except BaseException:
        _leave(session)
        raise
    shutdown.now()
    return 0


class Shutdown:
    """The server's end: one thread leaves the store, once, and ends the process.

    Other threads may still be reading or using the store. Only ``finish(seconds)`` is waited for.
    """

    def __init__(self, session: CallingSession, finish: Callable[[float], None]):
        self._session, self._finish = session, finish
        self._leaving = _thread.allocate_lock()

    def now(self) -> None:
        """Leave, and end this process."""
        if self._leaving.acquire(blocking=False):
            _thread.start_new_thread(self._give_up, ())
            self._finish(FINISH_SECONDS)
            _leave(self._session)
            os._exit(0)
        self._give_up()  # another thread is at it and ends us before this does

    def _give_up(self) -> None:
        time.sleep(STUCK_SECONDS)
        os._exit(0)

    def begin(self) -> None:
        """Leave, from a signal handler. It may have interrupted anything, such as an import or another thread's
        leaving.
        """
        _thread.start_new_thread(self.now, ())

    def linger(self, outgoing: Outgoing) -> None:
        """End once no answer has been made, and none has reached the client, for a while. A server without open
        requests ends by itself before that.
        """
        _thread.start_new_thread(self._linger, (outgoing,))

    def _linger(self, outgoing: Outgoing) -> None:
        wrote_at, used, looks = outgoing.wrote_at, time.process_time(), 0
        while looks < LINGER_LOOKS:  # and not by the clock: on a busy machine an answer and a look both take longer
            time.sleep(LINGER_SECONDS / LINGER_LOOKS)
            if outgoing.wrote_at == wrote_at and time.process_time() - used < WORKING_SECONDS:
                looks = looks + 1
            else:
                looks = 0
            wrote_at, used = outgoing.wrote_at, time.process_time()
        self.now()


def _greet(service: Service, connection: Connection, incoming: Incoming, outgoing: Outgoing) -> bool:
    """Answer a client's first questions, one after the other. Return True at the first that needs the event loop.

    Its line is put back. Return False where the client leaves before that.
    """
    for _ in range(MOST_GREETINGS):
        line = incoming.read_line()
        if not line:
            return False
        if line.strip():
            messages = messages_in(line)
        else:
            messages = []
        if any(isinstance(message, Request) and message.method in service.slow for message in messages):
            incoming.put_back(line)
            return True
        for message in messages:
            if isinstance(message, Request):
                # The answer to a request that needs no event loop
                try:
                    result = connection.begin(message)
                except ProtocolError as error:
                    answer = error.answer(message.number)
                else:
                    assert isinstance(result, dict)
                    answer = message.answer(result)
                outgoing.send(answer)
            elif isinstance(message, Refusal):
                outgoing.send(message.answer)
    return True


def _watch(session: CallingSession, shutdown: Shutdown) -> None:
    """End with the client; until then, housekeeping."""
    client = ClientProcess(*session.client)
    pause = UPKEEP_SECONDS
    while not client.wait_for_end(pause):
        pause = _tidy(session)
    shutdown.now()


def _tidy(session: CallingSession) -> float:
    """Do the housekeeping that is due. Return the seconds until the next; few if much is left."""
    try:
        if os.path.isfile(store_path()):
            with Store(busy_seconds=LEAVE_SECONDS) as store:
                session.renew(store)
                store.cleanup.some()
                return max(SHORTEST_UPKEEP_SECONDS, store.cleanup.due_in())
    except Exception as error:
        print(f"swarm-mcp serve: upkeep: {type(error).__name__}: {error}", file=sys.stderr)
    return UPKEEP_SECONDS


def _keep_checker(client: tuple[int, str]) -> None:
    from swarm_mcp.checker.keeper import Keeper  # the handshake does not wait for it

    Keeper(client).run()


def _leave(session: CallingSession) -> None:
    try:
        if os.path.isfile(store_path()):
            with Store(busy_seconds=LEAVE_SECONDS) as store:
                session.leave(store)
    except Exception as error:
        print(f"swarm-mcp serve: {type(error).__name__}: {error}", file=sys.stderr)
