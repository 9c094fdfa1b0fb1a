"""Names of the team's server, and connections to it: encrypted, and without secrets of ours.

A server is a ``postgresql://`` URL, libpq's ``host=... dbname=...``, or ``service=NAME``. swarm stores no password:
libpq takes it from its service file, ``~/.pgpass`` or PGPASSWORD, else the keyring is asked (package ``keyring``,
service ``swarm-mcp team``, user as `described`). Imports psycopg; see this package's docstring.
"""

from __future__ import annotations

import configparser
import hashlib
import logging
import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

from swarm_hook_core import clock
from swarm_hook_core.untrusted_text import cut
from swarm_mcp.team import TeamRefused, TeamUnreachable

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
