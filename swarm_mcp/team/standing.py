"""The state of this machine and its clones in their teams, as ``team status`` shows it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from swarm_hook_core import repository
from swarm_hook_core.state import shares_locks
from swarm_hook_core.untrusted_text import named
from swarm_hook_core.wording import duration
from swarm_mcp.answers.people import MachineNow, Machines
from swarm_mcp.doctor.own_checks import Asked
from swarm_mcp.errors import SwarmError
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes import SHELL_VARIABLES
from swarm_mcp.runtimes.base import Finding
from swarm_mcp.store import Store
from swarm_mcp.team import agent_client
from swarm_mcp.team.agent_client import is_fresh, known_here, unheard_for
from swarm_mcp.team.memberships import Membership, machine, memberships
from swarm_mcp.team.parts import TeamRows
from swarm_mcp.team.places import GIVEN, described, identify
from swarm_mcp.team.store_rows import HOST


def standing() -> dict[str, Any]:
    """Return ``{ok, machine, agent, repositories}``; each of the last ends with the server's ``machines``.

    `ok`: every server was reached, and the copy here is fresh. Asks each server, possibly for seconds.
    """
    joined = memberships()
    if not joined:
        return {"ok": True, "machine": "", "agent": None, "repositories": []}
    agent = agent_client.status()
    with Store() as store:
        known = TeamRows(store).repositories()
    found = []
    for name, server in dict.fromkeys((one.repository, one.server) for one in joined):
        clones = [one for one in joined if (one.repository, one.server) == (name, server)]
        row = known.get(name)
        told = _told(server, name)
        version = 0
        if row is not None:
            version = row.version
        found.append({
            "repository": name,
            "source": clones[0].source,
            "named_by": described(clones[0].source),
            "would_be": _would_be(clones[0]),
            "server": server,
            "work_trees": [top for one in clones for top in one.tops],
            "fresh": row is not None and is_fresh(row),
            "said_at": row.said_at if row is not None else None,
            "state": row.state if row is not None else "",
            "version": version,
            "behind": max(0, told.pop("version", version) - version),
            "only_here": _only_here(agent, server, name),
            **told,
        })  # fmt: skip
    ok = all(one["fresh"] and not one["error"] for one in found)
    return {"ok": ok, "machine": machine(), "agent": agent, "repositories": found}


def _only_here(agent: dict[str, Any] | None, server: str, name: str) -> str:
    """Return a text about messages, tasks and values that the server does not take; empty if it takes all."""
    talks = [talk for talk in (agent or {}).get("servers", []) if talk["server"] == server]
    followed = [one for talk in talks for one in talk["repositories"]]
    facts: dict[str, Any] = next((one for one in followed if one["repository"] == name), {})
    if facts.get("shares") is False:
        return f"messages, tasks and values: the server is older, `swarm-mcp team init {server}` brings it up to date"
    return "; ".join(f"{kind} {named(key)}: {why}" for kind, key, why in facts.get("not_shared", []))


def known_epoch(server: str) -> str:
    """Return the epoch of a server as this machine has known it last; empty where it has not."""
    names = {one.repository for one in memberships() if one.server == server}
    if not names:
        return ""
    with Store() as store:
        epochs = [row.epoch for name, row in TeamRows(store).repositories().items() if name in names]
    return next((epoch for epoch in epochs if epoch), "")


def _told(server: str, name: str) -> dict[str, Any]:
    """Return the server's data about a repository and its machines, and their round trip; else the ``error``."""
    silence: dict[str, Any] = {"error": "", "milliseconds": None, "machines": []}
    own = machine()
    try:
        from swarm_mcp.team.server import TeamServer, require_session

        require_session(server)
        asked = TeamServer(server, own)
        try:
            news = asked.look(name)
            begun = time.monotonic()
            rows = asked.machines(name)
            took = (time.monotonic() - begun) * 1000
        finally:
            asked.close()
    except SwarmError as error:
        return {**silence, "error": str(error)}
    version = 0
    if news:
        version = news["version"]
    shown = [{**row, "is_own": row["machine"] == own, "behind": max(0, version - row["acked"])} for row in rows]
    return {**silence, "milliseconds": took, "version": version, "machines": shown}


def _would_be(one: Membership) -> str:
    """Return the name of a clone's repository for a join now, if that differs."""
    tree = repository.tree_at(one.top)
    if one.source == GIVEN or tree is None:
        return ""
    try:
        now = identify(tree).id
    except SwarmError:  # no name, as outside of a repository
        return ""
    if now != one.repository:
        return now
    return ""


# The machines of a team, for those who look at a checkout.
#
# No connection is opened: this machine's copy of the team is in the store, and the team agent answers the rest. The
# agent watches the machines for as long as it is asked.

ASK_SECONDS = 1.0
GOOD_SECONDS = 15.0  # Seconds after which the server's word about a machine is out of date.


def machines_of(store: Store, scope: str) -> Machines | None:
    """Return the machines that share the work tree around the folder `scope`; None outside of a team.

    A team agent that does not answer is waited for, `ASK_SECONDS` at most.
    """
    known = known_here(store, scope)
    if known is None:
        return None
    name = known["repository"]
    agent = agent_client.status(ASK_SECONDS, machines=True) or {}
    own = str(agent.get("machine") or "")
    told: dict[str, Any] = {}
    errors = [server["error"] for server in agent.get("servers", ())]
    for server in agent.get("servers", ()):
        for one in server["repositories"]:
            if one["repository"] == name:
                told, errors = one, [server["error"]]
    error = next(filter(None, errors), "")
    trees, elsewhere = TeamRows(store).trees(), dict[str, int]()
    for session in TeamRows(store).mirrored_sessions():
        if trees.get(session.scope) == name:
            machine = (session.host or "").removeprefix(HOST)
            elsewhere[machine] = elsewhere.get(machine, 0) + 1
    looked = told.get("looked")
    is_known = looked is not None and looked < GOOD_SECONDS and not error
    found = {row["machine"]: _machine(row, own, told, is_known) for row in told.get("machines", ())}
    for machine, sessions in elsewhere.items():
        found.setdefault(machine, MachineNow(machine, "", 0, False, None, 0))
        found[machine] = found[machine]._replace(sessions=sessions)
    if own:
        found.setdefault(own, MachineNow(own, "", told.get("sessions", 0), True, 0.0, 0))
    if is_known:
        took = told["round_trip"] * 1000
    else:
        took = None
    machines = sorted(found.values(), key=lambda one: (not one.is_own, one.name))
    freshness = _freshness(known["fresh"], known["said_at"], took)
    return Machines("team", name, known["fresh"], freshness, known["said_at"], error, took, machines)


def _freshness(is_fresh: bool, said_at: int | None, milliseconds: float | None) -> str:
    """Return in words how fresh the knowledge of other machines is."""
    if not is_fresh:
        return f"not fresh: its server was not heard of {unheard_for(said_at)}"
    if milliseconds is None:
        return "fresh"
    return f"fresh, its server answers in {milliseconds:.0f} ms"


def _machine(row: dict[str, Any], own: str, told: dict[str, Any], is_known: bool) -> MachineNow:
    """Return a machine from the server's row. `is_known`: the row is recent enough to tell the state."""
    is_own, has_ended = row["machine"] == own, not row["lease"]
    if is_own or not is_known:
        return MachineNow(row["machine"], row["member"], row["sessions"], is_own, 0.0 if is_own else None, 0)
    silent = max(0.0, -row["left"])
    if has_ended:
        behind = 0
    else:
        behind = max(0, told["version"] - row["acked"])
    return MachineNow(row["machine"], row["member"], row["sessions"], False, silent, behind, has_ended)


# Checks of the teams that clones on this machine have joined, and the proof that a lock taken on one machine denies on
# another.
#
# The proof plays two machines: private homes with a clone each, and with team agents of their own, over the real
# server. They have a repository there that no one else sees.

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
