"""A person's answer to a worker."""

from __future__ import annotations

from swarm_mcp.answers.work import find_task
from swarm_mcp.cli import output
from swarm_mcp.cli.arguments import DOING, TASK, TASKS, Arguments, Usage, Word, verb
from swarm_mcp.sessions.acting import acting_session
from swarm_mcp.sessions.person import require_person
from swarm_mcp.store import Store


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
