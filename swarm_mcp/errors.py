"""Errors that reach a user as one line.

  SwarmError               exit 1: the request cannot be carried out; the message says why
  ├── UsageError           the command line is wrong
  ├── UnknownInstance      no session, or more than one, answers to a reference
  ├── Refused              the request is well formed, and the rules of the store say no
  │   ├── LockRefused      another session holds the file
  │   ├── Deadlock         waiting would close a circle of sessions that wait for each other
  │   ├── PersonOnly       it would weaken the protection of others, and an agent gives the command
  │   └── NotConfirmed     a task was not claimed, since other machines cannot be asked
  ├── StoreUnavailable     the database cannot be opened, read or written
  └── ClientFailed         an agent client's own command failed

Any other error is a bug: exit 3, with a report in the state folder.
"""

from __future__ import annotations

from typing import Any


class SwarmError(Exception):
    """A request that cannot be carried out. The text is one line for the user."""


class UsageError(SwarmError):
    """The command line is wrong."""


class UnknownInstance(SwarmError):
    """No session, or more than one, answers to a reference."""


class Refused(SwarmError):
    """The request is well formed, and the rules say no. `answer` says so to machines: ``{"error", ...}``."""

    def __init__(self, reason: str, **more: object):
        super().__init__(reason)
        self.answer: dict[str, Any] = {"error": reason, **more}


class LockRefused(Refused):
    """Another session holds the file. `active` describes the lock, in the contract's shape."""

    def __init__(self, active: dict[str, Any]):
        super().__init__("File is already locked", active=active)
        self.active = active


class Deadlock(Refused):
    """Waiting would close a circle of holders that wait for each other. `circle` names them, this one first."""

    def __init__(self, circle: list[str]):
        pairs = ", ".join(f"{one} for {other}" for one, other in zip(circle, [*circle[1:], circle[0]]))
        advice = "Release what you hold, or ask one of the others to"
        super().__init__(f"waiting would never end, each waits for the next: {pairs}. {advice}", circle=circle)
        self.circle = circle


class PersonOnly(Refused):
    """The command would weaken the protection of others, and an agent gives it: a person's to do."""


class NotConfirmed(Refused):
    """A task was not claimed: other machines cannot be asked about their claims."""


class StoreUnavailable(SwarmError):
    """The database cannot be opened, read or written."""


class ClientFailed(SwarmError):
    """An agent client's own command failed."""
