"""The machines of a team: their names, their presence, and how up to date the copy of each is.

No connection is opened: this machine's copy of the team is in the store, and the team agent answers the rest. The agent
watches the machines for as long as it is asked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from swarm_hook_core.wording import duration
from swarm_mcp.store import Store
from swarm_mcp.store.team_rows import HOST
from swarm_mcp.team.freshness import known_here, unheard_for

ASK_SECONDS = 1.0
GOOD_SECONDS = 15.0  # Seconds after which the server's word about a machine is out of date.


class MachineNow(NamedTuple):
    """A machine, its owner (`person`, empty if unknown), and the number of its `sessions` here.

    `silent_for`: seconds since its last heartbeat was due, 0 for a present machine, None if unknown. `behind`: the
    number of changes that have not reached it. `has_ended`: it has left the team's log, since it has no work there.
    """

    name: str
    person: str
    sessions: int
    is_own: bool
    silent_for: float | None
    behind: int
    has_ended: bool = False

    @property
    def is_offline(self) -> bool:
        """Return True if it is silent without having left."""
        return bool(self.silent_for) and not self.has_ended

    @property
    def state(self) -> str:
        """Return its state in a few words."""
        if self.is_own:
            return "this one"
        if self.silent_for is None:
            return "not known"
        how = "there"
        if self.silent_for:
            how = f"{'ended' if self.has_ended else 'silent for'} {duration(self.silent_for)}"
            how += " ago" if self.has_ended else ""
        if self.behind:
            return f"{how}, {self.behind} changes behind"
        return how


class TeamNow(NamedTuple):
    """The state of a clone in its team.

    repository    the team's name for it
    is_fresh      this machine knows every lock that counts elsewhere
    said_at       Unix seconds of the server's last word, None for never
    error         the reason why the server is not reached; empty if it is, or if that is unknown
    milliseconds  the time the server took to list the machines; None before the first time
    machines      this one first; without the agent, only machines with known sessions
    """

    repository: str
    is_fresh: bool
    said_at: int | None
    error: str
    milliseconds: float | None
    machines: list[MachineNow]

    @property
    def freshness(self) -> str:
        """Return in words how fresh the knowledge of other machines is."""
        if not self.is_fresh:
            return f"not fresh: its server was not heard of {unheard_for(self.said_at)}"
        if self.milliseconds is None:
            return "fresh"
        return f"fresh, its server answers in {self.milliseconds:.0f} ms"

    @property
    def shown(self) -> dict[str, Any]:
        """It as answers have it: ``{repository, fresh, said_at, error, milliseconds, machines}``."""
        machines = [{**one._asdict(), "state": one.state} for one in self.machines]
        return {
            "repository": self.repository, "fresh": self.is_fresh, "said_at": self.said_at, "error": self.error,
            "milliseconds": self.milliseconds, "machines": machines,
        }  # fmt: skip


def team_now(store: Store, scope: str) -> TeamNow | None:
    """Return the team state of the work tree around the folder `scope`; None outside of a team.

    Outside of a team this costs one look at the disk. A team agent that does not answer is waited for, `ASK_SECONDS` at
    most.
    """
    known = known_here(store, scope)
    if known is None:
        return None
    from swarm_mcp.team import agent_client

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
    trees, elsewhere = store.team.trees(), dict[str, int]()
    for session in store.team.mirrored_sessions():
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
    return TeamNow(name, known["fresh"], known["said_at"], error, took, machines)


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
