"""Deeds of explored sessions through the tools of the MCP server: each function is the life of one process.

The server's own methods answer, without its event loop: a call runs in its caller's thread, and so does the work after a
delivered or a lost answer.
"""

import io
import json
import os
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any

from explore import dealings
from explore.dealings import FILE, HELD_SECONDS, VALUE, Dealer
from explore.process import CLIENT_SECONDS, Process
from swarm_hook_core.process import start_time
from swarm_mcp.server import calling_session
from swarm_mcp.server.calling_session import CallingSession
from swarm_mcp.server.calls import Calls
from swarm_mcp.server.tool import Answer, WaitingCall
from swarm_mcp.server.tools import all_tools

TOOLS = all_tools()
calling_session.client_process = lambda: (1, start_time(1))  # of all sessions here: a variable names the one


def finished(call: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a call that never waits."""
    try:
        call.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it has to wait for an event loop")


class Here(Calls):
    """Tool calls without worker threads."""

    async def run(self, function: Callable[..., Any], meta: dict[str, Any], _kind: str = "") -> Any:
        return self._carry_out(function, meta)

    def _see_to(self, function: Callable[..., Any] | None) -> None:
        if function:
            self._carry_out(lambda call: function(call.store), {})


class Waiting(WaitingCall):
    """A call that waits; it looks again after a while."""

    def __init__(self, calls: Here):
        self._calls = calls
        self.cancel: Callable[..., Any] | None = None

    def when_cancelled(self, function: Callable[..., object]) -> None:
        self.cancel = function

    async def run(self, function: Callable[..., Any]) -> Any:
        return await self._calls.run(function, {})

    async def changed(self, seconds: float | None) -> bool:
        time.sleep(min(0.02, seconds or 0.02))
        return True


class Client(Dealer):
    """The session of a process as a client of the server: it calls tools, and tells the answers."""

    def __init__(self, me: Process):
        session = CallingSession()
        os.environ["CLAUDE_CODE_SESSION_ID"] = me.session_id
        self.me, self.say, self.calls = me, me.say, Here(session, TOOLS)

    def use(self, tool: str, **given: Any) -> Answer:
        """Call a tool. The answer reaches the client."""
        with redirect_stderr(io.StringIO()):  # a line for a person about a fault
            answer: Answer = finished(self.calls.use(tool, given, {}))
        if answer.is_error:
            raise OSError(answer.text)  # a fault of the store
        time.sleep(CLIENT_SECONDS)
        self.calls.sent(answer)
        return answer

    def lock(self, place: str = FILE, wait: float = 0, **how: Any) -> bool:
        """Ask for a lock, and `wait` in line for it so many seconds. Return True if it was given."""
        self.say("wants", place, how.get("mode", "exclusive"), how.get("ttl", 0))
        given = {"file": place, "reason": "", **how}
        if not wait:
            value = self.use("lock_file", **given).value
        else:
            wanted = self.calls.tools["lock_file"].wait(Waiting(self.calls), {**given, "wait_seconds": wait})
            value = finished(wanted).value
        if "error" in value:
            active = value["active"]
            self.say("waits behind" if active.get("waiting") else "refused", place, active["instance_id"])
            return False
        self.say("locked", place, value["id"])
        return True

    def release(self, place: str = FILE, is_exact: bool = False) -> None:
        """Release a lock."""
        self.say("frees", place)
        text = self.use("unlock_file", file=place).text
        self.say("freed", place, int("held no lock" not in text))

    def look(self, place: str = FILE) -> None:
        """Look for the holder of a file."""
        self.say("looks for", place)
        active = self.use("get_file_lock", file=place).value["active"]
        self.say("sees", place, (active or {"instance_id": "nobody"})["instance_id"])

    def read(self) -> None:
        """Poll for messages."""
        self.say("polls", f"instance-{self.me.number}")
        found = self.use("poll_messages").value
        self.say("answers", *(message["id"] for message in found))
        for message in found:
            self.say("hears" if "[auto]" in message["content"] else "read", message["content"].replace("\n", " "))

    def send(self, text: str) -> None:
        """Send a message to the second session."""
        self.say("sends", text)
        if self.use("send_message", recipient="instance-1", content=text).text.startswith("Message sent"):
            self.say("sent", text)

    def request_task(self) -> str:
        """Request a task, and return its id."""
        return str(self.use("request_task", type="fix", title=f"{self.me.number}").value["task_id"])

    def append(self, item: str) -> int | str:
        """Add a value to the list, and return its length then."""
        return self.use("kv_append", key=VALUE, value=json.dumps(item)).text.rpartition("(")[2].split(" ")[0]

    def values(self) -> list[str]:
        """Return the list of values."""
        found: list[str] = json.loads(self.use("kv_get", key=VALUE).value["value"])
        return found

    def claim_next(self) -> str:
        """Claim the next task; return it, or an empty text."""
        found = self.use("claim_next_task", ignore_unread_messages=True).value
        if "error" in found:
            self.say("none")
            return ""
        self.say("claimed", found["task_id"])
        return str(found["task_id"])

    def end_task(self, task: str) -> None:
        """End a task."""
        self.say("ends", task)
        if self.use("update_task", task_id=task, status="done", result=f"by {self.me.number}").value["ok"]:
            self.say("ended", task)


@contextmanager
def client(me: Process) -> Iterator[Client]:
    """Serve a process."""
    mine = Client(me)
    try:
        yield mine
    finally:
        del os.environ["CLAUDE_CODE_SESSION_ID"]
        if hasattr(mine.calls._own, "store"):
            mine.calls._own.store.close()


def locks_by_tool(me: Process) -> None:
    """Take a lock, look at the file, and release the lock, twice."""
    with client(me) as mine:
        for _ in range(2):
            is_locked = mine.lock()
            mine.look()
            if is_locked:
                mine.release()


def waits_by_tool(me: Process) -> None:
    """Wait in line for a lock, and release it."""
    with client(me) as mine:
        mine.hold(wait=0.5)


def cancels_wait(me: Process) -> None:
    """Wait in line for a lock, and cancel the call before its answer has come: a lock that was given goes back."""
    with client(me) as mine:
        waiting = Waiting(mine.calls)
        given = {"file": FILE, "wait_seconds": 2 * HELD_SECONDS}
        time.sleep(HELD_SECONDS / 2)  # others are at it
        me.say("tries", FILE)
        answer = finished(mine.calls.tools["lock_file"].wait(waiting, given))
        mine.calls.lost(answer)
        if waiting.cancel:
            mine.calls._carry_out(waiting.cancel, {})
        me.say("tried", FILE)


def mails_by_tool(me: Process) -> None:
    """Send two messages to the second session."""
    dealings.messages(me, client)


def polls(me: Process) -> None:
    """Poll for messages, twice."""
    dealings.reads_mail(me, client)


def tasks_by_tool(me: Process) -> None:
    """Request a task; claim the next one and end it, twice."""
    dealings.tasks(me, client)


def values_by_tool(me: Process) -> None:
    """Add two values to a list that others add to, and read it."""
    dealings.values(me, client)


def edits_and_commits(me: Process) -> None:
    """Edit a file and commit that line, twice. Sessions with an even number write at another place than the others."""
    me.anchor = ("first\n", "last\n")[me.number % 2]
    with client(me) as mine:
        for count in range(2):
            me.write(FILE, "Edit", f"{me.number}.{count}\n")
            me.say("commits")
            value = mine.use("commit", message=f"{me.number}").value
            if "error" in value:
                me.say("declined", value["error"])
            else:
                me.say("committed", value["commit"])


ALL = (
    locks_by_tool, waits_by_tool, cancels_wait, mails_by_tool, polls, tasks_by_tool, values_by_tool, edits_and_commits,
)  # fmt: skip
