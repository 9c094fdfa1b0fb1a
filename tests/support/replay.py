"""A run without a child: recorded output goes through everything that a child's output goes through."""

import tempfile
from collections.abc import Iterable
from typing import NamedTuple

from swarm_mcp.agents.harness.adapter import HarnessAdapter
from swarm_mcp.agents.harness.child import RunAttempt, StopRequest
from swarm_mcp.agents.harness.conclusion import announced, concluded, error_in, is_unknown_session
from swarm_mcp.agents.harness.events import Event, Ledger
from swarm_mcp.agents.harness.outcome import Cost, Ending, RunResult
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.agents.harness.record import EventSink

NO_COST = Cost()


class Replayed(NamedTuple):
    """The result of a recorded run. `stopped` is the runner's reason to end it, or None."""

    events: list[Event]
    result: RunResult
    ending: Ending
    unknown_session: bool
    stopped: tuple[str, str] | None


def replay(
    adapter: HarnessAdapter,
    stdout: bytes,
    stderr: bytes = b"",
    exit_code: int = 0,
    query: Query | None = None,
    *,
    before: Cost = NO_COST,
    pieces: Iterable[bytes] | None = None,
) -> Replayed:
    """Return `adapter`'s result for a recorded run; a negative `exit_code` is the fatal signal.

    Standard error is taken last. `pieces` replaces `stdout` by its portions.
    """
    query = query or Query("a recorded prompt", tempfile.gettempdir(), run_id="replayed")
    told: list[Event] = []
    sink, ledger, stop = EventSink(), Ledger(adapter.name), StopRequest()
    sink.on_event(told.append)
    attempt = RunAttempt(adapter, query, sink, ledger, stop)
    attempt.set_folder(query.cwd)
    for piece in (stdout,) if pieces is None else pieces:
        if piece:
            attempt.take("stdout", piece)
    if stderr:
        attempt.take("stderr", stderr)
    for stream in ("stdout", "stderr"):
        attempt.take(stream, b"")
    ending = attempt.over(exit_code, max(0, -exit_code))
    failure = stop.reason or error_in(adapter, ending)
    result = concluded(adapter, query, ledger, ending, failure, before)
    unknown = bool(query.resume_session_id) and is_unknown_session(adapter, ending)
    result = announced(sink, ledger, result._replace(clear_session=unknown or attempt.strayed))
    return Replayed(told, result, ending, unknown, stop.reason)
