"""Writes docs/dev/requirements.md from what the tests are marked with: requirements_page.py docs/dev/requirements.md

The requirements stand in requirements.txt, one a line: id, words, and behind a bar what no test shows of it. A line that
begins with # is a heading. The tests are read, not run.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).resolve().parents[1]
LISTED = Path(__file__).with_name("requirements.txt")
HEAD = """\
# Requirements

What was asked of the parts that run agents and of the plugin, by the programs that they learned from, and which tests
show that it holds. Written by `make requirements-page` from the marks at the tests (`@requirement("A-30")`); a unit test
keeps the page and the marks in step. Whether the tests pass is for `make test` and `make e2e` to say; those in `e2e` need
the real clients, and are skipped by name where one cannot be had.

{tested} of {all} have tests, {partly} of these in part; {without} none.
"""


class Requirement(NamedTuple):
    """One line of the list; `lacking` is what no test shows."""

    id: str
    words: str
    lacking: str


def listed() -> Iterator[Requirement | str]:
    """Yield the requirements in their order, and headings as text."""
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            yield line[1:].strip()
        else:
            said, _, lacking = line.partition(" | ")
            number, _, words = said.partition(" ")
            yield Requirement(number, words, lacking)


def marked() -> dict[str, list[tuple[str, str]]]:
    """Return id -> the tests that are marked with it, as ``(file below tests/, name)``."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "@requirement(" not in text:
            continue
        for node in ast.parse(text).body:
            for number in _marks(node):
                found.setdefault(number, []).append((path.relative_to(TESTS).as_posix(), node.name))  # type: ignore[attr-defined]
    return found


def page() -> str:
    """Return the page as it has to be. Raises ValueError where a test names a requirement that there is not."""
    tests, rows = marked(), list(listed())
    wanted = [row for row in rows if isinstance(row, Requirement)]
    strange = sorted(set(tests) - {row.id for row in wanted})
    if strange:
        raise ValueError(f"tests are marked with {', '.join(strange)}, which requirements.txt does not have")
    tested = [row for row in wanted if row.id in tests]
    partly = sum(bool(row.lacking) for row in tested)
    parts = [
        HEAD.format(tested=len(tested), all=len(wanted), partly=partly, without=len(wanted) - len(tested)),
    ]
    for row in rows:
        if isinstance(row, str):
            parts.append(f"\n## {row}\n\n| | requirement | verdict | tests |\n|---|---|---|---|\n")
        else:
            verdict = "**no test**" if row.id not in tests else "in part" if row.lacking else "tested"
            if row.lacking:
                verdict += f": {row.lacking}"
            parts.append(f"| {row.id} | {row.words} | {verdict} | {_named(tests.get(row.id, []))} |\n")
    return "".join(parts)


def _marks(node: ast.stmt) -> list[str]:
    if not isinstance(node, ast.FunctionDef):
        return []
    calls = [mark for mark in node.decorator_list if isinstance(mark, ast.Call)]
    mine = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "requirement"]
    return [str(word.value) for call in mine for word in call.args if isinstance(word, ast.Constant)]


def _named(tests: list[tuple[str, str]]) -> str:
    files: dict[str, list[str]] = {}
    for file, name in tests:
        files.setdefault(file, []).append(f"`{name}`")
    shown = [f"[{_short(file)}](../../tests/{file}): {', '.join(names)}" for file, names in files.items()]
    return "<br>".join(shown)


def _short(file: str) -> str:
    return re.sub(r"^unit/|\.py$|test_", "", file).replace("_", " ")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
