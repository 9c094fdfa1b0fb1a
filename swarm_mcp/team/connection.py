"""Names of the team's server, and connections to it: encrypted, and without secrets of ours.

A server is a ``postgresql://`` URL, libpq's ``host=... dbname=...``, or ``service=NAME``. swarm stores no password:
libpq takes it from its service file, ``~/.pgpass`` or PGPASSWORD, else the keyring is asked (package ``keyring``,
service ``swarm-mcp team``, user as `described`). Imports psycopg; see this package's docstring.
"""

from __future__ import annotations

import configparser
import logging
import os

from swarm_hook_core import clock
from swarm_mcp.team.errors import TeamRefused, TeamUnreachable

TYPE_CHECKING = False
try:
    import psycopg as psycopg  # for the modules that come by it, after this check
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError:
    from swarm_mcp.cli.extras import extra_command

    raise TeamRefused(f"locks of a team need psycopg, which is not installed: {extra_command('team')}") from None
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

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
)


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
        if any(sign in words for sign in _FOR_GOOD):
            raise TeamRefused(f"the team's server {described(server)} refuses: {words}") from None
        raise TeamUnreachable(f"the team's server {described(server)} is not reachable: {words}") from None


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
    return " ".join(str(error).split())[:300]
