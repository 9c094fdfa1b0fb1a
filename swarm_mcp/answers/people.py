"""The names of sessions for a reader, departed sessions and machines included; and instances as answers show them."""

from __future__ import annotations

from typing import Any, NamedTuple

from swarm_hook_core.naming import UNNAMED, holder_name
from swarm_hook_core.untrusted_text import same_circle, token
from swarm_hook_core.wording import duration
from swarm_mcp import contributions
from swarm_mcp.domain import SYSTEM, Run, Session
from swarm_mcp.store import Store
from swarm_mcp.store.messages import name_of, without_walls


class People:
    """The names of sessions during one look: each is read from the store once.

    `own_id`: the reader's own session, empty for none.
    """

    def __init__(self, store: Store, viewer: str = "", own_id: str = ""):
        self.viewer = viewer
        self._store = store
        self._own_id = own_id
        self._labels: dict[str, str | None] = {}
        self._names: dict[str, str] = {}

    def may_know(self, label: str | None) -> bool:
        """Return True if the viewer may know the name of a session with this label."""
        return without_walls() or same_circle(self.viewer, token(label or "", "identity"))

    def name(self, row: Session) -> str:
        """The name of a session that is there."""
        self._label(row.id, row.label)
        if not self.may_know(row.label):
            return UNNAMED
        return name_of(row, self._own_id)

    def learn(self, instance_id: str, label: str | None) -> None:
        """Remember a session's label from a row that has it."""
        if label or instance_id not in self._labels:
            self._label(instance_id, label)

    def learn_worker(self, run: Run) -> None:
        """Remember the name of a worker whose session has gone."""
        if run.instance_id not in self._labels and self._store.instances.get(run.instance_id) is None:
            runtime = contributions.function_named("swarm_mcp.runtimes:started_by")(run.harness)
            self._label(run.instance_id, f"origin:{runtime} run:{run.id}")

    def called(self, instance_id: str | None) -> str:
        """Return the name of the session with this id; for a forgotten session, the beginning of its id."""
        if not instance_id or instance_id == SYSTEM:
            return SYSTEM
        if instance_id not in self._labels:
            row = self._store.instances.get(instance_id)
            self._labels[instance_id] = row.label if row else None
        if instance_id not in self._names:
            label, is_own = self._labels[instance_id], instance_id == self._own_id
            self._names[instance_id] = holder_name(label, instance_id, is_own) if self.may_know(label) else UNNAMED
        return self._names[instance_id]

    def _label(self, instance_id: str, label: str | None) -> None:
        if self._labels.get(instance_id) != label:
            self._names.pop(instance_id, None)
        self._labels[instance_id] = label


# The machines that share a checkout's locks: their names, their presence, and how up to date the copy of each is.
#
# The package that knows these machines answers (``contributions``).


class MachineNow(NamedTuple):
    """A machine, its owner (`person`, empty if unknown), and the number of its `sessions` here.

    `silent_for`: seconds since its last heartbeat was due, 0 for a present machine, None if unknown. `behind`: the
    number of changes that have not reached it. `has_ended`: it shares nothing any longer, since it has no work there.
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


class Machines(NamedTuple):
    """The machines that share the locks of a checkout.

    kind          the name of the package's answer, and of its verb
    repository    their name for the repository
    is_fresh      this machine knows every lock that counts elsewhere
    freshness     how fresh this machine's knowledge of the others is, in words
    said_at       Unix seconds of the server's last word, None for never
    error         the reason why the server is not reached; empty if it is, or if that is unknown
    milliseconds  the time the server took to list the machines; None before the first time
    machines      this one first; without an answer, only machines with known sessions
    """

    kind: str
    repository: str
    is_fresh: bool
    freshness: str
    said_at: int | None
    error: str
    milliseconds: float | None
    machines: list[MachineNow]

    @property
    def shown(self) -> dict[str, Any]:
        """It as answers have it: ``{repository, fresh, said_at, error, milliseconds, machines}``."""
        machines = [{**one._asdict(), "state": one.state} for one in self.machines]
        return {
            "repository": self.repository, "fresh": self.is_fresh, "said_at": self.said_at, "error": self.error,
            "milliseconds": self.milliseconds, "machines": machines,
        }  # fmt: skip


def machines_of(store: Store, scope: str) -> Machines | None:
    """Return the machines that share the locks of the work tree around the folder `scope`; None without any.

    Without shared locks on this machine this costs one look at the disk.
    """
    found: Machines | None = contributions.react(contributions.MACHINES, store, scope)
    return found


# Instances on the command line and over MCP, to each viewer as far as it may know them.


def known_shortly(row: Session) -> str:
    """Return the name of a session for a list to choose from, with the beginning of its id."""
    name = name_of(row)
    return name if short(row.id) in name else f"{name} (id {short(row.id)})"


def short(instance_id: str) -> str:
    """Return the first eight characters of an id, for people."""
    return instance_id[:8]


def public_instance(row: Session) -> dict[str, object]:
    """Return an instance in the shape that listings show."""
    names = ("id", "scope", "directory", "root", "file_root", "label", "pid", "registered_at", "heartbeat")
    return {name: row[name] for name in names}


def registration(row: Session) -> dict[str, object]:
    """Return an instance in the shape that ``register`` and ``whoami`` show."""
    names = ("id", "scope", "directory", "root", "file_root", "pid", "label")
    shown = {name: row[name] for name in names}
    return {**shown, "adopted": bool(row.adopted), "lease_until": row.lease_until}


def veiled(rows: list[Session], viewer: str) -> list[Session]:
    """Return sessions as `viewer` (an identity, empty for none) may see them: labels of other identities are None."""
    return [row if same_circle(viewer, token(row.label or "", "identity")) else row.replace(label=None) for row in rows]
