"""Long listings in pages: the rows of one page, and a line about the rest."""

from __future__ import annotations

from swarm_mcp.answer_size import ROWS_BYTES, printed
from swarm_mcp.cli.arguments import Arguments, Option
from swarm_mcp.cli.output import complain, say
from swarm_mcp.domain.page import Page
from swarm_mcp.paging import page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    R = TypeVar("R")

AFTER = Option(
    "--after CURSOR", "continue after CURSOR, as an earlier answer named it (empty: from the start)", source=()
)
PAGES = (Option("--limit N", "at most N rows, -1 for all (default: up to 100 KB)"), AFTER)


def printed_page(
    args: Arguments,
    walk: Callable[[str], Iterator[tuple[str, R]]],
    shown: Callable[[R], dict | None],
    total: Callable[[], int],
    default: int = -1,
) -> Page:
    """Return the page that --limit (`default` if it is not given) and --after select, of rows as JSON has them.

    An explicit --limit is kept however large the rows are. The other arguments are those of ``paging.page``.
    """
    after, limit = args.value("--after"), args.number("--limit", default)
    most = float("inf") if args.given("--limit") else ROWS_BYTES
    rows = limit if limit >= 0 else None
    return page(walk(after), shown, total, after=after, limit=rows, most=most, measure=printed)


def say_rest(args: Arguments, found: Page) -> None:
    """Print the number of all rows, and how to get the rest, if these are not all.

    In text this is the last line. With JSON it goes to standard error, and is left out if --limit was given without
    --after: the caller wanted just that number.
    """
    if found.total is None or (args.json and args.given("--limit") and not args.given("--after")):
        return
    rest = f"; for more: --after {found.next}" if found.next else ""
    (complain if args.json else say)(f"{len(found.rows)} of {found.total} shown{rest}")
