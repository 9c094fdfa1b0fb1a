"""One explored process: its session, and its ways to act.

It reports each step it begins and each answer it gets. `history` and `properties` judge these words.
"""

import io
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from explore.ground import Ground, session_id
from explore.world import World
from swarm_hook_core import process, session_events
from swarm_hook_core.core import HookCore
from swarm_hook_core.hooks import SessionEvent
from swarm_hook_core.registration import NotRegistered
from swarm_mcp.errors import Refused, SwarmError
from swarm_mcp.hooks.session_hooks import StoreRegistrar

CLIENT_SECONDS = 0.006  # from the hook's answer to the write; file times have steps of 4 ms


class Process:
    """One explored process: its session, and its ways to act."""

    def __init__(self, world: World, ground: Ground, number: int, config: Any):
        self.world, self.ground, self.number = world, ground, number
        self.id, self.session_id = f"instance-{number}", session_id(number)
        self.core = HookCore(config)
        self.say = world.say
        self.anchor = "first\n"  # edits put their line behind it

    def think(self, most: int) -> None:
        """Do nothing for up to so many times the length of a write, as the seed says."""
        time.sleep((1 + os.urandom(1)[0] % most) * CLIENT_SECONDS)

    def path(self, name: str) -> str:
        """Return the path of a file in the checkout."""
        return os.path.join(self.ground.work, name)

    def hook(self, event: str, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        """Run one hook of a call of a tool; return its answer, empty where it says nothing."""
        payload = {
            "session_id": self.session_id, "cwd": self.ground.work, "hook_event_name": event, "tool_name": tool,
            "tool_input": given, "tool_use_id": f"call-{self.number}", "transcript_path": "", "permission_mode": "default",
        }  # fmt: skip
        begun, paused = self.world.library.explore_now(), self.world.library.explore_paused()
        try:
            said = self.answer(event, json.dumps(payload))
        finally:
            self._tell_time(event, begun, paused)
        inner: dict[str, Any] = {}
        if said:
            inner = json.loads(said)["hookSpecificOutput"]
        return inner

    def answer(self, event: str, payload: str) -> str:
        """Run a hook as a process of its own does; return its output."""
        said = io.StringIO()
        usual, sys.stdout = sys.stdout, said
        try:
            run = self.core.run_pre_tool_use_hook if event == "PreToolUse" else self.core.run_post_tool_use_hook
            run(io.StringIO(payload))
        finally:
            sys.stdout = usual
        return said.getvalue()

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
                raise process.Abandoned
            left[0] -= 1

        os.environ["SWARM_TRIED_NS"] = str(time.time_ns())
        process.answer_for(os.getpid(), os.getppid(), demand)
        try:
            self.hook("PreToolUse", tool, given)
        except process.Abandoned:
            self.say("abandoned", tool)
        finally:
            process.answer_for(0, 0, None)

    def write(
        self, name: str, tool: str, text: str = "", leaves: int | None = None, is_formatted: bool = False
    ) -> bool:  # fmt: skip
        """Make a write as a client does: ask the hook, write, tell the hook. `tool` is ``Edit`` or ``Write``.

        An edit adds the line `text` behind the `anchor`. `leaves`: as for `try_in_vain`, which comes before.
        `is_formatted`: the client runs a formatter after it. Return True if the call was let pass.
        """
        path = self.path(name)
        given = {"file_path": path, "content": text}
        if tool == "Edit":
            given = {"file_path": path, "old_string": self.anchor, "new_string": f"{self.anchor}{text}"}
        self.say("asks", tool, name)
        if leaves is not None:
            self.try_in_vain(tool, given, leaves)
        try:
            answer = self.hook("PreToolUse", tool, given)
        finally:
            os.environ.pop("SWARM_TRIED_NS", None)
        if answer.get("permissionDecision") == "deny":
            self.say_denial(tool, name, answer["permissionDecisionReason"])
            return False
        if answer.get("updatedInput"):
            given = answer["updatedInput"]
            self.say("merged", tool, name, *given["content"].split())
        elif answer.get("additionalContext"):
            self.say("told", tool, name)
        self.say("let", tool, name)
        if not self.make_change(tool, name, given):
            return False
        self.say("wrote", tool, name, *text.split()[-1:])
        if is_formatted:
            self._format(path)
        self.end_call(tool, given)
        return True

    def say_denial(self, tool: str, name: str, reason: str) -> None:
        """Say that a call was denied, and if a lock was the reason."""
        self.say("denied", tool, name, "by a lock" if reason.startswith("swarm lock blocked") else "by other work")

    def make_change(self, tool: str, name: str, given: dict[str, Any]) -> bool:
        """Write as the client's tool does. Return False if the text to replace is not there."""
        path = self.path(name)
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
        return True

    def _format(self, path: str) -> None:
        """Lay the own lines out anew."""
        with open(path, encoding="utf-8") as file:
            lines = file.readlines()
        made = [f"{line[:-1]} \n" if line.startswith(f"{self.number}.") else line for line in lines]
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(made)

    def end_call(self, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        """Tell the hook of the end of a call; return its answer."""
        mark = os.path.join(self.ground.state, "ended", str(os.getppid()))
        if os.path.isdir(os.path.dirname(mark)):  # as integrations/hook.sh
            with open(mark, "w", encoding="ascii"):
                pass
        return self.hook("PostToolUse", tool, given)

    def run_command(self, command: str) -> bool:
        """Ask for a shell command. Return True if it was let pass; then `end_call` follows."""
        self.say("asks", "Bash", "notes.md")
        answer = self.hook("PreToolUse", "Bash", {"command": command})
        if answer.get("permissionDecision") == "deny":
            self.say_denial("Bash", "notes.md", answer["permissionDecisionReason"])
            return False
        self.say("runs", "Bash", "notes.md")
        return True

    def build(self, line: str) -> None:
        """Run a command that cannot be read, and that appends a line to the file."""
        if self.run_command("./build"):
            time.sleep(CLIENT_SECONDS)
            self.append(f"{line}\n")
            self.say("built", line)
            time.sleep(CLIENT_SECONDS)
            self.end_call("Bash", {"command": "./build"})

    def by_shell(
        self, command: str, name: str = "notes.md", deed: Callable[[], object] | None = None, after: float = CLIENT_SECONDS
    ) -> None:  # fmt: skip
        """Append a line to the file by a shell command that can be read, or do another `deed` with `name`.

        `after`: seconds from the hook's answer to the deed.
        """
        given = {"command": command}
        self.say("asks", "Bash", name)
        answer = self.hook("PreToolUse", "Bash", given)
        if answer.get("permissionDecision") == "deny":
            self.say_denial("Bash", name, answer["permissionDecisionReason"])
            return
        self.say("let", "Bash", name)
        time.sleep(after)
        self.say("writes", "Bash", name)
        (deed or self.append_own)()
        self.say("wrote", "Bash", name)
        self.end_call("Bash", given)

    def append_own(self) -> None:
        """Append the session's line."""
        self.append(f"{self.number}.0\n")

    def append(self, line: str) -> None:
        """Append a line to the file in one step, as a person's editor or a command may."""
        with open(self.path("notes.md"), "ab") as file:
            file.write(line.encode())

    def end_turn(self) -> None:
        """Let the session's turn end, as the coordinator does."""
        self.say("turn ends")
        registrar = StoreRegistrar("claude-code")
        try:
            session_events.turn(self.core.config, SessionEvent(self.session_id, self.ground.work, "Stop"), registrar)
        finally:
            registrar.close()
        self.say("turned")


def live(role: Any, me: Process) -> None:
    """Live one life, and say how it ended."""
    try:
        role(me)
    except (SwarmError, Refused, NotRegistered, OSError) as error:
        me.say("failed", type(error).__name__, str(error).replace("\n", " ")[:200])
    except BaseException as error:
        import traceback

        me.say("crashed", "".join(traceback.format_exception(error)).replace("\n", "|")[-3000:])
