"""Queues: waiters, their obstacles, and the circles of waiters that were found or prevented."""

from __future__ import annotations

from swarm_mcp.answers.timeline import newest
from swarm_mcp.view.overview.lines import lines
from swarm_mcp.view.page.view import Look, Page, View

LATELY_SECONDS, LATELY = 86400, 20  # circles of the last day, and their largest number


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
