"""Error codes from what any command line says of its own failure, for harnesses that have nothing better."""

from __future__ import annotations

import re

from swarm_mcp.harness import outcome
from swarm_mcp.harness.outcome import ERRORS, Ending

LONGEST_LINE = 500
NOTHING_RAN = (126, 127)  # a shell, or env, that found no program, or one that cannot be run
# What a program may print of anything that it works with: only where it gives it as its own error.
OF_MANY = (outcome.UNREACHABLE, outcome.MODEL_NOT_FOUND)
# In this order: what is said more precisely comes first.
PATTERNS = tuple(
    (code, re.compile(pattern, re.I))
    for code, pattern in (
        (outcome.SESSION_IN_USE, r"session (?:id )?\S* ?is already in use|session.{0,60}locked by another"),
        (outcome.SESSION_NOT_FOUND,
         r"no (?:conversation|session|rollout|thread)s? found|(?:session|conversation|thread)\b.{0,80}\bnot found"
         r"|no such (?:session|thread|conversation)|unknown (?:session|thread)"),
        (outcome.CONTEXT_OVERFLOW,
         r"context[ _](?:length|window)[ _]?(?:exceeded|overflow)|prompt is too long|maximum context length"
         r"|input.{0,20}exceeds the context"),
        (outcome.BUDGET,
         r"max[_ -]?budget|budget (?:exceeded|limit)|credit balance is too low|insufficient_quota|quota exceeded"
         r"|exceeded your current quota|max[_ -]?turns"),
        (outcome.RATE_LIMITED,
         r"\b429\b|rate[ _-]?limit|too many requests|overloaded|\b529\b|usage limit|server is busy"),
        (outcome.AUTH_FAILED,
         r"\b401\b|\b403\b|unauthori[sz]ed|authentication|invalid (?:x-)?api[- _]?key|incorrect api key"
         r"|not logged in|please (?:run /)?log ?in|no api key|missing api key"),
        (outcome.MODEL_NOT_FOUND,
         r"model_not_found|\bmodel\b.{0,80}(?:does not exist|not found|may not exist|is not available)|no such model"
         r"|(?:unknown|invalid) model|not_found_error.{0,60}\bmodel:|model \S+ is not supported"),
        (outcome.UNREACHABLE,
         r"ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|connection (?:refused|error"
         r"|failed|reset|timed out)|error sending request|cannot be reached|could not (?:connect|resolve host)"
         r"|failed to connect|fetch failed|waiting for network|name or service not known|network is unreachable"),
    )
)  # fmt: skip


def error_of(ending: Ending) -> tuple[str, str] | None:
    """See ``HarnessAdapter.error_of``."""
    result = ending.result or {}
    if not ending.exit_code and not ending.signal and not result.get("is_error"):
        return None
    if ending.exit_code in NOTHING_RAN and not ending.native_lines:
        return outcome.NOT_INSTALLED, line_of(ending.stderr) or _how(ending)
    said = [str(found.get("message") or "") for found in ending.errors]
    answer = result.get("output") if result.get("is_error") else ""
    own = str(result.get("error_message") or result.get("error") or answer or "")
    printed = (ending.stderr, ending.stdout if ending.result is None else "")
    for text in (own, *reversed(said), *printed):
        code = code_of(text)
        if code and not (text in printed and code in OF_MANY):
            return code, line_of(text, code)
    named = [result.get("error_category"), *(found.get("category") for found in reversed(ending.errors))]
    code = next((name for name in named if name in ERRORS), outcome.UNKNOWN)
    words = next((line_of(text) for text in (own, *reversed(said), ending.stderr, ending.stdout) if text.strip()), "")
    if code == outcome.UNKNOWN and (ending.result is None or ending.signal):
        code = outcome.PROCESS_CRASHED
    return code, words or _how(ending)


def code_of(text: str) -> str:
    """The error code that `text` speaks of; empty where it speaks of none."""
    return next((code for code, pattern in PATTERNS if pattern.search(text)), "")


def line_of(text: str, code: str = "") -> str:
    """The line of `text` that says why: the one that speaks of `code`, else the last one that says anything."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    pattern = dict(PATTERNS).get(code)
    found = next((line for line in lines if pattern.search(line)), "") if pattern else ""
    return (found or (lines[-1] if lines else ""))[:LONGEST_LINE]


def _how(ending: Ending) -> str:
    if ending.signal:
        return f"the process was ended by signal {ending.signal}"
    return f"the process ended with exit code {ending.exit_code}"
