"""The server's schema: made, updated and granted by the database's administrator.

Every file of ``schema/`` is a migration, applied once, in the order of its number, all missing ones in one transaction;
``swarm_team.migrations`` lists the applied ones. Roles:

  swarm_team_owner     owns all of it, cannot log in
  swarm_team_member    may call the functions, and nothing else
  swarm_team_NAME      a circle: its members see each other, and nothing of other circles. A person's own role is in
                       one: ``CREATE ROLE dana LOGIN IN ROLE swarm_team_NAME``; a role for a temporary job has
                       ``VALID UNTIL``

Imports psycopg.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, NamedTuple

from swarm_mcp.team.connection import connect, described, one_line, psycopg
from swarm_mcp.team.errors import TeamRefused, TeamUnreachable

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
    _become_owner(connection)
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


def _become_owner(connection: psycopg.Connection) -> None:
    """Become the owner role, so that it owns all new objects. It has no other rights."""
    if not _value(connection, "SELECT pg_has_role(current_user, %s, 'MEMBER')", OWNER):
        connection.execute(_with_names("GRANT {} TO CURRENT_USER", OWNER))
    if not _value(connection, "SELECT to_regnamespace('swarm_team') IS NOT NULL"):
        connection.execute(_with_names("CREATE SCHEMA swarm_team AUTHORIZATION {}", OWNER))
    connection.execute(_with_names("SET LOCAL ROLE {}", OWNER))


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
