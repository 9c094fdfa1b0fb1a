"""The process that looks after one worker, from the task's claim to its end.

It registers under the instance id that the dispatch reserved, takes the task, waits for a slot, runs the harness, and
ends the task with the result. Twice a second it checks for a cancelled task or a requested pause. The instance and all
its locks live exactly as long as this process.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

from swarm_hook_core import state
from swarm_mcp.agents.dispatch import standing
from swarm_mcp.agents.dispatch.processes import Assignment, query_of
from swarm_mcp.agents.dispatch.request import public_text
from swarm_mcp.agents.harness import events, registry
from swarm_mcp.agents.harness.conclusion import ResumableSession, deserialize, serialize
from swarm_mcp.agents.harness.events import Event
from swarm_mcp.agents.harness.membership import Membership, result_columns
from swarm_mcp.agents.harness.outcome import FINAL, STUCK, TRANSIENT, Cost, RunResult, added, answer_text, code_of_error
from swarm_mcp.agents.harness.run import Run
from swarm_mcp.domain import (
    CANCEL,
    CANCELLED,
    CLAIMED,
    DONE,
    FAILED,
    IN_PROGRESS,
    OPEN,
    PAUSE,
    PAUSED,
    QUEUED,
    RESUME,
    RUNNING,
    TERMINAL,
    Question,
    Session,
    Task,
    of_task,
)
from swarm_mcp.domain import WAITS as WAITS_FOR_ANSWER
from swarm_mcp.errors import NotConfirmed, Refused, SwarmError
from swarm_mcp.locking.acquisition import claim, reserve
from swarm_mcp.panes import deliver
from swarm_mcp.store import Store, runs

# How far a supervised run is, in a line for its task.

PAUSE_SECONDS = 30.0  # between two reports
LONGEST = 300  # characters
LONGEST_NAME = 80  # of a tool
WORKERS_WORD_SECONDS = 300  # seconds that the worker's own report counts


class Progress:
    """Listens to a run; any thread may tell it of events."""

    def __init__(self, harness: str, clock: Callable[[], float] = time.monotonic):
        self._harness = harness
        self._clock = clock
        self._said = self._calls = 0
        self._last_call = self._last_words = ""
        self._context = ""
        self._written: str | None = None
        self._due = 0.0
        self.session_id = ""
        self.model = ""

    def listen(self, event: Event) -> None:
        """Take one event of the run."""
        data = event.data
        if event.kind == events.SESSION_INIT:
            self.session_id, self.model = str(data.get("session_id") or ""), str(data.get("model") or "")
        elif event.kind == events.TOOL_START:
            self._calls += 1
            self._last_call = " ".join(str(data.get("tool_name") or "").split())[:LONGEST_NAME]
        elif event.kind == events.MESSAGE and data.get("role") == "assistant" and not data.get("thinking"):
            self._last_words = " ".join(str(data.get("content") or "").split()) or self._last_words
        elif event.kind == events.CONTEXT_USAGE and isinstance(data.get("context_percent"), (int, float)):
            self._context = f"{data['context_percent']:.0f} % of its context used"

    def summary(self) -> str:
        """Return how far the run is."""
        text = f"{self._harness} is at work"
        if self._calls:
            text = f"{self._calls} tool call{'' if self._calls == 1 else 's'}, the last {self._last_call}"
        if self._context:
            text += f"; {self._context}"
        if self._last_words:
            return f"{self._last_words[: LONGEST - len(text) - 3]} ({text})"
        return text

    def due(self, task: Task, now: int) -> str:
        """Return the summary if a report is due and the worker has made none itself, else empty.

        `task` is the task now, `now` Unix seconds. A returned summary counts as reported.
        """
        if self._clock() < self._due or not (self._calls or self._last_words):
            return ""
        self._due = self._clock() + PAUSE_SECONDS
        current, at = task.progress_summary, task.progress_updated_at
        own = current in (None, self._written)
        if not own and isinstance(at, (int, float)) and now - at < WORKERS_WORD_SECONDS:
            return ""
        text = self.summary()
        if text == current:
            return ""
        self._written = text
        return text

    def reported(self, text: str) -> None:
        """Note that something else has been reported in this run's name."""
        self._written = text
        self._due = 0.0


ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
POLL_SECONDS = 0.5
# The pause between two looks, in multiples of the last look's duration: a hundred workers on a busy machine look more
# rarely.
REST, LONGEST_REST_SECONDS = 100, 5.0
BEAT_SECONDS = 5.0
RETRY_SECONDS, LONGEST_RETRY_SECONDS = 15.0, 600.0  # seconds before a retry of a passing failure without a stated delay
LEAST_LIMIT = 1e-6  # US dollars
LONGEST_REASON = 300  # characters
WAITS, STARTED = "waits for a free slot", "{} has been started"
UNCONFIRMED = "waits for the team's server: another machine may have the task"
UNCONFIRMED_SECONDS = 3.0  # between two questions
# Reasons to stop working on a task, beside CANCEL and PAUSE: another session has it; it has ended; this process is to
# end.
_LOST, _OVER, STOP = "lost", "over", "stop"
ABORT_WORDS = {CANCEL: "the task was cancelled", PAUSE: "it was paused", _LOST: "the task is another session's now"}


def supervise(assignment: Assignment, listener: Callable[[Event], object] | None = None) -> None:
    """Look after the worker of an assignment, in the main thread, to its end.

    Raises SwarmError where the worker cannot join the swarm. Whatever is raised is a fault for ``swarm-mcp doctor``.
    """
    try:
        with Store() as store:
            Supervisor(store, assignment, listener).carry_out()
    except Exception as error:  # a bug of ours, or the store: the traceback goes to a log that no one may read
        _record_fault(f"the supervisor of task {assignment.task_id} has died: {state.describe(error)}")
        raise


class Supervisor:
    """Looks after the worker of one assignment. `listener` gets every event of the run, in the run's own thread."""

    def __init__(self, store: Store, assignment: Assignment, listener: Callable[[Event], object] | None = None):
        self.store = store
        self.assignment = assignment
        self.listener = listener
        self.adapter = registry.get(assignment.harness)
        self.task = _WorkerTask(store, assignment)
        self.progress = Progress(self.adapter.name)
        self.result: RunResult | None = None  # of the last attempt
        self._reached = self._failure = ""  # how far an earlier attempt came, and why it failed
        self._before = Cost()  # cost of the attempts so far
        self._retries_left = int(assignment.run.get("retries") or 0)
        self._limit = float(assignment.run.get("max_cost_usd") or 0.0)
        self._signal = ""  # name of the signal that ends this process
        self._beaten_at = -BEAT_SECONDS
        self._last_fault = ""  # the error of the last look at the store
        spec: dict[str, Any] = {"id": assignment.run_id, "scope": assignment.scope, "cwd": assignment.cwd}
        spec.update(harness=self.adapter.name, task_id=assignment.task_id, requester=assignment.requester_id)
        spec["model"] = assignment.run.get("model") or None
        self.membership = Membership(spec, assignment.label, assignment.instance_id)
        outer = store.runs.of_instance(assignment.requester_id)
        self.slot = standing.Slot(within=assignment.requester_id if outer else "")

    def carry_out(self) -> None:
        """Do it all, in the main thread. Raises SwarmError where the worker cannot join the swarm."""
        me = self.task.me = self.membership.join()
        before = {number: signal.signal(number, self._end_by_signal) for number in ENDING_SIGNALS}
        try:
            declined = self.task.decline_reason()
            if declined:
                return self.task.note(result={"declined": declined})
            self.task.note(state=QUEUED)  # from here on, others can find this worker
            self.task.write_instructions_down()
            self._end_task(self._work())
            self.task.note()  # writes that failed before
        finally:
            self.slot.release()
            standing.forget(me.id)
            self.membership.leave()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end_by_signal(self, number: int, _frame: object) -> None:
        self._signal = signal.Signals(number).name

    # ------------------------------------------------------------- the phases

    def _work(self) -> str:
        """Make attempts until one is not merely paused; return the reason that the last was stopped for, or empty."""
        task = self.task.task()
        if task:
            self._reached = task.progress_summary or ""
        while True:
            reason = self._wait_for_turn() or self._attempt()
            if reason == PAUSE:
                reason = self._wait_for_resume()
                if not reason:
                    continue
            elif not reason and self._has_asked():
                self.slot.release()
                self._reached, self._failure = self.progress.summary(), ""
                self.task.note(state=QUEUED)
                continue
            elif not reason and self._tries_again():
                reason = self._wait_before_retry()
                if not reason:
                    continue
            return reason

    def _has_asked(self) -> bool:
        """Return True if the agent has ended its turn well, and an answer that it asked a person for is to follow."""
        if not self.result or self.result.is_error:
            return False
        return bool(self.task.untold())

    def _tries_again(self) -> bool:
        """Return True for one more attempt after a failure; the reason is kept for the worker's instructions."""
        if not self.result or not self.result.is_error or self._retries_left <= 0:
            return False
        if self.result.error_category in FINAL or (self._limit and self._money_left() <= 0):
            return False
        self._retries_left -= 1
        self._failure = result_text(self.result)
        return True

    def _money_left(self) -> float:
        """Return the run's remaining money in US dollars; nothing if its cost so far is unknown."""
        spent = self._before.total_cost_usd
        if spent is not None:
            return self._limit - spent
        return 0.0

    def _wait_before_retry(self) -> str:
        """Give the slot to others for as long as the endpoint has asked for; return a reason to stop, else empty."""
        assert self.result is not None
        wanted = 0.0
        if self.result.error_category in TRANSIENT:
            wanted = (self.result.retry_not_before or time.time() + RETRY_SECONDS) - time.time()
        until = time.monotonic() + min(wanted, LONGEST_RETRY_SECONDS)
        self.slot.release()
        self._reached = self.progress.summary()
        self.task.note(state=QUEUED)
        while True:
            task, reason = self._look()
            if reason or time.monotonic() >= until:
                # a paused run waits for its slot next, and that wait checks for the pause
                return "" if reason == PAUSE else reason
            if task:
                self._report(task, f"tries once more, after: {self._failure}"[:LONGEST_REASON])
            self._rest()

    def _wait_for_turn(self) -> str:
        """Wait until the task may begin and there is a slot; return a reason to stop, empty where the work begins."""
        while True:
            task = self.task.task()
            reason = self._stop_reason(task)
            if reason or task is None:
                return reason or _LOST
            if task.status == OPEN:
                if not self.task.take():
                    self._rest(UNCONFIRMED_SECONDS)
                continue
            if task.status in (CLAIMED, IN_PROGRESS):
                asked = self.store.questions.open_of(task.id)
                if asked:
                    self.slot.release()
                    if not (task.blocked_reason or "").startswith(WAITS_FOR_ANSWER):  # of an earlier worker
                        self.task.report(task, self._reached or WAITS, blocked_reason=WAITS_FOR_ANSWER + asked.question)
                elif not self._has_slot():
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
            previous, answers = self._session_before(task), self.store.questions.of_task(task.id)
            run = self._started(task, previous, answers)
        except SwarmError as error:
            self.result = RunResult(
                self.assignment.run_id,
                self.adapter.name,
                is_error=True,
                error_category=code_of_error(error),
                error_message=str(error),
                cost=self._before,
            )
            self.task.write_result_down(self.result)
            return ""
        self.task.note(state=RUNNING, record=run.record)
        self._report(task, STARTED.format(self.adapter.name))
        try:
            reason = self._follow(run, previous)
        except BaseException:  # a bug of ours: the child must not outlive this process
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
        if not result.is_error:
            self.task.note_told(answers)
        self.task.write_result_down(result)
        return reason

    def _session_before(self, task: Task) -> dict[str, Any] | None:
        """Return the session that the next attempt continues; None for a new one."""
        if self.result is None:
            is_new = bool(self.assignment.run.get("fresh"))
        else:
            is_new = self.result.error_category in STUCK
        if is_new:
            return None
        return self.store.runs.session_of(task.id, self.adapter.name)

    def _started(self, task: Task, previous: dict[str, Any] | None, answers: list[Question]) -> Run:
        """Start a run on the task. Raises SwarmError."""
        told = (self._reached, self.task.message_id, self._failure, answers, self.store.tasks.approval_of(task))
        query = query_of(self.assignment, self.adapter, task, previous, *told)
        if self._limit and self.result:
            query = query._replace(max_cost_usd=max(self._money_left(), LEAST_LIMIT))  # 0 would mean no limit
        run = Run(self.adapter, query, membership=_JoinedMembership(self.membership), previous=previous)
        for listener in (self.progress.listen, self.listener):
            if listener:
                run.on_event(listener)
        return run.start()

    def _follow(self, run: Run, previous: dict[str, Any] | None) -> str:
        """See a run to its end; return the reason that it was stopped for."""
        reason = session = ""
        rest = POLL_SECONDS
        while run.wait(rest) is None:
            looked = time.monotonic()
            task, now = self._look()
            rest = min(max(POLL_SECONDS, REST * (time.monotonic() - looked)), LONGEST_REST_SECONDS)
            if now and now != _OVER and not reason:
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
            if self.task.control()[0] == RESUME:
                self.task.note(state=QUEUED, control=None)
                if task:
                    self.task.report(task, said, blocked_reason=None)
                return ""
            self._rest()

    def _end_task(self, reason: str) -> None:
        """End the task, where that is up to this worker."""
        task = self.task.task()
        if reason in (STOP, _LOST) or task is None or task.status in TERMINAL:
            return  # without its instance the task is open again, for the next
        if self.store.instances.live(self.task.me.id) is None:
            self.membership.beat()  # its instance was removed by another session; it still has a task to end
        if reason == CANCEL:
            self.task.end(CANCELLED, None)
        elif self.result:
            self.task.end(FAILED if self.result.is_error else DONE, result_text(self.result))

    # ------------------------------------------------------------------ parts

    def _stop_reason(self, task: Task | None) -> str:
        if self._signal:
            return STOP
        return self.task.stop_reason(task)

    def _look(self) -> tuple[Task | None, str]:
        """Return the task while it is worked on, and a reason to stop.

        An unusable store, or one that has lost the task, stops no work: it may be back by the end.
        """
        task, fault, reason = None, "", ""
        if self._signal:
            reason = STOP
        try:
            task = self.task.task()
            if task:
                reason = self._stop_reason(task)
            else:
                fault = f"task {self.assignment.task_id} is not in the store any more; its worker goes on"
                if not reason and self.task.control()[0] == CANCEL:
                    reason = CANCEL
        except SwarmError as error:
            fault = str(error)
        if fault and not self._last_fault:
            _record_fault(fault)
        self._last_fault = fault
        return task, reason

    def _has_slot(self) -> bool:
        try:
            return self.slot.take()
        except OSError as error:
            _record_fault(f"the slots cannot be used: {error}")
            return True  # an unusable store stops no work

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
        """Give up only the leftovers of the child's own session."""
        self._membership.free()


# The task of a supervisor, and the row of its run with the result.


_LONGEST_RESULT = 30_000  # characters
_WORDLESS = "(it ended well, and said nothing)"


def result_text(result: RunResult) -> str:
    """Return the text for the task's result: the answer, or the error's code and words."""
    if not result.is_error:
        return answer_text(result).strip()[:_LONGEST_RESULT] or _WORDLESS
    text = f"{result.error_category}: {' '.join((result.error_message or 'it did not say why').split())}"
    if result.error_category in TRANSIENT:
        text += "; it passes, and the same work may be dispatched again"
        if result.retry_not_before:
            text += " after " + time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(result.retry_not_before))
    if result.output.strip():
        text += f"\nIts last words: {result.output.strip()}"
    return text[:_LONGEST_RESULT]


class _WorkerTask:
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
        """Return why the worker is to stop (_LOST, _OVER, CANCEL or PAUSE), empty where it may go on."""
        if task is None:
            return _LOST
        if task.status in TERMINAL:
            if task.status == CANCELLED:
                return CANCEL
            return _OVER
        if self.belongs_to_another(task):
            return _LOST
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
            _record_fault(str(error))  # the store is busy; there is another try
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
            _record_fault(str(error))
            return []

    def note_told(self, answers: list[Question]) -> None:
        """Note that the agent has read these answers in its instructions."""
        ids = [one.id for one in answers if one.answer is not None]
        if not ids:
            return
        try:
            self.store.questions.told(ids)
        except SwarmError as error:
            _record_fault(str(error))

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
            return _record_fault(f"the task could not be ended as {status}: {error}")
        for recipient, content in [*ended["notices"], *ended["unblocked"]]:
            deliver(self.store, self.me, recipient, content)

    def write_instructions_down(self) -> None:
        """Add the instructions to the worker's messages, as read: they document the order, and are not sent again."""
        given = self.assignment
        content = of_task(given.task_id, public_text(given.message))
        try:
            self.message_id = self.store.messages.write_down(given.scope, given.requester_id, self.me.id, content)
        except SwarmError as error:
            _record_fault(str(error))

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
            _record_fault(str(error))

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


def _record_fault(text: str) -> None:
    """Record something that should not have happened, for ``swarm-mcp doctor``."""
    state.record("run", "supervision", text)
