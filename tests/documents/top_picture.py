"""Draw the screen of `swarm-mcp top`, as it stands on a terminal of 100 columns and 24 rows, as an SVG.

usage: python tests/documents/top_picture.py docs/images/top.svg     (`make picture`)

What is drawn is what the command writes to a real pseudo-terminal, about a checkout made for it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from html import escape
from pathlib import Path

COLUMNS, ROWS = 100, 24
CHARACTER, LINE, EDGE, TOP, FONT = 8.4, 19, 16, 44, 14  # pixels
COLOURS = {  # of what the terminal calls by these numbers: light, dark
    "1": ("font-weight:bold", ""),
    "2": ("fill:#59636e", "fill:#9198a1"),
    "4": ("text-decoration:underline", ""),
    "31": ("fill:#b31d28", "fill:#ff7b72"),
    "32": ("fill:#116329", "fill:#56d364"),
    "33": ("fill:#7d4e00", "fill:#e3b341"),
    "35": ("fill:#6639ba", "fill:#d2a8ff"),
    "36": ("fill:#0a5c66", "fill:#56d4dd"),
}
Piece = tuple[str, str]  # a text and its style, as ``FullScreen.styled`` has them


def screen() -> list[list[Piece]]:
    """The rows that the command shows of a checkout made for it, in a home of its own."""
    with tempfile.TemporaryDirectory() as folder:
        home = os.path.realpath(folder)
        os.environ.update(HOME=home, SWARM_STATE_DIR=f"{home}/state", SWARM_DB_PATH=f"{home}/store/swarm.db")
        os.environ.pop("NO_COLOR", None)
        from support.busy_checkout import busy, session
        from support.fixtures import SWARM, Ground
        from support.full_screen import FullScreen
        from support.screen import Played

        ground = Ground(Path(home))
        me = busy(ground)
        ground.lock(me, "docs/queue.md", "the same words")
        ground.lock(session(ground, "c0ffee12", "pi"), "tests/test_store.py", "cases for the new numbers")
        ground.sql("UPDATE context SET created_at = created_at - 252")
        ground.sql("UPDATE tasks SET changed_at = changed_at - 100000")
        with Played(
            [*SWARM, "top", "--as", me["id"]], COLUMNS, ROWS, screen=FullScreen(COLUMNS, ROWS), cwd=ground.repo
        ) as played:
            played.until(lambda screen: all(word in screen.text for word in ("renumbering", "$0.1250", "1. in line")))
            rows = played.screen.styled
            played.types("q")
            played.ended()
        return rows


def text_of(rows: list[list[Piece]]) -> list[str]:
    """The rows without their styles."""
    return ["".join(text for text, _style in row).rstrip() for row in rows]


def picture(rows: list[list[Piece]], title: str) -> str:
    """The rows as an SVG in the colours of the reader's theme."""
    width, height = round(COLUMNS * CHARACTER + 2 * EDGE), TOP + ROWS * LINE + EDGE
    light = "".join(f".s{name}{{{rule}}}" for name, (rule, _dark) in COLOURS.items())
    dark = "".join(f".s{name}{{{rule}}}" for name, (_light, rule) in COLOURS.items() if rule)
    style = (
        f"text{{font:{FONT}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre;"
        "fill:#1f2328}.screen{fill:#f6f8fa;stroke:#d1d9e0}.dot{fill:#d1d9e0}.bar{fill:#1f2328}.s7{fill:#f6f8fa}"
        f"{light}\n@media(prefers-color-scheme:dark){{text{{fill:#e6edf3}}.screen{{fill:#0d1117;stroke:#3d444d}}"
        f".dot{{fill:#3d444d}}.bar{{fill:#e6edf3}}.s7{{fill:#0d1117}}{dark}}}"
    )
    drawn = []
    for number, row in enumerate(rows):
        spans, column, y = "", 0, TOP + (number + 1) * LINE - 5
        for text, numbers in row:
            place = EDGE + column * CHARACTER
            if "7" in numbers.split(";"):
                drawn.append(
                    f'<rect class="bar" x="{place:.1f}" y="{y - 14}" width="{len(text) * CHARACTER:.1f}" height="{LINE}"/>'
                )
            if text.strip():
                known = " ".join(f"s{one}" for one in numbers.split(";") if one in COLOURS or one == "7")
                where = f'x="{place:.1f}" textLength="{len(text) * CHARACTER:.1f}"'
                spans += f"<tspan {where}{f' class={chr(34)}{known}{chr(34)}' if known else ''}>{escape(text)}</tspan>"
            column += len(text)
        if spans:
            drawn.append(f'<text y="{y}">{spans}</text>')
    dots = "".join(f'<circle class="dot" cx="{EDGE + 6 + 18 * n}" cy="20" r="6"/>' for n in range(3))
    newline = "\n"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' role="img"><title>{escape(title)}</title>\n<style>{style}</style>\n'
        f'<rect class="screen" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>{dots}\n'
        f"{newline.join(drawn)}\n</svg>\n"
    )


def main(target: str) -> None:
    rows = screen()
    Path(target).write_text(picture(rows, "The screen of `swarm-mcp top`"), encoding="utf-8")
    print(f"{target}: {len(rows)} rows")


if __name__ == "__main__":
    main(*sys.argv[1:])
