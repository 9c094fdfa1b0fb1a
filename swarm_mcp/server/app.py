"""The server's life: from the client's first line to its last, or to the client's end."""

from __future__ import annotations

import _thread
import io
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from swarm_hook_core.process import gone, host_id, is_stopped, start_time
from swarm_hook_core.state import state_dir, store_path
from swarm_mcp.errors import SwarmError
from swarm_mcp.mcp.protocol import ProtocolError, Refusal, Request, messages_in
from swarm_mcp.mcp.server import Connection
from swarm_mcp.mcp.streams import Incoming, Outgoing, claim_streams
from swarm_mcp.server.calling_session import CallingSession
from swarm_mcp.server.service import Service
from swarm_mcp.store import Store
from swarm_mcp.store.changes import Changes

# The server's standard error: a log for a person. A client need not read it.
#
# A client that does not read would otherwise stop the server once the pipe is full: every thread that prints would wait
# for ever. Each line is cut to the size that a pipe takes at once, and left out if the pipe is full.

LONGEST = min(getattr(select, "PIPE_BUF", 512), 1000)  # bytes of a line; a pipe that takes anything takes that at once
CUT = b" ...\n"


class StandardError(io.TextIOBase):
    """Lines for the file `descriptor`. Neither `write` nor `flush` ever waits or raises."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._begun = ""  # the beginning of a line without its end
        self._left_out = 0  # lines

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self._lock:
            *lines, rest = (self._begun + text).split("\n")
            self._begun = rest[:LONGEST]
            for line in lines:
                self._tell(line)
        return len(text)

    def flush(self) -> None:
        """Nothing waits here: a line goes out once it is whole."""

    def _tell(self, line: str) -> None:
        if not self._has_room():
            self._left_out += 1
            return
        if self._left_out:
            missing, self._left_out = self._left_out, 0
            self._put(f"swarm-mcp serve: {missing} lines were left out here: nobody read them")
            if not self._has_room():
                self._left_out = 1
                return
        self._put(line)

    def _put(self, line: str) -> None:
        data = line[:LONGEST].encode(self.encoding, self.errors) + b"\n"
        if len(data) > LONGEST or len(line) > LONGEST:
            data = data[: LONGEST - len(CUT)].decode("utf-8", "ignore").encode() + CUT
        try:
            os.write(self._descriptor, data)
        except OSError:
            return  # the reader has gone

    def _has_room(self) -> bool:
        if not hasattr(select, "poll"):
            return True  # Windows, where only a socket could be asked
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        try:
            return any(event & select.POLLOUT for _, event in poll.poll(0))
        except OSError:  # the reader has gone
            return False


# The end of the client's process, noticed at once where the system reports it.
#
# The end of the input is not enough: a killed client may leave the pipe open in another of its children.

LOOK_SECONDS = 1.0  # between two looks at the process, where the system does not report its end
ZOMBIE_SECONDS = 0.05  # between the report of an end and the end that `gone` sees


class ClientProcess:
    """The process `pid`, started at `started`. Pid 0 stands for an unknown client, and never ends."""

    def __init__(self, pid: int, started: str):
        self._pid, self._started, self._here = pid, started, host_id()
        self._handle: int | None = None  # a descriptor of the process (Linux)
        self._queue: Any = None  # a queue of its events (BSD, macOS)
        if pid:
            try:
                if hasattr(os, "pidfd_open"):
                    self._handle = os.pidfd_open(self._pid)
                elif hasattr(select, "kqueue"):
                    bsd: Any = select
                    self._queue = bsd.kqueue()
                    event = bsd.kevent(
                        self._pid, filter=bsd.KQ_FILTER_PROC, flags=bsd.KQ_EV_ADD, fflags=bsd.KQ_NOTE_EXIT
                    )
                    self._queue.control([event], 0)
                if start_time(self._pid) != self._started:
                    self._handle = self._queue = None  # another process has the number by now
            except OSError:
                pass  # it has ended already, or the system does not report ends: `wait_for_end` looks by itself

    def wait_for_end(self, seconds: float) -> bool:
        """Wait for the end of the process, at most `seconds`. Return True if it has ended."""
        if not self._pid:
            time.sleep(seconds)
            return False
        end = time.monotonic() + seconds
        while not gone(self._here, self._pid, self._started, self._here):
            left = end - time.monotonic()
            if left <= 0:
                return False
            self._pause(left)
        return True

    def _pause(self, seconds: float) -> None:
        """Wait until the process may have ended, at most `seconds`. After its end this returns at once."""
        if self._handle is not None:
            poll = select.poll()
            poll.register(self._handle, select.POLLIN)
            has_ended = bool(poll.poll(seconds * 1000))
        elif self._queue is not None:
            has_ended = bool(self._queue.control(None, 1, seconds))
        else:
            has_ended = False
            time.sleep(min(seconds, LOOK_SECONDS))
        if has_ended:
            time.sleep(ZOMBIE_SECONDS)


# The server's heartbeat: it keeps the leases of the client's session from expiring while the client lives.
#
# It sleeps until a lease is due, or until a commit to the store, because commands take locks as well. The leases of a
# stopped client (SIGSTOP, Ctrl-Z) expire: it could not release its locks either.

FIRST_SECONDS = 1.0  # most servers are never called: until then the client has more urgent needs
LONGEST_SECONDS = 20.0
GAP_SECONDS = 0.25  # between two looks at a store that is busy
SHORTEST_SECONDS = 0.05
STOPPED_SECONDS = 1.0  # between looks at a client that is stopped
BUSY_SECONDS = 1.0  # for the store to take a sign of life


class Heartbeat:
    """The beat for the leases of this server's session. `run` never returns, and belongs in a daemon thread."""

    def __init__(self, session: CallingSession):
        self._session = session

    def run(self) -> None:
        """Beat for ever."""
        time.sleep(FIRST_SECONDS)
        with Changes() as changes:
            while True:
                due = time.monotonic() + self.beat()
                changes.wait(max(SHORTEST_SECONDS, due - time.monotonic()))
                time.sleep(max(0.0, min(GAP_SECONDS, due - time.monotonic())))

    def beat(self) -> float:
        """Renew leases that are due, and end expired ones of others. Return the seconds until the next beat."""
        if not os.path.isfile(store_path()):
            return LONGEST_SECONDS
        try:
            with Store(busy_seconds=BUSY_SECONDS) as store:
                return max(SHORTEST_SECONDS, min(self._keep(store), self._see_to_others(store), LONGEST_SECONDS))
        except Exception as error:
            print(f"swarm-mcp serve: heartbeat: {type(error).__name__}: {error}", file=sys.stderr)
            if isinstance(error, SwarmError):
                return GAP_SECONDS
            return LONGEST_SECONDS

    def _keep(self, store: Store) -> float:
        waits, pid = [], self._session.client[0]
        inherited = self._session.inherited(store)
        for instance_id in (*self._session.vouched(store), *inherited):
            if store.leases.is_due(instance_id) and pid and is_stopped(pid):
                waits.append(STOPPED_SECONDS)
            else:
                # An inherited lease keeps its last sign of life: it tells if this connection may continue the session.
                left = store.leases.keep(instance_id, instance_id not in inherited)
                waits += [] if left is None else [left]
        return min(waits, default=LONGEST_SECONDS)

    def _see_to_others(self, store: Store) -> float:
        store.leases.some()
        left = store.leases.next_due()
        # Every server around wakes for it: not all at once.
        if left is None:
            return LONGEST_SECONDS
        return max(0.0, left) + GAP_SECONDS * os.urandom(1)[0] / 255


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
            from swarm_mcp.mcp.exchange import serve  # loads asyncio; the handshake does not wait for that

            serve(connection, incoming, outgoing, service.waits)
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
    from swarm_mcp.checker import Keeper  # the handshake does not wait for it

    Keeper(client).run()


def _leave(session: CallingSession) -> None:
    try:
        if os.path.isfile(store_path()):
            with Store(busy_seconds=LEAVE_SECONDS) as store:
                session.leave(store)
    except Exception as error:
        print(f"swarm-mcp serve: {type(error).__name__}: {error}", file=sys.stderr)


# Files that releases with the official SDK left in the state folder: its recorded answers to first questions.

PREFIX = "opening-"


def forget_records() -> bool:
    """Remove every record, and their folder once it is empty. Return True if there was a record."""
    folder, found = os.path.join(state_dir(), "server"), False
    try:
        for name in os.listdir(folder):
            if name.startswith(PREFIX):
                os.remove(os.path.join(folder, name))
                found = True
        os.rmdir(folder)
    except OSError:
        pass  # no folder, or one with files of other origin
    return found
