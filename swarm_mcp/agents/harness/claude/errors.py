"""The meaning of Claude Code's failures.

API errors come as ``result`` lines with subtype ``success``, ``is_error`` true and ``api_error_status``; the client's
own refusals have a subtype of their own and ``errors``; command-line mistakes are on stderr alone. Without a ``result``
line a run has failed, even with exit code 0, as after SIGINT.
"""

from __future__ import annotations

import re

from swarm_mcp.agents.harness import outcome
from swarm_mcp.agents.harness.outcome import Ending, one_line

# The values of ``error`` in an assistant line, or of ``api_error_type`` in a result.
KINDS = {
    "authentication_failed": outcome.AUTH_FAILED,
    "authentication_error": outcome.AUTH_FAILED,
    "oauth_org_not_allowed": outcome.AUTH_FAILED,
    "permission_error": outcome.AUTH_FAILED,
    "rate_limit": outcome.RATE_LIMITED,
    "rate_limit_error": outcome.RATE_LIMITED,
    "overloaded": outcome.RATE_LIMITED,
    "overloaded_error": outcome.RATE_LIMITED,
    "server_error": outcome.RATE_LIMITED,
    "api_error": outcome.RATE_LIMITED,
    "billing_error": outcome.BUDGET,
    "request_too_large": outcome.CONTEXT_OVERFLOW,
    "model_not_found": outcome.MODEL_NOT_FOUND,
    "not_found_error": outcome.MODEL_NOT_FOUND,
    "error_max_budget_usd": outcome.BUDGET,
    "error_max_turns": outcome.BUDGET,
}
STATUSES = {
    401: outcome.AUTH_FAILED, 402: outcome.BUDGET, 403: outcome.AUTH_FAILED, 413: outcome.CONTEXT_OVERFLOW,
    429: outcome.RATE_LIMITED, 529: outcome.RATE_LIMITED,
}  # fmt: skip
# Sentences in messages. Those about sessions come first: they quote an id or a title, and that may hold any word.
UNREACHABLE = re.compile(
    r"api error: (?:connection (?:refused|error|reset|closed)|unable to connect|request timed out)|connection error"
    r"|\b(?:ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)\b|fetch failed",
    re.IGNORECASE,
)
SENTENCES = tuple(
    (re.compile(pattern, re.IGNORECASE), code)
    for pattern, code in (
        (r"no conversation found with session id|--resume requires a valid session id|does not match any session "
         r"title", outcome.SESSION_NOT_FOUND),
        (r"session id \S+ is already in use", outcome.SESSION_IN_USE),
        (r"prompt is too long|context (window|limit)|input is too long|too many tokens", outcome.CONTEXT_OVERFLOW),
        (r"credit balance is too low|maximum budget|maximum number of turns", outcome.BUDGET),
        (r"issue with the selected model|model.{0,60}(?:may not exist|does not exist|not found)",
         outcome.MODEL_NOT_FOUND),
        (r"not logged in|run /login|invalid (api key|authentication)|oauth token|authentication_error|"
         r"api error: 40[13]\b", outcome.AUTH_FAILED),
        (r"rate limit|usage limit|hit your .*limit|limit reached|overloaded|api error: (429|5\d\d)\b",
         outcome.RATE_LIMITED),
    )
)  # fmt: skip


def code_of(text: str = "", kind: object = None, status: object = None) -> str:
    """Return the error code for a line: its sentence, its `kind` of error, the HTTP status behind it."""
    # Without an answer, the client reports a server's failure.
    if not isinstance(status, int) and UNREACHABLE.search(text):
        return outcome.UNREACHABLE
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind]
    if isinstance(status, int):
        if 500 <= status < 600:
            return outcome.RATE_LIMITED
        if status in STATUSES:
            return STATUSES[status]
    return next((code for pattern, code in SENTENCES if pattern.search(text)), outcome.UNKNOWN)


def error_of(ending: Ending) -> tuple[str, str] | None:
    """Implement ``HarnessAdapter.error_of``."""
    result = ending.result
    if result is None:
        for error in reversed(ending.errors):
            if error.get("category") not in (None, outcome.UNKNOWN):
                return str(error["category"]), one_line(str(error.get("message") or ""))
        lines = [line.strip() for line in ending.stderr.splitlines() if line.strip()]
        text = one_line(" ".join(lines[-3:])) or one_line(ending.stdout)
        code = code_of(text)
        if code != outcome.UNKNOWN:
            return code, text
        return outcome.PROCESS_CRASHED, f"claude ended without a result ({_how(ending)}){': ' if text else ''}{text}"
    if result.get("is_error"):
        text = str(result.get("error_message") or "it failed")
        return str(result.get("error_category") or outcome.UNKNOWN), one_line(text)
    # A run with busy sub-agents gives a result and goes on: ended from outside, it has failed.
    if ending.signal or (ending.exit_code or 0) > 128:
        return outcome.PROCESS_CRASHED, f"claude was ended by {_how(ending)} while it went on working"
    return None


def _how(ending: Ending) -> str:
    if ending.signal:
        return f"signal {ending.signal}"
    return f"exit code {ending.exit_code}"
