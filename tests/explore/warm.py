"""A client's checker: one process for hook after hook; and the relay that hands it the calls."""

import os
import time
from types import SimpleNamespace

from explore.process import Process
from swarm_hook_core import process
from swarm_hook_core.traces import journal
from swarm_mcp.checker.process import Checker
from swarm_mcp.store import driver

RELAY_NS = 2_200_000_000  # that the relay waits for an answer


class Warm(Checker):
    """A checker without its socket."""

    def __init__(self, me: Process):
        self._driver, self._me = driver.load(), me
        self._is_running = journal.is_kept = True

    def answer(self, event: str, payload: str) -> str:
        """Answer a hook as the relay tells it: by the checker, else by a process of its own."""
        if not self._is_running:
            return Process.answer(self._me, event, payload)
        began_ns, end_ns = time.time_ns(), time.monotonic_ns() + RELAY_NS

        def demand(margin_ns: int = 0) -> None:
            if time.monotonic_ns() > end_ns - margin_ns:
                raise process.Abandoned

        environment = [b"%s=%s" % pair for pair in os.environb.items()]
        words = {"PreToolUse": "pre_tool_use", "PostToolUse": "post_tool_use"}
        request = SimpleNamespace(payload=payload.encode(), client="claude-code", event=words[event], pid=os.getpid(),
            parent=os.getppid(), folder=self._me.ground.work, environment=environment, demand=demand)  # fmt: skip
        try:
            return self.result(request)[1]  # type: ignore[arg-type]
        except process.Abandoned:  # its process ends
            self._me.say("abandoned", event)
            self._is_running = journal.is_kept = False
            os.environ["SWARM_TRIED_NS"] = str(began_ns)
            return Process.answer(self._me, event, payload)
        finally:
            os.environ.pop("SWARM_TRIED_NS", None)


def edits_by_checker(me: Process) -> None:
    """Edit a file twice, end the turn, and replace the file unread: all hooks are answered by one checker."""
    me.answer = Warm(me).answer  # type: ignore[method-assign]
    try:
        me.write("notes.md", "Edit", f"{me.number}.0\n")
        me.write("notes.md", "Edit", f"{me.number}.1\n")
        me.end_turn()
        me.write("notes.md", "Write", f"{me.number}.w\n")
    finally:
        journal.is_kept = False
