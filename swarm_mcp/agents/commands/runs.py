"""Agents at work, and what they have done: one task whole, runs and their transcripts, agent command lines, roles."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from swarm_hook_core.json_text import dumps
from swarm_hook_core.state import describe
from swarm_hook_core.untrusted_text import one_line, token
from swarm_hook_core.wording import duration
from swarm_mcp.agents.commands.run import Live, report_lines, run_lines
from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.adapter import HarnessAdapter
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.narration import transcript
from swarm_mcp.agents.harness.prompting import slash_commands
from swarm_mcp.agents.harness.record import events_in
from swarm_mcp.agents.harness.registry import environment_test, program_of, version_of
from swarm_mcp.answers.people import short
from swarm_mcp.answers.size import fitted, printed
from swarm_mcp.answers.work import about, find_task, outcome
from swarm_mcp.cli.arguments import (
    ABSOLUTE,
    ACTING,
    FOLDERS,
    JSON,
    SCOPE,
    TASK,
    TASKS,
    WORKER,
    Arguments,
    Option,
    Usage,
    Word,
    choice,
    verb,
)
from swarm_mcp.cli.output import complain, flush, listing, moment, say, say_prose, show, show_with_list
from swarm_mcp.cli.progress import Progress
from swarm_mcp.cli.words import AFTER, Reader, clause, dollars, printed_page, say_page, span
from swarm_mcp.domain import ENDED, STATES, Message, Run, Task, onlooker
from swarm_mcp.errors import SwarmError, UnknownInstance
from swarm_mcp.folders import clean, current_scope, here
from swarm_mcp.runtimes import NAMES, hook_config
from swarm_mcp.sessions.acting import find_acting_session, viewer_identity
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


@verb(
    Usage(
        Word("TASK-ID", "the task; the beginning of its id will do", source=TASKS),
        ABSOLUTE,
        *ACTING,
    ),
    group=TASK,
)
def task(args: Arguments) -> int:
    """task: all facts about one task

    The description, requester, assignee, progress and result, the runs of its workers with their cost, and the messages
    about it that are still kept. No message is marked as read. Tasks of another identity are not shown. With --json:
    {"task", "runs", "messages"}.

    example: swarm-mcp task show 6ff1c928
    """
    scope = current_scope(args.value("--scope"))
    with Store(read_only=True) as store:
        identity = viewer_identity(store, args)
        found = find_task(store, onlooker(identity, scope), args.words[0])
        runs, messages = about(store, found, identity)
        shown = fitted({"task": found, "runs": runs, "messages": messages[::-1]}, measure=printed)
        if args.json:
            show(shown)
            return 0
        reader = Reader(args, store, identity)
        _say_task(Task(shown["task"]), reader)
        for run in shown["runs"]:
            _say_run(Run(run), reader)
        _say_messages([Message(row) for row in shown["messages"]], reader)
    return 0


def _say_task(row: Task, reader: Reader) -> None:
    say(f"task {row.id}  [{row.status}]  {row.type}, priority {row.priority}")
    say(f"  {row.title}")
    _say_part("what", row.description)
    assigned = "not assigned"
    if row.assignee:
        assigned = f"assigned to {reader.called(row.assignee)}"
    say(f"  asked by {reader.called(row.requester)}, {reader.when(row.created_at)}; {assigned}")
    if row.files:
        say(f"  files: {', '.join(reader.path(file) for file in row.files)}")
    related = (
        ("waits for", row.depends_on or ()), ("part of", [row.parent_task_id]), ("review of", [row.review_of_task_id]),
        ("fixes", [row.fixes_task_id]),
    )  # fmt: skip
    for words, ids in related:
        if any(ids):
            say(f"  {words}: {', '.join(short(one) for one in ids if one)}")
    progress = "progress"
    if row.progress_updated_at:
        progress += f", {reader.when(row.progress_updated_at)}"
    _say_part(progress, row.progress_summary)
    _say_part("blocked", row.blocked_reason)
    if isinstance(row.expected_next_update_at, (int, float)):
        away = row.expected_next_update_at - reader.now
        if away > 0:
            say(f"  next report: in {duration(away)}")
        else:
            say(f"  next report: {duration(-away)} overdue")
    _say_part("result", "\n".join(report_lines(row.result)))


def _say_part(name: str, text: str | None) -> None:
    """Print a text under its name; nothing for an empty text."""
    lines = (text or "").strip().split("\n")
    if len(lines) == 1 and lines[0]:
        say(f"  {name}: {lines[0]}")
    elif lines[0]:
        say(f"  {name}:")
        say_prose("\n".join(f"    {line}" for line in lines))


def _say_run(row: Run, reader: Reader) -> None:
    begun = moment(row.started_at)
    if row.started_at:
        begun = f"begun {reader.when(row.started_at)}"
    say(f"  run {short(row.id)}: {row.harness}, {outcome(row)}, {begun}")
    for line in run_lines(row):
        say(f"    {line}")


def _say_messages(rows: list[Message], reader: Reader) -> None:
    if rows:
        say(f"  messages ({len(rows)}, the newest last):")
    for row in rows:
        to = "all"
        if row.recipient:
            to = reader.called(row.recipient)
        say(f"    #{row.id}  {reader.when(row.created_at)}  {reader.called(row.sender)} → {to}")
        say_prose("\n".join(f"      {line}" for line in row.content.split("\n")))


# The roles of sessions, and the role of this one.

MODES = {
    "worker": "The default. Takes tasks, edits files, reports results; starts no other sessions.",
    "gateway": "A lead session. Hands tasks out, may start workers, watches results; usually role planner.",
}


ROLES = {
    "planner": "Cuts work into tasks with dependencies, hands them out, and follows them to the end.",
    "implementer": "Takes the next open task, locks the files it needs, edits, and reports.",
    "reviewer": "Reads finished work and names the changes it needs; edits nothing.",
    "researcher": "Finds out facts for others, in the code and outside; edits nothing.",
    "generalist": "Takes any open task. The role of sessions without a role in their label.",
}


@verb(
    Usage(*ACTING),
    group=WORKER,
)
def roles(args: Arguments) -> int:
    """roles: the roles a session can take, and the role of this one

    example: swarm-mcp worker roles
    """
    scope = current_scope(args.value("--scope"))
    with Store(read_only=True) as store:
        try:
            row = find_acting_session(store, args, reads=True)
        except UnknownInstance:  # a person outside of any session may ask as well
            row = None
    label, mode = "", None
    if row:
        label, mode = row.label or "", "worker"
    # The variables that can give a session its role: each runtime's own, and those of all
    prefixes = [hook_config(name).env_prefix for name in NAMES]
    variables = [*(f"SWARM_{prefix}_AGENT_ROLE" for prefix in prefixes), "SWARM_AGENT_ROLE", "SWARM_ROLE"]
    current = {
        "instance_id": row and row.id,
        "label": label or None,
        "routing_role": token(label, "role") or None,
        "mode": token(label, "mode") or mode,
        "env": {name: os.environ.get(name) for name in variables},
        "swarm_role_file": _role_file(scope),
        "cwd": here(),
        "scope": scope,
    }
    if args.json:
        modes = [{"name": name, "summary": text, "invoke": _mode_ways(name)} for name, text in MODES.items()]
        roles = [{"name": name, "summary": text, "invoke": _role_ways(name)} for name, text in ROLES.items()]
        show({"plugin_modes": modes, "routing_roles": roles, "current": current})
        return 0
    for heading, table, ways in (("modes", MODES, _mode_ways), ("roles", ROLES, _role_ways)):
        say(f"{heading}:")
        for name, text in table.items():
            say(f"  {name:<12} {text}")
            say(f"  {'':<12} {'; '.join(ways(name))}")
    say(f"here: role {current['routing_role'] or 'none'}, mode {current['mode'] or 'not registered'}, scope {scope}")
    return 0


def _mode_ways(name: str) -> list[str]:
    return [f"SWARM_ROLE={name}"]


def _role_ways(name: str) -> list[str]:
    return [f"SWARM_AGENT_ROLE={name}", f"echo {name} > .swarm-role"]


def _role_file(scope: str) -> dict[str, str] | None:
    """The nearest ``.swarm-role`` from here up to the scope: ``{path, content}``."""
    folder = here()
    while True:
        path = os.path.join(folder, ".swarm-role")
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return {"path": path, "content": file.read(4096).strip()}
        except OSError:  # no such file here: look one folder above
            parent = os.path.dirname(folder)
        if folder in (scope, parent):
            return None
        folder = parent
