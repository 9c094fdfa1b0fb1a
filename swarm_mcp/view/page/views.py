"""The kinds of pages: for each its queries, and its template."""

from __future__ import annotations

import os
from collections.abc import Callable
from string import ascii_uppercase
from typing import Any

from swarm_hook_core.json_text import dumps
from swarm_hook_core.naming import UNNAMED, agent_name
from swarm_mcp.answers.people import machines_of, short
from swarm_mcp.answers.timeline import (
    ALTERED,
    MOST,
    NOTICED,
    Happening,
    happening,
    newest,
    refusals,
    through,
    timeline,
    until,
)
from swarm_mcp.answers.work import (
    MESSAGES,
    TASKS,
    about,
    find_task,
    message_row,
    messages,
    task_row,
    tasks,
    worker,
    workers,
)
from swarm_mcp.answers.work import WORKERS as MOST_WORKERS
from swarm_mcp.changes.owners import PERSONS
from swarm_mcp.domain import ENDED, Run, nobody_in, onlooker
from swarm_mcp.errors import SwarmError
from swarm_mcp.locking.explaining import explanation, history
from swarm_mcp.locking.restore import Restoring
from swarm_mcp.runtimes import user_settings
from swarm_mcp.view.overview.cards import HOUR, READ, cards, last_entries, record_marks, session_whole, word
from swarm_mcp.view.overview.now import (
    COUNTED,
    FILES,
    Hold,
    Names,
    Now,
    OwnedFile,
    edit_events,
    lines,
    near,
    now,
    owned_file,
)
from swarm_mcp.view.page.rendering import MARKS, MOST_CHECKOUTS, PERSON, Look, Page, View, colours, numbered, picture

# A file: its locks and waiters, the answer to a write now, and the history of its locks.

MOST_KEPT = 50  # earlier contents
EVENTS, EVENTS_READ = 50, 2000  # that are shown; that are looked through for them, each time that something changes


def _make_file(look: Look) -> Page:
    path, scope = look.asked.get("path"), look.scope
    scopes = look.store.instances.scopes(MOST_CHECKOUTS)
    if not scope and path and not os.path.isabs(path) and len(scopes) == 1:
        (scope,) = scopes
    if not path or not (scope or os.path.isabs(path)):
        return Page("choose_file.html", "A file", {"path": path, "checkouts": [scope] if scope else scopes})
    place = nobody_in(scope or "/", scope)
    folder = scope or _checkout_of(path, scopes)
    why = explanation(look.store, place, path, None, "", look.people.viewer, meets=False, reader_folder=folder)
    if why["write"] and folder:
        why["write"] = _told_near(why["write"], folder.rstrip("/") + "/")
    scope = scope or _checkout_of(why["file"], scopes)
    after = look.asked.get("after")
    log = history(look.store, place, path, look.people.viewer, EVENTS, after, most_read=EVENTS_READ)
    work = look.work_in(scope)
    owned = owned_file(look.store, look.people, scope, why["file"]) if scope in scopes else None
    found = colours(look.store, scope, [one.session for one in owned.owners] if owned else ())
    shown = {
        "path": why["file"],
        "why": f"swarm-mcp why {word(near(why['file'], scope))}",
        "diff": f"swarm-mcp diff {word(near(why['file'], scope))}",
        "is_pattern": bool(why["pattern"]),
        "scope": scope,
        "held": [_held(look, lock, scope) for lock in why["held"]],
        "waiting": [_waiting(look, one) for one in why["waiting"]],
        "not_shown": why.get("not_shown", {}),
        "write": why["write"],
        "owned": owned,
        "colours": found,
        "tags": _tags(owned, found),
        "edits": [one for one in work.edits if one.path == why["file"]],
        "happened": [(happening(one, look.people, scope), one.get("repeated")) for one in log["events"][::-1]],
        "older": log.get("next", ""),
        "is_older": bool(after),
    }
    return Page("file.html", near(why["file"], scope), shown)


def _told_near(write: dict[str, Any], folder: str) -> dict[str, Any]:
    """Return the answer to a write with the paths in `folder` as they are called from there."""
    kinds = {
        kind: {**one, "told": one["told"] and one["told"].replace(folder, "")} for kind, one in write["kinds"].items()
    }
    return {**write, "reason": write["reason"] and write["reason"].replace(folder, ""), "kinds": kinds}


def _tags(owned: OwnedFile | None, found: dict[tuple[str, str], str]) -> dict[str, tuple[str, str]]:
    """Return ``{names of owners: (letter, class of their colour)}`` for the lines of a file."""
    if owned is None:
        return {}
    return {
        one.names: (ascii_uppercase[at % 26], found.get(one.session, PERSON)) for at, one in enumerate(owned.owners)
    }


def _checkout_of(path: str, scopes: list[str]) -> str:
    """Return the innermost of these checkouts that contains a path, or an empty text."""
    return max((one for one in scopes if path.startswith(one.rstrip("/") + "/")), key=len, default="")


def _held(look: Look, lock: dict[str, Any], scope: str) -> dict[str, Any]:
    shown = {**lock, "through": through(lock, lambda path: near(path, scope)), "until": until(lock, look.now)}
    return {**shown, **_who(look, lock, lock["owner_label"])}


def _waiting(look: Look, one: dict[str, Any]) -> dict[str, Any]:
    return {**one, **_who(look, one, one.get("label"))}


def _who(look: Look, one: dict[str, Any], label: str | None) -> dict[str, Any]:
    """Return ``{id, name, agent}`` of a holder or waiter; strangers have no id."""
    if one.get("hidden"):
        return {"id": "", "name": UNNAMED, "agent": ""}
    look.people.learn(one["instance_id"], label)
    name = look.people.called(one["instance_id"])
    return {"id": one["instance_id"], "name": name, "agent": agent_name(one["agent"]) if one.get("agent") else ""}


FILE = View("/file", "", _make_file, with_work=True)


def _make_kept(look: Look) -> Page:
    path = look.asked.get("path")
    if not os.path.isabs(path) or not look.scope:
        raise SwarmError("it names no file of a checkout")
    found = [one for one in Restoring(look.store, None, path).choices() if one.content]
    title = f"Earlier contents of {near(path, look.scope)}"
    return Page("kept.html", title, {"path": path, "scope": look.scope, "choices": found[:MOST_KEPT]})


KEPT = View("/kept", "", _make_kept)

# Queues: waiters, their obstacles, and the circles of waiters that were found or prevented.

LATELY_SECONDS, LATELY = 86400, 20  # circles of the last day, and their largest number


def _make_queues(look: Look) -> Page:
    found = lines(look.store, look.scope, look.people)
    named = [[(one, look.people.called(one)) for one in ring] for ring in found.circles]
    refused, waited = (
        newest(look.store, look.scope, look.people, look.now - LATELY_SECONDS, LATELY, what)
        for what in ("deadlock", "waited")
    )
    return Page("queues.html", "Queues", {
        "lines": found,
        "circles": named,
        "in_circles": {one for ring in found.circles for one in ring},
        "refused": refused,
        "waited": waited,
    })  # fmt: skip


QUEUES = View("/queues", "Queues", _make_queues)

# Now: a card for each session of each checkout, then the files that they hold, wait for and have edited.

FILES_OF_MANY = 20  # of each checkout, where there are several
REFUSALS, CARDS, CARDS_OF_MANY = 10, 40, 12  # that are shown of one checkout, and of each of several


def _make_now(look: Look) -> Page:
    if look.scope:
        scopes = [look.scope]
    else:
        scopes = look.store.instances.scopes(MOST_CHECKOUTS + 1)
    found = [_card_of(look, scope, len(scopes) > 1) for scope in scopes[:MOST_CHECKOUTS]]
    found = [one for one in found if look.scope or one["now"].sessions or one["now"].files]
    shown = {"checkouts": found, "counted": COUNTED, "is_cut": len(scopes) > MOST_CHECKOUTS, "most": MOST_CHECKOUTS}
    return Page("now.html", "Now", shown)


def _card_of(look: Look, scope: str, is_one_of_many: bool) -> dict[str, Any]:
    work = look.work_in(scope)
    if is_one_of_many:
        limits, most = {"limit": FILES_OF_MANY}, CARDS_OF_MANY
    else:
        limits, most = {}, CARDS
    shown: Now = now(look.store, scope, look.people, work.edits, **limits)
    refused = refusals(look.store, scope, look.people, look.now - HOUR, READ)
    made = cards(look.store, shown, look.people, work, refused)
    asked = _questions(look, scope)
    return {
        "now": shown,
        "cards": made[:most],
        "others": made[most:],
        "urgent": len([card for card in made if card.reasons]) + len(asked),
        "colours": {
            **numbered([*((row.runtime, row.client_id) for row in shown.sessions), *work.shares]),
            PERSONS: PERSON,
        },
        "machines": machines_of(look.store, scope),
        "lowered": user_settings.lowered(scope),
        "questions": asked,
        "is_asked": look.work.get(scope) is None and scope in look.work,
        "held": sum(len(one.holds) for one in shown.files),
        "conflicts": len([one for one in shown.files if one.conflict]),
        "refusals": refused[:REFUSALS],
        "notices": newest(look.store, scope, look.people, look.now - HOUR, REFUSALS, NOTICED, ALTERED),
    }


def _questions(look: Look, scope: str) -> list[dict[str, str]]:
    """Return the questions of tasks to a person, the oldest first."""
    if not look.store.has_questions():
        return []
    waiting = look.store.questions.waiting(onlooker(look.people.viewer, scope))
    return [{"task_id": task.id, "title": task.title, "question": one.question} for task, one in waiting]


NOW = View("/", "Now", _make_now, with_work=True)

# A session: its locks, waits and changes, its tasks and messages, and its events.

SECONDS = 86400  # for as long events are kept


def _make_session(look: Look) -> Page:
    row = look.store.instances.with_evidence(look.asked.get("id"))
    if row:
        scope = row.scope
    else:
        scope = look.scope
    work = look.work_in(scope)
    found = session_whole(look.store, look.asked.get("id"), scope, look.people, look.now - SECONDS, work.edits)
    shown = {"whole": found, "counted": COUNTED, "shares": []}
    if row and row.runtime and row.session_id:
        shown["shares"] = work.shares.get((row.runtime, row.session_id), [])
    return Page("session.html", f"Session {found.name.removeprefix('session ')}", shown)


SESSION = View("/session", "", _make_session, with_work=True)

# The timeline: edits, refusals, locks and sessions, as a picture and as text, up to now or around a moment.

AN_HOUR, DAY = 3600, 86400
SPANS = ((300, "5 minutes"), (1800, "30 minutes"), (AN_HOUR, "hour"), (6 * AN_HOUR, "6 hours"), (DAY, "day"))
TEXTS = 150  # events that are told in words; the picture has more
CLOSE = 300  # seconds around a moment chosen in a longer span


def _make_timeline(look: Look) -> Page:
    length = look.asked.number("span", 0, 60, DAY) or _used_span(look)
    middle = look.asked.number("at", 0, 0, 2**40)
    if middle:
        until = min(look.now, middle + length // 2)
    else:
        until = look.now
    since = (middle or look.now - length // 2) - length // 2
    shown = timeline(look.store, look.scope, look.people, since, max(since, until))
    shown = shown._replace(happenings=_with_edits(look, shown.happenings, since, max(since, until)))
    is_live = until >= look.now
    if is_live:
        waiting = lines(look.store, look.scope, look.people).waiting
    else:
        waiting = []
    drawn = picture(shown, _recent_locks(look), waiting, look.now)
    return Page("timeline.html", "Timeline", {
        "shown": shown, "picture": drawn, "is_live": is_live, "middle": since + length // 2, "length": length,
        "spans": SPANS, "close": min(CLOSE, length), "marks": MARKS, "most": MOST,
        "told": shown.happenings[::-1][:TEXTS], "chosen": look.asked.number("event", 0, 0, 2**62),
    })  # fmt: skip


def _used_span(look: Look) -> int:
    """Return the seconds up to now with all events of the last hour, an hour at most."""
    begin = look.now - AN_HOUR
    found = timeline(look.store, look.scope, look.people, begin, look.now).happenings
    first = min((one.at for one in _with_edits(look, found, begin, look.now)), default=begin)
    return min(AN_HOUR, max(60, -(-(look.now - first + 1) // 60) * 60))


def _with_edits(look: Look, events: list[Happening], since: int, until: int) -> list[Happening]:
    """Return the events with the edits of the same time among them, oldest first."""
    names, found = Names(look.store, look.people), list(events)
    for scope in look.work:
        written = look.work_in(scope).written
        found += edit_events(names, scope, written, since, until + 1, events)
    return sorted(found, key=lambda one: one.at)


def _recent_locks(look: Look) -> list[tuple[str, str, Hold]]:
    """The newest locks that there are, each with its checkout and file."""
    scopes, limit = [look.scope], FILES
    if not look.scope:
        scopes, limit = look.store.instances.scopes(MOST_CHECKOUTS), FILES // 4
    return [
        (scope, file.path, hold)
        for scope in scopes
        for file in now(look.store, scope, look.people, limit=limit).files
        for hold in file.holds
    ]


TIMELINE = View("/timeline", "Timeline", _make_timeline, with_work=True)

# The tasks and messages between sessions, and one task whole.

TASKS_OF_MANY, MESSAGES_OF_MANY = 10, 10  # of each checkout, where there are several; of tasks, in each status
ABOUT, MESSAGES_READ = (
    50,
    200,
)  # messages about one task that are shown; of its checkout, that are looked through for them


def _make_work(look: Look) -> Page:
    if look.scope:
        scopes = [look.scope]
    else:
        scopes = look.store.instances.scopes(MOST_CHECKOUTS)
    found = [_work_of(look, scope, len(scopes) > 1) for scope in scopes]
    found = [one for one in found if look.scope or one["tasks"].by_status or one["messages"].rows]
    return Page("work.html", "Tasks and messages", {"checkouts": found})


def _work_of(look: Look, scope: str, is_one_of_many: bool) -> dict[str, Any]:
    some_tasks, some_messages = (TASKS_OF_MANY, MESSAGES_OF_MANY) if is_one_of_many else (TASKS, MESSAGES)
    if look.scope:
        after = look.asked.get("after")
    else:
        after = ""
    return {
        "scope": scope,
        "tasks": tasks(look.store, scope, look.people, some_tasks),
        "messages": messages(look.store, scope, look.people, after, some_messages),
        "is_older": bool(after),
    }


def _make_task(look: Look) -> Page:
    task = find_task(look.store, onlooker(look.people.viewer, look.scope), look.asked.get("id"))
    found = about(look.store, task, look.people.viewer, MESSAGES_READ)
    related = (
        ("Waits for", task.depends_on or []), ("Part of", [task.parent_task_id]),
        ("Review of", [task.review_of_task_id]), ("Fixes", [task.fixes_task_id]),
    )  # fmt: skip
    shown = {
        "row": task_row(task, look.people),
        "runs": [worker(look.store, run, look.people) for run in found.runs],
        "messages": [message_row(message, look.people) for message in found.messages[:ABOUT]],
        "message_count": len(found.messages),
        "question": next((one["question"] for one in _questions(look, task.scope) if one["task_id"] == task.id), ""),
        "related": [(words, [one for one in ids if one]) for words, ids in related if any(ids)],
    }
    return Page("task.html", f"Task {task.title}", shown)


WORK = View("/work", "Tasks and messages", _make_work)
TASK = View("/task", "", _make_task)

# The agents that were run and their costs, and one of them with its record so far.

WORKERS_OF_MANY = 10  # of each checkout, where there are several
ENTRIES = 100  # of a transcript, the last ones
_TITLES = {
    "init": "Begins", "assistant": "Says", "thinking": "Thinks", "user": "Is told", "result": "Ends",
    "stderr": "Standard error", "stdout": "Standard output", "system": "Note",
}  # fmt: skip


def _make_workers(look: Look) -> Page:
    if look.scope:
        scopes = [look.scope]
    else:
        scopes = look.store.instances.scopes(MOST_CHECKOUTS)
    if len(scopes) > 1:
        limit = WORKERS_OF_MANY
    else:
        limit = MOST_WORKERS
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


WORKERS_VIEW = View("/workers", "Workers", _make_workers)
WORKER = View("/worker", "", _make_one)
