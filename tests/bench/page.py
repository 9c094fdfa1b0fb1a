"""The page of measurements: one section for each part that was measured, the others as they were."""

import os
import platform
import re
import sys
import time
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from corpora import blocks, report, truth

MACHINE = "Linux x86_64, 2 cores, Python 3.11.7"
HEAD = f"""# Measurements

Written by `make bench` (`BENCH="--part states"`: one section), which prints more.
Ratios count, not milliseconds: each sample runs beside a bare `python3 -I -S -c pass` (`bare`). The machine, unless a
section names another: {MACHINE}.
"""


class Part(NamedTuple):
    """A section of the page: its title, a sentence for readers, and a pattern of the lines to show (all by default)."""

    title: str
    sentence: str
    shown: str = ""


PARTS = {
    "corpus": Part(
        "Shell commands",
        "Predicted writes of recorded commands, against their real ones.",
        r"^all|^harmless|^processor",
    ),
    "hooks": Part(
        "Checks among many locks",
        "Their number does not matter.",
        r"^ {50,}median|^PreToolUse claude-code allow +1,000,000 ",
    ),
    "states": Part(
        "Checks beside a peer",
        "In bare interpreters, hooks as `swarm-mcp install` writes them; columns are what a peer did.",
        r"^a bare|^instructions|^claude-code (?!create|grep)|^codex edit|^cpu of claude-code edit",
    ),
    "mix": Part(
        "A mix of calls",
        "A call's hooks, in bare interpreters: by the relay in C, in Python, alone.",
        r"^\d+ calls|^alone|^a (peer's lock|peer at work|hold)",
    ),
    "mix-large": Part(
        "The mix after much work",
        "Uncommitted edits of six sessions.",
        r"^\d+ calls|^after|^1,000,000|^50 ",
    ),
    "crowd": Part("Many sessions at work", "Each with its own server and checker, in one checkout."),
    "commands": Part(
        "Commands",
        "The same of commands by pip's script, beside a peer, and in a new home.",
        r"^load|^instructions|^\S+ +\d",
    ),
    "many": Part(
        "Many changed files", "Changed by four sessions; checks and commands beside `git diff`.", r"^processor|^\w.* \d"
    ),
    "kernel": Part(
        "The kernel layer", "Added time of a command that holds locked files, in ms.", r"^a command|^ +wall|^held"
    ),
    "coordinator": Part(
        "Coordinator",
        "Calls of the MCP server, commands, start-up and memory.",
        r"^calls|^\w+ 100,000 +\d|^commands|^\w.*, 100,000 |^server",
    ),
    "locks": Part("Locks and waiting", "Wake-up, and locks per second.", r"^wake|^nobody|^uncon|^one|^lock|^\d+ proc"),
    "page": Part(
        "The page in a browser",
        "Fifty open pages beside 100,000 locks.",
        r"median|^/ |^from a|memory",
    ),
    "harness": Part("Supervised workers", "A child with and without a supervisor.", r"^one|lines in|with hooks"),
    "team": Part(
        "The server that a team shares",
        "Grants, delay of other machines, load.",
        r"p50|^bare +|^grant|^settled|^40",
    ),
    "clients": Part(
        "End to end in the real clients",
        "Beside a peer that wrote and locks; median differences.",
    ),
    "auto": Part(
        "Edits lost, without locks",
        "Scripted agents of both clients in the same ten files; `wasted` and `s` are of the README's table.",
        r"^\d agents|^(no plugin|notice|keep|turn) ",
    ),
}
TITLES = {name: part.title for name, part in PARTS.items()}


class Tee:
    """Standard output that is also kept."""

    def __init__(self) -> None:
        self._kept = StringIO()
        self._out = sys.stdout

    def __enter__(self) -> "Tee":
        sys.stdout = self
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout = self._out

    def write(self, text: str) -> int:
        """Print `text` and keep it."""
        self._kept.write(text)
        return self._out.write(text)

    def flush(self) -> None:
        """Do nothing, for the interface of a stream."""
        self._out.flush()

    @property
    def text(self) -> str:
        """Return the printed text."""
        return self._kept.getvalue()


def put(file: Path, part: str, text: str) -> None:
    """Replace the section of `part` in `file` by `text`, with day and machine; make the file where it is missing."""
    sections = _sections(file.read_text()) if file.exists() else {}
    measured = time.strftime("%Y-%m-%d", time.gmtime())
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    if machine != MACHINE:
        measured = f"{measured}, {machine}"
    sections[part] = f"{PARTS[part].sentence} {measured}.\n\n```\n{_main_rows(part, text)}\n```\n"
    body = "\n".join(f"## {title}\n\n{sections[name]}" for name, title in TITLES.items() if name in sections)
    file.write_text(f"{HEAD}\n{body}")


def _main_rows(part: str, text: str) -> str:
    """Return the lines of `text` that the page shows, each once, without marks of missed limits."""
    lines = [re.sub(r"<-- over| \(limit [^)]*\)|  limit .*", "", line).rstrip() for line in text.strip().splitlines()]
    shown = [line for line in lines if line and re.search(PARTS[part].shown, line)]
    return "\n".join(dict.fromkeys(shown))


def _sections(page: str) -> dict[str, str]:
    names = {title: name for name, title in TITLES.items()}
    parts = (part.partition("\n\n") for part in page.split("\n## ")[1:])
    return {names[title]: f"{text.strip()}\n" for title, _, text in parts if title in names}


def corpus() -> str:
    """The corpus report's summary: writes found by kind, harmless commands denied and told, processor time."""
    every = [block for folder in blocks.FOLDERS for block in blocks.load(folder)]
    analysed = list(report.analyse(every, truth.load()))
    return report.summary(analysed)
