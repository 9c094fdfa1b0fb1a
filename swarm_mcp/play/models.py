"""Scripted model servers on loopback: OpenAI's Responses and Chat Completions, Anthropic's Messages, Google's Gemini.

A test writes a *script*, a list of `Step`s, under a name, and sends the real client the prompt `play(name)`. The server
keeps no state per conversation: each request carries the whole conversation, so the next step follows from the request
alone, namely from the script in the newest user message that names one, and the number of tool results after it.
Resumed, forked, compacted and nested conversations, and repeated requests, need nothing more. A model that decides by
the results of its calls is a `Player` under such a name.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from swarm_mcp.play.dialects import (
    Augment,
    Calls,
    ChatCompletions,
    Dialect,
    GenerateContent,
    Messages,
    Position,
    Responses,
)

GATE_LIMIT = 240.0  # seconds: a test that forgets to open its gate ends instead of hanging
NOTHING_TO_PLAY = "There is nothing to play."
ERRAND = '{"title": "As scripted"}'


# The base of small web servers: on a free port of loopback, silent, in a thread of its own.


class LoopbackServer:
    """A server with a handler that knows this object as its `owner`, until it is closed. `port`: its own."""

    def __init__(self, handler: "type[QuietHandler]") -> None:
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
