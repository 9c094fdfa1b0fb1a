"""Explores schedules: python -m explore [--seconds S | --count N] [--first SEED] [--cores N] [--page FILE]

``--replay FILE`` runs one schedule again, from the file that a violation was written to, and prints its steps and its story.
``--fault NAME`` plants a fault of `faults` first. The exit status is 1 if a property did not hold.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from explore import build, faults

TESTS = Path(__file__).resolve().parents[1]


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="explore", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--count", type=int, help="so many schedules instead, on each core")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--fault", default="")
    parser.add_argument("--role", default="", help="only the meetings that have this role")
    parser.add_argument("--raw", action="store_true", help="leave a violation's schedule as long as it is")
    parser.add_argument("--page", type=Path, help="write the figures into this page")
    parser.add_argument(
        "--out", type=Path, default=Path(tempfile.gettempdir()) / "swarm-explored", help="for violations"
    )
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    cores = given.cores
    if given.replay:
        cores, given.fault = 1, json.loads(given.replay.read_text())["fault"]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="swarm-planted") as folder:
        places = [str(TESTS)]
        if given.fault:
            places.insert(0, str(faults.planted(given.fault, Path(folder))))
        reports = [json.loads(line) for line in _run(given, cores, places)]
    if given.replay:
        print(*reports[0]["steps"], "", *reports[0]["story"], *reports[0]["violations"], sep="\n")
        return int(bool(reports[0]["violations"]))
    took = time.monotonic() - begun
    schedules, violations = (
        sum(one["schedules"] for one in reports),
        [one for each in reports for one in each["violations"]],
    )
    processor = sum(one["processor"] for one in reports)
    print(
        f"{schedules} schedules, {sum(one['steps'] for one in reports)} stops, {len(violations)} violations in {took:.0f} s:"
        f" {schedules / max(processor, 0.001):.0f} schedules a second of processor time;"
        f" all steps are {sum(one['digest'] for one in reports) % 2**64:016x}"
    )
    for violation in violations:
        print(violation["words"], *violation["story"], f"    make explore REPLAY={violation['file']}", sep="\n")
    if given.page:
        from explore.page import write

        write(given.page, reports, took)
    return int(bool(violations))


def _run(given: argparse.Namespace, cores: int, places: list[str]) -> list[str]:
    library = build.library()
    started = []
    for core in range(cores):
        job = {
            "core": core, "cores": cores, "first": given.first, "seconds": given.seconds, "count": given.count,
            "replay": str(given.replay or ""), "fault": given.fault, "out": str(given.out),
            "is_raw": given.raw,
            "role": given.role,
        }  # fmt: skip
        environment = {
            **os.environ, "LD_PRELOAD": str(library), "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(places),
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        words = [sys.executable, "-m", "explore.run", json.dumps(job)]
        started.append(subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True))
    lines = []
    for process in started:
        out, _ = process.communicate()
        if process.returncode:
            print(f"a server ended with status {process.returncode}\n{out}", file=sys.stderr)
            sys.exit(2)
        lines.append(out.splitlines()[-1])
    return lines


if __name__ == "__main__":
    sys.exit(main())
