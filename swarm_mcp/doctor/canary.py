"""Proof of enforcement: a lock in a store made for the purpose, and the client's own hooks."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from swarm_mcp.clients.base import Client, Finding, HookCommand, HookTool
from swarm_mcp.doctor.server_canary import Server, Unanswered
from swarm_mcp.store import Store
from swarm_mcp.store.registration import Registration
from swarm_mcp.transport import SECONDS

HOOK_SECONDS = 15


def prove(client: Client) -> Finding:
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
            denied, took, trouble = _ask(client, hook, root, database, locked)
            passed, _, more_trouble = _ask(client, hook, root, database, free)
            details.update(command=hook.command, milliseconds=round(took * 1000, 1))
            wrong = _wrong(denied, trouble, passed, more_trouble)
            if wrong:
                return Finding(name, "fail", wrong, mend, details)
            proven.append(f"the installed hook in {took * 1000:.0f} ms")
        for tool in tools:
            denied, took, passed, trouble = _ask_server(client, tool, root, database, locked, free)
            details.update(server=tool.server, tool=tool.tool, server_milliseconds=round(took * 1000, 1))
            wrong = _wrong(denied, trouble, passed, trouble)
            if wrong:
                return Finding(name, "fail", f"the MCP server: {wrong}", mend, details)
            proven.insert(0, f"the plugin's MCP server in {took * 1000:.0f} ms")
    return Finding(name, "ok", f"a canary lock was denied by {' and by '.join(proven)}", details=details)


def transport(client: Client) -> Finding:
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


def _wrong(denied: str, trouble: str, passed: str, more_trouble: str) -> str:
    """What is wrong with the answers about the locked and the free file; empty where nothing is."""
    if "swarm lock blocked" not in denied:
        return f"a write to a locked file was not denied: {trouble or 'it let the write pass'}"
    if passed:
        return f"a write to a free file was not let through: {more_trouble or passed[:120]}"
    return ""


def _ask_server(
    client: Client, tool: HookTool, root: Path, database: str, locked: Path, free: Path
) -> tuple[str, float, str, str]:
    """As `_ask`, of the plugin's server: the denial and how long it took, then what it says of the free file."""
    payloads = [client.write_payload("doctor-canary", str(root), str(file)) for file in (locked, locked, free)]
    environment = {**os.environ, "SWARM_DB_PATH": database, "SWARM_STATE_DIR": str(root / "state")}
    try:
        with Server(tool, environment, str(root)) as server:
            # A server's first answer has its loading in it; sessions pay that once.
            _, (denied, took), (passed, _) = [server.check(payload) for payload in payloads]
    except Unanswered as error:
        return "", 0.0, "", str(error)
    denied, trouble = _understood(denied)
    return denied, took, passed, trouble


def _ask(client: Client, hook: HookCommand, root: Path, database: str, file: Path) -> tuple[str, float, str]:
    """The reason for a denial (else what was printed), how long it took in seconds, and any complaint."""
    payload = client.write_payload("doctor-canary", str(root), str(file))
    environment = {
        **os.environ, **hook.environment, "SWARM_DB_PATH": database, "SWARM_STATE_DIR": str(root / "state"),
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
    return told, took, trouble or complaint


def _understood(text: str) -> tuple[str, str]:
    """The reason of a denial as clients read it, else the text itself; and any complaint."""
    if not text.strip():
        return "", ""
    try:
        answer = json.loads(text)
        output = dict(answer["hookSpecificOutput"])
    except (ValueError, KeyError, TypeError):
        return text, f"the hook printed what no client understands: {text[:120]!r}"
    exact = set(answer) == {"hookSpecificOutput"} and output.get("permissionDecision") == "deny"
    return (str(output.get("permissionDecisionReason")) if exact else text), ""


def _recorded(root: Path) -> str:
    try:
        return json.loads((root / "state" / "faults.jsonl").read_text().splitlines()[-1])["fault"]
    except (OSError, ValueError, IndexError, KeyError, TypeError):
        return ""
