"""The screens of docs/first-ten-minutes.md: recorded from a new user's first hour (`first_hour.py`).

usage: PYTHONPATH=tests:tests/documents python tests/documents/first_ten_minutes.py docs/first-ten-minutes.md \\
           docs/images/first-ten-minutes.svg     (`make picture`)

The second file is a recording of some of the scenes, drawn like the demo (`demo_picture.py`).

The real clients are those of ``SWARM_E2E_CLIENTS``, a ``node_modules``. Without them the scenes that install into
clients have less text, and the page keeps its present one for these.

Each block of the page under ``<!-- screen: NAME -->`` is the output of that scene's commands.
`tests/unit/cli/test_first_ten_minutes.py` plays the hour without clients, `tests/e2e/test_first_ten_minutes.py` with
them, `tests/browser/test_first_hour.py` with the page in Chromium. The first two compare the page with it.
"""

import os
import re
import sys
from collections import Counter
from pathlib import Path

from documents.first_hour import COLUMNS, Scene, play

WITH_CLIENTS = ("install", "doctor", "uninstall")  # scenes that look different without clients
PICTURED = ("refused", "diff", "commit", "undo", "lock", "locked", "why")
BLOCK = re.compile(r"(<!-- screen: ([\w-]+) -->\n```[a-z]*\n)(.*?)(```)", re.DOTALL)
READERS = {"refused": "Claude Code", "locked": "Codex"}  # the model that reads a denial


def shown(scene: Scene) -> str:
    """A scene as the page has it."""
    return "\n".join([*([f"$ {scene.typed}"] if scene.typed else []), *scene.lines]).rstrip()


VARYING = (  # parts of a screen that differ from run to run, and their stand-ins
    (r"\bnow\b|\b\d+ (s|min) ago\b|\b\d\d:\d\d:\d\d\b", "ago"),
    (r", after waiting \d+ s|\(\d+s\)", ""),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{8}([0-9a-f]{4})?\b", ""),
    (r"\d+(\.\d+)+\w*|\d+ (ms|s|min)\b", ""),
)


def said(text: str) -> Counter[str]:
    """Return the words of a screen without the parts that vary: ages, times, ids, numbers of versions, order."""
    text = " ".join(text.split())
    for varying, instead in VARYING:
        text = re.sub(varying, instead, text)
    return Counter(text.split())


def screens_of(page: str) -> dict[str, str]:
    """The screens that a page has, by the names of their scenes."""
    return {found[2]: found[3].rstrip("\n") for found in BLOCK.finditer(page)}


def drawn(scenes: list[Scene]) -> str:
    """Return the recording of the pictured scenes: the typed commands, and the lines in their colours."""
    from demo_picture import picture, rows_of

    rows: list = []
    for scene in scenes:
        if scene.name in PICTURED:
            rows += (
                [[("s2", "$ "), ("s1", scene.typed)]]
                if scene.typed
                else [[("s2", f"The model of {READERS[scene.name]} reads:")]]
            )
            rows += rows_of(scene.raw, COLUMNS) if scene.typed else [[("", line)] for line in scene.lines]
            rows.append([])
    return picture(
        rows[:-1], "A recording of a terminal: a refused git checkout, lines by author, a lock, and a refused write"
    )


def main(target: str, pictured: str) -> None:
    page, clients = Path(target).resolve(), os.environ.get("SWARM_E2E_CLIENTS", "")
    recording = Path(pictured).resolve()
    text = page.read_text(encoding="utf-8")
    scenes = play(clients)
    screens = {scene.name: shown(scene) for scene in scenes if clients or scene.name not in WITH_CLIENTS}
    recording.write_text(drawn(scenes), encoding="utf-8")

    def with_screen(found: re.Match[str]) -> str:
        return f"{found[1]}{screens[found[2]]}\n{found[4]}" if found[2] in screens else found[0]

    page.write_text(BLOCK.sub(with_screen, text), encoding="utf-8")
    print(f"{target}: {len(screens)} screens{'' if clients else '; those with clients are as they were'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
