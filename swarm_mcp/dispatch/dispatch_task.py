"""The task of a dispatch: the one that an equal dispatch has made, one that is named, or a new one."""

from __future__ import annotations

from swarm_hook_core.labels import token
from swarm_mcp.dispatch import promotion
from swarm_mcp.dispatch.control import named_task
from swarm_mcp.dispatch.request import Order, scrubbed
from swarm_mcp.errors import Refused
from swarm_mcp.store.tracker_links import entry_in

TRIES = 3  # at naming a worker who may leave at that very moment


class Commission:
    """The task that `requester` (its row) hands over by `order`, once `settle` has been called.

    `key` is what makes two dispatches one; `decision` says of a new task whether it belongs in the work tracker.
    """

    def __init__(self, requester: dict, order: Order):
        self.requester = requester
        self.order = order
        self.key = order.key(requester)
        self.task: dict = {}
        self.decision: dict = {}

    def settle(self, store, find_worker) -> None:
        """Find or make the task; `find_worker(store)` gives the session that a new one is for, or None."""
        order, requester = self.order, self.requester
        if order.resume:
            return self._recall(store)
        self.decision = promotion.decide(self._work(store))
        shown, _ = scrubbed(order)
        spec = {
            "type": order.type,
            "title": shown.title,
            "description": shown.description,
            "files": list(order.files),
            "priority": order.priority,
            "depends_on": list(order.depends_on),
            "idempotency_key": self.key,
            "parent_task_id": order.parent_task_id,
            "approval_required": order.approval_required,
        }
        if self.decision["promote"]:
            spec.update(tracker_required=True, tracker_provider=self.decision["provider"])
        for attempt in range(1, TRIES + 1):
            worker = find_worker(store)
            try:
                # No notice: the instructions follow, with more to say, and the next dispatch brings them if not this.
                made = store.tasks.request(requester, {**spec, "assignee": worker and worker["id"]}, notify=False)
                break
            except Refused:
                if attempt == TRIES or worker is None or store.instances.live(worker["id"]):
                    raise
        self.task = made["task"]
        self._link(store)
        if made["existing"]:
            self.decision = {}

    def _recall(self, store) -> None:
        """Find the task to be gone on with; what is not said anew is as it was."""
        self.task = named_task(store, self.requester, self.order.resume)
        self.key = self.task["idempotency_key"] or f"task:{self.task['id']}"
        words = self.order.message or self.task["description"] or self.task["title"]
        self.order = self.order._replace(title=self.task["title"], message=words)

    def _work(self, store) -> promotion.Work:
        """The facts of the promotion decision."""
        order, requester = self.order, self.requester
        configured = store.tracker.of(requester)
        value = configured["value"] if configured else None
        provider = promotion.provider_of(value)
        parent = store.tasks.get(requester["scope"], order.parent_task_id) if order.parent_task_id else None
        named = order.promote_identifier.strip()
        return promotion.Work(
            identity=token(requester["label"] or "", "identity"),
            tracker=value,
            type=order.type,
            title=order.title,
            description=order.description,
            files=tuple(dict.fromkeys(order.files)),
            promote=order.promote,
            identifier=entry_in(named) or named,
            # Only one tracker's entries can be told from other words.
            mentioned=(entry_in(order.title) or entry_in(order.description)) if provider == "linear" else "",
            parent=parent
            and promotion.Parent(
                bool(parent["tracker_required"]), store.tracker.entry(requester, provider, parent["id"])
            ),
        )

    def _link(self, store) -> None:
        """Remember the tracker entry of a task that was made with one, also where a dispatch before this was killed."""
        decision, task = self.decision, self.task
        if not decision.get("identifier") or not task["tracker_required"]:
            return
        if store.tracker.entry(self.requester, decision["provider"], task["id"]):
            return
        named = self.order.promote_identifier.strip()
        url = decision.get("existing_binding", {}).get("url") or (named if "://" in named else "")
        store.tracker.link(self.requester, decision["provider"], task["id"], decision["identifier"], url)
