"""The machines of a team, for those who look at a checkout.

No connection is opened: this machine's copy of the team is in the store, and the team agent answers the rest. The agent
watches the machines for as long as it is asked.
"""

from __future__ import annotations

from typing import Any

from swarm_mcp.answers.machines import MachineNow, Machines
from swarm_mcp.store import Store
from swarm_mcp.team import agent_client
from swarm_mcp.team.freshness import known_here, unheard_for
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.team.store_rows import HOST

ASK_SECONDS = 1.0
GOOD_SECONDS = 15.0  # Seconds after which the server's word about a machine is out of date.


def machines_of(store: Store, scope: str) -> Machines | None:
    """Return the machines that share the work tree around the folder `scope`; None outside of a team.

    A team agent that does not answer is waited for, `ASK_SECONDS` at most.
    """
    known = known_here(store, scope)
    if known is None:
        return None
    name = known["repository"]
    agent = agent_client.status(ASK_SECONDS, machines=True) or {}
    own = str(agent.get("machine") or "")
    told: dict[str, Any] = {}
    errors = [server["error"] for server in agent.get("servers", ())]
    for server in agent.get("servers", ()):
        for one in server["repositories"]:
            if one["repository"] == name:
                told, errors = one, [server["error"]]
    error = next(filter(None, errors), "")
    trees, elsewhere = TeamRows(store).trees(), dict[str, int]()
    for session in TeamRows(store).mirrored_sessions():
        if trees.get(session.scope) == name:
            machine = (session.host or "").removeprefix(HOST)
            elsewhere[machine] = elsewhere.get(machine, 0) + 1
    looked = told.get("looked")
    is_known = looked is not None and looked < GOOD_SECONDS and not error
    found = {row["machine"]: _machine(row, own, told, is_known) for row in told.get("machines", ())}
    for machine, sessions in elsewhere.items():
        found.setdefault(machine, MachineNow(machine, "", 0, False, None, 0))
        found[machine] = found[machine]._replace(sessions=sessions)
    if own:
        found.setdefault(own, MachineNow(own, "", told.get("sessions", 0), True, 0.0, 0))
    if is_known:
        took = told["round_trip"] * 1000
    else:
        took = None
    machines = sorted(found.values(), key=lambda one: (not one.is_own, one.name))
    freshness = _freshness(known["fresh"], known["said_at"], took)
    return Machines("team", name, known["fresh"], freshness, known["said_at"], error, took, machines)


def _freshness(is_fresh: bool, said_at: int | None, milliseconds: float | None) -> str:
    """Return in words how fresh the knowledge of other machines is."""
    if not is_fresh:
        return f"not fresh: its server was not heard of {unheard_for(said_at)}"
    if milliseconds is None:
        return "fresh"
    return f"fresh, its server answers in {milliseconds:.0f} ms"


def _machine(row: dict[str, Any], own: str, told: dict[str, Any], is_known: bool) -> MachineNow:
    """Return a machine from the server's row. `is_known`: the row is recent enough to tell the state."""
    is_own, has_ended = row["machine"] == own, not row["lease"]
    if is_own or not is_known:
        return MachineNow(row["machine"], row["member"], row["sessions"], is_own, 0.0 if is_own else None, 0)
    silent = max(0.0, -row["left"])
    if has_ended:
        behind = 0
    else:
        behind = max(0, told["version"] - row["acked"])
    return MachineNow(row["machine"], row["member"], row["sessions"], False, silent, behind, has_ended)
