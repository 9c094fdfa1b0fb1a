"""The team agent: the one process of this machine that speaks to the team's servers.

It is elected by a lock on a file in the state folder and started on demand (``agent_client``). It ends once no clone
here takes part any more, or no session has worked in one for a while. Each server in use has a ``talk``. All its
knowledge comes from the store and the servers: it may be killed at any moment, and the next agent goes on.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from swarm_hook_core import __version__, clock, state
from swarm_hook_core.state import make_private, open_private, team_socket
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store
from swarm_mcp.team import agent_client, traces
from swarm_mcp.team.memberships import machine, memberships, team_folder
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.team.talk import LOOK_SECONDS, MOST_SECONDS, Talk

IDLE_SECONDS = 300.0  # seconds without any session of this machine in a joined clone
LEAVE_SECONDS = 5.0  # seconds for a running request to a server, once a clone has left
FIRST_LOOK_SECONDS = 0.5  # that the first question waits for it
ELECTION_SECONDS = 3.0  # while another agent may be just ending
LONGEST_LINE = 1024 * 1024


def run() -> int:
    """Be the team agent, until there is nothing to do; exit status 0, also where there is one already."""
    os.chdir("/")  # the starter's folder must stay removable
    lock = _elected()
    if lock is None:
        return 0
    agent = Agent()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: agent.stop())
    try:
        agent.serve()
    finally:
        os.close(lock)
    return 0


def _elected() -> int | None:
    """Return the open lock of the only agent here; None if another process has it and listens."""
    import fcntl

    make_private(team_folder())
    lock = open_private(os.path.join(team_folder(), "agent.lock"), os.O_RDWR | os.O_CREAT)
    end = time.monotonic() + ELECTION_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except OSError:
            if agent_client.is_there() or time.monotonic() >= end:
                os.close(lock)
                return None
            time.sleep(0.05)


def _connected(server: str, name: str) -> Any:
    from swarm_mcp.team.server import TeamServer  # loads psycopg, after the agent listens

    return TeamServer(server, name)


class Agent:
    """The agent: it answers this machine's verbs, and keeps each server in use followed.

    `connect` returns a ``server.TeamServer`` for a server and this machine's name.
    """

    def __init__(self, connect: Callable[[str, str], Any] = _connected, idle_seconds: float = IDLE_SECONDS):
        self._connect = connect
        self._idle_seconds = idle_seconds
        self._machine = machine()
        self._talks: dict[str, Talk] = {}
        self._ending: list[Talk] = []  # talks with servers out of use, to be notified
        self._begun = self._busy = clock.now()
        self._stopped = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)

    def stop(self) -> None:
        """Have `serve` return soon. From any thread, and from a signal's handler."""
        self._stopped = True
        self._wake()

    def serve(self) -> None:
        """Listen, until there is nothing to do."""
        here = agent_client.listening()
        here.setblocking(False)
        try:
            with Store(tells=False) as store:
                while not self._stopped and self._look(store):
                    ready, _, _ = select.select([here.fileno(), self._wake_read], [], [], LOOK_SECONDS)
                    if self._wake_read in ready:
                        os.read(self._wake_read, 4096)
                    if here.fileno() in ready:
                        self._accept(here)
        finally:
            path = team_socket()
            try:
                os.remove(path)
            except OSError:  # removed meanwhile
                pass
            here.close()
            for talk in self._talks.values():
                talk.stop()
            for talk in [*self._talks.values(), *self._ending]:
                talk.join(5.0)

    def status(self, with_machines: bool = False) -> dict[str, Any]:
        """Return ``{pid, version, machine, up, servers}``; of each server ``{server, state, error, repositories}``.

        Of each repository ``{repository, work_trees, version, sessions, settled, beaten, machines, looked,
        round_trip}``: `machines` as the server listed them (``protocol.MachineRow``) `looked` seconds ago, within
        `round_trip` seconds; None before the first list. They are listed for as long as `with_machines` is asked for.
        """
        for talk in list(self._talks.values()) if with_machines else ():
            talk.look_at_machines(FIRST_LOOK_SECONDS)
        return {
            "pid": os.getpid(),
            "version": __version__,
            "machine": self._machine,
            "up": clock.now() - self._begun,
            "servers": [talk.status() for talk in list(self._talks.values())],
        }

    # -------------------------------------------------------------- innards

    def _wake(self) -> None:
        try:
            os.write(self._wake_write, b"x")
        except OSError:
            return  # it is full: woken already

    def _look(self, store: Store) -> bool:
        """Follow each server in use, for the clones that have joined. Returns True while the agent is needed."""
        wanted = _in_use()
        trees = {top: name for parts in wanted.values() for name, tops in parts.items() for top in tops}
        ended = self._follow(wanted)
        try:
            if TeamRows(store).trees().keys() - trees.keys():  # the talks about these stop before their rows go
                for talk in ended:
                    talk.join(LEAVE_SECONDS)
                for talk in self._talks.values():
                    talk.await_parts(LEAVE_SECONDS)
            has_left = _settle_trees(store, trees)
        except SwarmError as error:
            state.record("team", "agent", str(error))
            return True
        if has_left and not wanted:
            return False
        if TeamRows(store).living_in(trees):
            self._busy = clock.now()
        return bool(wanted) and clock.now() - self._busy < self._idle_seconds

    def _follow(self, wanted: dict[str, dict[str, list[str]]]) -> list[Talk]:
        """Have a talk with each of these servers and no other. Returns the talks that end."""
        ended = [self._talks.pop(server) for server in self._talks.keys() - wanted.keys()]
        self._ending += ended
        for talk in ended:
            talk.leave()
        for server, parts in wanted.items():
            if server not in self._talks:
                self._talks[server] = Talk(server, self._machine, self._connect)
            self._talks[server].set_parts(parts)
        return ended

    def _accept(self, here: socket.socket) -> None:
        while True:
            try:
                connection, _ = here.accept()
            except OSError:  # the socket is closed
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        """Answer one question. A caller that does not wait for the answer is no fault."""
        try:
            with connection:
                connection.settimeout(2.0)
                received = b""
                while not received.endswith(b"\n"):
                    some = connection.recv(65536)
                    if not some or len(received) > LONGEST_LINE:
                        return
                    received += some
                answer = self._answered(json.loads(received))
                connection.settimeout(2.0)
                connection.sendall(json.dumps(answer).encode() + b"\n")
        except (
            OSError,
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            RecursionError,
        ):  # a caller that left, or sent no question
            return

    def _answered(self, asked: dict[str, Any]) -> dict[str, Any]:
        what = asked.get("ask")
        if what == "status":
            return self.status(bool(asked.get("machines")))
        if what == "stop":
            self.stop()
            return {"ok": True}
        if what == "confirm":
            return self._confirmed(asked)
        for talk in list(self._talks.values()):
            talk.poke()
        self._wake()  # clones may have joined, or left
        return {"ok": True}

    def _confirmed(self, asked: dict[str, Any]) -> dict[str, Any]:
        seconds = min(float(asked.get("seconds", agent_client.REACH_SECONDS)), MOST_SECONDS)
        settle = min(float(asked.get("settle", agent_client.SETTLE_SECONDS)), MOST_SECONDS)
        if not self._talks:
            self._wake()  # a clone has joined just now
            end = time.monotonic() + min(0.5, seconds)
            while not self._talks and time.monotonic() < end:
                time.sleep(0.01)
        found: dict[str, Any] = {"answer": agent_client.LOCAL}
        for talk in list(self._talks.values()):
            locks = [str(one) for one in asked.get("locks", [])]
            documents = [(str(kind), str(key)) for kind, key in asked.get("documents", [])]
            answer = talk.confirm(locks, documents, seconds, settle)
            if answer["answer"] != agent_client.LOCAL:
                found = answer
        return found


def _in_use() -> dict[str, dict[str, list[str]]]:
    """Return server -> repository -> work trees, of the clones that have joined."""
    found: dict[str, dict[str, list[str]]] = {}
    for one in memberships():
        if one.is_there:
            tops = found.setdefault(one.server, {}).setdefault(one.repository, [])
            tops += [top for top in one.tops if top not in tops]
    return found


def _settle_trees(store: Store, trees: dict[str, str]) -> bool:
    """Record these work trees as the only ones that take part. Returns True if one has left."""
    known = TeamRows(store).trees()
    if known == trees:
        return False
    with TeamRows(store).writing():
        gone = [top for top in known if top not in trees]
        TeamRows(store).leave(gone)
        TeamRows(store).set_trees(trees)
    traces.leave(gone, trees)
    return bool(gone)


if __name__ == "__main__":
    sys.exit(run())
