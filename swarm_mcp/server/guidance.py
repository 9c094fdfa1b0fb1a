"""What a model is told when it joins: how to begin, and what its role does."""

from __future__ import annotations

JOINED = (
    "You take part in the swarm: other sessions may edit this checkout too.\n\n"
    "Call bootstrap first and deal with unread messages before you take or make work. lock_file keeps a file still"
    " while several edits of yours belong together, or waits in line for one that a peer has (wait_seconds);"
    " unlock_file as soon as they are done. Call wait_for_activity"
    " only while something that you answer for is in others' hands (a task you handed out, a review, a lock you need)."
    " With nothing of that kind left, end your turn: messages wait, and a prompt can wake you. Leave with deregister"
    " only when you will not be back."
)
_BEGIN = "Your role is {role}. The skill `swarm-mcp` has the whole of it (references/{role}.md).\n\n"
ROLES = {
    "planner": (
        'Look at kv_get("owner/planner") and kv_get("plan/latest"): there may be a plan to carry on. Cut the work into'
        " tasks that name their files and say when they are done, with depends_on where order matters (one"
        " request_task_batch for many). Follow them with swarm_status and wait_for_activity; link reviews with"
        " review_of_task_id and repairs with fixes_task_id. When everything has ended, broadcast `[signal:complete]`."
    ),
    "implementer": (
        "Take work with claim_next_task, or claim_task where you know the id. Pass the task's id to lock_file, so that"
        " its end releases the lock; report_progress when it takes long or something stops you. End it with"
        " complete_task: what you did, the files you changed, the tests you ran and how they went, what is left."
    ),
    "reviewer": (
        'Take reviews with claim_next_task(types=["review"]). Read the change and the task it belongs to, run what'
        " checks it; edit nothing and lock nothing (get_file_lock shows what is in work). Say in complete_task whether"
        " it can stay and what must change; hand each repair out as a task of type fix with fixes_task_id."
    ),
    "researcher": (
        'Take questions with claim_next_task(types=["research"]). Find out, with sources, and edit nothing. Answer in'
        " the summary of complete_task; put what several sessions need under a key with kv_set, and name that key."
    ),
}


def for_label(label: str | None) -> tuple[str, ...]:
    """The texts for a session with this label: how to begin, then its role where it has one of these."""
    words = (label or "").split()
    role = next((name for name in ROLES if f"role:{name}" in words), "")
    return (JOINED, _BEGIN.format(role=role) + ROLES[role]) if role else (JOINED,)
