"""An MCP server without a transport: a message in, an answer out.

A `Server` is an identity and a table of methods; a `Connection` is one client's state. Nothing here waits or reads: a
method returns its result, or a coroutine for the transport to wait for.
"""

from __future__ import annotations

from swarm_mcp.mcp.protocol import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    ENVELOPE_VERSIONS,
    HANDSHAKE_VERSIONS,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    SERVER_KEY,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    ProtocolError,
    Request,
)
from swarm_mcp.mcp.schema import fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
    from typing import Any

    Notify = Callable[[str, dict[str, Any]], Awaitable[None]]
    Work = Coroutine[Any, Any, "Reply"]
    Method = Callable[["Call"], "dict[str, Any] | Work"]

HANDSHAKE, ENVELOPE = "handshake", "envelope"  # the eras of the protocol; a connection's first request decides
DEFAULT_VERSION = HANDSHAKE_VERSIONS[-1]  # for a client that asks for an unknown version

_TEXT = {"type": "string"}
_ABOUT = {"type": "object", "required": ["name", "version"], "properties": {"name": _TEXT, "version": _TEXT}}
_META = {"type": "object", "properties": {"progressToken": {"type": ["string", "integer"]}}}
_ENVELOPE = {"properties": {CAPABILITIES_KEY: {"type": "object"}, CLIENT_KEY: _ABOUT}}


def _shape(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return {"required": list(required), "properties": {"_meta": _META, **properties}}


_LIST = _shape(cursor=_TEXT)
_URI = _shape("uri", uri=_TEXT)
SHAPES: dict[str, dict[str, Any]] = {
    "initialize": _shape(
        "protocolVersion", "capabilities", "clientInfo",
        protocolVersion=_TEXT, capabilities={"type": "object"}, clientInfo=_ABOUT,
    ),
    "ping": _shape(),
    "server/discover": _shape(),
    "tools/list": _LIST,
    "resources/list": _LIST,
    "resources/templates/list": _LIST,
    "prompts/list": _LIST,
    "tools/call": _shape("name", name=_TEXT, arguments={"type": ["object", "null"]}),
    "prompts/get": _shape("name", name=_TEXT, arguments={"type": ["object", "null"]}),
    "resources/read": _URI,
    "resources/subscribe": _URI,
    "resources/unsubscribe": _URI,
    "subscriptions/listen": _shape(
        "notifications",
        notifications={
            "type": "object",
            "properties": {"resourceSubscriptions": {"type": ["array", "null"], "items": _TEXT}},
        },
    ),
}  # fmt: skip
"""The parameters of each method, as a JSON schema."""

HANDSHAKE_ONLY = {"initialize", "ping", "resources/subscribe", "resources/unsubscribe"}
ENVELOPE_ONLY = {"server/discover", "subscriptions/listen"}
# Since 2026-07-28 these results say for how long they may be kept: for no time.
_CACHEABLE = {
    "server/discover", "tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list",
}  # fmt: skip


class Reply:
    """The result of a method that a transport waits for. Exactly one of `sent` and `lost` is called in the end."""

    def __init__(
        self,
        result: dict[str, Any],
        sent: Callable[[], None] = lambda: None,
        lost: Callable[[], None] = lambda: None,
    ):
        """Take the `result`; `sent` for the moment it was handed to the client, `lost` for a cancelled request."""
        self.result, self.sent, self.lost = result, sent, lost


class Call:
    """A request as its method sees it. `notify(method, params)` sends a notification to the client."""

    def __init__(self, request: Request, notify: Notify | None = None):
        self.request, self.params, self.meta = request, request.params, request.meta
        self._notify = notify

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification, if the transport has a way to the client."""
        if self._notify is not None:
            await self._notify(method, params)


class Server:
    """A server: `info` (name, version), its capabilities, its instructions for models, and its methods.

    `methods` has the methods beside ``initialize``, ``ping`` and ``server/discover``. A method gets a `Call`. It may
    raise ProtocolError. An ``async`` method returns a `Reply`, another one its result.
    """

    def __init__(
        self,
        info: dict[str, str],
        capabilities: dict[str, Any],
        methods: Mapping[str, Method],
        instructions: str = "",
        default_version: str = DEFAULT_VERSION,
    ):
        self.info, self.capabilities, self.default_version = info, capabilities, default_version
        self._about: dict[str, Any] = {"capabilities": capabilities}
        if instructions:
            self._about["instructions"] = instructions
        own: dict[str, Method] = {
            "initialize": self._initialize, "ping": lambda call: {}, "server/discover": self._discover,
        }  # fmt: skip
        self.methods = {**own, **methods}

    def negotiated(self, wanted: str) -> str:
        """Return the protocol version for a client that asks for `wanted` in its handshake."""
        if wanted in HANDSHAKE_VERSIONS:
            return wanted
        return self.default_version

    def _initialize(self, call: Call) -> dict[str, Any]:
        version = self.negotiated(call.params["protocolVersion"])
        return {"protocolVersion": version, "serverInfo": self.info, **self._about}

    def _discover(self, _call: Call) -> dict[str, Any]:
        return {"supportedVersions": list(ENVELOPE_VERSIONS), **self._about}

    def method(self, request: Request, absent: Collection[str] = ENVELOPE_ONLY) -> Method:
        """Return the method of a request. The methods `absent` do not exist in the era of its connection.

        Raises ProtocolError for an unknown method, and for malformed parameters.
        """
        if request.method in absent:
            raise no_method(request.method)
        shape = SHAPES.get(request.method)
        if shape is not None and not fits(request.params, shape):
            raise ProtocolError(INVALID_PARAMS, "Invalid request parameters", "")
        method = self.methods.get(request.method)
        if method is None:
            raise no_method(request.method)
        return method


def no_method(name: str) -> ProtocolError:
    """Return the error for a method that the server does not have."""
    return ProtocolError(METHOD_NOT_FOUND, "Method not found", name)


class Connection:
    """One client's state: its era, and a finished handshake."""

    def __init__(self, server: Server):
        self.server = server
        self._era = ""
        self._greeted = False

    def begin(self, request: Request, notify: Notify | None = None) -> dict[str, Any] | Work:
        """Return the result of a request, or a coroutine for it. Raises ProtocolError.

        Requests have to be begun in the order of their arrival.
        """
        is_enveloped = request.method != "initialize" and VERSION_KEY in request.meta
        if not self._era:
            if is_enveloped:
                self._era = ENVELOPE
            else:
                self._era = HANDSHAKE
        if self._era == ENVELOPE:
            _check_envelope(request)
            method = self.server.method(request, HANDSHAKE_ONLY)
        else:
            if is_enveloped:
                raise ProtocolError(
                    INVALID_REQUEST,
                    "this connection serves the handshake protocol era; requests carrying the 2026-07-28 envelope are"
                    " not accepted on it",
                )
            method = self.server.method(request)
            if request.method == "initialize":
                self._greeted = True
            elif not self._greeted and request.method != "ping":
                raise ProtocolError(INVALID_PARAMS, "Invalid request parameters", "")
        result = method(Call(request, notify))
        if isinstance(result, dict):
            return self.shaped(request, result)
        return result

    def shaped(self, request: Request, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result with the fields of the connection's era."""
        if self._era != ENVELOPE:
            return result
        meta = {SERVER_KEY: self.server.info, **result.get("_meta", {})}
        shaped = {**result, "resultType": "complete", "_meta": meta}
        if request.method in _CACHEABLE:
            shaped.update(ttlMs=0, cacheScope="private")
        return shaped


def _check_envelope(request: Request) -> None:
    """Raise ProtocolError unless a request has the envelope of a version that is served."""
    meta = request.params.get("_meta")
    if request.method == "initialize":
        data: dict[str, Any] = {"supported": list(ENVELOPE_VERSIONS)}
        if isinstance(request.params.get("protocolVersion"), str):
            data["requested"] = request.params["protocolVersion"]
        text = "connection is serving the 2026-07-28 protocol; the initialize handshake is not accepted"
        raise ProtocolError(UNSUPPORTED_VERSION, text, data)
    if not isinstance(meta, dict):
        text = (
            f"params._meta must be an object carrying the required {VERSION_KEY!r} and {CAPABILITIES_KEY!r} envelope"
            " keys"
        )
        raise ProtocolError(INVALID_PARAMS, text)
    missing = [name for name in (VERSION_KEY, CAPABILITIES_KEY) if name not in meta]
    if missing:
        names = ", ".join(missing)
        raise ProtocolError(INVALID_PARAMS, f"params._meta is missing the required envelope key(s): {names}")
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if version not in ENVELOPE_VERSIONS:
        data = {"supported": list(ENVELOPE_VERSIONS), "requested": version}
        raise ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    if not fits(meta, _ENVELOPE):
        raise ProtocolError(INVALID_PARAMS, "Invalid request parameters", "")
