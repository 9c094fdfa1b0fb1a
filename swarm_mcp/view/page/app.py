"""The addresses that there are: pages, their changes as a stream, and the files that they are made of."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from swarm_mcp.answers.edits import journal_marks
from swarm_mcp.answers.people import People
from swarm_mcp.errors import StoreUnavailable, SwarmError
from swarm_mcp.store import Store
from swarm_mcp.view.overview.work import Work
from swarm_mcp.view.page.access import Guarded, Keys
from swarm_mcp.view.page.changes import Edited
from swarm_mcp.view.page.live import Live
from swarm_mcp.view.page.looking import Looker, Rendered
from swarm_mcp.view.page.rendering import environment
from swarm_mcp.view.page.view import MOST_CHECKOUTS, Asked, Look, Page, View
from swarm_mcp.view.page.views.file import FILE
from swarm_mcp.view.page.views.lines import LINES
from swarm_mcp.view.page.views.now import NOW
from swarm_mcp.view.page.views.session import SESSION
from swarm_mcp.view.page.views.timeline import TIMELINE
from swarm_mcp.view.page.views.work import TASK, WORK
from swarm_mcp.view.page.views.workers import WORKER, WORKERS

VIEWS = (NOW, TIMELINE, LINES, WORK, WORKERS, FILE, SESSION, TASK, WORKER)  # in the order of the navigation
STATIC = os.path.join(os.path.dirname(__file__), "static")


def application(open_store: Callable[[], Store], keys: Keys, viewer: str = "", own_id: str = "") -> Guarded:
    """Return the whole page behind `keys`. `viewer` and `own_id` are the identity and the session of the reader."""
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

    routes = [*map(route, VIEWS), Route("/events", events), Mount("/static", StaticFiles(directory=STATIC))]
    made = Guarded(Starlette(routes=routes, lifespan=lifespan), keys)
    made.live = live
    return made


def _scopes(store: Store) -> list[str]:
    return store.instances.scopes(MOST_CHECKOUTS)
