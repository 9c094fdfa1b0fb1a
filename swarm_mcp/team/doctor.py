"""Checks of the teams that clones on this machine have joined, and the proof that a lock taken on one machine denies on
another.

The proof plays two machines: private homes with a clone each, and with team agents of their own, over the real server.
They have a repository there that no one else sees.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from swarm_hook_core.state import shares_locks
from swarm_hook_core.wording import duration
from swarm_mcp.doctor.own_checks import Asked
from swarm_mcp.errors import SwarmError
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes import SHELL_VARIABLES
from swarm_mcp.runtimes.base import Finding
from swarm_mcp.team.memberships import machine, memberships
from swarm_mcp.team.standing import standing

STEP_SECONDS = 30.0
SETTLED_SECONDS = 10.0  # until a lock holds on both machines
FREE_SECONDS = 10.0  # until a released lock is free elsewhere
RUNTIME = "claude-code"  # the runtime of the tested hook: all do the same here
STATUS = "`swarm-mcp team status` says more"


def findings(_asked: Asked) -> list[Finding]:
    """Return the state of each team's repository, and each server's result of the proof. Empty without a team."""
    if not shares_locks():
        return []
    found = []
    told = standing()
    for one in told["repositories"]:
        details = {name: one[name] for name in ("server", "version", "behind", "work_trees", "said_at")}
        text = f"{one['repository']} over {one['server']}"
        if one["error"]:
            found.append(Finding("team", "fail", f"{text}: {one['error']}", STATUS, details))
        elif not one["fresh"]:
            heard = "never"
            if one["said_at"]:
                heard = f"{duration(time.time() - one['said_at'])} ago"
            words = f"{text}: locks of other machines are unknown here; the server was last heard of {heard}"
            found.append(Finding("team", "fail", words, STATUS, details))
        elif one["only_here"]:
            found.append(Finding("team", "warn", f"{text}: on this machine only: {one['only_here']}", STATUS, details))
        else:
            words = f"{text}: fresh, asked in {one['milliseconds']:.0f} ms, {len(one['machines'])} machines"
            found.append(Finding("team", "ok", words, details=details))
    reached = [one["server"] for one in told["repositories"] if not one["error"]]
    return found + [
        _proof(server) for server in dict.fromkeys(one.server for one in memberships()) if server in reached
    ]


class _Machine(NamedTuple):
    """A private home with a clone."""

    root: Path

    @property
    def clone(self) -> Path:
        return self.root / "clone"

    def asked(self, *words: str, stdin: str = "", **also: str) -> str:
        """Return the output of a command of the coordinator, with `also` in its environment.

        Raises SwarmError if it fails.
        """
        try:
            done = subprocess.run(
                [*coordinator_command(), *words], input=stdin, capture_output=True, encoding="utf-8", errors="replace",
                timeout=STEP_SECONDS, cwd=self.clone, env={**self._environment(), **also},
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SwarmError(f"{' '.join(words[:2])}: {error}") from None
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines() or [f"exit status {done.returncode}"]
            raise SwarmError(f"{' '.join(words[:2])}: {said[-1][:300]}")
        return done.stdout

    def denies(self, file: Path) -> bool:
        """Return True if the hook denies a write to a file."""
        # A hook starts the coordinator to note a denial. It would outlive this folder: here a process does nothing.
        nobody = shlex.join([sys.executable, "-S", "-c", "pass"])
        call = {"session_id": "doctor", "cwd": str(self.clone), "hook_event_name": "PreToolUse", "tool_name": "Write",
                "tool_input": {"file_path": str(file), "content": ""}}  # fmt: skip
        words = "hook", "pre-tool-use", "--runtime", RUNTIME
        return '"deny"' in self.asked(*words, stdin=json.dumps(call), SWARM_MCP_BIN=nobody)

    def _environment(self) -> dict[str, str]:
        # HOME stays: there libpq finds its service file and passwords.
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in SHELL_VARIABLES and (not name.startswith("SWARM_") or name == "SWARM_UVX")
        }
        places = {"SWARM_STATE_DIR": "state", "SWARM_DB_PATH": "store/swarm.db", "SWARM_CONFIG_DIR": "config"}
        return {**kept, **{name: str(self.root / place) for name, place in places.items()}}


def _proof(server: str) -> Finding:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="swarm-doctor-") as folder:
        here, there = _Machine(Path(folder, "here").resolve()), _Machine(Path(folder, "there").resolve())
        try:
            wrong, took = _wrong(server, here, there)
        except SwarmError as error:
            wrong, took = str(error), 0.0
        finally:
            for one in (here, there):
                _ended(one)
    details = {"server": server, "seconds": round(time.monotonic() - begun, 1), "lock_seconds": round(took, 3)}
    if wrong:
        return Finding("team proof", "fail", f"two machines over {server}: {wrong}", STATUS, details)
    words = f"over {server} a lock taken in one private home in {took * 1000:.0f} ms denied a write in another"
    return Finding("team proof", "ok", words, details=details)


def _wrong(server: str, here: _Machine, there: _Machine) -> tuple[str, float]:
    """Run the proof. Return the fault (or an empty text) and the seconds that a lock took. Raises SwarmError."""
    name = f"doctor/{machine()}"
    for one in (here, there):
        one.clone.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(one.clone)], check=True, capture_output=True)
        one.asked("team", "join", server, "--repository", name)
    if there.denies(there.clone / "locked.txt"):
        return "a write to a free file was denied", 0.0
    begun = time.monotonic()
    lock = json.loads(here.asked("lock", "locked.txt", "--detach", "--ttl", "60", "--json"))
    took = time.monotonic() - begun
    while not (lock.get("team") or {}).get("settled") and took < SETTLED_SECONDS:  # a busy machine's agent is slow
        lock = json.loads(here.asked("lock", "locked.txt", "--as", lock["instance_id"], "--json"))
        took = time.monotonic() - begun
    if not (lock.get("team") or {}).get("settled"):
        return f"the lock did not come to hold on all machines: {lock.get('team')}", took
    if not there.denies(there.clone / "locked.txt"):
        return "a write to the locked file was let through", took
    here.asked("unlock", "locked.txt", "--as", lock["instance_id"])
    end = time.monotonic() + FREE_SECONDS
    while there.denies(there.clone / "locked.txt"):
        if time.monotonic() > end:
            return f"{FREE_SECONDS:.0f} s after its release a write to the file was still denied", took
        time.sleep(0.1)
    return "", took


def _ended(one: _Machine) -> None:
    """Leave, and end the agent: its home goes."""
    for words in (("team", "leave"), ("team", "agent", "--stop")):
        try:
            one.asked(*words)
        except SwarmError:
            continue  # it had not come so far
