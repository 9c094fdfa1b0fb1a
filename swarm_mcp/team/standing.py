"""The state of this machine and its clones in their teams, as ``team status`` shows it."""

from __future__ import annotations

import time

from swarm_hook_core import repository
from swarm_hook_core.untrusted_text import named
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store
from swarm_mcp.team import agent_client
from swarm_mcp.team.freshness import is_fresh
from swarm_mcp.team.memberships import Membership, machine, memberships
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.team.repository_identity import GIVEN, described, identify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def standing() -> dict[str, Any]:
    """Return ``{ok, machine, agent, repositories}``; each of the last ends with the server's ``machines``.

    `ok`: every server was reached, and the copy here is fresh. Asks each server, possibly for seconds.
    """
    joined = memberships()
    if not joined:
        return {"ok": True, "machine": "", "agent": None, "repositories": []}
    agent = agent_client.status()
    with Store() as store:
        known = TeamRows(store).repositories()
    found = []
    for name, server in dict.fromkeys((one.repository, one.server) for one in joined):
        clones = [one for one in joined if (one.repository, one.server) == (name, server)]
        row = known.get(name)
        told = _told(server, name)
        version = 0
        if row is not None:
            version = row.version
        found.append({
            "repository": name,
            "source": clones[0].source,
            "named_by": described(clones[0].source),
            "would_be": _would_be(clones[0]),
            "server": server,
            "work_trees": [top for one in clones for top in one.tops],
            "fresh": row is not None and is_fresh(row),
            "said_at": row.said_at if row is not None else None,
            "state": row.state if row is not None else "",
            "version": version,
            "behind": max(0, told.pop("version", version) - version),
            "only_here": _only_here(agent, server, name),
            **told,
        })  # fmt: skip
    ok = all(one["fresh"] and not one["error"] for one in found)
    return {"ok": ok, "machine": machine(), "agent": agent, "repositories": found}


def _only_here(agent: dict[str, Any] | None, server: str, name: str) -> str:
    """Return a text about messages, tasks and values that the server does not take; empty if it takes all."""
    talks = [talk for talk in (agent or {}).get("servers", []) if talk["server"] == server]
    followed = [one for talk in talks for one in talk["repositories"]]
    facts: dict[str, Any] = next((one for one in followed if one["repository"] == name), {})
    if facts.get("shares") is False:
        return f"messages, tasks and values: the server is older, `swarm-mcp team init {server}` brings it up to date"
    return "; ".join(f"{kind} {named(key)}: {why}" for kind, key, why in facts.get("not_shared", []))


def known_epoch(server: str) -> str:
    """Return the epoch of a server as this machine has known it last; empty where it has not."""
    names = {one.repository for one in memberships() if one.server == server}
    if not names:
        return ""
    with Store() as store:
        epochs = [row.epoch for name, row in TeamRows(store).repositories().items() if name in names]
    return next((epoch for epoch in epochs if epoch), "")


def _told(server: str, name: str) -> dict[str, Any]:
    """Return the server's data about a repository and its machines, and their round trip; else the ``error``."""
    silence: dict[str, Any] = {"error": "", "milliseconds": None, "machines": []}
    own = machine()
    try:
        from swarm_mcp.team.server import TeamServer

        asked = TeamServer(server, own)
        try:
            news = asked.look(name)
            begun = time.monotonic()
            rows = asked.machines(name)
            took = (time.monotonic() - begun) * 1000
        finally:
            asked.close()
    except SwarmError as error:
        return {**silence, "error": str(error)}
    version = 0
    if news:
        version = news["version"]
    shown = [{**row, "is_own": row["machine"] == own, "behind": max(0, version - row["acked"])} for row in rows]
    return {**silence, "milliseconds": took, "version": version, "machines": shown}


def _would_be(one: Membership) -> str:
    """Return the name of a clone's repository for a join now, if that differs."""
    tree = repository.tree_at(one.top)
    if one.source == GIVEN or tree is None:
        return ""
    try:
        now = identify(tree).id
    except SwarmError:  # no name, as outside of a repository
        return ""
    if now != one.repository:
        return now
    return ""
