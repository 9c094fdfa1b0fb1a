"""Asking an endpoint: one POST, read whole or as it comes; retried while it is busy; errors in our words."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from swarm_mcp.agents.harness.outcome import MODEL_NOT_FOUND, code_of
from swarm_mcp.agents.harness.query import parse_json, parse_object
from swarm_mcp.agents.loop.session import Block, ModelCall, Turn
from swarm_mcp.agents.loop.settings import LoopFailure, number

# The differences between the protocols of models.


class Reply(NamedTuple):
    """A model's answer. `stop` is one of ``messages.STOPS``; `usage` has tokens by ``input`` (without cached ones),
    ``output``, ``cache_read``, ``cache_write``, as far as they are known.
    """

    blocks: tuple[Block, ...]
    stop: str
    model: str
    usage: Mapping[str, int]


class Request(NamedTuple):
    """An HTTP POST."""

    url: str
    headers: dict[str, str]
    body: dict[str, Any]


class Sink(NamedTuple):
    """The callbacks during an answer: for text, for thoughts, and for each complete call."""

    text: Callable[[str], None]
    thinking: Callable[[str], None]
    call: Callable[[ModelCall], None]


class ModelProtocol(ABC):
    """One protocol: `name`; `default_model`; `key`, the variable with the API key; `env`, its variables."""

    name = ""
    label = ""
    default_model = ""
    key = ""
    env = ""

    @abstractmethod
    def missing(self, environ: Mapping[str, str]) -> str:
        """Return the variables that this provider lacks; empty if it is ready."""

    @abstractmethod
    def messages(self, turns: Iterable[Turn]) -> list[dict[str, Any]]:
        """Return the conversation as this protocol has it."""

    @abstractmethod
    def request(self, payload: dict[str, Any], environ: Mapping[str, str], stream: bool) -> Request:
        """Return the request for `payload` (``model``, ``system``, ``messages``, ``tools``)."""

    @abstractmethod
    def read(self, response: dict[str, Any]) -> Reply:
        """Return an answer as a Reply. Raises LoopFailure for a malformed answer."""

    @abstractmethod
    def join(self, chunks: Iterable[dict[str, Any]], sink: Sink) -> dict[str, Any]:
        """Return the answer from the events of a stream. Raises LoopFailure where the stream ends early."""


def tokens(**given: object) -> dict[str, int]:
    """Return the known numbers of tokens."""
    return {name: value for name, value in given.items() if isinstance(value, int) and not isinstance(value, bool)}


def number_of(environ: Mapping[str, str], name: str) -> float | int | None:
    """Return a setting that is a number, or `None` if it is not set."""
    text = environ.get(name, "").strip()
    try:
        if text.lstrip("-").isdigit():
            return int(text)
        return float(text)
    except ValueError:  # not a number: as if it were not set
        return None


def sampling(environ: Mapping[str, str], prefix: str) -> dict[str, Any]:
    """Return ``temperature``, ``top_p``, ``top_k`` where they are set."""
    wanted = {name: number_of(environ, f"{prefix}_{name.upper()}") for name in ("temperature", "top_p", "top_k")}
    return {name: value for name, value in wanted.items() if value is not None}


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
