"""The cost of a hundred and twenty workers at once beside their children: the processor time of all processes.

A hundred are commands that compute for WORK seconds each, twenty are Claude Code with a scripted model (with
SWARM_E2E_CLIENTS naming a folder with it). They run bare and dispatched (``dispatch --all``), by turns; the difference
is the cost of supervision, with the dispatch itself, keepers and git. Hooks and servers of a client would be its own
work, so it runs as a command here. Linux only: see ``reaped.py``.

Goal: at most 5 % of the children's time; every task is done, and nothing is left behind.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from swarm_mcp.store import Store

from . import stores
from .plugin import Plugin, WrongAnswer

WORKERS, CLIENTS = 100, 20
WORK = 4.0  # seconds of processor time: a short task of an agent; its client's start takes more than one
STEPS = 6  # of a scripted client
SHARE = 0.05
CHILD = """
import sys, time
while time.process_time() < float(sys.argv[1]):
    pass
print("done")
"""


class Crowd:
    """Commands of one kind: `argv` each, in the checkout `cwd`, under `env`; `prompt` names the model's script."""

    def __init__(self, name: str, count: int, argv: list[str], cwd: str, env: dict[str, str], prompt: str = ""):
        self.name, self.count, self.argv, self.cwd, self.prompt = name, count, argv, cwd, prompt
        self.env = {**env, "SWARM_MAX_WORKERS": str(WORKERS + CLIENTS)}
        stores.join(self.env["SWARM_DB_PATH"], cwd, "claude-code", "lead")

    def bare(self) -> list[dict]:
        """Return the commands as they are."""
        return [{"argv": self.argv, "cwd": self.cwd, "env": self.env, "stdin": self.prompt}] * self.count

    def dispatched(self, coordinator: list[str]) -> dict:
        """Make the tasks, and return the command that has them done."""
        with Store(self.env["SWARM_DB_PATH"]) as store:
            lead = next(row for row in store.instances.in_scope(self.cwd) if row.session_id == "lead")
            for number in range(self.count):
                store.tasks.request(lead, {"type": "implement", "title": f"{self.prompt} number {number}"})
        words = ["dispatch", "--all", "--max", str(self.count), "--harness", "process"]
        words += ["--command", shlex.join(self.argv), "--json"]
        env = {**self.env, "CLAUDE_CODE_SESSION_ID": "lead", "SWARM_MCP_ALLOW_SPAWN": "1"}
        return {"argv": [*coordinator, *words], "cwd": self.cwd, "env": env, "stdin": ""}

    def check(self) -> None:
        """Raise WrongAnswer where a task was lost, or a worker or a lock has stayed."""
        with Store(self.env["SWARM_DB_PATH"], read_only=True) as store:
            tasks = store.database.rows("SELECT status, count(*) AS number FROM tasks GROUP BY status")
            left = store.database.rows("SELECT id FROM instances WHERE label LIKE '%role:implementer%'")
            locks = store.database.rows("SELECT file FROM context WHERE type = 'lock'")
        if [row.status for row in tasks] != ["done"] or tasks[0].number % self.count or left or locks:
            raise WrongAnswer(f"{self.name}: tasks {tasks}, {len(left)} workers and {len(locks)} locks left")


class ManyWorkers:
    """The measurement; `missed` is the goal that was not reached, in words."""

    def __init__(self, plugin: Plugin, root: Path, checkout: str, env: dict[str, str]):
        self.plugin, self.root, self.checkout = plugin, root, checkout
        self.env = {**env, "SWARM_DB_PATH": str(root / "many.db"), "PYTHONPATH": str(root / "site")}
        self.missed: list[str] = []

    def measure(self, rounds: int) -> None:
        """Measure it and print it."""
        if sys.platform != "linux":
            print("many workers: not measured, this is no Linux")
            return
        child = self.root / "compute.py"
        child.write_text(CHILD)
        argv = [self.plugin.python, "-I", "-S", str(child), str(WORK)]
        crowds = [Crowd("commands", WORKERS, argv, self.checkout, self.env)]
        ground = self._ground()
        try:
            if ground:
                crowds.append(self._clients(ground))
            self._by_turns(crowds, rounds)
        finally:
            if ground:
                ground.close()

    def _by_turns(self, crowds: list[Crowd], rounds: int) -> None:
        bare, dispatched = [], []
        for _ in range(rounds):
            bare.append(self._reaped([command for crowd in crowds for command in crowd.bare()]))
            dispatched.append(self._reaped([crowd.dispatched(self.plugin.coordinator) for crowd in crowds]))
            for crowd in crowds:
                crowd.check()
        alone, whole = (median(told["cpu"] for told in turns) for turns in (bare, dispatched))
        more, count = whole - alone, sum(crowd.count for crowd in crowds)
        print(
            f"{' and '.join(f'{crowd.count} {crowd.name}' for crowd in crowds)} at once: {alone:.0f} s of the processor"
            f" bare, {whole:.0f} s dispatched: {100 * more / alone:.1f} % more, {1000 * more / count:.0f} ms each"
            f" ({median(told['seconds'] for told in bare):.0f} s and"
            f" {median(told['seconds'] for told in dispatched):.0f} s, {os.cpu_count()} processors, {rounds} turns)",
            flush=True,
        )
        if more > SHARE * alone:
            self.missed.append(f"supervision of {count}: {more / alone:.3f} of its children's time, goal {SHARE}")

    def _reaped(self, commands: list[dict]) -> dict:
        helper = str(Path(__file__).with_name("reaped.py"))
        done = subprocess.run(
            [sys.executable, helper], input=json.dumps({"commands": commands}), capture_output=True, text=True
        )
        told = json.loads(done.stdout) if not done.returncode else {"failed": [done.stderr[-500:]]}
        if told["failed"]:
            raise WrongAnswer(f"{len(told['failed'])} of {len(commands)} failed: {told['failed'][0]}")
        return told

    def _ground(self) -> Any:
        if not os.environ.get("SWARM_E2E_CLIENTS"):
            print("scripted clients: not measured, SWARM_E2E_CLIENTS is not set")
            return None
        return self._of_e2e("ground").Ground("bench-many")

    def _clients(self, ground: Any) -> Crowd:
        client = self._of_e2e("clients").ClaudeCode(ground)
        client.prepare()
        ground.models.script("many", *[client.read("notes.md") for _ in range(STEPS)])
        env = {**ground.env, "SWARM_STATE_DIR": str(ground.root / "state"), "PYTHONPATH": self.env["PYTHONPATH"]}
        env.setdefault("SWARM_DB_PATH", str(ground.root / "many.db"))
        argv = ["claude", "-p", "--output-format", "stream-json", "--verbose"]
        prompt = self._of_e2e("models").play("many")
        return Crowd("scripted clients", CLIENTS, argv, str(ground.checkout), env, prompt)

    @staticmethod
    def _of_e2e(part: str) -> Any:
        above = __package__.rpartition(".")[0]
        return import_module(f"{above}.e2e.{part}" if above else f"e2e.{part}")
