"""One task, whole."""

from __future__ import annotations

from swarm_hook_core.wording import duration
from swarm_mcp.agents.commands.work_words import report_lines, run_lines
from swarm_mcp.answers.size import fitted, printed
from swarm_mcp.answers.views import short
from swarm_mcp.answers.work import about, find_task, outcome
from swarm_mcp.cli.arguments import ABSOLUTE, ACTING, TASK, TASKS, Arguments, Usage, Word, verb
from swarm_mcp.cli.output import moment, say, say_prose, show
from swarm_mcp.cli.reader import Reader
from swarm_mcp.domain.message import Message
from swarm_mcp.domain.run import Run
from swarm_mcp.domain.session import onlooker
from swarm_mcp.domain.task import Task
from swarm_mcp.folders import current_scope
from swarm_mcp.sessions.acting import viewer_identity
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
