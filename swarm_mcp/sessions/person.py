"""Commands that weaken the protection of others are for persons, and refused to agents."""

from __future__ import annotations

import os
from itertools import islice

from swarm_hook_core.state import DEFAULT_STORE, store_path
from swarm_mcp.errors import PersonOnly, SwarmError
from swarm_mcp.folders import current_scope
from swarm_mcp.sessions.acting import is_person
from swarm_mcp.sessions.agents_shell import NO_AGENTS, agents_around, is_marked, note_attempt
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_SCOPES, MOST_SESSIONS = 100, 100  # that are looked through for an agent at work
# Where settings and state usually lie, from a home folder.
USUAL = (".config/swarm-mcp", ".local/state/swarm-mcp", "Library/Application Support/swarm-mcp")


def require_person(deed: str, effect: str, touches: str = "") -> None:
    """Let a person go on with `deed`, a command with this `effect` on others. Raises PersonOnly.

    An agent is known by the variables of its shell and by the processes above, as the store knows its client. A command
    can name another store for itself, so the one at the usual place is asked as well, unless `touches`, the changed
    folder, lies elsewhere. Without `touches` it changes files of other people (clients', a repository's).

    Without a terminal a caller does not count as a person while agents are at work, unless the environment is to be
    trusted like a terminal (``SWARM_MCP_ALLOW_SPAWN``).
    """
    is_agent, at_work = is_marked(), False
    for path in _stores(touches):
        try:
            with Store(path) as store:
                is_agent = is_agent or bool(agents_around(store))
                if is_agent:
                    note_attempt(store, current_scope(), deed)
                    break
                at_work = at_work or (not is_person(store) and _is_agent_at_work(store))
        except SwarmError:
            continue  # a store that cannot be read knows no agent; the shell's variables still count
    if is_agent:
        raise PersonOnly(
            f"`{deed}` {effect}: an agent may not do that. A person can, in a terminal of their own, outside of any"
            " agent's shell"
        )
    if at_work:
        raise PersonOnly(
            f"`{deed}` {effect}, and agents are at work: only a person may do that, at a terminal (a script of yours"
            " may set SWARM_MCP_ALLOW_SPAWN=1)"
        )


def _stores(touches: str) -> Iterator[str]:
    """The stores that may know an agent around this process, as far as they are there."""
    found = [store_path()]
    homes = [os.path.expanduser("~"), *([_home_of_user()] if touches else [])]
    real = ""
    if touches:
        real = os.path.realpath(touches)
    for home in homes:
        places = [os.path.realpath(os.path.join(home, place)) for place in USUAL]
        if not touches or any(real == place or real.startswith(place + os.sep) for place in places):
            found.append(os.path.join(home, DEFAULT_STORE.removeprefix("~/")))
    return (path for path in dict.fromkeys(found) if os.path.isfile(path))


def _home_of_user() -> str:
    """Return the home folder from the system, not from the environment."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):  # not on Unix, or an unknown user
        return os.path.expanduser("~")


def _is_agent_at_work(store: Store) -> bool:
    return any(
        row.runtime not in NO_AGENTS
        for scope in store.instances.scopes(MOST_SCOPES)
        for _, row in islice(store.instances.walk(scope), MOST_SESSIONS)
    )
