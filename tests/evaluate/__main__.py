"""`make evaluate`: replay the works through each way, and write the page; with ``--short`` compare with expectations."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from e2e.ground import base_folder, sweep
from support.patience import patient_programs

from . import afternoon, crowds, figures, pairs
from .ways import Way, fetched, ways

WORKS = ("crowds", "pairs", "afternoon")
SHORT_STEP = 3  # of the afternoon's commands the short form plays every third
# The figures that the short form must find, in the sample's pairs and in the afternoon.
EXPECTED = {
    "no tool": {"lost": 3, "bundled": 2, "conflicts": 0, "unmade": 0, "gone": 35, "false": 0},
    "worktrees": {"lost": 0, "bundled": 0, "conflicts": 1, "unmade": 0, "gone": 0, "false": 0},
    "swarm, keep": {"lost": 0, "bundled": 0, "conflicts": 0, "unmade": 0, "gone": 0, "false": 0},
    "swarm, turn": {"lost": 0, "bundled": 0, "conflicts": 0, "unmade": 0},
}


def main() -> int:
    """Exit status 1: the short form found something else than it expects, or a rival could not be had."""
    parser = argparse.ArgumentParser(prog="make evaluate", description=__doc__)
    parser.add_argument("--rivals", type=Path, help="the folder that keeps rivals")
    parser.add_argument("--patches", default="", help="a folder with pairs, or the address of a repository to clone")
    parser.add_argument("--pairs", type=int, default=6, help="of so many repositories, one each")
    parser.add_argument("--way", action="append", help="these alone")
    parser.add_argument("--work", choices=WORKS, action="append", help="these alone")
    parser.add_argument("--agents", type=int, action="append", help="crowds of so many alone")
    parser.add_argument("--short", action="store_true", help="the sample, without network; writes nothing")
    given = parser.parse_args()
    sweep()
    chosen = [way for way in ways() if not given.way or way.name in given.way]
    if given.short:
        with tempfile.TemporaryDirectory(prefix=f"played-{os.getpid()}-", dir=base_folder()) as place:
            patient = patient_programs(Path(place))
            return int(sum(_unexpected(way, patient) for way in chosen if way.name in EXPECTED) > 0)
    with tempfile.TemporaryDirectory() as scratch:
        played = pairs.first_of_each(pairs.load(_patches(given.patches, Path(scratch))))[: given.pairs]
        absent = [way.name for way in chosen if not _measured(way, given, played)]
    figures.write_page()
    print(f"written: {figures.PAGE}")
    return int(bool(absent))


def _patches(given: str, scratch: Path) -> Path:
    """Return the folder of the pairs. Raises CalledProcessError if it is an address that cannot be cloned."""
    if "://" not in given:
        return Path(given or pairs.SAMPLE)
    subprocess.run(["git", "clone", "-q", "--depth", "1", given, str(scratch / "clone")], check=True)
    return scratch / "clone"


def _measured(way: Way, given: argparse.Namespace, played: list[tuple[str, list[pairs.Patch]]]) -> bool:
    """Measure one way, and keep its figures. False if its package cannot be had."""
    try:
        programs = fetched(way, given.rivals) if way.package else None
    except subprocess.CalledProcessError as failed:
        print(f"{way.name} cannot be had here: {failed}", file=sys.stderr)
        return False
    for work in given.work or WORKS:
        print(f"{way.name}: {work}", file=sys.stderr)
        if work == "crowds" and not way.ask:  # a crowd's agents ask for no file
            for agents in given.agents or (2, 4):
                figures.put(way.name, work, {str(agents): crowds.play(way, programs, agents)._asdict()})
        elif work == "pairs":
            built, (inside, outside) = pairs.total(way, programs, played)
            ms = 1000 * statistics.mean(built.seconds)
            found = {**built._asdict(), "ms": round(ms, 1), "inside": inside, "outside": outside}
            del found["seconds"]
            figures.put(way.name, work, {**found, "pairs": len(played)})
        elif work == "afternoon":
            figures.put(way.name, work, afternoon.play(way, programs)._asdict())
    return True


def _unexpected(way: Way, patient: Path) -> bool:
    """Play the sample in one way; print the figures that are not as expected. True if there are any.

    `patient`: the folder of a swarm that waits on a busy machine.
    """
    expected = EXPECTED[way.name]
    programs = patient if way.level else None
    built, _ = pairs.total(way, programs, pairs.load(pairs.SAMPLE))
    found = built._asdict()
    if "gone" in expected:
        came = afternoon.play(way, programs, SHORT_STEP)
        found |= {"gone": came.lost, "false": came.refused}
    wrong = {name: found[name] for name, number in expected.items() if found[name] != number}
    print(f"{way.name}: {len(wrong)} figures other than expected {wrong or ''}")
    return bool(wrong)


sys.exit(main())
