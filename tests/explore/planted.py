"""Plants each fault of `faults` in turn, and says after how many schedules it was found: python -m explore.planted.

Only the meetings that have the fault's role are run; they keep their numbers among all schedules, so a fault is found by
then at the latest. --count N: give up after so many of all. --page FILE: write the table into this page. FAULT ...: only these.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from explore.faults import FAULTS
from explore.page import put

TESTS = Path(__file__).resolve().parents[1]
LEAST = 28  # of 30 that have to be found


def main() -> int:
    """Run the command line; return 1 if too few faults were found."""
    parser = argparse.ArgumentParser(prog="explore.planted", description=__doc__)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--page", type=Path)
    parser.add_argument("faults", nargs="*", metavar="FAULT")
    given = parser.parse_args()
    rows, missed = [], []
    for name in given.faults or FAULTS:
        schedules, sign = _found(name, given.count)
        print(f"{name}: {schedules or 'not found'} {sign}", flush=True)
        if not schedules:
            missed.append(name)
            schedules = "not found"
        rows.append(f"|{FAULTS[name].role}|{FAULTS[name].words}|{schedules}|\n")
    found = len(rows) - len(missed)
    print(f"{found} of {len(rows)} faults were found within {given.count} schedules each")
    if given.page:
        head = f"{found} of {len(rows)} were found, each within {given.count:,} schedules.\n\n"
        put(given.page, "planted", head + "|About|Fault|Found by schedule|\n|---|---|---:|\n" + "".join(rows))
    return int(found * 30 < len(rows) * LEAST)


def _found(name: str, count: int) -> tuple[str, str]:
    """Return the number of the schedule that has shown a fault, and its violation; both empty if it was not found."""
    with tempfile.TemporaryDirectory() as out:
        words = ["--fault", name, "--role", FAULTS[name].role, "--count", str(count), "--cores", "1", "--raw"]
        done = subprocess.run(
            [sys.executable, "-m", "explore", *words, "--out", out],
            cwd=TESTS,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{name}: {done.stderr or done.stdout}")
    if not done.returncode:
        return "", ""
    sign = done.stdout.splitlines()[1]
    seed = re.match(r"seed (\d+)", sign)
    assert seed is not None, done.stdout
    return f"{int(seed[1]) + 1:,}", sign


if __name__ == "__main__":
    sys.exit(main())
