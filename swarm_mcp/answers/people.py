"""The names of sessions for a reader, departed sessions included."""

from __future__ import annotations

from swarm_hook_core.labels import same_circle, token
from swarm_hook_core.naming import UNNAMED, holder_name
from swarm_mcp.answers.views import name_of, without_walls
from swarm_mcp.domain.session import SYSTEM, Session
from swarm_mcp.store import Store


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
