"""The main thread and the agents of one session: for each, the entries of the others are a peer's.

    <place>/<runtime>.<session>.agents    agents that run in the place: entries ``begins`` and ``ends``

All of them write one journal, and each entry names its agent. A reader splits it by these rules:

- An agent knows its own entries, and those from before it began, except of agents that still run. Others are a peer's.
- The main thread knows its own entries and those of agents that have ended. The entries of running ones are a peer's.

The file exists only while an agent runs: a session without agents reads nothing. An agent whose end was not reported
counts as ended ten minutes after its last entry.
"""

from __future__ import annotations

import os
import time

from swarm_hook_core.lookup import SOME_AGENT
from swarm_hook_core.naming import agent_name
from swarm_hook_core.state import is_at, lock_alone, open_in_private, open_private, read_all, write_all
from swarm_hook_core.traces import AGENTS, first_line, journal, line
from swarm_hook_core.traces import entry as new_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.traces.trail import Trail

SILENT_NS = 600 * 10**9  # an agent without an entry for so long counts as ended
LARGEST = 256 * 1024  # bytes of the file
MAIN = b"-"  # the main thread, in entries
_TRIES = 10


class Siblings:
    """The owners of entries in a session's journal, as seen by one of them.

    `agent`: the reader, as entries name it; `began_ns`: its beginning, 0 for the main thread; `running`: agents with
    the time of their beginning.
    """

    def __init__(self, agent: bytes, began_ns: int, running: dict[bytes, int]):
        self._agent = agent
        self._began_ns = began_ns
        self._running = running

    def known_to_reader(self, data: bytes, now_ns: int) -> bytes:
        """Return the entries of the journal `data` that count as the reader's own."""
        return self._split(data, now_ns)[0]

    def of_others(self, data: bytes, now_ns: int) -> list[tuple[str, bytes]]:
        """Return ``(words for the owner, its entries)`` for each other owner. Each part begins with the first line."""
        return [(self._words(agent), entries) for agent, entries in self._split(data, now_ns)[1].items()]

    def _split(self, data: bytes, now_ns: int) -> tuple[bytes, dict[bytes, bytes]]:
        first, entries = b"", []
        last = dict(self._running)  # running agent -> time of its last entry
        for words, raw in journal.heads(data):
            if words[1] == b"session":
                first = first or raw
                continue
            at_ns, agent = int(words[0]), words[2]
            entries.append((at_ns, agent, raw))
            if agent in last:
                last[agent] = max(at_ns, last[agent])
        running = {agent for agent, at_ns in last.items() if now_ns - at_ns <= SILENT_NS}
        known: list[bytes] = []
        theirs: dict[bytes, list[bytes]] = {}
        for at_ns, agent, raw in entries:
            if agent == self._agent or (agent not in running and (not self._began_ns or at_ns < self._began_ns)):
                known.append(raw)
            else:
                theirs.setdefault(agent, []).append(raw)
        parts = {agent: b"\n".join([first, *lines, b""]) for agent, lines in theirs.items()}
        return b"\n".join([first, *known, b""]), parts

    def _words(self, agent: bytes) -> str:
        if agent == MAIN:
            return "the main thread of this session"

        start = ""
        if not self._began_ns:
            start = "your "
        return f"{start}{agent_name(agent.decode('ascii', 'replace'))} of this session"


def around(trail: Trail, place: str) -> Siblings | None:
    """Return the Siblings around the call of `trail` in `place`, or None if there are no agents.

    The first call of an agent in a place notes its beginning there. Raises OSError.
    """
    agent = trail.call.agent
    if agent == SOME_AGENT:
        return None
    path = os.path.join(place, trail.own_name + AGENTS)
    if not agent:
        running = _running(_read(path))
        if running:
            return Siblings(MAIN, 0, running)
        return None
    running, own = begin(trail, place), _word_of(trail)
    return Siblings(own, running[own], running)


def begin(trail: Trail, place: str) -> dict[bytes, int]:
    """Note that the agent of the call of `trail` runs in `place`, if not noted before; return all that run there.

    They are named as in entries, each with the time (ns) of its beginning. Raises OSError.
    """
    path, agent = os.path.join(place, trail.own_name + AGENTS), _word_of(trail)
    running = _running(_read(path))
    if agent in running:
        return running
    at_ns = time.time_ns()
    if not trail.is_asked:
        first = first_line(trail.config.runtime_name, trail.call.session_id, trail.top_of(place))
        _append(path, line("begins", "/", trail.call, at_ns=at_ns), first)
    return {**running, agent: at_ns}


def end(place: str, name: str, agent: str) -> None:
    """Note that the `agent` of the session with the journal `name` has ended. Remove the file after the last one."""
    path = os.path.join(place, name + AGENTS)
    if os.path.lexists(path):
        _append(path, new_entry(time.time_ns(), "ends", agent, "", "/"), b"")


def _word_of(trail: Trail) -> bytes:
    """Return the agent of the call as entries name it."""
    return line("begins", "/", trail.call).split(b" ", 3)[2]


def _running(data: bytes) -> dict[bytes, int]:
    """Return ``{agent: its beginning}`` of the agents that have begun and not ended, by the file's entries `data`."""
    found: dict[bytes, int] = {}
    for words, _raw in journal.heads(data):
        if words[1] == b"begins":
            found.setdefault(words[2], int(words[0]))
        elif words[1] == b"ends":
            found.pop(words[2], None)
    return found


def _read(path: str) -> bytes:
    try:
        handle = open_private(path, os.O_RDONLY)
    except FileNotFoundError:
        return b""  # no agent runs
    try:
        return read_all(handle, LARGEST)
    finally:
        os.close(handle)


def _append(path: str, data: bytes, first: bytes) -> None:
    """Add `data` to the file at `path`; remove it if no agent runs then. `first`: the first line of a new file.

    A lock keeps an agent that begins from writing into a file that another process removes. Raises OSError.
    """
    for _ in range(_TRIES):
        handle = open_in_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            lock_alone(handle)
            if not is_at(path, handle):
                continue  # removed meanwhile
            if not os.fstat(handle).st_size:
                data = first + data
            write_all(handle, data)
            os.lseek(handle, 0, os.SEEK_SET)
            if not _running(read_all(handle, LARGEST)):
                os.remove(path)
            return
        finally:
            os.close(handle)
    raise OSError(f"{path} was removed all the time")
