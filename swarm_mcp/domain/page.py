"""A part of a listing that is too long for one answer."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple
else:
    from swarm_mcp.domain.record import NamedValues as NamedTuple


class Page(NamedTuple):
    """Rows of a listing, in its order, as answers show them.

    total  the number of rows of the listing in all, None if these are all of them
    next   the cursor behind the last of these rows, which `after` takes to go on; empty if no more follow
    """

    rows: list[Any]
    total: int | None = None
    next: str = ""

    def told(self) -> dict[str, Any]:
        """Return the part of an answer about the rest: ``{total, next}``, empty without a rest."""
        told: dict[str, Any] = {} if self.total is None else {"total": self.total}
        return {**told, **({"next": self.next} if self.next else {})}
