"""Templates, and the words and addresses in them.

A template treats every value as a session's text unless it is marked as safe: characters that hide or reverse text are
escaped first, then those of HTML.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, quote_from_bytes

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from swarm_hook_core.naming import UNNAMED
from swarm_hook_core.untrusted_text import cut, cut_text, safe
from swarm_hook_core.wording import duration
from swarm_mcp.answers.people import People
from swarm_mcp.answers.timeline import Happening, around_name, incident_of
from swarm_mcp.domain import ENDED, SYSTEM
from swarm_mcp.store import Store
from swarm_mcp.view.overview.now import near
from swarm_mcp.view.overview.work import NOTHING, Work

LONGEST = 4000  # characters of one text of a session
NO_TIME = "at an unknown time"


def environment() -> Environment:
    """The templates of the page."""
    made = Environment(
        loader=PackageLoader("swarm_mcp.view.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters.update(
        span=duration,
        lost=_lost,
        ago=_ago,
        clock=_clock,
        stamp=_stamp,
        day_time=_day_time,
        last=_last,
        near=near,
        short=lambda text, longest=120: cut(str(text), longest),
        long=lambda text: cut_text(str(text), LONGEST),
        dollars=_dollars,
        thousands="{:,}".format,
        status=lambda text: safe(str(text)).replace("_", " "),
    )
    made.globals.update(address=address, ended=ENDED, system=SYSTEM, unnamed=UNNAMED)
    return made


def address(path: str, /, **parameters: object) -> str:
    """An address of ours: `parameters` that are empty are left out. Names of files may be in no encoding at all."""
    given = [f"{name}={_quoted(str(value))}" for name, value in parameters.items() if value not in ("", None)]
    return quote(path) + ("?" + "&".join(given) if given else "")


@lru_cache(8192)
def _quoted(text: str) -> str:
    return quote_from_bytes(os.fsencode(text), "")


def _shown(value: object) -> object:
    if isinstance(value, Markup) or not isinstance(value, str):
        if value is None:
            return ""
        return value
    return safe(value)


def _lost(event: Happening) -> tuple[str, str] | None:
    """Return the reason of a refusal or notice: the words before and after the other session's name, "" without one."""
    incident = incident_of(event)
    if incident is None:
        return None
    before, after = around_name(incident, lambda path: near(path, event.scope))
    if after is None:
        return before, ""
    return before, after or " "  # a blank: the name is the last word


def _ago(moment: object, now: float) -> str:
    if not isinstance(moment, (int, float)):
        return NO_TIME
    seconds = now - moment
    if seconds < 2:
        return "just now"
    return f"{duration(seconds)} ago"


def _clock(moment: object) -> str:
    return _local(moment, "%H:%M:%S")


def _stamp(moment: object) -> str:
    return _local(moment, "%Y-%m-%dT%H:%M:%S%z")


def _day_time(moment: object) -> str:
    return _local(moment, "%Y-%m-%d %H:%M:%S")


def _local(moment: object, form: str) -> str:
    """Return a moment as local time. Another program may have stored a value that is no time: the result says so."""
    if not isinstance(moment, (int, float)):
        return NO_TIME
    try:
        return time.strftime(form, time.localtime(moment))
    except (ValueError, OverflowError, OSError):  # another program's value
        return NO_TIME


def _last(path: str) -> str:
    """Return the last part of a path, its name among people; of a pattern such as ``src/**`` the part before it too."""
    folder, _, name = path.rstrip("/").rpartition("/")
    if "*" in name and folder:
        return f"{_last(folder)}/{name}"
    return name or path


def _dollars(amount: float | None) -> str:
    if amount is None:
        return "not known"
    if amount < 1:
        return f"${amount:.4f}"
    return f"${amount:.2f}"


# The request for a page, the parts of a page, and the addresses of pages.

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
