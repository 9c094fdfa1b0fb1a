"""The distribution of a screen's lines among panes."""

from __future__ import annotations

LEAST = 3  # lines that a pane gets before another gets more: its heading and two rows


def shared(needs: list[int], lines: int) -> list[int]:
    """Return the lines of each pane: a small need is met whole, large ones share equally.

    Spare lines go to the last pane.
    """
    given = [min(LEAST, need, lines // len(needs)) for need in needs]
    left = lines - sum(given)
    while left > 0:
        wanting = [at for at, need in enumerate(needs) if need > given[at]]
        if not wanting:
            break
        least = min(wanting, key=lambda at: given[at])
        given[least] += 1
        left -= 1
    given[-1] += max(0, left)
    return given
