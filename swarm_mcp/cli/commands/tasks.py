"""Work that sessions ask of each other."""

from __future__ import annotations

from swarm_mcp.answers.people import short
from swarm_mcp.answers.work import find_task
from swarm_mcp.cli import output
from swarm_mcp.cli.arguments import (
    ABSOLUTE,
    ACTING,
    DOING,
    INSTANCES,
    TASK,
    TASKS,
    Arguments,
    Option,
    Usage,
    Word,
    unknown,
    verb,
)
from swarm_mcp.cli.output import answer as print_answer
from swarm_mcp.cli.output import listing
from swarm_mcp.cli.words import PAGES, Reader, printed_page, say_page
from swarm_mcp.domain import STATUSES, TERMINAL, TYPES, Task, onlooker
from swarm_mcp.errors import UsageError
from swarm_mcp.folders import current_scope
from swarm_mcp.locking.acquisition import claim as start
from swarm_mcp.panes import deliver
from swarm_mcp.sessions.acting import (
    acting_session,
    dispatching_session,
    require_person,
    session_named,
    viewer_identity,
)
from swarm_mcp.store import Store


@verb(
    Usage(Option("--status STATUS", "only tasks with this status", choices=STATUSES), *PAGES, ABSOLUTE, *ACTING),
    group=TASK,
)
def tasks(args: Arguments) -> int:
    """tasks: the tasks of this scope

    In order of creation; those that ended stay for a day. Tasks of another identity are not shown.

    example: swarm-mcp task list --status open
    """
    status = args.value("--status")
    scope = current_scope(args.value("--scope"))
    names = ("id", "type", "title", "status", "assignee", "requester", "priority", "created_at")
    with Store(read_only=True) as store:
        identity = viewer_identity(store, args)
        viewer = onlooker(identity, scope)
        found = printed_page(
            args,
            lambda after: store.tasks.walk(viewer, status, after=after, by_age=True),
            lambda task: {**{name: task[name] for name in names}, **_question(store, task)},
            lambda: store.tasks.count(viewer, status),
        )
        return say_page(args, found, lambda: _table(list(map(Task, found.rows)), Reader(args, store, identity)))


def _question(store: Store, task: Task) -> dict[str, str]:
    """Return the question of a task that waits for a person's answer, as a column of its row; else no column."""
    asked = None if task.status in TERMINAL else store.questions.open_of(task.id)
    return {"question": asked.question} if asked else {}


def _table(tasks: list[Task], reader: Reader) -> None:
    cells, plain = [], []
    for task in tasks:
        assignee, made = "-", reader.when(task.created_at)
        if task.assignee:
            assignee = reader.called(task.assignee)
        title, asks = task.title, task.get("question")
        if asks:
            title += f"  asks a person: {asks}"
        cells.append((short(task.id), task.status, task.type, task.priority or None, assignee, made, title))
        facts = f"{task.type}  p{task.priority}  assignee={assignee}  {made}"
        plain.append(f"  {short(task.id)}  [{task.status}]  {facts}  {title}")
    listing(("id", "status", "type", "priority", "assignee", "asked", "title"), cells, plain, empty="(no tasks)")


@verb(
    Usage(
        Word("TYPE", f"{', '.join(TYPES)}; --type TYPE is the same", optional=True, source=TYPES),
        Word("TITLE", "the title", optional=True, repeated=True),
        Option("--type TYPE", hidden=True, source=TYPES),
        Option("--description TEXT", "all facts that the worker needs"),
        Option("--file PATH", "a file that the work is about", repeatable=True),
        Option(
            "--assignee WHO",
            "the session for the task: the number in its name, the beginning of its id, or part of its label",
            source=INSTANCES,
        ),
        Option("--depends-on ID,ID", "tasks that must be done first", source=TASKS),
        Option("--parent-task ID", "the task above this one", source=TASKS),
        Option("--priority N", "a higher one is claimed first (default: 0)"),
        Option("--idempotency-key NAME", "a second request with this name returns the first one's task"),
        Option("--approval-required", "the task cannot be claimed before it is approved"),
        Option("--no-nudge", "do not wake the assignee"),
        Option("--force", "wake the assignee even while it works"),
        *DOING,
    ),
    group=TASK,
)
def request_task(args: Arguments) -> int:
    """request-task: create a task for another session, or for the first to claim it

    example: swarm-mcp task request review "look at the new parser" --file src/parse.py --priority 2
    """
    kind, title = _kind_and_title(args)
    with Store() as store:
        requester = dispatching_session(store, args)
        wanted = args.value("--assignee")
        spec = {
            "type": kind,
            "title": title,
            "description": args.value("--description"),
            "files": args.all("--file"),
            "assignee": wanted and session_named(store, requester.scope, wanted).id,
            "depends_on": [item for item in args.value("--depends-on").split(",") if item.strip()],
            "parent_task_id": args.value("--parent-task"),
            "priority": args.number("--priority"),
            "idempotency_key": args.value("--idempotency-key"),
            "approval_required": args.given("--approval-required"),
        }
        made = store.tasks.request(requester, spec)
        task = made["task"]
        value, verb = {"id": task["id"], "status": task["status"]}, "created"
        if made["existing"]:
            value["existing"], verb = True, "existing"
        value["task"] = task
        for recipient, content in made["notices"]:
            nudge = not args.given("--no-nudge")
            value["prompt"] = deliver(store, requester, recipient, content, nudge, args.given("--force"))
    return print_answer(args, value, f"{verb} task {task['id']} [{task['status']}] {task['title']}")


def _kind_and_title(args: Arguments) -> tuple[str, str]:
    words = list(args.words)
    kind = args.value("--type")
    if not kind and (len(words) > 1 or words[:1] and words[0] in TYPES):
        kind = words.pop(0)
    kind = kind or "other"  # one word alone can only be the title
    if kind not in TYPES:
        raise UsageError(unknown(kind, TYPES, "task type"))
    title = " ".join(words).strip()
    if not title:
        raise UsageError("missing the title: swarm-mcp task request TYPE TITLE...")
    return kind, title


@verb(
    Usage(
        Word("TASK-ID", "the task", source=TASKS, statuses=("open", "claimed")),
        Option("--force", "also while this session has unread messages"),
        *DOING,
    ),
    refuses=True,
    group=TASK,
)
def claim(args: Arguments) -> int:
    """claim: begin a task

    The task must be open, or assigned to this session; its status becomes in_progress. If several sessions claim it, on
    any machine of a team, one of them gets it. Exit 1 if it cannot be claimed, with --json as {"error", ...}.

    example: swarm-mcp task claim 6ff1c928-7a25-430a-b3ff-3033125a34f5
    """
    task_id = args.words[0]
    with Store() as store:
        instance = acting_session(store, args)
        start(store, instance, task_id, args.given("--force"))
    return print_answer(args, {"ok": True, "task_id": task_id}, f"claimed {task_id}")


@verb(
    Usage(
        Word(
            "TASK-ID",
            "the task",
            source=TASKS,
            statuses=("open", "claimed", "in_progress", "blocked", "approval_required"),
        ),
        Option(
            "--status STATUS",
            "how it ended: done or failed, by the session that has the task; or cancelled, also by the one that asked",
            required=True,
            choices=TERMINAL,
        ),
        Option("--note TEXT", "the outcome; it goes to the session that asked"),
        *DOING,
    ),
    refuses=True,
    group=TASK,
)
def update_task(args: Arguments) -> int:
    """update-task: end a task

    Locks that were taken for the task are released. Tasks that waited for it may begin, or are cancelled with it. Exit
    1 where that is not allowed, with --json as {"error"}.

    example: swarm-mcp task end 6ff1c928-7a25-430a-b3ff-3033125a34f5 --status done --note "merged as 4f1a"
    """
    task_id, status = args.words[0], args.value("--status")
    with Store() as store:
        instance = acting_session(store, args)
        ended = store.tasks.end(instance, task_id, status, args.value("--note") or None)
        for recipient, content in [*ended["notices"], *ended["unblocked"]]:
            deliver(store, instance, recipient, content)
    return print_answer(args, {"ok": True, "task_id": task_id, "status": status}, f"task {task_id} -> {status}")


# A person's answer to a worker.


@verb(
    Usage(
        Word(
            "TASK-ID",
            "the task; the beginning of its id will do",
            source=TASKS,
            statuses=("open", "claimed", "in_progress"),
        ),
        Word("TEXT", "the answer", repeated=True),
        *DOING,
    ),
    refuses=True,
    group=TASK,
)
def answer(args: Arguments) -> int:
    """answer: answer the question that a worker asks a person

    `swarm-mcp task list` and `status` show the questions. The worker that waits gets the answer at once, a later one
    with its instructions. Only a person may answer, and each question once. Exit 1 where nobody waits for an answer,
    with --json as {"error"}.

    example: swarm-mcp task answer 6ff1c928 the newer one
    """
    require_person("swarm-mcp task answer", "answers what a person was asked")
    with Store() as store:
        actor = acting_session(store, args)
        task = find_task(store, actor, args.words[0])
        asked = store.questions.answer(actor, task.id, " ".join(args.words[1:]))
    value = {"ok": True, "task_id": task.id, "question": asked.question, "answer": asked.answer}
    return output.answer(args, value, f"answered: {asked.question}")
