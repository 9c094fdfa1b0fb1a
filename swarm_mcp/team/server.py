"""The calls of the team's server, as listed in `protocol`, one round trip each.

Imports psycopg, so only the team agent and the `team` verbs import this. One object serves one machine, and several
threads: settling and listening have connections of their own, and block no other call.

It keeps its own evidence of silence: the last beat of each member, and its age by this machine's boot clock. A lease is
over only after its whole length by that clock, too, counted while we were in touch with the server.
"""

from __future__ import annotations

import secrets
import threading
from json import dumps
from typing import Any, cast

from swarm_hook_core import clock
from swarm_mcp.team import TeamRefused, TeamUnreachable, protocol
from swarm_mcp.team.connection import TimedConnection, connect, described, one_line, psycopg

SECONDS = 2.0  # that a call may take before it says that the server cannot be reached
SLICE_SECONDS = 0.25  # seconds of one settling step; new evidence counts after each
MOST_ITEMS = 200  # in one call, and
BATCH_BYTES = 1024 * 1024  # of them, or a little more
PAUSE_SECONDS = 0.05  # before a connection that broke is made anew
NOT_ALLOWED = "42501"
OURS = {"ST001": "superseded", "ST002": "hello_first", "ST003": "malformed", "ST004": "older"}
MISSING = ("3F000", "42883", "42P01")  # no such schema, function, table
AGAIN = ("40001", "40P01")  # two calls stood in each other's way
_SPEAKER = object()  # a call's placeholder for this agent and its connection


class Greeted:
    """The state of a repository since `hello`: its number, channel and epoch, and its silent members.

    silent   (kind, id) -> (beat, its first time by ``clock.now``, lease in seconds)
    contact  time of the server's last report of beats
    """

    def __init__(self, answer: protocol.HelloAnswer):
        self.key, self.channel, self.epoch = answer["repository"], answer["channel"], answer["epoch"]
        self.silent: dict[tuple[str, str], tuple[str, float, float]] = {}
        self.contact = clock.now()

    def note_all(self, silent: list[protocol.Heard]) -> None:
        """Record the members that are silent at this moment; every other one has beaten.

        Time without contact to the server does not count: other machines may have lost it, too.
        """
        before, self.contact = self.contact, clock.now()
        gap = self.contact - before
        if gap <= protocol.MIRROR_LEASE:
            gap = 0.0
        self.silent = self._since(silent, gap)

    def note(self, silent: list[protocol.Heard]) -> None:
        """Record some members that are silent at this moment."""
        self.silent = {**self.silent, **self._since(silent, 0.0)}

    def _since(self, heard: list[protocol.Heard], gap: float) -> dict[tuple[str, str], tuple[str, float, float]]:
        now = clock.now()
        found: dict[tuple[str, str], tuple[str, float, float]] = {}
        for one in heard:
            name = (one["kind"], one["id"])
            beat, since, _ = self.silent.get(name, ("", now, 0.0))
            found[name] = (one["beat"], min(now, since + gap) if beat == one["beat"] else now, one["lease"])
        return found

    def evidence(self, kind: str) -> str:
        """Return ``{id: beat}`` of those of a kind that have been silent for more than their lease, as JSON."""
        now = clock.now()
        over = {name: beat for (what, name), (beat, since, lease) in list(self.silent.items())
                if what == kind and now - since > lease * (1 + protocol.MARGIN)}  # fmt: skip
        return dumps(over)


class TeamServer:
    """The team's server, as one machine talks to it.

    `conninfo` names the server, as `connection` reads it; `machine` is a name of the state folder's own.
    """

    def __init__(self, conninfo: str, machine: str):
        self.conninfo, self.machine = conninfo, machine
        self.agent = secrets.token_hex(8)
        self._greeted: dict[str, Greeted] = {}
        self._asking = _Line(self, "asked")
        self._settling = _Line(self, "settled with")
        self._listening = _Line(self, "listened to")
        self._heard: dict[str, str] = {}  # channel -> repository, of those that are listened to

    def __str__(self) -> str:
        return described(self.conninfo)

    def close(self) -> None:
        """Close every connection. Grants stay."""
        for line in (self._asking, self._settling, self._listening):
            line.close()

    # ---------------------------------------------------------------- machine

    def hello(
        self, repository: str, acked: int = 0, mark: int = 0, epoch: str = "", circle: str = "",
        mirror_lease: float = protocol.MIRROR_LEASE, seconds: float = SECONDS,
    ) -> protocol.HelloAnswer:  # fmt: skip
        """Announce this machine; `epoch` is that of its replica and grants, empty without any.

        After `EPOCH`: give up all grants, and say hello again without one.
        """
        values = (repository, circle, self.machine, _SPEAKER, epoch, acked, mark, float(mirror_lease))
        answer = cast("protocol.HelloAnswer", self._asking.call("hello", values, seconds))
        if answer["ok"]:
            self._greeted[repository] = Greeted(answer)
        return answer

    def beat(
        self, repository: str, acked: int | None, mark: int = 0, sessions: list[dict[str, Any]] | tuple[Any, ...] = (),
        seconds: float = SECONDS,
    ) -> protocol.BeatAnswer:  # fmt: skip
        greeted = self._known(repository)
        values = (*self._who(repository), acked, mark, dumps(list(sessions)))
        answer = cast("protocol.BeatAnswer", self._asking.call("beat", values, seconds, tells=bool(sessions)))
        if answer["ok"]:
            greeted.note_all(answer["silent"])
            silent = greeted.evidence("awaited")
            if silent != "{}":
                self._asking.call("end_wait", (*self._who(repository), silent), seconds)
        return answer

    def rest(self, repository: str, seconds: float = SECONDS) -> None:
        self._asking.call("rest", self._who(repository), seconds)

    def part(self, repository: str, seconds: float = SECONDS) -> None:
        self._asking.call("part", self._who(repository), seconds, tells=True)
        self._greeted.pop(repository, None)

    def complete(self, repository: str, seconds: float = SECONDS) -> None:
        self._asking.call("complete", self._who(repository), seconds, tells=True)

    # ------------------------------------------------------------------ locks

    def acquire(
        self, repository: str, session: str, wants: list[protocol.Want], seen: int, mark: int, seconds: float = SECONDS
    ) -> protocol.AcquireAnswer:
        values = (*self._who(repository), session, dumps(wants), seen, mark)
        return cast("protocol.AcquireAnswer", self._asking.call("acquire", values, seconds, tells=True))

    def release(
        self, repository: str, locks: list[tuple[int, int | None]], reason: str = "released", seconds: float = SECONDS
    ) -> int:
        values = (*self._who(repository), dumps(locks), reason)
        return int(self._asking.call("release", values, seconds, tells=True))

    def transfer(
        self, repository: str, lock: int, fence: int, to_session: str, seconds: float = SECONDS
    ) -> protocol.ChangeAnswer:
        """Hand a lock over. Asked once only: where the answer is lost it raises TeamUnreachable."""
        values = (*self._who(repository), lock, fence, to_session)
        return cast("protocol.ChangeAnswer", self._asking.call("transfer", values, seconds, tells=True, is_once=True))

    def steal(
        self, repository: str, lock: int, fence: int, session: str, reason: str = "", force: bool = False,
        seconds: float = SECONDS,
    ) -> protocol.ChangeAnswer:  # fmt: skip
        """Take a lock from a lapsed session that is silent for us; with `force` from a live one. Asked once only."""
        greeted = self._known(repository)
        values = (*self._who(repository), lock, fence, session, reason, force, greeted.evidence("session"))
        return cast("protocol.ChangeAnswer", self._asking.call("steal", values, seconds, tells=True, is_once=True))

    def settle(self, repository: str, version: int, seconds: float) -> bool:
        """Wait, for at most `seconds`, until each mirror has that version or is dead. Returns True if so."""
        greeted, end = self._known(repository), clock.now() + seconds
        while True:
            slice_ = max(0.0, min(SLICE_SECONDS, end - clock.now()))
            values = (greeted.key, self.machine, greeted.epoch, version, slice_, greeted.evidence("mirror"))
            answer = self._settling.call("settle", values, slice_ + SECONDS)
            if answer["ok"] or answer.get("why"):
                return bool(answer["ok"])
            greeted.note(answer["lagging"])
            if clock.now() >= end:
                return False

    # --------------------------------------------------------- lines, sessions

    def wait(
        self, repository: str, session: str, ticket: str, wants: list[protocol.Want], mode: protocol.Mode, agent: str,
        seconds_left: float | None, seen: int, mark: int, seconds: float = SECONDS,
    ) -> protocol.WaitAnswer:  # fmt: skip
        values = (*self._who(repository), session, ticket, dumps(wants), mode, agent, seconds_left, seen, mark)
        return cast("protocol.WaitAnswer", self._asking.call("wait", values, seconds, tells=True))

    def leave(self, repository: str, numbers: list[int], seconds: float = SECONDS) -> int:
        return int(self._asking.call("leave", (*self._who(repository), numbers), seconds, tells=True))

    def end(self, repository: str, sessions: list[str], reason: str = "ended", seconds: float = SECONDS) -> int:
        values = (*self._who(repository), sessions, reason)
        return int(self._asking.call("end_sessions", values, seconds, tells=True))

    def reap(self, repository: str, seconds: float = SECONDS) -> list[str]:
        """Remove the remains of silent sessions, and return their ids. Without silent ones, the server is not asked."""
        silent = self._known(repository).evidence("session")
        if silent == "{}":
            return []
        return list(self._asking.call("reap", (*self._who(repository), silent), seconds, tells=True))

    # -------------------------------------------------------------- documents

    def put(
        self, repository: str, items: list[protocol.Item], seen: int, mark: int, seconds: float = SECONDS
    ) -> list[protocol.PutAnswer]:
        """Change documents, each for itself. Many are put in several calls, of `seconds` each.

        Others are notified at once, except for traces: these are many and urgent for none, and go with the next beats.
        """
        answers: dict[int, protocol.PutAnswer] = {}
        for numbers in _batches(items, answers):
            some = [items[number] for number in numbers]
            values = (*self._who(repository), dumps(some), seen, mark)
            tells = any(one["kind"] != protocol.TRACE for one in some)
            answers.update(zip(numbers, self._asking.call("put", values, seconds, tells=tells)))
        return [answers[number] for number in range(len(items))]

    # -------------------------------------------------------------------- look

    def mine(self, repository: str, seconds: float = SECONDS) -> protocol.Snapshot:
        values = (self._known(repository).key, self.machine)
        return cast("protocol.Snapshot", self._asking.call("mine", values, seconds))

    def look(self, repository: str, circle: str = "", seconds: float = SECONDS) -> protocol.News | None:
        return cast("protocol.News | None", self._asking.call("look", (repository, circle), seconds))

    def machines(self, repository: str, circle: str = "", seconds: float = SECONDS) -> list[protocol.MachineRow]:
        return cast("list[protocol.MachineRow]", self._asking.call("machines_of", (repository, circle), seconds))

    def listen(self, seconds: float) -> dict[str, int]:
        """Wait for at most `seconds` until something changes in a greeted repository: ``{name: version}``.

        An empty answer does not prove that nothing has happened. Raises TeamUnreachable.
        """
        return self._listening.listen({known.channel: name for name, known in list(self._greeted.items())}, seconds)

    # ----------------------------------------------------------------- innards

    def _known(self, repository: str) -> Greeted:
        try:
            return self._greeted[repository]
        except KeyError:
            raise TeamRefused(f"no hello was sent for {repository}", code="hello_first") from None

    def _who(self, repository: str) -> tuple[Any, ...]:
        greeted = self._known(repository)
        return greeted.key, self.machine, _SPEAKER, greeted.epoch


def _batches(items: list[protocol.Item], refused: dict[int, protocol.PutAnswer]) -> list[list[int]]:
    """Return the numbers of `items` as they are to be put together; those that cannot be are answered in `refused`."""
    batches: list[list[int]] = []
    room = 0
    for number, item in enumerate(items):
        if error := protocol.item_error(item):
            refused[number] = {"ok": False, "why": protocol.REFUSED, "error": error}
            continue
        size = len(dumps(item))
        if size > room or len(batches[-1]) == MOST_ITEMS:
            batches.append([])
            room = BATCH_BYTES
        batches[-1].append(number)
        room -= size
    return batches


class _Line:
    """One connection, opened on demand and again after a break; `verb`: its purpose."""

    def __init__(self, server: TeamServer, verb: str):
        self._server = server
        self._verb = verb
        self._connection: TimedConnection | None = None
        self._lock = threading.Lock()
        self._channels: set[str] = set()
        self._number = 0  # number of the connection: a request over an earlier one is not carried out after it

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self._channels = set()
        if connection is not None:
            connection.close()

    def call(
        self, name: str, values: tuple[Any, ...], seconds: float, tells: bool = False, is_once: bool = False
    ) -> Any:
        """Call a function of the server and return its result. `tells`: others are notified of the change.

        A broken connection leads to one repetition on a new one, unless `is_once`: the server gives the same answer
        then.
        """
        until = clock.now() + seconds
        if not self._lock.acquire(timeout=seconds):
            raise TeamUnreachable(f"the team's server {self._server} has not answered for {seconds:g} s")
        try:
            while True:
                is_sent = False
                try:
                    connection = self._open(until)
                    is_sent = True
                    answer = _answer(connection, name, self.spoken(values), tells)
                    if connection.is_given_up:  # asked once more, it waits for the replica anew
                        raise psycopg.OperationalError("it no longer waits for its replica")
                    return answer
                except TimeoutError:
                    self.close()
                    raise TeamUnreachable(
                        f"the team's server {self._server} has not answered for {seconds:g} s"
                    ) from None
                except psycopg.Error as error:
                    may_repeat = self._judge(error) and not (is_once and is_sent)
                    if not may_repeat or clock.now() + PAUSE_SECONDS > until:
                        raise TeamUnreachable(f"the team's server {self._server} could not be {self._verb}: "
                                              f"{one_line(error)}") from None  # fmt: skip
                    threading.Event().wait(PAUSE_SECONDS)
                except TeamUnreachable:
                    if clock.now() + PAUSE_SECONDS > until:
                        raise
                    threading.Event().wait(PAUSE_SECONDS)
        finally:
            self._lock.release()

    def spoken(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a call's values as they go over the connection that there is."""
        speaker = f"{self._server.agent}.{self._number}"
        return tuple(speaker if value is _SPEAKER else value for value in values)

    def listen(self, channels: dict[str, str], seconds: float) -> dict[str, int]:
        """Return notifications on `channels` (channel -> repository) as ``{repository: version}``."""
        with self._lock:
            try:
                connection = self._open(clock.now() + SECONDS)
                for channel in channels.keys() - self._channels:
                    connection.execute(f'LISTEN "{channel}"')
                    self._channels.add(channel)
                connection.until = None
                found: dict[str, int] = {}
                for note in connection.notifies(timeout=max(0.0, seconds), stop_after=1):
                    if note.channel in channels:
                        found[channels[note.channel]] = int(note.payload)
                return found
            except (psycopg.Error, TimeoutError) as error:
                self.close()
                words = one_line(error) or "no answer"
                raise TeamUnreachable(f"the team's server {self._server} could not be {self._verb}: {words}") from None

    def _open(self, until: float) -> TimedConnection:
        if self._connection is None or self._connection.closed:
            self.close()
            self._connection = connect(self._server.conninfo)
            self._number += 1
        self._connection.until = until
        return self._connection

    def _judge(self, error: psycopg.Error) -> bool:
        """Return True if a repetition may help. Raises TeamRefused if the server has said no."""
        state, words = error.sqlstate or "", " ".join(str(error.diag.message_primary or error).split())
        if state in OURS or state == NOT_ALLOWED:
            raise TeamRefused(f"the team's server says: {words}", code=OURS.get(state, "not_allowed")) from None
        if state in MISSING:
            raise TeamRefused(
                f"there is no team on {self._server}, or of another version: `swarm-mcp team init` ({words})",
                code="no_team",
            ) from None
        if state[:2] in ("22", "23", "42"):
            raise TeamRefused(f"the team's server cannot take that: {words}", code="malformed") from None
        if state in AGAIN:
            return True
        self.close()  # broken, shutting down, out of disk: a new connection will tell
        return True


def _answer(connection: TimedConnection, name: str, values: tuple[Any, ...], tells: bool) -> Any:
    sql = f"SELECT swarm_team.{name}({', '.join(['%s'] * len(values))})"
    if not tells:
        return connection.execute(sql, values, prepare=True).fetchone()[0]
    with connection.pipeline() as pipeline:  # two transactions, one round trip
        cursor = connection.execute(sql, values, prepare=True)
        pipeline.sync()
        connection.execute("SELECT swarm_team.hint()", prepare=True)
        pipeline.sync()
        return cursor.fetchone()[0]
