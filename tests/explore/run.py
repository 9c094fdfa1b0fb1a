"""One server's work, with the library preloaded: python -m explore.run JOB. Prints a report as one line of JSON."""

import fcntl
import itertools
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from explore.recipes import MEETINGS, Plan
from explore.recipes import plan as plan_of
from explore.server import Server
from explore.shrink import kind, smaller
from explore.story import story
from explore.world import Decision

SHOWN = 5  # violations of one kind are shown once, and so many kinds


def main() -> None:
    """Explore, or replay, as the job says."""
    job = json.loads(sys.argv[1])
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[job["core"] % len(os.sched_getaffinity(0))]})
    with_place, root = claimed_place()
    server = Server(os.environ["LD_PRELOAD"], root)
    server.warm_up()
    try:
        if job["replay"]:
            report = replayed(server, Path(job["replay"]))
        else:
            report = explored(server, job)
    finally:
        server.close()
        os.close(with_place)
    print(json.dumps(report))


def claimed_place() -> tuple[int, str]:
    """Return a free place for the ground, and the descriptor that keeps it. All paths of places have one length."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
    folder = os.path.join(base, f"explored-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for number in range(100):
        handle = os.open(os.path.join(folder, f"{number:02}.lock"), os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle, os.path.join(folder, f"{number:02}")
        except BlockingIOError:  # another server is at it
            os.close(handle)
    raise SystemExit("100 servers are at work")


def explored(server: Server, job: dict[str, Any]) -> dict[str, Any]:
    """Run schedule after schedule until the time is over, or so many."""
    done, stops, digest = 0, 0, 0
    found: dict[str, dict[str, Any]] = {}
    meetings: Counter[str] = Counter()
    begun = processor_time()
    for seed in seeds_of(job):
        given = plan_of(seed)
        violations = server.judged(given)
        stops, digest = stops + server.world.shared.steps, (digest + server.world.digest()) % 2**64
        if violations and not any(kind(one) in found for one in violations):
            again = server.judged(given, is_fresh=True)
            violations = again or [f"{one}, but not with new processes" for one in violations]
        done += 1
        meetings[f"{', '.join(given.roles)} at {given.level}"] += 1
        for violation in violations:
            if kind(violation) not in found and len(found) < SHOWN:
                if not job["is_raw"]:
                    given = smaller(server, given, violation)
                    server.judged(given, is_fresh=True)
                file = written(Path(job["out"]), given, violation, job["fault"])
                found[kind(violation)] = {
                    "words": f"seed {given.seed}, {given.roles}: {violation}",
                    "file": str(file),
                    "story": story(server.world, given.roles, given.level),
                }
        if violations and job["fault"]:
            break
    spent = processor_time() - begun
    return {
        "schedules": done,
        "steps": stops,
        "digest": digest,
        "violations": list(found.values()),
        "processor": spent,
        "meetings": meetings,
    }


def seeds_of(job: dict[str, Any]) -> Iterator[int]:
    """Yield the seeds of a server, in order, until the time is over, or so many have passed: those of a role."""
    end, last = real_time() + job["seconds"], job["first"] + job["cores"] * (job["count"] or 0)
    for seed in itertools.count(job["first"] + job["core"], job["cores"]):
        if seed >= last if job["count"] else real_time() >= end:
            return
        if not job["role"] or job["role"] in MEETINGS[seed % len(MEETINGS)][0]:
            yield seed


def written(folder: Path, failing: Plan, violation: str, fault: str) -> Path:
    """Write a failing plan to a file for ``make explore REPLAY=``."""
    path = folder / f"{failing.seed}.json"
    path.write_text(json.dumps({"fault": fault, "violation": violation, **failing._asdict()}, indent=1) + "\n")
    return path


def replayed(server: Server, path: Path) -> dict[str, Any]:
    """Run the plan in a file."""
    facts = json.loads(path.read_text())
    decisions = tuple(Decision(*one) for one in facts["decisions"])
    names = ("roles", "level", "seed", "chances", "most", "has_power_cuts", "has_old_turn")
    plan = Plan(*(facts[name] for name in names), decisions=decisions)
    violations = server.judged(plan)
    return {
        "violations": violations,
        "steps": server.world.steps(),
        "story": story(server.world, plan.roles, plan.level),
    }


def real_time() -> float:
    """Return seconds of the machine's own clock: all others here are virtual."""
    with open("/proc/uptime", encoding="ascii") as file:
        return float(file.read().split()[0])


def processor_time() -> float:
    """Return the seconds of processor time of this process and of all that it has started."""
    total = 0
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    facts = file.read().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            if int(entry) == os.getpid():
                total += sum(map(int, facts[11:15]))
            elif int(facts[1]) == os.getpid():
                total += sum(map(int, facts[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
