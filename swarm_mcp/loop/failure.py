"""Why a run cannot go on, and the exit codes of the loop."""

from __future__ import annotations

from swarm_mcp.errors import SwarmError

# Exit codes of `swarm-mcp loop`, beside those of every command.
FAILED, MODEL_FAILED, TOO_LONG, STOPPED = 1, 4, 5, 143


class LoopFailure(SwarmError):
    """A run cannot go on; the text says why, in one line.

    `category` is one of ``harness.outcome.ERRORS``; `exit_code` what `swarm-mcp loop` ends with; `retry_not_before`
    Unix seconds of the time that an endpoint has told us to wait for.
    """

    retry_not_before: float | None = None

    def __init__(self, text: str, category: str = "unknown", exit_code: int = FAILED):
        super().__init__(" ".join(text.split()) or "it failed without a word")
        self.category = category
        self.exit_code = exit_code
