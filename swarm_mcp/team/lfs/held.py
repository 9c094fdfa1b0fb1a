"""A lock as git-lfs knows it, and the pages of a list of them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, NamedTuple

from swarm_hook_core.naming import holder_name
from swarm_hook_core.untrusted_text import cut
from swarm_mcp.team.memberships import machine_shortly
from swarm_mcp.team.protocol import LockRow

MOST = 5000  # locks in one answer
SESSION = "git-lfs:"  # begins the id of the session in which a person holds what `git lfs lock` has locked
_LONGEST_OWNER = 120  # characters


class Held(NamedTuple):
    """One lock of the team's, on `path`: the lock's own, or that of a file in what it reaches.

    Its own is the path from the top, with a slash at its end where that is known to be a folder's; or the pattern.
    """

    row: LockRow
    path: str

    @property
    def id(self) -> str:
        """By which git-lfs names it: another one after each grant, so that nobody unlocks what they have not seen."""
        return str(self.row["fence"])

    @property
    def owner(self) -> str:
        """Who has it, for people: a role's name, and which of its sessions."""
        role, session = self.row["member"], self.row["session"]
        if session == session_of(role):
            return cut(role, _LONGEST_OWNER)
        name = holder_name(self.row["label"], session)
        return cut(f"{role}: {name} on {machine_shortly(self.row['machine'])}", _LONGEST_OWNER)

    def as_json(self) -> dict[str, Any]:
        """The lock in git-lfs's form."""
        at = datetime.fromtimestamp(int(self.row["granted_at"]), timezone.utc)
        return {
            "id": self.id,
            "path": self.path,
            "locked_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "owner": {"name": self.owner},
        }


class Page(NamedTuple):
    """Some of a list of locks, and the cursor at which the next page begins: empty for none."""

    locks: list[Held]
    next_cursor: str


def session_of(role: str) -> str:
    """Return the id of the session in which the person with this role holds what `git lfs lock` has locked."""
    return SESSION + role


def label_of(role: str) -> str:
    """Return the label of that session, by which other sessions know it as ``ann git-lfs``."""
    return f"{'-'.join(role.replace(':', ' ').split())} session:git-lfs"


def held_by(row: LockRow) -> Held:
    """Return the lock of one row, on its own path."""
    if row["pattern"]:
        return Held(row, f"{row['base']}/{row['pattern'].lstrip('/')}".lstrip("/"))
    return Held(row, row["place"] + "/" * row["is_folder"])


def page_of(locks: list[Held], cursor: str, limit: int) -> Page:
    """Return the page of `locks` behind `cursor`, the newest first. Raises ValueError for what is no cursor.

    A cursor names a place in that order and no lock, so that one may go while somebody turns pages.
    """
    ordered = sorted(locks, key=_order)
    if cursor:
        fence, _, path = cursor.partition(":")
        behind = (-int(fence), path)
        ordered = [one for one in ordered if _order(one) > behind]
    shown = ordered[: min(max(limit, 1), MOST)]
    return Page(shown, f"{shown[-1].id}:{shown[-1].path}" if len(ordered) > len(shown) else "")


def _order(held: Held) -> tuple[int, str]:
    return -held.row["fence"], held.path
