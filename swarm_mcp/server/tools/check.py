"""The check before a write, asked of the session's own server instead of a hook process.

The tool is not listed, so no model sees it. Claude Code and Codex can call a tool of a plugin's MCP server as a
PreToolUse hook, and read its answer like a hook's standard output: one text block with the denial, or nothing. The
plugin's own `HookCore`, configured by the plugin's own files, decides, so the answers equal those of the command hook.
"""

from __future__ import annotations

import os
import threading
from functools import cache

from swarm_hook_core import faults, scratch
from swarm_hook_core.coordinator import chosen_command
from swarm_hook_core.core import HookCore
from swarm_hook_core.hooks import ToolCall, tool_call
from swarm_hook_core.json_text import dumps, loads_outer, pruned
from swarm_hook_core.lookup import SOME_AGENT
from swarm_hook_core.process import start_time
from swarm_mcp import runtimes
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes.transport import CHECK_TOOL
from swarm_mcp.server.tool import Answer, Call, Tool, text
from swarm_mcp.store import Store, driver
from swarm_mcp.store.lock_request import of_denial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

AGENT = "agent_id"  # of a client that cannot leave it empty, nothing is known
REPORT_SECONDS = 1.0

_describing = threading.Lock()


class Check:
    """One check: `text` is the output of the hook, empty if the write may pass."""

    def __init__(self, arguments: dict[str, Any]):
        self.runtime, self.call = _runtime_of(arguments), _call(arguments)
        self.denial, self.text, self.failed = None, "", False
        self.verdict = None
        notice = ""
        if not self.runtime:
            faults.record("mcp", CHECK_TOOL, f"no such runtime: {arguments.get('runtime')!r}")
            return
        try:
            core = _core(self.runtime)
            verdict = self.verdict = core.check(self.call)
            if verdict is not None:
                self.denial, self.failed = verdict.denial, verdict.failed
                if self.denial:
                    notice = ""
                else:
                    notice = core.words_beside(verdict, self.call)
        except Exception as error:
            self.failed = True
            faults.record(self.runtime, CHECK_TOOL, faults.describe(error))
        dialect = runtimes.hook_config(self.runtime).dialect
        if self.denial is not None:
            self.text = dumps(dialect.denial("PreToolUse", self.denial.reason))
        elif notice:
            self.text = dumps(dialect.words("PreToolUse", notice, ""))

    def follow_up(self) -> None:
        """Do the work that can wait until the client has its answer: note that this server serves, and record a
        refusal.
        """
        if not self.runtime:
            return
        try:
            if self.call.session_id:
                self._give_word()
            if self.denial is not None:
                self._report()
            _core(self.runtime).tell_owners(self.verdict, self.call)
        except Exception as error:
            faults.record(self.runtime, CHECK_TOOL, faults.describe(error))

    def _give_word(self) -> None:
        """Tell the stand-in that this server lives and answers; it rests meanwhile."""
        config, session_id = _core(self.runtime).config, self.call.session_id
        if self.failed:
            scratch.stop_serving(config, session_id)
        elif scratch.say_serving(config, session_id, _this_process()):
            scratch.forget_dead_servers(config)

    def _report(self) -> None:
        denial = self.denial
        if denial is None:
            return
        held = denial.loss.held if denial.loss else denial.held
        if held is None:
            return  # it could not be checked
        with Store(busy_seconds=REPORT_SECONDS) as store:
            me = store.instances.of_session(self.runtime, self.call.session_id)
            if me:
                if self.call.agent == SOME_AGENT:
                    agent = ""
                else:
                    agent = self.call.agent
                tried = of_denial(denial, self.call.tool, self.call.cwd, agent)
                store.denials.report(me, denial.file, held.instance_id, tried)


def _runtime_of(arguments: dict[str, Any]) -> str:
    runtime = arguments.get("runtime")
    if isinstance(runtime, str) and runtime in runtimes.NAMES:
        return runtime
    return ""


def _call(arguments: dict[str, Any]) -> ToolCall:
    """The call that is asked about. Claude Code hands structured values over as JSON text."""
    given = arguments.get("tool_input")
    if isinstance(given, str) and given.lstrip().startswith("{"):
        try:
            given = loads_outer(given)
        except ValueError:
            pass  # a text that only looks like it
    told = {AGENT: SOME_AGENT, **arguments, "tool_input": pruned(given), "hook_event_name": "PreToolUse"}
    return tool_call(told)


def _core(runtime: str) -> HookCore:
    with _describing:  # loading the plugin's files changes state of all threads
        return _described(runtime)


@cache
def _described(runtime: str) -> HookCore:
    """The runtime as its folder configures it, with this process's SQLite and this installation's command."""
    return HookCore(runtimes.hook_config(runtime), chosen_command() or coordinator_command(), driver.load())


@cache
def _this_process() -> str:
    return f"{os.getpid()} {start_time(os.getpid())}"


def _check(_call: Call, arguments: dict[str, Any]) -> Answer:
    check = Check(arguments)
    return Answer(text=check.text, on_sent=lambda _store: check.follow_up())


TOOLS = (
    Tool(
        CHECK_TOOL,
        "Not for you: the client itself calls this before each write, to have writes to files that other sessions"
        " have locked refused. To ask who holds a file use get_file_lock.",
        {
            "runtime": text("The client."),
            "session_id": text("The session."),
            "cwd": text("Its folder."),
            "agent_id": {"description": "Which of its agents; empty for none."},
            "tool_name": text("The tool that is about to write."),
            "tool_input": {"description": "That tool's input, or the same as JSON text."},
            "tool_use_id": text("The client's id of the call."),
            "transcript_path": text("The file in which the client notes what its model was shown."),
        },
        _check,
        reads=True,
        hidden=True,
    ),
)
