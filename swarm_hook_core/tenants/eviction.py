"""The removal of a folder with sessions in it, as a record."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.lookup import Held


class Eviction:
    """A folder `root`, without links, with live sessions of others (`tenants`) that a call takes away.

    deed       the effect of the call, as a verb
    by         the part of the command that does so
    commits    ``[(short name, subject)]`` that no other ref has, newest first; None: git did not answer
    head       the commit that is checked out there; may be empty
    main       a folder of the same repository that stays; empty if none does
    is_denied  True if the call is denied for it
    """

    __slots__ = ("root", "tenants", "deed", "by", "commits", "head", "main", "is_denied")

    def __init__(self, root: str, deed: str, by: str):
        self.root = root
        self.deed = deed
        self.by = by
        self.tenants: list[Held] = []
        self.commits: list[tuple[str, str]] | None = []
        self.head = self.main = ""
        self.is_denied = False
