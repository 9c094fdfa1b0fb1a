"""An installed plugin: its commands, its clients' payloads, and the right answers."""

import compileall
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

RUNTIMES = {"claude-code": "Write", "codex": "apply_patch"}
CHECKOUT = Path(__file__).resolve().parents[2]
PARTS = ("swarm_mcp", "swarm_hook_core", "integrations", "skills", ".claude-plugin", ".codex-plugin", ".agents")


class WrongAnswer(Exception):
    """A hook decided wrongly: no figure of this run means anything."""


class Plugin:
    """The folder that ``swarm-mcp bundle DIR --local`` writes, from a compiled copy of the checkout `source`.

    The copy stands for the installed wheel, compiled by pip: run from the checkout, the coordinator would compile
    itself at every start, or leave compiled modules in the clone. `python` is the interpreter that the plugin's
    commands start, `coordinator` the argv prefix of its ``swarm-mcp``.
    """

    def __init__(self, root: Path, env: dict[str, str], shell: str, source: Path = CHECKOUT):
        site, folder = root / "site", root / "plugin"
        for name in PARTS:
            shutil.copytree(source / name, site / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("LICENSE", "qwen-extension.json"):
            shutil.copy(source / name, site)
        for package in ("swarm_mcp", "swarm_hook_core"):
            compileall.compile_dir(site / package, quiet=1)
        command = [sys.executable, "-m", "swarm_mcp", "bundle", str(folder), "--local"]
        environment = {**os.environ, **env, "PYTHONPATH": str(site)}
        subprocess.run(command, cwd=root, env=environment, check=True, stdout=subprocess.DEVNULL)
        self.folder = folder
        self.shell = shell
        record = json.loads((folder / "install.json").read_text())
        self.python: str = record["python"]
        self.coordinator: list[str] = record["coordinator"]

    def command(self, runtime: str, event: str) -> list[str]:
        """Return the argv of the hook of `event`: through a shell, as both clients start it."""
        wired = json.loads((self.folder / "integrations" / runtime / "hooks.json").read_text())["hooks"][event]
        (hook,) = (hook for group in wired for hook in group["hooks"])
        return [self.shell, "-c", hook["command"].replace("${CLAUDE_PLUGIN_ROOT}", str(self.folder))]

    def script(self, runtime: str, event: str) -> tuple[list[str], str]:
        """Interpreter with its flags, and entry script, of the same command without its shell."""
        started = self.command(runtime, event)[2].split(";")[0].rpartition(" && exec ")[2]
        words = shlex.split(started)
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


def check_decision(output: bytes, runtime: str, file: str, denied: bool, through: str = "") -> None:
    """Raise WrongAnswer unless `output` is empty, or the one object that denies `file`, `through` the right lock."""
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
    blocked = f"swarm lock blocked {RUNTIMES[runtime]} for {os.path.basename(file)}"
    first, again = f"{blocked}{through}: held by ", f"{blocked}: denied "  # the latter says how often, and is shorter
    if json.loads(output) != {"hookSpecificOutput": right} or not reason.startswith((first, again)):
        raise WrongAnswer(f"{runtime}: not the object that both clients honour: {output!r}")


def check_context(output: bytes) -> None:
    """Raise WrongAnswer unless `output` tells the model that its session is registered."""
    try:
        text = json.loads(output)["hookSpecificOutput"]["additionalContext"]
    except (ValueError, KeyError, TypeError):
        raise WrongAnswer(f"SessionStart answered {output!r}") from None
    if "this session is registered as" not in text:
        raise WrongAnswer(f"SessionStart answered: {text}")


def check_agent(output: bytes) -> None:
    """Raise WrongAnswer unless `output` tells a subagent its identity."""
    if b"you are agent `agent-1` of this session" not in output:
        raise WrongAnswer(f"SubagentStart answered {output!r}")


def check_silence(output: bytes) -> None:
    """Raise WrongAnswer unless nothing was printed."""
    if output:
        raise WrongAnswer(f"a silent hook printed {output!r}")
