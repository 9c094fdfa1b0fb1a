"""Who may be named to whom in a report of events, also where a session has left since."""

from __future__ import annotations

from swarm_hook_core.json_text import loads
from swarm_mcp.visibility import may_meet


def payload_of(event: dict) -> dict:
    """An event's payload; empty where it has none, or none that can be read."""
    try:
        value = loads(event["payload"]) if isinstance(event["payload"], str) else None
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {}


class Acquaintance:
    """What a viewer with `label` may know of the sessions in events. Learns the labels of those that leave."""

    def __init__(self, label: str | None):
        self.label = label
        self._labels: dict[str, str | None] = {}

    def learn(self, events: list[dict]) -> None:
        """Remember the labels in these events, for when their sessions have gone."""
        for event in events:
            if event["type"].startswith("instance.") and event["subject"]:
                label = payload_of(event).get("label")
                self._labels[event["subject"]] = label if isinstance(label, str) else None

    def label_of(self, store, instance_id: str) -> str | None:
        """A session's label, None where it has none or nobody knows any more."""
        row = store.instances.get(instance_id)
        return row["label"] if row else self._labels.get(instance_id)

    def may_meet(self, store, instance_id: str | None) -> bool:
        """Whether that session is no stranger. ``system`` is none; one of which nothing is known is."""
        if instance_id in (None, "system"):
            return True
        row = store.instances.get(instance_id)
        if row is None and instance_id not in self._labels:
            return may_meet(self.label, "identity:?")
        return may_meet(self.label, row["label"] if row else self._labels[instance_id])
