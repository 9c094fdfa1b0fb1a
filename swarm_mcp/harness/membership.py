"""A run's place among the sessions: an instance of its own, from before the child starts until it is gone.

The instance lives as long as this process, which supervises the child. What the child's hooks and its MCP
server report is of the same instance (``store.runs.admit``).
"""

from __future__ import annotations

import os

from swarm_hook_core.process import start_time
from swarm_mcp.domain.run import ENDED
from swarm_mcp.domain.session import RUN_RUNTIME
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store
from swarm_mcp.store.registration import Registration, new_id

LEASE_SECONDS = 86400


class Membership:
    """The instance and the row of one run. Every method but `join` keeps quiet about a store that cannot be used.

    `spec` has ``scope``, ``harness``, ``cwd`` and, as they apply, the other columns of a run (``store.runs``).
    """

    def __init__(self, spec: dict, label: str = "", instance_id: str = "", path: str | None = None):
        self.spec = spec
        self.label = label
        self.instance_id = instance_id or new_id()
        self.run_id = str(spec.get("id") or new_id())
        self._path = path
        self._open: Store | None = None

    def join(self) -> dict:
        """Write the run down and register its instance, which the child will adopt; the instance's row.

        Raises SwarmError: without a place among the others a child must not start.
        """
        # Kept open until the end, though each deed has one of its own: whoever closes the last connection of a store
        # has to fold its journal in, which takes longer than everything else here.
        self._open = store = Store(self._path)
        try:
            store.runs.begin({**self.spec, "id": self.run_id, "instance_id": self.instance_id})
            row = self._register(store)
            if row["id"] != self.instance_id:
                store.instances.remove(row["id"])
                store.runs.update(self.run_id, state=ENDED)
                raise SwarmError(f"instance {self.instance_id} is another session's")
        except BaseException:
            self._close()
            raise
        return row

    def bind(self, pid: int, started: str) -> None:
        """The child has been started: what it reports is this run's."""
        self._quietly(lambda store: store.runs.update(self.run_id, child_pid=pid, child_start=started))

    def beat(self) -> None:
        """A sign of life; an instance that somebody has removed meanwhile is registered again."""
        self._quietly(self._renew)

    def free(self) -> None:
        """The child has ended and another may follow: whatever session it reported is over."""
        self._quietly(lambda store: store.runs.take_back(self.instance_id))

    def leave(self) -> None:
        """Remove the instance with all it holds."""
        self._quietly(self._end)
        self._close()

    def __del__(self):
        self._close()

    def _close(self) -> None:
        store, self._open = self._open, None
        if store:
            store.close()

    def _end(self, store: Store) -> None:
        store.runs.update(self.run_id, state=ENDED)
        store.instances.remove(self.instance_id)

    def _renew(self, store: Store) -> None:
        if store.instances.live(self.instance_id) is None:
            self._register(store)
        else:
            with store.writing():
                store.instances.require(self.instance_id)

    def _register(self, store: Store) -> dict:
        return store.instances.register(
            Registration(
                self.spec["cwd"],
                label=self.label,
                scope=self.spec["scope"],
                preassigned_id=self.instance_id,
                runtime=RUN_RUNTIME,
                session_id=self.run_id,
                client=(os.getpid(), start_time(os.getpid())),
                lease_seconds=LEASE_SECONDS,
            )
        )

    def _quietly(self, deed) -> None:
        try:
            with Store(self._path, busy_seconds=2.0) as store:
                deed(store)
        except SwarmError as error:
            from swarm_hook_core import faults

            faults.record(RUN_RUNTIME, "membership", str(error))
