"""From how a child ended to the result of the run."""

from __future__ import annotations

from typing import Any

from swarm_hook_core import faults
from swarm_mcp.agents.harness import events, outcome
from swarm_mcp.agents.harness.adapter import HarnessAdapter
from swarm_mcp.agents.harness.events import Ledger
from swarm_mcp.agents.harness.outcome import (
    Changes,
    Cost,
    Ending,
    RunResult,
    cost_of,
    own_part,
    priced,
    without_session,
)
from swarm_mcp.agents.harness.query import Query
from swarm_mcp.agents.harness.record import RUNTIME, EventSink
from swarm_mcp.agents.harness.requirements import limit_passed, schema_mismatch
from swarm_mcp.agents.harness.resumption import ResumableSession, fits, serialize

LONGEST_MESSAGE = 1000


def error_in(adapter: HarnessAdapter, ending: Ending) -> tuple[str, str] | None:
    """Return the adapter's view of the error, or that of the general rules if the adapter itself fails."""
    try:
        return adapter.error_of(ending)
    except Exception as error:
        faults.record(RUNTIME, adapter.name, f"{type(error).__name__}: {error}")
        return outcome.error_of(ending)


def is_unknown_session(adapter: HarnessAdapter, ending: Ending) -> bool:
    """Return True if the run failed because the session to continue does not exist."""
    try:
        return bool(adapter.unknown_session(ending))
    except Exception as error:
        faults.record(RUNTIME, adapter.name, f"{type(error).__name__}: {error}")
        return False


def concluded(
    adapter: HarnessAdapter,
    query: Query,
    ledger: Ledger,
    ending: Ending,
    failure: tuple[str, str] | None,
    before: Cost,
) -> RunResult:
    """Return the result of a run. `failure` is its error code and reason, `before` the session's earlier cost.

    Times, attempts, record and other facts of the run keep their defaults.
    """
    given = ending.result or {}
    session_id = ledger.session_id or _session_of(adapter, given)
    cost, counted = _costs(adapter, query, ledger, given, before, session_id)
    failure = failure or _missed(query, cost, given, ending)
    category, words = failure or (None, None)
    kept = None
    if session_id and category != outcome.SESSION_NOT_FOUND:
        kept = serialize(ResumableSession(adapter.name, session_id, query.cwd, counted))
    trouble: dict[str, Any] = {}
    if category in (outcome.TIMEOUT, outcome.ABORTED):
        trouble = ledger.trouble or {}
    if trouble:
        words = f"{words}; it was trying again after {trouble['category']}: {trouble.get('message')}"
    return RunResult(
        run_id=query.run_id,
        harness=adapter.name,
        exit_code=ending.exit_code,
        signal=ending.signal or None,
        timed_out=category == outcome.TIMEOUT,
        is_error=failure is not None,
        error_category=category,
        error_message=(_one_line(words or "") or f"failed: {category}") if failure else None,
        output=ledger.output,
        session_id=session_id,
        session_params=kept,
        cost=cost,
        session_cost=counted,
        model=cost.model,
        provider=given.get("provider") if isinstance(given.get("provider"), str) else None,
        retry_not_before=_moment(given.get("retry_not_before"), trouble, ledger) if failure else None,
        result_json=_structured_answer(given, ending, failure is not None),
    )


def _costs(
    adapter: HarnessAdapter, query: Query, ledger: Ledger, given: dict[str, Any], before: Cost, session_id: str | None
) -> tuple[Cost, Cost]:
    """Return the run's own cost, with its model, and the harness's count. `given`: the data of its result."""
    counted = cost_of(given.get("cost"))
    if counted._replace(model=None) == Cost():  # it was cut off, or does not report; the figures seen on the way count
        spent = cost_of(ledger.spent)
        counted = spent._replace(model=counted.model or spent.model)
    named = (counted.model, ledger.model, given.get("model"), adapter.model(query))
    model = next((name for name in named if name and isinstance(name, str)), None)
    is_continued = query.resume_session_id and (query.fork_session or session_id == query.resume_session_id)
    if adapter.cumulative and is_continued and before == Cost():  # of a whole session with an unknown earlier part
        cost = priced(without_session(counted, adapter.cumulative), adapter.prices, model)
        return cost._replace(model=model), counted
    cost = priced(own_part(counted, before, adapter.cumulative), adapter.prices, model)
    if "cost" in adapter.cumulative and counted.total_cost_usd is None and cost.total_cost_usd is not None:
        # It was cut off: our estimate stands for the harness's count, reported next time.
        known = 0.0 if before == Cost() else before.total_cost_usd
        if known is not None:
            counted = counted._replace(total_cost_usd=known + cost.total_cost_usd)
    return cost._replace(model=model), counted


def _missed(query: Query, cost: Cost, given: dict[str, Any], ending: Ending) -> tuple[str, str] | None:
    """Return the error of a run that ended by itself, but over its limit, or without an answer that fits its schema."""
    passed = limit_passed(query, cost.total_cost_usd)
    if passed:
        return outcome.BUDGET, passed
    wrong = schema_mismatch(query, _structured_answer(given, ending, False))
    if wrong:
        return outcome.SCHEMA_MISMATCH, wrong
    return None


def announced(sink: EventSink, ledger: Ledger, result: RunResult) -> RunResult:
    """Return the result without secrets, and emit the run's last events: its error, then its result."""
    names = ("output", "error_message", "result_json", "session_id", "session_params", "model", "provider")
    clean: dict[str, Any] = {name: sink.scrubber.data(getattr(result, name)) for name in names}
    clean["changes"] = Changes(
        tuple(map(sink.scrubber.text, result.changes.files)), tuple(map(sink.scrubber.text, result.changes.commits)),
        result.changes.more_files,
    )  # fmt: skip
    for name in ("cost", "session_cost"):  # a model's name is the harness's word as well
        cost = getattr(result, name)
        clean[name] = cost._replace(model=sink.scrubber.data(cost.model))
    result = result._replace(**clean)
    told = [error.get("category") for error in ledger.errors]
    if result.is_error and result.error_category not in told:
        sink.event(events.error(result.error_message or "", result.error_category or outcome.UNKNOWN))
    sink.event(events.result(
        result.output, result.is_error, result.error_category, cost=result.cost.to_dict(),
        error_message=result.error_message, session_id=result.session_id, exit_code=result.exit_code,
        signal=result.signal, timed_out=result.timed_out, duration_ms=result.duration_ms,
        changes=result.changes.to_dict(),
    ))  # fmt: skip
    return result


def _session_of(adapter: HarnessAdapter, given: dict[str, Any]) -> str | None:
    found = given.get("session_id")
    if isinstance(found, str) and fits(adapter, found):
        return found
    return None


def _structured_answer(given: dict[str, Any], ending: Ending, failed: bool) -> object:
    """Return the answer by schema; for a failed run without a result, its unparsed output."""
    for name in ("result_json", "structured"):
        if given.get(name) is not None:
            return given[name]
    if failed and ending.result is None and (ending.stdout or ending.stderr):
        return {"stdout": ending.stdout, "stderr": ending.stderr}
    return None


def _moment(found: object, trouble: dict[str, Any], ledger: Ledger) -> float | None:
    for value in (
        found,
        trouble.get("retry_not_before"),
        *(error.get("retry_not_before") for error in reversed(ledger.errors)),
    ):
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e12:
            return float(value)
    return None


def _one_line(words: str) -> str:
    line = " ".join(words.split())
    if len(line) <= LONGEST_MESSAGE:
        return line
    return line[: LONGEST_MESSAGE - 3] + "..."
