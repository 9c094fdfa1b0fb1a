"""Many real processes doing the same at once, held at a gate until the last of them is ready."""

import json
import subprocess
from typing import NamedTuple

from support.fixtures import BARE_PYTHON, FOLDERS

# A member's code calls gate() after its preparation and report(value) with its result.
PRELUDE = f"""
import json, os, sys, time
sys.path[:0] = {FOLDERS!r}
from swarm_mcp.domain import Session
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration
from swarm_mcp.errors import LockRefused, SwarmError

def gate():
    print("ready", flush=True)
    sys.stdin.readline()

def report(value):
    print(json.dumps(value), flush=True)

arguments = json.loads(sys.argv[1])
"""


class Member(NamedTuple):
    """The end of one process: exit code, its reports, its complaint."""

    code: int
    reports: list
    err: str


class Crowd:
    """The processes; `start` opens the gate, `finish` collects, and leaving the block ends the rest."""

    def __init__(self, body: str, arguments: list):
        self.processes = [
            subprocess.Popen(
                [*BARE_PYTHON, "-c", PRELUDE + body, json.dumps(value)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for value in arguments
        ]  # fmt: skip

    def __enter__(self) -> "Crowd":
        return self

    def __exit__(self, *_exception) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def start(self) -> None:
        """Wait until every member stands at the gate, then let all of them go."""
        for process in self.processes:
            word = process.stdout.readline()
            if word != "ready\n":
                raise AssertionError(f"a member ended before the gate: {word}{process.stderr.read()}")
        for process in self.processes:
            process.stdin.write("go\n")
            process.stdin.flush()

    def finish(self, seconds: float = 60) -> list[Member]:
        """Wait for all of them."""
        members = []
        for process in self.processes:
            out, err = process.communicate(timeout=seconds)
            members.append(Member(process.returncode, [json.loads(line) for line in out.splitlines()], err))
        return members


def run(body: str, arguments: list, seconds: float = 300) -> list[Member]:
    """Run `body` in one process for each of `arguments`, all at once."""
    with Crowd(body, arguments) as crowd:
        crowd.start()
        return crowd.finish(seconds)
