"""What the store says of a run that this process supervises: kept up as it goes, closed with its result."""

from __future__ import annotations

import time

from swarm_mcp.domain.run import ENDED, RUNNING
from swarm_mcp.errors import SwarmError
from swarm_mcp.harness import events
from swarm_mcp.harness.events import Event
from swarm_mcp.harness.outcome import RunResult
from swarm_mcp.store import Store

LAST_WORD_SECONDS = 15.0  # a busy store is waited for with the result
POLL_SECONDS = 0.5  # between two looks at what others ask of the run


class Account:
    """The row of one run. A store that cannot be used for a moment never disturbs the run: it is told the next time.

    Methods may be called from several threads; each opens the store for itself.
    """

    def __init__(self, run_id: str, path: str | None = None):
        self.run_id = run_id
        self._path = path
        self._looked = 0.0
        self._begun = False
        self._missed: dict = {}
        self._patience = 2.0

    def begun(self) -> None:
        """The child runs. Only the first call does something."""
        if not self._begun:
            self._begun = True
            self.write(state=RUNNING)

    def note(self, event: Event) -> None:
        """Something happened; what the row has a column for is written down."""
        if event.kind == events.SESSION_INIT and event.data.get("session_id"):
            model = event.data.get("model")
            self.write(session_id=event.data["session_id"], **({"model": model} if model else {}))

    def asked(self) -> str:
        """What somebody asks of the run (``store.runs.CONTROLS``), empty for nothing; looked up twice a second."""
        now = time.monotonic()
        if now - self._looked < POLL_SECONDS:
            return ""
        self._looked = now
        try:
            with Store(self._path, read_only=True, busy_seconds=0.2) as store:
                row = store.runs.get(self.run_id)
        except SwarmError:
            return ""
        return (row or {}).get("control") or ""

    def close(self, result: RunResult) -> None:
        """The run is over."""
        shown = result.to_dict()
        self._patience = LAST_WORD_SECONDS  # nobody is kept waiting by now, and nothing follows
        self.write(
            state=ENDED, control=None, session_id=result.session_id, session_params=result.session_params,
            cost_usd=result.cost.total_cost_usd, usage=shown["usage"], result=shown,
            **({"model": result.model} if result.model else {}), **({"record": result.record} if result.record else {}),
        )  # fmt: skip

    def write(self, **columns: object) -> None:
        """Change columns of the row, and those that could not be changed before."""
        self._missed = {**self._missed, **columns}
        try:
            with Store(self._path, busy_seconds=self._patience) as store:
                store.runs.update(self.run_id, **self._missed)
            self._missed = {}
        except SwarmError:
            pass
