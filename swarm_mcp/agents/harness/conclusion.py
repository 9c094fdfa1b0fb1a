"""From a child's end to the run's result: its changes, and whether a later run can continue it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from swarm_hook_core import repository, state
from swarm_hook_core.shell.programs.git.uncommitted import changed_in
from swarm_hook_core.state import NotOrdinary
from swarm_hook_core.traces import journal, others_in, place_of, state_of
from swarm_mcp.agents.harness import events, outcome
from swarm_mcp.agents.harness.adapter import HarnessAdapter, limit_passed, schema_mismatch
from swarm_mcp.agents.harness.events import Event, Ledger
from swarm_mcp.agents.harness.narration import commanded, edited
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
from swarm_mcp.agents.harness.query import Query, parse_json
from swarm_mcp.agents.harness.record import RUNTIME, EventSink
from swarm_mcp.errors import Refused

# The decision to continue an earlier session, and the record that makes it possible.
#
# Claude Code and Codex silently continue a session from any folder; its files are then others. Codex begins a new
# session under an unknown name. So all of that is checked here.

LONGEST_ID = 200
T = TypeVar("T")


class ResumableSession(NamedTuple):
    """The facts for resuming a session. `cost` is its harness's count at that time."""

    harness: str
    session_id: str
    cwd: str = ""
    cost: Cost = Cost()


class Resumption(NamedTuple):
    """`session_id` to continue, empty for a new session; `refused` is the reason against a requested one; `forget`: it
    can never be continued; `before`: its cost so far.
    """

    session_id: str = ""
    refused: str = ""
    forget: bool = False
    before: Cost = Cost()


def serialize(session: ResumableSession) -> dict[str, Any]:
    """Return a session as a JSON object."""
    return {**session._asdict(), "cost": session.cost.to_dict()}


def deserialize(found: object) -> ResumableSession | None:
    """Return the session that a JSON object, or its text, describes; None for anything else."""
    if isinstance(found, (str, bytes)):
        found = parse_json(found)
    if isinstance(found, ResumableSession):
        return found
    if not isinstance(found, Mapping):
        return None
    harness, session_id, cwd = found.get("harness"), found.get("session_id"), found.get("cwd") or ""
    if not (isinstance(harness, str) and isinstance(session_id, str) and isinstance(cwd, str)):
        return None
    if not harness or not 0 < len(session_id) <= LONGEST_ID or "\0" in session_id + cwd:
        return None
    return ResumableSession(harness, session_id, cwd, cost_of(found.get("cost")))


def session_given(adapter: HarnessAdapter, previous: object) -> ResumableSession | None:
    """Return the session that a caller means: by a result, its ``session_params``, or the harness's own id.

    None without one, and for an invalid object. Raises Refused for a wrong type.
    """
    if isinstance(previous, RunResult):
        previous = previous.session_params
    if previous is None or isinstance(previous, (Mapping, bytes, ResumableSession)):
        return deserialize(previous)
    if not isinstance(previous, str):
        raise Refused(
            f"previous wants a result, its session_params, or the id of a session, not {type(previous).__name__}"
        )
    if fits(adapter, previous):
        return ResumableSession(adapter.name, previous)
    return deserialize(previous)


def fits(adapter: HarnessAdapter, session_id: str) -> bool:
    """Return True if this can be an id of that harness. It must never be taken for an option."""
    return (
        0 < len(session_id) <= LONGEST_ID
        and not session_id.startswith("-")
        and re.fullmatch(adapter.session_pattern, session_id) is not None
    )


def decide(adapter: HarnessAdapter, query: Query, previous: object = None) -> Resumption:
    """Decide if `query.resume_session_id`, else the session of `previous`, is continued."""
    known = deserialize(previous)
    wanted = query.resume_session_id or (known.session_id if known else "")
    if not wanted:
        return Resumption()
    if known and known.session_id != wanted:
        known = None  # it speaks of another one
    if known and known.harness != adapter.name:
        return Resumption(refused=f"session {wanted[:60]} is one of {known.harness}, not of {adapter.name}")
    if not adapter.capabilities.resume:
        return Resumption(refused=f"{adapter.name} cannot continue a session")
    if not fits(adapter, wanted):
        return Resumption(refused=f"{wanted[:60]!r} is no session id of {adapter.name}", forget=True)
    if known and known.cwd and os.path.realpath(known.cwd) != os.path.realpath(query.cwd):
        return Resumption(refused=f"session {wanted} worked in {known.cwd}, this run works in {query.cwd}")
    if _can(adapter, wanted, query) is False:
        if _can(adapter, wanted, query._replace(cwd="")) is not False:
            return Resumption(refused=f"session {wanted} worked in another folder than {query.cwd}")
        return Resumption(refused=f"session {wanted} does not exist any more", forget=True)
    return Resumption(wanted, before=_cost_before(adapter, wanted, query, known))


def _cost_before(adapter: HarnessAdapter, session_id: str, query: Query, known: ResumableSession | None) -> Cost:
    """Return the session's cost so far: from its own record, including a person's part, else from ours."""
    before = Cost()
    if adapter.cumulative and not _is_elsewhere(query):
        before = _asked(adapter, Cost(), adapter.session_cost, session_id)
    if before != Cost():
        return before
    if known:
        return known.cost
    return Cost()


def _is_elsewhere(query: Query) -> bool:
    """Return True if the child may keep its sessions in another place than this process would look at."""
    return any(name == "HOME" or name.endswith(("_HOME", "_DIR", "_SESSIONS")) for name in query.env)


def _can(adapter: HarnessAdapter, session_id: str, query: Query) -> bool | None:
    if _is_elsewhere(query):
        return None  # only trying tells
    return _asked(adapter, None, adapter.can_resume, session_id, query.cwd)


def _asked(adapter: HarnessAdapter, otherwise: T, question: Callable[..., T], *words: object) -> T:
    """Return an adapter's answer, or `otherwise` where it fails, which is recorded."""
    try:
        return question(*words)
    except Exception as error:
        state.record(RUNTIME, adapter.name, state.describe(error))
        return otherwise


LONGEST_MESSAGE = 1000


def error_in(adapter: HarnessAdapter, ending: Ending) -> tuple[str, str] | None:
    """Return the adapter's view of the error, or that of the general rules if the adapter itself fails."""
    return _asked(adapter, outcome.error_of(ending), adapter.error_of, ending)


def is_unknown_session(adapter: HarnessAdapter, ending: Ending) -> bool:
    """Return True if the run failed because the session to continue does not exist."""
    return _asked(adapter, False, adapter.unknown_session, ending)


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


# The changes that a run has made in its folder: files, and commits.
#
# Git is asked before and after. In a shared checkout, the changes of others are left out where they are known: a file
# in another session's journal that no edit of the run's own touched; and commits, if the run has carried out no git
# command. Files that git ignores are not counted, nor is anything outside of the checkout but the run's own edits.

SECONDS = 3.0  # for each question to git
MOST_FILES, MOST_COMMITS = 200, 50
LONGEST_SUBJECT = 120  # characters
WRITES = ("wrote", "will")


class ChangeWatch:
    """Watches one run that works in `folder`, from before its child starts. Nothing here raises."""

    def __init__(self, folder: str):
        self._folder = os.path.abspath(folder)
        self._began = time.time_ns()
        self._top = _line(["rev-parse", "--show-toplevel"], self._folder)
        self._head = self._commit()
        self._dirty = self._states()
        self._open: dict[str, list[str]] = {}  # call id -> files that it edits
        self._edited: set[str] = set()
        self._speaks_of_git = False
        self._tells_calls = False

    def note(self, event: Event) -> None:
        """Take one event of the run."""
        data = event.data
        if event.kind == events.TOOL_START:
            self._tells_calls = True
            command = commanded(data.get("args"))
            self._speaks_of_git = self._speaks_of_git or "git" in command
            self._open[str(data.get("tool_call_id"))] = edited(data.get("args"))
        elif event.kind == events.TOOL_END:
            files = self._open.pop(str(data.get("tool_call_id")), [])
            if not data.get("is_error"):
                self._edited.update(os.path.realpath(os.path.join(self._folder, file)) for file in files)

    def changes(self, session_id: str | None) -> Changes:
        """Return the changes since the beginning; `session_id` is the run's own."""
        files = set(self._edited)
        head = self._commit()
        if self._top:
            before, after = self._dirty, self._states()
            found = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
            if self._head and head and head != self._head:
                found.update(self._between(self._head, head))
            files |= found - (self._of_others(session_id or "") - files)
        named = sorted(self._named(path) for path in files)
        return Changes(tuple(named[:MOST_FILES]), self._commits(head), max(0, len(named) - MOST_FILES))

    # ------------------------------------------------------------------------------------------ innards

    def _commits(self, head: str) -> tuple[str, ...]:
        if not head or head == self._head or (self._tells_calls and not self._speaks_of_git):
            return ()
        words = ["log", "--reverse", "--format=%h %s", f"--max-count={MOST_COMMITS}"]
        if self._head:
            span = f"{self._head}..{head}"
        else:
            span = head
        return tuple(line[:LONGEST_SUBJECT] for line in _lines([*words, span, "--"], self._folder))

    def _between(self, before: str, after: str) -> Iterator[str]:
        words = ["diff", *repository.NO_PROGRAMS, "--no-renames", "--name-only", "-z", before, after, "--"]
        done = repository.ask(words, self._folder, SECONDS)
        return (os.path.join(self._top, name) for name in done.stdout.split("\0") if name and done.code == 0)

    def _states(self) -> dict[str, str]:
        """The files that are not committed, each with its state."""
        if self._top:
            return {path: state_of(path) for path in changed_in(self._top, self._top, SECONDS) or ()}
        return {}

    def _commit(self) -> str:
        if self._top:
            return _line(["rev-parse", "--verify", "--quiet", "HEAD"], self._folder)
        return ""

    def _of_others(self, session_id: str) -> set[str]:
        """The files below the top that other sessions have written since, as their journals say."""
        found: set[str] = set()
        try:
            for path in others_in(place_of(self._folder), ""):
                try:
                    data = journal.read(path)
                except NotOrdinary:  # no ordinary file
                    continue
                if journal.owner_of(data)[1] == session_id:
                    continue
                entries = journal.entries_below(data, os.path.realpath(self._top), WRITES)
                found.update(entry.key for entry in entries if entry.at_ns >= self._began)
        except (OSError, ValueError):  # no journals
            return found
        return found

    def _named(self, path: str) -> str:
        inside = os.path.relpath(path, os.path.realpath(self._folder))
        is_in_checkout = self._top and path.startswith(os.path.realpath(self._top) + os.sep)
        if inside.startswith("..") and not is_in_checkout:
            return path
        return inside


def _line(words: list[str], folder: str) -> str:
    return next(_lines(words, folder), "")


def _lines(words: list[str], folder: str) -> Iterator[str]:
    done = repository.ask(words, folder, SECONDS)
    return iter(done.stdout.splitlines() if done.code == 0 else ())
