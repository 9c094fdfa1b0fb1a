"""Rarer deeds of explored sessions: folders, agents, processes, leases that change, circles of waiters, plans, patches."""

import os
import shutil
import time
from typing import Any

from explore.dealings import FILE, HELD_SECONDS, LEASE, OTHER, Dealer, commits, dealer, leaves
from explore.ground import LEASE as SESSION_SECONDS
from explore.ground import session_id
from explore.process import CLIENT_SECONDS, Process
from swarm_hook_core.hooks import SessionEvent
from swarm_hook_core.lookup import hold_agent
from swarm_hook_core.process import start_time
from swarm_hook_core.registration import described
from swarm_mcp.errors import Deadlock, Refused
from swarm_mcp.hooks.session_hooks import StoreRegistrar
from swarm_mcp.store.sessions import Registration

FOLDER = "drafts"
LONG = 400.0  # seconds: two of them are longer than a file stays a session's after a write in a turn


# ------------------------------------------------------------------------------------------------ locks


def locks_folder(me: Process) -> None:
    """Take a lock on the folder of all files, and release it."""
    with dealer(me) as mine:
        mine.hold("")


def shares_in_line(me: Process) -> None:
    """Wait in line for a lock for reading, and release it."""
    with dealer(me) as mine:
        if mine.lock(wait=0.5, mode="shared"):
            time.sleep(HELD_SECONDS)
            mine.release()


def shares_again(me: Process) -> None:
    """Take a lock for reading again and again."""
    with dealer(me) as mine:
        for _ in range(12):
            mine.hold(mode="shared", seconds=HELD_SECONDS / 10)
            time.sleep(HELD_SECONDS / 10)


def upgrades(me: Process) -> None:
    """Take a lock for reading, then the same for writing, and release it."""
    with dealer(me) as mine:
        if mine.lock(mode="shared"):
            time.sleep(HELD_SECONDS)
            mine.hold()
            mine.release()


def frees_unheld(me: Process) -> None:
    """Release a lock that the session does not have, again and again."""
    with dealer(me) as mine:
        for _ in range(4):
            time.sleep(HELD_SECONDS / 2)
            mine.store.locks.release(mine.row, FILE)


def frees_by_old_number(me: Process) -> None:
    """Take a lock, release it, and take it again; release that by the number of the first grant, then as it is."""
    with dealer(me) as mine:
        mine.hold(seconds=0)
        old = mine.fences.get(FILE)
        if mine.lock():
            try:
                mine.store.locks.release(mine.row, FILE, fence=old or 0)
            except Refused:
                pass  # as it should be
            time.sleep(HELD_SECONDS)
            mine.release()


def leaves_shared(me: Process) -> None:
    """Take a lock for reading, and end the session."""
    leaves(me, "shared")


def circles(me: Process) -> None:
    """Take the lock of one file and wait for the other's: each of two sessions the other way round."""
    first, second = (FILE, OTHER)[:: 1 - 2 * (me.number % 2)]
    with dealer(me) as mine:
        if not mine.lock(first):
            return
        try:
            if not mine.lock(second, wait=1.0):
                me.say("in vain")
        except Deadlock:
            me.say("circle", second)
        mine.release(first)
        mine.release(second)


def ends_agent(me: Process) -> None:
    """Take a lock, and one as a subagent; that ends; release the other."""
    with dealer(me) as mine:
        is_locked = mine.lock(OTHER)
        if mine.lock(FILE, agent="a1"):
            me.say("frees", FILE)
            me.say("freed", FILE, len(mine.store.locks.release_of_agent(mine.row, "a1")))
        if is_locked:
            mine.release(OTHER)


# ------------------------------------------------------------------------------------------------ leases


def renews(me: Process) -> None:
    """Take a lock, give it a lease, and release it in time."""
    with dealer(me) as mine:
        if mine.lock():
            me.say("wants", FILE, "exclusive", LEASE)
            row = mine.store.leases.renew_lock(mine.row, FILE, ttl=LEASE)
            me.say("locked", FILE, row.id, row.fence)
            time.sleep(0.5 * LEASE)
            mine.release()


def lapses(me: Process) -> None:
    """Take a lock that lapses, be silent for longer than its lease, and go on with another file."""
    with dealer(me) as mine:
        mine.lock(ttl=LEASE)
        time.sleep(1.6 * LEASE)
        mine.hold(OTHER)
        time.sleep(LEASE / 2)


def lapses_and_commits(me: Process) -> None:
    """Take a lock that lapses, be silent for longer than its lease, and commit."""
    with dealer(me) as mine:
        mine.lock(ttl=LEASE)
    time.sleep(1.6 * LEASE)
    commits(me)


def holds_late(me: Process) -> None:
    """Take a lock after others' leases, and release it."""
    time.sleep(1.3 * LEASE)
    with dealer(me) as mine:
        mine.hold()


def hands_over_leased(me: Process) -> None:
    """Take a lock that lapses, and hand it to the second session."""
    with dealer(me) as mine:
        if mine.lock(ttl=LEASE):
            mine.give()


def sleeps(me: Process) -> None:
    """Read mail, and be silent for long."""
    with dealer(me) as mine:
        me.say("idles")
        mine.read()
        time.sleep(3 * LEASE)


# ------------------------------------------------------------------------------------------------ processes


def keeps_as_client(me: Process) -> None:
    """Join with this process as the session's client, take a lock, and keep it for a while."""
    with dealer(me) as mine:
        mine.store.instances.remove(me.id)
        own = {"client": (os.getpid(), start_time(os.getpid())), "state": "working"}
        mine.row = mine.store.instances.register(_registration(me, preassigned_id=me.id, **own))
        me.say("binds")
        _hold_in_steps(mine)


def holds_as_process(me: Process) -> None:
    """Take a lock that ends with this process, as `hold` does, and release it."""
    with dealer(me) as mine:
        agent = hold_agent(os.getpid(), start_time(os.getpid()), mine.store.here)
        me.say("binds")
        _hold_in_steps(mine, agent=agent)


def _hold_in_steps(mine: Dealer, **how: str) -> None:
    """Take a lock, do some things with it, since a process is killed at a deed, and release it."""
    if mine.lock(**how):
        for _ in range(9):
            time.sleep(CLIENT_SECONDS)
            mine.look(OTHER)
        mine.release()


def messages_late(me: Process) -> None:
    """Send messages to the second session for a while: it may end meanwhile."""
    with dealer(me) as mine:
        for count in range(6):
            me.think(9)
            mine.send(f"{me.number}.{count}")


def joins_late(me: Process) -> None:
    """Join: that finds the sessions that have gone."""
    time.sleep(3 * HELD_SECONDS)
    me.say("joins")
    with dealer(me) as mine:
        mine.store.instances.register(_registration(me, label=f"session {me.number}"))
    me.say("joined")


def _registration(me: Process, **facts: Any) -> Registration:
    given = {"client": (1, start_time(1)), "lease_seconds": SESSION_SECONDS, **facts}
    return Registration(me.ground.work, runtime="claude-code", session_id=me.session_id, **given)


# ------------------------------------------------------------------------------------------------ files


def patches(me: Process) -> None:
    """Change two files by one patch."""
    _patch(me, f"*** Update File: {OTHER}\n@@\n first\n+x\n*** Update File: {FILE}\n@@\n first\n+{me.number}.0\n")


def moves_over(me: Process) -> None:
    """Move a file over another one by a patch."""
    _patch(me, f"*** Update File: {OTHER}\n*** Move to: {FILE}\n@@\n first\n+{me.number}.0\n")


def _patch(me: Process, changes: str) -> None:
    me.think(9)
    me.by_shell(f"apply_patch <<'EOF'\n*** Begin Patch\n{changes}*** End Patch\nEOF\n")


def removes_folder(me: Process) -> None:
    """Remove a folder by a shell command."""
    os.makedirs(me.path(FOLDER), exist_ok=True)
    me.think(3)
    me.by_shell(
        f"rm -r {FOLDER}", FOLDER, lambda: shutil.rmtree(me.path(FOLDER), ignore_errors=True), 3 * CLIENT_SECONDS
    )


def writes_below(me: Process) -> None:
    """Write a new file into that folder."""
    os.makedirs(me.path(FOLDER), exist_ok=True)
    me.think(3)
    try:
        me.write(f"{FOLDER}/new.md", "Write", f"{me.number}.w\n")
    except FileNotFoundError:
        me.say("missing", "Write", FOLDER)


def locks_and_edits(me: Process) -> None:
    """Take a lock, edit the file, and release it."""
    with dealer(me) as mine:
        if mine.lock():
            time.sleep(HELD_SECONDS / 2)
            me.write(FILE, "Edit", f"{me.number}.0\n")
            time.sleep(HELD_SECONDS / 2)
            mine.release()


def edits_for_long(me: Process) -> None:
    """Edit a file twice in a long turn."""
    for count in range(2):
        me.write(FILE, "Edit", f"{me.number}.{count}\n")
        time.sleep(LONG)
    me.end_turn()


def ends_old_turn(me: Process) -> None:
    """Tell of the end of an earlier turn of the first session, an hour late: it is in its next turn."""
    event = SessionEvent(session_id(0), me.ground.work, "Stop")
    facts = described(me.core.config, event, "idle")
    facts.update(source="", turn_over=os.stat(me.path(OTHER)).st_mtime_ns)
    registrar = StoreRegistrar("claude-code")
    try:
        registrar.register(facts, 2.0, 0.3)
    finally:
        registrar.close()


def edits_late(me: Process) -> None:
    """Edit a file when the first write of another session's turn is old, and the last one is not."""
    time.sleep(1.55 * LONG)
    me.write(FILE, "Edit", f"{me.number}.0\n")


# ------------------------------------------------------------------------------------------------ tasks and plans


def tasks_in_order(me: Process) -> None:
    """Request a task, another one, and one that waits for both; claim and end any task."""
    with dealer(me) as mine:
        made: list[str] = []
        for title in "abc":
            needs = list(made) if title == "c" else []
            task = mine.store.tasks.request(mine.row, {"type": "fix", "title": title, "depends_on": needs})
            made.append(task["task"]["id"])
            me.say("requested", made[-1], *needs)
        for _ in range(3):
            if not mine.end_next():
                return


def ends_task_with_locks(me: Process) -> None:
    """Claim a task for one file, lock that and another file, and end the task: the other one stays locked."""
    with dealer(me) as mine:
        made = mine.store.tasks.request(mine.row, {"type": "fix", "title": "one", "files": [FILE]})["task"]["id"]
        me.say("requested", made)
        task = mine.claim_next()
        if task != made:
            return
        are_locked = mine.lock(FILE), mine.lock(OTHER)
        if are_locked[0]:
            me.say("frees", FILE)
        mine.end_task(task)
        if are_locked[0]:
            me.say("freed", FILE, 1)
        if are_locked[1]:
            mine.release(OTHER)


def ends_others_tasks(me: Process) -> None:
    """Try to end tasks that another session has claimed."""
    with dealer(me) as mine:
        for _ in range(3):
            time.sleep(CLIENT_SECONDS)
            for task in mine.store.tasks.at_work_beside(mine.row, 9):
                try:
                    mine.end_task(task.id)
                except Refused:
                    me.say("none")


def claims_and_leaves(me: Process) -> None:
    """Request a task, claim the next one, and end the session."""
    with dealer(me) as mine:
        made = mine.store.tasks.request(mine.row, {"type": "fix", "title": "left"})
        me.say("requested", made["task"]["id"])
        mine.claim_next()
    leaves(me)


def plans(me: Process) -> None:
    """Join as a planner, and look for the owner of the plan."""
    with dealer(me) as mine:
        mine.store.instances.register(_registration(me, label=f"session {me.number} role:planner"))
        for _ in range(2):
            me.say("looks for plan")
            owner = mine.store.planner.owner(mine.row.scope)
            me.say("plan", owner and owner["instance_id"])


ALL = (
    locks_folder, shares_in_line, shares_again, ends_old_turn, upgrades, frees_unheld, frees_by_old_number, leaves_shared,
    circles, ends_agent, renews, lapses, lapses_and_commits, holds_late, hands_over_leased, sleeps, keeps_as_client,
    holds_as_process, messages_late, joins_late, patches, moves_over, removes_folder, writes_below, locks_and_edits,
    edits_for_long, edits_late, tasks_in_order, ends_task_with_locks, ends_others_tasks,
    claims_and_leaves, plans,
)  # fmt: skip
