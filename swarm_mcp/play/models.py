"""Scripted model servers on loopback: OpenAI's Responses and Chat Completions, Anthropic's Messages, Google's Gemini.

A test writes a *script*, a list of `Step`s, under a name, and sends the real client the prompt `play(name)`. The server
keeps no state per conversation: each request carries the whole conversation, so the next step follows from the request
alone, namely from the script in the newest user message that names one, and the number of tool results after it.
Resumed, forked, compacted and nested conversations, and repeated requests, need nothing more. A model that decides by
the results of its calls is a `Player` under such a name.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

# The APIs as the servers speak them: reading a request, rendering an answer.
#
# Wire formats: the streaming events of `POST /v1/responses` and of `POST /v1/chat/completions` (OpenAI API reference),
# of `POST /v1/messages` (Anthropic API reference) and of `POST /v1beta/models/M:streamGenerateContent` (Gemini API
# reference), reduced to the parts that the clients read; and the lines of Auggie's own server.

MARKER = re.compile(r"<<play ([\w.-]+)>>")
Calls = tuple[dict[str, Any], ...]


def _new(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"


class Position(NamedTuple):
    script: str | None
    results: int


def _words(value: Any) -> list[str]:
    """Every text in a message's content, tool results left out (they may quote a prompt)."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [word for item in value for word in _words(item)]
    if isinstance(value, dict) and value.get("type") != "tool_result":
        # Codex hands a sub-agent its task as "encrypted_content", in clear on a custom provider.
        return [word for key in ("text", "encrypted_content", "content") if key in value for word in _words(value[key])]
    return []


def _position(messages: list[tuple[bool, Any, int]]) -> Position:
    """Return the position in the conversation. `messages`: (is it the user's, its content, its tool results)."""
    script, results = None, 0
    for from_user, content, found in messages:
        named = MARKER.findall("\n".join(_words(content))) if from_user else []
        if named:
            script, results = named[-1], 0
        results += found
    return Position(script, results)


class Dialect:
    """The differences between the APIs: reading a request, rendering an answer."""

    def position(self, body: dict[str, Any]) -> Position:
        raise NotImplementedError

    def results(self, body: dict[str, Any]) -> list[str]:
        """The text of every tool result in the conversation, in order."""
        raise NotImplementedError

    def is_errand(self, body: dict[str, Any]) -> bool:
        """Is this a request of the client's own, for a title or a summary, that merely quotes the prompt?"""
        raise NotImplementedError

    def answer(self, calls: Calls, text: str, body: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The whole answer, and the same as a list of stream events (each names its `type`)."""
        raise NotImplementedError

    def wants_stream(self, path: str, body: dict[str, Any]) -> bool:
        """Is the answer to this request wanted as events?"""
        return bool(body.get("stream"))

    def stream(self, events: list[dict[str, Any]]) -> str:
        """The events as server-sent ones."""
        return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


class Responses(Dialect):
    """OpenAI. A call is `{"name", "arguments"[, "namespace"]}` or, free form, `{"name", "input"}`."""

    in_pieces = False  # a text is streamed in two pieces, else it comes whole

    def position(self, body: dict[str, Any]) -> Position:
        return _position(
            [
                (
                    item.get("role") == "user" or item.get("type") == "agent_message",
                    item.get("content"),
                    int(self._is_result(item)),
                )
                for item in body.get("input") or []
            ]
        )

    def results(self, body: dict[str, Any]) -> list[str]:
        return ["\n".join(_words(item.get("output"))) for item in body.get("input") or [] if self._is_result(item)]

    def is_errand(self, body: dict[str, Any]) -> bool:
        # Codex's terminal has a title made in a thread of its own, with all the tools, as JSON.
        wanted = (body.get("text") or {}).get("format") or {}
        return bool(wanted.get("type") == "json_schema")

    @staticmethod
    def _is_result(item: dict[str, Any]) -> bool:
        return str(item.get("type")).endswith("_call_output")

    def answer(self, calls: Calls, text: str, body: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        items: list[dict[str, Any]] = []
        if text:
            part = {"type": "output_text", "text": text, "annotations": []}
            items.append({"type": "message", "id": _new("msg"), "role": "assistant", "content": [part]})
        for call in calls:
            item = {"id": _new("item"), "call_id": _new("call"), **call}
            if "arguments" in call:
                item.update(type="function_call", arguments=json.dumps(call["arguments"]))
            else:
                item["type"] = "custom_tool_call"
            items.append(item)
        response = {
            "id": _new("resp"),
            "object": "response",
            "created_at": int(time.time()),
            "status": "completed",
            "model": body.get("model"),
            "output": items,
            "usage": {
                "input_tokens": 50,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 55,
            },
        }
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
        ]
        for index, item in enumerate(items):
            events.append({"type": "response.output_item.added", "output_index": index, "item": item})
            if self.in_pieces and item["type"] == "message":
                events[-1]["item"] = {**item, "content": []}
                place = {"item_id": item["id"], "output_index": index, "content_index": 0}
                events += [
                    {"type": "response.output_text.delta", **place, "delta": piece} for piece in (text[:4], text[4:])
                ]
            events.append({"type": "response.output_item.done", "output_index": index, "item": item})
        events.append({"type": "response.completed", "response": response})
        return response, events


class Messages(Dialect):
    """Anthropic. A call is `{"name", "input"}`."""

    def position(self, body: dict[str, Any]) -> Position:
        return _position(
            [
                (message.get("role") == "user", message.get("content"), len(self._result_blocks(message)))
                for message in body.get("messages") or []
            ]
        )

    def results(self, body: dict[str, Any]) -> list[str]:
        return [
            "\n".join(_words(block.get("content")))
            for message in body.get("messages") or []
            for block in self._result_blocks(message)
        ]

    def is_errand(self, body: dict[str, Any]) -> bool:
        return not body.get("tools")

    @staticmethod
    def _result_blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
        content = message.get("content")
        if not isinstance(content, list):
            return []
        return [block for block in content if isinstance(block, dict) and block.get("type") == "tool_result"]

    def answer(self, calls: Calls, text: str, body: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        blocks += [{"type": "tool_use", "id": _new("toolu"), **call} for call in calls]
        reason = "tool_use" if calls else "end_turn"
        usage = {"input_tokens": 50, "output_tokens": 5}
        message = {
            "id": _new("msg"),
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": blocks,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": usage,
        }
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
        ]
        for index, block in enumerate(blocks):
            if block["type"] == "text":
                empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                partial = json.dumps(block["input"])
                empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": partial}
            events.append({"type": "content_block_start", "index": index, "content_block": empty})
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
            events.append({"type": "content_block_stop", "index": index})
        delta = {"stop_reason": reason, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": usage})
        events.append({"type": "message_stop"})
        return message, events


class ChatCompletions(Dialect):
    """OpenAI's older API, spoken by most others. A call is `{"name", "input"}` or `{"name", "arguments"}`."""

    def position(self, body: dict[str, Any]) -> Position:
        return _position(
            [
                (message.get("role") == "user", message.get("content"), int(message.get("role") == "tool"))
                for message in body.get("messages") or []
            ]
        )

    def results(self, body: dict[str, Any]) -> list[str]:
        return [
            "\n".join(_words(message.get("content")))
            for message in body.get("messages") or []
            if message.get("role") == "tool"
        ]

    def is_errand(self, body: dict[str, Any]) -> bool:
        return not body.get("tools")

    def answer(self, calls: Calls, text: str, body: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        tool_calls: list[dict[str, Any]] = [
            {
                "id": _new("call"),
                "type": "function",
                "function": {
                    "name": call["name"],
                    "arguments": json.dumps(call["arguments"] if "arguments" in call else call["input"]),
                },
            }
            for call in calls
        ]
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if tool_calls:
            message["tool_calls"] = tool_calls
        reason = "tool_calls" if tool_calls else "stop"
        usage = {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}
        common = {"id": _new("chatcmpl"), "created": int(time.time()), "model": body.get("model")}
        whole = {
            **common,
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": usage,
        }
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": text}] if text else [{"role": "assistant"}]
        for index, call in enumerate(tool_calls):
            function = call["function"]
            middle = len(function["arguments"]) // 2
            deltas.append({"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]})
            for part in (function["arguments"][:middle], function["arguments"][middle:]):
                deltas.append({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        chunk = {**common, "object": "chat.completion.chunk"}
        events = [{**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        events.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        events.append({**chunk, "choices": [], "usage": usage})
        return whole, events

    def stream(self, events: list[dict[str, Any]]) -> str:
        return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


class GenerateContent(Dialect):
    """Google. A call is `{"name", "input"}`; a result is in a message of the user's, as a part of its own."""

    def position(self, body: dict[str, Any]) -> Position:
        return _position(
            [
                (message.get("role") == "user", self._parts(message), len(self._responses(message)))
                for message in body.get("contents") or []
            ]
        )

    def results(self, body: dict[str, Any]) -> list[str]:
        return [
            "\n".join(str(value) for value in (response.get("response") or {}).values())
            for message in body.get("contents") or []
            for response in self._responses(message)
        ]

    def is_errand(self, body: dict[str, Any]) -> bool:
        wanted = body.get("generationConfig") or {}
        return not body.get("tools") or wanted.get("responseMimeType") == "application/json"

    @staticmethod
    def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
        return [part for part in message.get("parts") or [] if isinstance(part, dict)]

    def _responses(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        return [part["functionResponse"] for part in self._parts(message) if "functionResponse" in part]

    def answer(self, calls: Calls, text: str, body: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        parts: list[dict[str, Any]] = [{"text": text}] if text else []
        parts += [{"functionCall": {"name": call["name"], "args": call["input"]}} for call in calls]
        whole = {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 50, "candidatesTokenCount": 5, "totalTokenCount": 55},
            "modelVersion": "scripted",
        }
        return whole, [whole]

    def wants_stream(self, path: str, body: dict[str, Any]) -> bool:
        return path.endswith(":streamGenerateContent")

    def stream(self, events: list[dict[str, Any]]) -> str:
        return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


class Augment(Dialect):
    """Auggie's server. A call is `{"name", "input"}`; every turn is a list of nodes, told apart by their numbers."""

    def position(self, body: dict[str, Any]) -> Position:
        turns = self._turns(body)
        return _position([(True, [node.get("text_node") for node in nodes], len(_results(nodes))) for nodes in turns])

    def results(self, body: dict[str, Any]) -> list[str]:
        return [str(result.get("content")) for nodes in self._turns(body) for result in _results(nodes)]

    def is_errand(self, body: dict[str, Any]) -> bool:
        return not body.get("tool_definitions")

    def answer(self, calls: Calls, text: str, body: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        nodes: list[dict[str, Any]] = [{"id": 0, "type": 0, "content": text}] if text else []
        for number, call in enumerate(calls, 1):
            use = {"tool_use_id": _new("toolu"), "tool_name": call["name"], "input_json": json.dumps(call["input"])}
            nodes.append({"id": number, "type": 5, "content": "", "tool_use": use})
        last: dict[str, Any] = {"text": "", "nodes": [], "stop_reason": 3 if calls else 1}
        return {"text": text, "nodes": nodes}, [{"text": text, "nodes": nodes}, last]

    def wants_stream(self, path: str, body: dict[str, Any]) -> bool:
        return True

    def stream(self, events: list[dict[str, Any]]) -> str:
        return "".join(f"{json.dumps(event)}\n" for event in events)

    @staticmethod
    def _turns(body: dict[str, Any]) -> list[list[dict[str, Any]]]:
        """The nodes of each turn of the client's, oldest first."""
        before = [one.get("request_nodes") or [] for one in body.get("chat_history") or []]
        return [*before, body.get("nodes") or []]


def _results(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [node["tool_result_node"] for node in nodes if node.get("tool_result_node")]


GATE_LIMIT = 240.0  # seconds: a test that forgets to open its gate ends instead of hanging
NOTHING_TO_PLAY = "There is nothing to play."
ERRAND = '{"title": "As scripted"}'


# The base of small web servers: on a free port of loopback, silent, in a thread of its own.


class LoopbackServer:
    """A server with a handler that knows this object as its `owner`, until it is closed. `port`: its own."""

    def __init__(self, handler: type[QuietHandler]) -> None:
        self._http = _Http(("127.0.0.1", 0), handler)
        self._http.owner = self  # type: ignore[attr-defined]
        self.port: int = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def address(self) -> str:
        """Its URL, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


class QuietHandler(BaseHTTPRequestHandler):
    """A handler that keeps connections open and logs nothing."""

    disable_nagle_algorithm = True  # headers and body are two packets: the second would wait 40 ms for the first
    protocol_version = "HTTP/1.1"

    @property
    def owner(self) -> Any:
        """The LoopbackServer that it answers for."""
        return self.server.owner  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore broken connections of killed clients; raise all other errors."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def play(script: str) -> str:
    """The prompt that starts `script`."""
    return f"Please <<play {script}>> now."


class Gate:
    """Holds an answer back: the model server says `reached`, the test says `open`."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._opened = threading.Event()

    def wait_reached(self, seconds: float = 90.0) -> bool:
        return self._reached.wait(seconds)

    def open(self) -> None:
        self._opened.set()

    def pass_through(self) -> None:
        """Called by the server, in the thread of the request."""
        self._reached.set()
        self._opened.wait(GATE_LIMIT)


class FileGate(Gate):
    """Holds an answer back until a file is there, or `seconds` are over."""

    def __init__(self, file: Path, seconds: float) -> None:
        super().__init__()
        self._file, self._seconds = file, seconds

    def pass_through(self) -> None:
        end = time.monotonic() + self._seconds
        while not self._file.exists() and time.monotonic() < end and not self._opened.is_set():
            time.sleep(0.1)


class Step(NamedTuple):
    """One answer of the model: tool calls, or (without any) the closing words of a turn; `error`: a refusal instead."""

    calls: Calls = ()
    text: str = ""
    gate: Gate | None = None
    error: str = ""


class Player:
    """A model that decides by the results of its calls: `moves` yields steps, and is sent the results of each.

    A repeated request gets the same answer again. `body`: the newest request.
    """

    def __init__(self, moves: Generator[Step, list[str], None]) -> None:
        self.body: dict[str, Any] = {}
        self._moves = moves
        self._answers: dict[int, Step] = {}
        self._known = 0

    def answer(self, results: list[str], body: dict[str, Any]) -> Step:
        """The answer to a request with these results of this turn's calls."""
        self.body = body
        count = len(results)
        if count not in self._answers:
            try:
                self._answers[count] = self._moves.send(results[self._known :]) if count else next(self._moves)
            except StopIteration:
                self._answers[count] = Step(text="That is all for now.")
            self._known = count
        return self._answers[count]


class Exchange(NamedTuple):
    """One request that a client made: when, where, and its decoded body."""

    at: float
    path: str
    body: dict[str, Any]


class ModelServer(LoopbackServer):
    """All APIs on one loopback port; `port`, `scripts` and `exchanges` are for the tests."""

    dialects: dict[str, Dialect] = {
        "/responses": Responses(),
        "/messages": Messages(),
        "/chat/completions": ChatCompletions(),
        ":streamGenerateContent": GenerateContent(),
        ":generateContent": GenerateContent(),
        "/chat-stream": Augment(),
    }

    def __init__(self) -> None:
        self.scripts: dict[str, list[Step]] = {}
        self.players: dict[str, Player] = {}  # instead of a script: decides by the results of its calls
        self.words: dict[str, Callable[[], str]] = {}  # the meaning of «name» in a call at the time of the call
        self.listed: list[str] = []  # the models for a client that asks for a list
        self.told: dict[str, Any] = {}  # path -> the answer to any other request of a client to its own server
        self.reached_for: list[str] = []  # the other hosts that a client wanted to reach, through it as a proxy
        self._exchanges: list[Exchange] = []
        self._guard = threading.Lock()
        super().__init__(_Handler)

    def reset(self) -> None:
        """Forget scripts and requests, and open all gates."""
        for step in (step for steps in self.scripts.values() for step in steps):
            if step.gate:
                step.gate.open()
        self.scripts.clear()
        self.players.clear()
        self.words.clear()
        self.reached_for.clear()
        with self._guard:
            self._exchanges.clear()

    def close(self) -> None:
        self.reset()
        super().close()

    def script(self, name: str, *steps: Step | dict[str, Any]) -> None:
        """Store a script; a bare call stands for the step that makes it. The closing words are added."""
        play_list = [step if isinstance(step, Step) else Step(calls=(step,)) for step in steps]
        if not play_list or play_list[-1].calls:
            play_list.append(Step(text=f"The script {name} is over."))
        self.scripts[name] = play_list

    def step(self, position: Position) -> Step:
        """The step that `position` calls for: steps are told apart by the results they will have."""
        ahead = position.results
        for step in self.scripts.get(position.script or "", []):
            if not step.calls or ahead < len(step.calls):
                return step
            ahead -= len(step.calls)
        return Step(text=NOTHING_TO_PLAY)

    def spoken(self, calls: Calls) -> Calls:
        """Return the calls with every «name» replaced by a value known only from earlier results."""
        text = json.dumps(list(calls), ensure_ascii=False)
        for name, look_up in self.words.items():
            if f"«{name}»" in text:
                text = text.replace(f"«{name}»", json.dumps(look_up())[1:-1])
        return tuple(json.loads(text))

    def record(self, exchange: Exchange) -> None:
        with self._guard:
            self._exchanges.append(exchange)

    def quiet_seconds(self, since: float) -> float:
        """Return the time since the last request, or since the time `since` if that is later."""
        with self._guard:
            last = self._exchanges[-1].at if self._exchanges else 0.0
        return time.time() - max(since, last)

    def exchanges(self, suffix: str = "") -> list[Exchange]:
        """Return the requests so far to paths that end in `suffix`, oldest first."""
        with self._guard:
            return [exchange for exchange in self._exchanges if exchange.path.endswith(suffix)]


class _Handler(QuietHandler):
    owner: ModelServer

    def do_CONNECT(self) -> None:
        """Refuse to stand between a client and another host."""
        self.owner.reached_for.append(self.path)
        self.send_error(403)

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_GET(self) -> None:
        models = [{"id": name, "object": "model", "context_length": 100_000} for name in self.owner.listed]
        self._send(json.dumps({"object": "list", "data": models, "models": []}).encode(), "application/json")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            body = {}
        path = self.path.partition("?")[0]
        self.owner.record(Exchange(time.time(), path, body))
        dialect = next((d for suffix, d in ModelServer.dialects.items() if path.endswith(suffix)), None)
        if dialect is None:
            self._send(json.dumps(self.owner.told.get(path, {"input_tokens": 1})).encode(), "application/json")
        else:
            self._answer(dialect, path, body)

    def _answer(self, dialect: Dialect, path: str, body: dict[str, Any]) -> None:
        step = Step(text=ERRAND) if dialect.is_errand(body) else self._step(dialect, body)
        if step.gate:
            step.gate.pass_through()
        if step.error:
            told = {"type": "error", "error": {"type": "invalid_request_error", "message": step.error}}
            return self._send(json.dumps(told).encode(), "application/json", 400)
        whole, events = dialect.answer(self.owner.spoken(step.calls), step.text, body)
        if not dialect.wants_stream(path, body):
            return self._send(json.dumps(whole).encode(), "application/json")
        self._send(dialect.stream(events).encode(), "text/event-stream")

    def _step(self, dialect: Dialect, body: dict[str, Any]) -> Step:
        position = dialect.position(body)
        player = self.owner.players.get(position.script or "")
        if not player:
            return self.owner.step(position)
        results = dialect.results(body)
        return player.answer(results[len(results) - position.results :], body)

    def _send(self, data: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
