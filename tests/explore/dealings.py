"""Deeds of explored sessions in the store: each function is the life of one process in one schedule."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from explore.process import CLIENT_SECONDS, Process
from swarm_hook_core import session_events
from swarm_hook_core.hooks import SessionEvent
from swarm_mcp.agents.acp_guard import Guard, Made
from swarm_mcp.domain import SHARED
from swarm_mcp.errors import LockRefused, Refused, UnknownInstance
from swarm_mcp.guard.check import refusals
from swarm_mcp.hooks.session_hooks import StoreRegistrar
from swarm_mcp.locking import acquisition
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

FILE, OTHER, PATTERN, NAME = "notes.md", "other.md", "*.md", "name:port"
LEASE = 2.0  # seconds
HELD_SECONDS = 0.05
VALUE = "list"


class Dealer:
    """The session of a process in the store: it asks, and tells the answers."""

    def __init__(self, me: Process, store: Store):
        self.me, self.store, self.say = me, store, me.say
        self.row = store.instances.get(me.id)
        self.fences: dict[str, int] = {}
        self.top = ""  # of another work tree with the files

    def lock(self, place: str = FILE, wait: float = 0, **how: Any) -> bool:
        """Ask for a lock, and `wait` in line for it so many seconds. Return True if it was given."""
        self.say("wants", place, how.get("mode", "exclusive"), how.get("ttl", 0))
        wanted = request(self.row, [os.path.join(self.top, place or ".")], **how)
        try:
            if wait:
                rows = self._wait(place, acquisition.LockWait(self.row, wanted, wait))
            else:
                rows = acquisition.take(self.store, self.row, wanted)
        except LockRefused as error:
            self.say("waits behind" if error.active.get("waiting") else "refused", place, error.active["instance_id"])
            return False
        self.fences[place] = rows[0].fence or 0
        self.say("locked", place, rows[0].id, rows[0].fence)
        return True

    def _wait(self, place: str, waiting: acquisition.LockWait) -> acquisition.Taken:
        while (taken := waiting.advance(self.store)) is None:
            time.sleep(min(0.02, waiting.left()))
            self.say("looks", place)
        return taken

    def release(self, place: str = FILE, is_exact: bool = False) -> None:
        """Release a lock. `is_exact`: that very grant, by its number."""
        self.say("frees", place)
        try:
            fence = self.fences[place] if is_exact else None
            released = self.store.locks.release(self.row, os.path.join(self.top, place or "."), fence=fence)
        except Refused:
            released = 0
        self.say("freed", place, released)

    def give(self, to: str = "instance-1") -> None:
        """Hand a lock to another session."""
        self.say("gives", FILE, to)
        self.say("gave", FILE, to, self.store.transfers.transfer(self.row, FILE, to).fence)

    def hold(self, place: str = FILE, seconds: float = HELD_SECONDS, **how: Any) -> None:
        """Take a lock, keep it for a while, and release it."""
        if self.lock(place, **how):
            time.sleep(seconds)
            self.release(place)

    def look(self, place: str = FILE) -> None:
        """Look for the holders of a file, as a listing does."""
        self.say("looks for", place)
        holders = [row.instance_id for row in self.store.locks.on(self.me.path(place))]
        self.say("sees", place, ",".join(sorted(holders)) or "nobody")

    def read(self) -> None:
        """Take all unread messages."""
        self.say("polls", self.row.id)
        taken = self.store.messages.take(self.row, 9)
        time.sleep(CLIENT_SECONDS)
        self.say("answers", *(message.id for message in taken))  # the answer with them is written
        self.store.messages.acknowledge([message.id for message in taken])
        for message in taken:
            if "[auto]" in message.content:
                self.say("hears", message.content.replace("\n", " "))
            else:
                self.say("read", message.content)

    def send(self, text: str) -> None:
        """Send a message to the second session."""
        self.say("sends", text)
        try:
            self.store.messages.send(self.row, "instance-1", text)
        except UnknownInstance:  # it has left
            self.say("not sent")
        else:
            self.say("sent", text)

    def request_task(self) -> str:
        """Request a task, and return its id."""
        made = self.store.tasks.request(self.row, {"type": "fix", "title": f"{self.me.number}"})
        return str(made["task"]["id"])

    def append(self, item: str) -> int | str:
        """Add a value to the list, and return its length then."""
        return self.store.kv.append(self.row, VALUE, json.dumps(item))

    def values(self) -> list[str]:
        """Return the list of values."""
        kept = self.store.kv.get(self.row.scope, VALUE)
        found: list[str] = json.loads(kept.value if kept else "[]")
        return found

    def claim_next(self) -> str:
        """Claim the next task; return it, or an empty text."""
        try:
            found = self.store.tasks.claim_next(self.row, ignore_unread=True)
        except Refused:
            self.say("none")
            return ""
        self.say("claimed", found["task"]["id"])
        return str(found["task"]["id"])

    def end_task(self, task: str) -> None:
        """End a task."""
        self.say("ends", task)
        self.store.tasks.end(self.row, task, "done", f"by {self.me.number}")
        self.say("ended", task)

    def end_next(self) -> bool:
        """Claim the next task and end it; return False without one."""
        task = self.claim_next()
        if task:
            self.me.think(2)
            self.end_task(task)
        return bool(task)


@contextmanager
def dealer(me: Process) -> Iterator[Dealer]:
    """Open the store for a process."""
    with Store(me.ground.store) as store:
        yield Dealer(me, store)


Dealing = Callable[[Process], AbstractContextManager[Dealer]]


def locks(me: Process) -> None:
    """Take a lock and release it."""
    with dealer(me) as mine:
        if mine.lock():
            mine.release()


def locks_later(me: Process) -> None:
    """Take a lock and release it, after a while."""
    me.think(6)
    locks(me)


def locks_by_number(me: Process) -> None:
    """Take a lock and release that very grant; then the lock of another file, and release it by another opening."""
    with dealer(me) as mine:
        if mine.lock():
            mine.release(is_exact=True)
        is_locked, fences = mine.lock(OTHER), mine.fences
    if is_locked:
        with dealer(me) as mine:
            mine.fences = fences
            mine.release(OTHER, is_exact=True)


def keeps_lock(me: Process) -> None:
    """Take a lock and keep it."""
    with dealer(me) as mine:
        mine.lock()


def holds(me: Process) -> None:
    """Take a lock, keep it for a while and release it, twice."""
    with dealer(me) as mine:
        mine.hold()
        mine.hold()


def keeps_asking(me: Process) -> None:
    """Take a lock and release it soon, again and again, while it is refused in between."""
    with dealer(me) as mine:
        for _ in range(10):
            mine.hold(seconds=HELD_SECONDS / 10)
            time.sleep(HELD_SECONDS / 2)


def waits(me: Process) -> None:
    """Wait in line for a lock, in vain if need be; wait again for longer, and release it."""
    with dealer(me) as mine:
        if mine.lock(wait=0.02) or mine.lock(wait=0.5):
            mine.release()


def shares(me: Process) -> None:
    """Take a lock for reading, and release it; then one for writing."""
    with dealer(me) as mine:
        mine.hold(mode="shared")
        mine.hold()


def locks_pattern(me: Process) -> None:
    """Take a lock on a pattern, and release it."""
    with dealer(me) as mine:
        mine.hold(PATTERN)


def locks_name(me: Process) -> None:
    """Take a lock on a name that is no file, and release it."""
    with dealer(me) as mine:
        mine.hold(NAME)


def locks_in_trees(me: Process) -> None:
    """Lock a file in every work tree. Sessions with an odd number work in another one, and lock that file as any."""
    with dealer(me) as mine:
        is_elsewhere = me.number % 2 == 1
        if is_elsewhere:
            mine.top = me.ground.add_tree()
        if mine.lock(OTHER, mode=SHARED, logical=True):  # this work tree takes part from then on
            for _ in range(2):
                mine.hold(logical=not is_elsewhere)
                time.sleep(HELD_SECONDS / 3)
            mine.release(OTHER)


def leases(me: Process) -> None:
    """Take a lock that lapses, be silent for longer than its lease, and release it; then be silent for less."""
    with dealer(me) as mine:
        mine.hold(seconds=1.6 * LEASE, ttl=LEASE)
        mine.hold(OTHER, seconds=0.8 * LEASE, ttl=LEASE)


def looks(me: Process) -> None:
    """Look again and again for the holders of the files."""
    with dealer(me) as mine:
        for _ in range(9):
            mine.look()
            mine.look(OTHER)
            time.sleep(0.3 * LEASE)


def hands_over(me: Process) -> None:
    """Take a lock and hand it to the second session."""
    with dealer(me) as mine:
        if mine.lock():
            mine.give()


def takes_over(me: Process) -> None:
    """Read new messages, and release the lock that was handed over."""
    with dealer(me) as mine:
        for _ in range(3):
            time.sleep(HELD_SECONDS)
            mine.read()
            if mine.store.locks.of(me.id):
                mine.release()


def steals(me: Process) -> None:
    """Take a lock by force, as a person may, and release it."""
    with dealer(me) as mine:
        mine.say("takes", FILE)
        taken = acquisition.steal(mine.store, mine.row, FILE, "it is urgent", force=True)
        mine.say("took", FILE, taken["lock"].fence)
        mine.release()


def asks_again(me: Process) -> None:
    """Ask for a lock, and read mail until the word comes that the file is free; then ask again."""
    with dealer(me) as mine:
        for _ in range(2):
            mine.hold()
            time.sleep(2 * HELD_SECONDS)
            mine.read()


def leaves(me: Process, mode: str = "exclusive") -> None:
    """Take a lock, and end the session."""
    with dealer(me) as mine:
        mine.lock(mode=mode)
    me.say("leaves")
    registrar = StoreRegistrar("claude-code")
    try:
        session_events.end(me.core.config, SessionEvent(me.session_id, me.ground.work, "SessionEnd"), registrar)
    finally:
        registrar.close()
    me.say("left")


def messages(me: Process, by: Dealing = dealer) -> None:
    """Send two messages to the second session. `by`: what the session deals by, here and below."""
    with by(me) as mine:
        for count in range(2):
            mine.send(f"{me.number}.{count}")
            me.think(3)


def reads_mail(me: Process, by: Dealing = dealer) -> None:
    """Take unread messages, twice."""
    with by(me) as mine:
        for _ in range(2):
            me.think(4)
            mine.read()


def reads_beside(me: Process) -> None:
    """Take unread messages of the second session, as another process of it: its server, or a hook."""
    with dealer(me) as mine:
        mine.row = mine.store.instances.get("instance-1")
        mine.read()
        mine.read()


def tasks(me: Process, by: Dealing = dealer) -> None:
    """Request a task; claim the next one and end it, twice."""
    with by(me) as mine:
        me.say("requested", mine.request_task())
        for _ in range(2):
            if not mine.end_next():
                return


def values(me: Process, by: Dealing = dealer) -> None:
    """Add two values to a list that others add to, and read it."""
    with by(me) as mine:
        for count in range(2):
            item = f"{me.number}.{count}"
            me.say("adds", item)
            me.say("added", item, mine.append(item))
        me.say("asks for values")
        me.say("has values", *mine.values())


def commits(me: Process) -> None:
    """Ask twice, as git does before a commit, if it may go on."""
    for _ in range(2):
        me.say("asks", "commit", FILE)
        found = refusals("pre-commit", me.ground.work, me.id)
        if found:
            me.say("denied", "commit", FILE, "by a lock")
        else:
            me.say("let", "commit", FILE)
        time.sleep(HELD_SECONDS)


def edits_through_relay(me: Process) -> None:
    """Edit a file by an agent that an editor drives: the relay between the two asks and tells."""
    guard, call = Guard(), Made("edit", "Edit", {"file_path": me.path(FILE), "old_string": "first\n",
        "new_string": f"first\n{me.number}.0\n"})  # fmt: skip
    guard.begin(me.session_id, me.ground.work)
    me.say("asks", "Edit", FILE)
    reason = guard.denial(me.session_id, "call-1", call)
    if reason:
        me.say_denial("Edit", FILE, reason)
    else:
        me.say("let", "Edit", FILE)
        if me.make_change("Edit", FILE, call.input):
            me.say("wrote", "Edit", FILE, f"{me.number}.0")
            guard.after(me.session_id, "call-1", call)
    guard.end(me.session_id)


ALL = (
    locks, locks_later, locks_by_number, keeps_lock, holds, keeps_asking, waits, shares, locks_pattern, locks_name, locks_in_trees, leases, looks, hands_over,
    takes_over, steals, asks_again, leaves, messages, reads_mail, reads_beside, tasks, values, commits,
    edits_through_relay,
)  # fmt: skip
