"""Print the requirements of the parts that run agents, and of the plugin, with the tests that are marked with them.

requirements.txt has one requirement a line: id, words, and behind a bar the part without a test. A line that begins with # is
a heading. The tests are read, not run.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).resolve().parents[1]
LISTED = Path(__file__).with_name("requirements.txt")
HEAD = """\
# Requirements

Requirements of the parts that run agents and of the plugin, with the files of their tests (`@requirement("A-30")`). Tested:
{tested} of {all}, {partly} in part.
"""


class Requirement(NamedTuple):
    """One line of the list; `lacking` is the part without a test."""

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
    """Return id -> the tests marked with it, as ``(file below tests/, name)``."""
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
    """Return the page. Raises ValueError if a test is marked with an unknown requirement."""
    tests, rows = marked(), list(listed())
    wanted = [row for row in rows if isinstance(row, Requirement)]
    strange = sorted(set(tests) - {row.id for row in wanted})
    if strange:
        raise ValueError(f"tests are marked with {', '.join(strange)}, which requirements.txt does not have")
    tested = [row for row in wanted if row.id in tests]
    partly = sum(bool(row.lacking) for row in tested)
    parts = [HEAD.format(tested=len(tested), all=len(wanted), partly=partly)]
    for row in rows:
        if isinstance(row, str):
            parts.append(f"\n## {row}\n\n||requirement|tests|\n|---|---|---|\n")
        else:
            lacking = f" (in part: {row.lacking})" if row.lacking else ""
            parts.append(f"|{row.id}|{row.words}{lacking}|{_files(tests.get(row.id, []))}|\n")
    return "".join(parts)


def _marks(node: ast.stmt) -> list[str]:
    if not isinstance(node, ast.FunctionDef):
        return []
    calls = [mark for mark in node.decorator_list if isinstance(mark, ast.Call)]
    mine = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "requirement"]
    return [str(word.value) for call in mine for word in call.args if isinstance(word, ast.Constant)]


def _files(tests: list[tuple[str, str]]) -> str:
    """Return the files of `tests`, or the words "no test"."""
    return ", ".join(dict.fromkeys(f"tests/{file}" for file, _ in tests)) or "**no test**"


if __name__ == "__main__":
    print(page(), end="")
