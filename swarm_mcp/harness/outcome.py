"""How a run ended."""

from __future__ import annotations

from typing import NamedTuple

AUTH_FAILED, NOT_INSTALLED, RATE_LIMITED = "auth_failed", "not_installed", "rate_limited"
CONTEXT_OVERFLOW, PROCESS_CRASHED, ABORTED, TIMEOUT = "context_overflow", "process_crashed", "aborted", "timeout"
TOOL_LOOP, SESSION_NOT_FOUND, SESSION_IN_USE = "tool_loop", "session_not_found", "session_in_use"
BUDGET, UNSUPPORTED, UNKNOWN = "budget", "unsupported", "unknown"
UNREACHABLE, MODEL_NOT_FOUND, SCHEMA_MISMATCH = "unreachable", "model_not_found", "schema_mismatch"
ERRORS = (
    AUTH_FAILED, NOT_INSTALLED, RATE_LIMITED, CONTEXT_OVERFLOW, PROCESS_CRASHED, ABORTED, TIMEOUT,
    TOOL_LOOP, SESSION_NOT_FOUND, SESSION_IN_USE, BUDGET, UNREACHABLE, MODEL_NOT_FOUND, SCHEMA_MISMATCH,
    UNSUPPORTED, UNKNOWN,
)  # fmt: skip
# What may work if it is tried again later, unchanged.
TRANSIENT = frozenset({RATE_LIMITED, UNREACHABLE})


class Cost(NamedTuple):
    """What a run took. None: not known, which is not 0.

    Tokens as the harness counts them: `input_tokens` without those read from or written to a cache.
    """

    total_cost_usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    num_turns: int | None = None
    model: str | None = None

    def to_dict(self) -> dict:
        """The fields by name."""
        return self._asdict()


class Ending(NamedTuple):
    """How the child process ended, for ``HarnessAdapter.error_of``.

    `exit_code` None where it never started; `signal` that ended it, 0 for none. `result` is the data of the last
    ``result`` event that the harness itself gave, None for none; `errors` the data of its ``error`` events. `stderr`
    and `stdout` are the last of what it wrote (stdout: lines that were not understood).
    """

    exit_code: int | None
    signal: int = 0
    result: dict | None = None
    errors: tuple[dict, ...] = ()
    stderr: str = ""
    stdout: str = ""
    native_lines: int = 0


class RunResult(NamedTuple):
    """How a run ended; everything in it is scrubbed of secrets.

    exit_code, signal     of the child (of its last attempt); None where it was never started
    is_error              with `error_category` (one of ERRORS) and `error_message`, one line, always set then
    output                the answer: the harness's own, else the last words of the assistant, else empty
    session_id            of the harness; `session_params` (JSON object) is what resuming it later takes
    clear_session         the session that was asked for does not exist any more: forget it
    cost                  of this run alone, also where the harness counts the whole session
    session_cost          as the harness counted, the basis of the next run's delta
    retry_not_before      Unix seconds; for an error that passes
    result_json           the answer by schema, else what could not be understood ({"stdout", "stderr"})
    attempts              how often a child was started: 2 after a fresh retry
    """

    run_id: str
    harness: str
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    is_error: bool = False
    error_category: str | None = None
    error_message: str | None = None
    output: str = ""
    session_id: str | None = None
    session_params: dict | None = None
    clear_session: bool = False
    cost: Cost = Cost()
    session_cost: Cost = Cost()
    duration_ms: int = 0
    model: str | None = None
    provider: str | None = None
    retry_not_before: float | None = None
    result_json: object = None
    record: str = ""
    attempts: int = 1

    def to_dict(self) -> dict:
        """The result as one JSON object, with ``usage``, ``cost_usd``, ``summary`` and more names for the same."""
        shown = {**self._asdict(), "cost": self.cost.to_dict(), "session_cost": self.session_cost.to_dict()}
        shown.update(
            cost_usd=self.cost.total_cost_usd,
            usage={
                "input": self.cost.input_tokens,
                "output": self.cost.output_tokens,
                "cached": self.cost.cache_read_tokens,
            },
            session_display_id=self.session_id,
            summary=self.output[:SUMMARY],
            error_family=("transient" if self.error_category in TRANSIENT else "permanent") if self.is_error else None,
            failure_reason=self.error_message,
        )
        return shown


SUMMARY = 400  # characters of the output that stand for it in a list
