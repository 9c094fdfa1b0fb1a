"""Lines: who waits for what, behind whom, and the circles in which sessions wait for each other, or would have."""

from __future__ import annotations

from swarm_mcp.overview.lines import lines
from swarm_mcp.overview.timeline import newest
from swarm_mcp.page.view import Look, Page, View

LATELY_SECONDS, LATELY = 86400, 20  # what is over: of a day, so many


def _make(look: Look) -> Page:
    found = lines(look.store, look.scope, look.people)
    named = [[(one, look.people.called(one)) for one in ring] for ring in found.circles]
    refused, waited = (
        newest(look.store, look.scope, look.people, look.now - LATELY_SECONDS, LATELY, what)
        for what in ("deadlock", "waited")
    )
    return Page("lines.html", "Lines", {
        "lines": found,
        "circles": named,
        "in_circles": {one for ring in found.circles for one in ring},
        "refused": refused,
        "waited": waited,
    })  # fmt: skip


LINES = View("/lines", "Lines", _make)
