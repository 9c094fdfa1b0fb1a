"""How the team's server is named, and how a connection to it is made: encrypted, and without secrets of ours.

A server is a ``postgresql://`` URL, libpq's ``host=... dbname=...``, or ``service=NAME``. A password is none of our
business: libpq takes it from its service file, ``~/.pgpass`` or PGPASSWORD; where it finds none, the keyring is asked
(package ``keyring``, service ``swarm-mcp team``, user as `described`). Imports psycopg; see this package's docstring.
"""

from __future__ import annotations

import configparser
import logging
import os

from swarm_hook_core import clock
from swarm_mcp.errors import TeamRefused, TeamUnreachable

TYPE_CHECKING = False
try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError:
    from swarm_mcp.installation import extra_command

    raise TeamRefused(f"locks of a team need psycopg, which is not installed: {extra_command('team')}") from None
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

logging.getLogger("psycopg").addHandler(logging.NullHandler())  # what it says of broken connections is raised as well

KEYRING_SERVICE = "swarm-mcp team"
CONNECT_SECONDS = 2
SETTINGS = {
    "application_name": "swarm-mcp",
    "tcp_user_timeout": 4000,  # ms
    "keepalives_idle": 5,  # s
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "options": "-c default_transaction_isolation=read\\ committed -c statement_timeout=15000",
}
# libpq says these only in words. They do not pass by themselves, as a server that is away does.
_FOR_GOOD = (
    "authentication failed",
    "no pg_hba.conf entry",
    "does not exist",
    "certificate",
    "not permitted to log in",
)


class TimedConnection(psycopg.Connection):
    """A connection whose calls end at a time: `until` (``clock.now``), None for none. What then is left is broken."""

    until: float | None = None

    def wait(self, gen: Any, interval: float = 0.1, **more: Any) -> Any:
        """As psycopg's own, until the time is over. Raises TimeoutError."""
        if self.until is None:
            return super().wait(gen, 1.0, **more)  # how often it wakes up for nothing, while it listens
        return super().wait(_timed(gen, self.until), 0.05, **more)


def _timed(gen: Any, until: float) -> Generator:
    """Pass on what `gen` waits for, until the time is over."""
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


def checked(server: str) -> str:
    """Return how `server` may be written down. Raises TeamRefused where it cannot be read, or holds a secret."""
    given = _read(server)
    if given.get("password") or given.get("sslpassword"):
        raise TeamRefused("a password does not belong into the server's name: put it into ~/.pgpass or a service file")
    return server


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


def parameters(server: str, user: str | None = None, password: str | None = None) -> dict[str, Any]:
    """Return what to connect with. Where neither `server` nor its service says otherwise, TLS is ``verify-full``.

    Not so on this machine itself (a Unix socket, loopback). Where there is no ``~/.postgresql/root.crt`` and no other
    is named, the authorities are the system's.
    """
    given = {**SETTINGS, **_read(server)}
    given.update({name: value for name, value in (("user", user), ("password", password)) if value is not None})
    known = {**_of_service(given.get("service")), **given}
    if not known.get("sslmode") and not os.environ.get("PGSSLMODE") and not _is_here(known):
        given["sslmode"] = "verify-full"
        own = os.path.expanduser("~/.postgresql/root.crt")
        if not known.get("sslrootcert") and not os.environ.get("PGSSLROOTCERT") and not os.path.exists(own):
            given["sslrootcert"] = "system"
    return given


def connect(server: str, user: str | None = None, password: str | None = None) -> TimedConnection:
    """Return a connection, every statement of which is a transaction of its own.

    Raises TeamRefused where it will never be, TeamUnreachable where it cannot be now.
    """
    with_these = parameters(server, user, password)
    try:
        try:
            return _connected(with_these)
        except psycopg.OperationalError as error:
            if "no password supplied" not in str(error):
                raise
            return _connected({**with_these, "password": _from_keyring(server)})
    except psycopg.Error as error:
        words = _one_line(error)
        if any(sign in words for sign in _FOR_GOOD):
            raise TeamRefused(f"the team's server {described(server)} refuses: {words}") from None
        raise TeamUnreachable(f"the team's server {described(server)} is not reachable: {words}") from None


def _connected(given: dict[str, Any]) -> TimedConnection:
    return TimedConnection.connect(make_conninfo(**given), autocommit=True, connect_timeout=CONNECT_SECONDS)


def _from_keyring(server: str) -> str:
    try:
        import keyring
    except ImportError:
        raise psycopg.OperationalError("no password supplied: ~/.pgpass and the service file have none") from None
    password = keyring.get_password(KEYRING_SERVICE, described(server))
    if not password:
        raise psycopg.OperationalError("no password supplied: ~/.pgpass, the service file and the keyring have none")
    return password


def _read(server: str) -> dict[str, Any]:
    try:
        return {name: value for name, value in conninfo_to_dict(server).items() if value is not None}
    except psycopg.ProgrammingError:  # its words may repeat what was given, a password among it
        raise TeamRefused("that names no server: a postgresql:// URL, or service=NAME") from None


def _of_service(name: str | None) -> dict[str, str]:
    """Return what libpq's service file says of one."""
    name = name or os.environ.get("PGSERVICE")
    files = [os.environ.get("PGSERVICEFILE") or os.path.expanduser("~/.pg_service.conf")]
    files += [os.path.join(os.environ["PGSYSCONFDIR"], "pg_service.conf")] if os.environ.get("PGSYSCONFDIR") else []
    for file in files if name else []:
        reader = configparser.RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=("#",))
        try:
            reader.read(file)
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue  # libpq will say what is wrong with it
        if reader.has_section(name or ""):
            return dict(reader.items(name or ""))
    return {}


def _is_here(known: dict[str, Any]) -> bool:
    hosts = str(known.get("hostaddr") or known.get("host") or os.environ.get("PGHOST") or "").split(",")
    return all(not host or host[0] in "/@" or host in ("localhost", "::1") or host.startswith("127.") for host in hosts)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
