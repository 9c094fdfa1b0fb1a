"""A run's place in the swarm: its instance, from before the child's start until after its end, and its row in the
store.

The instance lives as long as this process, the child's supervisor. The child's hooks and its MCP server report as the
same instance (``store.runs.admit``).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from swarm_hook_core import state
from swarm_hook_core.environment import DEFAULT_LEASE_SECONDS
from swarm_hook_core.process import start_time
from swarm_mcp.agents.harness import events
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.outcome import RunResult
from swarm_mcp.agents.harness.record import RUNTIME
from swarm_mcp.domain import ENDED, RUN_RUNTIME, RUNNING, Session, new_id
from swarm_mcp.errors import SwarmError
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration


class Membership:
    """The instance and the row of one run. Every method but `join` keeps quiet about a store that cannot be used.

    `spec` has ``variables``, ``harness``, ``cwd`` and, as they apply, the other columns of a run (``store.runs``).
    """

    def __init__(self, spec: dict[str, Any], label: str = "", instance_id: str = ""):
        self.spec = spec
        self.label = label
        self.instance_id = instance_id or new_id()
        self.run_id = str(spec.get("id") or new_id())
        self._open: Store | None = None
        self._kept: Store | None = None
        self._taking_turns = threading.Lock()

    def join(self) -> Session:
        """Write the run's row, register its instance for the child to adopt, and return the instance's row.

        Raises SwarmError: without a place among the others a child must not start.
        """
        # Open until the end, though later steps have one of their own: closing the last connection of a store
        # checkpoints its journal, and that takes longer than everything else here.
        self._open = store = Store()
        try:
            store.runs.begin({**self.spec, "id": self.run_id, "instance_id": self.instance_id})
            row = self._register(store)
            if row.id != self.instance_id:
                store.instances.remove(row.id)
                store.runs.update(self.run_id, state=ENDED)
                raise SwarmError(f"instance {self.instance_id} is another session's")
        except BaseException:
            self._close()
            raise
        return row

    def bind(self, pid: int, started: str) -> None:
        """Record the child's process: its reports belong to this run."""
        self._quietly(lambda store: store.runs.update(self.run_id, child_pid=pid, child_start=started))

    def beat(self) -> None:
        """Send a heartbeat; register the instance again if another session has removed it."""
        self._quietly(self._renew)

    def free(self) -> None:
        """End the session that the child reported, once the child has ended and another may follow."""
        self._quietly(lambda store: store.runs.take_back(self.instance_id))

    def leave(self) -> None:
        """Remove the instance with all it holds."""
        self._quietly(self._end)
        self._close()

    def __del__(self) -> None:
        self._close()

    def _close(self) -> None:
        self._forget()
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
            store.instances.show_life(self.instance_id)

    def _register(self, store: Store) -> Session:
        return store.instances.register(
            Registration(
                self.spec["cwd"],
                label=self.label,
                scope=self.spec["scope"],
                preassigned_id=self.instance_id,
                runtime=RUN_RUNTIME,
                session_id=self.run_id,
                client=(os.getpid(), start_time(os.getpid())),
                lease_seconds=DEFAULT_LEASE_SECONDS,
            )
        )

    def _quietly(self, step: Callable[[Store], object]) -> None:
        with self._taking_turns:
            try:
                # Kept, since to open a store takes three times as long as a sign of life; threads take turns with it.
                self._kept = self._kept or Store(busy_seconds=2.0)
                step(self._kept)
            except SwarmError as error:
                self._forget()
                state.record(RUN_RUNTIME, "membership", str(error))

    def _forget(self) -> None:
        kept, self._kept = self._kept, None
        if kept:
            kept.close()


LAST_WORD_SECONDS = 15.0  # a busy store is waited for with the result
POLL_SECONDS = 0.5  # seconds between two looks for requests to the run


class RunRow:
    """The row of a run that this process supervises. An unusable store never disturbs the run: missed writes are made
    the next time.

    Methods may be called from several threads; each opens the store for itself.
    """

    def __init__(self, run_id: str):
        self.run_id = run_id
        self._looked = -POLL_SECONDS
        self._begun = False
        self._unwritten: dict[str, Any] = {}
        self._busy_seconds = 2.0

    def begun(self) -> None:
        """Note that the child runs. Only the first call does something."""
        if not self._begun:
            self._begun = True
            self.write(state=RUNNING)

    def note(self, event: Event) -> None:
        """Record an event's facts that have a column."""
        if event.kind == events.SESSION_INIT and event.data.get("session_id"):
            model = event.data.get("model")
            self.write(session_id=event.data["session_id"], **({"model": model} if model else {}))

    def asked(self) -> str:
        """Return the request to the run (``store.runs.CONTROLS``), empty for none; reads twice a second."""
        now = time.monotonic()
        if now - self._looked < POLL_SECONDS:
            return ""
        self._looked = now
        try:
            with Store(read_only=True, busy_seconds=0.2) as store:
                row = store.runs.get(self.run_id)
        except SwarmError:  # a busy store: asked again soon
            return ""
        return (row.control if row else None) or ""

    def close(self, result: RunResult) -> None:
        """Write down how the run ended."""
        self._busy_seconds = LAST_WORD_SECONDS  # at the end no reader waits any more, and nothing follows
        self.write(state=ENDED, control=None, **result_columns(result))
        if self._unwritten:
            state.record(RUN_RUNTIME, "run_row", f"the result of run {self.run_id} could not be written")

    def write(self, **columns: object) -> None:
        """Write columns of the row, and those that could not be written before."""
        self._unwritten = {**self._unwritten, **columns}
        try:
            with Store(busy_seconds=self._busy_seconds) as store:
                store.runs.update(self.run_id, **self._unwritten)
            self._unwritten = {}
        except SwarmError:  # written the next time
            pass


def result_columns(result: RunResult) -> dict[str, object]:
    """Return the columns of a run's row for its result."""
    shown = result.to_dict()
    found = {"model": result.model, "record": result.record}
    return {
        "session_id": result.session_id, "session_params": result.session_params, "result": shown,
        "cost_usd": result.cost.total_cost_usd, "usage": shown["usage"],
        **{name: value for name, value in found.items() if value},
    }  # fmt: skip


BEAT_SECONDS = 5.0


@contextlib.contextmanager
def joined(membership: Any) -> Iterator[None]:
    """Hold a place in the swarm during the block; `membership` None does nothing. Raises the errors of `join`.

    A thread sends the heartbeats: the store may block it, and the child's pipes must not fill meanwhile.
    """
    if membership is None:
        yield
        return
    membership.join()
    over = threading.Event()
    pulse = threading.Thread(target=_beat, args=(membership, over), daemon=True)
    pulse.start()
    try:
        yield
    finally:
        over.set()
        pulse.join(BEAT_SECONDS)
        try:
            membership.leave()
        except Exception as error:  # the run's result must not be lost over this
            state.record(RUNTIME, "leave", state.describe(error))


def _beat(membership: Any, over: threading.Event) -> None:
    beat = getattr(membership, "beat", None)
    while beat and not over.wait(BEAT_SECONDS):
        try:
            beat()
        except Exception as error:  # the next one may be heard
            state.record(RUNTIME, "beat", state.describe(error))
