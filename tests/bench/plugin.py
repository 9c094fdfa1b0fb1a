"""An installed plugin: its commands, what clients send them, and which answers are right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RUNTIMES = {"claude-code": "Write", "codex": "apply_patch"}


class WrongAnswer(Exception):
    """A hook decided wrongly: no figure of this run means anything."""


class Plugin:
    """The folder that ``swarm-mcp bundle DIR --local`` writes.

    `python` is the interpreter its commands start, `coordinator` the argv prefix of its ``swarm-mcp``.
    """

    def __init__(self, folder: Path, checkout_of_swarm: Path, env: dict[str, str]):
        command = [sys.executable, "-m", "swarm_mcp", "bundle", str(folder), "--local"]
        subprocess.run(command, cwd=checkout_of_swarm, env=env, check=True, stdout=subprocess.DEVNULL)
        self.folder = folder
        record = json.loads((folder / "install.json").read_text())
        self.python: str = record["python"]
        self.coordinator: list[str] = record["coordinator"]

    def command(self, runtime: str, event: str) -> list[str]:
        """The argv with which a client runs the hook of `event`: through a shell, as both do."""
        wired = json.loads((self.folder / "integrations" / runtime / "hooks.json").read_text())["hooks"][event]
        (hook,) = (hook for group in wired for hook in group["hooks"])
        return ["/bin/sh", "-c", hook["command"].replace("${CLAUDE_PLUGIN_ROOT}", str(self.folder))]

    def script(self, runtime: str, event: str) -> tuple[list[str], str]:
        """Interpreter with its flags, and entry script, of the same command without its shell."""
        import shlex

        words = shlex.split(self.command(runtime, event)[2].split(";")[0])
        return words[:-1], words[-1]


def payload(event: str, session_id: str, cwd: str, **fields: object) -> bytes:
    """A hook payload with the fields that both clients send."""
    body = {"session_id": session_id, "transcript_path": f"{cwd}.jsonl", "cwd": cwd, "hook_event_name": event}
    return json.dumps({**body, "permission_mode": "default", **fields}).encode()


def write_payload(runtime: str, session_id: str, cwd: str, file: str) -> bytes:
    """A write of `file` (absolute) with the tool that `runtime` writes with."""
    content = "".join(f"line {number} of a file of ordinary length\n" for number in range(60))
    if runtime == "codex":
        added = "".join(f"+{line}\n" for line in content.splitlines())
        patch = f"*** Begin Patch\n*** Add File: {Path(file).relative_to(cwd)}\n{added}*** End Patch\n"
        tool_input = {"command": patch}
    else:
        tool_input = {"file_path": file, "content": content}
    return payload("PreToolUse", session_id, cwd, tool_name=RUNTIMES[runtime], tool_input=tool_input)


def check_decision(output: bytes, runtime: str, file: str, denied: bool) -> None:
    """Raise WrongAnswer unless `output` is nothing, or the one object that denies `file`."""
    if not denied:
        if output:
            raise WrongAnswer(f"{runtime}: a free file got {output!r}")
        return
    try:
        answer = json.loads(output)["hookSpecificOutput"]
        reason = answer["permissionDecisionReason"]
    except (ValueError, KeyError, TypeError):
        raise WrongAnswer(f"{runtime}: a locked file got {output!r}") from None
    right = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
    opening = f"swarm lock blocked {RUNTIMES[runtime]} for {file}: held by "
    if json.loads(output) != {"hookSpecificOutput": right} or not reason.startswith(opening):
        raise WrongAnswer(f"{runtime}: not the object that both clients honour: {output!r}")


def check_context(output: bytes) -> None:
    """Raise WrongAnswer unless `output` tells the model that its session is registered."""
    try:
        text = json.loads(output)["hookSpecificOutput"]["additionalContext"]
    except (ValueError, KeyError, TypeError):
        raise WrongAnswer(f"SessionStart answered {output!r}") from None
    if "this session is registered as" not in text:
        raise WrongAnswer(f"SessionStart answered: {text}")


def check_silence(output: bytes) -> None:
    """Raise WrongAnswer unless nothing was printed."""
    if output:
        raise WrongAnswer(f"a silent hook printed {output!r}")
