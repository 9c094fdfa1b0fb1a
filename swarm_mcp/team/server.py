"""The team's server: its name, encrypted connections to it, its tables, and the calls, as listed in `protocol`.

A server is a ``postgresql://`` URL, libpq's ``host=... dbname=...``, or ``service=NAME``. swarm stores no password:
libpq takes it from its service file, ``~/.pgpass`` or PGPASSWORD, else the keyring is asked (package ``keyring``,
service ``swarm-mcp team``, user as `described`). Imports psycopg, so only the team agent and the `team` verbs import
this; see this package's docstring.

A call is one round trip. One `TeamServer` serves one machine, and several threads: settling and listening have
connections of their own, and block no other call. It keeps its own evidence of silence: the last beat of each member,
and its age by this machine's boot clock. A lease is over only after its whole length by that clock, too, counted while
we were in touch with the server.
"""

from __future__ import annotations

import configparser
import hashlib
import logging
import os
import re
import secrets
import threading
from collections.abc import Generator
from json import dumps
from pathlib import Path
from typing import Any, NamedTuple, cast

from swarm_hook_core import clock
from swarm_hook_core.untrusted_text import cut
from swarm_mcp.team import TeamRefused, TeamUnreachable, protocol

try:
    import psycopg as psycopg  # for the modules that come by it, after this check
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError:
    from swarm_mcp.cli.extras import extra_command

    raise TeamRefused(f"locks of a team need psycopg, which is not installed: {extra_command('team')}") from None

# its remarks about broken connections are raised as errors as well
logging.getLogger("psycopg").addHandler(logging.NullHandler())

KEYRING_SERVICE = "swarm-mcp team"
CONNECT_SECONDS = 2
SETTINGS = {
    "application_name": "swarm-mcp",
    "target_session_attrs": "read-write",  # of several servers the one that leads
    "tcp_user_timeout": 4000,  # ms
    "keepalives_idle": 5,  # s
    "keepalives_interval": 2,
    "keepalives_count": 2,
    # A caller gives up after 2 s, unseen by a server that waits for a row: without a limit such connections pile up.
    "options": "-c default_transaction_isolation=read\\ committed -c statement_timeout=15000 -c lock_timeout=4000",
}
# libpq says these only in words. They do not pass by themselves, as a server that is away does.
_FOR_GOOD = (
    "authentication failed",
    "no pg_hba.conf entry",
    "does not exist",
    "certificate",
    "not permitted to log in",
    "unsupported startup parameter",
)
# libpq's name of the server in an error, which our own line has already, and its advice to go without TLS
_NAMED = re.compile(r'connection to server (?:at|on socket) "([^"]*)"(?: \([^)]*\))?(?:, port \d+)? failed: ')
_ADVICE = re.compile(r" Either provide the file, .* certificate verification\.")
_OF_TLS = re.compile("SSL|certificate|TLS")
MOST_OF_TLS = 140  # letters of a line about TLS, less what a command puts before it
_POOLED = "it is a pooler (pgbouncer in transaction mode?); swarm needs a session: LISTEN, prepared statements"


class TimedConnection(psycopg.Connection):  # type: ignore[misc]
    """A connection with a deadline for its calls: `until` (``clock.now``), or None. A missed deadline breaks it."""

    until: float | None = None
    # A wait for the synchronous replica was ended by hand: the commit is on one server only.
    is_given_up = False

    def wait(self, gen: Any, interval: float = 0.1, **more: Any) -> Any:
        """Wait as psycopg does, until the deadline. Raises TimeoutError."""
        if self.until is None:
            return super().wait(gen, 1.0, **more)  # how often it wakes up for nothing, while it listens
        return super().wait(_timed(gen, self.until), 0.05, **more)


def _timed(gen: Any, until: float) -> Generator[Any, Any, Any]:
    """Pass on the waits of `gen`, until the deadline."""
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and clock.now() > until:
                gen.close()
                raise TimeoutError
            wanted = gen.send(ready)
    except StopIteration as end:
        return end.value


def described(server: str) -> str:
    """Return ``user@host:port/database``, or the service, to be shown."""
    given = _read(server)
    if given.get("service"):
        return f"service {given['service']}"
    if given.get("user"):
        user = f"{given['user']}@"
    else:
        user = ""
    return f"{user}{given.get('host', 'this machine')}:{given.get('port', 5432)}/{given.get('dbname', '')}"


def parameters(server: str) -> dict[str, Any]:
    """Return the connection parameters. Unless `server` or its service says otherwise, TLS is ``verify-full``.

    Connections on this machine (a Unix socket, loopback) are exempt. Without ``~/.postgresql/root.crt`` or another
    named file, the system's certificate authorities count.
    """
    given = {**SETTINGS, **_read(server)}
    known = {**_of_service(given.get("service")), **given}
    if not known.get("sslmode") and not os.environ.get("PGSSLMODE") and not _is_here(known):
        given["sslmode"] = "verify-full"
        own = os.path.expanduser("~/.postgresql/root.crt")
        if not known.get("sslrootcert") and not os.environ.get("PGSSLROOTCERT") and not os.path.exists(own):
            given["sslrootcert"] = "system"
    return given


def connect(server: str) -> TimedConnection:
    """Return a connection with one transaction for each statement.

    Raises TeamRefused for a permanent failure, TeamUnreachable for a passing one.
    """
    with_these = parameters(server)
    try:
        try:
            return _connected(with_these)
        except psycopg.OperationalError as error:
            if "no password supplied" not in str(error):
                raise
            return _connected({**with_these, "password": _from_keyring(server)})
    except psycopg.Error as error:
        words = one_line(error)
        refuses = any(sign in words for sign in _FOR_GOOD)
        if "unsupported startup parameter" in words:
            words = _POOLED
        line = f"the team's server {described(server)} {'refuses' if refuses else 'is not reachable'}: {words}"
        if _OF_TLS.search(words):
            line = cut(line.removeprefix("the team's server "), MOST_OF_TLS)
        raise (TeamRefused if refuses else TeamUnreachable)(line) from None


def require_session(server: str) -> None:
    """Raise TeamRefused if the server is a pooler that gives each transaction another connection."""
    asked = "SELECT pg_backend_pid()"
    with connect(server) as one:
        own = _value(one, asked)
        if own == one.info.backend_pid:
            return
        try:
            with connect(server) as other, other.transaction():
                is_own = _value(other, asked) != own and _value(one, asked) == own
        except psycopg.Error:  # it allows no transaction of several statements
            is_own = False
    if not is_own:
        raise TeamRefused(f"the team's server {described(server)} refuses: {_POOLED}")


def _connected(given: dict[str, Any]) -> TimedConnection:
    made: TimedConnection = TimedConnection.connect(
        make_conninfo(**given), autocommit=True, connect_timeout=CONNECT_SECONDS
    )

    def notice(said: Any) -> None:
        made.is_given_up = made.is_given_up or said.source_function == "SyncRepWaitForLSN"

    made.add_notice_handler(notice)
    return made


def _from_keyring(server: str) -> str:
    try:
        import keyring
    except ImportError:
        raise psycopg.OperationalError("no password supplied: ~/.pgpass and the service file have none") from None
    password = keyring.get_password(KEYRING_SERVICE, described(server))
    if not password:
        raise psycopg.OperationalError("no password supplied: ~/.pgpass, the service file and the keyring have none")
    return str(password)


def _read(server: str) -> dict[str, Any]:
    try:
        return {name: value for name, value in conninfo_to_dict(server).items() if value is not None}
    except psycopg.ProgrammingError:  # its words may repeat the input, a password included
        raise TeamRefused("that names no server: a postgresql:// URL, or service=NAME") from None


def _of_service(name: str | None) -> dict[str, str]:
    """Return the parameters of a service in libpq's service file."""
    name = name or os.environ.get("PGSERVICE")
    files = [os.environ.get("PGSERVICEFILE") or os.path.expanduser("~/.pg_service.conf")]
    files += [os.path.join(os.environ["PGSYSCONFDIR"], "pg_service.conf")] if os.environ.get("PGSYSCONFDIR") else []
    for file in files if name else []:
        reader = configparser.RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=("#",))
        try:
            reader.read(file)
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue  # libpq reports errors in it
        if reader.has_section(name or ""):
            return dict(reader.items(name or ""))
    return {}


def _is_here(known: dict[str, Any]) -> bool:
    hosts = str(known.get("hostaddr") or known.get("host") or os.environ.get("PGHOST") or "").split(",")
    return all(not host or host[0] in "/@" or host in ("localhost", "::1") or host.startswith("127.") for host in hosts)


def one_line(error: BaseException) -> str:
    """Return the words of an error in one line of at most 300 characters."""
    words = _ADVICE.sub("", " ".join(str(error).split()))
    return _NAMED.sub(r"\1: " if len(set(_NAMED.findall(words))) > 1 else "", words)[:300]


# The server's schema: made, updated and granted by the database's administrator.
#
# Every file of ``schema/`` is a migration, applied once, in the order of its number, all missing ones in one
# transaction; ``swarm_team.migrations`` lists the applied ones. Roles:
#
# swarm_team_owner     owns all of it, cannot log in
# swarm_team_member    may call the functions, and nothing else
# swarm_team_NAME      a circle: its members see each other, and nothing of other circles. A person's own role is in
# one: ``CREATE ROLE dana LOGIN IN ROLE swarm_team_NAME``; a role for a temporary job has
# ``VALID UNTIL``
#
# Imports psycopg.

FOLDER = Path(__file__).with_name("schema")
OWNER, MEMBER, CIRCLE = "swarm_team_owner", "swarm_team_member", "swarm_team_"
FIRST_CIRCLE = "everybody"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_RESERVED = ("owner", "member")
_ONE_AT_A_TIME = 0x7377726D  # of an advisory lock


class Migration(NamedTuple):
    number: int
    name: str
    text: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


class Made(NamedTuple):
    """The result of `init`: the applied migrations, the circle, and the epoch of the server."""

    applied: list[str]
    circle: str
    epoch: str


def migrations() -> list[Migration]:
    """Return every migration of this version of swarm, first first."""
    found = []
    for path in FOLDER.glob("[0-9]*.sql"):
        number, _, name = path.stem.partition("_")
        found.append(Migration(int(number), name, path.read_text(encoding="utf-8")))
    return sorted(found)


def init(server: str, circle: str = FIRST_CIRCLE, epoch: str = "", new_epoch: bool = False) -> Made:
    """Create the schema, the roles and a circle on `server`, or update them; existing parts stay.

    epoch      of the server as this machine knows it (``Made``, or an answer), empty for none: another is refused
    new_epoch  after a restore: every grant is void from now on

    Raises TeamRefused for another epoch, for a schema of a newer swarm, and without the rights (CREATE on the database,
    CREATEROLE).
    """
    if not _NAME.fullmatch(circle) or circle in _RESERVED:
        raise TeamRefused(f"{circle[:60]!r} is no name for a circle: small letters, digits, - and _")
    with connect(server) as connection:
        try:
            with connection.transaction():
                return _made(connection, described(server), circle, epoch, new_epoch)
        except psycopg.OperationalError as error:
            raise TeamUnreachable(f"the team's server {described(server)}: {one_line(error)}") from None
        except psycopg.Error as error:
            raise TeamRefused(
                f"the team's server {described(server)} does not let itself be set up: {one_line(error)}"
            ) from None


def _made(connection: psycopg.Connection, name: str, circle: str, epoch: str, new_epoch: bool) -> Made:
    run = connection.execute
    run("SELECT pg_advisory_xact_lock(%s)", (_ONE_AT_A_TIME,))
    for role in (OWNER, MEMBER, CIRCLE + circle):
        if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
            connection.execute(_with_names("CREATE ROLE {} NOLOGIN", role))
    run(_with_names("GRANT {} TO {}", MEMBER, CIRCLE + circle))
    # Become the owner role, so that it owns all new objects. It has no other rights.
    if not _value(connection, "SELECT pg_has_role(current_user, %s, 'MEMBER')", OWNER):
        connection.execute(_with_names("GRANT {} TO CURRENT_USER", OWNER))
    if not _value(connection, "SELECT to_regnamespace('swarm_team') IS NOT NULL"):
        connection.execute(_with_names("CREATE SCHEMA swarm_team AUTHORIZATION {}", OWNER))
    connection.execute(_with_names("SET LOCAL ROLE {}", OWNER))
    applied = _applied(connection)
    known = migrations()
    newer = [f"{number}_{was}" for number, (was, _) in applied.items() if number not in {one.number for one in known}]
    if newer:
        raise TeamRefused(f"a newer swarm has set up {name} ({', '.join(newer)}): upgrade this one")
    for one in known:
        if one.number in applied and applied[one.number][1] != one.digest:
            raise TeamRefused(f"{name} was set up by another swarm: its {one.number}_{one.name} is not ours")
    new = [one for one in known if one.number not in applied]
    if applied:
        _check_epoch(connection, name, epoch, new_epoch)
    for one in new:
        run(one.text)
        run("INSERT INTO swarm_team.migrations VALUES (%s, %s, %s)", (one.number, one.name, one.digest))
    if not applied:
        run(
            "INSERT INTO swarm_team.server (epoch, system, timeline, postmaster, started) SELECT gen_random_uuid(),"
            " system_identifier, swarm_team.timeline(), pg_postmaster_start_time(), clock_timestamp()"
            " FROM pg_control_system()"
        )
    run("INSERT INTO swarm_team.circles VALUES (%s, %s) ON CONFLICT DO NOTHING", (circle, CIRCLE + circle))
    return Made(
        [f"{one.number:04}_{one.name}" for one in new],
        circle,
        _value(connection, "SELECT epoch FROM swarm_team.server"),
    )


def _applied(connection: psycopg.Connection) -> dict[int, tuple[str, str]]:
    """Return ``{number: (name, digest)}`` of the applied migrations."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS swarm_team.migrations (number integer PRIMARY KEY, name text NOT NULL,"
        " digest text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now(),"
        " applied_by name NOT NULL DEFAULT session_user)"
    )
    rows = connection.execute("SELECT number, name, digest FROM swarm_team.migrations").fetchall()
    return {number: (name, digest) for number, name, digest in rows}


def _check_epoch(connection: psycopg.Connection, name: str, epoch: str, new_epoch: bool) -> None:
    connection.execute("SELECT swarm_team.note_start()")  # a copy on another server has a new epoch at once
    if new_epoch:
        connection.execute("SELECT swarm_team.void(key, 0) FROM swarm_team.repositories")
        if _value(connection, "SELECT to_regclass('swarm_team.former') IS NOT NULL"):  # else it is made after this
            connection.execute(
                "INSERT INTO swarm_team.former SELECT key, '*' FROM swarm_team.repositories ON CONFLICT DO NOTHING"
            )
        connection.execute("UPDATE swarm_team.server SET epoch = gen_random_uuid(), started = clock_timestamp()")
    elif epoch and epoch.partition(".")[0] != _value(connection, "SELECT epoch FROM swarm_team.server"):
        raise TeamRefused(
            f"{name} has another epoch than this machine knows: it was restored, or is another server. Nothing was"
            " changed; `swarm-mcp team init --new-epoch` declares all that it has granted void"
        )


def _with_names(query: str, *names: str) -> psycopg.sql.Composed:
    return psycopg.sql.SQL(query).format(*map(psycopg.sql.Identifier, names))


def _value(connection: psycopg.Connection, query: str, *values: object) -> Any:
    row = connection.execute(query, values).fetchone()
    if row:
        return row[0]
    return None


# The calls.


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
