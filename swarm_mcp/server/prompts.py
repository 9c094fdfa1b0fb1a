"""Prompts that a person can put into a session: one user message each, without arguments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Prompt:
    """One prompt: its `name` and `title` in the client's menu, and the `text` of its message."""

    name: str
    title: str
    description: str
    text: str


SETUP = """\
Join the swarm with this session and find out where things stand.

1. Call `whoami`. If it says that you are not registered, call `register` with the absolute path of the
   folder you work in as `directory`. Sessions whose client has the swarm plugin are registered already.
2. Call `bootstrap`. Read the unread messages first; they may change what you should do.
3. Tell me in a few lines: your instance and scope, which other sessions are here, what is locked and by whom,
   which open tasks there are, and what you would do next.

Take no task and no lock yet."""

PROTOCOL = """\
Work with the other sessions of this scope by these rules until I say otherwise.

- Begin and resume with `bootstrap`. Answer unread messages before you take on anything.
- Lock a file with `lock_file` before work on it that must not be disturbed, and give it back with
  `unlock_file` as soon as that is done. A quick edit of a file that nobody holds needs no lock.
- A denied write is final until the file is free. Do other work; you get a message when it is released. Where
  nothing can be done without it, wait in line: `lock_file` with `wait_seconds`. Never write the file some other way.
- Work for others is a task: `request_task` (or `request_task_batch`), with the files it concerns and what it
  depends on. Take work with `claim_next_task`, report with `report_progress` when it takes long or is blocked, end
  it with `complete_task`: what you did, which files changed, which tests ran with what result.
- A change that matters gets a review: a task of type `review` with `review_of_task_id`. What it finds becomes a
  task of type `fix` with `fixes_task_id`.
- Tell a peer something with `send_message`; use `prompt_peer` when it should look now.
- Call `wait_for_activity` only while you are responsible for something that others have to finish: a task you
  handed out, a review you asked for, a lock you need. Otherwise end your turn; messages wait for you.
- `swarm_status` names your next step when you are unsure."""

PROMPTS = (
    Prompt("setup", "Join the swarm", "Register this session and report who is here and what is going on.", SETUP),
    Prompt("protocol", "Work in the swarm", "The rules of working with other sessions, for this session.", PROTOCOL),
)
