"""The process that looks after one worker: from the task's claim to its end.

It joins the swarm under the instance id that the dispatch reserved, takes the task, waits for a free slot, has the
harness run, and ends the task with what came of it. Meanwhile it looks twice a second whether the task was cancelled or
the run is to pause. The instance and all it holds live exactly as long as this process.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from swarm_mcp.dispatch import slots, task_trees
from swarm_mcp.dispatch.assignment import Assignment, query_of
from swarm_mcp.dispatch.worker_task import LOST, OVER, Progress, WorkerTask, record_fault, result_text
from swarm_mcp.domain.run import CANCEL, PAUSE, PAUSED, QUEUED, RESUME, RUNNING
from swarm_mcp.domain.task import CANCELLED, CLAIMED, DONE, FAILED, IN_PROGRESS, OPEN, TERMINAL, Task
from swarm_mcp.errors import SwarmError
from swarm_mcp.harness import registry
from swarm_mcp.harness.errors import Unsupported
from swarm_mcp.harness.events import Event
from swarm_mcp.harness.membership import Membership
from swarm_mcp.harness.outcome import FINAL, STUCK, TRANSIENT, UNKNOWN, UNSUPPORTED, Cost, RunResult, added
from swarm_mcp.harness.run import Run
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
POLL_SECONDS = 0.5
# Times what the last look took, until the next: where a hundred workers keep the machine busy, each looks more rarely.
REST, LONGEST_REST_SECONDS = 100, 5.0
BEAT_SECONDS = 5.0
RETRY_SECONDS, LONGEST_RETRY_SECONDS = 15.0, 600.0  # for what passes, where nobody says how long that takes
LEAST_LIMIT = 1e-6  # US dollars
LONGEST_REASON = 300  # characters
WAITS, STARTED = "waits for a free slot", "{} has been started"
UNCONFIRMED = "waits for the team's server, which knows whether another machine has the task"
UNCONFIRMED_SECONDS = 3.0  # between two questions
STOP = "stop"  # a reason to stop, beside those of WorkerTask: this process is to end
ABORT_WORDS = {CANCEL: "the task was cancelled", PAUSE: "it was paused", LOST: "the task is another session's now"}


class Supervisor:
    """Looks after the worker of one assignment. `listener` gets every event of the run, in the run's own thread."""

    def __init__(self, store: Store, assignment: Assignment, listener: Callable[[Event], object] | None = None):
        self.store = store
        self.assignment = assignment
        self.listener = listener
        self.adapter = registry.get(assignment.harness)
        self.task = WorkerTask(store, assignment)
        self.progress = Progress(self.adapter.name)
        self.result: RunResult | None = None  # of the last attempt
        self._reached = self._failure = ""  # how far an earlier attempt came, and why it failed
        self._before = Cost()  # what the attempts have cost so far
        self._retries_left = int(assignment.run.get("retries") or 0)
        self._limit = float(assignment.run.get("max_cost_usd") or 0.0)
        self._signal = ""  # name of the signal that ends this process
        self._beaten_at = 0.0
        self._last_fault = ""  # what the last look at the store met with
        spec: dict[str, Any] = {"id": assignment.run_id, "scope": assignment.scope, "cwd": assignment.cwd}
        spec.update(harness=self.adapter.name, task_id=assignment.task_id, requester=assignment.requester_id)
        spec["model"] = assignment.run.get("model") or None
        self.membership = Membership(spec, assignment.label, assignment.instance_id)
        outer = store.runs.of_instance(assignment.requester_id)
        self.slot = slots.Slot(within=assignment.requester_id if outer else "")

    def carry_out(self) -> None:
        """Do it all, in the main thread. Raises SwarmError where the worker cannot join the swarm."""
        me = self.task.me = self.membership.join()
        before = {number: signal.signal(number, self._end_by_signal) for number in ENDING_SIGNALS}
        try:
            declined = self.task.decline_reason()
            if declined:
                return self.task.note(result={"declined": declined})
            self.task.note(state=QUEUED)  # from here on whoever looks for this worker finds it
            self.task.write_instructions_down()
            self._end_task(self._work())
            self.task.note()  # what could not be written before
        finally:
            self.slot.release()
            slots.forget(me.id)
            self.membership.leave()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end_by_signal(self, number: int, _frame: object) -> None:
        self._signal = signal.Signals(number).name

    # ------------------------------------------------------------- the phases

    def _work(self) -> str:
        """Make attempts until one is not merely paused; return the reason that the last was stopped for, or empty."""
        self._reached = getattr(self.task.task(), "progress_summary", None) or ""
        while True:
            reason = self._wait_for_turn() or self._attempt()
            if reason == PAUSE:
                reason = self._wait_for_resume()
                if not reason:
                    continue
            elif not reason and self._tries_again():
                reason = self._wait_before_retry()
                if not reason:
                    continue
            return reason

    def _tries_again(self) -> bool:
        """Whether what has failed is to be tried once more; then the reason is kept for the worker to be told."""
        if not self.result or not self.result.is_error or self._retries_left <= 0:
            return False
        if self.result.error_category in FINAL or (self._limit and self._money_left() <= 0):
            return False
        self._retries_left -= 1
        self._failure = result_text(self.result)
        return True

    def _money_left(self) -> float:
        """What the run may still cost, US dollars; where nobody knows what it has cost so far, nothing."""
        spent = self._before.total_cost_usd
        if spent is not None:
            return self._limit - spent
        return 0.0

    def _wait_before_retry(self) -> str:
        """Give the slot to others for as long as the endpoint has asked for; return a reason to stop, else empty."""
        assert self.result is not None
        passes = self.result.error_category in TRANSIENT
        if passes:
            wanted = (self.result.retry_not_before or time.time() + RETRY_SECONDS) - time.time()
        else:
            wanted = 0.0
        until = time.monotonic() + min(wanted, LONGEST_RETRY_SECONDS)
        self.slot.release()
        self._reached = self.progress.summary()
        self.task.note(state=QUEUED)
        while True:
            task, reason = self._look()
            if reason or time.monotonic() >= until:
                return "" if reason == PAUSE else reason  # it waits for its turn next, which looks for that
            if task:
                self._report(task, f"tries once more, after: {self._failure}"[:LONGEST_REASON])
            self._rest()

    def _wait_for_turn(self) -> str:
        """Wait until the task may begin and there is a slot; return a reason to stop, empty where the work begins."""
        while True:
            task = self.task.task()
            reason = self._stop_reason(task)
            if reason or task is None:
                return reason or LOST
            if task.status == OPEN:
                if not self.task.take():
                    self._rest(UNCONFIRMED_SECONDS)
                continue
            if task.status in (CLAIMED, IN_PROGRESS):
                if not self._has_slot():
                    self._report(task, WAITS)
                elif self.task.is_confirmed():
                    return ""
                else:
                    self._report(task, UNCONFIRMED)
                    self._rest(UNCONFIRMED_SECONDS)
            self._rest()

    def _attempt(self) -> str:
        """Run the harness to its end; return the reason it was stopped for, empty where it ended by itself."""
        try:
            task = self.task.begin()
            if self.assignment.tree_of:
                task_trees.make(self.assignment.tree_of, task)
                self.store.locks.spread(self.assignment.tree_of)
                os.makedirs(self.assignment.cwd, exist_ok=True)  # git keeps no folder without files
            previous = None
            is_stuck = self.result is not None and self.result.error_category in STUCK
            if not is_stuck and (self.result or not self.assignment.run.get("fresh")):
                previous = self.store.runs.session_of(task.id, self.adapter.name)
            query = query_of(
                self.assignment, self.adapter, task, previous, self._reached, self.task.message_id, self._failure
            )
            if self._limit and self.result:
                query = query._replace(max_cost_usd=max(self._money_left(), LEAST_LIMIT))  # 0 would be none
            run = Run(self.adapter, query, membership=_JoinedMembership(self.membership), previous=previous)
            for listener in (self.progress.listen, self.listener):
                if listener:
                    run.on_event(listener)
            run.start()
        except SwarmError as error:
            if isinstance(error, Unsupported):
                code = UNSUPPORTED
            else:
                code = UNKNOWN
            self.result = RunResult(
                self.assignment.run_id,
                self.adapter.name,
                is_error=True,
                error_category=code,
                error_message=str(error),
                cost=self._before,
            )
            self.task.write_result_down(self.result)
            return ""
        self.task.note(state=RUNNING, record=run.record)
        self._report(task, STARTED.format(self.adapter.name))
        try:
            reason = self._follow(run, previous)
        except BaseException:  # a bug of ours: what the child has may not outlive this process
            run.abort("its supervisor failed")
            run.wait()
            raise
        result = run.wait()
        assert result is not None  # its end has been waited for
        if self.result:
            result = result._replace(attempts=self.result.attempts + result.attempts)
            if self.result.exit_code is not None:  # else nothing was begun that could have cost something
                result = result._replace(cost=added(self._before, result.cost))
        self._before = result.cost
        self.result = result
        self.task.write_result_down(result)
        return reason

    def _follow(self, run: Run, previous: dict[str, Any] | None) -> str:
        """See a run to its end; return the reason that it was stopped for."""
        reason = session = ""
        rest = POLL_SECONDS
        while run.wait(rest) is None:
            looked = time.monotonic()
            task, now = self._look()
            rest = min(max(POLL_SECONDS, REST * (time.monotonic() - looked)), LONGEST_REST_SECONDS)
            if now and now != OVER and not reason:
                reason = now
                run.abort(ABORT_WORDS.get(reason) or f"its supervisor was ended by {self._signal}")
            if run.session_id and run.session_id != session:
                session = run.session_id
                self.task.remember(self.adapter.name, session, previous)
            if task and not now:
                self.task.report(task, self.progress.due(task, self.store.now()))
        return reason

    def _wait_for_resume(self) -> str:
        """Keep the task and give the slot to others; return a reason to stop, empty where the task is resumed."""
        self.slot.release()
        if self.result:
            self._reached = self.progress.summary()
        said = self._reached or WAITS
        task = self.task.task()
        if task:
            self.task.report(task, said, blocked_reason=f"paused {self.task.paused_by}".strip())
        self.task.note(state=PAUSED, control=None)
        while True:
            task = self.task.task()
            reason = self._stop_reason(task)
            if reason and reason != PAUSE:
                return reason
            if self.task.control().partition(" ")[0] == RESUME:
                self.task.note(state=QUEUED, control=None)
                if task:
                    self.task.report(task, said, blocked_reason=None)
                return ""
            self._rest()

    def _end_task(self, reason: str) -> None:
        """End the task, where that is up to this worker."""
        task = self.task.task()
        if reason in (STOP, LOST) or task is None or task.status in TERMINAL:
            return  # without its instance the task is open again, for the next
        if self.store.instances.live(self.task.me.id) is None:
            self.membership.beat()  # somebody has removed it; it has a task to end
        if reason == CANCEL:
            self.task.end(CANCELLED, None)
        elif self.result:
            if self.result.is_error:
                status = FAILED
            else:
                status = DONE
            if self.assignment.tree_of:
                said = self._left_in_tree(task, status)
            else:
                said = ""
            self.task.end(status, "\n\n".join(filter(None, [result_text(self.result), said])))

    def _left_in_tree(self, task: Task, status: str) -> str:
        """Commit what a worker that was done has left in the task's work tree; say in a line how that stands."""
        fault = ""
        try:
            tree = task_trees.of_task(self.assignment.tree_of, task.id)
            if tree is None or not tree.is_there:
                return ""
            if status == DONE:
                try:
                    task_trees.commit_rest(tree, task.title, {"SWARM_MCP_INSTANCE_ID": self.task.me.id})
                except SwarmError as error:  # a hook of the repository's, or nobody's name to commit in
                    fault = f" ({error})"
            return task_trees.told(tree) + fault
        except SwarmError as error:
            return f"work tree of the task: {error}"

    # ------------------------------------------------------------------ parts

    def _stop_reason(self, task: Task | None) -> str:
        if self._signal:
            return STOP
        return self.task.stop_reason(task)

    def _look(self) -> tuple[Task | None, str]:
        """Return the task while it is worked on, and a reason to stop.

        A store that cannot be used, or has lost the task, keeps nobody from working: it may be back by the end.
        """
        task, fault = None, ""
        if self._signal:
            reason = STOP
        else:
            reason = ""
        try:
            task = self.task.task()
            if task:
                reason = self._stop_reason(task)
            else:
                fault = f"task {self.assignment.task_id} is not in the store any more; its worker goes on"
                reason = reason or (CANCEL if self.task.control().partition(" ")[0] == CANCEL else "")
        except SwarmError as error:
            fault = str(error)
        if fault and not self._last_fault:
            record_fault(fault)
        self._last_fault = fault
        return task, reason

    def _has_slot(self) -> bool:
        try:
            return self.slot.take()
        except OSError as error:
            record_fault(f"the slots cannot be used: {error}")
            return True  # which keeps nobody from working

    def _report(self, task: Task, text: str) -> None:
        self.task.report(task, text)
        self.progress.reported(text)

    def _rest(self, seconds: float = POLL_SECONDS / 2) -> None:
        time.sleep(seconds)
        if time.monotonic() - self._beaten_at > BEAT_SECONDS:
            self._beaten_at = time.monotonic()
            self.membership.beat()


class _JoinedMembership:
    """The membership as a run has it: the instance was there before, and stays, for the task has yet to be ended."""

    def __init__(self, membership: Membership):
        self._membership = membership
        self.run_id, self.instance_id = membership.run_id, membership.instance_id
        self.bind, self.beat = membership.bind, membership.beat

    def join(self) -> None:
        """Do nothing: the supervisor has joined."""

    def leave(self) -> None:
        """Give up only what the child's own session leaves."""
        self._membership.free()
