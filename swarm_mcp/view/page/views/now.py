"""Now: the sessions of each checkout, and the files that they hold, wait for and have edited."""

from __future__ import annotations

from swarm_mcp.answers.machines import machines_of
from swarm_mcp.answers.timeline import refusals
from swarm_mcp.view.overview.now import COUNTED, Now, now
from swarm_mcp.view.page.view import MOST_CHECKOUTS, Look, Page, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILES_OF_MANY = 20  # of each checkout, where there are several
REFUSALS, REFUSALS_SECONDS = 10, 3600


def _make(look: Look) -> Page:
    if look.scope:
        scopes = [look.scope]
    else:
        scopes = look.store.instances.scopes(MOST_CHECKOUTS + 1)
    found = [_checkout(look, scope, len(scopes) > 1) for scope in scopes[:MOST_CHECKOUTS]]
    found = [one for one in found if look.scope or one["now"].sessions or one["now"].files]
    shown = {"checkouts": found, "counted": COUNTED, "is_cut": len(scopes) > MOST_CHECKOUTS, "most": MOST_CHECKOUTS}
    return Page("now.html", "Now", shown)


def _checkout(look: Look, scope: str, is_one_of_many: bool) -> dict[str, Any]:
    edited = look.edited.get(scope)
    if is_one_of_many:
        limits = {"limit": FILES_OF_MANY}
    else:
        limits = {}
    shown: Now = now(look.store, scope, look.people, edited or (), **limits)
    return {
        "now": shown,
        "machines": machines_of(look.store, scope),
        "is_asked": edited is None and scope in look.edited,
        "held": sum(len(one.holds) for one in shown.files),
        "conflicts": len([one for one in shown.files if one.conflict]),
        "refusals": refusals(look.store, scope, look.people, look.now - REFUSALS_SECONDS, REFUSALS),
    }


NOW = View("/", "Now", _make, with_edits=True)
