"""The freshness of this machine's copy of a team's locks, for verbs; hooks have ``swarm_hook_core.team``."""

from __future__ import annotations

import time

from swarm_hook_core import clock, repository
from swarm_hook_core.process import host_id
from swarm_hook_core.wording import duration
from swarm_mcp.store import Store
from swarm_mcp.team import agent_client
from swarm_mcp.team.parts import TeamRows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm_mcp.store import Store
    from swarm_mcp.team.store_rows import TeamRepository

ASK_SECONDS = 2.0
LOOK_SECONDS = 0.2


def is_fresh(found: TeamRepository) -> bool:
    """Return True if every lock that counts elsewhere is known here."""
    if found.fresh_until is None or found.booted != clock.boot(host_id()):
        return False
    return found.fresh_until >= clock.now()


def known_here(store: Store, folder: str) -> dict[str, Any] | None:
    """Return ``{repository, fresh, said_at}`` of the work tree around `folder`; None outside of a team.

    `said_at`: Unix seconds of the server's last word.
    """
    tree = repository.tree_over(folder)
    if tree is not None:
        name = TeamRows(store).trees().get(tree.top)
    else:
        name = None
    if name is None:
        return None
    found = TeamRows(store).repositories().get(name)
    return {"repository": name, "fresh": found is not None and is_fresh(found), "said_at": found and found.said_at}


def repository_name(store: Store, scope: str) -> str | None:
    """Return the team's name for the repository of the work tree `scope`, or None."""
    return TeamRows(store).trees().get(scope)


def unheard_for(said_at: int | None) -> str:
    """Return for how long a server was not heard of, in words."""
    if said_at:
        return f"for {duration(time.time() - said_at)}"
    return "since this clone has joined"


def asked(folder: str, seconds: float = ASK_SECONDS) -> str:
    """Bring the locks in the work tree around `folder` up to date.

    Returns a text for people if that fails within `seconds`; empty for success, and outside of teams.
    """
    with Store(read_only=True) as store:
        known = known_here(store, folder)
        if known is None or wait_until_fresh(store, known["repository"], seconds):
            return ""
    silence = unheard_for(known["said_at"])
    return f"the team's server was not heard of {silence}: locks of other machines since then are unknown here"


def wait_until_fresh(store: Store, name: str, seconds: float) -> bool:
    """Wait until the copy of the repository called `name` is fresh, for at most `seconds`. Returns True if it is."""
    end = time.monotonic() + seconds
    with store.changes() as changes:
        is_poked = False
        while True:
            found = TeamRows(store).repositories().get(name)
            if found is not None and is_fresh(found):
                return True
            if not is_poked:
                agent_client.poke()
                is_poked = True
            left = end - time.monotonic()
            if left <= 0:
                return False
            changes.wait(min(left, LOOK_SECONDS))
            store.refresh()
