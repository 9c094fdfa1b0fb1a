"""A client's first questions, answered from a record of what the SDK answered to them before.

Clients start a server with every session, most sessions never call a tool, and Claude Code waits for the
handshake; the official SDK takes a second of processor time to import. Its answers to the handshake and
the lists are always the same, so the first server of an installation writes them down, and later ones
repeat them and load the SDK when something is asked that it has to think about. Everything that is
answered was answered by the SDK, to a question of the same form; nothing here knows what the answers mean.
"""

from __future__ import annotations

import json
import os
import sys
import time
import zlib

from swarm_hook_core.state import read_private, state_dir, write_private
from swarm_mcp import __version__

METHODS = frozenset(
    {
        "initialize", "server/discover", "tools/list", "resources/list", "resources/templates/list", "prompts/list",
        "ping",
    }
)  # fmt: skip
VERSION_IN_META = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES = ("capabilities", "io.modelcontextprotocol/clientCapabilities")
_CLIENT_INFO = ("clientInfo", "io.modelcontextprotocol/clientInfo")
_ABOUT_CLIENT = {"name", "version"}
HANDSHAKE, MODERN = "handshake", "modern"  # the eras of the protocol, which a connection's first request decides
LONGEST = 4 * 1024 * 1024  # bytes of a record; a larger one is not ours
LONGEST_FORM = 4096  # characters of what an answer is recorded under
MOST = 48  # answers in a record; clients of that many forms are not clients
PREFIX = "opening-"
DAY = 86400
KEPT_DAYS = 30  # without use


class HandshakeCache:
    """The recorded answers, and how far one connection has come in its handshake."""

    def __init__(self):
        self._path = os.path.join(records_folder(), f"{PREFIX}{_fingerprint()}.json")
        self._answers = _read(self._path)
        self._era = ""
        self._version = ""
        self._can_write = True

    def answer(self, message: dict) -> dict | None:
        """The recorded response to a request, with its id; None where there is none."""
        if message.get("jsonrpc") != "2.0" or type(message.get("id")) not in (int, str):
            return None
        era = self._era or _era_of(message)
        key = self._key(message)
        result = self._answers.get(key) if key and era == _era_of(message) else None
        if result is None:
            return None
        self._follow(message, result, era)
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def learn(self, request: dict, result: dict) -> None:
        """Record what the SDK has answered. A record that cannot be written is done without."""
        key = self._key(request)
        self._follow(request, result, self._era or _era_of(request))
        if not key or self._answers.get(key) == result:
            return
        # Other servers may have learnt other answers meanwhile.
        answers = {**_read(self._path), key: result}
        self._answers = answers if len(answers) <= MOST else {key: result}
        try:
            if self._can_write:
                write_private(self._path, json.dumps(self._answers))
                _forget_old_records(self._path)
        except OSError as error:
            self._can_write = False
            print(f"swarm-mcp serve: {self._path}: {error.strerror or error}", file=sys.stderr)

    def _follow(self, message: dict, result: dict, era: str) -> None:
        """Lists are recorded for each protocol version, since they differ."""
        self._era = era
        if message.get("method") == "initialize":
            self._version = str(result.get("protocolVersion") or "")

    def _key(self, message: dict) -> str:
        """What a request is recorded under; empty where its answer may depend on more than the question's form."""
        method, params = message.get("method"), message.get("params", {})
        if method not in METHODS or not isinstance(params, dict):
            return ""
        if method == "initialize":
            version = params.get("protocolVersion")
        elif params.keys() - {"_meta"}:
            return ""  # the next page of a list
        else:
            version = _claimed_version(message) or self._version
        try:
            key = f"{method} {version} {_form(params)}"
        except RecursionError:
            return ""
        return key if len(key) < LONGEST_FORM else ""


def records_folder() -> str:
    """Where the records of all installations are."""
    return os.path.join(state_dir(), "server")


def forget_records() -> bool:
    """Remove every record, and their folder with the last; whether there was any."""
    return bool(_remove_records(lambda name: True))


def _era_of(message: dict) -> str:
    return MODERN if message.get("method") != "initialize" and _claimed_version(message) else HANDSHAKE


def _claimed_version(message: dict) -> object:
    """The protocol version that a request itself names, as those since 2026-07-28 do."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(VERSION_IN_META) if isinstance(meta, dict) else None


def _form(value: object, key: str = "") -> object:
    """What the SDK goes by when it decides whether a question is well-formed: keys and types, no contents.

    What a client can do and says of itself grows with its releases, and changes no answer: of that
    only what every client must say.
    """
    if isinstance(value, dict) and key not in _CAPABILITIES:
        names = _ABOUT_CLIENT & value.keys() if key in _CLIENT_INFO else value
        return {name: _form(value[name], name) for name in sorted(names)}
    if isinstance(value, list):
        return [_form(item) for item in value]
    return type(value).__name__


def _read(path: str) -> dict:
    try:
        answers = json.loads(read_private(path, LONGEST).decode())
        if time.time() - os.stat(path).st_mtime > DAY:
            os.utime(path)  # still in use
    except (OSError, ValueError, RecursionError):
        return {}
    return answers if isinstance(answers, dict) and all(isinstance(a, dict) for a in answers.values()) else {}


def _forget_old_records(mine: str) -> None:
    """Remove what installations that are no more have left."""
    oldest = time.time() - KEPT_DAYS * DAY
    _remove_records(lambda path: path != mine and os.stat(path).st_mtime < oldest)


def _remove_records(wanted) -> int:
    folder, count = records_folder(), 0
    try:
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.startswith(PREFIX) and wanted(path):
                os.remove(path)
                count += 1
        os.rmdir(folder)
    except OSError:
        pass  # gone already, or there is something else in it
    return count


def _fingerprint() -> str:
    """A short text that changes whenever an answer may: with our code, the SDK's, or the interpreter's."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sources = sorted([*_sources(ours, deep=True), *(mark for folder in _sdk_folders() for mark in _sources(folder))])
    text = repr([__version__, sys.version, *sources]).encode("utf-8", "backslashreplace")
    return f"{zlib.crc32(text):08x}{zlib.adler32(text):08x}"  # importing hashlib would take 5 ms


def _sources(folder: str, deep: bool = False):
    """Path, size and time of every module in `folder`, and with `deep` below it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
            elif deep and entry.name != "__pycache__" and entry.is_dir():
                yield from _sources(entry.path, deep)


def _sdk_folders() -> list[str]:
    """Where the SDK is, found without importing it."""
    return [
        os.path.join(folder, name)
        for name in ("mcp", "mcp_types")
        for folder in sys.path
        if os.path.isfile(os.path.join(folder, name, "__init__.py"))
    ][:2]
