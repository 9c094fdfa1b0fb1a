"""A process that starts many supervisors: it loads their program once, and is forked for each.

Loading the program is a large part of a supervisor's processor time; a fork costs next to nothing. The nursery opens no
store and starts no thread, so its copy is as good as a process of its own. It ends with its starter; its copies are
children of no process of ours, and go on.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import pkgutil
import select
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from swarm_mcp.agents.dispatch.processes import HAND_OVER_SECONDS, Processes, environment
from swarm_mcp.installation import coordinator_command
from swarm_mcp.store import driver

LOADED = ("swarm_mcp.domain", "swarm_mcp.store", "swarm_mcp.agents.harness", "swarm_mcp.agents.dispatch")


class Nursery(Processes):
    """The spawner ``process`` for many workers: a ``with`` block, for as long as it starts any.

    If forking is impossible, or the nursery has gone, workers are started one by one.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Nursery:
        if sys.platform == "linux":  # elsewhere, system libraries may not survive a fork
            try:
                self._process = subprocess.Popen(
                    [*coordinator_command(), "work", "--many"], cwd="/", env=environment(), start_new_session=True,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                )  # fmt: skip
            except OSError:
                pass  # the first worker's start says why
        return self

    def __exit__(self, *_exception: object) -> None:
        process, self._process = self._process, None
        if process and process.stdin and process.stdout:
            with suppress(BrokenPipeError):  # an order that it did not take any more
                process.stdin.close()
            process.stdout.close()
            process.wait()

    @property
    def pid(self) -> int:
        """Its pid, 0 without one."""
        if self._process:
            return self._process.pid
        return 0

    def launch(self, text: str, log: str) -> int:
        """Have a supervisor started as a copy. As ``Processes.launch``."""
        process = self._process
        if process and process.stdin and process.stdout:
            order = json.dumps({"assignment": text, "log": log}).encode() + b"\n"
            try:
                process.stdin.write(order)
                process.stdin.flush()
                if select.select([process.stdout], [], [], HAND_OVER_SECONDS)[0]:
                    said = process.stdout.readline().strip()
                    if said.isdigit():
                        return int(said)
            except OSError:
                pass  # it has gone
            process.kill()
            self.__exit__()
        return super().launch(text, log)


def tend(orders: BinaryIO, report: int, work: Callable[[list[str]], int]) -> None:
    """Run the nursery: fork for each of the `orders`, and write the pid to the file descriptor `report`.

    A copy reads its assignment on standard input and calls `work` with the words of a command line.
    """
    _load()
    for line in orders:
        order = json.loads(line)
        os.write(report, b"%d\n" % _copy(order["assignment"], order["log"], work))


def _load() -> None:
    for name in LOADED:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            try:
                importlib.import_module(found.name)
            except ImportError:
                pass  # of an extra that is not installed
    driver.load()
    gc.freeze()  # keep these objects out of collections, so that copies share their memory


def _copy(assignment: str, log: str, work: Callable[[list[str]], int]) -> int:
    """Return the pid of a copy of this process that does its `work`, detached, in a session of its own."""
    told, tell = os.pipe()
    between = os.fork()
    if not between:
        code = 3
        try:
            os.setsid()
            pid = os.fork()
            if pid:
                os.write(tell, b"%d" % pid)
                os._exit(0)
            os.close(told)
            os.close(tell)
            _be_alone(log)
            sys.stdin = io.TextIOWrapper(io.BytesIO(assignment.encode()))
            code = work(["work"])
        finally:
            os._exit(code)
    os.close(tell)
    os.waitpid(between, 0)
    with open(told, "rb") as file:
        return int(file.read() or 0)


def _be_alone(log: str) -> None:
    """Close everything that leads to the nursery's starter."""
    nothing = os.open(os.devnull, os.O_RDWR)
    said = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for source, number in ((nothing, 0), (nothing, 1), (said, 2)):
        os.dup2(source, number)
    os.close(nothing)
    os.close(said)
