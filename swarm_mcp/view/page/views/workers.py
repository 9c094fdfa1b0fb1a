"""The agents that were run and their costs, and one of them with its record so far."""

from __future__ import annotations

from collections.abc import Callable

from swarm_hook_core.json_text import dumps
from swarm_mcp.answers.views import short
from swarm_mcp.answers.work import WORKERS as MOST
from swarm_mcp.answers.work import worker, workers
from swarm_mcp.domain.run import ENDED, Run
from swarm_mcp.domain.session import onlooker
from swarm_mcp.errors import SwarmError
from swarm_mcp.view.overview.transcript import last_entries, record_marks
from swarm_mcp.view.page.view import MOST_CHECKOUTS, Look, Page, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WORKERS_OF_MANY = 10  # of each checkout, where there are several
ENTRIES = 100  # of a transcript, the last ones
_TITLES = {
    "init": "Begins", "assistant": "Says", "thinking": "Thinks", "user": "Is told", "result": "Ends",
    "stderr": "Standard error", "stdout": "Standard output", "system": "Note",
}  # fmt: skip


def _make(look: Look) -> Page:
    if look.scope:
        scopes = [look.scope]
    else:
        scopes = look.store.instances.scopes(MOST_CHECKOUTS)
    if len(scopes) > 1:
        limit = WORKERS_OF_MANY
    else:
        limit = MOST
    found = [(scope, workers(look.store, scope, look.people, limit)) for scope in scopes]
    return Page("workers.html", "Workers", {"checkouts": [one for one in found if look.scope or one[1]]})


def _make_one(look: Look) -> Page:
    run = look.store.runs.get(look.asked.get("id"))
    if run is None:
        raise SwarmError("there is no such worker (they are kept for a month)")
    found = last_entries(run, ENTRIES)
    viewer = onlooker(look.people.viewer, run.scope)
    if isinstance(run.result, dict):
        result = run.result
    else:
        result = {}
    if isinstance(run.usage, dict):
        usage = run.usage
    else:
        usage = {}
    shown = {
        "row": worker(look.store, run, look.people),
        "task": look.store.tasks.seen(viewer, run.task_id) if run.task_id else None,
        "entries": [_entry(one) for one in found.entries],
        "is_cut": found.is_cut,
        "usage": [(name.replace("_", " "), number) for name, number in usage.items() if _is_number(number)],
        "answer": result.get("output") or "",
        "error": result.get("error_message") or "",
        "is_over": run.state == ENDED,
    }
    if run.state == ENDED:
        state = None
    else:
        state = _state(run)
    return Page("worker.html", f"Worker {run.harness} {short(run.id)}", shown, state)


def _state(run: Run) -> Callable[[], object]:
    return lambda: record_marks(run)


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of a transcript as it is shown: ``{at, title, text, is_bad}``."""
    kind, name, is_bad = entry["kind"], entry.get("name") or "", bool(entry.get("is_error"))
    title, text = _TITLES.get(kind, kind), entry.get("text") or ""
    if kind == "init":
        text = entry.get("model") or ""
    elif kind == "tool_call":
        title, text = f"Calls {name}", _input(entry.get("input"))
    elif kind == "tool_result":
        title, text = f"{'Error' if is_bad else 'Answer'} of {name or 'a tool'}", entry.get("content") or ""
    elif kind == "system" and name:
        title = f"Note: {name}"
    elif kind == "result":
        text = "\n".join(filter(None, (*entry.get("errors", ()), text)))
    at = entry.get("ts")
    return {"at": at if _is_number(at) else None, "title": title, "text": text, "is_bad": is_bad or kind == "stderr"}


def _input(given: object) -> str:
    """Return a tool's input, one line for each value."""
    if isinstance(given, dict):
        return "\n".join(f"{name}: {one if isinstance(one, str) else _json(one)}" for name, one in given.items())
    if isinstance(given, str):
        return given
    if given is None:
        return ""
    return _json(given)


def _json(value: object) -> str:
    try:
        return dumps(value)
    except (TypeError, ValueError, RecursionError):  # no JSON value
        return str(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


WORKERS = View("/workers", "Workers", _make)
WORKER = View("/worker", "", _make_one)
