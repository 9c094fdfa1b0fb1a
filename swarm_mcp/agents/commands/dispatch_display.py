"""The progress and the outcome of one dispatch, in lines for people."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from swarm_hook_core.wording import duration
from swarm_mcp.agents.commands.work_words import report_lines, run_lines
from swarm_mcp.agents.dispatch.dispatch import Answered, AwaitingEnd, Finished, Starting, State
from swarm_mcp.agents.dispatch.spawners import SUPERVISED
from swarm_mcp.answers.views import short
from swarm_mcp.cli.progress import Progress
from swarm_mcp.cli.reader import Reader
from swarm_mcp.domain.run import ENDED, Run
from swarm_mcp.store import Store

LAST_WORDS_SECONDS = 15.0  # for an agent to end after it has ended its task
_OUTCOMES = {
    "dispatched": "dispatched task {task} to {recipient}",
    "no_worker": "task {task} waits to be claimed: no live worker for role {role}",
    "already_terminal": "task {task} is already {status}",
    "spawn_in_flight": "task {task} waits for its worker to come up",
    "spawned": "task {task}: {worker} is up",
    "spawn_failed": "task {task} waits to be claimed: no worker could be started: {error}",
}


class DispatchDisplay:
    """Shows the states of a dispatch. `last_run` returns the run that has ended a task, if there is one."""

    def __init__(self, progress: Progress, reader: Reader, last_run: Callable[[str], Run | None]):
        self._progress, self._reader, self._last_run = progress, reader, last_run

    def show(self, state: State) -> None:
        """Print the step that begins, or the outcome, in this state."""
        if isinstance(state, Starting):
            command = state.plan.command
            harness = command.harness or "the default harness"
            self._progress.begin(f"starting a worker ({harness}, {command.spawner})")
        elif isinstance(state, Answered):
            self._end(self._outcome(state.answer))
        elif isinstance(state, AwaitingEnd):
            longest = duration(state.wait.seconds)
            self._progress.begin(f"waiting for task {short(state.wait.task_id)} to end, at most {longest}")
        elif isinstance(state, Finished):
            if "completion" in state.answer:
                self._end(self._ending(state.answer))
            status = state.answer.get("completion", {}).get("status", state.answer["status"])
            if status in ("timeout", "spawn_in_flight"):
                self._progress.say(f"next: {_next_step(state.answer)}")

    def _end(self, lines: list[str]) -> None:
        self._progress.end(lines[0])
        for line in lines[1:]:
            self._progress.say(line)

    def _outcome(self, answer: dict[str, Any]) -> list[str]:
        """Return lines on the worker of the task."""
        if not answer.get("instance_id"):
            worker = "worker"
        else:
            worker = self._reader.called(answer["instance_id"])
        facts = {
            "task": answer["task_id"],
            "recipient": answer.get("recipient") and self._reader.called(answer["recipient"]),
            "role": answer.get("role"),
            "status": answer.get("task", {}).get("status"),
            "worker": worker,
            "error": answer.get("error"),
        }
        lines = [_OUTCOMES[answer["status"]].format(**facts)]
        if answer.get("not_started"):
            lines.append(f"no worker was started: {answer['not_started']}")
        return lines

    def _ending(self, answer: dict[str, Any]) -> list[str]:
        """Return lines on the end of the task: report, changes, cost, messages."""
        task, ended = answer["task_id"], answer["completion"]
        lines = [f"task {task} has not ended yet"]
        if ended["status"] == "missing":
            lines = [f"task {task} is gone"]
        elif ended["status"] == "completed":
            first, *more = report_lines(ended["result"]) or ["(no result)"]
            lines = [f"task {task} {ended['task_status']}: {first}", *more]
            run = self._last_run(task)
            if run:
                lines += [f"  {line}" for line in run_lines(run)]
        messages = [f"message from {self._reader.called(mail['sender'])}: {mail['content']}"
                    for mail in ended["messages"]]  # fmt: skip
        return lines + messages


def last_run(store: Store, scope: str, task_id: str) -> Run | None:
    """Return the last run of a task, or None. Waits a moment for its end: the agent may have ended the task itself."""
    found = store.runs.of_task(scope, task_id)
    if not found:
        return None
    wait_for_end(store, found[0].id, LAST_WORDS_SECONDS)
    return store.runs.get(found[0].id) or found[0]


def wait_for_end(store: Store, run_id: str, seconds: float) -> bool:
    """Wait at most so many seconds for the end of a run; return True if it has ended."""
    until = time.monotonic() + seconds
    with store.changes() as changes:
        while True:
            row = store.runs.get(run_id)
            if row is None or row.state == ENDED:
                return True
            if time.monotonic() >= until:
                return False
            changes.wait(min(1.0, until - time.monotonic()))


def _next_step(answer: dict[str, Any]) -> str:
    """Return the command that shows how the task goes on: the log of its worker, if a supervisor of ours keeps one."""
    task = short(answer["task_id"])
    if answer["status"] == "spawned" and answer["spawner"] in SUPERVISED:
        return f"swarm-mcp worker logs {task} -f"
    return f"swarm-mcp task show {task}"
