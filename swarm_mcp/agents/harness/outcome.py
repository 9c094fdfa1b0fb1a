"""The end of a run: error codes, costs, refusals of ours, the result, and failures as exceptions.

The patterns are for harnesses that describe failures in their output only.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from swarm_mcp.agents.harness.query_types import structured
from swarm_mcp.errors import ClientFailed, Refused

T = TypeVar("T")
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
# Errors that a repetition cannot cure.
FINAL = frozenset({AUTH_FAILED, NOT_INSTALLED, ABORTED, UNSUPPORTED, BUDGET, MODEL_NOT_FOUND})
# Where a session that has come to this is gone on with, it comes to it again.
STUCK = frozenset({CONTEXT_OVERFLOW, TOOL_LOOP, SESSION_NOT_FOUND})
# Errors that may pass, so that an unchanged repetition may succeed.
TRANSIENT = frozenset({RATE_LIMITED, UNREACHABLE})
SUMMARY_LENGTH = 400  # characters of the output that stand for it in a list


class Cost(NamedTuple):
    """The cost of a run. None: unknown, in contrast to 0.

    Tokens in the harness's count: `input_tokens` without those read from or written to a cache.
    """

    total_cost_usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    num_turns: int | None = None
    model: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return self._asdict()


class Price(NamedTuple):
    """US dollars for a million tokens, as published on `dated` (ISO date)."""

    input: float
    cached: float
    output: float
    dated: str
    cache_write: float | None = None  # None: as `input`


class Ending(NamedTuple):
    """The end of the child process, for ``HarnessAdapter.error_of``.

    `exit_code` None if it never started; `signal` the fatal one, 0 for none. `result` is the data of the harness's own
    last ``result`` event, None without one; `errors` the data of its ``error`` events. `stderr` and `stdout` are the
    ends of its output (stdout: unparsed lines).
    """

    exit_code: int | None
    signal: int = 0
    result: dict[str, Any] | None = None
    errors: tuple[dict[str, Any], ...] = ()
    stderr: str = ""
    stdout: str = ""
    native_lines: int = 0


PER_RUN = "per_run"


class Changes(NamedTuple):
    """The changes of a run: `files`, by paths from the run's folder if inside its checkout; `commits`, as ``<short id>
    <subject>``, oldest first. Long lists have the first ones; `more_files` counts the others.
    """

    files: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    more_files: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the changes as a JSON object."""
        return {"files": list(self.files), "commits": list(self.commits), "more_files": self.more_files}


class RunResult(NamedTuple):
    """The result of a run, scrubbed of secrets.

    exit_code, signal     of the child (of its last attempt); None if it never started
    is_error              with `error_category` (one of ERRORS) and `error_message`, one line, always set then
    output                the answer: the harness's own, else the last words of the assistant, else empty
    session_id            of the harness; `session_params` (JSON object) resumes it later
    clear_session         the requested session does not exist any more: forget it
    cost                  of this run alone, even if the harness counts the whole session
    session_cost          in the harness's count, the basis of the next run's difference
    usage_basis           the basis of `cost`: ``per_run``. Parts that depend on the session's unknown past are
                          None
    retry_not_before      Unix seconds; for an error that passes
    result_json           the answer by schema, else the unparsed output ({"stdout", "stderr"})
    attempts              number of started children: 2 after a fresh retry
    changes               the run's files and commits (``changes``)
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
    session_params: dict[str, Any] | None = None
    clear_session: bool = False
    cost: Cost = Cost()
    session_cost: Cost = Cost()
    duration_ms: int = 0
    model: str | None = None
    provider: str | None = None
    retry_not_before: float | None = None
    result_json: Any = None
    record: str = ""
    attempts: int = 1
    usage_basis: str = PER_RUN
    changes: Changes = Changes()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as one JSON object, with ``usage``, ``cost_usd``, ``summary`` and other names."""
        shown = {**self._asdict(), "cost": self.cost.to_dict(), "session_cost": self.session_cost.to_dict(),
                 "changes": self.changes.to_dict()}  # fmt: skip
        shown.update(
            cost_usd=self.cost.total_cost_usd,
            usage={
                "input": self.cost.input_tokens,
                "output": self.cost.output_tokens,
                "cached": self.cost.cache_read_tokens,
            },
            session_display_id=self.session_id,
            summary=self.output[:SUMMARY_LENGTH],
            error_family=self._error_family() if self.is_error else None,
            failure_reason=self.error_message,
        )
        return shown

    def structured(self, kind: type[T]) -> T:
        """Return the answer by schema as a dataclass or pydantic model. Raises Refused where it is none."""
        return structured(kind, self.result_json)

    def _error_family(self) -> str:
        return "transient" if self.error_category in TRANSIENT else "permanent"


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def answer_text(result: RunResult) -> str:
    """Return the answer of a run that went well: by its schema, as JSON, where it had one, else its words."""
    if result.result_json is None:
        return result.output
    return json.dumps(result.result_json, ensure_ascii=False)


LONGEST_LINE = 500  # characters of one line that says why
NOTHING_RAN = (126, 127)  # a shell, or env, that found no program, or one that cannot be run
# A program may print these about anything that it works with: they count only as its own error.
AMBIGUOUS = (UNREACHABLE, MODEL_NOT_FOUND)
# In this order: the more precise texts first.
PATTERNS = tuple(
    (code, re.compile(pattern, re.I))
    for code, pattern in (
        (SESSION_IN_USE, r"session (?:id )?\S* ?is already in use|session.{0,60}locked by another"),
        (SESSION_NOT_FOUND,
         r"no (?:conversation|session|rollout|thread)s? found|(?:session|conversation|thread)\b.{0,80}\bnot found"
         r"|no such (?:session|thread|conversation)|unknown (?:session|thread)|invalid session id\w*"),
        (CONTEXT_OVERFLOW,
         r"context[ _](?:length|window)[ _]?(?:exceeded|overflow)|prompt is too long|maximum context length"
         r"|input.{0,20}exceeds the context"),
        (BUDGET,
         r"max[_ -]?budget|budget (?:exceeded|limit)|credit balance is too low|insufficient_quota|quota exceeded"
         r"|exceeded your current quota|max[_ -]?turns"),
        (RATE_LIMITED,
         r"\b429\b|rate[ _-]?limit|too many requests|overloaded|\b529\b|usage limit|server is busy"),
        (AUTH_FAILED,
         r"\b401\b|\b403\b|unauthori[sz]ed|authentication|invalid (?:x-)?api[- _]?key|incorrect api key"
         r"|not logged in|please (?:run /)?log ?in|no api key|missing api key"),
        (MODEL_NOT_FOUND,
         r"model_not_found|\bmodel\b.{0,80}(?:does not exist|not found|may not exist|is not available)|no such model"
         r"|(?:unknown|invalid) model|not_found_error.{0,60}\bmodel:|model \S+ is not supported"),
        (UNREACHABLE,
         r"ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|connection (?:refused|error"
         r"|failed|reset|timed out)|error sending request|cannot be reached|could not (?:connect|resolve host)"
         r"|failed to connect|fetch failed|waiting for network|name or service not known|network is unreachable"),
    )
)  # fmt: skip


def error_of(ending: Ending) -> tuple[str, str] | None:
    """Return the error code and a line with the reason, None for a successful run."""
    result = ending.result or {}
    if not ending.exit_code and not ending.signal and not result.get("is_error"):
        return None
    if ending.exit_code in NOTHING_RAN and not ending.native_lines:
        return NOT_INSTALLED, line_of(ending.stderr) or _how(ending)
    said = [str(found.get("message") or "") for found in ending.errors]
    if result.get("is_error"):
        answer = result.get("output")
    else:
        answer = ""
    own = str(result.get("error_message") or result.get("error") or answer or "")
    printed = (ending.stderr, ending.stdout if ending.result is None else "")
    for text in (own, *reversed(said), *printed):
        code = code_of(text)
        if code and not (text in printed and code in AMBIGUOUS):
            return code, line_of(text, code)
    named = [result.get("error_category"), *(found.get("category") for found in reversed(ending.errors))]
    code = next((name for name in named if name in ERRORS), UNKNOWN)
    words = next((line_of(text) for text in (own, *reversed(said), ending.stderr, ending.stdout) if text.strip()), "")
    if code == UNKNOWN and (ending.result is None or ending.signal):
        code = PROCESS_CRASHED
    return code, words or _how(ending)


def code_of(text: str) -> str:
    """Return the error code that `text` mentions, empty for none."""
    return next((code for code, pattern in PATTERNS if pattern.search(text)), "")


def line_of(text: str, code: str = "") -> str:
    """Return the line of `text` that says why: the one that speaks of `code`, else the last that is not blank."""
    lines = [line.strip() for line in _COLOUR.sub("", text).splitlines() if line.strip()]
    pattern = dict(PATTERNS).get(code)
    if pattern:
        found = next((line for line in lines if pattern.search(line)), "")
    else:
        found = ""
    return (found or (lines[-1] if lines else ""))[:LONGEST_LINE]


def one_line(text: str) -> str:
    """Return the words of `text` in one line, cut where it grows too long."""
    return " ".join(text.split())[:LONGEST_LINE]


def count_of(value: object) -> int | None:
    """Return `value` if it is a count, else None: a harness's output is not reliable."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


def _how(ending: Ending) -> str:
    if ending.signal:
        return f"the process was ended by signal {ending.signal}"
    return f"the process ended with exit code {ending.exit_code}"


TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_EFFORT = re.compile(r"(?:[-:@](?:none|minimal|low|medium|high|xhigh|max)|\s*\([a-z]+\)|\[[0-9a-z]+\])$", re.I)
_DATE = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d)$")


def cost_of(found: object) -> Cost:
    """Return a cost from an adapter's or an earlier run's figures; a value that is no number is unknown."""
    if isinstance(found, Cost):
        found = found.to_dict()
    if not isinstance(found, Mapping):
        return Cost()
    figures = {name: _figure(found.get(name)) for name in (*TOKENS, "num_turns")}
    dollars, model = _figure(found.get("total_cost_usd"), whole=False), found.get("model")
    return Cost(total_cost_usd=dollars, model=model if isinstance(model, str) else None, **figures)


def added(one: Cost, other: Cost) -> Cost:
    """Return the sum of two runs' costs; a figure unknown in one of them is unknown."""

    def both(name: str) -> Any:
        figures = [getattr(cost, name) for cost in (one, other)]
        if None in figures:
            return None
        return sum(figures)

    return other._replace(**{name: both(name) for name in ("total_cost_usd", *TOKENS, "num_turns")})


def own_part(counted: Cost, before: Cost, cumulative: frozenset[str]) -> Cost:
    """Return this run's part of a harness's count over a session; `before` is the previous count."""
    names = _counted_over_sessions(cumulative)
    return counted._replace(**{name: _less(getattr(counted, name), getattr(before, name)) for name in names})


def without_session(counted: Cost, cumulative: frozenset[str]) -> Cost:
    """Return `counted` without the figures of a whole session with an unknown past."""
    return counted._replace(**dict.fromkeys(_counted_over_sessions(cumulative)))


def _counted_over_sessions(cumulative: frozenset[str]) -> tuple[str, ...]:
    return (("total_cost_usd",) if "cost" in cumulative else ()) + (TOKENS if "tokens" in cumulative else ())


def priced(cost: Cost, prices: Mapping[str, Price], model: str | None) -> Cost:
    """Return `cost` with dollars: the harness's own, else from the table; None for an unlisted model."""
    price = price_of(prices, model or cost.model)
    tokens = [getattr(cost, name) for name in TOKENS]
    if cost.total_cost_usd is not None or price is None or tokens[0] is None or tokens[1] is None:
        return cost
    given, out, read, written = (count or 0 for count in tokens)
    if price.cache_write is None:
        write_price = price.input
    else:
        write_price = price.cache_write
    dollars = given * price.input + read * price.cached + written * write_price + out * price.output
    return cost._replace(total_cost_usd=round(dollars / 1_000_000, 8))


def price_of(prices: Mapping[str, Price], model: str | None) -> Price | None:
    """Return the price of a model; effort, date and provider in its name are ignored."""
    name = (model or "").strip()
    while name:
        for wanted in (name, name.rpartition("/")[2]):
            if wanted in prices:
                return prices[wanted]
        shorter = _EFFORT.sub("", name)
        if shorter == name:
            shorter = _DATE.sub("", name)
        if shorter == name:
            return None
        name = shorter
    return None


def _figure(value: object, whole: bool = True) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e15:
        return None
    if whole:
        return int(value)
    return float(value)


def _less(counted: Any, before: Any) -> Any:
    if counted is None or before is None or counted < before:  # a smaller one was counted from the beginning
        return counted
    if isinstance(counted, int):
        return counted - before
    return round(counted - before, 10)


# Refusals of ours in a harness's output: the file, its holder, and the holder's note.
#
# Harnesses pass on the words only (``swarm_hook_core.wording``, ``denial``), each in its own frame. A test reads the
# words of those modules back.

BEGINS = "swarm lock blocked "
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_FILE = re.compile(
    rf"(?:(?: \(`[^`]*`\))? for (?P<file>{_QUOTED}|\S+?)(?=: held by |: denied \d| \()"
    rf"|: it may write (?P<possible>{_QUOTED}|\S+?)(?= \())"
)
_TIMES = re.compile(r": denied (\d+) times")
# Behind the holder stand, in brackets, how to wait, the note, if there is one, and since or until when; a brief refusal
# ends there.
_HOLDER = re.compile(
    r"held by (?P<who>.+?)(?:, who reads it and keeps it still)?"
    r"(?: \((?:(?:join|wait) [^`]*`[^`]*`; )?"
    rf"(?:note: (?P<note>{_QUOTED})|locked |until |lapses |nothing uncertain )|\. Do not write it another)"
)


class Denial(NamedTuple):
    """One refusal. Facts missing in its words are empty; `times`: the number of equal ones within some minutes."""

    file: str = ""
    holder: str = ""
    note: str = ""
    times: int = 1

    def line(self) -> str:
        """Return the refusal in one line for people."""
        if self.note:
            note = f" ({self.note})"
        else:
            note = ""
        if self.holder:
            held = f", held by {self.holder}{note}"
        else:
            held = ""
        return f"denied: {self.file or 'a locked file'}{held}{f'; {self.times} times now' if self.times > 1 else ''}"


def reason_in(text: str) -> str:
    """Return the words of a refusal in `text`, from their beginning on; empty for none."""
    at = text.find(BEGINS)
    if at < 0:
        return ""
    if text[at - 1 : at] == '"':  # some agents show a whole message of their protocol
        with contextlib.suppress(ValueError):
            return str(json.JSONDecoder().raw_decode(text, at - 1)[0])
    return text[at:]


def denial_in(text: str) -> Denial | None:
    """Return the refusal in `text`, or None."""
    reason = reason_in(text)
    if not reason:
        return None
    file, holder, times = _FILE.search(reason), _HOLDER.search(reason), _TIMES.search(reason)
    return Denial(
        _plain(file.group("file") or file.group("possible")) if file else "",
        holder.group("who") if holder else "",
        _plain(holder.group("note") or "") if holder else "",
        int(times.group(1)) if times else 1,
    )


def _plain(words: str) -> str:
    """Return quoted words without the quotes."""
    if words.startswith('"'):
        return re.sub(r'\\(["\\])', r"\1", words[1:-1])
    return words


# Failed runs as exceptions, for callers that prefer them.
#
# SwarmError               (``swarm_mcp.errors``) the text is one line for the user
# ├── Refused              the query makes no sense; nothing was started
# │   └── Unsupported      the harness lacks an ability that the run needs; nothing was started
# └── ClientFailed
# └── HarnessError     a run failed: its error code, its harness's name, its result
# ├── NotInstalled with instructions how to install the harness
# └── AuthError    with instructions how to sign in


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


def code_of_error(error: Exception) -> str:
    """Return the error code of a run that could not be started because of `error`."""
    if isinstance(error, Unsupported):
        return UNSUPPORTED
    return UNKNOWN


def checked_result(result: RunResult, instructions: str) -> RunResult:
    """Return the result of a run that went well. Raises HarnessError, with the harness's `instructions`, for others."""
    if not result.is_error:
        return result
    kind = {NOT_INSTALLED: NotInstalled, AUTH_FAILED: AuthError}.get(result.error_category or "")
    raise (kind or HarnessError)(result, instructions)
