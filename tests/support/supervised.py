"""The actors of tests of supervised workers: dispatches of commands, and their results."""

import json
import os
import signal
import subprocess
from pathlib import Path

from support.fixtures import Ground, wait_for
from swarm_hook_core.process import start_time
from swarm_mcp.agents.dispatch.dispatch import carry_out
from swarm_mcp.agents.dispatch.request import DispatchRequest

GATEWAY = "identity:p mode:gateway"
# It notes its limit in the folder SPENT, and costs COSTS dollars at most.
CLAUDE = """#!/usr/bin/env python3
import json, os, sys, time
if "--version" in sys.argv:
    sys.exit(print("2.1.330 (Claude Code)"))
folder = os.environ["SPENT"]
limit = float(sys.argv[sys.argv.index("--max-budget-usd") + 1]) if "--max-budget-usd" in sys.argv else None
open(os.path.join(folder, str(os.getpid())), "w").write(json.dumps(limit))
time.sleep(0.3)
cost = min(float(os.environ["COSTS"]), limit or 9)
print(json.dumps({"type": "system", "subtype": "init", "session_id": "11111111-1111-4111-8111-%012d" % os.getpid(),
                  "model": "m", "tools": [], "cwd": os.getcwd()}))
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "done", "num_turns": 1,
                  "total_cost_usd": cost, "session_id": "11111111-1111-4111-8111-%012d" % os.getpid(),
                  "usage": {"input_tokens": 1, "output_tokens": 1}}))
"""


def dispatch(ground: Ground, requester: dict, title: str = "Do it", script: str = "", **given) -> dict:
    """The answer to a dispatch of the shell script `script` to a worker."""
    given.setdefault("harness", "process")
    given.setdefault("spawner", "process")
    if script:
        given["command"] = "/bin/sh -c " + "'" + script.replace("'", "'\\''") + "'"
    with ground.store() as store:
        return carry_out(store, requester, DispatchRequest(title, **given))


def priced_claude(ground: Ground, spent: Path, costs: str) -> dict[str, str]:
    """The environment with a `claude` that costs so many dollars a run and leaves its limits in the folder `spent`."""
    program = ground.folder / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(CLAUDE)
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "SPENT": str(spent), "COSTS": costs}


def task(ground: Ground, answer: dict) -> dict:
    """The task of a dispatch as it is now."""
    return ground.sql("SELECT * FROM tasks WHERE id = ?", answer["task_id"])[0]


def mutexes(ground: Ground) -> list[dict]:
    """The spawn locks that are held."""
    return ground.sql("SELECT * FROM context WHERE file LIKE '/\\_\\_swarm/%' ESCAPE '\\'")


def run_of(ground: Ground, answer: dict) -> dict:
    """The newest run of a dispatch's task, with the result decoded."""
    row = ground.sql("SELECT * FROM swarm_runs WHERE task_id = ? ORDER BY rowid DESC", answer["task_id"])[0]
    return {**row, "result": json.loads(row["result"]) if row["result"] else None}


def reaches(ground: Ground, answer: dict, status: str, seconds: float = 15) -> dict:
    """The task once it has that status."""
    return wait_for(lambda: (row := task(ground, answer))["status"] == status and row, seconds)


def over(ground: Ground, answer: dict, seconds: float = 15) -> dict:
    """The run once its supervisor has gone."""

    def ended() -> dict | None:
        row = run_of(ground, answer)
        if alive(row["supervisor_pid"], row["supervisor_start"]):
            return None
        return run_of(ground, answer)  # the one before may be from before its last words

    return wait_for(ended, seconds)


def tmux(*words: str) -> list[str]:
    """Return the output of the command ``tmux``, by lines."""
    done = subprocess.run(["tmux", *words], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()


def alive(pid: int, started: str = "") -> bool:
    """Return True if that process runs; a zombie does not."""
    now = start_time(pid)
    return now not in ("", "-") and started in ("", now)


def child_of(ground: Ground, answer: dict) -> int:
    """The pid that the script of a worker has written to the file ``pid``, once it has."""
    path = Path(ground.repo, "pid")
    return wait_for(lambda: int(path.read_text() or 0) if path.exists() else 0)


def end_all(ground: Ground) -> None:
    """End every supervisor that a test has left, and wait until it has gone."""
    if not os.path.exists(ground.database):
        return
    for row in ground.sql("SELECT supervisor_pid, supervisor_start FROM swarm_runs"):
        if alive(row["supervisor_pid"], row["supervisor_start"]) and row["supervisor_pid"] != os.getpid():
            os.kill(row["supervisor_pid"], signal.SIGTERM)
            wait_for(lambda row=row: not alive(row["supervisor_pid"], row["supervisor_start"]))
