"""Workers in the background: a supervisor of ours runs the harness, and lives longer than the dispatcher."""

from __future__ import annotations

import os
import shutil
import subprocess
import time

from swarm_hook_core.process import gone, start_time
from swarm_hook_core.state import make_private, state_dir
from swarm_mcp.agents.dispatch.assignment import assignment_of
from swarm_mcp.agents.dispatch.spawners import SpawnFailed, WorkerSpec
from swarm_mcp.agents.harness.environment import independent
from swarm_mcp.agents.harness.registry import get
from swarm_mcp.answers.views import name_of
from swarm_mcp.domain.record import new_id
from swarm_mcp.domain.run import ABANDONED, ENDED, STARTING
from swarm_mcp.installation import coordinator_command
from swarm_mcp.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The supervisor is detached, in a session of its own, so that it outlives the dispatcher, its terminal and its process
# group. An asynchronous list would read /dev/null, hence the detour of its input.
DETACH = 'exec 3<&0; log=$1; shift; "$@" <&3 3<&- >/dev/null 2>>"$log" & echo $!'
HAND_OVER_SECONDS = 30.0
KEPT_LOG_SECONDS = 7 * 86400
# The dispatcher's place; ``independent`` leaves out its identity.
PLACE = ("SWARM_MCP_DIRECTORY", "HERDR_TAB_ID", "HERDR_WORKSPACE_ID")


class Processes:
    """The spawner ``process``."""

    patience = 30.0

    def start(self, store: Store, worker: WorkerSpec) -> dict[str, Any]:
        """Implement ``spawners.Spawner``."""
        require_startable(store, worker)
        log = _log_file(worker.instance_id)
        run_id = new_id()
        text = assignment_of(worker, run_id, log=log).to_text()
        pid = self.launch(text, log)
        facts = {"instance_id": worker.instance_id, "run_id": run_id}
        return {**facts, "supervisor": [store.here, pid, start_time(pid)], "log": log}

    def launch(self, text: str, log: str) -> int:
        """Start a supervisor with the assignment `text` and standard error in `log`; its pid. Raises SpawnFailed."""
        words = ["/bin/sh", "-c", DETACH, "sh", log, *coordinator_command(), "work"]
        try:
            shell = subprocess.Popen(
                words, cwd="/", env=environment(), start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            said, _ = shell.communicate(text.encode(), HAND_OVER_SECONDS)
        except subprocess.TimeoutExpired:
            shell.kill()
            shell.communicate()
            raise SpawnFailed("the worker's supervisor did not take its instructions") from None
        except OSError as error:
            raise SpawnFailed(f"the worker's supervisor cannot be started: {error.strerror or error}") from None
        if said.strip().isdigit():
            pid = int(said)
        else:
            pid = 0
        if not pid:
            raise SpawnFailed("the worker's supervisor cannot be started")
        return pid

    def look(self, store: Store, facts: dict[str, Any]) -> dict[str, Any] | None:
        """Return the facts about a supervised worker, None while it is starting. Raises SpawnFailed."""
        worker = facts["instance_id"]
        run = store.runs.get(facts["run_id"])
        said = (run.result if run else None) or {}
        if said.get("declined"):
            raise SpawnFailed(said["declined"])
        died = run and run.state == ENDED and (not said or said.get("error_message") == ABANDONED)
        if run and not died and (run.state == ENDED or (run.state != STARTING and store.instances.live(worker))):
            return {"instance_id": worker, "run_id": run.id}
        host, pid, started = facts["supervisor"]
        if died or gone(host, pid, started, store.here) or started == "":
            raise SpawnFailed(f"the worker's supervisor ended at once: {_last_words(facts.get('log', ''))}")
        return None


def require_startable(store: Store, worker: WorkerSpec) -> None:
    """Raise SpawnFailed where it is plain that the worker would do nothing."""
    task = store.tasks.get(worker.requester.scope, worker.task_id)
    if task and task.assignee:
        holder = store.instances.live(task.assignee)
    else:
        holder = None
    if holder and holder.id != worker.instance_id:
        raise SpawnFailed(f"{name_of(holder)} works on it already")
    adapter = get(worker.harness)
    if adapter.program and not worker.command and not shutil.which(adapter.program):
        raise SpawnFailed(f"{adapter.program} is not installed. {' '.join(adapter.instructions.split())}".strip())


def environment() -> dict[str, str]:
    """Return the environment of a supervisor: this process's, without the dispatcher's identity and place."""
    return independent(drop=PLACE)


def _log_file(instance_id: str) -> str:
    """A new supervisor's standard error; empty ones go with their supervisors, others after a week."""
    folder = os.path.join(state_dir(), "work")
    try:
        make_private(folder)
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.endswith(".log") and time.time() - os.path.getmtime(path) > KEPT_LOG_SECONDS:
                os.remove(path)
    except FileNotFoundError:
        pass  # another dispatch cleans as well
    except OSError as error:
        raise SpawnFailed(f"the state folder cannot be used: {error}") from None
    return os.path.join(folder, f"{instance_id}.log")


def _last_words(log: str) -> str:
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file.read()[-2000:].splitlines() if line.strip()]
    except OSError:
        lines = []
    if lines:
        return lines[-1][:300]
    return "it did not say why"
