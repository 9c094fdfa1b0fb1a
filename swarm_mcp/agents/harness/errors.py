"""Failed runs as exceptions, for callers that prefer them.

SwarmError               (``swarm_mcp.errors``) the text is one line for the user
├── Refused              the query makes no sense; nothing was started
│   └── Unsupported      the harness lacks an ability that the run needs; nothing was started
└── ClientFailed
    └── HarnessError     a run failed: its error code, its harness's name, its result
        ├── NotInstalled with instructions how to install the harness
        └── AuthError    with instructions how to sign in
"""

from __future__ import annotations

from swarm_mcp.agents.harness import outcome
from swarm_mcp.agents.harness.outcome import RunResult
from swarm_mcp.errors import ClientFailed, Refused


class Unsupported(Refused):
    """The harness cannot do something that the run must not do without."""


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


def code_of(error: Exception) -> str:
    """Return the error code of a run that could not be started because of `error`."""
    if isinstance(error, Unsupported):
        return outcome.UNSUPPORTED
    return outcome.UNKNOWN


def checked_result(result: RunResult, instructions: str) -> RunResult:
    """Return the result of a run that went well. Raises HarnessError, with the harness's `instructions`, for others."""
    if not result.is_error:
        return result
    kind = {outcome.NOT_INSTALLED: NotInstalled, outcome.AUTH_FAILED: AuthError}.get(result.error_category or "")
    raise (kind or HarnessError)(result, instructions)
