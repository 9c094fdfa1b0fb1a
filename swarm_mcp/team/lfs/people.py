"""Who asks: roles of the team's server, told by their password there or by a token of this machine.

This server has no rights of its own, and remembers nothing over a restart. Whoever comes with name and password is
connected with these as that role, and can do what that role can. A token stands for a role whose password this machine
has where PostgreSQL looks for it (``.pgpass``, a service file). Passwords are kept in memory, for the time of a
connection, and are in no message and no log.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import sys
import threading
from collections.abc import Iterator

import psycopg

from swarm_hook_core.clock import awake
from swarm_hook_core.untrusted_text import one_line
from swarm_mcp.team.connection import parameters
from swarm_mcp.team.lfs import tokens
from swarm_mcp.team.lfs.credentials import Credentials, WrongCredentials
from swarm_mcp.team.lfs.locks import RepositoryLocks, Unreachable
from swarm_mcp.team.lfs.names import FileNames
from swarm_mcp.team.server import TeamServer

MACHINE = "lfs"  # on which the team's server has the sessions of all who lock with git-lfs
LONGEST_NAME = 63  # bytes of a role's name: PostgreSQL cuts off what is longer, which is another role's name then
CONNECT_SECONDS = 2
SECONDS_KNOWN = 300.0  # after which a password, or a token, is looked at anew
MOST_KNOWN = 100  # people who are connected at once


class Person:
    """One role, as which this process is connected, until it `is_old` and no request uses it any more."""

    def __init__(self, server: str, role: str, password: str):
        self.role, self.until = role, awake() + SECONDS_KNOWN
        self.users, self.is_old = 0, False
        self._server = TeamServer(server, MACHINE, role, password or None)
        self._locks: dict[str, RepositoryLocks] = {}

    def locks_of(self, repository: str, files: FileNames | None) -> RepositoryLocks:
        """Return the locks of a repository as this role sees them."""
        if len(self._locks) >= MOST_KNOWN:
            self._locks.clear()
        return self._locks.setdefault(repository, RepositoryLocks(self._server, repository, self.role, files))

    def close(self) -> None:
        """End the connection."""
        self._server.close()


class People:
    """Everybody who may ask. `server`: where the team's server is, as libpq takes it; name and password come from them.

    `files`: of the repositories of which there is a clone here, the names of their files.
    """

    def __init__(self, server: str, files: dict[str, FileNames]):
        self._server, self._files = server, files
        self._key = secrets.token_bytes(32)  # a digest of a password by it tells nobody anything
        self._lock = threading.Lock()
        self._known: dict[tuple[str, bytes], Person] = {}

    @contextlib.contextmanager
    def using(self, credentials: Credentials, repository: str) -> Iterator[RepositoryLocks]:
        """The locks of a repository, as whoever that is sees them.

        Raises WrongCredentials, or Unreachable where nobody can tell.
        """
        person = self._person(credentials)
        try:
            yield person.locks_of(repository, self._files.get(repository))
        finally:
            with self._lock:
                person.users -= 1
                is_over = person.is_old and not person.users
            if is_over:
                person.close()

    def _person(self, credentials: Credentials) -> Person:
        """Return who that is, as somebody with one user more."""
        name, secret = credentials
        if secret.startswith(tokens.PREFIX):
            role, password = tokens.role_of(secret), ""
            if not role or name not in ("", role):
                raise WrongCredentials("the token is not, or not any more, one of this server's")
        elif name and secret:  # libpq looks elsewhere for an empty password: it would find this machine's own
            role, password = name, secret
        else:
            raise WrongCredentials("give the password of your role on the team's server, or a token")
        if "\0" in role + password or len(role.encode("utf-8")) > LONGEST_NAME:
            raise WrongCredentials("no role has such a name, or such a password")
        known = role, hmac.digest(self._key, password.encode("utf-8"), "sha256")
        person = self._still_known(known)
        if person is None:
            _see(self._server, role, password)
            person = Person(self._server, role, password)
            person.users = 1
            with self._lock:
                self._retire(known)
                self._known[known] = person
        return person

    def _still_known(self, known: tuple[str, bytes]) -> Person | None:
        with self._lock:
            for one in [one for one, person in self._known.items() if person.until <= awake()]:
                self._retire(one)
            while len(self._known) >= MOST_KNOWN:
                self._retire(next(iter(self._known)))
            person = self._known.get(known)
            if person is not None:
                person.users += 1
            return person

    def _retire(self, known: tuple[str, bytes]) -> None:
        person = self._known.pop(known, None)
        if person is not None:
            person.is_old = True
            if not person.users:
                person.close()


def _see(server: str, role: str, password: str) -> None:
    """See that the team's server lets that role in, by the password where one was given."""
    try:
        with psycopg.connect(
            **parameters(server, role, password or None), connect_timeout=CONNECT_SECONDS
        ) as connection:
            if password and not connection.pgconn.used_password:
                raise WrongCredentials("the team's server lets this role in without a password, so one proves nothing")
    except psycopg.OperationalError as error:
        # It was asked for a password, and did not take this one. No more is told: not whether there is such a role.
        if password and error.pgconn is not None and error.pgconn.used_password:
            raise WrongCredentials("the team's server knows no such role with this password") from None
        print(f"swarm: the team's server: {one_line(str(error))}", file=sys.stderr, flush=True)
        raise Unreachable("the team's server cannot be reached") from None
