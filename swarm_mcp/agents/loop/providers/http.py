"""Asking an endpoint: one POST, read whole or as it comes; retried while it is busy; errors in our words."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from typing import Any

from swarm_mcp.agents.harness.outcome import MODEL_NOT_FOUND, code_of
from swarm_mcp.agents.harness.query import parse_json, parse_object
from swarm_mcp.agents.loop.providers.protocol import Request
from swarm_mcp.agents.loop.settings import LoopFailure, number

SECONDS = 300.0  # without a byte
RETRIES = 3
FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
LONGEST_ERROR = 65536
_BUSY = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_TOO_LONG = ("context length", "context_length", "context window", "too long", "maximum context", "too many tokens")
_SPENT = ("insufficient_quota", "credit balance", "billing")


Again = Callable[[str, str, "float | None"], None]  # told of each retry: why, category, Unix seconds not before


def whole(name: str, request: Request, again: Again = lambda *_: None) -> dict[str, Any]:
    """Return the answer as one JSON object. Raises LoopFailure; `name` is the provider's, for its text."""
    with _opened(name, request, again) as response:
        return _whole(name, response)


def joined(
    name: str,
    request: Request,
    join: Callable[[Iterator[dict[str, Any]]], dict[str, Any]],
    again: Again = lambda *_: None,
) -> dict[str, Any]:
    """Return the answer that `join` makes of a stream's events; the whole one where the endpoint does not stream."""
    with _opened(name, request, again) as response:
        if "event-stream" in (response.headers.get("content-type") or "event-stream"):
            return join(_events(name, response))
        return _whole(name, response)


def _whole(name: str, response: http.client.HTTPResponse) -> dict[str, Any]:
    try:
        text = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise LoopFailure(f"{name}: the answer broke off: {error}") from None
    found = parse_json(text)
    if not isinstance(found, dict):
        raise LoopFailure(f"{name} answered with no JSON object: {text[:200].decode('utf-8', 'replace')}")
    if found.get("error"):
        raise _failure(name, 0, found)
    return found


def _events(name: str, response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """The events of the answer, as they come. Raises LoopFailure, also for an error among them."""
    try:
        for raw in response:
            line = raw.decode("utf-8", "replace").strip()
            if not line.startswith("data:"):
                continue
            data = line[5:].strip()
            if data == "[DONE]":
                return
            found = parse_object(data)
            if found.get("error"):
                raise _failure(name, 0, found)
            if found:
                yield found
    except (OSError, http.client.HTTPException) as error:
        raise LoopFailure(f"{name}: the answer broke off: {error}") from None


def _opened(name: str, request: Request, again: Again) -> Any:
    data = json.dumps(request.body, ensure_ascii=False).encode("utf-8", "replace")
    headers = {"content-type": "application/json", "user-agent": "swarm-mcp", **request.headers}
    left = int(number("HARNESS_RETRIES", RETRIES))
    wait = FIRST_WAIT
    while True:
        try:
            if not request.url.startswith(("http://", "https://")):
                raise LoopFailure(f"{name}: {request.url[:100]!r} is no address of an endpoint")
            asked = urllib.request.Request(request.url, data, headers, method="POST")
            return urllib.request.urlopen(asked, timeout=number("HARNESS_HTTP_TIMEOUT", SECONDS) or SECONDS)
        except urllib.error.HTTPError as error:
            with error:
                text = error.read(LONGEST_ERROR).decode("utf-8", "replace")
                after = error.headers.get("retry-after") or ""
            failure = _failure(name, error.code, text)
            told = seconds_of(after)
            if told is not None:
                wait = told
                failure.retry_not_before = time.time() + told
            # One that wants more than we wait for is not asked again before its time.
            if error.code not in _BUSY or not left or failure.category == "budget" or wait > LONGEST_WAIT:
                raise failure from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            why = getattr(error, "reason", error)
            failure = LoopFailure(f"{name} cannot be reached at {request.url}: {why}", "unreachable")
            if not left or isinstance(error, ValueError):
                raise failure from None
        left -= 1
        again(str(failure), failure.category, failure.retry_not_before)
        time.sleep(wait)
        wait = min(wait * 2, LONGEST_WAIT)


def seconds_of(text: str) -> float | None:
    """Return a Retry-After header (seconds or a date) as seconds from now, or `None`."""
    text = text.strip()
    if text.replace(".", "", 1).isdigit():
        return float(text)
    if not text:
        return None
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):  # no date that can be read
        return None


def _failure(name: str, status: int, said: str | dict[str, Any]) -> LoopFailure:
    """An endpoint's error as we have them."""
    error = parse_object(said).get("error")
    kind, text = "", str(error or said)
    if isinstance(error, dict):
        kind, text = str(error.get("type") or error.get("code") or ""), str(error.get("message") or error)
    words = f"{kind} {text}".lower()
    if status in (401, 403) or "authentication" in words or "invalid_api_key" in words or "permission_error" in words:
        category = "auth_failed"
    elif any(mark in words for mark in _SPENT):
        category = "budget"
    elif status in (429, 529) or "rate_limit" in words or "overloaded" in words:
        category = "rate_limited"
    elif any(mark in words for mark in _TOO_LONG):
        category = "context_overflow"
    elif code_of(words) == MODEL_NOT_FOUND or (status == 404 and "model" in words):
        category = MODEL_NOT_FOUND
    elif status >= 500:
        category = "rate_limited"  # as claude names it: a passing failure of the server
    else:
        category = "unknown"
    title = f"{name} API error"
    if status:
        title += f" {status}"
    return LoopFailure(f"{title}: {text.strip()[:500]}", category)
