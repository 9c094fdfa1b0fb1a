"""Connections with a client that stops in the middle are closed; those being answered are not."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest
from support.altered import Limits

from swarm_mcp.view.page import app as http_process

pytestmark = pytest.mark.usefixtures("usual_signals")

HALVES = {
    "nothing": b"",
    "half a head": b"GET / HTTP/1.1\r\nHost: here\r\nX",
    "half a body": b"POST /read HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\nhalf",
    "half a body that nobody reads": b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\nhalf",
    "half a second request": b"GET / HTTP/1.1\r\nHost: here\r\n\r\nGET / HT",
}
ENOUGH = 60  # seconds after which a connection counts as kept for ever


@pytest.fixture
def kept_signals() -> Iterator[None]:
    """Give this process its handlers back: the server sets its own, for the rest of its process."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_half_open_connections_are_closed_and_streams_are_not(limits: Limits, kept_signals: None) -> None:
    limits(http_process, CLIENT_SECONDS=0.3)
    may_end = asyncio.Event()

    async def app(scope, receive, send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == "/read":
            while (await receive()).get("more_body"):
                pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        await send({"type": "http.response.body", "body": b"ab", "more_body": True})
        if scope["path"] == "/stream":
            await may_end.wait()
        await send({"type": "http.response.body", "body": b"cd"})

    async def play() -> None:
        listens = http_process.listening(0)
        address = listens.getsockname()
        serving = asyncio.ensure_future(http_process.serve_until_ended(app, listens, lambda: None))
        stream, asked = await asyncio.open_connection(*address)
        asked.write(b"GET /stream HTTP/1.1\r\nHost: here\r\n\r\n")
        assert b"200" in await stream.readuntil(b"\r\n\r\n")
        opened = [await asyncio.open_connection(*address) for _ in HALVES]
        for (_, writer), text in zip(opened, HALVES.values(), strict=True):
            writer.write(text)
        for (reader, _), name in zip(opened, HALVES, strict=True):
            try:
                await asyncio.wait_for(reader.read(), ENOUGH)
            except asyncio.TimeoutError:
                raise AssertionError(f"kept open: {name}") from None
        may_end.set()
        assert await asyncio.wait_for(stream.readexactly(4), ENOUGH) == b"abcd"
        os.kill(os.getpid(), signal.SIGINT)
        await serving
        for writer in (asked, *(writer for _, writer in opened)):
            writer.close()

    asyncio.run(play())
