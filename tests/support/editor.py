"""An editor: a client of the language server, over pipes."""

import json
import os
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from support.fixtures import SWARM, time_limit

ALL = {
    "textDocument": {"synchronization": {"didSave": True, "willSave": True, "willSaveWaitUntil": True}, "codeLens": {}},
    "workspace": {"codeLens": {"refreshSupport": True}},
}
SECONDS = 30.0


class Editor:
    """One server process, and the messages to and from it. `capabilities` are those of the editor."""

    def __init__(self, folder: Path, capabilities: dict[str, Any] | None = None, **options: Any):
        self.process = subprocess.Popen(
            [*SWARM, "lsp"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )
        self.shown: dict[str, list[dict[str, Any]]] = {}  # uri -> diagnostics, as shown last
        self.messages: list[tuple[int, str]] = []  # (kind, text) of window/showMessage
        self.requests: list[str] = []  # methods of the server's own requests
        self._answers: dict[int, dict[str, Any]] = {}
        self._number, self._unread, self._versions = 0, b"", {}
        self.can = self.ask("initialize", processId=os.getpid(), rootUri=None, capabilities=capabilities or ALL)[
            "capabilities"
        ]
        self.tell("initialized")

    # ---------------------------------------------------------------- files

    def open(self, path: Path, text: str | None = None) -> str:
        """Open a file; its URI."""
        uri = uri_of(path)
        self._versions[uri] = 1
        given = path.read_bytes().decode() if text is None else text
        self.tell("textDocument/didOpen", textDocument={"uri": uri, "languageId": "text", "version": 1, "text": given})
        return uri

    def type(self, uri: str, text: str, where: dict[str, Any] | None = None) -> None:
        """Put `text` at a range, or in the place of all."""
        self._versions[uri] += 1
        change = {"text": text, **({"range": where} if where else {})}
        document = {"uri": uri, "version": self._versions[uri]}
        self.tell("textDocument/didChange", textDocument=document, contentChanges=[change])

    def save(self, uri: str, path: Path, text: str) -> None:
        """Write the file as an editor that asks before it."""
        edits = self.ask("textDocument/willSaveWaitUntil", textDocument={"uri": uri}, reason=1)
        assert not edits
        path.write_text(text)
        self.tell("textDocument/didSave", textDocument={"uri": uri})

    def hints(self, uri: str, is_it: Callable[[list[str]], Any]) -> list[str]:
        """Wait until `is_it` says so of the hints: ``["2-3: words"]``, with lines counted from 1."""
        self.until(lambda: is_it(self._said(uri)), lambda: self._said(uri))
        return self._said(uri)

    def _said(self, uri: str) -> list[str]:
        found = []
        for one in self.shown.get(uri, ()):
            assert (one["severity"], one["source"]) == (4, "swarm")
            first, last = one["range"]["start"]["line"] + 1, one["range"]["end"]["line"] + 1
            found.append(f"{first}-{last}: {one['message']}")
        return found

    # ---------------------------------------------------------------- messages

    def ask(self, method: str, **params: Any) -> Any:
        """Return the result of a request."""
        answer = self.answer(method, params)
        assert "error" not in answer, answer
        return answer["result"]

    def answer(self, method: str, params: Any) -> dict[str, Any]:
        """Return the whole answer to a request."""
        self._number += 1
        number = self._number
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        self.until(lambda: number in self._answers, lambda: f"no answer to {method}")
        return self._answers.pop(number)

    def tell(self, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def send(self, message: object) -> None:
        data = json.dumps(message).encode()
        self.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def until(self, is_so: Callable[[], Any], found: Callable[[], object]) -> None:
        """Read messages until `is_so`; else fail with the text of `found`."""
        end = time.monotonic() + time_limit(SECONDS)
        while not is_so():
            assert time.monotonic() < end, found()
            self._read(0.2)

    def _read(self, seconds: float) -> None:
        assert self.process.stdout is not None
        handle = self.process.stdout.fileno()
        if not select.select([handle], [], [], seconds)[0]:
            return
        data = os.read(handle, 65536)
        assert data, self.process.communicate()[1].decode()
        self._unread += data
        while b"\r\n\r\n" in self._unread:
            head, _, rest = self._unread.partition(b"\r\n\r\n")
            length = int(head.partition(b"Content-Length:")[2].split(b"\r\n")[0])
            if len(rest) < length:
                return
            self._unread = rest[length:]
            self._take(json.loads(rest[:length]))

    def _take(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params")
        if method is None:
            self._answers[message["id"]] = message
        elif "id" in message:
            self.requests.append(method)
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": None})
        elif method == "textDocument/publishDiagnostics":
            self.shown[params["uri"]] = params["diagnostics"]
        elif method == "window/showMessage":
            self.messages.append((params["type"], params["message"]))

    # ---------------------------------------------------------------- the end

    def close(self) -> tuple[int, str]:
        """Leave as the protocol says: the exit code, and the text on standard error."""
        if self.process.poll() is None:
            self.ask("shutdown")
            self.tell("exit")
        return self.ended()

    def ended(self) -> tuple[int, str]:
        _out, err = self.process.communicate(timeout=time_limit(SECONDS))
        return self.process.returncode, err.decode()


def uri_of(path: Path) -> str:
    """Return the URI of a file."""
    return "file://" + quote(str(path))
