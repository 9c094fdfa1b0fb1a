"""Writes the table in docs/clients.md from what the runtimes declare: clients_table.py docs/clients.md"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from swarm_mcp.runtimes import NAMES, runtime
from swarm_mcp.runtimes.coverage import table

_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


def with_table(page: str) -> str:
    """`page` with its only table as the runtimes declare it now."""
    declared = table([(runtime(name).title, runtime(name).coverage) for name in NAMES])
    changed, count = _TABLE.subn(lambda _found: declared, page)
    if count != 1:
        raise ValueError(f"the page has {count} tables instead of one")
    return changed


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(with_table(page.read_text(encoding="utf-8")), encoding="utf-8")
