"""Now: a card for each session of each checkout, then the files that they hold, wait for and have edited."""

from __future__ import annotations

from swarm_mcp.answers.machines import machines_of
from swarm_mcp.answers.timeline import ALTERED, NOTICED, newest, refusals
from swarm_mcp.view.overview.cards import HOUR, READ, cards
from swarm_mcp.view.overview.now import COUNTED, Now, now
from swarm_mcp.view.page.palette import numbered
from swarm_mcp.view.page.view import MOST_CHECKOUTS, Look, Page, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILES_OF_MANY = 20  # of each checkout, where there are several
REFUSALS, CARDS, CARDS_OF_MANY = 10, 40, 12  # that are shown of one checkout, and of each of several


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
    work = look.work_in(scope)
    if is_one_of_many:
        limits, most = {"limit": FILES_OF_MANY}, CARDS_OF_MANY
    else:
        limits, most = {}, CARDS
    shown: Now = now(look.store, scope, look.people, work.edits, **limits)
    refused = refusals(look.store, scope, look.people, look.now - HOUR, READ)
    made = cards(look.store, shown, look.people, work, refused)
    return {
        "now": shown,
        "cards": made[:most],
        "others": made[most:],
        "urgent": len([card for card in made if card.reasons]),
        "colours": numbered([*((row.runtime, row.client_id) for row in shown.sessions), *work.shares]),
        "machines": machines_of(look.store, scope),
        "is_asked": look.work.get(scope) is None and scope in look.work,
        "held": sum(len(one.holds) for one in shown.files),
        "conflicts": len([one for one in shown.files if one.conflict]),
        "refusals": refused[:REFUSALS],
        "notices": newest(look.store, scope, look.people, look.now - HOUR, REFUSALS, NOTICED, ALTERED),
    }


NOW = View("/", "Now", _make, with_work=True)
