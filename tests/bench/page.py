"""The page of measurements: one section for each part that was measured, the others as they were."""

from __future__ import annotations

import os
import platform
import sys
import time
from io import StringIO
from pathlib import Path

from corpora import blocks, report, truth

HEAD = """# Measurements

Written by `make bench` (`BENCH="--part shell"` measures one section anew), and not by hand. Milliseconds say more
about the machine than about swarm: what counts are ratios to a bare `python3 -I -S -c pass` beside each sample.
"""
TITLES = {
    "corpus": "Shell commands: what is found of what they really did",
    "hooks": "Hooks: checks, and a session's life",
    "shell": "Hooks: shell calls",
    "traces": "Hooks: what others have changed",
    "large": "Hooks: very large calls",
    "kernel": "Commands for which the kernel holds locked files",
    "coordinator": "Coordinator",
    "locks": "Locks and waiting",
    "conflicts": "Taking a lock among many",
    "listings": "Listings at any size",
    "burst": "The store after a burst",
    "page": "The page in a browser",
    "top": "The full screen",
    "harness": "Supervised workers",
    "many": "A hundred workers and twenty clients at once",
    "team": "The server that a team shares",
    "clients": "End to end in the real clients",
    "auto": "Edits lost, without locks",
    "setup": "Installing, looking, taking away",
}


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
        """As of any stream."""
        self._out.flush()

    @property
    def text(self) -> str:
        """What was printed."""
        return self._kept.getvalue()


def put(file: Path, part: str, text: str) -> None:
    """Replace the section of `part` in `file` by `text`, with day and machine; make the file where it is missing."""
    sections = _sections(file.read_text()) if file.exists() else {}
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    measured = f"{time.strftime('%Y-%m-%d', time.gmtime())}, {machine}, Python {platform.python_version()}"
    sections[part] = f"{measured}\n\n```\n{text.strip()}\n```\n"
    body = "\n".join(f"## {title}\n\n{sections[name]}" for name, title in TITLES.items() if name in sections)
    file.write_text(f"{HEAD}\n{body}")


def _sections(page: str) -> dict[str, str]:
    names = {title: name for name, title in TITLES.items()}
    parts = (part.partition("\n\n") for part in page.split("\n## ")[1:])
    return {names[title]: f"{text.strip()}\n" for title, _, text in parts if title in names}


def corpus() -> str:
    """The corpus report's summary: writes found by kind, harmless commands denied and told, processor time."""
    every = [block for folder in blocks.FOLDERS for block in blocks.load(folder)]
    analysed = list(report.analyse(every, truth.load()))
    return report.summary(analysed)
