"""swarm in Hermes: every write is checked against the locks of other sessions before it happens.

The checker of this Hermes answers for the hooks in `hooks.json` beside this file, else a short process reads a payload.
Any fault counts as no answer. Hermes calls in threads: for sessions, and for tools side by side.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import subprocess
import threading
import time
from typing import Any

from . import checker

FOLDER = os.path.dirname(os.path.realpath(__file__))
# The end of a hook's command: it names the event, and the interpreter if that is known.
_LAUNCHED = re.compile(r'/bin/sh ("[^"]*/hook\.sh") hermes (\w+)(?: ([^;]+))?; exit 0$')


def register(ctx: Any) -> None:
    """Called by Hermes, once in each of its processes."""
    bridge = Bridge()
    for hook in ("pre_llm_call", "pre_tool_call", "transform_tool_result", "on_session_end", "subagent_start"):
        ctx.register_hook(hook, getattr(bridge, hook))
    for hook in ("on_session_finalize", "subagent_stop"):  # after /new, at the end; of most a turn's end has told so
        ctx.register_hook(hook, bridge.end)
    ctx.register_middleware("tool_request", bridge.tool_request)


class Bridge:
    """Passes events of Hermes to the plugin's hooks, and their answers back in the form of Hermes."""

    def __init__(self) -> None:
        with open(f"{FOLDER}/hooks.json", encoding="utf-8") as file:
            self.wired = json.load(file)["hooks"]
        with open(f"{FOLDER}/mcp.json", encoding="utf-8") as file:
            (server,) = json.load(file)["mcpServers"]
        self.own_tools = f"mcp__{re.sub('[^A-Za-z0-9_]', '_', server)}__"  # as Hermes spells it
        self.begun = set()  # sessions that have been told of, those of sub-agents among them
        self.agents = {}  # session of a sub-agent -> the session that it works for, and its id there
        self.turns = {}  # turn -> its session: code of execute_code calls names the turn alone
        self.words = {}  # call, or turn -> further words for its result
        self.open = {}  # session and agent -> its calls that may write now
        self.counting = threading.Lock()

    def pre_llm_call(
        self, session_id: str = "", task_id: str = "", is_first_turn: bool = True, **_: Any
    ) -> dict[str, str]:
        """A turn begins: its session, or sub-agent, joins before it works."""
        is_agent, is_new = session_id in self.agents, session_id not in self.begun
        self.begun.add(session_id)
        events = ["SubagentStart" if is_agent else "SessionStart"] * is_new + ["UserPromptSubmit"] * (not is_agent)
        why = "resume"
        if is_first_turn:
            why = "startup"
        answers = (self.run(event, session_id, task_id, source=why).get("additionalContext") for event in events)
        return {"context": "\n\n".join(filter(None, answers))}

    def tool_request(
        self, tool_name: str = "", args: Any = None, session_id: str = "", task_id: str = "", **_: Any
    ) -> dict[str, Any] | None:
        """Name the session in a call of the plugin's server: in a gateway the server has many."""
        is_ours = tool_name.startswith(self.own_tools) and isinstance(args, dict)
        if is_ours:
            return {"args": {**args, "_session": self.whose(session_id, task_id)[0]}}
        return None

    def pre_tool_call(self, task_id: str = "", tool_call_id: str = "", **call: Any) -> dict[str, Any] | None:
        """Check a call before it is made. Return a refusal, or None."""
        answer = self.run_call("PreToolUse", task_id, tool_call_id, **call)
        reason = answer.get("permissionDecision") == "deny" and answer.get("permissionDecisionReason")
        if not tool_call_id or not reason:  # code that made this call may never print its answer
            self.tell(tool_call_id or task_id, reason or answer.get("additionalContext"))
        if reason:
            return {"action": "block", "message": reason}
        return None

    def transform_tool_result(
        self, result: Any = None, task_id: str = "", tool_call_id: str = "", **call: Any
    ) -> str | None:
        """Return the result of a call with further words for the model, or None for the result as it is."""
        answer = self.run_call("PostToolUse", task_id, tool_call_id, **call)
        self.tell(tool_call_id or task_id, answer.get("additionalContext"))
        if not tool_call_id:
            return None  # code reads this; the model is told with the result of that code
        words = "\n".join([*self.words.pop(task_id, ()), *self.words.pop(tool_call_id, ())])
        try:
            if words:
                return json.dumps({**json.loads(result), "swarm": words}, ensure_ascii=False)
            return None
        except (TypeError, ValueError, RecursionError):  # it is no object
            if isinstance(result, str):
                return f"{result}\n\n{words}"
            return None

    def on_session_end(self, session_id: str = "", task_id: str = "", platform: str = "", **_: Any) -> None:
        """A turn has ended; with it a sub-agent, a scheduled run, and the session of `hermes -z`."""
        self.turns.pop(task_id, None)
        is_oneshot = any(frame.filename.endswith("hermes_cli/oneshot.py") for frame in inspect.stack(0))
        if session_id in self.agents or platform == "cron" or is_oneshot:
            self.end(session_id)
        elif session_id in self.begun:
            self.run("Stop", session_id)

    def subagent_start(
        self, parent_session_id: str = "", child_session_id: str = "", child_subagent_id: str = "", **_: Any
    ) -> None:
        """A sub-agent begins: it has a session of its own, and works for that of its parent."""
        session, _agent = self.agents.get(parent_session_id, (parent_session_id, ""))
        self.agents[child_session_id] = session, child_subagent_id or child_session_id

    def end(self, session_id: str = "", child_session_id: str = "", **_: Any) -> None:
        session_id = child_session_id or session_id
        if session_id in self.begun:
            self.begun.discard(session_id)
            self.run("SubagentStop" if session_id in self.agents else "SessionEnd", session_id)

    def tell(self, key: str, words: str | None) -> None:
        if words:
            self.words.setdefault(key, []).append(words)

    def whose(self, session_id: str, task_id: str) -> tuple[str, str]:
        """The session that acts, and the id of its sub-agent, empty where it acts itself."""
        if session_id and task_id:
            self.turns[task_id] = session_id
        session_id = session_id or self.turns.get(task_id, "")
        return self.agents.get(session_id, (session_id, ""))

    def run_call(
        self, event: str, task_id: str, call_id: str, tool_name: str, args: Any, session_id: str = "", **_: Any
    ) -> dict[str, Any]:
        is_typed = tool_name == "process" and args.get("action") in ("write", "submit")
        goes_on = None
        if is_typed or args.get("background") is True:
            goes_on = {"backgroundTaskId": "terminal"}
        more = {"tool_response": goes_on, "tool_use_id": call_id or f"{task_id}-{threading.get_ident()}"}
        return self.run(event, session_id, task_id, "send_input" if is_typed else tool_name, tool_input=args, **more)

    def run(self, event: str, session_id: str, task_id: str = "", tool_name: str = "", **more: Any) -> dict[str, Any]:
        """Return the first answer of this event's hooks that decides or says something, or an empty one."""
        try:
            session, agent = self.whose(session_id, task_id)
            cwd = _folder(task_id, tool_name, more.get("tool_input") or {})
            payload = {"hook_event_name": event, "session_id": session, "agent_id": agent, "cwd": cwd}
            groups = [one for one in self.wired.get(event, ()) if re.search(one.get("matcher", ""), tool_name)]
            hooks = (hook for group in groups for hook in group["hooks"])
            call = more.get("tool_use_id")
            if event == "PreToolUse" and groups:
                with self.counting:
                    self.open.setdefault((session, agent), set()).add(call)
            elif event == "PostToolUse":
                if self.is_last(session, agent, call) and not more.get("tool_response"):
                    checker.mark_end(session, agent, dict(os.environ))
            elif event != "PreToolUse":
                self.open.pop((session, agent), None)
            answers = (_asked(hook, {**payload, "tool_name": tool_name, **more}) for hook in hooks)
            answer = next(filter(None, answers), {})
            if answer.get("permissionDecision") == "deny":
                self.is_last(session, agent, call)
            return answer
        except Exception:  # any fault counts as no answer
            return {}

    def is_last(self, session: str, agent: str, call: str) -> bool:
        """Close a call of an agent. Return True if it was open, and the agent has no other one open."""
        with self.counting:
            calls = self.open.get((session, agent), set())
            was_open = call in calls
            calls.discard(call)
            return was_open and not calls


def _asked(hook: dict[str, Any], payload: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of one hook, or an empty one. Raises its faults, a lack of time too."""
    end = time.monotonic() + hook["timeout"]
    environment = {**os.environ, "SWARM_PLUGIN_ROOT": os.path.dirname(os.path.dirname(FOLDER))}
    command, given, said = hook["command"], json.dumps(payload).encode(), None
    found = _LAUNCHED.search(command)
    if found:
        script, event, python = found.groups('""')
        try:
            said = checker.ask(event, given, environment, os.path.dirname(FOLDER))
        except checker.Unanswered as unanswered:
            # "alone": without the relay. It would ask once more.
            command = f"[ -r {script} ] && exec /bin/sh {script} hermes {event} {python} alone; exit 0"
            if unanswered.tried_ns:  # the checker may have noted this call: it is not noted twice
                environment["SWARM_TRIED_NS"] = str(unanswered.tried_ns)
    if said is None:
        said = _run(command, environment, given, end - time.monotonic())
    if said.strip():
        return json.loads(said).get("hookSpecificOutput") or {}
    return {}


def _run(command: str, environment: dict[str, str], given: bytes, seconds: float) -> bytes:
    """Return the output of a shell's command. Raises TimeoutExpired."""
    with subprocess.Popen(
        ["/bin/sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=environment, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            return process.communicate(given, timeout=seconds)[0]
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def _folder(task_id: str, tool: str, given: dict[str, Any]) -> str:
    """The folder that a relative path of this turn counts from; for a command the one that it runs in."""
    place = os.environ.get("TERMINAL_CWD", "")
    try:
        if not os.path.isabs(place):
            place = os.getcwd()
        from tools import approval, file_tools, terminal_tool

        place = str(file_tools._resolve_base_dir(task_id or "default"))
        if tool == "terminal":
            place = terminal_tool.get_session_cwd(approval.get_current_session_key(default="") or task_id) or place
    except Exception:
        pass  # the folder is gone, or a release keeps it elsewhere
    chosen = tool == "terminal" and given.get("workdir")
    if chosen:
        return os.path.join(place, os.path.expanduser(chosen))
    return place
