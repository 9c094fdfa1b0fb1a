"""One task, whole; and the roles of sessions."""

from __future__ import annotations

import os

from swarm_hook_core.untrusted_text import token
from swarm_hook_core.wording import duration
from swarm_mcp.agents.commands.dispatch import report_lines, run_lines
from swarm_mcp.answers.people import short
from swarm_mcp.answers.size import fitted, printed
from swarm_mcp.answers.work import about, find_task, outcome
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, TASK, TASKS, WORKER, Arguments, Usage, Word, verb
from swarm_mcp.cli.output import moment, say, say_prose, show
from swarm_mcp.cli.words import Reader
from swarm_mcp.domain import Message, Run, Task, onlooker
from swarm_mcp.errors import UnknownInstance
from swarm_mcp.folders import current_scope, here
from swarm_mcp.runtimes import NAMES, hook_config
from swarm_mcp.sessions.acting import find_acting_session, viewer_identity
from swarm_mcp.store import Store


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
