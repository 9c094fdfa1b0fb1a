"""The actors of the hook tests: the plugins' own hook commands, sessions, and peers that hold locks."""

import json
import os
import runpy
import shlex
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from support.checkers import Checker
from support.fixtures import put_empty_store
from support.listings import lines_of
from swarm_hook_core.core import HookCore
from swarm_hook_core.process import start_time
from swarm_mcp.checker import EVENTS as ANSWERED
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration

ROOT = Path(__file__).resolve().parents[2]
PAYLOADS = ROOT / "tests" / "data" / "payloads"
RUNTIMES = ("claude-code", "codex")
FOLDERS = {"claude-code": "claude"}  # of captured payloads, where they are not called as the client is
INTERPRETER = sys.executable  # the hooks' interpreter
checker: Callable[[], Checker] | None = (
    None  # answers for the hooks of `run` and `after`; None: each is a process of its own
)
EVENTS = {
    "session_start": "SessionStart",
    "turn": "UserPromptSubmit",
    "pre_tool_use": "PreToolUse",
    "post_tool_use": "PostToolUse",
    "session_end": "SessionEnd",
    "subagent": "SubagentStop",
}


class Ran(NamedTuple):
    """One run of a hook. `took` is in seconds."""

    code: int
    out: str
    err: str
    took: float

    @property
    def reason(self) -> str:
        """Why the call was denied, empty where it may pass. Anything but the one honoured object is an error."""
        if self.out == "":
            return ""
        answer = json.loads(self.out)
        assert set(answer) == {"hookSpecificOutput"}
        inner = answer["hookSpecificOutput"]
        if " is free: " in inner.get("additionalContext", ""):
            assert set(inner) == {"hookEventName", "additionalContext"}
            return ""  # it may pass, and the session is told of a file that it was refused before
        assert set(inner) == {"hookEventName", "permissionDecision", "permissionDecisionReason"}
        assert (inner["hookEventName"], inner["permissionDecision"]) == ("PreToolUse", "deny")
        return str(inner["permissionDecisionReason"])

    @property
    def context(self) -> str:
        """Return the text of a session start for the model; a fault is shown to the user as well."""
        answer = json.loads(self.out)
        assert set(answer) <= {"systemMessage", "hookSpecificOutput"}
        assert set(answer["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
        assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"
        return str(answer["hookSpecificOutput"]["additionalContext"])


def hook_core(runtime: str) -> HookCore:
    """The core as this runtime's own folder configures it."""
    return HookCore(runpy.run_path(str(ROOT / "integrations" / runtime / "runtime.py"))["RUNTIME"])


def wired_command(runtime: str, event: str) -> str:
    """The shell command that this runtime's hooks.json gives to an event; of several, the first one's."""
    wired = json.loads((ROOT / "integrations" / runtime / "hooks.json").read_text())
    command = wired["hooks"][event][0]["hooks"][0]["command"]
    return str(command).replace("${CLAUDE_PLUGIN_ROOT}", str(ROOT))


def argv(runtime: str, hook: str) -> list[str]:
    """A hook as its client starts it, without the shell in between."""
    words = wired_command(runtime, EVENTS[hook]).rpartition('hook.sh" ')[2].partition(";")[0].split()
    return [INTERPRETER, "-E", "-s", "-S", str(ROOT / "integrations" / "hook.py"), *words]


# The real hook, with as much time for a session's start, turns, end and news as a busy machine needs. A session that is
# not registered in time is, in passing, by its first check: that changes the store.
_PATIENT = f"""
import os, runpy, sys
sys.path.insert(0, {str(ROOT)!r})
from swarm_hook_core import session_events, session_memory
session_memory.TELL_SECONDS = 240.0
session_events.START_SECONDS = session_events.TURN_SECONDS = session_events.END_SECONDS = 240.0
session_events.START_PATIENCE = session_events.TURN_PATIENCE = session_events.END_PATIENCE = 120.0
del sys.argv[0]
sys.path.insert(0, os.path.dirname(sys.argv[0]))  # as for a program
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(
    runtime: str, hook: str, payload: Any, env: dict[str, str] | None = None, cwd: Any = None, patient: bool = False
) -> Ran:
    """Run one hook on `payload`: an object, or the bytes themselves. `patient`: a session's start, turn, end or news has its time."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    words = [*argv(runtime, hook)[:4], "-c", _PATIENT, *argv(runtime, hook)[4:]] if patient else argv(runtime, hook)
    variables = {**os.environ, **(env or {})}
    begun = time.monotonic()
    if checker and hook in ANSWERED and checker().answers_in(variables.get("SWARM_STATE_DIR", "")):
        done = checker().answer(runtime, hook, words, data, variables, cwd)
    else:
        done = subprocess.run(
            words, input=data, capture_output=True, env=variables, cwd=cwd, timeout=300, check=False
        )  # fmt: skip
    took = time.monotonic() - begun
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode("utf-8", "replace"), took)


def said_by(command: str, payload: Any, shell: str = "/bin/sh", **given: Any) -> str:
    """Run a hook's command as its client does, in a shell; return all that it says: it ends well, without complaints."""
    done = subprocess.run(
        [shell, "-c", command], input=json.dumps(payload), capture_output=True, text=True, timeout=300, check=False, **given
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def captured(runtime: str, name: str, cwd: Any, **more: Any) -> dict[str, Any]:
    """A payload captured from the real client, with its placeholders filled in, and with `more` in it."""
    text = (PAYLOADS / FOLDERS.get(runtime, runtime) / f"{name}.json").read_text()
    payload = json.loads(text.replace("<CWD>", str(cwd)).replace("<HOME>", os.environ["HOME"]))
    assert isinstance(payload, dict)
    return {**payload, **more}


def new_session() -> str:
    """Return an id of a client's session. It begins with a letter: one of digits could be a time, which is in no name."""
    return f"a{str(uuid.uuid4())[1:]}"


def start(runtime: str, session_id: str, cwd: Any, source: str = "startup", **env: str) -> Ran:
    payload = {**captured(runtime, f"SessionStart.{source}", cwd), "session_id": session_id}
    return run(runtime, "session_start", payload, env, patient=True)


def subagent_payload(event: str, session_id: str, agent: str, cwd: Any) -> dict[str, Any]:
    """The beginning or end of a subagent; both clients tell it alike."""
    payload = {"session_id": session_id, "cwd": str(cwd), "hook_event_name": event, "agent_id": agent}
    return {**payload, "agent_type": "general-purpose", "transcript_path": "/t"}


def write_payload(runtime: str, session_id: str, cwd: Any, *paths: str) -> dict[str, Any]:
    """A new call that writes `paths` as spelled: one file in Claude Code, any number in Codex."""
    if runtime == "claude-code":
        (path,) = paths
        payload = captured(runtime, "PreToolUse.Write", cwd)
        payload["tool_input"]["file_path"] = path
    else:
        payload = captured(runtime, "PreToolUse.apply_patch", cwd)
        hunks = "".join(f"*** Add File: {path}\n+x\n" for path in paths)
        payload["tool_input"] = {"command": f"*** Begin Patch\n{hunks}*** End Patch\n"}
    return {**payload, "session_id": session_id, "tool_use_id": new_session()}


def write(runtime: str, session_id: str, cwd: Any, *paths: str | Path, **env: str) -> Ran:
    return run(runtime, "pre_tool_use", write_payload(runtime, session_id, cwd, *(str(path) for path in paths)), env)


def ready_store() -> Path:
    """An empty store in this test's home."""
    path = Path(os.environ["SWARM_DB_PATH"])
    if not path.exists():
        put_empty_store(str(path))
    return path


def join(store: Store, directory: Any, label: str = "peer", **given: Any) -> dict[str, Any]:
    """Register a session of a live client; its row."""
    # Not this process: the hooks that it starts would take the peer's locks for their own client's.
    facts = {"runtime": "codex", "session_id": new_session(), "client": (1, start_time(1)), "lease_seconds": 86400}
    row: dict[str, Any] = store.instances.register(Registration(str(directory), label=label, **{**facts, **given}))
    return row


def peer_locks(directory: Any, file: Any, note: str = "busy", label: str = "peer", **given: Any) -> dict[str, Any]:
    """A peer session in `directory` that holds `file`; its row."""
    with Store() as store:
        row = join(store, directory, label, **given)
        store.locks.acquire(row, str(file), note)
    return row


def instances() -> list[dict[str, Any]]:
    """Every row of the store, gone or not."""
    with Store() as store:
        return store.database.rows(
            "SELECT i.*, s.runtime, s.session_id, s.state, s.last_seen, s.lease_seconds, s.client_pid, s.client_start"
            " FROM instances i LEFT JOIN swarm_sessions s ON s.instance_id = i.id ORDER BY i.rowid"
        )


def alterations() -> list[dict[str, Any]]:
    """Return the changes of locked files that the store knows."""
    with Store() as store:
        return store.database.rows("SELECT * FROM swarm_alterations")


def fault_lines() -> list[dict[str, Any]]:
    """Return the faults that hooks have recorded in this test's home."""
    path = Path(os.environ["SWARM_STATE_DIR"]) / "faults.jsonl"
    return [json.loads(line) for line in lines_of(path)]


def mistakes() -> list[dict[str, Any]]:
    """Return the recorded faults, except for answers that the coordinator had no time for, as on a busy machine."""
    return [line for line in fault_lines() if "no answer within" not in line["fault"]]


def after(runtime: str, payload: dict[str, Any], event: str = "PostToolUse", **more: Any) -> str:
    """Return the wired hook's text after the call of `payload`; empty if there is no answer."""
    command = wired_command(runtime, event).replace("; exit 0", f" {shlex.quote(sys.executable)}; exit 0")
    assert sys.executable in command
    said = said_by(command, {**payload, "hook_event_name": event, **more})
    if not said:
        return ""
    inner = json.loads(said)["hookSpecificOutput"]
    assert set(inner) == {"hookEventName", "additionalContext"} and inner["hookEventName"] == event
    return str(inner["additionalContext"])


def begun(runtime: str, me: str, repo: Path, command: str = "make gen", tool: str = "PowerShell") -> dict[str, Any]:
    """Let a shell call pass the real hook, and return its payload.

    By default it is in an unread language: to read another, this interpreter has to ask the coordinator.
    """
    given = {"tool_name": tool, "tool_input": {"command": command}, "tool_use_id": "call-1"}
    payload = {**captured(runtime, "PreToolUse.Bash", repo), "session_id": me, **given}
    ran = run(runtime, "pre_tool_use", payload)
    assert '"deny"' not in ran.out and mistakes() == []
    return payload
