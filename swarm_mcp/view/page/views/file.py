"""A file: its locks and waiters, the answer to a write now, and the history of its locks."""

from __future__ import annotations

import os
from string import ascii_uppercase

from swarm_hook_core.naming import UNNAMED, agent_name
from swarm_mcp.answers.explained import until
from swarm_mcp.answers.incident_words import through
from swarm_mcp.answers.timeline import happening
from swarm_mcp.domain.session import nobody_in
from swarm_mcp.locking.explaining import explanation
from swarm_mcp.locking.lock_history import history
from swarm_mcp.view.overview.cards import word
from swarm_mcp.view.overview.now import near
from swarm_mcp.view.overview.owned import OwnedFile, owned_file
from swarm_mcp.view.page.palette import PERSON, colours
from swarm_mcp.view.page.view import MOST_CHECKOUTS, Look, Page, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EVENTS, EVENTS_READ = 50, 2000  # that are shown; that are looked through for them, each time that something changes


def _make(look: Look) -> Page:
    path, scope = look.asked.get("path"), look.scope
    scopes = look.store.instances.scopes(MOST_CHECKOUTS)
    if not scope and path and not os.path.isabs(path) and len(scopes) == 1:
        (scope,) = scopes
    if not path or not (scope or os.path.isabs(path)):
        return Page("choose_file.html", "A file", {"path": path, "checkouts": [scope] if scope else scopes})
    place = nobody_in(scope or "/", scope)
    folder = scope or _checkout_of(path, scopes)
    why = explanation(look.store, place, path, None, "", look.people.viewer, meets=False, reader_folder=folder)
    scope = scope or _checkout_of(why["file"], scopes)
    after = look.asked.get("after")
    log = history(look.store, place, path, look.people.viewer, EVENTS, after, most_read=EVENTS_READ)
    work = look.work_in(scope)
    owned = owned_file(look.store, look.people, scope, why["file"]) if scope in scopes else None
    found = colours(look.store, scope, [one.session for one in owned.owners] if owned else ())
    shown = {
        "path": why["file"],
        "why": f"swarm-mcp why {word(near(why['file'], scope))}",
        "diff": f"swarm-mcp diff {word(near(why['file'], scope))}",
        "is_pattern": bool(why["pattern"]),
        "scope": scope,
        "held": [_held(look, lock, scope) for lock in why["held"]],
        "waiting": [_waiting(look, one) for one in why["waiting"]],
        "not_shown": why.get("not_shown", {}),
        "write": why["write"],
        "owned": owned,
        "colours": found,
        "tags": _tags(owned, found),
        "edits": [one for one in work.edits if one.path == why["file"]],
        "happened": [(happening(one, look.people, scope), one.get("repeated")) for one in log["events"][::-1]],
        "older": log.get("next", ""),
        "is_older": bool(after),
    }
    return Page("file.html", near(why["file"], scope), shown)


def _tags(owned: OwnedFile | None, found: dict[tuple[str, str], str]) -> dict[str, tuple[str, str]]:
    """Return ``{names of owners: (letter, class of their colour)}`` for the lines of a file."""
    if owned is None:
        return {}
    return {
        one.names: (ascii_uppercase[at % 26], found.get(one.session, PERSON)) for at, one in enumerate(owned.owners)
    }


def _checkout_of(path: str, scopes: list[str]) -> str:
    """Return the innermost of these checkouts that contains a path, or an empty text."""
    return max((one for one in scopes if path.startswith(one.rstrip("/") + "/")), key=len, default="")


def _held(look: Look, lock: dict[str, Any], scope: str) -> dict[str, Any]:
    shown = {**lock, "through": through(lock, lambda path: near(path, scope)), "until": until(lock, look.now)}
    return {**shown, **_who(look, lock, lock["owner_label"])}


def _waiting(look: Look, one: dict[str, Any]) -> dict[str, Any]:
    return {**one, **_who(look, one, one.get("label"))}


def _who(look: Look, one: dict[str, Any], label: str | None) -> dict[str, Any]:
    """Return ``{id, name, agent}`` of a holder or waiter; strangers have no id."""
    if one.get("hidden"):
        return {"id": "", "name": UNNAMED, "agent": ""}
    look.people.learn(one["instance_id"], label)
    name = look.people.called(one["instance_id"])
    return {"id": one["instance_id"], "name": name, "agent": agent_name(one["agent"]) if one.get("agent") else ""}


FILE = View("/file", "", _make, with_work=True)
