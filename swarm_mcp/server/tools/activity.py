"""Tools about activity: wait for something to happen, and see what to do next."""

from __future__ import annotations

import threading
import time
from typing import Any

from swarm_mcp.domain import Message, Session
from swarm_mcp.server.tool import Answer, Call, Tool, WaitingCall, delivering, number
from swarm_mcp.sessions.summary import beside, sessions_page, status_summary, with_mail

SWEEP_SECONDS = 3.0  # between looks for changes without a commit, such as a killed session
LONGEST_SECONDS = 10**9  # the most that the event loop's clock can count
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
        """Look for changes without a commit. Each change found is committed, and so becomes news."""
        call.store.activity.sweep()

    def give_up(self, call: Call) -> None:
        """Give the mail back: the call was cancelled, and the next call gets it."""
        with self._lock:
            self._given_up = True
            call.store.messages.put_back(self._taken)

    def _answer(
        self,
        call: Call,
        changes: list[str],
        with_tasks: bool,
        tasks_after: int | None = None,
        locks: tuple[dict[str, Any], ...] = (),
    ) -> Answer | None:
        me, store = call.member(), call.store
        if "new_messages" in changes:
            messages = self._take(call, me)
        else:
            messages = []
        if not messages:  # another call, such as a sub-agent's, has just taken them
            changes = [name for name in changes if name != "new_messages"]
        if not changes:
            return None
        value: dict[str, Any] = {"changes": changes}
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
            if self._given_up:
                messages = []
            else:
                messages = call.store.messages.take(me)
            self._taken = [message.id for message in messages]
        return messages


async def _wait(waiting: WaitingCall, arguments: dict[str, Any]) -> Answer:
    seconds = min(arguments.get("timeout_seconds", 0), LONGEST_SECONDS)
    if seconds:
        end = time.monotonic() + seconds
    else:
        end = None
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
            return await waiting.run(watch.look) or Answer(NOTHING, indent=None)
        if answer is None and time.monotonic() - swept >= SWEEP_SECONDS:
            await waiting.run(watch.sweep)
            swept = time.monotonic()
    return answer


def _status(call: Call, _arguments: dict[str, Any]) -> Answer:
    return Answer(status_summary(call.store, call.member()))


TOOLS = (
    Tool(
        "swarm_status",
        "The state of this session and its next step, in one call that changes nothing: peers, unread messages, its"
        " tasks and the ones it could take, peers' work, its locks and the ones in its way, warnings (an overdue"
        " report, a task's file locked by another session), and `next_action`, the tool to call now and why. Use it"
        " between pieces of work, or whenever unsure; bootstrap is for the start.",
        {},
        _status,
        reads=True,
    ),
    Tool(
        "wait_for_activity",
        "Sleep until something happens that concerns this session: a message, a changed task, a session that comes or"
        " goes, a shared value, a file locked or released by another session. Answers within milliseconds, and at once"
        " if mail is waiting; `changes` lists the kinds (new_messages, task_updates, instance_changes, kv_updates,"
        " lock_updates), and the rest of the answer has the details. Messages in it count as read. Use it while you"
        " wait for a reply, a result, a review or a locked file; with nothing to wait for, end the turn instead. Always"
        " set a timeout shorter than your client's limit for a tool call.",
        {
            "timeout_seconds": number(
                "Give up after so many seconds; the answer then has `timeout`. 0: wait for ever.", minimum=0, default=0
            ),
        },
        _wait,
    ),
)
