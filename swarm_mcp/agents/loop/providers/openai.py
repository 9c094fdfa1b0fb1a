"""Chat completions (``POST /v1/chat/completions``), as OpenAI documents them and many servers speak them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from swarm_mcp.agents.loop.providers.http import ModelProtocol, Reply, Request, Sink, number_of, sampling, tokens
from swarm_mcp.agents.loop.session import Block, Turn, model_call
from swarm_mcp.agents.loop.settings import LoopFailure

URL, MAX_TOKENS = "https://api.openai.com/v1/chat/completions", 4096
_STOPS = {"stop": "end", "tool_calls": "tool_calls", "function_call": "tool_calls", "length": "length"}


# OpenAI's own newer models refuse `max_tokens`; all other servers of this protocol know it.
_LONGEST_NAME = {URL: "max_completion_tokens"}


class OpenAI(ModelProtocol):
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
        url = environ.get("OPENAI_API_URL", "").strip() or (f"{base}/chat/completions" if base else URL)
        key = environ.get(self.key, "").strip()
        if payload.get("system"):
            system = [{"role": "system", "content": payload["system"]}]
        else:
            system = []
        body = {
            "model": payload.get("model") or environ.get("HARNESS_MODEL") or self.default_model,
            _LONGEST_NAME.get(url, "max_tokens"): number_of(environ, "OPENAI_MAX_TOKENS") or MAX_TOKENS,
            "messages": [*system, *(payload.get("messages") or [])],
            **sampling(environ, "OPENAI"),
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
        stop = _STOPS.get(str(first.get("finish_reason") or "stop"), "end")
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
                _grow(calls, piece)
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


def _grow(calls: dict[int, dict[str, Any]], piece: dict[str, Any]) -> None:
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
