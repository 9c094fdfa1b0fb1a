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
from swarm_mcp.dispatch.briefing import brief
from swarm_mcp.dispatch.progress import Progress, result_text
from swarm_mcp.dispatch.worker_task import LOST, OVER, Charge, complain
from swarm_mcp.errors import SwarmError
from swarm_mcp.harness import registry
from swarm_mcp.harness.demands import Unsupported
from swarm_mcp.harness.events import Event
from swarm_mcp.harness.membership import Membership
from swarm_mcp.harness.outcome import UNKNOWN, UNSUPPORTED, RunResult
from swarm_mcp.harness.run import Run
from swarm_mcp.store.runs import CANCEL, PAUSE, PAUSED, QUEUED, RESUME, RUNNING
from swarm_mcp.store.task_states import CANCELLED, CLAIMED, DONE, FAILED, IN_PROGRESS, OPEN, TERMINAL

ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
POLL_SECONDS = 0.5
BEAT_SECONDS = 5.0
WAITS, STARTED = "waits for a free slot", "{} has been started"
STOP = "stop"  # this process is to end
WHY = {CANCEL: "the task was cancelled", PAUSE: "it was paused", LOST: "the task is another session's now"}


class Supervision:
    """The work of one supervisor. `watch` gets every event of the run, in the run's own thread."""

    def __init__(self, store, assignment: Assignment, watch: Callable[[Event], object] | None = None):
        self.store = store
        self.given = assignment
        self.watch = watch
        self.adapter = registry.get(assignment.harness)
        self.charge = Charge(store, assignment)
        self.progress = Progress(self.adapter.name)
        self.result: RunResult | None = None  # of the last attempt
        self._reached = ""  # by an earlier one
        self._stopped = ""
        self._beaten = 0.0
        self._missed = ""  # what the last look at the store met with
        spec = {"id": assignment.run_id, "scope": assignment.scope, "cwd": assignment.cwd}
        spec.update(harness=self.adapter.name, task_id=assignment.task_id, requester=assignment.requester_id)
        spec["model"] = assignment.run.get("model") or None
        self.membership = Membership(spec, assignment.label, assignment.instance_id, store.path)
        outer = store.runs.of_instance(assignment.requester_id)
        self.slot = slots.Slot(within=assignment.requester_id if outer else "")

    def carry_out(self) -> None:
        """Do it all, in the main thread. Raises SwarmError where the worker can have no place in the swarm."""
        me = self.charge.me = self.membership.join()
        before = {number: signal.signal(number, self._be_stopped) for number in ENDINGS}
        try:
            declined = self.charge.why_not()
            if declined:
                return self.charge.note(result={"declined": declined})
            self.charge.note(state=QUEUED)  # from here on whoever looks for this worker finds it
            self.charge.write_instructions_down()
            self._settle(self._work())
            self.charge.note()  # what could not be written before
        finally:
            self.slot.release()
            slots.forget(me["id"])
            self.membership.leave()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _be_stopped(self, number: int, _frame: object) -> None:
        self._stopped = signal.Signals(number).name

    # ------------------------------------------------------------- the phases

    def _work(self) -> str:
        """Attempt after attempt, until one was not merely paused; what the last was ended for, empty for nothing."""
        self._reached = (self.charge.task() or {}).get("progress_summary") or ""
        while True:
            told = self._wait_for_turn() or self._attempt()
            if told == PAUSE:
                told = self._sit_out()
                if not told:
                    continue
            return told

    def _wait_for_turn(self) -> str:
        """Wait until the task may begin and there is a place to run; why not, empty where it begins."""
        while True:
            task = self.charge.task()
            told = self._told(task)
            if told:
                return told
            if task["status"] == OPEN:
                self.charge.take()
                continue
            if task["status"] in (CLAIMED, IN_PROGRESS):
                if self._has_place():
                    return ""
                self._say(task, WAITS)
            self._rest()

    def _attempt(self) -> str:
        """One run of the harness, to its end; what it was ended for, empty where it ended by itself."""
        try:
            task = self.charge.begin()
            previous = None
            if self.result or not self.given.run.get("fresh"):
                previous = self.store.runs.session_of(task["id"], self.adapter.name)
            query = brief(self.given, self.adapter, task, previous, self._reached)
            run = Run(self.adapter, query, membership=_Kept(self.membership), previous=previous)
            for listener in (self.progress.listen, self.watch):
                if listener:
                    run.on_event(listener)
            run.start()
        except SwarmError as error:
            code = UNSUPPORTED if isinstance(error, Unsupported) else UNKNOWN
            self.result = RunResult(
                self.given.run_id, self.adapter.name, is_error=True, error_category=code, error_message=str(error)
            )
            self.charge.write_result_down(self.result)
            return ""
        self.charge.note(state=RUNNING, record=run.record)
        self._say(task, STARTED.format(self.adapter.name))
        try:
            told = self._follow(run, previous)
        except BaseException:  # a bug of ours: what the child has may not outlive this process
            run.abort("its supervisor failed")
            run.wait()
            raise
        self.result = run.wait() or self.result
        self.charge.write_result_down(self.result)
        return told

    def _follow(self, run: Run, previous: dict | None) -> str:
        """See a run to its end; what it was ended for."""
        told = session = ""
        while run.wait(POLL_SECONDS) is None:
            task, now = self._look()
            if now and now != OVER and not told:
                told = now
                run.abort(WHY.get(told) or f"its supervisor was ended by {self._stopped}")
            if run.session_id and run.session_id != session:
                session = run.session_id
                self.charge.remember(self.adapter.name, session, previous)
            if task and not now:
                self.charge.report(task, self.progress.due(task, self.store.now()))
        return told

    def _sit_out(self) -> str:
        """Paused: keep the task, give the place to others; why it is not gone on with, empty where it is."""
        self.slot.release()
        if self.result:
            self._reached = self.progress.summary()
        said = self._reached or WAITS
        task = self.charge.task()
        if task:
            self.charge.report(task, said, blocked_reason=f"paused {self.charge.asked_by}".strip())
        self.charge.note(state=PAUSED, control=None)
        while True:
            task = self.charge.task()
            told = self._told(task)
            if told and told != PAUSE:
                return told
            if self.charge.control().partition(" ")[0] == RESUME:
                self.charge.note(state=QUEUED, control=None)
                self.charge.report(task, said, blocked_reason=None)
                return ""
            self._rest()

    def _settle(self, told: str) -> None:
        """Bring the task to its end, where that is this worker's to do."""
        task = self.charge.task()
        if told in (STOP, LOST) or task is None or task["status"] in TERMINAL:
            return  # without its instance the task is open again, for the next
        if self.store.instances.live(self.charge.me["id"]) is None:
            self.membership.beat()  # somebody has removed it; it has a task to end
        if told == CANCEL:
            self.charge.end(CANCELLED, None)
        elif self.result:
            self.charge.end(FAILED if self.result.is_error else DONE, result_text(self.result))

    # ------------------------------------------------------------------ parts

    def _told(self, task: dict | None) -> str:
        return STOP if self._stopped else self.charge.told(task)

    def _look(self) -> tuple[dict | None, str]:
        """The task while it is worked on, and why not to go on with it.

        A store that cannot be used, or has lost the task, keeps nobody from working: it may be back by the end.
        """
        task, missed = None, ""
        told = STOP if self._stopped else ""
        try:
            task = self.charge.task()
            if task:
                told = self._told(task)
            else:
                missed = f"task {self.given.task_id} is not in the store any more; its worker goes on"
                told = told or (CANCEL if self.charge.control().partition(" ")[0] == CANCEL else "")
        except SwarmError as error:
            missed = str(error)
        if missed and not self._missed:
            complain(missed)
        self._missed = missed
        return task, told

    def _has_place(self) -> bool:
        try:
            return self.slot.take()
        except OSError:
            return True  # a state folder that cannot be used keeps nobody from working

    def _say(self, task: dict, text: str) -> None:
        self.charge.report(task, text)
        self.progress.reported(text)

    def _rest(self) -> None:
        time.sleep(POLL_SECONDS / 2)
        if time.monotonic() - self._beaten > BEAT_SECONDS:
            self._beaten = time.monotonic()
            self.membership.beat()


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
