"""Agent command lines: which there are and their fitness, the list of their runs, and the transcript of one."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from swarm_hook_core.json_text import dumps
from swarm_hook_core.state import describe
from swarm_hook_core.untrusted_text import one_line
from swarm_mcp.agents.commands.run import Live
from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.adapter import HarnessAdapter
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.narration import transcript
from swarm_mcp.agents.harness.prompting import slash_commands
from swarm_mcp.agents.harness.record import events_in
from swarm_mcp.agents.harness.registry import environment_test, program_of, version_of
from swarm_mcp.answers.people import short
from swarm_mcp.answers.work import outcome
from swarm_mcp.cli.arguments import (
    ABSOLUTE,
    FOLDERS,
    JSON,
    SCOPE,
    TASKS,
    WORKER,
    Arguments,
    Option,
    Usage,
    Word,
    choice,
    verb,
)
from swarm_mcp.cli.output import complain, flush, listing, say, show, show_with_list
from swarm_mcp.cli.progress import Progress
from swarm_mcp.cli.words import AFTER, Reader, clause, dollars, printed_page, say_page, span
from swarm_mcp.domain import ENDED, STATES, Run
from swarm_mcp.errors import SwarmError
from swarm_mcp.folders import clean, current_scope, here
from swarm_mcp.store import Store

DEFAULT_LIMIT = 20
POLL_SECONDS = 0.5


@verb(
    Usage(
        Option("--state STATE", "only those in this state", choices=STATES),
        Option("--limit N", f"at most N (default: {DEFAULT_LIMIT}; -1 for all)"),
        AFTER,
        ABSOLUTE,
        SCOPE,
        JSON,
    ),
    group=WORKER,
)
def runs(args: Arguments) -> int:
    """runs: the agent runs of this scope, the newest first

    Lists the runs that `swarm-mcp worker run` and `swarm-mcp worker dispatch` have started, with the outcome, the cost
    if it is known, and the task. Runs are kept for a month.

    example: swarm-mcp worker runs --state running
    """
    scope, wanted = current_scope(args.value("--scope")), args.value("--state")
    with Store(read_only=True) as store:
        found = printed_page(
            args, lambda after: store.runs.walk(scope, wanted, after), lambda row: row,
            lambda: store.runs.count(scope, wanted), default=DEFAULT_LIMIT,
        )  # fmt: skip
        reader = Reader(args, store)
    return say_page(args, found, lambda: _table(list(map(Run, found.rows)), reader))


def _table(rows: list[Run], reader: Reader) -> None:
    cells, plain = [], []
    for row in rows:
        state, begun, task = outcome(row), reader.when(row.started_at), short(row.task_id or "")
        end = row.ended_at or int(time.time())
        if row.state == ENDED:
            end = row.ended_at or row.updated_at
        took = cost = ""
        if row.started_at:
            took = span(end - row.started_at)
        if row.cost_usd is not None:
            cost = dollars(row.cost_usd)
        cells.append((short(row.id), state, row.harness, row.model, task, begun, took, cost))
        plain.append(
            f"  {short(row.id)}  [{state}]  {row.harness}  task={task or '-'}"
            f"  {begun}  {took or '-'}  cost={cost or 'unknown'}"
        )
    headers = ("id", "state", "harness", "model", "task", "begun", "took", "cost")
    listing(headers, cells, plain, empty="(no runs)")


@verb(
    Usage(
        Word(
            "TASK|RUN",
            "the task or the run, by an id or its beginning (swarm-mcp worker runs); of a task the newest is shown, and"
            " without it the newest of all",
            source=TASKS,
            optional=True,
        ),
        Option("--follow", "go on until the run has ended", also="-f"),
        SCOPE,
        JSON,
    ),
    group=WORKER,
)
def logs(args: Arguments) -> int:
    """logs: the transcript of an agent run

    Prints the transcript, as `swarm-mcp worker run --watch` does, and at the end the path of the record. --json prints
    the run and its transcript, with --follow one entry of the transcript on each line. SWARM_DEBUG=1 also shows entries
    without a meaning to swarm.

    example: swarm-mcp worker logs 4f1c2b7e -f
    """
    follow = args.given("--follow")
    with Store(read_only=True) as store:
        scope = current_scope(args.value("--scope"))
        if args.words:
            row = store.runs.find(scope, args.words[0])
        else:
            newest = next(store.runs.walk(scope), None)
            if newest is None:
                raise SwarmError("no agent has run here")
            row = newest[1]
    if follow:
        row = _begun(row)
    if not row.record and row.state == ENDED:
        raise SwarmError(f"run {row.id} has no record")
    if not row.record:
        raise SwarmError(f"run {row.id} has no record yet; --follow waits")
    running = _Running(row.id, follow)
    if args.json:
        return _as_json(row, events_in(row.record, running.is_running), follow)
    live = Live.at_terminal(
        sys.stdout, counts=follow, folder=row.cwd or "", model=row.model or "", began=row.started_at
    )

    def is_running() -> bool:
        live.tick()
        return running.is_running()

    for event in events_in(row.record, is_running):
        live.show(event)
        if live.is_closed:
            return 0
    live.close()
    state = row.state
    if follow:
        state = ENDED
    say(f"run {row.id} ({row.harness}, {state}), record: {row.record}")
    return 0


def _as_json(row: Run, events: Iterable[Event], follow: bool) -> int:
    if not follow:
        show_with_list({"run": row, "record": row.record}, "transcript", transcript(events))
        return 0
    for entry in transcript(events):
        say(dumps(entry))
        flush()
    return 0


def _begun(row: Run) -> Run:
    """Wait until the run has a record, or has ended; return its row then."""
    while row.state != ENDED and not row.record:
        time.sleep(POLL_SECONDS)
        row = _row(row.id) or row
    return row


def _row(run_id: str) -> Run | None:
    with Store(read_only=True) as store:
        return store.runs.get(run_id)


class _Running:
    """The state of a run that is followed. It asks the store at most twice a second."""

    def __init__(self, run_id: str, follow: bool):
        self._run_id, self._asked_at, self._is_running = run_id, -POLL_SECONDS, follow

    def is_running(self) -> bool:
        """Return True while the run goes on; always False unless it is followed."""
        now = time.monotonic()
        if self._is_running and now - self._asked_at >= POLL_SECONDS:
            self._asked_at = now
            row = _row(self._run_id)
            self._is_running = row is not None and row.state != ENDED
        return self._is_running


# Listing and checking the agent command lines.

NAME = Word("NAME", "the harness", optional=True, source=())


@verb(
    Usage(choice("list", about="action"), JSON),
    Usage(
        choice("doctor", about="action"),
        NAME,
        Option("--directory DIR", "where it is to run (default: here)", source=FOLDERS),
        Option("--command WORDS", "the command to start instead of its own name"),
        JSON,
    ),
    Usage(choice("models", about="action"), NAME, JSON),
    Usage(
        choice("commands", about="action"),
        NAME,
        Option("--directory DIR", "where it is to run (default: here)", source=FOLDERS),
        JSON,
    ),
    group=WORKER,
)
def harness(args: Arguments) -> int:
    """harness: list and check the agent command lines that can run here

    `list` shows the installed harnesses and the abilities of each. `doctor` checks if one harness, or each installed
    one, could run in DIR; it changes nothing, and exits 1 if one could not. `models` lists the values of --model that
    are known without a network; `commands` lists the skills and commands that a prompt can invoke in DIR, and their
    form.

    SWARM_HARNESS_<NAME> sets the words that start a harness instead of its name; <NAME>_DEFAULT_MODEL sets its model.

    example: swarm-mcp worker harness doctor claude
    """
    actions = {"list": _list, "doctor": _doctor, "models": _models, "commands": _commands}
    return actions[args.words[0]](args, "".join(args.words[1:]))


def _adapters(chosen: str = "") -> list[HarnessAdapter]:
    """Return all adapters that can be loaded, or the chosen one. Errors of the others go to standard error."""
    if chosen:
        return [registry.get(chosen)]

    def broken(name: str, error: Exception) -> None:
        complain(f"swarm-mcp harness: {name} cannot be loaded: {describe(error)}")

    return registry.get_all(broken)


def _list(args: Arguments, _chosen: str) -> int:
    adapters = _adapters()
    programs = {adapter.name: program_of(adapter) for adapter in adapters}
    installed = [adapter for adapter in adapters if programs[adapter.name]]
    with ThreadPoolExecutor() as pool:  # some take a second or two to print their version
        versions = dict(zip([adapter.name for adapter in installed], pool.map(version_of, installed)))
    found: list[dict[str, Any]] = []
    for adapter in adapters:
        program = programs[adapter.name]
        found.append({
            "name": adapter.name,
            "label": adapter.label,
            "installed": bool(program) or not adapter.program,
            "program": program or None,
            "version": versions.get(adapter.name),
            "capabilities": adapter.capabilities._asdict(),
            "use_when": adapter.use_when,
            "doc": adapter.doc,
            "instructions": adapter.instructions,
        })  # fmt: skip
    if args.json:
        show(found)
        return 0
    cells, plain = [], []
    for one in found:
        can = ", ".join(name.replace("_", " ") for name, value in one["capabilities"].items() if value)
        state = one["version"] or "built in"
        if not one["installed"]:
            state = "not installed"
        elif one["program"] and not one["version"]:
            state = "installed"
        cells.append((one["name"], state, can or None))
        plain.append(f"  {one['name']}  [{state}]  {can or '-'}")
    listing(("name", "version", "can"), cells, plain)
    return 0


def _doctor(args: Arguments, chosen: str) -> int:
    config: dict[str, Any] = {"cwd": clean(args.value("--directory") or here())}
    if args.value("--command"):
        config["command"] = args.value("--command")
    adapters = _adapters(chosen)
    if not chosen:
        adapters = [adapter for adapter in adapters if program_of(adapter) or not adapter.program]
    reports = []
    with Progress(args.json) as progress:
        for adapter in adapters:
            progress.begin("checking if it can run here", adapter.name)
            reports.append(environment_test(adapter, config))
            _say_report(reports[-1], progress)
        if not reports:
            progress.say("No harness is installed.")
    if args.json and chosen:
        show(reports[0])
    elif args.json:
        show(reports)
    return int(any(report["status"] == "fail" for report in reports))


def _say_report(report: dict[str, Any], progress: Progress) -> None:
    progress.end(report["status"], report["adapter_type"])
    for check in report["checks"]:
        detail = clause(" ({})", check.get("detail"))
        progress.say(f"  [{check['level'].upper():<5}] {check['code']}: {check['message']}{detail}")
        if check.get("hint") and check["level"] != "info":
            progress.say(f"          {' '.join(check['hint'].split())}")


def _models(args: Arguments, chosen: str) -> int:
    listed = {adapter.name: adapter.listed_models() for adapter in _adapters(chosen)}
    if args.json:
        show(listed.get(chosen, listed))
        return 0
    cells, plain = [], []
    for harness, models in listed.items():
        for model in models:
            short = model.get("short")
            if short == model["name"]:
                short = None
            cells.append((harness, model["name"], short, model.get("context_tokens")))
            plain.append(f"  {harness}  {model['name']}" + clause("  short={}", short))
    listing(("harness", "model", "short", "context tokens"), cells, plain, empty="(no model is known)")
    return 0


def _commands(args: Arguments, chosen: str) -> int:
    cwd = clean(args.value("--directory") or here())
    listed = {one.name: [found.to_dict() for found in slash_commands(one, cwd)] for one in _adapters(chosen)}
    if args.json:
        show(listed.get(chosen, listed))
        return 0
    cells, plain = [], []
    for harness, commands in listed.items():
        for command in commands:
            about = one_line(command["description"])
            cells.append((harness, command["invocation"], command["kind"], about or None))
            plain.append(f"  {harness}  {command['invocation']}  [{command['kind']}]  {about}".rstrip())
    listing(("harness", "in a prompt", "kind", "description"), cells, plain, empty="(none)")
    return 0
