"""What a page is asked for, what it is made of, and what the addresses of pages have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from swarm_mcp.overview.edits import Edit
from swarm_mcp.overview.people import People
from swarm_mcp.store import Store

MOST_CHECKOUTS = 20  # of which all is shown on one page


class Asked(NamedTuple):
    """What an address asks for: `path` below the page's own, the checkout that it is about, and what else it says."""

    path: str
    scope: str
    given: dict[str, str]

    def get(self, name: str, otherwise: str = "") -> str:
        """What the address says of `name`."""
        return self.given.get(name, otherwise)

    def number(self, name: str, otherwise: int, least: int, most: int) -> int:
        """The number that it says, within bounds; `otherwise` where it says none."""
        text = self.given.get(name, "")
        if text.isascii() and text.isdigit() and len(text) < 12:
            return max(least, min(most, int(text)))
        return otherwise


class Look(NamedTuple):
    """One look at the store. `edited`: what is known of edits, by checkout: None where that is still being asked."""

    store: Store
    people: People
    asked: Asked
    edited: dict[str, list[Edit] | None]
    now: int

    @property
    def scope(self) -> str:
        """The checkout that is asked for; empty for all of them."""
        return self.asked.scope


class Page(NamedTuple):
    """What a view has found: its template, with what it shows, and its title.

    `state`, where it is made of files: what differs once there is more in them.
    """

    template: str
    title: str
    shown: dict[str, Any]
    state: Callable[[], object] | None = None


class View(NamedTuple):
    """A kind of page: its address, its name in the navigation (empty for none), and what makes it.

    `with_edits`: it is also made of edits that nobody has committed.
    """

    path: str
    name: str
    make: Callable[[Look], Page]
    with_edits: bool = False
