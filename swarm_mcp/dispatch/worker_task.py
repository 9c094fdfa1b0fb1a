"""The task in a supervisor's charge, and the row of its run: what they say, and what is written into them."""

from __future__ import annotations

from swarm_mcp.dispatch.assignment import Assignment
from swarm_mcp.dispatch.request import scrubbed_text
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.harness.outcome import RunResult
from swarm_mcp.store import spawn_locks
from swarm_mcp.store.runs import CANCEL, PAUSE
from swarm_mcp.store.task_states import CANCELLED, IN_PROGRESS, TERMINAL
from swarm_mcp.workspace.prompting import deliver

# Why a task is not gone on with, beside CANCEL and PAUSE: it is another session's; it has ended.
LOST, OVER = "lost", "over"


class Charge:
    """One task, its run, and the worker's instance `me` (its row, once the worker has joined).

    Writing never raises for what somebody else has done to the task meanwhile: that shows at the next look.
    """

    def __init__(self, store, assignment: Assignment):
        self.store = store
        self.given = assignment
        self.me: dict = {}
        self.asked_by = ""  # who wants the pause, as ``by <label>``
        self._missed: dict = {}  # columns of the run that could not be written yet

    # ---------------------------------------------------------------- looking

    def task(self) -> dict | None:
        """The task as it is."""
        return self.store.tasks.get(self.given.scope, self.given.task_id)

    def control(self) -> str:
        """What the run is asked for (``store.runs.ask``), and behind a blank by whom."""
        return (self.store.runs.get(self.given.run_id) or {}).get("control") or ""

    def told(self, task: dict | None) -> str:
        """Why not to go on, empty where nothing speaks against it."""
        if task is None:
            return LOST
        if task["status"] in TERMINAL:
            return CANCEL if task["status"] == CANCELLED else OVER
        if self.is_anothers(task):
            return LOST
        control, _, by = self.control().partition(" ")
        if control not in (CANCEL, PAUSE):
            return ""
        self.asked_by = by
        return control

    def why_not(self) -> str:
        """Why this worker is not wanted, empty where it is: what a killed dispatch began may have been begun anew."""
        task = self.task()
        if task is None or task["status"] in TERMINAL:
            return "the task has ended"
        held = spawn_locks.holder(self.store, self.given.scope, self.given.lock)
        if held and spawn_locks.reserved_in(held) not in ("", self.me["id"]):
            return "another worker is being started for the task"
        return "another session has the task" if self.is_anothers(task) else ""

    def is_anothers(self, task: dict) -> bool:
        """Whether another session that lives has the task."""
        holder = task["assignee"]
        return holder not in (None, self.me["id"]) and self.store.instances.live(holder) is not None

    # ---------------------------------------------------------------- the task

    def take(self) -> None:
        """Take the open task, unless somebody is faster."""
        try:
            self.store.tasks.reserve(self.given.task_id, self.me)
        except Refused:
            pass
        except SwarmError as error:
            complain(str(error))  # the store is busy; there is another try

    def begin(self) -> dict:
        """The task, in progress. Raises SwarmError."""
        task = self.task() or {}
        if task.get("status") == IN_PROGRESS and task["assignee"] == self.me["id"]:
            return task
        return self.store.tasks.claim(self.me, self.given.task_id, ignore_unread=True)["task"]

    def report(self, task: dict, text: str, **more: object) -> None:
        """Say how far the task is; `more` as ``report_progress`` has it. Nothing where there is no text."""
        if not text or (text == task["progress_summary"] and not more):
            return
        try:
            self.store.tasks.report_progress(self.me, task["id"], text, begun=False, **more)
        except SwarmError:
            pass

    def end(self, status: str, result: str | None) -> None:
        """Take the task to its end, and wake whom that concerns."""
        try:
            if (self.task() or {}).get("assignee") != self.me["id"]:
                self.begin()  # this session was removed meanwhile, and the task with it set free
            ended = self.store.tasks.end(self.me, self.given.task_id, status, result)
        except SwarmError as error:
            return complain(f"the task could not be ended as {status}: {error}")
        for recipient, content in [*ended["notices"], *ended["unblocked"]]:
            deliver(self.store, self.me, recipient, content)

    def write_instructions_down(self) -> None:
        """The instructions among the messages, as read: they show what was asked, and are not sent once more."""
        given = self.given
        content = f"[task:{given.task_id}] {scrubbed_text(given.message)}"
        try:
            with self.store.writing():
                posted = self.store.messages.post(given.scope, given.requester_id, self.me["id"], content)
                self.store.change("UPDATE messages SET read = 1 WHERE id = ?", (posted,))
        except SwarmError as error:
            complain(str(error))

    # ----------------------------------------------------------------- the run

    def note(self, **columns: object) -> None:
        """Change columns of the run, and those that could not be changed before."""
        self._missed = {**self._missed, **columns}
        if not self._missed:
            return
        try:
            self.store.runs.update(self.given.run_id, **self._missed)
            self._missed = {}
        except SwarmError as error:
            complain(str(error))

    def remember(self, harness: str, session_id: str, previous: dict | None) -> None:
        """Which session it is, at once: should this process be killed, the next worker goes on with it."""
        from swarm_mcp.harness.resumption import Session, deserialize, serialize

        before = deserialize(previous)
        session = Session(harness, session_id, self.given.cwd)
        if before and before.session_id == session_id:
            session = session._replace(cost=before.cost)
        self.note(session_id=session_id, session_params=serialize(session))

    def write_result_down(self, result: RunResult) -> None:
        """What came of the run."""
        shown = result.to_dict()
        self.note(
            session_id=result.session_id, session_params=result.session_params, record=result.record,
            cost_usd=result.cost.total_cost_usd, usage=shown["usage"], result=shown,
            **({"model": result.model} if result.model else {}),
        )  # fmt: skip


def complain(text: str) -> None:
    """Leave word of what should not have happened, for ``swarm-mcp doctor``."""
    from swarm_hook_core import faults

    faults.record("run", "supervision", text)
