"""The deeds of explored processes: each function is the life of one process in one schedule.

A process reports each step it begins and each acknowledgement it gets. `properties` judges these words.
"""

import io
import json
import os
import sys
import time
from typing import Any

from explore.ground import TEXT, Ground, session_id
from explore.world import World
from swarm_hook_core import caller, session_events
from swarm_hook_core.core import HookCore
from swarm_hook_core.hooks import SessionEvent
from swarm_mcp.changes.undoing import NotUndone, Undoing
from swarm_mcp.errors import LockRefused, Refused, SwarmError
from swarm_mcp.hooks.session_hooks import StoreRegistrar
from swarm_mcp.locking.restore import Restoring
from swarm_mcp.store import Store

CLIENT_SECONDS = 0.006  # from the hook's answer to the write; file times have steps of 4 ms


class Process:
    """One explored process: its session, and its ways to act."""

    def __init__(self, world: World, ground: Ground, number: int, config: Any):
        self.world, self.ground, self.number = world, ground, number
        self.id, self.session_id = f"instance-{number}", session_id(number)
        self.core = HookCore(config)
        self.say = world.say

    def path(self, name: str) -> str:
        """Return the path of a file in the checkout."""
        return os.path.join(self.ground.work, name)

    def hook(self, event: str, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        """Run one hook of a call of a tool; return its answer, empty where it says nothing."""
        payload = {
            "session_id": self.session_id, "cwd": self.ground.work, "hook_event_name": event, "tool_name": tool,
            "tool_input": given, "tool_use_id": f"call-{self.number}", "transcript_path": "", "permission_mode": "default",
        }  # fmt: skip
        said = io.StringIO()
        usual, sys.stdout = sys.stdout, said
        begun, paused = self.world.library.explore_now(), self.world.library.explore_paused()
        try:
            run = self.core.run_pre_tool_use_hook if event == "PreToolUse" else self.core.run_post_tool_use_hook
            run(io.StringIO(json.dumps(payload)))
        finally:
            sys.stdout = usual
            self._tell_time(event, begun, paused)
        inner: dict[str, Any] = {}
        if said.getvalue():
            inner = json.loads(said.getvalue())["hookSpecificOutput"]
        return inner

    def _tell_time(self, event: str, begun: int, paused: int) -> None:
        took = self.world.library.explore_now() - begun - (self.world.library.explore_paused() - paused)
        self.say("hook", event, took // 1_000_000, self.world.library.explore_now())

    def try_in_vain(self, tool: str, given: dict[str, Any], leaves: int) -> None:
        """Have a checker answer for a call; its relay stops waiting before it has left traces `leaves` + 1 times.

        The next hook is that of the same call, as a process of its own.
        """
        left = [leaves]

        def demand() -> None:
            if not left[0]:
                raise caller.Abandoned
            left[0] -= 1

        os.environ["SWARM_TRIED_NS"] = str(time.time_ns())
        caller.answer_for(os.getpid(), os.getppid(), demand)
        try:
            self.hook("PreToolUse", tool, given)
        except caller.Abandoned:
            self.say("abandoned", tool)
        finally:
            caller.answer_for(0, 0, None)

    def write(
        self, name: str, tool: str, text: str = "", leaves: int | None = None, is_formatted: bool = False
    ) -> bool:  # fmt: skip
        """Make a write as a client does: ask the hook, write, tell the hook. `tool` is ``Edit`` or ``Write``.

        An edit adds the line `text` behind the first one. `leaves`: as for `try_in_vain`, which comes before.
        `is_formatted`: the client runs a formatter after it. Return True if the call was let pass.
        """
        path = self.path(name)
        given = {"file_path": path, "content": text}
        if tool == "Edit":
            given = {"file_path": path, "old_string": "first\n", "new_string": f"first\n{text}"}
        self.say("asks", tool, name)
        if leaves is not None:
            self.try_in_vain(tool, given, leaves)
        try:
            answer = self.hook("PreToolUse", tool, given)
        finally:
            os.environ.pop("SWARM_TRIED_NS", None)
        if answer.get("permissionDecision") == "deny":
            self.say("denied", tool, name)
            return False
        if answer.get("additionalContext"):
            self.say("told", tool, name)
        given = answer.get("updatedInput") or given
        self.say("let", tool, name)
        time.sleep(CLIENT_SECONDS)
        self.say("writes", tool, name)
        text = given.get("content", "")
        if tool == "Edit":
            with open(path, encoding="utf-8") as file:
                old = file.read()
            if given["old_string"] not in old:
                self.say("missing", tool, name)
                return False
            text = old.replace(given["old_string"], given["new_string"], 1)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        self.say("wrote", tool, name)
        if is_formatted:
            self._format(path)
        self.end_call(tool, given)
        return True

    def _format(self, path: str) -> None:
        """Lay the own lines out anew."""
        with open(path, encoding="utf-8") as file:
            lines = file.readlines()
        made = [f"{line[:-1]} \n" if line.startswith(f"{self.number}.") else line for line in lines]
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(made)

    def end_call(self, tool: str, given: dict[str, Any]) -> None:
        """Tell the hook of the end of a call."""
        mark = os.path.join(self.ground.state, "ended", str(os.getppid()))
        if os.path.isdir(os.path.dirname(mark)):  # as integrations/hook.sh
            with open(mark, "w", encoding="ascii"):
                pass
        self.hook("PostToolUse", tool, given)

    def run_command(self, command: str) -> bool:
        """Ask for a shell command. Return True if it was let pass; then `end_call` follows."""
        self.say("asks", "Bash", "notes.md")
        answer = self.hook("PreToolUse", "Bash", {"command": command})
        if answer.get("permissionDecision") == "deny":
            self.say("denied", "Bash", "notes.md")
            return False
        self.say("runs", "Bash", "notes.md")
        return True

    def append(self, line: str) -> None:
        """Append a line to the file in one step, as a person's editor or a command may."""
        handle = os.open(self.path("notes.md"), os.O_WRONLY | os.O_APPEND)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)

    def end_turn(self) -> None:
        """Let the session's turn end, as the coordinator does."""
        self.say("turn ends")
        registrar = StoreRegistrar("claude-code")
        try:
            session_events.turn(self.core.config, SessionEvent(self.session_id, self.ground.work, "Stop"), registrar)
        finally:
            registrar.close()


def edits(me: Process) -> None:
    """Edit a file."""
    me.write("notes.md", "Edit", f"{me.number}.0\n")


def edits_and_ends(me: Process) -> None:
    """Edit a file, end the turn, and edit it in the next one."""
    me.write("notes.md", "Edit", f"{me.number}.0\n")
    me.end_turn()
    me.write("notes.md", "Edit", f"{me.number}.1\n")


def edits_after_a_cut(me: Process) -> None:
    """Edit a file by a hook alone: a checker was cut off once it had noted what the call intends."""
    me.write("notes.md", "Edit", f"{me.number}.0\n", leaves=1)


def edits_unanswered(me: Process) -> None:
    """Edit a file by a hook alone: a checker had noted the whole call, and its answer came too late."""
    me.write("notes.md", "Edit", f"{me.number}.0\n", leaves=9)


def overwrites(me: Process) -> None:
    """Replace a file without having read it."""
    me.write("notes.md", "Write", f"{me.number}.w\n")


def locks(me: Process) -> None:
    """Take a lock and release it."""
    with Store(me.ground.store) as store:
        row = store.instances.get(me.id)
        try:
            lock = store.locks.acquire(row, me.path("notes.md"), "busy")
        except LockRefused:
            me.say("refused")
            return
        me.say("locked", lock["id"])
        me.say("unlocks")
        store.locks.release(row, me.path("notes.md"))
        me.say("unlocked", lock["id"])


def keeps_lock(me: Process) -> None:
    """Take a lock and keep it."""
    with Store(me.ground.store) as store:
        row = store.instances.get(me.id)
        try:
            lock = store.locks.acquire(row, me.path("notes.md"), "busy")
        except LockRefused:
            me.say("refused")
            return
        me.say("locked", lock["id"])


def messages(me: Process) -> None:
    """Send two messages to the next session."""
    with Store(me.ground.store) as store:
        row = store.instances.get(me.id)
        for count in range(2):
            text = f"{me.number}.{count}"
            store.messages.send(row, "instance-1", text)
            me.say("sent", text)


def reads_mail(me: Process) -> None:
    """Take unread messages, twice."""
    with Store(me.ground.store) as store:
        row = store.instances.get(me.id)
        for _ in range(2):
            taken = store.messages.take(row, 2)
            store.messages.acknowledge([message["id"] for message in taken])
            for message in taken:
                me.say("read", message["content"])


def tasks(me: Process) -> None:
    """Request a task, and claim the next one."""
    with Store(me.ground.store) as store:
        row = store.instances.get(me.id)
        me.say("requested", store.tasks.request(row, {"type": "fix", "title": f"{me.number}"})["task"]["id"])
        for _ in range(2):
            try:
                found = store.tasks.claim_next(row, ignore_unread=True)
            except Refused:
                me.say("none")
                return
            if found.get("task"):
                me.say("claimed", found["task"]["id"])


def edits_formatted(me: Process) -> None:
    """Edit a file, and have the client's formatter lay it out, twice."""
    for count in range(2):
        me.write("notes.md", "Edit", f"{me.number}.{count}\n", is_formatted=True)


def saves(me: Process) -> None:
    """Save a file twice, as a person does: no hook sees it."""
    for count in range(2):
        time.sleep(CLIENT_SECONDS)
        me.say("saves", f"{me.number}.{count}", me.world.library.explore_now())
        me.append(f"{me.number}.{count}\n")
        me.say("saved", f"{me.number}.{count}")


def builds(me: Process) -> None:
    """Run a command that cannot be read, and that changes a file."""
    if me.run_command("./build"):
        time.sleep(CLIENT_SECONDS)
        me.append(f"{me.number}.0\n")
        me.say("built", f"{me.number}.0")
        time.sleep(CLIENT_SECONDS)
        me.end_call("Bash", {"command": "./build"})


def edits_and_sweeps(me: Process) -> None:
    """Edit a file, and throw all its changes away."""
    me.write("notes.md", "Edit", f"{me.number}.0\n")
    if me.run_command("git checkout -- notes.md"):
        scratch = me.path("notes.md.new")
        with open(scratch, "w", encoding="utf-8") as file:
            file.write(TEXT)
        os.replace(scratch, me.path("notes.md"))
        me.say("swept")
        me.end_call("Bash", {"command": "git checkout -- notes.md"})


def edits_and_undoes(me: Process) -> None:
    """Edit a file, take that back, and take the undo back."""
    me.write("notes.md", "Edit", f"{me.number}.0\n")
    whose = ("claude-code", me.session_id)
    with Store(me.ground.store) as store:
        undoing = Undoing(store, store.instances.get(me.id), me.ground.work)
        me.say("undoes")
        try:
            record = undoing.run(lambda: undoing.plan(whose, [], 0, False), whose, "", False)[1]
            if record:
                undoing.run(lambda: undoing.plan_back(record, [], False), whose, record.id, False)
        except NotUndone:  # lines of others are in the way
            me.say("refused")
        me.say("redone")


def edits_and_restores(me: Process) -> None:
    """Edit a file, and bring back an earlier content of it."""
    me.write("notes.md", "Edit", f"{me.number}.0\n")
    with Store(me.ground.store) as store:
        restoring = Restoring(store, store.instances.get(me.id), me.path("notes.md"))
        me.say("restores")
        restoring.restore(restoring.choose(""), False, False)
        me.say("restored")


def live(role: Any, me: Process) -> None:
    """Live one life, and say how it ended."""
    try:
        role(me)
    except (SwarmError, Refused, OSError) as error:
        me.say("failed", type(error).__name__, str(error).replace("\n", " ")[:200])
    except BaseException as error:
        import traceback

        me.say("crashed", "".join(traceback.format_exception(error)).replace("\n", "|")[-3000:])


ALL = (
    edits,
    edits_and_ends,
    edits_after_a_cut,
    edits_unanswered,
    overwrites,
    locks,
    keeps_lock,
    messages,
    reads_mail,
    tasks,
    edits_formatted,
    saves,
    builds,
    edits_and_sweeps,
    edits_and_undoes,
    edits_and_restores,
)
OF_OWNERS = frozenset(function.__name__ for function in ALL[-6:])  # roles that need git's answers
ROLES = {function.__name__: function for function in ALL}
