"""What went wrong with a run of Codex, from what it says of it."""

from __future__ import annotations

import re
import time

from swarm_mcp.harness import outcome
from swarm_mcp.harness.outcome import Ending

# The first that is found in a message says what it is. Texts of Codex 0.169 and of the API behind it.
_SIGNS = (
    (outcome.SESSION_NOT_FOUND, r"no rollout found for thread id|thread not found|no saved session found"),
    (outcome.SESSION_IN_USE, r"already has an active writer|thread-store conflict"),
    (outcome.CONTEXT_OVERFLOW, r"context window|context_length_exceeded|maximum context length"),
    (outcome.MODEL_NOT_FOUND, r"model_not_found|\bmodel\b.{0,80}(?:does not exist|not found|is not supported)"),
    (
        outcome.RATE_LIMITED,
        r"\b429\b|too many requests|usage limit|rate limit|quota|high demand|overloaded|\b503\b|at capacity",
    ),
    (
        outcome.AUTH_FAILED,
        r"\b401\b|\b403\b|unauthorized|incorrect api key|invalid api key|missing environment variable"
        r"|not logged in|log in again|refresh token|sign in again",
    ),
    (
        outcome.UNREACHABLE,
        r"connection failed|connection refused|error sending request|waiting for network|stream disconnected"
        r"|dns error|timed out|network is unreachable|\b50[24]\b",
    ),
)  # fmt: skip
_SIGNS_READ = tuple((code, re.compile(pattern, re.IGNORECASE)) for code, pattern in _SIGNS)
_NOISE = re.compile(r"^(?:Reading .*stdin\.\.\.|Stack backtrace:|\s*\d+: .*|WARNING: .*|\s*)$")
_STAMP = re.compile(r"^\S+\s+(?:ERROR|WARN)\s+\S+:\s+(?:error=)?")
_AT = re.compile(r"try again at (?:([A-Z][a-z]{2}) (\d{1,2})(?:st|nd|rd|th)?, (\d{4}) )?(\d{1,2}):(\d{2}) ([AP])M")
_IN = re.compile(r"try again in ((?:\d+(?:\.\d+)?\s*(?:ms|s|m|h|days?|hours?|minutes?|seconds?)\b[\s,]*)+)")
_AGAIN_IN = re.compile(r"retrying sampling request \(\d+/\d+ in (\d+(?:\.\d+)?)(ms|s)\)")
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def category_of(text: str) -> str:
    """Return the error code for one of Codex's messages."""
    return next((code for code, sign in _SIGNS_READ if sign.search(text)), outcome.UNKNOWN)


def error_of(ending: Ending) -> tuple[str, str] | None:
    """Implement ``HarnessAdapter.error_of``. Only a completed turn and exit code 0 together are a success."""
    given = ending.result
    if given is not None and not given.get("is_error") and ending.exit_code == 0:
        return None
    if given is not None and given.get("is_error"):
        text = str(given.get("error_message") or "the turn failed")
        return str(given.get("error_category") or category_of(text)), _line(text)
    said = [str(error.get("message") or "") for error in ending.errors]
    text = said[-1] if said else complaint_in(ending.stderr)
    code = category_of(text) if text else outcome.UNKNOWN
    if code == outcome.UNREACHABLE and not said:
        code = outcome.UNKNOWN  # of a server that it was given, not of its model
    if code != outcome.UNKNOWN:
        return code, _line(text)
    if ending.signal:
        return outcome.PROCESS_CRASHED, f"codex was ended by signal {ending.signal}"
    if ending.exit_code == 0:
        return outcome.UNKNOWN, "codex exited without completing its turn"
    how = f"codex exited {ending.exit_code}"
    return outcome.PROCESS_CRASHED, _line(f"{how}: {text}" if text else how)


def complaint_in(stderr: str) -> str:
    """Return the line of standard error that says why: the last ``Error:``, else the first that says anything."""
    lines = [line for line in stderr.splitlines() if not _NOISE.match(line)]
    wrong = [line for line in lines if line.startswith(("Error", "error"))]
    return _STAMP.sub("", wrong[-1] if wrong else lines[0]) if lines else ""


def not_before(text: str, now: float | None = None) -> float | None:
    """Return when a message tells us to try again, in Unix seconds; None where it names no time."""
    now = time.time() if now is None else now
    later = _IN.search(text)
    if later:
        return now + sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(later.group(1)))
    named = _AT.search(text)
    if not named:
        return None
    month, day, year, hour, minute, half = named.groups()
    today = time.localtime(now)
    year, month_number, day = (
        (int(year), _MONTHS.index(month) + 1, int(day))
        if month in _MONTHS
        else (today.tm_year, today.tm_mon, today.tm_mday)
    )
    hours = int(hour) % 12 + (12 if half == "P" else 0)
    try:
        then = time.mktime((year, month_number, day, hours, int(minute), 0, 0, 0, -1))
    except (OverflowError, ValueError):
        return None
    return then if month or then >= now else then + 86400


def seconds_told(line: str) -> float | None:
    """Return how long Codex waits before it asks again, from a line of its log; None where it says nothing."""
    found = _AGAIN_IN.search(line)
    return float(found.group(1)) * _SECONDS[found.group(2)] if found else None


def _line(text: str) -> str:
    return " ".join(text.split())[:500]
