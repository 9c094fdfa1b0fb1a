"""Many processes, killed at random, over names that overlap: two detectors without locks see no two at once.

Markers: a holder puts a file on each path of its lock, and must find no other there. Counters: it adds one to a number
on each path, and no number may be written twice. Readers must see a number stand still. With processes on several
machines of a team, these files are shared; a lock counts once all machines know of it. ``SWARM_STRESS_ACQUISITIONS``
and ``SWARM_STRESS_PROCESSES`` make it larger.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from support.fixtures import BARE_PYTHON
from support.many_processes import PRELUDE

ACQUISITIONS = int(os.environ.get("SWARM_STRESS_ACQUISITIONS", "40"))
PROCESSES = int(os.environ.get("SWARM_STRESS_PROCESSES", "5"))
IS_SHORT = ACQUISITIONS <= 40
BETWEEN_KILLS = (0.2, 0.9) if IS_SHORT else (0.5, 2.5)

WORKER = """
import random
sys.path.insert(0, arguments["tests"])
from support.lock_model import NAMES, SHARED, reach
from swarm_hook_core.process import start_time
from swarm_mcp.errors import Deadlock, Refused
from swarm_mcp.store.lock_request import request
from swarm_mcp.locking.acquisition import acquire

place, number, target = arguments["place"], arguments["number"], arguments["target"]
# Pids are used again while this runs.
me, pick = f"{os.getpid()}-{start_time(os.getpid())}", random.Random()
log = os.open(f"{place}/log/{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def say(*words):
    os.write(log, (json.dumps(words) + "\\n").encode())

def is_dead(who):
    pid, _, started = who.partition("-")
    return who != me and start_time(int(pid)) != started

def on(path):
    # Markers on a path: its writer's, and those of readers, as (file, reader, who); none of the dead, who left theirs.
    found = []
    for name in os.listdir(f"{place}/marks"):
        what, _, reader = name.partition(":")
        if what == path.replace("/", "|"):
            file = f"{place}/marks/{name}"
            try:
                found.append((file, reader, reader or open(file).read()))
            except OSError:
                pass
    return [(file, reader, who) for file, reader, who in found if not is_dead(who)]

def occupy(path, shared):
    file = f"{place}/marks/{path.replace('/', '|')}"
    if shared:
        open(f"{file}:{me}", "x").close()
        others = [found for found in on(path) if not found[1]]
    else:
        try:
            if is_dead(open(file).read()):
                os.unlink(file)  # of one that was killed
        except OSError:
            pass
        try:
            os.link(mine, file)
        except FileExistsError:
            say("violation", "marker", path)
        others = [found for found in on(path) if found[2] != me]
    if others:
        say("violation", "occupied", path, shared, others)

def vacate(path, shared):
    try:
        os.unlink(f"{place}/marks/{path.replace('/', '|')}" + (f":{me}" if shared else ""))
    except FileNotFoundError:
        say("violation", "somebody else took the marker away", path)

def number_on(path):
    try:
        return int(open(f"{place}/counts/{path.replace('/', '|')}").read())
    except FileNotFoundError:
        return 0

def add_one(path):
    value = number_on(path) + 1
    file = f"{place}/counts/{path.replace('/', '|')}"
    with open(f"{file}.{me}", "w") as new:
        new.write(str(value))
    os.rename(f"{file}.{me}", file)
    say("wrote", path, value)

mine = f"{place}/pids/{me}"
with open(mine, "w") as file:
    file.write(me)
store = Store()
client = (os.getpid(), me.partition("-")[2])
facts = {"runtime": "codex", "session_id": f"{number}-{me}", "client": client, "lease_seconds": 86400}

def give_back(row, names):
    for name in names:
        store.locks.release(row, name)

row = store.instances.register(Registration(arguments["scope"], label=f"w{number}", **facts))
done = arguments["done"]
deadline = time.monotonic() + arguments["seconds"]
while done < target and time.monotonic() < deadline:
    names = pick.sample(NAMES, pick.choice((1, 1, 1, 2, 3)))
    shared = pick.random() < 0.3
    wanted = request(row, names, mode=SHARED if shared else "exclusive", ttl=pick.choice((None, None, 60.0)))
    try:
        rows = acquire(store, row, wanted, pick.choice((0, 0.5, 5.0)))
    except (LockRefused, Refused):
        say("refused")
        time.sleep(pick.random() * 0.01)
        continue
    except Deadlock:
        say("deadlock")
        continue
    if (rows.confirmation is None) == arguments["is_team"]:
        say("violation", "the team was not asked", names)
    if rows.confirmation is not None and not rows.confirmation.is_everywhere:
        say(rows.confirmation.state)
        give_back(row, names)
        continue
    done += 1
    say("granted", *zip(names, (rows.confirmation.fences[lock.id] if rows.confirmation else lock.fence for lock in rows)))
    paths = sorted(set().union(*map(reach, names)))
    for path in paths:
        occupy(path, shared)
    before = [number_on(path) for path in paths]
    if pick.random() < 0.3:
        time.sleep(pick.random() * 0.01)
    if not shared:
        for path in paths:
            add_one(path)
    elif before != [number_on(path) for path in paths]:
        say("violation", "unstable", paths)
    for path in paths:
        vacate(path, shared)
    give_back(row, names)
store.instances.remove(row["id"])
say("finished")
"""


class Place(NamedTuple):
    """The place of processes: a checkout, with the environment of a machine of a team (None: that of this test)."""

    checkout: str
    environment: dict[str, str] | None = None


class Stress:
    """Workers in `places`, for so many `seconds` at most, each started anew when it was killed."""

    def __init__(self, places: list[Place], folder: Path, seconds: float):
        self.places, self.folder, self.seconds = places, folder, seconds if IS_SHORT else 3600.0
        self.kills = 0
        for name in ("log", "marks", "counts", "pids"):
            (folder / name).mkdir(parents=True)
        self.workers = {number: self.start(number) for number in range(PROCESSES)}

    def said(self, number: int) -> list[list]:
        file = self.folder / "log" / str(number)
        # Killed in the middle of a line, it has said nothing.
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def start(self, number: int) -> subprocess.Popen:
        place = self.places[number % len(self.places)]
        arguments = {
            "tests": str(Path(__file__).parents[1]), "place": str(self.folder), "number": number, "scope": place.checkout,
            "target": ACQUISITIONS, "seconds": self.seconds, "is_team": place.environment is not None,
            "done": sum(word == "granted" for word, *_ in self.said(number)),
        }  # fmt: skip
        argv = [*BARE_PYTHON, "-c", PRELUDE + WORKER, json.dumps(arguments)]
        return subprocess.Popen(argv, stderr=subprocess.PIPE, env=place.environment, cwd=place.checkout)

    def run(self) -> None:
        pick, end = random.Random(6), time.monotonic() + self.seconds
        while any(worker.poll() is None for worker in self.workers.values()):
            time.sleep(pick.uniform(*BETWEEN_KILLS))
            while time.monotonic() < end and any(worker.poll() is None for worker in self.workers.values()):
                holding = self.holding()
                victims = [number for number, worker in self.workers.items() if worker.pid in holding]
                if victims:
                    self.replace(pick.choice(victims))
                    break
                time.sleep(0.005)
        for worker in self.workers.values():
            complaint = worker.communicate()[1].decode()
            assert worker.returncode == 0, complaint

    def holding(self) -> set[int]:
        """The processes that hold something just now, and still run."""
        found = set()
        for mark in (self.folder / "marks").iterdir():
            with contextlib.suppress(OSError):
                who = mark.name.partition(":")[2] or mark.read_text()
                found.add(int(who.partition("-")[0]))
        return found & {worker.pid for worker in self.workers.values() if worker.poll() is None}

    def replace(self, number: int) -> None:
        os.kill(self.workers[number].pid, signal.SIGKILL)
        self.workers[number].communicate()
        self.kills += 1
        self.workers[number] = self.start(number)

    def end(self) -> None:
        for worker in self.workers.values():
            if worker.poll() is None:
                worker.kill()
                worker.communicate()


def run(places: list[Place], folder: Path, seconds: float) -> None:
    """Have processes work in `places`, and check that no two ever held overlapping locks."""
    began, is_team = time.monotonic(), places[0].environment is not None
    stress = Stress(places, folder, seconds)
    try:
        stress.run()
    finally:
        stress.end()
    said = [words for number in range(PROCESSES) for words in stress.said(number)]
    counted = Counter(words[0] for words in said)
    print(f"{dict(counted)}, {stress.kills} kills, {time.monotonic() - began:.0f} s")
    assert [words for words in said if words[0] == "violation"] == []
    written = [(path, value) for word, *rest in said if word == "wrote" for path, value in [rest]]
    assert len(written) == len(set(written)), "a number was written twice: an update was lost"
    grants: list[tuple[str, int]] = []
    for number in range(PROCESSES):
        last = 0
        mine: list[tuple[str, int]] = []
        for granted in [words for word, *words in stress.said(number) if word == "granted"]:
            # To a team, a lock released and taken again before it has heard of it is one grant.
            new = [(name, fence) for name, fence in granted if not is_team or (name, fence) not in mine]
            assert all(fence > last for _name, fence in new), "a later grant has a lower number"
            last = max([last, *(fence for _name, fence in new)])
            mine += new
        grants += mine
    assert len(grants) == len({fence for _name, fence in grants}), "two grants had one number"
    assert counted["granted"] > 3 * PROCESSES and counted["refused"] and stress.kills
    if not IS_SHORT:
        assert counted["granted"] >= PROCESSES * ACQUISITIONS
