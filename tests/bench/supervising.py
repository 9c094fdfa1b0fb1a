"""Runs children bare and supervised by turns; a process of its own, with a supervisor's memory.

Reads one JSON object from standard input, ``{"rounds", "cwd", "scope", "prompt", "cases": [{"name", "argv"} | {"name",
"argv", "harness"}]}``, and writes ``{"walls": {name: [seconds]}, "cpu": {name: [seconds]}, "peak": bytes}``. Without a
harness `argv` is started bare, and its output read as it comes; with `process` it is supervised; with another name that
harness runs the prompt. `cpu` is this process's own.
"""

import json
import subprocess
import sys
import time


def main() -> None:
    """Read the cases, run them, and print the figures."""
    told = json.load(sys.stdin)
    walls: dict[str, list[float]] = {case["name"]: [] for case in told["cases"]}
    spent: dict[str, list[float]] = {case["name"]: [] for case in told["cases"]}
    for number in range(-1, told["rounds"]):  # the first round only warms the caches
        for case in told["cases"]:
            began, cpu = time.perf_counter(), time.process_time()
            if "harness" in case:
                supervised(case, told)
            else:
                bare(case["argv"], told)
            if number >= 0:
                walls[case["name"]].append(time.perf_counter() - began)
                spent[case["name"]].append(time.process_time() - cpu)
    json.dump({"walls": walls, "cpu": spent, "peak": peak()}, sys.stdout)


def bare(argv: list[str], told: dict) -> None:
    """Start it, read it, wait for it."""
    with subprocess.Popen(argv, cwd=told["cwd"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdin.write(told["prompt"].encode())
        child.stdin.close()
        while child.stdout.read(65536):
            pass
    if child.returncode:
        raise SystemExit(f"{argv[0]} exited {child.returncode}")


def supervised(case: dict, told: dict) -> None:
    """The same through the runner, with a place among the other sessions and a record."""
    from swarm_mcp.agents.harness import registry
    from swarm_mcp.agents.harness.membership import Membership
    from swarm_mcp.agents.harness.query import Query
    from swarm_mcp.agents.harness.run import Run

    member = Membership({"scope": told["scope"], "harness": case["harness"], "cwd": told["cwd"]}, "role:bench")
    command = tuple(case["argv"]) if case["harness"] == "process" else ()
    query = Query(told["prompt"], told["cwd"], command=command, scope=told["scope"])
    result = Run(registry.get(case["harness"]), query, membership=member).start().wait()
    if result is None or result.is_error:
        raise SystemExit(f"{case['name']}: {result and result.error_message}")


def peak() -> int:
    """Most bytes that this process had resident."""
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS has bytes


if __name__ == "__main__":
    main()
