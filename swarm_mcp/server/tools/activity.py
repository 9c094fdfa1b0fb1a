"""Tools about activity: wait for something to happen, and see at a glance what there is to do."""

from __future__ import annotations

import threading
import time

from swarm_mcp.domain.message import Message
from swarm_mcp.domain.session import Session
from swarm_mcp.mail import with_mail
from swarm_mcp.server.tool import Answer, Call, Tool, WaitingCall, delivering, number
from swarm_mcp.session_summary import beside, sessions_page, status_summary

SWEEP_SECONDS = 3.0  # between looks for what nobody announces, such as a session that was killed
LONGEST_SECONDS = 10**9  # what the clock of the event loop can count
NOTHING = {"changes": [], "timeout": True, "message": "Nothing new happened within the timeout."}


class _Watch:
    """One call of ``wait_for_activity``: where it began, and the mail it has taken to answer with.

    Its methods run in worker threads, one at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given_up = False
        self._taken: list[int] = []

    def begin(self, call: Call) -> Answer | None:
        """Remember now; an answer where mail has been waiting already."""
        self._moment = call.store.activity.moment(call.member())
        return self._answer(call, ["new_messages"], with_tasks=True)

    def look(self, call: Call) -> Answer | None:
        """An answer where anything is new."""
        before, news = self._moment, call.store.activity.since(call.member(), self._moment)
        self._moment = news.moment
        return self._answer(call, news.changes, "task_updates" in news.changes, before.task, news.locks)

    def sweep(self, call: Call) -> None:
        """See to what nobody announces; what comes of it is news like any other."""
        call.store.activity.sweep()

    def give_up(self, call: Call) -> None:
        """Nobody will get the answer: its mail is for whoever asks next."""
        with self._lock:
            self._given_up = True
            call.store.messages.put_back(self._taken)

    def _answer(
        self,
        call: Call,
        changes: list[str],
        with_tasks: bool,
        tasks_after: int | None = None,
        locks: tuple[dict, ...] = (),
    ) -> Answer | None:
        me, store = call.member(), call.store
        messages = self._take(call, me) if "new_messages" in changes else []
        if not messages:  # none, or somebody else, a sub-agent for one, has just been given them
            changes = [name for name in changes if name != "new_messages"]
        if not changes:
            return None
        value: dict = {"changes": changes}
        if messages:
            value["messages"] = messages
        if with_tasks:
            value["tasks"] = store.tasks.glance(me, tasks_after)
        if "instance_changes" in changes:
            sessions = sessions_page(store, me)
            value.update(instances=sessions.rows, **beside(instances=sessions))
        if locks:
            value["locks"] = list(locks)
        if messages:
            value = with_mail(store, me, value, "messages", messages)
        return Answer(value, **delivering([message["id"] for message in value.get("messages", ())]))

    def _take(self, call: Call, me: Session) -> list[Message]:
        with self._lock:
            messages = [] if self._given_up else call.store.messages.take(me)
            self._taken = [message.id for message in messages]
        return messages


async def _wait(waiting: WaitingCall, arguments: dict) -> Answer:
    seconds = min(arguments.get("timeout_seconds", 0), LONGEST_SECONDS)
    end = time.monotonic() + seconds if seconds else None
    watch = _Watch()
    waiting.when_cancelled(watch.give_up)
    answer = await waiting.run(watch.begin)
    swept = time.monotonic()
    while answer is None:
        left = SWEEP_SECONDS
        if end is not None:
            left = min(left, end - time.monotonic())
        if await waiting.changed(max(0.0, left)):
            answer = await waiting.run(watch.look)
        elif end is not None and time.monotonic() >= end:
            return await waiting.run(watch.look) or Answer(NOTHING)
        if answer is None and time.monotonic() - swept >= SWEEP_SECONDS:
            await waiting.run(watch.sweep)
            swept = time.monotonic()
    return answer


def _status(call: Call, _arguments: dict) -> Answer:
    return Answer(status_summary(call.store, call.member()))


TOOLS = (
    Tool(
        "swarm_status",
        "Where this session stands and what to do next, in one call that changes nothing: peers, unread messages, its"
        " tasks and the ones it could take, what peers are working on, its locks and the ones in its way, warnings"
        " (an overdue report, a task's file that somebody else has locked), and `next_action`, the tool to call now"
        " and why. Use it between pieces of work, or whenever unsure; bootstrap is for the start.",
        {},
        _status,
        reads=True,
    ),
    Tool(
        "wait_for_activity",
        "Sleep until something happens that concerns this session: a message, a task that changes, a session that"
        " comes or goes, a shared value, a file that is locked or released by somebody else. Answers within"
        " milliseconds of it, and at once where mail is waiting; `changes` says what (new_messages, task_updates,"
        " instance_changes, kv_updates, lock_updates) and the rest of the answer has it. Messages in it count as read."
        " Use it while you wait for a reply, a result, a review or a locked file; with nothing to wait for, end the"
        " turn instead. Always set a timeout shorter than your client's limit for a tool call.",
        {
            "timeout_seconds": number(
                "Give up after so many seconds; the answer then has `timeout`. 0: wait for ever.", minimum=0, default=0
            ),
        },
        _wait,
    ),
)
