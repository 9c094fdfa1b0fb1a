"""Tokens for git-lfs: each stands for one role of the team's server, so that a machine needs no password of it.

Each is a file of the state folder that only this user can read, by the name of the token's SHA-256: the token itself,
32 random bytes, is shown once and kept nowhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from typing import NamedTuple

from swarm_hook_core.state import state_dir, write_private
from swarm_mcp.errors import SwarmError

PREFIX = "swarm-lfs-"  # by which a token is told from a password, and found where it has been published by mistake
SHORTEST_BEGINNING = 6  # characters that name a token to be revoked
_DIGEST = re.compile("[0-9a-f]{64}")
_DAY = 86400


class Token(NamedTuple):
    """What is kept of a token: the SHA-256 (hex), its role, and when it was made and ends (Unix seconds; 0: never)."""

    digest: str
    role: str
    made_at: int
    ends_at: int

    @property
    def id(self) -> str:
        """By which people name it."""
        return self.digest[:12]


def make(role: str, days: int = 0) -> str:
    """Return a new token for `role`, good for so many days (0: until it is revoked). Raises SwarmError."""
    if not role.strip() or "\0" in role:
        raise SwarmError("a token is for a role of the team's server: name it")
    if days < 0:
        raise SwarmError(f"a token is good for some days, or where none are said until it is revoked, not for {days}")
    text = PREFIX + secrets.token_urlsafe(32)
    now = int(time.time())
    kept = {"role": role, "made_at": now, "ends_at": now + days * _DAY if days else 0}
    try:
        write_private(os.path.join(_folder(), _digest(text)), json.dumps(kept) + "\n")
    except OSError as error:
        raise SwarmError(f"the token cannot be kept: {error}") from None
    return text


def role_of(text: str) -> str:
    """Return the role that the token `text` stands for; empty where it is none of ours, or its time is over."""
    digest, role = _digest(text), ""
    for token in kept():
        if secrets.compare_digest(token.digest, digest) and not 0 < token.ends_at <= time.time():
            role = token.role
    return role


def kept() -> list[Token]:
    """Return all tokens, the oldest first. What cannot be read is none."""
    try:
        names = [name for name in os.listdir(_folder()) if _DIGEST.fullmatch(name)]
    except OSError:
        return []
    found = (_read(name) for name in names)
    return sorted((one for one in found if one), key=lambda one: (one.made_at, one.digest))


def revoke(beginning: str) -> Token:
    """Make the token whose id begins so void at once, and return what was kept of it. Raises SwarmError."""
    named = [one for one in kept() if len(beginning) >= SHORTEST_BEGINNING and one.digest.startswith(beginning)]
    if len(named) != 1:
        if named:
            count = "more than one"
        else:
            count = "no"
        raise SwarmError(f"{count} token has an id that begins with {beginning[:64]!r}")
    try:
        os.remove(os.path.join(_folder(), named[0].digest))
    except OSError as error:
        raise SwarmError(f"the token cannot be removed: {error}") from None
    return named[0]


def _folder() -> str:
    return os.path.join(state_dir(), "team", "lfs-tokens")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _read(name: str) -> Token | None:
    try:
        with open(os.path.join(_folder(), name), encoding="utf-8") as file:
            found = json.load(file)
        return Token(name, str(found["role"]), int(found["made_at"]), int(found["ends_at"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
