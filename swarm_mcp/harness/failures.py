"""A run that failed, as an exception, for callers that want one.

ClientFailed
└── HarnessError         with its error code and the harness's name
    ├── NotInstalled     with instructions how to install it
    └── AuthError        with instructions how to sign in
"""

from __future__ import annotations

from swarm_mcp.errors import ClientFailed
from swarm_mcp.harness import outcome
from swarm_mcp.harness.adapter import HarnessAdapter
from swarm_mcp.harness.outcome import RunResult
from swarm_mcp.harness.query import HarnessQuery


class HarnessError(ClientFailed):
    """A run failed. `code` is one of ``outcome.ERRORS``, `harness` its harness's name, `result` all that is known."""

    def __init__(self, result: RunResult, instructions: str = ""):
        super().__init__(f"{result.harness}: {result.error_message}")
        self.code, self.harness, self.result = result.error_category, result.harness, result
        self.instructions = instructions


class NotInstalled(HarnessError):
    """The harness is not on this machine."""


class AuthError(HarnessError):
    """The harness is not signed in, or its sign-in was refused."""


def checked_result(result: RunResult, adapter: HarnessAdapter) -> RunResult:
    """`result`, if the run went well. Raises HarnessError."""
    if not result.is_error:
        return result
    kind = {outcome.NOT_INSTALLED: NotInstalled, outcome.AUTH_FAILED: AuthError}.get(result.error_category or "")
    raise (kind or HarnessError)(result, adapter.instructions)


def answer(adapter: HarnessAdapter, query: HarnessQuery, listener=None, **more: object) -> RunResult:
    """Run `query` to its end; `more` as ``run.Run`` has it. Raises HarnessError, and Refused as ``Run.start`` does."""
    from swarm_mcp.harness.run import Run

    run = Run(adapter, query, **more)
    if listener:
        run.on_event(listener)
    result = None
    try:
        result = run.start().wait()
    finally:
        if result is None:  # interrupted: nothing may go on behind whoever asked
            run.abort("interrupted")
    return checked_result(result, adapter)
