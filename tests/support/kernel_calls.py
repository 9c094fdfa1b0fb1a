"""Shell calls of sessions with kernel-held locks of others, played through the check."""

import os
from pathlib import Path
from typing import Any

import pytest

from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.kernel import namespace, planning, plans
from swarm_hook_core.state import write_private
from swarm_mcp.store import Store, driver

from .sessions import hook_core, join, new_session, ready_store

OPAQUE = "python3 fix.py"  # unpredictable, once there is such a file


def says(why: str = "") -> None:
    """The kernel was tried here already: it can hold files, or cannot because of `why`."""
    write_private(os.path.join(plans.kernel_dir(), "probe"), f"{namespace._mark()} {why}")


class Caller:
    """A session of `runtime` in `folder`, with wired shells."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, runtime: str = "claude-code", wired: bool = True):
        ready_store()
        self.folder, self.runtime, self.session_id = folder, runtime, new_session()
        monkeypatch.setenv("SWARM_KERNEL", "1")
        if not (folder / "fix.py").exists():
            (folder / "fix.py").write_text("import json\n[open(n, 'w') for n in json.load(open('names.json'))]\n")
        self.core = hook_core(runtime)
        self.core.driver = driver.load()
        with Store() as store:
            self.row = join(store, folder, f"identity:p {runtime}", runtime=runtime, session_id=self.session_id)
        self.env_file = Path(os.environ["HOME"]) / f"env-{self.session_id}"
        if runtime == "codex":
            monkeypatch.setattr("swarm_hook_core.kernel.planning._shell", lambda: "bash")
            monkeypatch.setattr("swarm_hook_core.environment.client_version", lambda config: "0.169.0")
        elif wired:
            self.wire(monkeypatch)

    def wire(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Wire its shells, as the session's start does."""
        with monkeypatch.context() as patched:
            patched.setenv("CLAUDE_ENV_FILE", str(self.env_file))
            planning.wire(self.core.config, SessionEvent(self.session_id, str(self.folder), "SessionStart"))

    def call(self, command: Any = OPAQUE, id: str = "call-1", agent: str = "", **more: Any) -> ToolCall:
        given = {"tool": "Bash", "name": "PreToolUse", "client_tool": "Bash", "input": {"command": command}, **more}
        tool, tool_input = given.pop("tool"), given.pop("input")
        return ToolCall(tool, tool_input, self.session_id, str(self.folder), agent=agent, id=id, **given)

    def check(self, command: Any = OPAQUE, id: str = "call-1", agent: str = "", **more: Any) -> Any:
        """The Verdict on a call."""
        return self.core.check(self.call(command, id, agent, **more))

    def denied(self, command: Any = OPAQUE, **more: Any) -> str:
        """Why a call is denied, empty where it may pass."""
        verdict = self.check(command, **more)
        return verdict.denial.reason if verdict is not None and verdict.denial is not None else ""

    def after(self, response: Any, id: str = "call-1", command: str = OPAQUE, agent: str = "", **more: Any) -> str:
        """Return the text for the model after a call."""
        return self.core.words_after(self.call(command, id, agent, name="PostToolUse", response=response, **more))

    def plan(self, id: str = "call-1") -> Any:
        """Return the plan for a call, or None."""
        call = self.call(id=id)
        return plans.load(os.path.join(plans.folder_of(self.session_id), planning.name_of_call(self.core.config, call)))

    def held(self, id: str = "call-1") -> list[str]:
        """The same as paths within the folder; of the checkout's own."""
        plan = self.plan(id)
        return sorted(os.path.relpath(path, self.folder) for path in plan.paths) if plan else []
