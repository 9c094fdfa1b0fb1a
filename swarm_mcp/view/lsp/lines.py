"""The places of changes on the disk in the editor's text, also while that is not saved."""

from __future__ import annotations

from swarm_hook_core.traces.equal_lines import equal_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm_mcp.view.lsp.facts import Change

EXACT_UP_TO = 500  # lines that are compared exactly, at each pause in typing
MOST_LINES = 20_000  # between the equal ends; in more nothing is placed


class Places:
    """The lines of the disk and their numbers in the editor."""

    def __init__(self, on_disk: Sequence[str], in_editor: Sequence[str]):
        self._parts = equal_parts(on_disk, in_editor, exact_up_to=EXACT_UP_TO, most=MOST_LINES) or []
        self.last = max(len(in_editor) - 1, 0)

    def of(self, change: Change) -> tuple[int, int] | None:
        """Return the first and the last line of a change in the editor, None if all of its lines are gone.

        Removed lines have the place of the line behind them.
        """
        if not change.lines:
            place = self._at(change.first)
            if place is None and change.first:
                place = self._at(change.first - 1)
            return None if place is None else (place, place)
        end = change.first + change.lines
        inside = [
            (max(old, change.first) + new - old, min(old + size, end) + new - old - 1)
            for old, new, size in self._parts
            if old < end and old + size > change.first
        ]
        if not inside:
            return None
        return inside[0][0], inside[-1][1]

    def near(self, change: Change) -> tuple[int, int]:
        """Return the place in the editor where a change belongs that the editor has not read."""
        before = [new + min(size, change.first - old) for old, new, size in self._parts if old < change.first]
        place = min(before[-1] if before else 0, self.last)
        return place, place

    def _at(self, line: int) -> int | None:
        found = (line + new - old for old, new, size in self._parts if old <= line < old + size)
        return next(found, None)
