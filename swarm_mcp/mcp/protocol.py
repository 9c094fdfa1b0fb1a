"""JSON-RPC 2.0 messages as MCP uses them, and a validator for the JSON Schema that tools use.

Two eras of the protocol exist. Until 2025-11-25 a client opens a connection with ``initialize``, and both sides agree
on a version. Since 2026-07-28 there is no handshake: each request names its version in an envelope, ``params._meta``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from swarm_hook_core.json_text import loads_outer

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ENVELOPE_VERSIONS = ("2026-07-28",)
CANCELLED = "notifications/cancelled"
RESOURCE_UPDATED = "notifications/resources/updated"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
INTERNAL_ERROR, CONNECTION_CLOSED, UNSUPPORTED_VERSION = -32603, -32000, -32022

DEEPEST = 200  # levels of nesting in a message
LONGEST_NUMBER = 4300  # digits of a whole number that Python reads
NOT_JSON = "this line is not JSON that can be read"
NO_MESSAGE = "this is no JSON-RPC 2.0 message"
NO_ID = "the id of a request is text or a whole number"
HALF_CHARACTER = "the request holds text that is not valid UTF-8"
TOO_DEEP = "the request nests too deeply to be read"
TOO_LONG = f"a number in the request has more than {LONGEST_NUMBER:,} digits"


class ProtocolError(Exception):
    """An error answer: a JSON-RPC code, a sentence, and optional data."""

    def __init__(self, code: int, message: str, data: object = None):
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    def answer(self, number: object) -> dict[str, Any]:
        """Return the response to the request with this id; the id is `None` if it is unknown."""
        error = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return {"jsonrpc": "2.0", "id": number, "error": error}


class Request:
    """A request. `meta` is its ``params._meta``, empty where that is missing or no object."""

    def __init__(self, number: int | str, method: str, params: dict[str, Any] | None):
        self.number, self.method, self.params = number, method, params or {}
        meta = self.params.get("_meta")
        self.meta: dict[str, Any] = {}
        if isinstance(meta, dict):
            self.meta = meta

    def answer(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the response with this result."""
        return {"jsonrpc": "2.0", "id": self.number, "result": result}


class Notification:
    """A message without an answer."""

    def __init__(self, method: str, params: dict[str, Any] | None):
        self.method, self.params = method, params or {}


class Refusal:
    """The error answer to a text that is no message."""

    def __init__(self, error: ProtocolError, number: object = None):
        self.answer = error.answer(number)


Message = Request | Notification | Refusal


def key_of(number: object) -> str:
    """Return the key of a request's id. Clients may cancel request 7 as "7"."""
    return str(number)


def messages_in(line: str) -> list[Message]:
    """Return the messages in a line: one, or those of a batch. Answers to the server are left out.

    A request with text that is not UTF-8, or with deep nesting, is refused.
    """
    try:
        value = _read(line)
    except ProtocolError as error:
        return [Refusal(error, _number_in(line, error))]
    items = [value]
    if isinstance(value, list) and value:
        items = value
    found = (_message(item) for item in items)
    return [message for message in found if message is not None]


def _read(line: str) -> Any:
    """Return the JSON value of a line. Raises ProtocolError."""
    try:
        value = json.loads(line)
    except RecursionError:
        raise ProtocolError(INVALID_PARAMS, TOO_DEEP) from None
    except ValueError:
        raise _fault(line) from None
    if line.count("[") + line.count("{") > DEEPEST and _nests_deeper(value, DEEPEST):
        raise ProtocolError(INVALID_PARAMS, TOO_DEEP)
    if not _is_utf8(line) or ("\\u" in line and not _is_utf8(json.dumps(value, ensure_ascii=False))):
        raise ProtocolError(INVALID_PARAMS, HALF_CHARACTER)
    return value


def _fault(line: str) -> ProtocolError:
    """Return the error of a line that ``json`` refuses: a number with too many digits, or no JSON at all."""
    try:
        value = json.loads(line, parse_int=lambda digits: None)
    except (ValueError, RecursionError):  # no JSON, however its numbers are read
        return ProtocolError(PARSE_ERROR, NOT_JSON)
    if isinstance(value, dict) and "id" in value and value["id"] is None and "method" in value:
        short = json.loads(line, parse_int=_short)
        if short["id"] is None:
            return ProtocolError(INVALID_REQUEST, NO_ID)
    return ProtocolError(INVALID_PARAMS, TOO_LONG)


def _short(digits: str) -> int | None:
    if len(digits) > LONGEST_NUMBER:
        return None
    return int(digits)


def _number_in(line: str, error: ProtocolError) -> object:
    """Return the id of a request that cannot be read as a whole, or `None`."""
    if error.code == PARSE_ERROR:
        return None
    try:
        value = json.loads(line, parse_int=_short)
    except RecursionError:
        try:
            value = loads_outer(line)
        except (ValueError, RecursionError):
            value = None  # no JSON: the caller has refused the line already
    except ValueError:  # no JSON
        return None
    if isinstance(value, dict):
        number = value.get("id")
    else:
        number = None
    if not is_number(number) or not _is_utf8(str(number)):
        return None
    return number


def _is_utf8(text: str) -> bool:
    """Return False for a text with half characters, such as bytes that were no UTF-8."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half a character
        return False
    return True


def _nests_deeper(value: object, levels: int) -> bool:
    level = [value]
    for _ in range(levels):
        inner: list[object] = []
        for one in level:
            if isinstance(one, dict):
                inner += one.values()
            elif isinstance(one, list):
                inner += one
        level = [one for one in inner if isinstance(one, (dict, list))]
        if not level:
            return False
    return True


def _message(value: object) -> Message | None:
    """Return the message in a JSON value, or `None` for an answer to the server."""
    if not isinstance(value, dict):
        return Refusal(ProtocolError(INVALID_REQUEST, NO_MESSAGE))
    number, method, params = value.get("id"), value.get("method"), value.get("params")
    if is_number(number):
        known = number
    else:
        known = None
    is_message = value.get("jsonrpc") == "2.0" and (params is None or isinstance(params, dict))
    if is_message and isinstance(method, str):
        if known is not None:
            return Request(known, method, params)
        if number is not None:
            return Refusal(ProtocolError(INVALID_REQUEST, NO_ID))
        return Notification(method, params)
    if is_message and "method" not in value and _is_answer(value, known):
        return None
    if number is None and "id" in value and "method" in value:
        return Refusal(ProtocolError(INVALID_REQUEST, NO_ID))
    return Refusal(ProtocolError(INVALID_REQUEST, NO_MESSAGE), known)


def _is_answer(value: dict[str, Any], number: object) -> bool:
    error = value.get("error")
    if isinstance(value.get("result"), dict):
        return number is not None
    return isinstance(error, dict) and type(error.get("code")) is int and isinstance(error.get("message"), str)


def is_number(number: object) -> bool:
    """Return True if a value can be the id of a request: text, or a whole number."""
    return isinstance(number, (int, str)) and not isinstance(number, bool)


# A validator for the part of JSON Schema (draft 2020-12) that tools use; its words are those of ``jsonschema``.
#
# Importing ``jsonschema`` takes longer than everything else a tool's first call does.
#
# Keywords: type, enum, const, minimum, exclusiveMinimum, maximum, maxLength, minItems, maxItems, items, properties,
# required, additionalProperties, anyOf. Others, such as description and default, do not restrict a value.

Schema = dict[str, Any]
Path = tuple[str | int, ...]


class Mismatch:
    """One difference between a value and a schema: `path` leads to the value, `keyword` is the broken rule."""

    def __init__(self, path: Path, keyword: str, message: str):
        self.path, self.keyword, self.message = path, keyword, message

    def place(self) -> str:
        """Return the path as text, such as ``files[1].name``; empty for the whole value."""
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return "".join(steps).lstrip(".")


def first_mismatch(value: object, schema: Schema) -> Mismatch | None:
    """Return the outermost difference, or `None` if the value fits the schema."""
    return min(mismatches(value, schema), key=lambda one: len(one.path), default=None)


def fits(value: object, schema: Schema) -> bool:
    """Return True if a value fits a schema."""
    return next(mismatches(value, schema), None) is None


def mismatches(value: object, schema: Schema, path: Path = ()) -> Iterator[Mismatch]:
    """Yield all differences, in the order of the schema's keywords."""
    for keyword, rule in schema.items():
        check = _CHECKS.get(keyword)
        if check is None:
            continue
        message = check(value, rule)
        if message:
            yield Mismatch(path, keyword, message)
    if isinstance(value, dict):
        yield from _in_object(value, schema, path)
    elif isinstance(value, list) and "items" in schema:
        for place, item in enumerate(value):
            yield from mismatches(item, schema["items"], (*path, place))


def _in_object(value: dict[str, Any], schema: Schema, path: Path) -> Iterator[Mismatch]:
    properties, more = schema.get("properties", {}), schema.get("additionalProperties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield Mismatch(path, "required", f"{name!r} is a required property")
    extra = [name for name in value if name not in properties]
    if more is False and extra:
        if len(extra) == 1:
            verb = "was"
        else:
            verb = "were"
        names = ", ".join(map(repr, sorted(extra)))
        message = f"Additional properties are not allowed ({names} {verb} unexpected)"
        yield Mismatch(path, "additionalProperties", message)
    elif isinstance(more, dict):
        for name in extra:
            yield from mismatches(value[name], more, (*path, name))
    for name, inner in properties.items():
        if name in value:
            yield from mismatches(value[name], inner, (*path, name))


_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str, "object": dict, "array": list, "boolean": bool, "null": type(None), "number": (int, float),
}  # fmt: skip


def _is_of(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, _TYPES[kind])


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _equal(one: object, other: object) -> bool:
    """Return True if two JSON values are equal. In Python alone 1 equals true."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _type(value: object, kinds: str | list[str]) -> str:
    if isinstance(kinds, str):
        kinds = [kinds]
    if any(_is_of(value, kind) for kind in kinds):
        return ""
    return f"{value!r} is not of type {', '.join(map(repr, kinds))}"


def _enum(value: object, allowed: list[object]) -> str:
    if any(_equal(value, one) for one in allowed):
        return ""
    return f"{value!r} is not one of {allowed!r}"


def _const(value: object, wanted: object) -> str:
    if _equal(value, wanted):
        return ""
    return f"{wanted!r} was expected"


def _minimum(value: Any, least: float) -> str:
    if _is_number(value) and value < least:
        return f"{value!r} is less than the minimum of {least!r}"
    return ""


def _exclusive_minimum(value: Any, bound: float) -> str:
    wrong = _is_number(value) and value <= bound
    if wrong:
        return f"{value!r} is less than or equal to the minimum of {bound!r}"
    return ""


def _maximum(value: Any, most: float) -> str:
    if _is_number(value) and value > most:
        return f"{value!r} is greater than the maximum of {most!r}"
    return ""


def _max_length(value: object, most: int) -> str:
    if isinstance(value, str) and len(value) > most:
        return f"{value!r} is too long"
    return ""


def _min_items(value: object, least: int) -> str:
    if not isinstance(value, list) or len(value) >= least:
        return ""
    if least == 1:
        return f"{value!r} should be non-empty"
    return f"{value!r} is too short"


def _max_items(value: object, most: int) -> str:
    if isinstance(value, list) and len(value) > most:
        return f"{value!r} is too long"
    return ""


def _any_of(value: object, schemas: list[Schema]) -> str:
    if any(fits(value, schema) for schema in schemas):
        return ""
    return f"{value!r} is not valid under any of the given schemas"


_CHECKS: dict[str, Callable[[Any, Any], str]] = {
    "type": _type, "enum": _enum, "const": _const, "minimum": _minimum, "exclusiveMinimum": _exclusive_minimum,
    "maximum": _maximum, "maxLength": _max_length, "minItems": _min_items, "maxItems": _max_items, "anyOf": _any_of,
}  # fmt: skip
