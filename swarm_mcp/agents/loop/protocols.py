"""The protocols of models over HTTP: Anthropic's Messages API, and the chat completions of OpenAI and many servers.

One POST for each answer, read whole or as it comes; retried while the endpoint is busy; errors in our words.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from swarm_mcp.agents.harness.outcome import MODEL_NOT_FOUND, code_of
from swarm_mcp.agents.harness.query import parse_json, parse_object
from swarm_mcp.agents.loop.session import Block, ModelCall, Turn, model_call
from swarm_mcp.agents.loop.settings import LoopFailure, number

# The differences between the protocols of models.


class Reply(NamedTuple):
    """A model's answer. `stop` is one of ``session.STOPS``; `usage` has tokens by ``input`` (without cached ones),
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
            return urllib.request.urlopen(asked, timeout=SECONDS)
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


# The Messages API (``POST /v1/messages``), as documented by Anthropic for version 2023-06-01.

ANTHROPIC_URL, ANTHROPIC_VERSION, ANTHROPIC_TOKENS = "https://api.anthropic.com/v1/messages", "2023-06-01", 8192
_ANTHROPIC_STOPS = {"end_turn": "end", "stop_sequence": "end", "tool_use": "tool_calls", "max_tokens": "length"}


class Anthropic:
    """The provider ``anthropic``. `key` is the variable with the API key, `env` says all its variables.

    `OpenAI` has the same methods: `missing` returns the variables that the provider lacks, `messages` the conversation
    as the protocol has it, `request` the request for a payload (``model``, ``system``, ``messages``, ``tools``), `read`
    an answer as a Reply, and `join` the answer from the events of a stream. The last two raise LoopFailure: `read` for
    a malformed answer, `join` where the stream ends early.
    """

    name = "anthropic"
    label = "Anthropic Messages API"
    default_model = "claude-sonnet-5-5"
    key = "ANTHROPIC_API_KEY"
    env = """\
ANTHROPIC_API_KEY      API key (or ANTHROPIC_AUTH_TOKEN, sent as a bearer)
ANTHROPIC_API_URL      endpoint (https://api.anthropic.com/v1/messages; ANTHROPIC_BASE_URL names what is before /v1)
ANTHROPIC_MAX_TOKENS   longest answer (8192)"""

    def missing(self, environ: Mapping[str, str]) -> str:
        has = environ.get(self.key, "").strip() or environ.get("ANTHROPIC_AUTH_TOKEN", "").strip()
        if has:
            return ""
        return self.key

    def messages(self, turns: Iterable[Turn]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for turn in turns:
            content = _content(turn)
            if turn.role == "assistant":
                role = "assistant"
            else:
                role = "user"
            if found and found[-1]["role"] == role:  # the API wants them to take turns
                found[-1]["content"] = [*found[-1]["content"], *content]
            elif content:
                found.append({"role": role, "content": content})
        return found

    def request(self, payload: dict[str, Any], environ: Mapping[str, str], stream: bool) -> Request:
        base = environ.get("ANTHROPIC_BASE_URL", "").strip().rstrip("/")
        url = environ.get("ANTHROPIC_API_URL", "").strip() or (f"{base}/v1/messages" if base else ANTHROPIC_URL)
        headers = {"anthropic-version": ANTHROPIC_VERSION}
        key, bearer = environ.get(self.key, "").strip(), environ.get("ANTHROPIC_AUTH_TOKEN", "").strip()
        if key:
            headers["x-api-key"] = key
        elif bearer:
            headers["authorization"] = f"Bearer {bearer}"
        body = {
            "model": payload.get("model") or environ.get("HARNESS_MODEL") or self.default_model,
            "max_tokens": number_of(environ, "ANTHROPIC_MAX_TOKENS") or ANTHROPIC_TOKENS,
            "messages": payload.get("messages") or [],
        }
        body.update({name: payload[name] for name in ("system", "tools") if payload.get(name)})
        thinking = environ.get("HARNESS_THINKING", "").strip()
        if thinking and thinking != "off":
            body.update(thinking={"type": "adaptive"}, output_config={"effort": thinking})
        if url.startswith("https://api.anthropic.com/"):  # others refuse fields they do not know
            body["cache_control"] = {"type": "ephemeral"}
        if stream:
            body["stream"] = True
        return Request(url, headers, body)

    def read(self, response: dict[str, Any]) -> Reply:
        content = response.get("content")
        if not isinstance(content, list):
            raise LoopFailure(f"the model's answer has no content: {json.dumps(response)[:200]}")
        usage = response.get("usage")
        if not isinstance(usage, dict):
            usage = {}
        counted = tokens(
            input=usage.get("input_tokens"),
            output=usage.get("output_tokens"),
            cache_read=usage.get("cache_read_input_tokens"),
            cache_write=usage.get("cache_creation_input_tokens"),
        )
        blocks = tuple(block for item in content if isinstance(item, dict) for block in _block(item))
        stop = _ANTHROPIC_STOPS.get(str(response.get("stop_reason") or "end_turn"), "end")
        return Reply(blocks, stop, str(response.get("model") or ""), counted)

    def join(self, chunks: Iterable[dict[str, Any]], sink: Sink) -> dict[str, Any]:
        message: dict[str, Any] = {}
        blocks: dict[int, dict[str, Any]] = {}
        ended = False
        for chunk in chunks:
            kind, index = chunk.get("type"), chunk.get("index", 0)
            if kind == "message_start":
                message = dict(chunk.get("message") or {})
            elif kind == "content_block_start":
                blocks[index] = {**(chunk.get("content_block") or {}), "json": ""}
            elif kind == "content_block_delta" and index in blocks:
                _grow_block(blocks[index], chunk.get("delta") or {}, sink)
            elif kind == "content_block_stop" and index in blocks:
                block = blocks[index]
                if block.get("type") == "tool_use":
                    if block["json"].strip():
                        block["input"] = block["json"]
                    made = model_call(block.get("id"), block.get("name"), block.get("input"))
                    block["input"] = made.input
                    sink.call(made)
            elif kind == "message_delta":
                message.update(chunk.get("delta") or {})
                message["usage"] = {**(message.get("usage") or {}), **(chunk.get("usage") or {})}
            elif kind == "message_stop":
                ended = True
        if not message or not ended:
            raise LoopFailure("the model's answer broke off", "unknown")
        content = [{name: value for name, value in blocks[index].items() if name != "json"} for index in sorted(blocks)]
        return {**message, "content": content}


def _content(turn: Turn) -> list[dict[str, Any]]:
    if turn.role == "user":
        if turn.text.strip():
            return [{"type": "text", "text": turn.text}]
        return []
    if turn.role == "assistant":
        return [_shown(block) for block in turn.blocks]
    return [
        {"type": "tool_result", "tool_use_id": made.id, "content": text or "(no output)"}
        | ({"is_error": True} if error else {})
        for made, text, error in turn.results
    ]


def _shown(block: Block) -> dict[str, Any]:
    if block.call:
        return {"type": "tool_use", "id": block.call.id, "name": block.call.name, "input": block.call.input}
    if block.kind == "thinking":
        return {"type": "thinking", "thinking": block.text, "signature": block.signature}
    return {"type": "text", "text": block.text}


def _block(item: dict[str, Any]) -> list[Block]:
    kind = item.get("type")
    if kind == "text":
        if item.get("text"):
            return [Block("text", str(item.get("text") or ""))]
        return []
    if kind == "thinking":
        return [Block("thinking", str(item.get("thinking") or ""), str(item.get("signature") or ""))]
    if kind == "tool_use":
        return [Block("tool_call", call=model_call(item.get("id"), item.get("name"), item.get("input")))]
    return []


def _grow_block(block: dict[str, Any], delta: dict[str, Any], sink: Sink) -> None:
    if delta.get("type") == "text_delta":
        block["text"] = f"{block.get('text') or ''}{delta.get('text') or ''}"
        sink.text(str(delta.get("text") or ""))
    elif delta.get("type") == "thinking_delta":
        block["thinking"] = f"{block.get('thinking') or ''}{delta.get('thinking') or ''}"
        sink.thinking(str(delta.get("thinking") or ""))
    elif delta.get("type") == "signature_delta":
        block["signature"] = f"{block.get('signature') or ''}{delta.get('signature') or ''}"
    elif delta.get("type") == "input_json_delta":
        block["json"] += str(delta.get("partial_json") or "")


# Chat completions (``POST /v1/chat/completions``), as OpenAI documents them and many servers speak them.

OPENAI_URL, OPENAI_TOKENS = "https://api.openai.com/v1/chat/completions", 4096
_OPENAI_STOPS = {"stop": "end", "tool_calls": "tool_calls", "function_call": "tool_calls", "length": "length"}


# OpenAI's own newer models refuse `max_tokens`; all other servers of this protocol know it.
_LONGEST_NAME = {OPENAI_URL: "max_completion_tokens"}


class OpenAI:
    """The provider ``openai``."""

    name = "openai"
    label = "OpenAI and compatible chat completions"
    default_model = "gpt-6.1-sol"
    key = "OPENAI_API_KEY"
    env = """\
OPENAI_API_KEY      API key (servers of one's own may do without)
OPENAI_API_URL      endpoint (https://api.openai.com/v1/chat/completions; OPENAI_BASE_URL names what is before /chat)
OPENAI_MAX_TOKENS   longest answer (4096)"""

    def missing(self, environ: Mapping[str, str]) -> str:
        names = (self.key, "OPENAI_API_URL", "OPENAI_BASE_URL")
        if any(environ.get(name, "").strip() for name in names):
            return ""
        return f"{self.key} or OPENAI_API_URL"

    def messages(self, turns: Iterable[Turn]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for turn in turns:
            if turn.role == "user":
                found.append({"role": "user", "content": turn.text})
            elif turn.role == "assistant":
                found.append(_said(turn.blocks))
            else:
                for made, text, _error in turn.results:
                    found.append({"role": "tool", "tool_call_id": made.id, "content": text})
        return found

    def request(self, payload: dict[str, Any], environ: Mapping[str, str], stream: bool) -> Request:
        base = environ.get("OPENAI_BASE_URL", "").strip().rstrip("/")
        url = environ.get("OPENAI_API_URL", "").strip() or (f"{base}/chat/completions" if base else OPENAI_URL)
        key = environ.get(self.key, "").strip()
        if payload.get("system"):
            system = [{"role": "system", "content": payload["system"]}]
        else:
            system = []
        body = {
            "model": payload.get("model") or environ.get("HARNESS_MODEL") or self.default_model,
            _LONGEST_NAME.get(url, "max_tokens"): number_of(environ, "OPENAI_MAX_TOKENS") or OPENAI_TOKENS,
            "messages": [*system, *(payload.get("messages") or [])],
        }
        if payload.get("tools"):
            body["tools"] = [{"type": "function", "function": _function(tool)} for tool in payload["tools"]]
        thinking = environ.get("HARNESS_THINKING", "").strip()
        if thinking and thinking != "off":
            body["reasoning_effort"] = "high" if thinking == "max" else thinking
        if stream:
            body.update(stream=True, stream_options={"include_usage": True})
        return Request(url, {"authorization": f"Bearer {key}"} if key else {}, body)

    def read(self, response: dict[str, Any]) -> Reply:
        choices = response.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            first = choices[0]
        else:
            first = None
        if first:
            message = first.get("message")
        else:
            message = None
        if not first or not isinstance(message, dict):
            raise LoopFailure(f"the model's answer has no choices: {json.dumps(response)[:200]}")
        text = message.get("content")
        if isinstance(text, list):  # some servers answer in parts
            text = "".join(str(part.get("text") or "") for part in text if isinstance(part, dict))
        if text:
            blocks = [Block("text", str(text))]
        else:
            blocks = []
        for item in message.get("tool_calls") or []:
            if isinstance(item, dict):
                wanted = item.get("function")
            else:
                wanted = None
            if isinstance(wanted, dict):
                made = model_call(item.get("id"), wanted.get("name"), wanted.get("arguments") or {})
                blocks.append(Block("tool_call", call=made))
        stop = _OPENAI_STOPS.get(str(first.get("finish_reason") or "stop"), "end")
        return Reply(tuple(blocks), stop, str(response.get("model") or ""), _usage(response.get("usage")))

    def join(self, chunks: Iterable[dict[str, Any]], sink: Sink) -> dict[str, Any]:
        response: dict[str, Any] = {"id": "", "object": "chat.completion", "model": ""}
        text: list[str] = []
        calls: dict[int, dict[str, Any]] = {}
        reason = None
        for chunk in chunks:
            response.update({name: chunk[name] for name in ("id", "model", "usage") if chunk.get(name)})
            choices = chunk.get("choices")
            if not isinstance(choices, list) or not choices:
                continue
            delta = choices[0].get("delta") or {}
            if delta.get("content"):
                text.append(str(delta["content"]))
                sink.text(text[-1])
            for piece in delta.get("tool_calls") or []:
                _grow_call(calls, piece)
            reason = choices[0].get("finish_reason") or reason
        if reason is None:
            raise LoopFailure("the model's answer broke off", "unknown")
        message: dict[str, Any] = {"role": "assistant", "content": "".join(text) or None}
        made = [calls[index] for index in sorted(calls)]
        if made:
            message["tool_calls"] = made
        # Nothing in the stream says that a call is whole, but its end does.
        for item in made:
            sink.call(model_call(item["id"], item["function"]["name"], item["function"]["arguments"]))
        return {**response, "choices": [{"index": 0, "message": message, "finish_reason": reason}]}


def _said(blocks: tuple[Block, ...]) -> dict[str, Any]:
    text = "\n\n".join(block.text for block in blocks if block.kind == "text")
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    calls = [
        {
            "id": block.call.id,
            "type": "function",
            "function": {"name": block.call.name, "arguments": json.dumps(block.call.input, ensure_ascii=False)},
        }
        for block in blocks
        if block.call
    ]
    if calls:
        return {**message, "tool_calls": calls}
    return {**message, "content": text}


def _function(tool: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": tool.get("name"),
        "description": tool.get("description") or "",
        "parameters": tool.get("input_schema") or {"type": "object", "properties": {}},
    }


def _grow_call(calls: dict[int, dict[str, Any]], piece: dict[str, Any]) -> None:
    index = piece.get("index", len(calls))
    made = calls.setdefault(index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
    wanted = piece.get("function") or {}
    made["id"] = piece.get("id") or made["id"] or f"call_{index}"
    made["function"]["name"] = wanted.get("name") or made["function"]["name"]
    made["function"]["arguments"] += wanted.get("arguments") or ""


def _usage(given: object) -> dict[str, int]:
    if not isinstance(given, dict):
        return {}
    details = given.get("prompt_tokens_details")
    if isinstance(details, dict):
        cached = details.get("cached_tokens")
    else:
        cached = None
    prompt = given.get("prompt_tokens")
    if isinstance(prompt, int) and isinstance(cached, int):
        prompt -= cached
    return tokens(input=prompt, output=given.get("completion_tokens"), cache_read=cached)
