"""The task of a supervisor, and the row of its run with the result."""

from __future__ import annotations

import time
from typing import Any

from swarm_hook_core import state
from swarm_mcp.agents.dispatch.processes import Assignment
from swarm_mcp.agents.dispatch.request import public_text
from swarm_mcp.agents.harness.conclusion import ResumableSession, deserialize, serialize
from swarm_mcp.agents.harness.membership import result_columns
from swarm_mcp.agents.harness.outcome import TRANSIENT, RunResult, answer_text
from swarm_mcp.domain import CANCEL, CANCELLED, IN_PROGRESS, PAUSE, TERMINAL, Question, Session, Task, of_task
from swarm_mcp.errors import NotConfirmed, Refused, SwarmError
from swarm_mcp.locking.acquisition import claim, reserve
from swarm_mcp.panes import deliver
from swarm_mcp.store import Store, runs

LONGEST_RESULT = 30_000  # characters
WORDLESS = "(it ended well, and said nothing)"
# Reasons to stop working on a task, beside CANCEL and PAUSE: another session has it; it has ended.
LOST, OVER = "lost", "over"


def result_text(result: RunResult) -> str:
    """Return the text for the task's result: the answer, or the error's code and words."""
    if not result.is_error:
        return answer_text(result).strip()[:LONGEST_RESULT] or WORDLESS
    text = f"{result.error_category}: {' '.join((result.error_message or 'it did not say why').split())}"
    if result.error_category in TRANSIENT:
        text += "; it passes, and the same work may be dispatched again"
        if result.retry_not_before:
            text += " after " + time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(result.retry_not_before))
    if result.output.strip():
        text += f"\nIts last words: {result.output.strip()}"
    return text[:LONGEST_RESULT]


class WorkerTask:
    """One task, its run, and the worker's instance `me` (its row, once the worker has joined).

    Writing never raises over another session's change of the task: that shows at the next look.
    """

    def __init__(self, store: Store, assignment: Assignment):
        self.store = store
        self.assignment = assignment
        self.me = Session()
        self.paused_by = ""  # the requester of the pause, as ``by <label>``
        self.message_id = 0  # of the message that has its instructions, 0 where that could not be written
        self._unwritten: dict[str, Any] = {}  # columns of the run that could not be written yet

    # ---------------------------------------------------------------- looking

    def task(self) -> Task | None:
        """Return the task now, None if it is gone."""
        return self.store.tasks.get(self.assignment.scope, self.assignment.task_id)

    def control(self) -> tuple[str, str]:
        """Return the request to the run (``store.runs.ask``), and its author as ``by <label>``; empty without one."""
        run = self.store.runs.get(self.assignment.run_id)
        if run is None:
            return "", ""
        request, _, by = (run.control or "").partition(" ")
        return request, by

    def stop_reason(self, task: Task | None) -> str:
        """Return why the worker is to stop (LOST, OVER, CANCEL or PAUSE), empty where it may go on."""
        if task is None:
            return LOST
        if task.status in TERMINAL:
            if task.status == CANCELLED:
                return CANCEL
            return OVER
        if self.belongs_to_another(task):
            return LOST
        request, by = self.control()
        if request not in (CANCEL, PAUSE):
            return ""
        self.paused_by = by
        return request

    def decline_reason(self) -> str:
        """Return why this worker is not wanted, empty where it is.

        A dispatch that was killed after it had started a worker may have been repeated, and have started another.
        """
        task = self.task()
        if task is None or task.status in TERMINAL:
            return "the task has ended"
        held = self.store.spawn_locks.holder(self.assignment.scope, self.assignment.lock)
        if held and runs.reserved_in(held) not in ("", self.me.id):
            return "another worker is being started for the task"
        if self.belongs_to_another(task):
            return "another session has the task"
        return ""

    def belongs_to_another(self, task: Task) -> bool:
        """Return True if another live session has the task."""
        holder = task.assignee
        return holder not in (None, self.me.id) and self.store.instances.live(holder) is not None

    # ---------------------------------------------------------------- the task

    def take(self) -> bool:
        """Reserve the open task for this worker. Returns True if that could be asked, even if another was faster."""
        try:
            reserve(self.store, self.assignment.task_id, self.me)
        except NotConfirmed:  # other machines cannot be asked now
            return False
        except Refused:  # another was faster
            pass
        except SwarmError as error:
            record_fault(str(error))  # the store is busy; there is another try
        return True

    def is_confirmed(self) -> bool:
        """Begin the task; False if other machines cannot be asked about it."""
        try:
            self.begin()
        except NotConfirmed:  # other machines cannot be asked now
            return False
        except SwarmError:
            pass  # the beginning itself reports it then
        return True

    def begin(self) -> Task:
        """Claim the task and return it, in progress. Raises SwarmError."""
        task = self.task()
        if task and task.status == IN_PROGRESS and task.assignee == self.me.id:
            return task
        begun: Task = claim(self.store, self.me, self.assignment.task_id, ignore_unread=True)["task"]
        return begun

    def untold(self) -> list[Question]:
        """Return the questions to a person whose answers the agent does not know."""
        try:
            found: list[Question] = self.store.questions.untold(self.assignment.task_id)
            return found
        except SwarmError as error:
            record_fault(str(error))
            return []

    def note_told(self, answers: list[Question]) -> None:
        """Note that the agent has read these answers in its instructions."""
        ids = [one.id for one in answers if one.answer is not None]
        if not ids:
            return
        try:
            self.store.questions.told(ids)
        except SwarmError as error:
            record_fault(str(error))

    def report(self, task: Task, text: str, **more: object) -> None:
        """Report how far the task is; `more` as ``report_progress`` has it. An empty text reports nothing."""
        if not text or (text == task.progress_summary and not more):
            return
        try:
            self.store.tasks.report_progress(self.me, task.id, text, begun=False, **more)
        except SwarmError:  # the next report may succeed
            pass

    def end(self, status: str, result: str | None) -> None:
        """End the task with `status`, and notify the sessions that wait for it."""
        try:
            task = self.task()
            if task is None or task.assignee != self.me.id:
                self.begin()  # this session was removed meanwhile, and the task with it set free
            ended = self.store.tasks.end(self.me, self.assignment.task_id, status, result)
        except SwarmError as error:
            return record_fault(f"the task could not be ended as {status}: {error}")
        for recipient, content in [*ended["notices"], *ended["unblocked"]]:
            deliver(self.store, self.me, recipient, content)

    def write_instructions_down(self) -> None:
        """Add the instructions to the worker's messages, as read: they document the order, and are not sent again."""
        given = self.assignment
        content = of_task(given.task_id, public_text(given.message))
        try:
            self.message_id = self.store.messages.write_down(given.scope, given.requester_id, self.me.id, content)
        except SwarmError as error:
            record_fault(str(error))

    # ----------------------------------------------------------------- the run

    def note(self, **columns: object) -> None:
        """Write columns of the run's row, and those that could not be written before."""
        self._unwritten = {**self._unwritten, **columns}
        if not self._unwritten:
            return
        try:
            self.store.runs.update(self.assignment.run_id, **self._unwritten)
            self._unwritten = {}
        except SwarmError as error:
            record_fault(str(error))

    def remember(self, harness: str, session_id: str, previous: dict[str, Any] | None) -> None:
        """Write the session's id down at once: if this process is killed, the next worker continues it."""
        before = deserialize(previous)
        session = ResumableSession(harness, session_id, self.assignment.cwd)
        if before and before.session_id == session_id:
            session = session._replace(cost=before.cost)
        self.note(session_id=session_id, session_params=serialize(session))

    def write_result_down(self, result: RunResult) -> None:
        """Write the result of the run into its row."""
        self.note(**result_columns(result))


def record_fault(text: str) -> None:
    """Record something that should not have happened, for ``swarm-mcp doctor``."""
    state.record("run", "supervision", text)
