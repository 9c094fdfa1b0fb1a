"""The check of a write that nobody makes: `swarm-mcp why` and the page ask what a hook would answer.

It is the hooks' own check with all that it would leave behind taken out: no traces, claims, records or counts, nothing
is kept, nothing registered, and no write of another session is waited for. Only the coordinator loads this.
"""

import os

from swarm_hook_core.change import EDIT, REMOVE, REPLACE
from swarm_hook_core.config import RuntimeConfig
from swarm_hook_core.core import HookCore
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.traces import OFF, Trail, level

KINDS = {EDIT: "edit", REPLACE: "overwrite", REMOVE: "remove"}  # kinds of writes -> what people call them
_TOOLS = {EDIT: "Write", REPLACE: "Write", REMOVE: "rm"}  # as the words of a refusal have them


class AskedTrail(Trail):
    """A Trail that is never left."""

    __slots__ = ()
    is_asked = True

    def leave(self) -> None:
        """Forget what was noted."""
        self._lines = {}


class AskedCore(HookCore):
    """The check of writes by `session`, whose client is called `runtime` and calls it `session_id`.

    `prefix` is the one of its variables; `reader` reads the store.
    """

    is_asked = True

    def __init__(self, runtime: str, prefix: str, session_id: str, session, reader: StoreReader):
        config = RuntimeConfig(
            runtime, prefix, "swarm", KINDS, extract_changes=lambda given: [(given["path"], given["how"])]
        )
        HookCore.__init__(self, config, driver=reader.driver, is_within=True)
        self._session = session
        self._session_id = session_id
        self._reader = reader

    def verdicts(self, path: str, agent: str = "") -> dict:
        """Return the Verdict on each kind of write (``change``) to absolute `path` by the session, or its `agent`."""
        found: dict = {}
        for how in KINDS:
            call = self._call(path, how, agent)
            found[how] = verdict = self._verdict(call)
            is_plain = verdict.denial is None and not verdict.notice and self._is_alone(call, path)
            if is_plain or (verdict.denial is not None and verdict.denial.loss is None):
                return dict.fromkeys(KINDS, verdict)  # it does not hang on the kind
        return found

    def trail_of(self, call):
        """Return the Trail of a call, which leaves nothing; None where this checkout wants no traces."""
        found = level(self.config.env_prefix, call.folder)
        return None if found == OFF else AskedTrail(self.config, call, found)

    def _call(self, path: str, how: str, agent: str) -> ToolCall:
        folder = self._session.directory or os.path.dirname(path) or "/"
        given = {"path": path, "how": how}
        return ToolCall(how, given, self._session_id, folder, agent=agent, client_tool=_TOOLS[how])

    def _verdict(self, call):
        try:
            return self._decided(call)
        except Exception as error:
            from swarm_hook_core import fail_closed
            from swarm_hook_core.decision import Verdict
            from swarm_hook_core.faults import describe

            closed = fail_closed.verdict(self.config, call, error)
            return closed or Verdict(notice=f"swarm: this could not be checked ({describe(error)[:300]}).", failed=True)

    def _is_alone(self, call, path: str) -> bool:
        trail = self.trail_of(call)
        try:
            return trail is None or trail.is_alone([os.path.realpath(path)])
        except (OSError, ValueError):  # a path that no file can have: each kind of write is asked about
            return False

    def _session_of(self, call, only_beside_locks: bool):
        return self._session, self._reader

    def _mark_own(self, call, session) -> None:
        return

    def _claimed(self, call, effects, trail, reader, now: float):
        from swarm_hook_core.state import has_claims

        if not has_claims():
            return None
        from swarm_hook_core.traces.claimed import Claimed

        return Claimed(self.config.runtime_name, call, reader, int(now * 1e9))

    def _count(self, call, denial, session, peers) -> None:
        return

    def _add_news(self, call, verdict, peers, session) -> None:
        return
