"""One dispatched task from its worker's side: what the process does that supervises the worker.

It joins the swarm under the reserved id, takes the task, waits for its turn, has the harness run, and ends the task
with what came of it. Meanwhile it looks twice a second whether the task was cancelled, or the run is to pause.
The instance and all it holds live exactly as long as this process.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from swarm_mcp.dispatch import slots
from swarm_mcp.dispatch.assignment import Assignment
from swarm_mcp.dispatch.progress import Progress, result_text
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.harness import registry
from swarm_mcp.harness.events import Event
from swarm_mcp.harness.membership import Membership
from swarm_mcp.harness.outcome import RunResult
from swarm_mcp.store import spawn_locks
from swarm_mcp.store.runs import CANCEL, PAUSE, PAUSED, QUEUED, RESUME, RUNNING
from swarm_mcp.store.task_states import CANCELLED, CLAIMED, DONE, FAILED, IN_PROGRESS, OPEN, TERMINAL
from swarm_mcp.workspace.prompting import deliver

POLL_SECONDS = 0.5
BEAT_SECONDS = 5.0
WAITS, STARTED = "waits for a free slot", "{} has been started"
# Why a run is not gone on with, beside CANCEL and PAUSE: this process is to end; the task is another's; it has ended.
STOP, LOST, OVER = "stop", "lost", "over"
WHY = {CANCEL: "the task was cancelled", PAUSE: "it was paused", LOST: "the task is another session's now"}


class Supervision:
    """The work of one supervisor. `watch` gets every event of the run, in the run's own thread."""

    def __init__(self, store, assignment: Assignment, watch: Callable[[Event], None] | None = None):
        self.store = store
        self.assignment = assignment
        self.watch = watch
        self.adapter = registry.get(assignment.harness)
        self.progress = Progress(self.adapter.name)
        self.result: RunResult | None = None
        self._stopped = ""
        self._beaten = 0.0
        self._asked_by = ""
        self._reached = ""  # by an earlier run
        spec = {"id": assignment.run_id, "scope": assignment.scope, "cwd": assignment.cwd, "state": QUEUED}
        spec.update(harness=self.adapter.name, task_id=assignment.task_id, requester=assignment.requester_id)
        if assignment.run.get("model"):
            spec["model"] = assignment.run["model"]
        self.membership = Membership(spec, assignment.label, assignment.instance_id, store.path)
        outer = store.runs.of_instance(assignment.requester_id)
        self.slot = slots.Slot(within=assignment.requester_id if outer else "")
        self.me: dict = {}

    def carry_out(self) -> None:
        """Do it all. Raises SwarmError where the worker can have no place in the swarm; then nothing has begun."""
        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            signal.signal(getattr(signal, name), self._be_stopped)
        self.me = self.membership.join()
        try:
            declined = self._why_not()
            if declined:
                self._note(result={"declined": declined})
                return
            self._write_instructions_down()
            told = self._work()
            self._settle(told)
        finally:
            self.slot.release()
            slots.forget(self.me["id"])
            self.membership.leave()

    def _be_stopped(self, number: int, _frame) -> None:
        self._stopped = signal.Signals(number).name

    # ------------------------------------------------------------- the phases

    def _work(self) -> str:
        """Attempt after attempt, until one was not merely paused; why there is no other, empty where it ran through."""
        while True:
            told = self._wait_for_turn()
            if not told:
                told = self._attempt()
            if told != PAUSE:
                return told
            told = self._sit_out()
            if told:
                return told

    def _why_not(self) -> str:
        """Why this worker is not wanted, empty where it is: a killed dispatch may have been done over."""
        task = self._task()
        if task is None or task["status"] in TERMINAL:
            return "the task has ended"
        held = spawn_locks.holder(self.store, self.assignment.scope, self.assignment.lock)
        if held and spawn_locks.reserved_in(held) not in ("", self.me["id"]):
            return "another worker is being started for the task"
        if self._is_anothers(task):
            return "another session has the task"
        self._reached = task["progress_summary"] or ""
        return ""

    def _wait_for_turn(self) -> str:
        """Wait until the task may begin and there is a place to run; why not, empty where it begins."""
        while True:
            task = self._task()
            told = self._told(task)
            if told:
                return told
            if task["status"] == OPEN:
                self._take(task)
            elif task["status"] in (CLAIMED, IN_PROGRESS):
                if self._has_place():
                    return ""
                self._say(task, WAITS)
            self._wait()

    def _attempt(self) -> str:
        """One run of the harness, to its end; what it was ended for, empty where it ended by itself."""
        from swarm_mcp.harness.run import Run

        try:
            task = self._begun()
            query, previous = self._query(task)
            run = Run(self.adapter, query, membership=_Kept(self.membership), previous=previous)
            run.on_event(self.progress.listen)
            if self.watch:
                run.on_event(self.watch)
            run.start()
        except SwarmError as error:
            self.result = RunResult(
                self.assignment.run_id, self.adapter.name, is_error=True, error_category="unknown",
                error_message=str(error),
            )  # fmt: skip
            return ""
        self._note(state=RUNNING, record=str(run.record))
        self._say(task, STARTED.format(self.adapter.name))
        told, session = "", ""
        while (result := run.wait(POLL_SECONDS)) is None:
            task = self._task()
            now = self._told(task)
            if now and now != OVER and not told:
                told = now
                run.abort(WHY.get(told) or f"its supervisor was ended by {self._stopped}")
            if run.session_id and run.session_id != session:
                session = run.session_id
                self._remember(session, previous)
            if task and not told:
                self._report(task, self.progress.due(task, self.store.now()))
        self.result = result
        self._write_result_down(result)
        return told

    def _sit_out(self) -> str:
        """Paused: keep the task, give the place to others; why it is not gone on with, empty where it is."""
        self.slot.release()
        task = self._task()
        if task:
            if self.result:
                self._reached = self.progress.summary()
            said = self._reached or WAITS
            self._report(task, said, blocked_reason=f"paused {self._asked_by}".strip())
        self._note(state=PAUSED, control=None)
        while True:
            task = self._task()
            told = self._told(task)
            if told and told != PAUSE:
                return told
            if self._control().partition(" ")[0] == RESUME:
                self._note(state=QUEUED, control=None)
                if task:
                    self._report(task, task["progress_summary"] or "goes on", blocked_reason=None)
                return ""
            self._wait()

    def _settle(self, told: str) -> None:
        """Bring the task to its end, where that is this worker's to do."""
        task = self._task()
        if told in (STOP, LOST) or task is None or task["status"] in TERMINAL:
            return  # without its instance the task is open again, for the next
        if told == CANCEL:
            self._end(CANCELLED, None)
        elif told != OVER and self.result:
            self._end(FAILED if self.result.is_error else DONE, result_text(self.result))

    # ---------------------------------------------------------------- looking

    def _told(self, task: dict | None) -> str:
        """Why not to go on, empty where nothing speaks against it."""
        if self._stopped:
            return STOP
        if task is None:
            return LOST
        if task["status"] in TERMINAL:
            return CANCEL if task["status"] == CANCELLED else OVER
        if self._is_anothers(task):
            return LOST
        control, _, by = self._control().partition(" ")
        if control in (CANCEL, PAUSE):
            self._asked_by = by  # "by <label>"
            return control
        return ""

    def _control(self) -> str:
        """What the run is asked for (``store.runs.ask``), and behind a blank who asks."""
        return (self.store.runs.get(self.assignment.run_id) or {}).get("control") or ""

    def _task(self) -> dict | None:
        return self.store.tasks.get(self.assignment.scope, self.assignment.task_id)

    def _is_anothers(self, task: dict) -> bool:
        holder = task["assignee"]
        return holder not in (None, self.me["id"]) and self.store.instances.live(holder) is not None

    def _has_place(self) -> bool:
        try:
            return self.slot.take()
        except OSError:
            return True  # a state folder that cannot be used keeps nobody from working

    def _wait(self) -> None:
        time.sleep(POLL_SECONDS / 2)
        if time.monotonic() - self._beaten > BEAT_SECONDS:
            self._beaten = time.monotonic()
            self.membership.beat()

    # ---------------------------------------------------------------- writing

    def _take(self, task: dict) -> None:
        try:
            self.store.tasks.reserve(task["id"], self.me)
        except Refused:
            pass  # somebody was faster; the next look tells who

    def _begun(self) -> dict:
        """The task, in progress. Raises Refused."""
        task = self._task() or {}
        if task.get("status") == IN_PROGRESS and task["assignee"] == self.me["id"]:
            return task
        return self.store.tasks.claim(self.me, self.assignment.task_id, ignore_unread=True)["task"]

    def _end(self, status: str, result: str | None) -> None:
        try:
            if (self._task() or {}).get("assignee") != self.me["id"]:
                self.membership.beat()  # somebody removed this session meanwhile
                self._begun()
            ended = self.store.tasks.end(self.me, self.assignment.task_id, status, result)
        except SwarmError as error:
            return self._complain(f"the task could not be ended as {status}: {error}")
        for recipient, content in [*ended["notices"], *ended["unblocked"]]:
            deliver(self.store, self.me, recipient, content)

    def _say(self, task: dict, text: str) -> None:
        if task["progress_summary"] != text:
            self._report(task, text)
            self.progress.reported(text)

    def _report(self, task: dict, text: str, **more) -> None:
        if not text:
            return
        try:
            self.store.tasks.report_progress(self.me, task["id"], text, begun=False, **more)
        except SwarmError:
            pass  # what happened to the task shows at the next look

    def _note(self, **columns: object) -> None:
        try:
            self.store.runs.update(self.assignment.run_id, **columns)
        except SwarmError as error:
            self._complain(str(error))

    def _write_instructions_down(self) -> None:
        """The instructions among the messages, as read: they show what was asked, and are not sent once more."""
        given = self.assignment
        content = f"[task:{given.task_id}] {given.message}"
        try:
            with self.store.writing():
                posted = self.store.messages.post(given.scope, given.requester_id, self.me["id"], content)
            self.store.messages.acknowledge([posted])
        except SwarmError as error:
            self._complain(str(error))

    def _write_result_down(self, result: RunResult) -> None:
        shown = result.to_dict()
        self._note(
            session_id=result.session_id, session_params=result.session_params, record=result.record,
            cost_usd=result.cost.total_cost_usd, usage=shown["usage"], result=shown,
            **({"model": result.model} if result.model else {}),
        )  # fmt: skip

    def _remember(self, session_id: str, previous: dict | None) -> None:
        """Which session it is, at once: should this process be killed, the next worker goes on with it."""
        from swarm_mcp.harness.resumption import Session, deserialize, serialize

        before = deserialize(previous)
        session = Session(self.adapter.name, session_id, self.assignment.cwd)
        if before and before.session_id == session_id:
            session = session._replace(cost=before.cost)
        self._note(session_id=session_id, session_params=serialize(session))

    def _complain(self, text: str) -> None:
        from swarm_hook_core import faults

        faults.record("run", "supervision", text)

    # ---------------------------------------------------------------- the run

    def _query(self, task: dict):
        """What the harness is asked, and the session that it goes on with (None: a new one)."""
        from swarm_mcp.dispatch.briefing import brief

        previous = None
        if not self.assignment.run.get("fresh") or self.result:
            previous = self.store.runs.session_of(task["id"], self.adapter.name)
        return brief(self.assignment, self.adapter, task, previous, self._reached), previous


class _Kept:
    """The membership as a run has it: the instance was there before, and stays, for the task has yet to be ended."""

    def __init__(self, membership: Membership):
        self._membership = membership

    def __getattr__(self, name: str):
        return getattr(self._membership, name)

    def join(self) -> None:
        """Nothing: it has been done."""

    def leave(self) -> None:
        """Only what the child's own session leaves."""
        self._membership.free()
