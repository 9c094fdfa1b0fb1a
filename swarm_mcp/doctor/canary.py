"""Proof of enforcement: a lock in a store made for the purpose, and the client's own hook command."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from swarm_mcp.clients.base import Client, Finding, HookCommand
from swarm_mcp.store import Store
from swarm_mcp.store.registration import Registration

HOOK_SECONDS = 15


def prove(client: Client) -> Finding:
    """Whether the hook command that `client` would run denies a write to a peer's file, and only that."""
    name, mend = f"{client.name} enforcement", f"swarm-mcp install --client {client.name}"
    hooks = [hook for hook in client.hook_commands() if hook.event == "PreToolUse"]
    if not hooks:
        return Finding(name, "fail", "the installed plugin has no PreToolUse hook", mend)
    with tempfile.TemporaryDirectory(prefix="swarm-doctor-") as folder:
        root = Path(folder).resolve()
        locked, free = root / "locked.txt", root / "free.txt"
        database = str(root / "store" / "swarm.db")
        with Store(database) as store:
            peer = store.instances.register(Registration(str(root), label="doctor", lease_seconds=600))
            store.instances.register(
                Registration(
                    str(root), label="canary", lease_seconds=600, runtime=client.name, session_id="doctor-canary"
                )
            )
            store.locks.acquire(peer, str(locked), "canary")
        denied, took, trouble = _ask(client, hooks[0], root, database, locked)
        passed, _, more_trouble = _ask(client, hooks[0], root, database, free)
    details = {"command": hooks[0].command, "milliseconds": round(took * 1000, 1)}
    if "swarm lock blocked" not in denied:
        why = trouble or "it let the write pass"
        return Finding(name, "fail", f"a write to a locked file was not denied: {why}", mend, details)
    if passed:
        why = more_trouble or passed[:120]
        return Finding(name, "fail", f"a write to a free file was not let through: {why}", mend, details)
    text = f"a canary lock was denied by the installed hook in {took * 1000:.0f} ms"
    return Finding(name, "ok", text, details=details)


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
    try:
        answer = json.loads(done.stdout)
        output = dict(answer["hookSpecificOutput"])
    except (ValueError, KeyError, TypeError):
        return done.stdout, took, f"the hook printed what no client understands: {done.stdout[:120]!r}"
    exact = set(answer) == {"hookSpecificOutput"} and output.get("permissionDecision") == "deny"
    return (str(output.get("permissionDecisionReason")) if exact else done.stdout), took, complaint


def _recorded(root: Path) -> str:
    try:
        return json.loads((root / "state" / "faults.jsonl").read_text().splitlines()[-1])["fault"]
    except (OSError, ValueError, IndexError, KeyError, TypeError):
        return ""
