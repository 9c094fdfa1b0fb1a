"""Plants each fault of `faults` in turn, and says after how many schedules it was found: python -m explore.planted.

Only the meetings that have the fault's role are run; they keep their numbers among all schedules, so a fault is found by
then at the latest. --count N: give up after so many of all. --page FILE: write the table into this page. FAULT ...: only
these; the page keeps the others' figures.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from explore.faults import FAULTS
from explore.page import put
from explore.strangers import STRANGERS

TESTS = Path(__file__).resolve().parents[1]
LEAST = 28  # of 30 that have to be found
IN_A_ROW = 6  # of the table


def main() -> int:
    """Run the command line; return 1 if too few faults were found."""
    parser = argparse.ArgumentParser(prog="explore.planted", description=__doc__)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--page", type=Path)
    parser.add_argument("faults", nargs="*", metavar="FAULT")
    given = parser.parse_args()
    found: dict[str, str] = {}
    for name in given.faults or FAULTS:
        found[name], sign = _found(name, given.count)
        print(f"{name}: {found[name] or 'not found'} {sign}", flush=True)
    count = len(list(filter(None, found.values())))
    print(f"{count} of {len(found)} faults were found within {given.count} schedules each")
    if given.page:
        put(given.page, "planted", table({**written(given.page), **found}, given.count))
    return int(count * 30 < len(found) * LEAST)


def written(page: Path) -> dict[str, str]:
    """Return the page's figures of earlier runs, without faults that are no more."""
    cells = re.findall(r"\|(\w+)\|([\d,]+|no)(?=\|)", page.read_text(encoding="utf-8"))
    return {name: schedule.removeprefix("no") for name, schedule in cells if name in FAULTS}


def table(found: dict[str, str], count: int) -> str:
    """Return the words of the page: each fault, and the schedule that it was found by; those of the stranger apart."""
    words = ""
    for whose, is_strangers in ((f"In {count:,} schedules", False), ("A stranger's", True)):
        some = {name: schedule for name, schedule in found.items() if (name in STRANGERS) is is_strangers}
        cells = [f"|{name}|{schedule or 'no'}" for name, schedule in some.items()]
        lines = ["".join(cells[place : place + IN_A_ROW]) + "|\n" for place in range(0, len(cells), IN_A_ROW)]
        head = "|Fault|Found" * IN_A_ROW + "|\n" + "|---|---:" * IN_A_ROW + "|\n"
        done = len(list(filter(None, some.values())))
        words += f"{whose}: {done} of {len(some)}.\n\n{head}{''.join(lines)}\n"
    return words.removesuffix("\n")


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
