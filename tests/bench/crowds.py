"""Locks per second of many processes on one store: each takes one new file after the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import NamedTuple

from swarm_hook_core.process import start_time

_MEMBER = """\
import json, sys, time
sys.path[:0] = json.loads(sys.argv[1])
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration
path, checkout, name, seconds, client = json.loads(sys.argv[2])
store = Store(path)
facts = {"runtime": "codex", "session_id": name, "client": tuple(client), "lease_seconds": 86400}
request = Registration(checkout, label=name, **facts)
row = store.instances.register(request)
print("ready", flush=True)
sys.stdin.readline()
took, errors, end = [], [], time.monotonic() + seconds
while time.monotonic() < end:
    began = time.perf_counter()
    try:
        store.locks.acquire(row, f"crowd/{name}/{len(took)}", "bench")
    except Exception as error:
        errors.append(f"{type(error).__name__}: {error}")
    took.append(time.perf_counter() - began)
print(json.dumps([took, errors]))
"""


class Rate(NamedTuple):
    """`processes` did `per_second` locks, each in `took` seconds (sorted), with these `errors`."""

    processes: int
    per_second: float
    took: list[float]
    errors: list[str]

    def at(self, part: float) -> float:
        """Return that quantile of `took`."""
        return self.took[min(len(self.took) - 1, int(len(self.took) * part))]


def rate(path: str, checkout: str, processes: int, seconds: float, env: dict[str, str]) -> Rate:
    """Let so many processes lock files in the store at `path` as fast as they can."""
    client = (os.getpid(), start_time(os.getpid()))
    folders = json.dumps([folder for folder in map(os.path.abspath, sys.path) if os.path.isdir(folder)])
    members = []
    for number in range(processes):
        given = json.dumps([path, checkout, f"{processes}-{number}", seconds, client])
        argv = [sys.executable, "-I", "-S", "-B", "-c", _MEMBER, folders, given]
        members.append(subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    try:
        for member in members:
            if member.stdout.readline() != "ready\n":
                raise RuntimeError("a process could not register")
        time.sleep(0.1)
        for member in members:
            member.stdin.write("\n")
            member.stdin.flush()
        reports = [json.loads(member.communicate(timeout=seconds + 60)[0]) for member in members]
    finally:
        for member in members:
            if member.poll() is None:
                member.kill()
                member.wait()
    took = sorted(second for report in reports for second in report[0])
    errors = [error for report in reports for error in report[1]]
    return Rate(processes, (len(took) - len(errors)) / seconds, took, errors)
