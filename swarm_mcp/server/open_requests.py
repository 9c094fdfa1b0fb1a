"""What the client has asked and not been answered yet, seen from beside the SDK.

The SDK drops without a word what is no message, and forgets what became of an answer. Here every
line gets an answer, answers to a client's first questions are written down for later servers, and
whoever made an answer learns whether it was delivered.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import mcp_types as types

from swarm_hook_core.json_text import loads_outer
from swarm_mcp.runtimes.transport import CHECK_TOOL
from swarm_mcp.server.handshake_cache import HandshakeCache
from swarm_mcp.server.stdio import MESSAGE_BYTES, Backlog
from swarm_mcp.server.tool import Answer

LONGEST_NUMBER = 4300  # digits of a whole number that Python reads
HALF_CHARACTER = "the request holds text that is not valid UTF-8"
NO_MESSAGE = "this is no JSON-RPC 2.0 message"
TOO_DEEP = "the request nests too deeply to be read"
TOO_LONG = f"a number in the request has more than {LONGEST_NUMBER:,} digits"
MOST_UNWANTED = 1000
NO_ID = "the id of a request is text or a whole number"


class OpenRequests:
    """The requests of one connection, from `admit` to `sent` or `cancelled`.

    `refuse(response)` writes one of our own; `waits(request)` says that a request may stay unanswered
    as long as it likes; `delivered(answer)` and `lost(answer)` are told what became of an answer that
    was announced by `expect`. `backlog` counts what requests take.
    """

    def __init__(
        self,
        handshakes: HandshakeCache,
        answered: list[object],
        refuse: Callable[[dict], None],
        waits: Callable[[types.JSONRPCRequest], bool],
        delivered: Callable[[Answer], None],
        lost: Callable[[Answer], None],
        backlog: Backlog,
    ):
        self._handshakes = handshakes
        self._withheld = [_key(number) for number in answered]
        self._refuse, self._waits = refuse, waits
        self._delivered, self._lost = delivered, lost
        self._backlog = backlog
        self._asked: dict[str, list[tuple[types.JSONRPCRequest, int]]] = {}  # with the bytes that it takes
        self._expected: dict[str, list[Answer]] = {}
        self._waiting: set[str] = set()
        self._ambiguous: set[str] = set()  # ids whose answers may belong to another request of that id
        self._unwanted: dict[str, None] = {}  # ids of cancelled requests whose answers may still come
        self._settled = asyncio.Event()

    # ------------------------------------------------------------ what comes in

    def admit(self, line: str) -> list[str]:
        """The messages that `line` stands for: one, several where it is a batch, none where it is refused."""
        if line.lstrip().startswith("["):
            batch = _parsed(line)
            if isinstance(batch, list) and batch:
                return [text for item in batch for text in self._admit(json.dumps(item))]
        return self._admit(line)

    def _admit(self, line: str) -> list[str]:
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except Exception:
            check = _cut(line, whole=True)
            if check and _is_check(check):
                return self._admit(check)
            cut = _cut(line)
            self._refuse(_error(_parsed(cut)["id"], types.INVALID_PARAMS, _fault(line)) if cut else _refusal(line))
            return []
        if isinstance(message, types.JSONRPCRequest):
            key = _key(message.id)
            self._unwanted.pop(key, None)
            if key in self._asked:
                self._ambiguous.add(key)
            waits = self._waits(message)
            size = 0 if waits else len(line) + MESSAGE_BYTES  # those that wait must not keep others from being read
            self._asked.setdefault(key, []).append((message, size))
            self._backlog.add(size)
            if waits:
                self._waiting.add(key)
        elif isinstance(message, types.JSONRPCNotification):
            if '"id"' in line and _parsed(line).get("id") is not None:
                self._refuse(_error(None, types.INVALID_REQUEST, NO_ID))
                return []
            if message.method == "notifications/cancelled":
                self.cancelled((message.params or {}).get("requestId"))
        return [line]

    # ------------------------------------------------------------ what goes out

    def withheld(self, message: dict) -> bool:
        """Whether this answers a question that the record has answered already."""
        key = _key(message.get("id"))
        if "method" in message or key not in self._withheld:
            return False
        self._withheld.remove(key)
        self._forget(key)
        return True

    def expect(self, request_id: object, answer: Answer) -> None:
        """Note that `answer` is about to be written as the response to this request.

        Where the client has cancelled that in the moment in which the answer was made, it is lost.
        """
        key = _key(request_id)
        if key in self._unwanted:
            del self._unwanted[key]
            self._lost(answer)
        elif answer.on_sent or answer.on_lost:
            self._expected.setdefault(key, []).append(answer)

    def sent(self, message: dict) -> None:
        """A message has been handed to the client."""
        if "method" in message:
            return
        key = _key(message.get("id"))
        request = self._forget(key)
        expected = self._expected.get(key)
        if expected:
            self._delivered(expected.pop(0))
            if not expected:
                del self._expected[key]
        if request is not None and key not in self._ambiguous and isinstance(message.get("result"), dict):
            self._handshakes.learn(request.model_dump(exclude_unset=True), message["result"])

    def cancelled(self, request_id: object) -> None:
        """The client does not want the answer any more. One that is on its way will be ignored."""
        key = _key(request_id)
        if self._forget(key):
            self._ambiguous.add(key)
            if key not in self._expected:
                self._note_unwanted(key)
        for answer in self._expected.pop(key, []):
            self._lost(answer)

    def _note_unwanted(self, key: str) -> None:
        """Remember a cancelled request. Most of these are never answered, so only the newest are kept."""
        while len(self._unwanted) >= MOST_UNWANTED:
            self._unwanted.pop(next(iter(self._unwanted)))
        self._unwanted[key] = None

    async def settled(self) -> None:
        """Return once nothing is left to answer but what waits for something to happen."""
        while self._asked.keys() - self._waiting:
            self._settled.clear()
            await self._settled.wait()

    def _forget(self, key: str) -> types.JSONRPCRequest | None:
        asked = self._asked.get(key)
        if not asked:
            return None
        request, size = asked.pop(0)
        self._backlog.add(-size)
        if not asked:
            del self._asked[key]
            self._waiting.discard(key)
        self._settled.set()
        return request


def _key(request_id: object) -> str:
    """What a request is known by. 7 and "7" are the same, as they are to the SDK in a cancellation."""
    return str(request_id)


def _cut(line: str, whole: bool = False) -> str:
    """A request without what nests too deeply in it; empty where that is not all that is wrong with it.

    With `whole` also without half characters, which clients too replace when they write a file.
    """
    try:
        text = json.dumps(loads_outer(line), ensure_ascii=not whole)
        if whole:
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except Exception:
        return ""
    return text if isinstance(message, types.JSONRPCRequest) else ""


def _fault(line: str) -> str:
    """What is wrong with a line that is a message but for what `_cut` takes out of it."""
    too_long = []
    try:
        json.loads(line, parse_int=lambda digits: too_long.append(digits) if len(digits) > LONGEST_NUMBER else 0)
    except (ValueError, RecursionError):
        return TOO_DEEP
    return TOO_LONG if too_long else TOO_DEEP


def _is_check(line: str) -> bool:
    """Whether a request asks for the check of a write, which looks at the outer levels only."""
    message = _parsed(line)
    return message["method"] == "tools/call" and (message.get("params") or {}).get("name") == CHECK_TOOL


def _refusal(line: str) -> dict:
    """The answer to a line that is no message."""
    message = _parsed(line)
    if message is None:
        return _error(None, types.PARSE_ERROR, "this line is not JSON that can be read")
    number = message.get("id") if isinstance(message, dict) else None
    if number is None and isinstance(message, dict) and "id" in message and "method" in message:
        return _error(None, types.INVALID_REQUEST, NO_ID)
    number = number if isinstance(number, (int, str)) and not isinstance(number, bool) else None
    try:
        json.dumps(message, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        number = None if isinstance(number, str) and not number.isascii() else number
        return _error(number, types.INVALID_PARAMS, HALF_CHARACTER)
    return _error(number, types.INVALID_REQUEST, NO_MESSAGE)


def _error(number: object, code: int, text: str) -> dict:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}


def _parsed(line: str):
    """The value in a line, in which a number of too many digits is None; None where there is none."""
    try:
        return json.loads(line, parse_int=lambda digits: int(digits) if len(digits) <= LONGEST_NUMBER else None)
    except (ValueError, RecursionError):
        return None
