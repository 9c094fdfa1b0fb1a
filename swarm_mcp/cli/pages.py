"""Long listings in pages: the rows of one page, and a line about the rest."""

from __future__ import annotations

from swarm_mcp.answers.paging import page
from swarm_mcp.answers.size import ROWS_BYTES, printed
from swarm_mcp.cli.arguments import Arguments, Option
from swarm_mcp.cli.output import complain, say, show
from swarm_mcp.cli.words import clause
from swarm_mcp.domain.page import Page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

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

    An explicit --limit is kept however large the rows are. The other arguments are those of ``paging.page``.
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
