"""The Model Context Protocol over standard input and output, as far as a server of tools needs it.

One JSON-RPC 2.0 message a line (https://modelcontextprotocol.io/specification, revisions 2024-11-05 to
2025-11-25). Written out here because a client starts this server with every session, and Claude Code
waits for it: the official SDK takes a second of processor time to import, this a twentieth.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import TextIO

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603


class RequestError(Exception):
    """A request that gets an error for an answer. `code` as in JSON-RPC."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


class Connection:
    """One client. `methods` maps a method to ``handler(params) -> result``; handlers run one at a time."""

    def __init__(self, about: dict, methods: dict[str, Callable[[dict], dict]], incoming: TextIO, outgoing: TextIO):
        self._about = about
        self._methods = {"initialize": self._initialize, "ping": lambda _params: {}, **methods}
        self._incoming, self._outgoing = incoming, outgoing
        self._writing = threading.Lock()

    def serve(self) -> None:
        """Answer until the input ends or nobody reads the output any more."""
        try:
            for line in self._incoming:
                if line.strip():
                    self._take(line)
        except BrokenPipeError:
            return

    def _take(self, line: str) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return self._send({"id": None, "error": {"code": PARSE_ERROR, "message": "not JSON"}})
        if isinstance(message, list):  # batches, in revision 2025-03-26
            answers = [answer for answer in map(self._answer, message) if answer]
            return self._send(answers) if answers else None
        answer = self._answer(message)
        return self._send(answer) if answer else None

    def _answer(self, message: object) -> dict | None:
        """The response to one message; None for notifications and for responses to us."""
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            if isinstance(message, dict) and ("result" in message or "error" in message):
                return None
            return {"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": "not a request"}}
        if "id" not in message:
            return None
        params = message.get("params")
        try:
            result = self._call(message["method"], params if isinstance(params, dict) else {})
        except RequestError as error:
            return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": error.code, "message": str(error)}}
        except Exception as error:  # noqa: BLE001 - one bad call must not end the session's server
            print(f"swarm-mcp serve: {message['method']}: {type(error).__name__}: {error}", file=sys.stderr)
            return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": INTERNAL_ERROR, "message": str(error)}}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def _call(self, method: str, params: dict) -> dict:
        handler = self._methods.get(method)
        if handler is None:
            # Also what makes a newer client that asks for `server/discover` fall back to `initialize`.
            raise RequestError(METHOD_NOT_FOUND, f"there is no method {method}")
        return handler(params)

    def _initialize(self, params: dict) -> dict:
        wanted = params.get("protocolVersion")
        return {"protocolVersion": wanted if wanted in VERSIONS else VERSIONS[-1], **self._about}

    def _send(self, message: dict | list) -> None:
        if isinstance(message, dict):
            message = {"jsonrpc": "2.0", **message}
        with self._writing:
            self._outgoing.write(json.dumps(message) + "\n")
            self._outgoing.flush()
