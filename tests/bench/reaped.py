"""Runs commands at once and reports their processor time, descendants included; a process of its own.

Reads one JSON object from standard input, ``{"commands": [{"argv", "cwd", "env", "stdin"}]}``, and writes ``{"seconds",
"cpu", "failed": [[exit code, standard error]]}``. A command's leftovers become children of this process (Linux), are
waited for, and count.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Read the commands, run them, and print the times."""
    told = json.load(sys.stdin)
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise SystemExit("this machine has no sub-reapers")
    began, before = time.perf_counter(), _cpu()
    failed = []
    with contextlib.ExitStack() as files:
        errors = [files.enter_context(tempfile.TemporaryFile()) for _ in told["commands"]]
        children = {_started(command, error): error for command, error in zip(told["commands"], errors, strict=True)}
        while True:
            try:
                pid, status = os.wait()
            except ChildProcessError:  # no child is left
                break
            if pid in children and status:
                children[pid].seek(0)
                said = children[pid].read()[-500:].decode("utf-8", "replace")
                failed.append([os.waitstatus_to_exitcode(status), said])
    json.dump({"seconds": time.perf_counter() - began, "cpu": _cpu() - before, "failed": failed}, sys.stdout)


def _started(command: dict, error) -> int:
    with tempfile.TemporaryFile() as given:
        given.write(command["stdin"].encode())
        given.seek(0)
        made = subprocess.Popen(
            command["argv"],
            cwd=command["cwd"],
            env=command["env"],
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=error,
        )
    made.returncode = 0  # it is waited for above, with all others
    return made.pid


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
