"""The clones on this machine that take part in a team: a small record each, in the state folder's ``team/clones``.

A clone joins as a whole, with all its work trees. A record holds no secret: the server is named without a password.
Loads nothing but the standard library and the hook core, for verbs and the team agent.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import socket
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from swarm_hook_core import repository
from swarm_hook_core.repository import Tree
from swarm_hook_core.state import name_of, read_private, state_dir, write_private
from swarm_mcp.errors import SwarmError

_SECRET = re.compile(r"(?:^|\s)(?:ssl)?password\s*=", re.IGNORECASE)
_WHERE_SECRETS_BELONG = (
    "a password in the server's name would stand in shell histories and listings: put it into ~/.pgpass (mode 0600) as"
    " the line HOST:PORT:DATABASE:USER:PASSWORD, or into a service file (~/.pg_service.conf), and leave it out here"
)


class Membership(NamedTuple):
    """A clone that has joined.

    common       its common git folder, links resolved, shared by all its work trees
    top          the top of the work tree in which it joined; the common folder of a submodule does not tell it
    repository   the team's name for its repository (``places``); `source`: the way it was found
    server       a ``postgresql://`` URL or libpq's ``host=...`` without a password, or ``service=NAME``
    joined_at    Unix seconds
    set_logical  joining has set ``swarm.logical`` in the clone, and leaving takes it back; `logical` is its former
                 value, None if it was not set
    """

    common: str
    top: str
    repository: str
    source: str
    server: str
    joined_at: int
    set_logical: bool = False
    logical: str | None = None

    @property
    def is_there(self) -> bool:
        """Return True if the clone still is at its place."""
        return os.path.isdir(self.common)

    @property
    def tops(self) -> list[str]:
        """The tops of its work trees, links resolved. Those that are not there any more are left out."""
        found = repository.trees_beside(Tree(self.top, self.common, self.common))
        return [top for top in found if os.path.lexists(os.path.join(top, ".git"))]


def team_folder() -> str:
    """Return the folder of the team's files on this machine. It may not exist."""
    return os.path.join(state_dir(), "team")


def memberships() -> list[Membership]:
    """Return every clone that has joined, oldest first. A record that cannot be read is left out."""
    folder = os.path.join(team_folder(), "clones")
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".json")]
    except OSError:  # no clone has joined
        return []
    found = [one for name in names if (one := _read(os.path.join(folder, name))) is not None]
    return sorted(found, key=lambda one: (one.joined_at, one.common))


def membership_of(tree: Tree) -> Membership | None:
    """Return the membership of the clone of work tree `tree`, or None."""
    return _read(_file(tree.common))


def remember(membership: Membership) -> None:
    """Write a membership down, in place of one that the clone has. Raises OSError."""
    write_private(_file(membership.common), json.dumps(membership._asdict()))


def forget(membership: Membership) -> None:
    """Remove a membership; nothing where it is not there. Raises OSError."""
    path = _file(membership.common)
    try:
        os.remove(path)
        os.rmdir(os.path.dirname(path))  # checks look for this folder first (``state.shares_locks``)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
            raise


def machine() -> str:
    """Return this machine's name in a team, chosen at the first call: ``laptop-3fa9c1``.

    Each private home is a machine of its own; containers of one image share a host name, so a random part tells them
    apart. ``SWARM_TEAM_MACHINE`` chooses the first part at that moment. Raises OSError.
    """
    path = os.path.join(team_folder(), "machine")
    known = _text(path).strip()
    if known:
        return known
    chosen = os.environ.get("SWARM_TEAM_MACHINE", "").strip() or socket.gethostname().partition(".")[0]
    plain = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in chosen)[:40].strip("-")
    scratch = f"{path}.{secrets.token_hex(4)}"
    write_private(scratch, f"{plain or 'machine'}-{secrets.token_hex(3)}\n")
    try:
        os.link(scratch, path)
    except FileExistsError:
        pass  # another process has chosen it at the same moment
    finally:
        os.remove(scratch)
    return _text(path).strip()


def _file(common: str) -> str:
    return os.path.join(team_folder(), "clones", f"{name_of(common)}.json")


def _read(path: str) -> Membership | None:
    try:
        found = json.loads(_text(path))
        return Membership(**{name: found[name] for name in Membership._fields})
    except (ValueError, TypeError, KeyError, RecursionError):  # torn, or of another release
        return None


def _text(path: str) -> str:
    try:
        return read_private(path, 65536).decode("utf-8", "surrogateescape")
    except OSError:  # removed meanwhile
        return ""


def checked_server(text: str) -> str:
    """Return the server that `text` names: a ``postgresql://`` URL, libpq's ``host=...``, ``service=NAME``.

    Raises SwarmError. A password is refused: the text is shown by ``team status`` and stands on command lines.
    """
    text = text.strip()
    if "://" not in text:
        if _SECRET.search(text):
            raise SwarmError(_WHERE_SECRETS_BELONG)
        if "=" in text:
            return text
        if not text or not all(letter.isalnum() or letter in "-_." for letter in text):
            raise SwarmError(f"{text[:60]!r} is neither a postgresql:// URL nor a service's name in ~/.pg_service.conf")
        return f"service={text}"
    try:
        split = urlsplit(text)
        given = split.password is not None
        names = [name for name, _ in parse_qsl(split.query, keep_blank_values=True, strict_parsing=bool(split.query))]
    except ValueError as error:
        raise SwarmError(f"this is no URL: {error}") from None
    if split.scheme not in ("postgresql", "postgres"):
        raise SwarmError(f"{split.scheme}:// is no URL of a PostgreSQL server: postgresql://USER@HOST/DATABASE is")
    if given or not {"password", "sslpassword"}.isdisjoint(names):
        raise SwarmError(_WHERE_SECRETS_BELONG)
    return text
