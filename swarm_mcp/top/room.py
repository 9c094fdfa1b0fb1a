"""How the lines of a screen are shared among panes."""

from __future__ import annotations

LEAST = 3  # lines that a pane gets before another gets more: its heading and two rows


def shared(needs: list[int], lines: int) -> list[int]:
    """Return how many of `lines` each pane gets that needs so many: little is given whole, much in equal parts.

    Lines that nobody needs are the last pane's.
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
