"""What a request says of who makes it."""

from __future__ import annotations

from typing import NamedTuple


class Credentials(NamedTuple):
    """A role's `name`, empty for a bearer, and its password or a token."""

    name: str
    secret: str


class WrongCredentials(Exception):
    """Nobody is known by what a request says. The text is for whoever sent it."""
