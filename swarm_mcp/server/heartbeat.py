"""The server's heartbeat: it keeps the leases of the client's session from expiring while the client lives.

It sleeps until a lease is due, or until a commit to the store, because commands take locks as well. The leases of a
stopped client (SIGSTOP, Ctrl-Z) expire: it could not release its locks either.
"""

from __future__ import annotations

import os
import sys
import time

from swarm_hook_core.process import is_stopped
from swarm_hook_core.state import store_path
from swarm_mcp.errors import SwarmError
from swarm_mcp.server.calling_session import CallingSession
from swarm_mcp.store import Store
from swarm_mcp.store.changes import Changes

FIRST_SECONDS = 1.0  # most servers are never called: until then the client has more urgent needs
LONGEST_SECONDS = 20.0
GAP_SECONDS = 0.25  # between two looks at a store that is busy
SHORTEST_SECONDS = 0.05
STOPPED_SECONDS = 1.0  # between looks at a client that is stopped
BUSY_SECONDS = 1.0  # for the store to take a sign of life


class Heartbeat:
    """The beat for the leases of this server's session. `run` never returns, and belongs in a daemon thread."""

    def __init__(self, session: CallingSession):
        self._session = session

    def run(self) -> None:
        """Beat for ever."""
        time.sleep(FIRST_SECONDS)
        with Changes() as changes:
            while True:
                due = time.monotonic() + self.beat()
                changes.wait(max(SHORTEST_SECONDS, due - time.monotonic()))
                time.sleep(max(0.0, min(GAP_SECONDS, due - time.monotonic())))

    def beat(self) -> float:
        """Renew leases that are due, and end expired ones of others. Return the seconds until the next beat."""
        if not os.path.isfile(store_path()):
            return LONGEST_SECONDS
        try:
            with Store(busy_seconds=BUSY_SECONDS) as store:
                return max(SHORTEST_SECONDS, min(self._keep(store), self._see_to_others(store), LONGEST_SECONDS))
        except Exception as error:
            print(f"swarm-mcp serve: heartbeat: {type(error).__name__}: {error}", file=sys.stderr)
            if isinstance(error, SwarmError):
                return GAP_SECONDS
            return LONGEST_SECONDS

    def _keep(self, store: Store) -> float:
        waits, pid = [], self._session.client[0]
        inherited = self._session.inherited(store)
        for instance_id in (*self._session.vouched(store), *inherited):
            if store.leases.is_due(instance_id) and pid and is_stopped(pid):
                waits.append(STOPPED_SECONDS)
            else:
                # An inherited lease keeps its last sign of life: it tells if this connection may continue the session.
                left = store.leases.keep(instance_id, instance_id not in inherited)
                waits += [] if left is None else [left]
        return min(waits, default=LONGEST_SECONDS)

    def _see_to_others(self, store: Store) -> float:
        store.leases.some()
        left = store.leases.next_due()
        # Every server around wakes for it: not all at once.
        if left is None:
            return LONGEST_SECONDS
        return max(0.0, left) + GAP_SECONDS * os.urandom(1)[0] / 255
