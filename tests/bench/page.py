"""The page of measurements: one section for each part that was measured, the others as they were."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from corpora import blocks, report, truth

HEAD = """# Measurements

Written by `make bench` (`BENCH="--part shell"` measures one section anew), which prints all rows and their limits; here are
the main ones. Ratios count, not milliseconds: each sample runs beside a bare `python3 -I -S -c pass` (`bare`).
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
        "Checks, and a session's life",
        "A check costs about two bare interpreters, at any number of locks.",
        r"^ +median|^PreToolUse claude-code (allow|deny) +(0|1,000,000) |^(SessionStart startup|User|Stop).*claude-code +1,000,000 ",
    ),
    "shell": Part(
        "Checks of shell commands",
        "Beside locks of other sessions the command is read.",
        r"^median|^plain .*claude-code +100,000 |^shell .*claude-code +100,000 (ls|python3) .*\d$",
    ),
    "traces": Part(
        "Checks beside uncommitted work", "Ten other sessions with 10,000 traces.", r"^median|claude-code beside"
    ),
    "versions": Part("Versions of files", "Time that keeping the content before a write adds to a check, in ms."),
    "glances": Part("Looks at shell commands", "Time of a check at the levels `off` and `keep`, in ms."),
    "large": Part(
        "Very large calls", "Processor time and memory of calls of up to 256 KB.", r"commands|calls|processor"
    ),
    "kernel": Part(
        "The kernel layer", "Added time of a command that holds locked files, in ms.", r"^a command|^ +wall|^with|^held"
    ),
    "coordinator": Part(
        "Coordinator",
        "Calls of the MCP server, commands, start-up and memory.",
        r"^calls|^\w+ 100,000 +\d|^commands|^\w.*, 100,000 |^server|^idle",
    ),
    "locks": Part("Locks and waiting", "Wake-up, and locks per second.", r"^wake|^nobody|^uncon|^one|^lock|^\d+ proc"),
    "conflicts": Part(
        "Taking a lock among many",
        "Added time and memory with up to 100,000 locks.",
        r"^beyond|all elsewhere|all are covered|100,000 files",
    ),
    "listings": Part(
        "Listings",
        "Commands and tools beside 100,000 rows of everything.",
        r"^locks  |^(locks|status) 100,000  |^answers|^(list_tasks|swarm_status|lock_file) |^commands|^(inspect|tasks) --json  ",
    ),
    "burst": Part("The store after a burst", "Cleaning up after many rows.", r"^rows|^5 kinds|^\d"),
    "page": Part(
        "The page in a browser",
        "Fifty open pages beside 100,000 locks.",
        r"median|^the first|^/ |^from a|^a check|^at rest|memory",
    ),
    "top": Part("The full screen", "Start, memory, delay.", r"^locks|100,000|^while"),
    "harness": Part(
        "Supervised workers", "A child with and without a supervisor.", r"^one|lines (in|at)|with hooks|^20 workers"
    ),
    "many": Part("A hundred workers and twenty clients at once", "All on one machine."),
    "team": Part(
        "The server that a team shares",
        "Grants, delay of other machines, load.",
        r"p50|^bare +|^grant|^settled|^40|^hook",
    ),
    "clients": Part(
        "End to end in the real clients", "Added time of a write.", r"median|plugin|command +\d|mcp_tool +\d"
    ),
    "auto": Part("Edits lost, without locks", "200 edits of ten files by scripted agents."),
}
TITLES = {name: part.title for name, part in PARTS.items()}


class Tee:
    """Standard output that is also kept."""

    def __init__(self) -> None:
        self._kept = StringIO()
        self._out = sys.stdout

    def __enter__(self) -> Tee:
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
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    measured = f"{time.strftime('%Y-%m-%d', time.gmtime())}, {machine}, Python {platform.python_version()}"
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
