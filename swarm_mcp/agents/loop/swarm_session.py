"""This session in the swarm: registered while it runs, its writes checked before they happen.

Where the plugin of ``integrations/hs`` is installed it does all this from its own hooks and tools, for the bash
harness and for us: then there is nothing to do here, and nothing is checked twice.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

from swarm_hook_core import greetings, session_events, state
from swarm_hook_core.config import RuntimeConfig, paths_under_keys
from swarm_hook_core.coordinator import chosen_command
from swarm_hook_core.core import HookCore
from swarm_hook_core.denial import Denial
from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.kernel import plans
from swarm_hook_core.kernel.planning import plan_place
from swarm_hook_core.process import start_time
from swarm_hook_core.registration import CommandRegistrar, NotRegistered, described
from swarm_hook_core.state import has_plans, is_awaited
from swarm_mcp.agents.loop import tools
from swarm_mcp.agents.loop.session import ModelCall
from swarm_mcp.agents.loop.settings import LoopRun
from swarm_mcp.agents.loop.tools import WRITERS
from swarm_mcp.hooks.session_hooks import StoreRegistrar
from swarm_mcp.installation import coordinator_command
from swarm_mcp.store import Store, driver
from swarm_mcp.store.refusals import of_denial


def _config(kernel: str) -> RuntimeConfig:
    return RuntimeConfig(
        runtime_name="loop",
        env_prefix="LOOP",
        scratch_dir_name="swarm-loop",
        write_tools=WRITERS,
        replaces={"write_file"},
        extract_paths=paths_under_keys("path", "file_path", "file", "filepath"),
        kernel=kernel,
    )


CONFIG = _config("directly")
_OF_PLUGINS = _config("")  # the loop starts none of the commands in this configuration
# The hook core knows tools by these names.
_NAMES = {"bash": "Bash"}
RENEW_SECONDS, BUSY_SECONDS = 30.0, 5.0


class SwarmSession:
    """Registration and checks of one session. Does nothing before `join`, and nothing where a plugin does it."""

    def __init__(self) -> None:
        self.core: Any = None  # a HookCore, after `join`
        self._session_id = self._cwd = ""
        self._renewed = 0.0
        self._notices: dict[str, str] = {}
        self._plans: dict[str, str] = {}

    def join(self, loop: LoopRun) -> str:
        """Register the session. Return the model's text about it, empty if a plugin takes care of that."""
        if is_guarded(loop.sources):
            return ""
        self._session_id, self._cwd = loop.session.id, loop.cwd
        self.core = HookCore(CONFIG, chosen_command() or coordinator_command(), driver.load())
        self._renewed = time.monotonic()
        try:
            if chosen_command():
                return session_events.start(
                    CONFIG, self._event("SessionStart", source="startup"), CommandRegistrar(CONFIG)
                )
        except NotRegistered as error:
            return str(error)
        try:
            return greetings.greeting(self._register("working"))
        except NotRegistered as error:
            state.record(CONFIG.runtime_name, "session_start", str(error))
            return greetings.unregistered(str(error))

    def renew(self) -> None:
        """Give a sign of life, every RENEW_SECONDS at most."""
        if self.core is None or time.monotonic() - self._renewed < RENEW_SECONDS:
            return
        self._renewed = time.monotonic()
        with _recorded("turn"):
            self._register("working")

    def leave(self) -> None:
        """End the session and release its locks."""
        if self.core is None:
            return
        core, self.core = self.core, None
        event = self._event("SessionEnd")
        with _recorded("session_end"):
            core.words_now(event)
            if has_plans(self._session_id):
                plans.drop(self._session_id)
            if chosen_command():
                session_events.end(CONFIG, event, CommandRegistrar(CONFIG))
                return
            with contextlib.closing(StoreRegistrar(CONFIG.runtime_name)) as registrar:
                registrar.end(self._session_id, _this_process(), 0, BUSY_SECONDS)

    def denial(self, made: ModelCall, is_ours: bool = True) -> str:
        """Return why a call must not be carried out, empty where it may. A fault of ours lets it pass.

        `is_ours`: this process carries it out itself, and no plugin.
        """
        if self.core is None:
            return ""
        with _recorded("pre_tool_use"):
            call = self._call(made, "PreToolUse")
            verdict = self._core_for(is_ours).check(call)
            self.core.report(verdict, call)
            if verdict is not None and verdict.denial is not None:
                self._report(verdict.denial, made)
                return str(verdict.denial.reason)
            if verdict is not None:
                self._notices[made.id] = self.core.words_beside(verdict, call)
                if verdict.plan is not None:
                    self._plans[made.id] = plan_place(call, CONFIG)
        return ""

    def _core_for(self, is_ours: bool) -> Any:
        if is_ours or self.core is None:
            return self.core
        return HookCore(_OF_PLUGINS, self.core.coordinator, self.core.driver)

    def plan_of(self, made: ModelCall) -> str:
        """Return the file with the kernel's plan for a call, empty if nothing is to be held."""
        return self._plans.get(made.id, "")

    def after(self, made: ModelCall, result: str = "") -> str:
        """Return the text to add to a call's result: warnings and breaches; mostly empty."""
        self._plans.pop(made.id, None)
        return "\n".join(filter(None, (self._notices.pop(made.id, ""), self._changes(made, result))))

    def _changes(self, made: ModelCall, result: str) -> str:
        """Locked files of others that changed while a call ran, in words."""
        if self.core is None or made.name in WRITERS or not (self.core.is_watching() or is_awaited()):
            return ""
        words = ""
        with _recorded("post_tool_use"):
            words = self.core.words_after(self._call(made, "PostToolUse", result))
        return str(words)

    def _event(self, name: str, source: str = "") -> SessionEvent:
        return SessionEvent(self._session_id, self._cwd, name, source=source)

    def _call(self, made: ModelCall, event: str, result: str = "") -> ToolCall:
        tool = _NAMES.get(made.name, made.name)
        return ToolCall(tool, made.input, self._session_id, self._cwd, event, id=made.id, response=result)

    def _register(self, state: str) -> dict[str, Any]:
        session = {**described(CONFIG, self._event("SessionStart", source="startup"), state), "client": _this_process()}
        with contextlib.closing(StoreRegistrar(CONFIG.runtime_name)) as registrar:
            return registrar.register(session, 0, BUSY_SECONDS)

    def _report(self, denial: Denial, made: ModelCall) -> None:
        """Record the refusal, so that people see it and the session hears when the file is free."""
        held = denial.held
        if denial.loss:
            held = denial.loss.held
        if held is None:
            return
        with _recorded("pre_tool_use"):
            with Store(busy_seconds=1.0) as store:
                me = store.instances.of_session(CONFIG.runtime_name, self._session_id)
                if me:
                    store.denials.report(me, denial.file, held.instance_id, of_denial(denial, made.name, os.getcwd()))


@contextlib.contextmanager
def _recorded(event: str) -> Iterator[None]:
    """Record a fault of ours in the block, and go on behind it: the run does not end over it."""
    try:
        yield
    except Exception as error:
        state.record(CONFIG.runtime_name, event, state.describe(error))


def is_guarded(found: list[str]) -> bool:
    """Return True if a plugin among the sources checks writes itself, with a hook ``tool_exec/NN-swarm-lock``."""
    hooks = tools.executables(found, "hooks.d", "tool_exec")
    return any(name.partition("-")[2] == "swarm-lock" for name in hooks)


def _this_process() -> tuple[int, str]:
    return os.getpid(), start_time(os.getpid())
