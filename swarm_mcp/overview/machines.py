"""The machines of a team: which there are, whether they are there, and how far what each knows has come.

No connection is opened: what this machine's copy of the team says stands in the store, the rest is asked of the team
agent, which looks at the machines as long as somebody asks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from swarm_hook_core.wording import duration
from swarm_mcp.store import Store
from swarm_mcp.store.team_rows import HOST
from swarm_mcp.team.freshness import known_here, unheard_for

ASK_SECONDS = 1.0
GOOD_SECONDS = 15.0  # after which what the server has said of a machine does not say how it stands


class MachineNow(NamedTuple):
    """A machine: whose it is (`person`, empty where that is not known), and how many `sessions` it has here.

    `silent_for`: seconds since it should have been heard of, 0 for a machine that is there, None where nobody knows.
    `behind`: how many changes it does not know yet. `has_ended`: it follows the team no more, having nothing to do.
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
        """Whether it is silent, though it should be heard of."""
        return bool(self.silent_for) and not self.has_ended

    @property
    def state(self) -> str:
        """How it stands, in a few words."""
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
    """How a clone stands in its team.

    repository    what the team calls it
    is_fresh      nothing can be held elsewhere, and count, of which this machine does not know
    said_at       Unix seconds: when the server was last heard of, None for never
    error         why the server is not reached; empty where it is, or nobody knows
    milliseconds  that the server took to say which machines there are; None where it has not
    machines      this one first; where the agent does not say, only those of which sessions are known
    """

    repository: str
    is_fresh: bool
    said_at: int | None
    error: str
    milliseconds: float | None
    machines: list[MachineNow]

    @property
    def freshness(self) -> str:
        """Whether what is known of other machines is fresh, in words."""
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
    """How the work tree around the folder `scope` stands in its team; None where it has joined none.

    That costs one look at the disk. Else a team agent that does not answer is waited for, for `ASK_SECONDS` at most.
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
    """A machine, by what the server has said of it; `is_known`: that is so recent that it says how it stands."""
    is_own, has_ended = row["machine"] == own, not row["lease"]
    if is_own or not is_known:
        return MachineNow(row["machine"], row["member"], row["sessions"], is_own, 0.0 if is_own else None, 0)
    silent = max(0.0, -row["left"])
    if has_ended:
        behind = 0
    else:
        behind = max(0, told["version"] - row["acked"])
    return MachineNow(row["machine"], row["member"], row["sessions"], False, silent, behind, has_ended)
