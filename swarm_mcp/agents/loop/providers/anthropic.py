"""The Messages API (``POST /v1/messages``), as documented by Anthropic for version 2023-06-01."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from swarm_mcp.agents.loop.providers.http import ModelProtocol, Reply, Request, Sink, number_of, sampling, tokens
from swarm_mcp.agents.loop.session import Block, Turn, model_call
from swarm_mcp.agents.loop.settings import LoopFailure

URL, VERSION, MAX_TOKENS = "https://api.anthropic.com/v1/messages", "2023-06-01", 8192
_STOPS = {"end_turn": "end", "stop_sequence": "end", "tool_use": "tool_calls", "max_tokens": "length"}


class Anthropic(ModelProtocol):
    """The provider ``anthropic``."""

    name = "anthropic"
    label = "Anthropic Messages API"
    default_model = "claude-sonnet-5-5"
    key = "ANTHROPIC_API_KEY"
    env = """\
ANTHROPIC_API_KEY      API key (or ANTHROPIC_AUTH_TOKEN, sent as a bearer)
ANTHROPIC_API_URL      endpoint (https://api.anthropic.com/v1/messages; ANTHROPIC_BASE_URL names what is before /v1)
ANTHROPIC_API_VERSION  (2023-06-01)
ANTHROPIC_BETA         value of the header anthropic-beta (none)
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
        url = environ.get("ANTHROPIC_API_URL", "").strip() or (f"{base}/v1/messages" if base else URL)
        headers = {"anthropic-version": environ.get("ANTHROPIC_API_VERSION", "").strip() or VERSION}
        key, bearer = environ.get(self.key, "").strip(), environ.get("ANTHROPIC_AUTH_TOKEN", "").strip()
        if key:
            headers["x-api-key"] = key
        elif bearer:
            headers["authorization"] = f"Bearer {bearer}"
        if environ.get("ANTHROPIC_BETA", "").strip():
            headers["anthropic-beta"] = environ["ANTHROPIC_BETA"].strip()
        body = {
            "model": payload.get("model") or environ.get("HARNESS_MODEL") or self.default_model,
            "max_tokens": number_of(environ, "ANTHROPIC_MAX_TOKENS") or MAX_TOKENS,
            "messages": payload.get("messages") or [],
            **sampling(environ, "ANTHROPIC"),
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
        stop = _STOPS.get(str(response.get("stop_reason") or "end_turn"), "end")
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
                _grow(blocks[index], chunk.get("delta") or {}, sink)
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


def _grow(block: dict[str, Any], delta: dict[str, Any], sink: Sink) -> None:
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
