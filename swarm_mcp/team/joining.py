"""Joining and leaving of a team. Leaving undoes all that joining did."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from swarm_hook_core import repository
from swarm_hook_core.repository import Tree
from swarm_mcp.errors import SwarmError
from swarm_mcp.locking.logical_locks import logical_of, set_logical
from swarm_mcp.store import Store
from swarm_mcp.team import agent_client, memberships
from swarm_mcp.team.freshness import wait_until_fresh
from swarm_mcp.team.memberships import Membership
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.team.repository_identity import GIVEN, RepositoryIdentity, checked, identify

FIRST_SECONDS = 15.0  # for all that is held elsewhere to come over
LEAVE_SECONDS = 10.0
LOOK_SECONDS = 0.2


class Joined(NamedTuple):
    """The result of joining: the membership, and `is_new`."""

    membership: Membership
    is_new: bool


def tree_in(folder: str) -> Tree:
    """Return the work tree around `folder`. Raises SwarmError outside of any."""
    found = repository.tree_over(os.path.realpath(folder), is_real=True)
    if found is None:
        raise SwarmError(f"{folder} is not in a git repository")
    return found


def join(tree: Tree, server: str, given: str = "") -> Joined:
    """Let the clone of work tree `tree` share its locks over `server` (a ``checked_server``).

    `given`: a person's name for its repository. The server is asked first: nothing is recorded about one that is
    unreachable or denies access. Raises SwarmError.
    """
    if given:
        identity = RepositoryIdentity(checked(given), GIVEN)
    else:
        identity = identify(tree)
    known = memberships.membership_of(tree)
    if known is not None and (known.server, known.repository) != (server, identity.id):
        raise SwarmError(
            f"this clone has joined {known.server} as {known.repository}: `swarm-mcp team leave` comes first"
        )
    _ask(server, identity.id)
    if known is not None:
        return Joined(known, False)
    before = logical_of(tree)
    sets = before is None or not repository.opted_in(tree)
    membership = Membership(
        tree.common, tree.top, identity.id, identity.source, server, int(time.time()), sets, before if sets else None
    )
    memberships.remember(membership)  # first: after any interruption, leaving undoes it
    if sets:
        set_logical(tree.common, "true")
    return Joined(membership, True)


def awaited(membership: Membership, seconds: float = FIRST_SECONDS) -> str:
    """Wait until the locks of other machines are known here. Returns the obstacle, empty for none."""
    with Store() as store:
        if wait_until_fresh(store, membership.repository, seconds):
            return ""
    if agent_client.status() is None:
        return "the team agent does not start: `swarm-mcp team agent` in a terminal says why"
    return f"nothing was heard of the server in {seconds:.0f} s; `swarm-mcp team status` says more"


def leave(membership: Membership) -> str:
    """Let a clone leave: nothing that joining has made or set is left.

    Returns the reason if the server could not be told, else an empty text. Raises SwarmError.
    """
    tops = membership.tops
    if membership.set_logical and membership.is_there:
        tree = Tree(membership.top, membership.common, membership.common)
        if logical_of(tree) == "true":  # otherwise a person has changed the setting since
            set_logical(membership.common, membership.logical)
    # The obstacle between the team agent and a server; empty without one
    server = membership.server
    told = agent_client.status()
    if told is None:
        unheard = "no team agent was running"
    else:
        of_server = [one for one in told.get("servers", []) if one["server"] == server]
        unheard = next((one["error"] for one in of_server if one["state"] != "following"), "")
    memberships.forget(membership)
    agent_client.poke()
    with Store() as store, store.changes() as changes:
        end = time.monotonic() + LEAVE_SECONDS
        while set(tops) & TeamRows(store).trees().keys():
            if time.monotonic() >= end:  # there is no agent, and none starts
                rows = TeamRows(store)
                with rows.writing():
                    rows.leave(tops)
                    rows.set_trees({top: name for top, name in rows.trees().items() if top not in tops})
                break
            changes.wait(LOOK_SECONDS)
            store.refresh()
    return unheard


def _ask(server: str, repository_id: str) -> None:
    """Ask the server for the repository once. Raises SwarmError: it cannot be reached, or does not let us in."""
    from swarm_mcp.team.server import TeamServer

    asked = TeamServer(server, memberships.machine())
    try:
        asked.machines(repository_id)
    finally:
        asked.close()
