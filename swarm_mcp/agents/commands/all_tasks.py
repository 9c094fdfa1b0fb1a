"""``swarm-mcp worker dispatch --all``: progress while many tasks are worked on, and the summary at the end."""

from __future__ import annotations

from collections import Counter
from typing import Any

from swarm_mcp.agents.dispatch import task_trees
from swarm_mcp.agents.dispatch.all_tasks import AllTasks, TaskEnd, is_well
from swarm_mcp.agents.dispatch.completion import ALL
from swarm_mcp.agents.dispatch.control import named_task
from swarm_mcp.agents.dispatch.nursery import Nursery
from swarm_mcp.agents.dispatch.request import DispatchRequest
from swarm_mcp.answers.views import short
from swarm_mcp.cli.arguments import Arguments
from swarm_mcp.cli.output import complain, flush, listing, say, show
from swarm_mcp.cli.progress import Progress
from swarm_mcp.cli.reader import Reader
from swarm_mcp.cli.words import clause, dollars, span
from swarm_mcp.domain.message import Message
from swarm_mcp.domain.session import Session
from swarm_mcp.domain.task import DONE, FAILED, Task
from swarm_mcp.store import Store

LONGEST = 200  # characters of a task's result in a line


def dispatch_all(args: Arguments, store: Store, requester: Session, request: DispatchRequest, reader: Reader) -> int:
    """See all tasks of the requester's scope done; 0 where all of them are, else 1. Raises Refused."""
    with Progress(args.json) as progress, Nursery() as nursery:

        def tell(task: Task, words: str) -> None:
            progress.end(f"{short(task.id)} {words}: {task.title}{_why_failed(task)}", short(task.id))

        work = AllTasks(store, requester, request, args.number("--max"), _parent(args, store, requester), tell, nursery)
        for warning in work.warnings:
            complain(f"swarm-mcp dispatch: {warning}")
        try:
            with store.changes() as changes:
                while not work.advance(store):
                    progress.note(_counted(work))
                    changes.wait(work.seconds_left())
        except KeyboardInterrupt:
            progress.end()
            progress.say(
                "running workers go on; swarm-mcp worker dispatch --all waits for them again, and starts the others"
            )
            raise
        progress.end()
    ends = work.ends(store)
    mail = [message for end in ends for message in store.messages.take(requester, ALL, about=end.task.id)]
    if args.json:
        show(_answer(ends, work.stopped, mail))
    else:
        _say_ends(ends, work.stopped, mail, reader)
    if flush():  # messages count as delivered once the output is written
        store.messages.acknowledge([message.id for message in mail])
    return int(not is_well(ends))


def _parent(args: Arguments, store: Store, requester: Session) -> str:
    reference = args.value("--parent-task")
    if not reference:
        return ""
    return named_task(store, requester, reference).id


def _counted(work: AllTasks) -> str:
    counts = work.counts()
    done, running = f"{counts[DONE]} of {counts['all']} done", f"{counts['at work']} at work"
    return f"{done}, {running}" + clause(", {} failed", counts[FAILED])


def _why_failed(task: Task) -> str:
    if task.status != FAILED:
        return ""
    return clause(" ({})", _first_line(task.result))


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0][:LONGEST]


def _answer(ends: list[TaskEnd], stopped: str, mail: list[Message]) -> dict[str, Any]:
    rows = [
        {
            "task_id": end.task.id, "title": end.task.title, "status": end.task.status, "result": end.task.result,
            "workers": end.workers, "tries": end.tries, "took_seconds": end.took, "cost_usd": end.cost_usd,
            "why": end.why or None,
        }
        for end in ends
    ]  # fmt: skip
    counts = dict(Counter(end.task.status for end in ends))
    return {"ok": is_well(ends), "tasks": rows, "counts": counts, "cost_usd": _cost(ends), "stopped": stopped or None,
            "messages": mail}  # fmt: skip


def _cost(ends: list[TaskEnd]) -> float | None:
    costs = [end.cost_usd for end in ends if end.cost_usd is not None]
    if len(costs) < len(ends):
        return None
    return round(sum(costs), 6)


def _say_ends(ends: list[TaskEnd], stopped: str, mail: list[Message], reader: Reader) -> None:
    cells, plain = [], []
    for end in ends:
        row = end.task
        took = cost = tries = None
        if end.workers:
            took = span(end.took)
        if end.workers or end.cost_usd is None:
            cost = dollars(end.cost_usd)
        if end.tries > 1:
            tries = end.tries
        note = end.why
        if not note and row.status != DONE:
            note = _first_line(row.result)
        cells.append((short(row.id), row.status, end.workers or None, tries, took, cost, row.title, note))
        facts = f"workers={end.workers}  tries={end.tries}  {took or '-'}  cost={cost or '-'}"
        plain.append(f"  {short(row.id)}  [{row.status}]  {facts}  {row.title}" + clause("  ({})", note))
    headers = ("id", "status", "workers", "tries", "took", "cost", "title", "note")
    listing(headers, cells, plain, empty="(this scope has no open task)")
    for message in mail:
        if "[auto] " not in (message.content or "")[:80]:
            say(f"message from {reader.called(message.sender)}: {message.content}")
    if not ends:
        return
    counted = Counter(end.task.status for end in ends)
    total = _cost(ends)
    money = "cost unknown"
    if total is not None:
        money = dollars(total)
    say(f"{', '.join(f'{number} {status}' for status, number in counted.items())}; {money}")
    if stopped:
        say(f"no more workers were started: {stopped}")
    if any(end.task.status == DONE and task_trees.of_task(end.task.scope, end.task.id) for end in ends):
        say("next: swarm-mcp worker merge --all")
