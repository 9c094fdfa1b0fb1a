"""One server process over real pipes, and the line-delimited JSON-RPC to it."""

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from support.fixtures import SWARM, Ground, time_limit

ABOUT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": ABOUT}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
# A client between the test and its server. The server is on the test's own pipes. The client prints the server's pid,
# and can be killed.
CLIENT_BETWEEN = [
    sys.executable, "-c",
    f"import subprocess, sys; print(subprocess.Popen({[*SWARM, 'serve']!r}).pid, file=sys.stderr, flush=True);"
    " sys.stdin = None; import time; time.sleep(600)",
]  # fmt: skip


def ask(number, method: str, **params) -> dict:
    """A request as a message."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def call(number, tool: str, **arguments) -> dict:
    """A tool call as a message."""
    return ask(number, "tools/call", name=tool, arguments=arguments)


def lines(*messages) -> bytes:
    """These messages as a client writes them."""
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def one_shot(ground: Ground, data: bytes, program: list[str] = SWARM, **options) -> list[dict]:
    """All that a server says to a client that writes `data` and closes its end, in the order of the ids."""
    done = subprocess.run([*program, "serve"], cwd=ground.repo, input=data, capture_output=True, timeout=60, **options)
    assert done.returncode == 0 and b"Traceback" not in done.stderr, done.stderr.decode()
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return sorted(answers, key=lambda answer: str(answer["id"]))


class Server:
    """One server process and the line-delimited JSON-RPC to it."""

    def __init__(self, ground: Ground, program: list[str] | None = None, **options):
        self.process = subprocess.Popen(
            program or [*SWARM, "serve"], cwd=options.pop("cwd", ground.repo),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, **{"stderr": subprocess.PIPE, **options},
        )  # fmt: skip
        self._number = 0
        self.notifications: list[dict] = []
        self._received = b""
        self.begin_handshake()

    def begin_handshake(self) -> None:
        """Shake hands, as every client does first."""
        self.welcome = self.ask("initialize", ABOUT)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_exception) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def close_input(self) -> None:
        """Close the input, as a client does at its end."""
        self.process.stdin.close()
        self.process.stdin = None

    def send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict | None = None, seconds: float = 60) -> dict:
        """The answer to one request: its result, or its error."""
        return self.answer_to(self.begin(method, params), seconds)

    def begin(self, method: str, params: dict | None = None) -> int:
        """Send a request without waiting; its id."""
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params or {}})
        return self._number

    def answer_to(self, number: int, seconds: float = 60) -> dict:
        """The result of request `number`, or its error; notifications that come first are kept."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            message = self.next_message(end - time.monotonic())
            if message is None:
                break
            if message.get("id") == number:
                return message["result"] if "result" in message else {"error": message["error"]}
            self.notifications.append(message)
        raise AssertionError(f"no answer to request {number}")

    def next_message(self, seconds: float) -> dict | None:
        """Return the next message from the server, or `None` if it does not come in time."""
        end = time.monotonic() + seconds
        while b"\n" not in self._received:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, f"the server ended: {self.process.communicate()[1].decode()}"
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        return json.loads(line)

    def call(self, tool: str, arguments: dict | None = None, **meta) -> dict:
        """The result of a tool call."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments or {}, **({"_meta": meta} if meta else {})})

    def value(self, tool: str, arguments: dict | None = None, **meta) -> dict:
        """The structured content of a tool call, once it is seen to agree with the text."""
        result = self.call(tool, arguments, **meta)
        assert not result.get("isError"), result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]

    def text(self, tool: str, arguments: dict | None = None, **meta) -> str:
        """The text of a tool call that has no structured content."""
        result = self.call(tool, arguments, **meta)
        assert result.get("structuredContent") is None and not result.get("isError"), result
        return result["content"][0]["text"]

    def ended_within(self, seconds: float) -> int:
        """The exit code."""
        return self.process.wait(time_limit(seconds))


def loaded(server: Server) -> set[str]:
    """Return the extension modules that the process has loaded, by their file names up to the first dot (Linux)."""
    files = Path(f"/proc/{server.process.pid}/maps").read_text().split()
    return {Path(file).name.partition(".")[0] for file in files if ".so" in file}
