"""Long listings in pages: what of one is printed, and how the rest is said and had."""

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
    "--after CURSOR", "go on where an earlier answer stopped, which named this CURSOR (empty: begin)", source=()
)
PAGES = (Option("--limit N", "at most N rows, -1 for all (default: as many as take 100 KB)"), AFTER)


def printed_page(
    args: Arguments,
    walk: Callable[[str], Iterator[tuple[str, R]]],
    shown: Callable[[R], dict | None],
    total: Callable[[], int],
    default: int = -1,
) -> Page:
    """The page that --limit (`default` where it is not given) and --after ask for, of rows as JSON has them.

    Who says how many rows there shall be gets them, however large they are. The rest as in ``paging.page``.
    """
    after, limit = args.value("--after"), args.number("--limit", default)
    most = float("inf") if args.given("--limit") else ROWS_BYTES
    rows = limit if limit >= 0 else None
    return page(walk(after), shown, total, after=after, limit=rows, most=most, measure=printed)


def say_rest(args: Arguments, found: Page) -> None:
    """Say how many rows there are in all, and how to get the others, where these are not all.

    In text as its last line. Beside JSON, which scripts read to its end, on standard error; and there nothing to whom
    asked for just so many, unless by --after, which may be empty.
    """
    if found.total is None or (args.json and args.given("--limit") and not args.given("--after")):
        return
    rest = f"; for more: --after {found.next}" if found.next else ""
    (complain if args.json else say)(f"{len(found.rows)} of {found.total} shown{rest}")
