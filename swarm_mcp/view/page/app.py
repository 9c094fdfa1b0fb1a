"""The page: its addresses, their changes as a stream, the files that they are made of, and its process."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import secrets
import shlex
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple
from urllib.parse import parse_qs, parse_qsl

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from swarm_mcp.answers.people import People
from swarm_mcp.answers.work import journal_marks
from swarm_mcp.domain import onlooker
from swarm_mcp.errors import StoreUnavailable, SwarmError, UsageError
from swarm_mcp.store import Store
from swarm_mcp.view.overview.now import Work
from swarm_mcp.view.page.live import Edited, Live, Looker, Rendered
from swarm_mcp.view.page.rendering import MOST_CHECKOUTS, Asked, Look, Page, View, environment
from swarm_mcp.view.page.views import FILE, KEPT, NOW, QUEUES, SESSION, TASK, TIMELINE, WORK, WORKER, WORKERS_VIEW

# The admission of requests to the page, and the limits on its answers in a browser.
#
# The server listens on loopback, and every program and every web page on this machine can send it requests. A request
# counts only
#
# - under one of the names of loopback (``Host``): a page of the network could have its own name lead here,
# - from no other page (``Origin``): such a page would send the browser's cookies along,
# - with the cookie that a browser gets in exchange for the token in the terminal's address, and
# - if it reads; or if it comes from a form of our own page (``Origin``) with the key of that browser.
#
# No foreign origin, no inline script and no inline style is allowed in a page: a session's text can at most look like
# one.

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # without a referrer no form would name its origin
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
NAMES = ("127.0.0.1", "localhost", "[::1]")
TOKEN, KEY = "token", "key"
DO = "/do"  # the address of forms
LONGEST_FORM = 64 * 1024  # bytes
MOST_BROWSERS = 100
_REFUSAL = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>swarm</title></head><body><main>'
    "<h1>This page is not open to you</h1><p>{why}</p></main></body></html>"
)


class Keys:
    """The keys of the page: a token in the terminal, a token that opens a browser once, and a cookie for each browser.

    The second token stands in the browser's command line, and other users of the machine can read that. Each cookie
    comes with a key for the forms of that browser.
    """

    def __init__(self, port: int):
        self.shown, self.once = (secrets.token_urlsafe(32) for _ in range(2))
        self._forms: dict[bytes, str] = {}  # by the digest of the cookie
        self.hosts = frozenset(f"{name}:{port}" for name in NAMES)
        # Browsers keep cookies by host name without the port: two pages must not share one.
        self.cookie_name = f"swarm-page-{port}"

    def take(self, token: str) -> bool:
        """Return True if `token` opens the page. A browser's token does so once."""
        if self.once and _same(token, self.once):
            self.once = ""
            return True
        return _same(token, self.shown)

    def of_forms(self, cookies: str) -> str:
        """Return the key of the browser's forms if this cookie header has a cookie of ours; else an empty text."""
        try:
            found = SimpleCookie(cookies).get(self.cookie_name)
        except CookieError:  # not ours
            return ""
        return self._forms.get(_digest(found.value), "") if found else ""

    def give_cookie(self, answer: Response) -> None:
        """Have the browser keep a cookie of its own."""
        cookie = secrets.token_urlsafe(32)
        while len(self._forms) >= MOST_BROWSERS:
            del self._forms[next(iter(self._forms))]
        self._forms[_digest(cookie)] = secrets.token_urlsafe(32)
        answer.set_cookie(self.cookie_name, cookie, path="/", httponly=True, samesite="strict")


class Guarded:
    """The application behind `keys`. All its answers get the headers that bind the browser."""

    def __init__(self, app: ASGIApp, keys: Keys):
        self.app = app
        self.keys = keys
        self.live: Live | None = None  # ends the streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def send_bound(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = [(name.lower(), value) for name, value in message.get("headers", ())]
                bound = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*given, *bound]}
            await send(message)

        refusal = self._answer(scope)
        await (refusal or self.app)(scope, receive, send_bound)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer in place of the page; None if the page may be shown."""
        headers = Headers(scope=scope)
        if headers.get("host", "").lower() not in self.keys.hosts:
            return _refused(421, "It is served to this machine alone, under the address that the terminal shows.")
        origin = headers.get("origin", "").lower()
        if origin and origin.removeprefix("http://") not in self.keys.hosts:
            return _refused(403, "Another web page asked for it.")
        if scope["method"] == "POST" and scope["path"] == DO:
            is_own = origin == f"http://{headers['host'].lower()}"
            if not is_own or headers.get("sec-fetch-site", "same-origin") != "same-origin":
                return _refused(403, "It is no form of this page.")
        elif scope["method"] not in ("GET", "HEAD"):
            refusal = _refused(405, "It can only be read.")
            refusal.headers["allow"] = "GET, HEAD"
            return refusal
        token = parse_qs(scope["query_string"].decode("latin-1")).get(TOKEN, [""])[0]
        if scope["path"] == "/" and token:
            if not self.keys.take(token):
                return _refused(403, "This address is of another time. Use the one that the terminal shows.")
            answer = RedirectResponse("/", 303)
            self.keys.give_cookie(answer)
            return answer
        if not self.keys.of_forms(headers.get("cookie", "")):
            return _refused(403, "Open it by the address that the terminal shows.")
        return None


def _refused(status: int, why: str) -> Response:
    return HTMLResponse(_REFUSAL.format(why=why), status)


def _same(left: str, right: str) -> bool:
    """Return True if two secrets are equal, in the same time for any two. It compares digests: secrets may have any
    letters.
    """
    return secrets.compare_digest(_digest(left), _digest(right))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


VIEWS = (NOW, TIMELINE, QUEUES, WORK, WORKERS_VIEW, FILE, KEPT, SESSION, TASK, WORKER)  # in the order of the navigation
STATIC = os.path.join(os.path.dirname(__file__), "static")


def application(
    open_store: Callable[[], Store], keys: Keys, viewer: str = "", own_id: str = "", is_persons: bool = False
) -> Guarded:
    """Return the whole page behind `keys`. `viewer` and `own_id` are the identity and the session of the reader.

    `is_persons`: as of `outcome`.
    """
    looker, templates = Looker(open_store), environment()
    rendered = Rendered(looker)
    live = Live(rendered.tell)
    edited = Edited(open_store, viewer, live.changed)

    async def show(view: View, request: Request) -> Response:
        pairs = parse_qsl(request.url.query, errors="surrogateescape")
        given = dict(pairs)
        asked = Asked(request.url.path, given.pop("scope", ""), given)
        place = f"{request.url.path}?{request.url.query}"
        is_part = request.headers.get("hx-request") == "true"
        work: dict[str, Work | None] = {}
        found: list[Page] = []

        def render(store: Store) -> str:
            look = Look(store, People(store, viewer, own_id), asked, work, store.now())
            page = view.make(look)
            found.append(page)
            frame = {"asked": asked, "views": VIEWS, "view": view, "now": look.now, "title": page.title}
            return templates.get_template(page.template).render(**page.shown, **frame, is_part=is_part)

        try:
            if view.with_work:
                if asked.scope:
                    scopes = [asked.scope]
                else:
                    scopes = await looker.ask(_scopes)
                live.watch_files(place, lambda: [journal_marks(scope) for scope in scopes])
                work = await edited.of(scopes)
            text = await rendered.get(f"{is_part} {place}", render)
            if found and not view.with_work:
                live.watch_files(place, found[0].state)
            return HTMLResponse(text)
        except SwarmError as error:
            if isinstance(error, StoreUnavailable):
                status = 503
            else:
                status = 404
            text = templates.get_template("error.html").render(why=str(error), title="Not found", is_part=is_part,
                                                               asked=asked, views=VIEWS, view=view)  # fmt: skip
            return HTMLResponse(text, status)

    def told(why: str, status: int, asked: Asked) -> Response:
        text = templates.get_template("error.html").render(
            why=why, title="Not done", is_part=False, asked=asked, views=VIEWS, view=NOW
        )
        return HTMLResponse(text, status)

    async def do(request: Request) -> Response:
        """Show a command with its effect; run it for a form with the key of its browser."""
        key, is_form = keys.of_forms(request.headers.get("cookie", "")), request.method == "POST"
        given = dict(parse_qsl(request.url.query, errors="surrogateescape"))
        if is_form:
            given = dict(parse_qsl(await _body(request), errors="surrogateescape"))
            if not _same(given.pop(KEY, ""), key):
                return told("The form is of another time. Go back, and begin anew.", 403, Asked(DO, "", {}))
        asked = Asked(DO, given.get("scope", ""), {})
        try:
            deed = await looker.ask(lambda store: deed_of(given, People(store, viewer, own_id).called))
        except SwarmError as error:
            return told(str(error), 400, asked)
        shown: dict[str, object] = {"done": None, "may": True, "shown": "", "about": []}
        if is_form:
            shown["done"], shown["shown"] = await outcome(deed, is_persons)
            live.changed()
        elif deed.tries:
            shown["may"], shown["shown"] = await outcome(deed, is_persons, "--dry-run")
        if given.get("task"):
            viewed = onlooker(viewer, asked.scope)
            waiting = await looker.ask(lambda store: store.questions.waiting(viewed))
            shown["about"] = [one.question for task, one in waiting if task.id == given["task"]]
        shown.update(deed=deed, given=given, key=key, title=deed.title, asked=asked, views=VIEWS, view=NOW)
        return HTMLResponse(templates.get_template("do.html").render(**shown, is_part=False))

    async def events(_request: Request) -> Response:
        return StreamingResponse(live.stream(), media_type="text/event-stream")

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        # Until a browser has asked, the store is opened and the templates are read.
        warming = asyncio.create_task(
            looker.ask(lambda _store: [*map(templates.get_template, templates.list_templates())])
        )
        yield
        warming.cancel()
        live.close()
        looker.close()
        edited.close()

    def route(view: View) -> Route:
        async def answer(request: Request) -> Response:
            return await show(view, request)

        return Route(view.path, answer)

    routes = [
        *map(route, VIEWS),
        Route(DO, do, methods=["GET", "POST"]),
        Route("/events", events),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    made = Guarded(Starlette(routes=routes, lifespan=lifespan), keys)
    made.live = live
    return made


async def _body(request: Request) -> str:
    """Return the body of a form; what is too long for one is left out."""
    found = b""
    async for part in request.stream():
        if len(found) < LONGEST_FORM:
            found += part
    return found[:LONGEST_FORM].decode("latin-1")


def _scopes(store: Store) -> list[str]:
    return store.instances.scopes(MOST_CHECKOUTS)


# The process: its socket on loopback, the browser that it opens, and its end.

# A web server as a process: its socket, and its end by SIGINT or SIGTERM.

LOOPBACK = "127.0.0.1"
_WAITING = 100  # connections that may wait to be taken
CLIENT_SECONDS = 20.0  # for a request, from the connection or the answer before, and for the next piece of its body


class _Patient(AutoHTTPProtocol):  # type: ignore[valid-type,misc]  # h11's or httptools', whichever is installed
    """A connection that is closed if its client stays silent, or takes nothing. uvicorn itself would wait for ever."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._silent_since = self.loop.time()  # no request is complete, or nothing more of its body has come
        self._last: object = None
        self._unsent = 0  # bytes of an answer that the client had not taken at the last look
        self._look = self.loop.call_later(CLIENT_SECONDS, self._close_half_open)

    def connection_lost(self, exc: Exception | None) -> None:
        self._look.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        has_news = self.cycle is not None and self.cycle.more_body
        if has_news or self.cycle is not self._last:
            self._last, self._silent_since = self.cycle, self.loop.time()

    def _close_half_open(self) -> None:
        now, unsent = self.loop.time(), self.transport.get_write_buffer_size()
        if 0 < self._unsent <= unsent:
            self.transport.abort()
            return
        self._unsent = unsent
        if self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body:
            self._silent_since = now
        elif now - self._silent_since >= CLIENT_SECONDS:
            self.transport.close()
            return
        self._look = self.loop.call_later(max(0.01, self._silent_since + CLIENT_SECONDS - now), self._close_half_open)


class _Server(uvicorn.Server):
    """A server that leaves signals to `serve_until_ended`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listening(port: int, host: str = LOOPBACK) -> socket.socket:
    """Return a socket that listens on this port (0: any that is free). Raises SwarmError where it cannot be had."""
    try:
        family, *_, address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family)
    except (OSError, UnicodeError) as error:
        raise SwarmError(f"no server can listen on {host[:80]}: {error}") from None
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((address[0], port))
        found.listen(_WAITING)  # the caller prints the address before it serves; an early client waits
    except (OSError, OverflowError) as error:
        found.close()
        raise SwarmError(f"port {port} cannot be had: {error}") from None
    return found


async def serve_until_ended(
    app: Any, listens: socket.socket, tell: Callable[[], object], at_end: Callable[[], object] = lambda: None
) -> None:
    """Serve `app` until SIGINT or SIGTERM. Then call `at_end`, and give open requests another second.

    `tell` is called once the signals end the server and nothing else.
    """
    config = uvicorn.Config(
        app, log_level="critical", access_log=False, server_header=False, ws="none", timeout_graceful_shutdown=1,
        http=_Patient,
    )  # fmt: skip
    server = _Server(config)

    def end() -> None:
        server.should_exit = True
        at_end()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):  # the event loop cannot handle signals on Windows
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(end))
    tell()  # only now: a reader of the address may end the server at once
    await server.serve(sockets=[listens])


def serve(
    port: int, opens: bool, say: Callable[[str, int], object], viewer: str, own_id: str, is_persons: bool
) -> None:
    """Serve the page on this port (0: any) until SIGINT or SIGTERM, and `say` its address and port.

    The last three arguments: as of ``application``.
    """
    listens = listening(port)
    port = listens.getsockname()[1]
    keys = Keys(port)
    begin = f"http://{LOOPBACK}:{port}/?{TOKEN}="
    app = application(lambda: Store(read_only=True), keys, viewer, own_id, is_persons)

    def tell() -> None:
        say(begin + keys.shown, port)
        if opens and has_browser():
            # Some browsers come back only when they are closed.
            threading.Thread(target=webbrowser.open, args=(begin + keys.once,), daemon=True).start()

    def end() -> None:
        if app.live is not None:
            app.live.close()

    asyncio.run(serve_until_ended(app, listens, tell, end))


def has_browser() -> bool:
    """Return True if there is a desktop to open a browser on, or a browser in the environment."""
    named = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in named)


# The commands that a person can run from the page: each is shown with its effect, and runs after a second click.


SECONDS = 60.0  # for a command
LONGEST = 20_000  # characters of its output, and bytes of a text in a form
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}")  # of a session, a task, a kept content


class Deed(NamedTuple):
    """A command, as a page asks about it.

    title   the question
    effect  the change that it makes, in a sentence
    argv    the words behind ``swarm-mcp``
    scope   the folder in which it runs
    tries   True if ``--dry-run`` shows the effect first
    text    the label of a text that the person adds; empty for none
    """

    title: str
    effect: str
    argv: list[str]
    scope: str
    tries: bool = False
    text: str = ""

    @property
    def command(self) -> str:
        """Return the command as a person types it."""
        return shlex.join(["swarm-mcp", *(one or "TEXT" for one in self.argv)])


def deed_of(given: Mapping[str, str], name_of: Callable[[str], str]) -> Deed:
    """Return the command that the parameters of a request ask for. Raises UsageError, SwarmError.

    `name_of`: the name of the session with this id.
    """
    kind, scope, text = given.get("deed", ""), given.get("scope", ""), given.get("text", "").strip()
    if not os.path.isabs(scope) or not os.path.isdir(scope):
        raise SwarmError("it names no checkout of this machine")
    path, name = given.get("path", ""), given.get("path", "").removeprefix(scope.rstrip("/") + "/")
    if kind in ("restore", "unlock", "ask") and (not os.path.isabs(path) or "\0" in path):
        raise UsageError("it names no file")

    def named(field: str) -> str:
        if not _NAME.fullmatch(given.get(field, "")):
            raise UsageError(f"it has no {field}")
        return given[field]

    if kind == "undo":
        who = named("session")
        effect = (
            "The lines that this session wrote in its last turn go. Lines of others stay. `undo --undo` takes it back."
        )
        return Deed(f"Undo the last turn of {name_of(who)}?", effect, ["undo", "--turn", "--session", who], scope, True)
    if kind == "restore":
        effect = "The file gets this content. Its present content is kept, and the same list has it then."
        return Deed(f"Restore {name}?", effect, ["restore", "--id", named("id"), "--", path], scope, True)
    if kind == "unlock":
        who = named("session")
        effect = (
            f"The lock of {name_of(who)} ends, and the next session in the queue gets the file. The session is told."
        )
        return Deed(f"Release the lock on {name}?", effect, ["unlock", "--as", who, "--", path], scope)
    if kind == "ask":
        effect = "The holder of the lock gets a message with your reason, and its next hook shows it."
        argv = ["request-lock", *(["--reason", text] if text else []), "--", path]
        return Deed(f"Ask for {name}?", effect, argv, scope, text="Reason")
    if kind == "answer":
        effect = "The worker gets this answer at once, or with its instructions."
        return Deed("Answer the question?", effect, ["task", "answer", named("task"), "--", text], scope, text="Answer")
    raise UsageError("there is no such command")


async def outcome(deed: Deed, is_persons: bool, *more: str) -> tuple[bool, str]:
    """Run the command with `more` options. Return True if it succeeded, and its output.

    `is_persons`: a person has started the page at a terminal, and its commands count as typed there.
    """
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8:backslashreplace"}
    if is_persons:
        environment["SWARM_MCP_ALLOW_SPAWN"] = "1"
    code = f"import sys; sys.path[:] = {sys.path!r}; from swarm_mcp.cli.main import main; sys.exit(main())"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, deed.argv[0], *more, *deed.argv[1:]), cwd=deed.scope,
        env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()
        return False, f"it was ended after {SECONDS:.0f} seconds"
    return process.returncode == 0, output.decode("utf-8", "replace").strip()[:LONGEST]
