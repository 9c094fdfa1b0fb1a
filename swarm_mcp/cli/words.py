"""Small pieces of text that many commands print: numbers with nouns, clauses, spans, costs, excerpts, paths."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from time import localtime, strftime
from typing import Any, TypeVar

from swarm_hook_core.naming import UNNAMED
from swarm_hook_core.paths import git_root
from swarm_hook_core.wording import ago
from swarm_mcp.answers.people import People
from swarm_mcp.answers.size import ROWS_BYTES, page, printed
from swarm_mcp.cli.arguments import Arguments, Option
from swarm_mcp.cli.output import complain, for_people, moment, say, show
from swarm_mcp.domain import Page, Session
from swarm_mcp.folders import here
from swarm_mcp.sessions.acting import surrounding_session
from swarm_mcp.store import Store
from swarm_mcp.store.messages import name_of


def count(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 lock``, ``2 locks``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}s"


def clause(form: str, value: object) -> str:
    """Return `form` with `value` in place of its ``{}``, or an empty text if the value is empty or None."""
    if not value:
        return ""
    return form.replace("{}", str(value))


def span(seconds: float) -> str:
    """Return a running time in short form: ``4s``, ``1m05s``."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m{whole % 60:02d}s"


def dollars(cost: float | None) -> str:
    """Return a cost in US dollars; ``unknown`` for None."""
    if cost is None:
        return "unknown"
    return f"${cost:.4f}"


def excerpt(value: object, longest: int) -> str:
    """Return `value` on one line of at most `longest` characters, with an ellipsis if it is cut."""
    text = " ".join(str(value).split())
    if len(text) <= longest:
        return text
    return text[: longest - 1] + "…"


def said_path(path: str) -> str:
    """`path` in an answer of one line: at a terminal as it is called from this folder, whole for scripts."""
    if for_people():
        return near(path, places())
    return path


def places() -> list[tuple[str, str]]:
    """Return this folder and its checkout's root, as they are typed and as they are."""
    folders = dict.fromkeys([here(), os.path.realpath(here())])
    return [(folder.rstrip(os.sep), git_root(folder).rstrip(os.sep)) for folder in folders]


def near(path: str, folders: list[tuple[str, str]]) -> str:
    """Return `path` as it is called from the first of `folders` (`places`) whose checkout it is in; else as it is."""
    for folder, root in folders:
        if path.startswith(folder + os.sep):
            return path[len(folder) + 1 :]
        if path == folder or path.startswith(root + os.sep):
            return os.path.relpath(path, folder)
    return path


# Names for readers of text answers: sessions, files and times as a person at this place and time calls them.
#
# JSON has labels, whole paths and Unix seconds instead, and uses nothing from here.

HIDDEN = "another identity"


class Reader:
    """Names for one answer of this command. `viewer` is the identity of its reader, empty without one."""

    def __init__(self, args: Arguments, store: Store, viewer: str = ""):
        self.now = store.now()
        own = surrounding_session(store)
        self.own_id = ""
        if own:
            self.own_id = own.id
        self.people = People(store, viewer, self.own_id)
        self._absolute = args.given("--absolute")
        self._places: list[tuple[str, str]] = []
        if not self._absolute:
            self._places = places()

    def when(self, at: object) -> str:
        """The age of a time column; a date with --absolute, or if the value is not a time."""
        if self._absolute or not isinstance(at, (int, float)):
            return moment(at)
        return ago(self.now - at)

    def clock(self, at: object) -> str:
        """The local time of day of a time column, for lines that stay on a screen; otherwise as `when`."""
        if self._absolute or not isinstance(at, (int, float)):
            return moment(at)
        return strftime("%H:%M:%S", localtime(at))

    def path(self, path: str) -> str:
        """`path` as it is called from this folder, where it is in the same checkout; else as it is."""
        return near(path, self._places)

    def prose(self, text: str) -> str:
        """`text` with the paths of this checkout as they are called from this folder."""
        for folder, root in self._places:
            for place, instead in ((folder, ""), (root, os.path.relpath(root, folder) + os.sep)):
                text = re.sub(rf"(?<![\w./-]){re.escape(place)}/(?=[^\s`])", instead.replace("\\", r"\\"), text)
        return text

    def session(self, row: Session) -> str:
        """The name of a session; one without a label, as strangers are shown, is only a number."""
        return name_of(row, self.own_id)

    def holder(self, lock: dict[str, Any]) -> str:
        """The name of the session that has a lock as listings show it."""
        if lock.get("hidden"):
            return HIDDEN
        return self.known(lock["owner_label"], lock["instance_id"])

    def known(self, label: str | None, instance_id: str) -> str:
        """The name of a session whose label the answer has; None for an unknown label."""
        if label is not None:
            self.people.learn(instance_id, label)
        return self.called(instance_id)

    def called(self, instance_id: str | None) -> str:
        """The name of the session with this id, also of one that has gone."""
        name = self.people.called(instance_id)
        if name == UNNAMED:
            return HIDDEN
        return name


# Long listings in pages: the rows of one page, and a line about the rest.

R = TypeVar("R")

AFTER = Option(
    "--after CURSOR", "continue after CURSOR, as an earlier answer named it (empty: from the start)", source=()
)
PAGES = (Option("--limit N", "at most N rows, -1 for all (default: up to 100 KB)"), AFTER)


def printed_page(
    args: Arguments,
    walk: Callable[[str], Iterator[tuple[str, R]]],
    shown: Callable[[R], dict[str, Any] | None],
    total: Callable[[], int],
    default: int = -1,
) -> Page:
    """Return the page that --limit (`default` if it is not given) and --after select, of rows as JSON has them.

    An explicit --limit is kept however large the rows are. The other arguments are those of ``size.page``.
    """
    after, limit = args.value("--after"), args.number("--limit", default)
    rows = None
    if limit >= 0:
        rows = limit
    most: float = ROWS_BYTES
    if args.given("--limit"):
        most = float("inf")
    return page(walk(after), shown, total, after=after, limit=rows, most=most, measure=printed)


def say_page(args: Arguments, found: Page, table: Callable[[], object]) -> int:
    """Print a page as JSON, or by `table`, and then the number of the other rows. Returns exit code 0."""
    if args.json:
        show(found.rows)
    else:
        table()
    say_rest(args, found)
    return 0


def say_rest(args: Arguments, found: Page) -> None:
    """Print the number of all rows, and how to get the rest, if these are not all.

    In text this is the last line. With JSON it goes to standard error, and is left out if --limit was given without
    --after: the caller wanted just that number.
    """
    if found.total is None or (args.json and args.given("--limit") and not args.given("--after")):
        return
    line = f"{len(found.rows)} of {found.total} shown" + clause("; for more: --after {}", found.next)
    if args.json:
        complain(line)
    else:
        say(line)
