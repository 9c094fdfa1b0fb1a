"""The words that tell people about the end of a lock."""

from __future__ import annotations

from swarm_hook_core.wording import duration
from swarm_mcp.domain.lock import AUTO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def until(lock: dict[str, Any], now: float) -> str:
    """Return the words for the end of a lock, as listings show it."""
    words = "until it is released"
    if "lapses_in" in lock:
        left = duration(lock["lapses_in"])
        words = f"lapses in {left} unless renewed"
        if lock.get("mode") == AUTO:
            words = f"until its turn ends, or in {left} without a further write"
    if lock.get("expected_end"):
        away = lock["expected_end"] - now
        words += f", expected to end {f'in {duration(away)}' if away > 0 else f'{duration(-away)} ago'}"
    return words
