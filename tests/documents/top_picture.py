"""Draw the screen of `swarm-mcp top`, on a terminal of 100 columns and 27 rows, as an SVG.

usage: python tests/documents/top_picture.py docs/images/top.svg     (`make picture`)

The drawing is the command's output to a real pseudo-terminal, for a checkout made for it.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

from terminal_svg import Row, drawn, framed

COLUMNS, ROWS = 100, 27


def screen() -> list[Row]:
    """The rows that the command shows of a checkout made for it, in a home of its own."""
    with tempfile.TemporaryDirectory() as folder:
        home = os.path.realpath(folder)
        os.environ.update(HOME=home, SWARM_STATE_DIR=f"{home}/state", SWARM_DB_PATH=f"{home}/store/swarm.db")
        os.environ.pop("NO_COLOR", None)
        from support.busy_checkout import busy, session
        from support.fixtures import SWARM, Ground
        from support.full_screen import FullScreen
        from support.screen import Played
        from support.traced import note

        from swarm_mcp.domain import Session
        from swarm_mcp.store.refusals import Attempt

        ground = Ground(Path(home))
        me = busy(ground)
        ground.lock(me, "docs/queue.md", "the same words")
        find = "SELECT id FROM instances WHERE label LIKE ?"
        waiting, codex = (ground.sql(find, f"%{number}%")[0]["id"] for number in ("a31c9d02", "77aa88bb"))
        ground.lock(session(ground, "c0ffee12", "pi"), "tests/test_store.py", "cases for the new numbers")
        written = ground.repo / "src" / "schema.sql"
        written.parent.mkdir()
        written.write_text("-- new\n")
        note("77aa88bb-1", str(written.parent), "wrote", str(written), time.time() - 94)
        with ground.store() as store:
            told = {"why": "sweep", "deed": "stage", "command": "git add -A", "is_notice": True}
            store.denials.note(Session(me), ground.scope, str(written), codex, Attempt("Bash", **told))
            store.messages.send(Session(me), waiting, "The queue moves to src/line.py")
        ground.sql("UPDATE context SET created_at = created_at - 252")
        ground.sql("UPDATE tasks SET changed_at = changed_at - 100000")
        with Played(
            [*SWARM, "top", "--as", me["id"]], COLUMNS, ROWS, screen=FullScreen(COLUMNS, ROWS), cwd=ground.repo
        ) as played:
            played.until(
                lambda screen: all(
                    word in screen.text for word in ("renumbering", "$0.1250", "1. in line", "schema.sql", "moves")
                )
            )
            rows = [[(_classes(style), text) for text, style in row] for row in played.screen.styled]
            played.types("q")
            played.ended()
        return rows


def _classes(numbers: str) -> str:
    """The classes of a style, given the numbers that a terminal knows it by."""
    return " ".join(f"s{one}" for one in numbers.split(";") if one)


def main(target: str) -> None:
    rows = screen()
    body = [drawn(row, number) for number, row in enumerate(rows)]
    Path(target).write_text(framed(body, COLUMNS, ROWS, "The screen of `swarm-mcp top`"), encoding="utf-8")
    print(f"{target}: {len(rows)} rows")


if __name__ == "__main__":
    main(*sys.argv[1:])
