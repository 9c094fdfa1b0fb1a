"""Writes the tables in docs/clients.md from the runtimes' declarations: clients_table.py docs/clients.md"""

import re
import sys
from pathlib import Path

from matrix.rows import persons_line

from swarm_mcp.runtimes import NAMES, hook_config, runtime
from swarm_mcp.runtimes.installed import COLUMNS, held_by_the_kernel

UNTRIED = {
    "cursor": "unknown: needs an account",
    "letta": "unknown: npm lacks parts of its releases",
    "hs": "unknown: on no index",
}
_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


def with_tables(page: str) -> str:
    """Return `page` with its two tables, coverage and the hooks' knowledge, as the runtimes declare them now."""
    declared = iter([_table(_covered()), _table(_known_to_hooks())])
    changed, count = _TABLE.subn(lambda _found: next(declared), page)
    if count != 2:
        raise ValueError(f"the page has {count} tables instead of two")
    return changed


def _covered() -> list[tuple[str, ...]]:
    heads = ("client", *COLUMNS, "a person's line", "held by the kernel", "oldest", "verified with")
    rows: list[tuple[str, ...]] = [heads]
    for name in NAMES:
        covered = runtime(name).coverage
        verified = f"{covered.verified.version}, {covered.verified.date}" if covered.verified else "**unverified**"
        beside = (
            persons_line(name),
            held_by_the_kernel(hook_config(name)),
            runtime(name).oldest or UNTRIED[name],
            verified,
        )
        rows.append((runtime(name).title, *covered.said(), *beside))
    return rows


def _known_to_hooks() -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("client", "`--client`", "its variables begin with", "tools that write files")]
    for name in NAMES:
        config = hook_config(name)
        tools = ", ".join(f"`{tool}`" for tool in sorted(config.write_tools))
        rows.append((runtime(name).title, f"`{name}`", f"`SWARM_{config.env_prefix}_`", tools))
    return rows


def _table(rows: list[tuple[str, ...]]) -> str:
    """The Markdown table with these rows, the heads first."""
    heads, *others = rows
    return "".join(f"|{'|'.join(cells)}|\n" for cells in (heads, ("---",) * len(heads), *others))


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
