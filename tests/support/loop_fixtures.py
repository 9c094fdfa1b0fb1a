"""A scripted model on loopback that speaks both protocols of the loop, and running the loop against it."""

import io
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from swarm_mcp.agents.loop.session import Message, history
from swarm_mcp.cli.main import main
from swarm_mcp.play.models import LoopbackServer, QuietHandler

from .fixtures import wait_for

ANTHROPIC, OPENAI = "anthropic", "openai"
MAIN = "import sys; from swarm_mcp.cli.main import main; sys.exit(main())"


class Say(NamedTuple):
    """One answer: text, then calls ``(tool, arguments)``. `pause` before the end of its stream: seconds, or a
    condition to wait for.
    """

    text: str = ""
    calls: tuple[tuple[str, dict], ...] = ()
    thinking: str = ""
    pause: float | Callable[[], object] = 0.0
    stop: str = ""


class Fail(NamedTuple):
    """An error of the endpoint."""

    status: int
    error: dict
    headers: dict = {}


class Cut(NamedTuple):
    """A stream that breaks off after this text."""

    text: str = "half"


class Model(LoopbackServer):
    """Answers with `script`, one item a request; the last one for ever. `asked` holds the requests' bodies."""

    def __init__(self) -> None:
        self.script: list = [Say("Done.")]
        self.asked: list[dict] = []
        self.headers: list[dict] = []
        super().__init__(_Handler)

    def next(self, body: dict, headers: dict):
        self.asked.append(body)
        self.headers.append(headers)
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def told(self, index: int = -1) -> list[str]:
        """The tool results in a request, in order."""
        found = []
        for message in self.asked[index]["messages"]:
            if message["role"] == "tool":
                found.append(message["content"])
            elif isinstance(message["content"], list):
                found += [part["content"] for part in message["content"] if part["type"] == "tool_result"]
        return found

    def system(self, index: int = -1) -> str:
        """The system prompt of a request."""
        body = self.asked[index]
        return body.get("system") or next((m["content"] for m in body["messages"] if m["role"] == "system"), "")

    def tools(self, index: int = -1) -> list[str]:
        """The names of the tools in a request."""
        return [tool.get("name") or tool["function"]["name"] for tool in self.asked[index].get("tools", ())]


def settings(model: Model, folder: Path) -> dict[str, str]:
    """Return the variables with which the loop asks `model`; its home and its private file are in `folder`."""
    config = folder / "loop.json"
    config.write_text(json.dumps({"mcp_servers": {}}))
    return {
        "HARNESS_HOME": str(folder / "harness-home"),
        "HARNESS_RETRIES": "0",
        "HARNESS_PROVIDER": ANTHROPIC,
        "ANTHROPIC_API_KEY": "sk-mock",
        "ANTHROPIC_API_URL": f"{model.address}/v1/messages",
        "OPENAI_API_KEY": "sk-mock",
        "OPENAI_API_URL": f"{model.address}/v1/chat/completions",
        "SWARM_LOOP_CONFIG": str(config),
        "NO_PROXY": "127.0.0.1",
    }


class Finished(NamedTuple):
    """The end of the loop."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict]:
        return [json.loads(line) for line in self.out.splitlines()]

    def kinds(self) -> list[str]:
        return [event["type"] for event in self.events]


def loop(*words: str, stdin: str = "") -> Finished:
    """`swarm-mcp worker loop` in this process."""
    out, err = io.StringIO(), io.StringIO()
    given = io.StringIO(stdin)
    before = sys.stdin
    try:
        sys.stdin = given
        with redirect_stdout(out), redirect_stderr(err):
            code = main(["loop", *words])
    finally:
        sys.stdin = before
    return Finished(code, out.getvalue(), err.getvalue())


def sessions() -> list[Path]:
    """The folders of all sessions in the home folder, oldest first."""
    folder = Path(os.environ["HARNESS_HOME"]) / "sessions"
    return sorted(folder.iterdir(), key=lambda path: (path / "session.conf").stat().st_mtime_ns)


def written(session: Path) -> list[Message]:
    """A session's messages."""
    return history(str(session / "messages"))


def executable(path: Path, text: str) -> Path:
    """A plugin's file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def tool(folder: Path, name: str, body: str, first: str = "#!/bin/sh") -> Path:
    """Write a tool in shell: `body` is its ``--exec``."""
    shown = json.dumps({"name": name, "description": f"{name}, of a plugin", "input_schema": {"type": "object"}})
    return executable(
        folder / "tools" / name,
        f"{first}\ncase $1 in\n--schema) echo '{shown}' ;;\n--describe) echo {name} ;;\n--exec)\n{body}\n;;\nesac\n",
    )


class _Handler(QuietHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = self.owner.next(body, {name.lower(): value for name, value in self.headers.items()})
        anthropic = self.path.endswith("/messages")
        if isinstance(said, Fail):
            return self._send(said.status, {"type": "error", "error": said.error}, said.headers)
        if not body.get("stream"):
            return self._send(200, (_anthropic if anthropic else _openai)(said, body))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in (_anthropic_events if anthropic else _openai_events)(said, body):
            if callable(event):
                wait_for(event)
                continue
            if isinstance(event, float):
                time.sleep(event)
                continue
            data = event if isinstance(event, str) else json.dumps(event)
            kind = f"event: {event['type']}\n" if anthropic else ""
            self.wfile.write(f"{kind}data: {data}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True

    def _send(self, status: int, body: dict, headers: dict | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {
            "content-type": "application/json",
            "content-length": str(len(data)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


_numbers = iter(range(1, 10**9))


def _anthropic(said: Say, body: dict) -> dict:
    content: list[dict] = []
    if said.thinking:
        content.append({"type": "thinking", "thinking": said.thinking, "signature": "c2lnbmVk"})
    if said.text:
        content.append({"type": "text", "text": said.text})
    for name, given in said.calls:
        content.append({"type": "tool_use", "id": f"toolu_{next(_numbers)}", "name": name, "input": given})
    stop = said.stop or ("tool_use" if said.calls else "end_turn")
    usage = {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3}
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": content,
        "stop_reason": stop, "usage": usage,
    }  # fmt: skip


def _anthropic_events(said: Say | Cut, body: dict) -> Iterator[dict | float]:
    whole = _anthropic(Say(said.text) if isinstance(said, Cut) else said, body)
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    yield {"type": "ping"}
    for index, block in enumerate(whole["content"]):
        part = {"type": "content_block_delta", "index": index}
        if block["type"] == "tool_use":
            yield {"type": "content_block_start", "index": index, "content_block": {**block, "input": {}}}
            text = json.dumps(block["input"])
            for piece in (text[:5], text[5:]):
                yield {**part, "delta": {"type": "input_json_delta", "partial_json": piece}}
        elif block["type"] == "thinking":
            yield {"type": "content_block_start", "index": index, "content_block": {"type": "thinking", "thinking": ""}}
            yield {**part, "delta": {"type": "thinking_delta", "thinking": block["thinking"]}}
            yield {**part, "delta": {"type": "signature_delta", "signature": block["signature"]}}
        else:
            yield {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
            for piece in (block["text"][:3], block["text"][3:]):
                yield {**part, "delta": {"type": "text_delta", "text": piece}}
        yield {"type": "content_block_stop", "index": index}
    if isinstance(said, Cut):
        return
    yield said.pause
    yield {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"]}, "usage": {"output_tokens": 20}}
    yield {"type": "message_stop"}


def _openai(said: Say, body: dict) -> dict:
    message: dict = {"role": "assistant", "content": said.text or None}
    calls = [
        {"id": f"call_{next(_numbers)}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for name, given in said.calls
    ]
    if calls:
        message["tool_calls"] = calls
    stop = said.stop or ("tool_calls" if calls else "stop")
    usage = {"prompt_tokens": 107, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 7}}
    return {"id": "chatcmpl-1", "model": body["model"], "choices": [{"message": message, "finish_reason": stop}],
            "usage": usage}  # fmt: skip


def _openai_events(said: Say | Cut, body: dict) -> Iterator[dict | float | str]:
    whole = _openai(Say(said.text) if isinstance(said, Cut) else said, body)
    message = whole["choices"][0]["message"]

    def chunk(delta: dict, reason: str | None = None) -> dict:
        return {"id": "c", "model": body["model"], "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    text = message["content"] or ""
    for piece in (text[:3], text[3:]):
        yield chunk({"content": piece})
    if isinstance(said, Cut):
        return
    for index, made in enumerate(message.get("tool_calls", ())):
        arguments = made["function"]["arguments"]
        yield chunk({"tool_calls": [{"index": index, **made, "function": {**made["function"], "arguments": ""}}]})
        for piece in (arguments[:4], arguments[4:]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield said.pause
    yield chunk({}, whole["choices"][0]["finish_reason"])
    yield {"id": "c", "model": body["model"], "choices": [], "usage": whole["usage"]}
    yield "[DONE]"
