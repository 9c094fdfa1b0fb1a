"""A child process that speaks JSON-RPC, a message a line, on its standard streams: MCP servers, Codex's app-server."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import signal
import subprocess
import threading
from typing import Any

from swarm_mcp.errors import ClientFailed
from swarm_mcp.runtimes.json_editor import object_of

ANSWER_SECONDS = 30.0
END_SECONDS = 2.5  # to end by itself, once its standard input is closed; and again, once it has been told
_UNKNOWN_METHOD = {"code": -32601, "message": "not supported"}


class RpcChild:
    """One running child, until `close` or for the time of a ``with`` block. Errors call it `name`.

    Calls may come from several threads.
    """

    def __init__(
        self,
        name: str,
        argv: list[str],
        env: dict[str, str] | None = None,
        cwd: str | None = None,
        seconds: float = ANSWER_SECONDS,
        own_group: bool = True,
    ):
        """Start it. `seconds`: how long one answer may take. `own_group`: with all it starts, it is a process group.

        Raises ClientFailed.
        """
        self._name, self._seconds, self._own_group = name, seconds, own_group
        try:
            self._process = subprocess.Popen(
                argv, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                encoding="utf-8", errors="replace", start_new_session=own_group,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise ClientFailed(f"{name} could not be started: {getattr(error, 'strerror', None) or error}") from error
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any] | None]] = {}  # None: the child has ended
        self._ended = False
        self._writing = threading.Lock()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> RpcChild:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child, and wait for that."""
        process = self._process
        if process.stdin and self._writing.acquire(timeout=END_SECONDS):  # a child that does not read holds a writer up
            with contextlib.suppress(OSError):  # the rest cannot be written any more
                process.stdin.close()
            self._writing.release()
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(OSError):  # it has just gone by itself
                if number and self._own_group:
                    os.killpg(process.pid, number)  # with the children of a launcher
                elif number:
                    process.send_signal(number)
            try:
                process.wait(END_SECONDS)
                break
            except subprocess.TimeoutExpired:  # the next signal is harder
                continue
        self._listener.join(END_SECONDS)

    def call(self, method: str, params: dict[str, Any], seconds: float = 0.0) -> dict[str, Any]:
        """Return the result of one request. Raises ClientFailed. `seconds` 0: as for every answer."""
        seconds = seconds or self._seconds
        number = next(self._numbers)
        answer: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        with self._lock:
            self._waiting[number] = answer
            if self._ended:
                answer.put(None)
        try:
            self._send({"id": number, "method": method, "params": params})
            message = answer.get(timeout=seconds)
        except queue.Empty:
            self.tell("notifications/cancelled", {"requestId": number})
            raise ClientFailed(f"{self._name} did not answer {method} within {seconds:g} s") from None
        finally:
            with self._lock:
                del self._waiting[number]
        if message is None:
            raise ClientFailed(f"{self._name} ended before it answered {method}")
        return result_of(message, self._name, method)

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification. Raises ClientFailed."""
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        try:
            with self._writing:
                assert self._process.stdin
                self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
                self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise ClientFailed(f"{self._name} has ended: {error}") from error

    def _listen(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                self._take(line)
        with self._lock:
            self._ended = True
            for answer in self._waiting.values():
                answer.put(None)

    def _take(self, line: str) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return  # not of the protocol
        if not isinstance(message, dict):
            return
        if "method" in message:
            if "id" in message:  # requests of the server cannot be carried out here
                with contextlib.suppress(ClientFailed):
                    self._send({"id": message["id"], "error": _UNKNOWN_METHOD})
            return
        with self._lock:
            answer = self._waiting.get(message.get("id"))  # type: ignore[arg-type]  # of another type it is no key
        if answer:
            answer.put(message)


def result_of(message: dict[str, Any], name: str, method: str) -> dict[str, Any]:
    """Return the result in the answer that `name` gave to a request. Raises ClientFailed for an error in it."""
    error = message.get("error")
    if error:
        if isinstance(error, dict):
            said = error.get("message")
        else:
            said = error
        raise ClientFailed(f"{name} refused {method}: {str(said)[:300]}")
    result = message.get("result")
    return object_of(result)
