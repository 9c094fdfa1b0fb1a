"""A client's first questions, answered from a record of what the SDK answered to them before.

Clients start a server with every session, most sessions never call a tool, and Claude Code waits for the
handshake; the official SDK takes a second of processor time to import. Its answers to the handshake and
the lists are always the same, so the first server of an installation writes them down, and later ones
repeat them and load the SDK when something is asked that it has to think about. Everything that is
answered was answered by the SDK; nothing here knows what the answers mean.
"""

from __future__ import annotations

import json
import os
import sys

from swarm_hook_core.state import state_dir, write_private
from swarm_mcp import __version__

METHODS = frozenset(
    {
        "initialize", "server/discover", "tools/list", "resources/list", "resources/templates/list", "prompts/list",
        "ping",
    }
)  # fmt: skip
VERSION_IN_META = "io.modelcontextprotocol/protocolVersion"
LONGEST = 4 * 1024 * 1024  # bytes of a record; a larger one is not ours


class Opening:
    """The record, and where a connection stands in it.

    `kind` separates servers that list different tools.
    """

    def __init__(self, kind: str = ""):
        self._path = os.path.join(state_dir(), "server", f"opening-{_fingerprint(kind)}.json")
        self._answers = _read(self._path)
        self._version = ""

    def key(self, message: dict) -> str:
        """What a request is recorded under; empty where its answer may depend on more than the question."""
        method, params = message.get("method"), message.get("params") or {}
        if method not in METHODS or not isinstance(params, dict):
            return ""
        if method == "initialize":
            return f"initialize {params.get('protocolVersion')}"
        if params.keys() - {"_meta"}:
            return ""  # the next page of a list
        meta = params.get("_meta")
        claimed = meta.get(VERSION_IN_META) if isinstance(meta, dict) else None
        return f"{method} {claimed or self._version}"

    def answer(self, message: dict) -> dict | None:
        """The recorded response to a request, with its id; None where there is none."""
        key = self.key(message)
        result = self._answers.get(key) if key else None
        if result is None:
            return None
        self.note(message, result)
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def note(self, message: dict, result: dict) -> None:
        """Follow the handshake: lists are recorded for each protocol version, since they differ."""
        if message.get("method") == "initialize":
            self._version = str(result.get("protocolVersion") or "")

    def learn(self, key: str, result: dict) -> None:
        """Record what the SDK has answered. A record that cannot be written is done without."""
        if self._answers.get(key) == result:
            return
        # Other servers may have learnt other answers meanwhile.
        self._answers = {**_read(self._path), key: result}
        try:
            write_private(self._path, json.dumps(self._answers))
        except OSError as error:
            print(f"swarm-mcp serve: {self._path}: {error.strerror}", file=sys.stderr)


def _read(path: str) -> dict:
    try:
        with open(path, encoding="utf-8") as file:
            answers = json.loads(file.read(LONGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return answers if isinstance(answers, dict) and all(isinstance(a, dict) for a in answers.values()) else {}


def _fingerprint(kind: str) -> str:
    """A short text that changes whenever an answer may: with our code, the SDK's, or the interpreter's."""
    from hashlib import blake2b

    here = os.path.dirname(os.path.abspath(__file__))
    folders = [here, os.path.join(here, "tools"), *_sdk_folders()]
    marks: list[object] = [__version__, sys.version, kind]
    for folder in folders:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.name.endswith(".py")]
        marks += [(entry.path, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in sorted(found, key=_path)]
    return blake2b(repr(marks).encode(), digest_size=8).hexdigest()


def _path(entry) -> str:
    return entry.path


def _sdk_folders() -> list[str]:
    """Where the SDK is, found without importing it."""
    return [
        os.path.join(folder, name)
        for name in ("mcp", "mcp_types")
        for folder in sys.path
        if os.path.isfile(os.path.join(folder, name, "__init__.py"))
    ][:2]
