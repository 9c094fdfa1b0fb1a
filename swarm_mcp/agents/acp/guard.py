"""The sessions of one agent behind the relay: registered while they are open, their calls checked before they are made.

Hooks of ours in the agent register a session under the same id. Then that one is the session here, too: some agents run
hooks at a session's start, and none before their calls. Each fault of ours is recorded, and the call goes ahead.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

from swarm_hook_core import faults, session_events
from swarm_hook_core.command_registrar import CommandRegistrar
from swarm_hook_core.coordinator import chosen_command
from swarm_hook_core.core import HookCore
from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.process import start_time
from swarm_mcp.agents.acp.requests import CONFIG, Made, config
from swarm_mcp.errors import SwarmError
from swarm_mcp.hooks.session_hooks import StoreRegistrar
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes import NAMES, hook_config
from swarm_mcp.store import Store, driver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.config import RuntimeConfig
    from swarm_hook_core.denial import Denial
    from swarm_hook_core.hooks import Verdict

BUSY_SECONDS = 1.0


class Guard:
    """The open sessions of one agent. Its methods may be called from several threads, and raise nothing."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}  # session id -> its folder
        self._hooked: dict[str, RuntimeConfig] = {}  # session id -> the runtime that its hooks have registered it for
        self._expected: dict[tuple[str, str], tuple[Made, Denial]] = {}  # session, id of a call -> call, denial
        self._lock = threading.Lock()
        self._driver = driver.load()

    def begin(self, session_id: str, folder: str) -> None:
        """Register a session that the agent has begun, loaded or forked."""
        with self._lock, _recorded("session_start"):
            self._folders[session_id] = folder
            self._at("SessionStart", session_id, "startup")

    def begin_turn(self, session_id: str, prompt: str) -> None:
        """Note that the session works on a prompt."""
        with self._lock, _recorded("turn"):
            self._at("UserPromptSubmit", session_id, prompt=prompt)

    def end_turn(self, session_id: str) -> None:
        """Note that the session waits for a prompt; the locks that it took by writing end."""
        with self._lock, _recorded("turn"):
            self._at("Stop", session_id)

    def end(self, session_id: str) -> None:
        """End a session, and its locks."""
        with self._lock, _recorded("session_end"):
            if session_id in self._folders:
                self._at("SessionEnd", session_id)
                del self._folders[session_id]
                self._hooked.pop(session_id, None)

    def end_all(self) -> None:
        """End all sessions."""
        for session_id in list(self._folders):
            self.end(session_id)

    def renew(self) -> None:
        """Give a sign of life for each session."""
        with self._lock:
            for session_id in list(self._folders):
                with _recorded("turn"):
                    self._at("SessionStart", session_id)

    def folder_of(self, session_id: str) -> str:
        """Return the session's folder, or this process's for an unknown session."""
        return self._folders.get(session_id) or os.getcwd()

    def denial(self, session_id: str, call_id: str, made: Made) -> str:
        """Return the reason why a call must not be made; an empty text if it may."""
        with self._lock, _recorded("pre_tool_use"):
            known, denial = self._expected.pop((session_id, call_id), (None, None))
            call, core = self._call(session_id, call_id, made, "PreToolUse"), self._core(session_id)
            if denial is None or known != made:
                verdict = self._verdict(core, call)
                denial = verdict.denial if verdict is not None else None
                core.report(verdict, call)
            if denial is not None:
                core.note_denial(call, denial)
                return str(denial.reason)
        return ""

    def expect(self, session_id: str, call_id: str, made: Made) -> None:
        """Check a call that the agent has begun, and may or may not ask for: its writes are noted if it may be made."""
        with self._lock, _recorded("pre_tool_use"):
            core, call = self._core(session_id), self._call(session_id, call_id, made, "PreToolUse")
            verdict = self._verdict(core, call)
            if verdict is None or verdict.denial is None:
                core.report(verdict, call)
            else:
                self._expected[session_id, call_id] = made, verdict.denial  # a denial counts once

    def _verdict(self, core: HookCore, call: ToolCall) -> Verdict | None:
        if call.session_id not in self._folders:
            self._folders[call.session_id] = call.cwd
            self._at("SessionStart", call.session_id, "resume")
        return core.check(call)

    def after(self, session_id: str, call_id: str, made: Made) -> None:
        """Note that a call is over, and compare the files that were watched during it."""
        with self._lock, _recorded("post_tool_use"):
            self._expected.pop((session_id, call_id), None)
            self._core(session_id).words_after(self._call(session_id, call_id, made, "PostToolUse"))

    def _call(self, session_id: str, call_id: str, made: Made, event: str) -> ToolCall:
        folder = os.path.join(self.folder_of(session_id), made.folder)
        return ToolCall(made.tool, made.input, session_id, folder, event, id=call_id, client_tool=made.name)

    def _at(self, name: str, session_id: str, source: str = "", prompt: str = "") -> None:
        """Run the hook of an event of the session. Hooks of its own run those that may have words for its model."""
        runtime = self._config(session_id)
        if runtime is not CONFIG and name != "Stop":
            return
        event = SessionEvent(session_id, self.folder_of(session_id), name, source=source, prompt=prompt)
        registrar = _ByCommand(runtime, chosen_command()) if chosen_command() else _InStore(runtime.runtime_name)
        body = {"SessionStart": session_events.begins, "SessionEnd": session_events.ends}
        try:
            body.get(name, session_events.takes_turn)(self._core(session_id, registrar), event)
        finally:
            if isinstance(registrar, _InStore):
                registrar.close()

    def _core(self, session_id: str, registrar: Any = None) -> HookCore:
        command = chosen_command() or coordinator_command()
        return _Silent(self._config(session_id), command, self._driver, registrar)

    def _config(self, session_id: str) -> RuntimeConfig:
        """Return the runtime of the session: that of its own hooks, once these have registered it."""
        if session_id in self._hooked:
            return self._hooked[session_id]
        runtime = ""
        with contextlib.suppress(SwarmError), Store(read_only=True, busy_seconds=BUSY_SECONDS) as store:
            rows = store.instances.of_session_id(session_id)  # without a store the check itself tells the fault
            runtime = next((row.runtime for row in rows if row.runtime in NAMES), "")
        if not runtime:
            return CONFIG
        if session_id in self._folders:
            # End the session's registration by this process: its hooks have registered it, too
            with contextlib.closing(_InStore(CONFIG.runtime_name)) as registrar:
                registrar.end(session_id, (0, ""), 0, BUSY_SECONDS)
        self._hooked[session_id] = config(runtime, hook_config(runtime).env_prefix)
        return self._hooked[session_id]


class _Silent(HookCore):
    """The hook core without words for the model: the protocol has no place for them but a refusal."""

    def tell(self, name: str, event: SessionEvent, text: str, for_user: str = "") -> None:
        """Print nothing: standard output belongs to the protocol."""


class _InStore(StoreRegistrar):
    """Registers sessions of the runtime `name`. Those of CONFIG are open in this process, and end with it."""

    def __init__(self, name: str):
        super().__init__(name)
        self._client = _client_of(name)

    def register(self, session: dict[str, Any], seconds: float, patience: float, tell: bool = False) -> dict[str, Any]:
        """Register or renew `session`. Its model is told nothing here."""
        return super().register({**session, "client": self._client}, seconds, patience)

    def end(self, session_id: str, _client: tuple[int, str], seconds: float, patience: float) -> None:
        """End a session."""
        super().end(session_id, self._client, seconds, patience)


class _ByCommand(CommandRegistrar):
    """The same by the command that a user has named as the coordinator (``SWARM_MCP_BIN``)."""

    def register(
        self, session: dict[str, Any], seconds: float, patience: float, tell: bool = False, leave_running: bool = False
    ) -> dict[str, Any]:
        """Register or renew `session`. Its model is told nothing here."""
        mine = {**session, "client": _client_of(self.config.runtime_name)}
        found: dict[str, Any] = super().register(mine, seconds, patience, False, leave_running)
        return found

    def end(self, session_id: str, _client: tuple[int, str], seconds: float, patience: float) -> None:
        """End a session."""
        super().end(session_id, _client_of(self.config.runtime_name), seconds, patience)


def _client_of(runtime: str) -> tuple[int, str]:
    """Return this process, for sessions of CONFIG. Those of hooks have their own client."""
    if runtime != CONFIG.runtime_name:
        return 0, ""
    return os.getpid(), start_time(os.getpid())


@contextlib.contextmanager
def _recorded(event: str) -> Iterator[None]:
    """Record a fault in the block, and go on behind it."""
    try:
        yield
    except Exception as error:
        faults.record(CONFIG.runtime_name, event, faults.describe(error))
