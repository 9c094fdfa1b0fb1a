"""Tools about tasks: hand work over, take it, say how it goes, end it."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from swarm_mcp.domain import BATCH_LIMIT, DONE, IN_PROGRESS, STATUSES, TERMINAL, TYPES, UNCHANGED, Question, Session
from swarm_mcp.errors import Refused
from swarm_mcp.locking.acquisition import claim, claim_next
from swarm_mcp.panes import deliver
from swarm_mcp.server.tool import AFTER, LIMIT, Answer, Call, Tool, WaitingCall, flag, listed, number, text, texts


def _prompted(call: Call, me: Session, notices: list[tuple[str, str]]) -> list[dict[str, Any]]:
    return [{"recipient": who, "prompt": deliver(call.store, me, who, content)} for who, content in notices]


def _prompt(call: Call, me: Session, notices: list[tuple[str, str]]) -> dict[str, Any]:
    if notices:
        return {"prompt": _prompted(call, me, notices)[0]["prompt"]}
    return {}


def _request(call: Call, arguments: dict[str, Any]) -> Answer:
    me = call.member()
    try:
        made = call.store.tasks.request(me, arguments)
    except Refused as refusal:
        return Answer(text=str(refusal))  # the contract has these as sentences
    task = made["task"]
    answer = {"task_id": task["id"], "status": task["status"], **({"existing": True} if made["existing"] else {})}
    return Answer({**answer, **_prompt(call, me, made["notices"])})


def _request_batch(call: Call, arguments: dict[str, Any]) -> Answer:
    me = call.member()
    made = call.store.tasks.request_batch(me, arguments["tasks"])
    new = sum(task["new"] for task in made["tasks"])
    answer = {"task_ids": [task["id"] for task in made["tasks"]], "created": new}
    answer.update(existing=len(made["tasks"]) - new, tasks=made["tasks"])
    prompts = _prompted(call, me, made["notices"])
    return Answer({**answer, **({"prompts": prompts} if prompts else {})})


def _claim(call: Call, arguments: dict[str, Any]) -> Answer:
    claim(call.store, call.member(), arguments["task_id"], arguments.get("ignore_unread_messages", False))
    return Answer({"ok": True})


def _claim_next(call: Call, arguments: dict[str, Any]) -> Answer:
    only = arguments.get("types"), arguments.get("files")
    begun = claim_next(call.store, call.member(), *only, arguments.get("ignore_unread_messages", False))
    task = begun["task"]
    return Answer({"ok": True, "task_id": task["id"], "prior_status": begun["prior_status"], "task": task})


def _update(call: Call, arguments: dict[str, Any]) -> Answer:
    me = call.member()
    ended = call.store.tasks.end(me, arguments["task_id"], arguments["status"], arguments.get("result"))
    return Answer({"ok": True, **_told_of_end(call, me, ended)})


def _complete(call: Call, arguments: dict[str, Any]) -> Answer:
    me = call.member()
    ended = call.store.tasks.complete(me, arguments["task_id"], arguments, arguments["status"])
    answer = {"ok": True, "status": ended["task"]["status"], "result": ended["result"]}
    return Answer({**answer, **_told_of_end(call, me, ended)})


def _told_of_end(call: Call, me: Session, ended: dict[str, Any]) -> dict[str, Any]:
    unblocked = _prompted(call, me, ended["unblocked"])
    return {**_prompt(call, me, ended["notices"]), **({"unblocked_prompts": unblocked} if unblocked else {})}


def _report(call: Call, arguments: dict[str, Any]) -> Answer:
    progress = call.store.tasks.report_progress(
        call.member(),
        arguments["task_id"],
        arguments["summary"],
        arguments.get("blocked_reason", UNCHANGED),
        arguments.get("expected_next_update_at", UNCHANGED),
    )
    return Answer({"ok": True, **progress})


async def _ask_person(waiting: WaitingCall, arguments: dict[str, Any]) -> Answer:
    end = time.monotonic() + min(arguments["wait_seconds"], LONGEST_WAIT)
    asked, prompt = await waiting.run(lambda call: _asked(call, arguments.get("task_id", ""), arguments["question"]))
    while asked.answer is None and time.monotonic() < end:
        await waiting.changed(end - time.monotonic())
        asked = await waiting.run(partial(_question_now, asked=asked))
    value = {"ok": True, "question_id": asked.id, "answer": asked.answer, **prompt}
    if asked.answer is None:
        return Answer({**value, "next": NOT_YET})
    return Answer(value, on_sent=lambda store: store.questions.told([asked.id]))


def _asked(call: Call, task_id: str, question: str) -> tuple[Question, dict[str, Any]]:
    me = call.member()
    if not task_id:
        begun = [task.id for task in call.store.tasks.unfinished_of(me) if task.status == IN_PROGRESS]
        if len(begun) != 1:
            raise Refused(f"request_human_input needs task_id: you have {len(begun)} tasks in progress", tasks=begun)
        (task_id,) = begun
    asked, notices = call.store.questions.ask(me, task_id, question)
    return asked, _prompt(call, me, notices)


def _question_now(call: Call, asked: Question) -> Question:
    call.member()  # a session that waits is alive
    return next((one for one in call.store.questions.of_task(asked.task_id) if one.id == asked.id), asked)


def _approve(call: Call, arguments: dict[str, Any]) -> Answer:
    me = call.member()
    approved = call.store.tasks.approve(me, arguments["task_id"])
    return Answer({"ok": True, "status": approved["task"]["status"], **_prompt(call, me, approved["notices"])})


def _get(call: Call, arguments: dict[str, Any]) -> Answer:
    task = call.store.tasks.seen(call.member(), arguments["task_id"])
    if task:
        return Answer(task, whole=True)
    return Answer(text="Task not found")


def _list(call: Call, arguments: dict[str, Any]) -> Answer:
    me, tasks = call.member(), call.store.tasks
    status, assignee, requester = (arguments.get(name, "") for name in ("status", "assignee", "requester"))
    rows = tasks.walk(me, status, assignee, requester, arguments.get("after", ""))
    return listed(rows, lambda task: task, lambda: tasks.count(me, status, assignee, requester), arguments)


LONGEST_WAIT = 3600  # seconds
NOT_YET = (
    "No answer yet. Do what does not depend on it, then call again with the same question. A worker that swarm has"
    " started may end its turn instead, without complete_task: it is continued with the answer."
)
TASK_ID = text("The task's id.")
IGNORE_UNREAD = {
    "type": "boolean",
    "description": "Claim although mail is unread. Only if you know its content; it may be about this work.",
}
NOTE_OR_FACTS = {"anyOf": [{"type": "object", "additionalProperties": {}}, {"type": "string"}]}
SPECIFICATION = {
    "type": text("The kind of work; workers may look for one kind only.", enum=list(TYPES)),
    "title": text("The task in one line."),
    "description": text(
        "All that the worker needs to begin: goal, constraints, what counts as done. It does not know your"
        " conversation."
    ),
    "files": texts("The files that the work will change or look at, absolute or relative to this session's folder."),
    "assignee": text("Instance id of the session that shall do it. Leave it out and the first to claim it does."),
    "priority": number("Higher is claimed first; negative can wait.", default=0),
    "depends_on": texts("Ids of tasks that must be done first. Blocked until then; cancelled if one of them fails."),
    "idempotency_key": text(
        "A name of your own for this task. A second request with the same name changes nothing and returns the"
        " first task, so that it is safe to repeat."
    ),
    "parent_task_id": text("The task that this one is a part of. A link only."),
    "review_of_task_id": text("The task to review. A link only."),
    "fixes_task_id": text("The task to repair. A link only."),
    "approval_required": flag("It cannot be claimed before approve_task."),
    "tracker_required": flag("Its report must tell the fate of its entry in the work tracker."),
    "tracker_provider": text("The work tracker: linear, jira, github_issues."),
}
_DEPENDS_ON = texts("Ids, or $N for the Nth task of this batch, of tasks to be done before this one.")
_ITEM = {"type": "object", "properties": {**SPECIFICATION, "depends_on": _DEPENDS_ON}}
BATCH = {
    "type": "array",
    "items": {**_ITEM, "required": ["type", "title"], "additionalProperties": False},
    "minItems": 1,
    "maxItems": BATCH_LIMIT,
    "description": "The tasks in order. depends_on and the links take $1 for the first of them, $2 for the second.",
}
TESTS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "command": text("The command."),
            "status": text("How it ended.", enum=["passed", "failed", "skipped", "unknown"]),
            "notes": text("Remarks."),
        },
        "required": ["status"],
        "additionalProperties": False,
    },
    "description": "The commands run to check the work, with the outcome of each.",
}

TOOLS = (
    Tool(
        "request_task",
        "Hand work to another session, or leave it in the queue for the first that claims it. You get a message when"
        " it is done or has failed. For several tasks that build on each other use request_task_batch; to have a worker"
        " found or started, use dispatch.",
        SPECIFICATION,
        _request,
        required=("type", "title"),
    ),
    Tool(
        "request_task_batch",
        "Create up to 50 tasks at once, all or nothing: a whole plan, with $N for tasks of the same batch (implement"
        " $1, review that depends on $1). After a mistake nothing is created, and the answer lists every fault.",
        {"tasks": BATCH},
        _request_batch,
        required=("tasks",),
    ),
    Tool(
        "claim_task",
        "Begin one task by its id, open or assigned to you: with `ok` in the answer it is in_progress and yours alone."
        " Refused while you have unread messages. For the most urgent task, call claim_next_task.",
        {"task_id": TASK_ID, "ignore_unread_messages": IGNORE_UNREAD},
        _claim,
        required=("task_id",),
    ),
    Tool(
        "claim_next_task",
        "Begin the most urgent task there is for you: first those assigned to you, then open ones by priority and"
        " age. The answer has the whole task. Refused while you have unread messages; where nothing fits, wait with"
        " wait_for_activity instead of asking again.",
        {
            "types": texts("Only tasks of these kinds.", enum=list(TYPES)),
            "files": texts("Only tasks that name at least one of these files."),
            "ignore_unread_messages": IGNORE_UNREAD,
        },
        _claim_next,
    ),
    Tool(
        "update_task",
        "End a task in a word: done or failed for its assignee, cancelled also for its requester. Locks taken for it"
        " are released, and tasks that waited for it may begin, or are cancelled with it. After real work prefer"
        " complete_task, with a report for the requester.",
        {
            "task_id": TASK_ID,
            "status": text("How it ended.", enum=list(TERMINAL)),
            "result": text("The outcome, or why it failed."),
        },
        _update,
        required=("task_id", "status"),
        is_listed=False,
    ),
    Tool(
        "complete_task",
        "End a task of yours with a report: the work done, the files changed, the tests, and the rest to do. The"
        " requester gets the summary. Locks taken for the task are released, and tasks that waited for it may begin."
        " Call it as soon as the work is finished, also when it failed (status failed).",
        {
            "task_id": TASK_ID,
            "status": text("How it ended.", enum=list(TERMINAL), default=DONE),
            "summary": text("The work done, or why it failed, in a few sentences."),
            "files_changed": texts("Files that were changed, or that matter to the outcome."),
            "tests": TESTS,
            "tracker_update": {
                **NOTE_OR_FACTS,
                "description": "Your change in the work tracker. A task with a tracker entry needs this or"
                " tracker_update_skipped.",
            },
            "tracker_update_skipped": {
                **NOTE_OR_FACTS,
                "description": "Why you could not update the work tracker, and the facts for another session or a"
                " person to do it.",
            },
            "followups": texts("Work that is left to do, to watch or to review."),
        },
        _complete,
        required=("task_id", "summary"),
    ),
    Tool(
        "report_progress",
        "Say how far your task is, so that others can see it without asking. For work of more than a few minutes,"
        " and whenever you are stuck.",
        {
            "task_id": TASK_ID,
            "summary": text("Where it stands now."),
            "blocked_reason": {
                "type": ["string", "null"],
                "description": "The thing you wait for. Null removes an earlier reason.",
            },
            "expected_next_update_at": {
                "anyOf": [{"type": "integer"}, {"type": "null"}],
                "description": "When you will report again, in Unix seconds. Null takes an earlier time back.",
            },
        },
        _report,
        required=("task_id", "summary"),
    ),
    Tool(
        "request_human_input",
        "Ask the person a question about your task, if the work cannot go on without a decision that is theirs. Waits"
        " for the answer, and says so if there is none yet. For other sessions, send_message.",
        {
            "task_id": text("The task that the question is about. Default: your only task in progress."),
            "question": text("The question, with all that a person needs to answer it, and the choices."),
            "wait_seconds": number(
                "Seconds to wait for the answer, less than your client's limit for a tool call.", minimum=0, default=45
            ),
        },
        _ask_person,
        required=("question",),
    ),
    Tool(
        "approve_task",
        "Let a task begin that waits with status approval_required. It becomes open, or its assignee's, or stays"
        " blocked until its dependencies are done.",
        {"task_id": TASK_ID},
        _approve,
        required=("task_id",),
    ),
    Tool(
        "get_task",
        "Everything about one task: description, status, assignee, progress, result.",
        {"task_id": TASK_ID},
        _get,
        required=("task_id",),
        reads=True,
    ),
    Tool(
        "list_tasks",
        "All tasks of this scope in full, most urgent first, with those that ended within the last day; a long list"
        " has `next` to continue (`after`). Filter: the whole list may be long. swarm_status is shorter, with the tasks"
        " that concern you now.",
        {
            "status": text("Only tasks with this status.", enum=list(STATUSES)),
            "assignee": text("Only tasks of the session with this instance id."),
            "requester": text("Only tasks that the session with this instance id asked for."),
            "limit": LIMIT,
            "after": AFTER,
        },
        _list,
        reads=True,
    ),
)
