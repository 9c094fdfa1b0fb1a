"""The server's words for models: on joining, for each role, and the prompts that a person can choose."""

from __future__ import annotations

from typing import NamedTuple

JOINED = (
    "You take part in the swarm: other sessions may edit this checkout too.\n\n"
    "Call bootstrap first and deal with unread messages before you take or make work. Edits need no lock; lock_file"
    " keeps a file still for longer, or waits in line for one that a peer has (wait_seconds); call unlock_file as soon"
    " as you are done. Call wait_for_activity only while you wait for a task you handed out, a review, or a lock you"
    " need. Otherwise end your turn: messages wait, and a prompt can wake you."
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
        " complete_task: your work, the files you changed, the tests you ran with their results, the rest to do."
    ),
    "reviewer": (
        'Take reviews with claim_next_task(types=["review"]). Read the change and its task, run its checks; edit'
        " nothing and lock nothing (explain_lock shows files in work). Give your verdict and the needed changes in"
        " complete_task; hand each repair out as a task of type fix with fixes_task_id."
    ),
    "researcher": (
        'Take questions with claim_next_task(types=["research"]). Find out, with sources, and edit nothing. Answer in'
        " the summary of complete_task; put facts for several sessions under a key with kv_set, and name that key."
    ),
}


class Prompt(NamedTuple):
    """A prompt that a person can put into a session, one user message without arguments.

    `name` and `title` stand in the client's menu, `text` is the message.
    """

    name: str
    title: str
    description: str
    text: str


SETUP = """\
Join the swarm with this session, and report its state.

1. Call `whoami`. If it says that you are not registered, call `register` with the absolute path of the
   folder you work in as `directory`. Sessions whose client has the swarm plugin are registered already.
2. Call `bootstrap`. Read the unread messages first; they may change what you should do.
3. Tell me in a few lines: your instance and scope, the other sessions, the locks and their holders, the open tasks,
   and the next step you propose.

Take no task and no lock yet."""

PROTOCOL = """\
Work with the other sessions of this scope by these rules until I say otherwise.

- Begin and resume with `bootstrap`. Answer unread messages before you take on anything.
- Edits need no lock. Lock a file with `lock_file` where it must stay still for longer, and give it back with
  `unlock_file` as soon as that is done.
- Do as a denial says, and never write the file some other way. After a change by another session: read the file again,
  then write. After a lock: do other work, you get a message when the file is free; if you can do nothing without it,
  wait in line (`lock_file` with `wait_seconds`).
- Work for others is a task: `request_task` (or `request_task_batch`), with the files it concerns and what it
  depends on. Take work with `claim_next_task`, report with `report_progress` when it takes long or is blocked, end
  it with `complete_task`: your work, the changed files, the tests and their results.
- A change that matters gets a review: a task of type `review` with `review_of_task_id`. Each finding becomes a
  task of type `fix` with `fixes_task_id`.
- Tell a peer something with `send_message`; use `prompt_peer` when it should look now.
- Call `wait_for_activity` only while others have to finish something for you: a task you handed out, a review you
  asked for, a lock you need. Otherwise end your turn; messages wait for you.
- `swarm_status` names your next step when you are unsure."""

PROMPTS = (
    Prompt("setup", "Join the swarm", "Register this session and report the other sessions, locks and tasks.", SETUP),
    Prompt("protocol", "Work in the swarm", "The rules of working with other sessions, for this session.", PROTOCOL),
)


def for_label(label: str | None) -> tuple[str, ...]:
    """The texts for a session with this label: how to begin, then its role where it has one of these."""
    words = (label or "").split()
    role = next((name for name in ROLES if f"role:{name}" in words), "")
    if role:
        return (JOINED, _BEGIN.format(role=role) + ROLES[role])
    return (JOINED,)
