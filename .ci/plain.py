#!/usr/bin/env python3
"""Checks that prose and code stay plain, and that commit subjects can be scanned. `make check` runs it.

    .ci/plain.py               compare every tree with its ceilings in plain.json
    .ci/plain.py --worst N     also print the N worst sentences of each tree
    .ci/plain.py --lower       write what was measured as the new ceilings, where it is lower

Per tree, it measures:
- riddles: words such as "which", "whoever" or "somebody" per 1,000 words of docstrings, comments and running text. A
  sentence with several of them has a clause for a subject, and a reader has to guess what it is about.
- conditionals: conditional expressions per 1,000 lines of Python.
- quiet: `except` bodies that only pass, return, continue or break, without a comment that says why. A body that returns
  something made of the error is not quiet.
- untyped: arguments without an annotation.

A ceiling may only fall. Exit status 1: something is above its ceiling, or a commit subject is over 72 characters long.
"""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CEILINGS = ROOT / ".ci" / "plain.json"
RIDDLE = re.compile(
    r"\b(?:which|who|whom|whose|what|whoever|whatever|whichever|whether|wherever|whereby"
    r"|somebody|nobody|anybody|everybody|someone|anyone|none|another's|others')\b",
    re.IGNORECASE,
)
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+")
DIRECTIVES = ("#!", "# type:", "# noqa")
QUIET = (ast.Pass, ast.Return, ast.Continue, ast.Break)
SUBJECT_LENGTH = 72
CHECKED_SINCE = "2282a92928c7a394cd565d6e4a0fcd333420cfc9"  # earlier subjects are longer, and history is not rewritten


class Measure:
    """Counts of one file or of a tree. Measures can be added."""

    def __init__(self) -> None:
        self.words = self.riddles = self.lines = self.conditionals = self.quiet = self.untyped = 0
        self.worst: list[tuple[int, str]] = []

    def add(self, other: Measure) -> None:
        for name in ("words", "riddles", "lines", "conditionals", "quiet", "untyped"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.worst += other.worst

    def figures(self) -> dict[str, float]:
        return {
            "riddles": round(1000 * self.riddles / max(self.words, 1), 1),
            "conditionals": round(1000 * self.conditionals / max(self.lines, 1), 1),
            "quiet": self.quiet,
            "untyped": self.untyped,
        }

    def read_prose(self, place: str, paragraphs: list[str]) -> None:
        """Count words and riddle words. Sentences of fewer than three words are names, not prose."""
        for paragraph in paragraphs:
            for sentence in SENTENCE_END.split(" ".join(paragraph.split())):
                words = len(WORD.findall(sentence))
                if words < 3:
                    continue
                riddles = len(RIDDLE.findall(sentence))
                self.words += words
                self.riddles += riddles
                if riddles:
                    self.worst.append((riddles, f"{place}: {sentence[:200]}"))

    def read_code(self, tree: ast.Module, commented: set[int]) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.IfExp):
                self.conditionals += 1
            elif isinstance(node, ast.ExceptHandler):
                rows = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                is_quiet = all(isinstance(statement, QUIET) for statement in node.body)
                names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                self.quiet += is_quiet and commented.isdisjoint(rows) and node.name not in names
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                self.untyped += sum(a.annotation is None and a.arg not in ("self", "cls") for a in arguments)


def measure(path: Path) -> Measure:
    """Measure one Python or Markdown file."""
    found, text, place = Measure(), path.read_text(errors="replace"), str(path.relative_to(ROOT))
    if path.suffix == ".md":
        found.read_prose(place, running_text(text))
        return found
    tree = ast.parse(text)
    comments = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.COMMENT]
    prose = [line.string.lstrip("# ") for line in comments if not line.string.startswith(DIRECTIVES)]
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            prose += re.split(r"\n\s*\n", ast.get_docstring(node) or "")
    found.read_prose(place, prose)
    found.lines = text.count("\n")
    found.read_code(tree, {comment.start[0] for comment in comments})
    return found


def running_text(markdown: str) -> list[str]:
    """Return the paragraphs of a Markdown text without code, tables, headings and link targets."""
    text = re.sub(r"```.*?```", "", markdown, flags=re.DOTALL)
    text = re.sub(r"`[^`]*`", "x", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return [part for part in re.split(r"\n\s*\n", text) if not part.lstrip().startswith(("#", "|", "<", "!"))]


def files_of(tree: str) -> list[Path]:
    place = ROOT / tree
    if place.is_file():
        return [place]
    found = (path for path in place.rglob("*") if path.suffix in (".py", ".md"))
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(place).parts))


def measured(trees: list[str]) -> dict[str, Measure]:
    """Measure each tree, on all processors."""
    files = [(tree, path) for tree in trees for path in files_of(tree)]
    totals = {tree: Measure() for tree in trees}
    with ProcessPoolExecutor() as pool:
        for (tree, _), found in zip(files, pool.map(measure, [path for _, path in files], chunksize=32)):
            totals[tree].add(found)
    return totals


def long_subjects() -> list[str]:
    """Return the commits since CHECKED_SINCE with a longer subject. A source archive, or a clone without that commit,
    has no list.
    """
    log = ["git", "-C", str(ROOT), "log", "--format=%h %s", f"{CHECKED_SINCE}..HEAD"]
    lines = subprocess.run(log, capture_output=True, text=True).stdout.splitlines()
    return [line for line in lines if len(line.split(" ", 1)[1]) > SUBJECT_LENGTH]


def main(arguments: list[str]) -> int:
    ceilings: dict[str, dict[str, float]] = json.loads(CEILINGS.read_text())
    worst = int(arguments[arguments.index("--worst") + 1]) if "--worst" in arguments else 0
    failed = False
    for tree, total in measured(list(ceilings)).items():
        figures = total.figures()
        for name, ceiling in ceilings[tree].items():
            if figures[name] > ceiling:
                failed = True
                print(f"{tree}: {name} {figures[name]}, at most {ceiling}", file=sys.stderr)
        if worst:
            print(f"{tree}: {figures}")
            for _, line in sorted(total.worst, reverse=True)[:worst]:
                print(f"    {line}")
        if "--lower" in arguments:
            ceilings[tree] = {name: min(ceiling, figures[name]) for name, ceiling in ceilings[tree].items()}
    if "--lower" in arguments:
        CEILINGS.write_text(json.dumps(ceilings, indent=2) + "\n")
    for line in long_subjects():
        failed = True
        print(f"a commit subject of over {SUBJECT_LENGTH} characters: {line}", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
