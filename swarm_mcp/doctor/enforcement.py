"""Proof of enforcement: a lock in a store made for the purpose, and the client's own hooks."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from swarm_mcp.doctor.plugin_server import Server, Unanswered
from swarm_mcp.runtimes.base import Finding, HookCommand, HookTool, Runtime
from swarm_mcp.runtimes.transport import SECONDS
from swarm_mcp.store import Store
from swarm_mcp.store.registration import Registration

HOOK_SECONDS = 15


def prove(client: Runtime) -> Finding:
    """Whether the hooks that `client` would run deny a write to a peer's file, and only that."""
    name, mend = f"{client.name} enforcement", f"swarm-mcp install --client {client.name}"
    hooks = [hook for hook in client.hook_commands() if hook.event == "PreToolUse"]
    tools = [tool for tool in client.hook_tools() if tool.event == "PreToolUse"]
    if not hooks and not tools:
        return Finding(name, "fail", "the installed plugin has no PreToolUse hook", mend)
    details: dict = {}
    proven = []
    with tempfile.TemporaryDirectory(prefix="swarm-doctor-") as folder:
        root = Path(folder).resolve()
        locked, free = root / "locked.txt", root / "free.txt"
        locked.write_text("canary\n")
        asked = _questions(client, root, locked, free)
        database = str(root / "store" / "swarm.db")
        with Store(database) as store:
            peer = store.instances.register(Registration(str(root), label="doctor", lease_seconds=600))
            canary = store.instances.register(
                Registration(
                    str(root), label="canary", lease_seconds=600, runtime=client.name, session_id="doctor-canary"
                )
            )
            store.locks.acquire(peer, str(locked), "canary")
            with store.writing():
                # Noted already: what a hook starts to note a denial would outlive this folder.
                store.denials.record(canary, store.locks.on(str(locked))[0], "doctor")
        # The commands first: one that stands in for the server rests once that has answered.
        for hook in hooks:
            answers = [_ask(hook, root, database, payload) for _what, _denied, payload in asked]
            took, in_shell = answers[0][1], answers[1][1]
            details.update(command=hook.command, milliseconds=round(took * 1000, 1))
            details.update(shell_milliseconds=round(in_shell * 1000, 1))
            wrong = _wrong(asked, answers)
            if wrong:
                return Finding(name, "fail", wrong, mend, details)
            proven.append(f"the installed hook in {took * 1000:.0f} ms ({in_shell * 1000:.0f} ms in the shell)")
        for tool in tools:
            answers = _ask_server(tool, root, database, [payload for _what, _denied, payload in asked])
            took = answers[0][1]
            details.update(server=tool.server, tool=tool.tool, server_milliseconds=round(took * 1000, 1))
            wrong = _wrong(asked, answers)
            if wrong:
                return Finding(name, "fail", f"the MCP server: {wrong}", mend, details)
            proven.insert(0, f"the plugin's MCP server in {took * 1000:.0f} ms")
    text = f"a canary lock was denied by {' and by '.join(proven)}"
    return Finding(name, "ok", text, details=details)


def _questions(client: Runtime, root: Path, locked: Path, free: Path) -> list[tuple[str, bool, dict]]:
    """What is asked of the hooks: ``(what it is, whether it has to be denied, the client's payload)``."""
    session = "doctor-canary"
    return [
        ("a write to a locked file", True, client.write_payload(session, str(root), str(locked))),
        ("a shell command that writes a locked file", True,
         client.shell_payload(session, str(root), f"echo x | tee -a {locked.name}")),
        ("a write to a free file", False, client.write_payload(session, str(root), str(free))),
        ("a shell command that reads a locked file", False,
         client.shell_payload(session, str(root), f"grep -c 'a > b' {locked.name} 2>/dev/null")),
    ]  # fmt: skip


def transport(client: Runtime) -> Finding:
    """How the check of the installed plugin is asked, and what that does not cover."""
    name = f"{client.name} transport"
    if not any(tool.event == "PreToolUse" for tool in client.hook_tools()):
        return Finding(name, "info", "command: each write is checked by a process of its own")
    text = (
        "mcp_tool: each write is checked by the session's MCP server; while that is not up yet, or once it has died,"
        f" by a process as before. Not covered: a server that hangs (the write passes after {SECONDS} s)"
    )
    back = f"swarm-mcp install --client {client.name} --transport command"
    return Finding(name, "info", text, details={"back": back})


def _wrong(asked: list[tuple[str, bool, dict]], answers: list[tuple[str, float, str]]) -> str:
    """What is wrong with the `answers` (as of `_ask`) to `_questions`; empty where nothing is."""
    for (what, denied, _payload), (told, _took, trouble) in zip(asked, answers):
        if denied and "swarm lock blocked" not in told:
            return f"{what} was not denied: {trouble or told[:120] or 'it was let pass'}"
        if told and not denied:
            return f"{what} was not let through: {trouble or told[:120]}"
    return ""


def _ask_server(tool: HookTool, root: Path, database: str, payloads: list[dict]) -> list[tuple[str, float, str]]:
    """As `_ask` for each payload, of the plugin's server."""
    environment = {**os.environ, "SWARM_DB_PATH": database, "SWARM_STATE_DIR": str(root / "state")}
    found = []
    try:
        with Server(tool, environment, str(root)) as server:
            server.check(payloads[0])  # a server's first answer has its loading in it; sessions pay that once
            for payload in payloads:
                text, took = server.check(payload)
                told, trouble = _understood(text)
                found.append((told, took, trouble))
    except Unanswered as error:
        return [("", 0.0, str(error))] * len(payloads)
    return found


def _ask(hook: HookCommand, root: Path, database: str, payload: dict, **more: str) -> tuple[str, float, str]:
    """The reason for a denial (else what was printed), how long it took in seconds, and any complaint."""
    environment = {
        **os.environ, **hook.environment, "SWARM_DB_PATH": database, "SWARM_STATE_DIR": str(root / "state"), **more,
    }  # fmt: skip
    environment.pop("SWARM_MCP_BIN", None)
    begun = time.monotonic()
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", hook.command],
            input=json.dumps(payload), capture_output=True, encoding="utf-8", errors="replace",
            timeout=HOOK_SECONDS, cwd=root, env=environment,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", time.monotonic() - begun, str(error)
    took = time.monotonic() - begun
    complaint = (done.stderr.strip().splitlines() or [""])[-1]
    if not done.stdout.strip():
        return "", took, complaint or _recorded(root)
    told, trouble = _understood(done.stdout)
    if "could not be checked" in told:
        trouble = trouble or _recorded(root)
    return told, took, trouble or complaint


def _understood(text: str) -> tuple[str, str]:
    """The reason of a denial as clients read it, else the text itself; and any complaint."""
    if not text.strip():
        return "", ""
    try:
        answer = json.loads(text)
        output = dict(answer["hookSpecificOutput"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return text, f"the hook printed what no client understands: {text[:120]!r}"
    exact = set(answer) == {"hookSpecificOutput"} and output.get("permissionDecision") == "deny"
    return (str(output.get("permissionDecisionReason")) if exact else text), ""


def _recorded(root: Path) -> str:
    try:
        return json.loads((root / "state" / "faults.jsonl").read_text().splitlines()[-1])["fault"]
    except (OSError, ValueError, IndexError, KeyError, TypeError, RecursionError):
        return ""
