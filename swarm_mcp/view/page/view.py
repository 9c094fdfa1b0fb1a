"""The request for a page, the parts of a page, and the addresses of pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from swarm_mcp.answers.people import People
from swarm_mcp.store import Store
from swarm_mcp.view.overview.work import NOTHING, Work

MOST_CHECKOUTS = 20  # checkouts that one page shows whole


class Asked(NamedTuple):
    """A request: `path` below the page's own, its checkout, and its further parameters."""

    path: str
    scope: str
    given: dict[str, str]

    def get(self, name: str, otherwise: str = "") -> str:
        """Return the parameter `name`."""
        return self.given.get(name, otherwise)

    def number(self, name: str, otherwise: int, least: int, most: int) -> int:
        """Return the parameter as a number within bounds; `otherwise` if it is missing."""
        text = self.given.get(name, "")
        if text.isascii() and text.isdigit() and len(text) < 12:
            return max(least, min(most, int(text)))
        return otherwise


class Look(NamedTuple):
    """One look at the store. `work`: the known uncommitted work by checkout, None for a checkout still being read."""

    store: Store
    people: People
    asked: Asked
    work: dict[str, Work | None]
    now: int

    @property
    def scope(self) -> str:
        """The checkout that is asked for; empty for all of them."""
        return self.asked.scope

    def work_in(self, scope: str) -> Work:
        """Return the known uncommitted work in a checkout, perhaps none yet."""
        return self.work.get(scope) or NOTHING


class Page(NamedTuple):
    """The result of a view: its template, the template's values, and the title.

    `state`, for a page made of files, differs once they have grown.
    """

    template: str
    title: str
    shown: dict[str, Any]
    state: Callable[[], object] | None = None


class View(NamedTuple):
    """A kind of page: its address, its name in the navigation (may be empty), and its function.

    `with_work`: the page shows uncommitted work.
    """

    path: str
    name: str
    make: Callable[[Look], Page]
    with_work: bool = False
