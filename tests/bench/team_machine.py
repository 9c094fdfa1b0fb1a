"""The cost of a team's machine at rest, and of each check before a write. Part of ``--part team``.

*agent*: the team agent of a joined machine, while another one has `SESSIONS` sessions there with `LOCKS` locks and
sends heartbeats as agents do: its memory, and its share of a processor. Limits: 60 MB, 1 %.

*hook*: the check before a write to a free file, as Claude Code runs it, by turns in three homes: one that has joined,
with so many locks on other machines; one that has joined, with as many of its own sessions; one that has not joined,
with as many. Limit: the first takes `HOOK_RATIO` times as long as the second at most.
"""

import os
import threading
import time
from pathlib import Path
from statistics import median

from support import sessions
from team.homes import Home, wait_for

from swarm_hook_core.process import start_time
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request
from swarm_mcp.store.sessions import Registration

SESSIONS, LOCKS = 50, 100
IDLE_SECONDS, ROUNDS = 30.0, 40
MEGABYTES, PERCENT, HOOK_RATIO = 60.0, 1.0, 1.1
FREE = "src/free.py"


class TeamMachine:
    """The measurements, over the server `dsn` with a team; missed limits are in `missed`."""

    def __init__(self, root: Path, dsn: str):
        self._root, self._dsn = root / "machines", dsn
        self.missed: list[str] = []

    def measure(self) -> None:
        """Measure everything and print it."""
        names = ("remote", "local", "alone")
        homes = {name: Home(self._root, name) for name in names}
        over = threading.Event()
        try:
            for name in names[:2]:
                homes[name].run("team", "join", self._dsn, "--repository", f"measured-{name}")
            ids = {name: home.begin(sessions.new_session()) for name, home in homes.items()}
            for name in names[1:]:
                _hold_here(homes[name])
            ready = threading.Event()
            threading.Thread(target=_be_others, args=(self._dsn, "measured-remote", ready, over), daemon=True).start()
            assert ready.wait(60), "the other machine has not got its locks"
            for home in homes.values():
                wait_for(lambda home=home: _held(home) == LOCKS, 60)
            self._agent(homes["remote"])
            self._hooks(homes, ids)
        finally:
            over.set()
            for home in homes.values():
                home.end()

    def _agent(self, home: Home) -> None:
        pid = home.agent()["pid"]
        time.sleep(5)  # the work that its verbs woke it for
        begun, spent = time.monotonic(), _spent(pid)
        time.sleep(IDLE_SECONDS)
        percent = 100 * (_spent(pid) - spent) / (time.monotonic() - begun)
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        now, most = (int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
        print(
            f"agent, {SESSIONS} sessions and {LOCKS} locks elsewhere: {now:.0f} MB ({most:.0f} at most),"
            f" {percent:.2f} % of a processor",
            flush=True,
        )
        if most > MEGABYTES:
            self.missed.append(f"the team agent takes {most:.0f} MB, limit {MEGABYTES:g}")
        if percent > PERCENT:
            self.missed.append(f"the idle team agent takes {percent:.2f} % of a processor, limit {PERCENT:g}")

    def _hooks(self, homes: dict[str, Home], ids: dict[str, str]) -> None:
        taken: dict[str, list[float]] = {name: [] for name in homes}
        for _ in range(ROUNDS):
            for name, home in homes.items():
                file = home.clone / FREE
                ran = sessions.write("claude-code", ids[name], home.clone, file, **home.environment)
                assert (ran.code, ran.out) == (0, ""), ran
                taken[name].append(ran.took)
        middle = {name: 1000 * median(found) for name, found in taken.items()}
        ratio = middle["remote"] / middle["local"]
        print(
            f"hook, {LOCKS} locks: {middle['remote']:.1f} ms where others hold them, {middle['local']:.1f} where they are"
            f" held here, {middle['alone']:.1f} without a team; ratio {ratio:.2f}",
            flush=True,
        )
        if ratio > HOOK_RATIO:
            self.missed.append(f"a hook with locks of other machines: {ratio:.2f} times, limit {HOOK_RATIO:g}")


def _files(at: int) -> list[str]:
    return [f"src/held-{at}-{number}.py" for number in range(LOCKS // SESSIONS)]


def _held(home: Home) -> int:
    with Store(home.environment["SWARM_DB_PATH"]) as store:
        return len(list(store.locks.held(None)))


def _hold_here(home: Home) -> None:
    """Have sessions of this very machine hold all of them."""
    with Store(home.environment["SWARM_DB_PATH"]) as store:
        for at in range(SESSIONS):
            facts = {"runtime": "codex", "session_id": f"s{at}", "client": (1, start_time(1)), "lease_seconds": 86400}
            row = store.instances.register(Registration(str(home.clone), label=f"session:{at}", **facts))
            store.locks.acquire_all(row, request(row, [str(home.clone / file) for file in _files(at)]))


def _be_others(dsn: str, repository: str, ready: threading.Event, over: threading.Event) -> None:
    """Be a machine with sessions that hold all locks, and beat until the end."""
    from swarm_mcp.team.protocol import MIRROR_LEASE, SESSION_LEASE, want
    from swarm_mcp.team.server import TeamServer

    one = TeamServer(dsn, "others")
    told = [{"session": f"s{at}", "label": f"session:{at}", "lease": SESSION_LEASE} for at in range(SESSIONS)]
    news = one.hello(repository, seconds=20)["news"]
    while not over.wait(0 if not ready.is_set() else MIRROR_LEASE / 3):
        while True:
            news = one.beat(repository, news["version"], news["mark"], told, seconds=20)["news"]
            if not news["more"]:
                break
        if not ready.is_set():
            for at in range(SESSIONS):
                wanted = [want(file) for file in _files(at)]
                answer = one.acquire(repository, f"s{at}", wanted, news["version"], news["mark"], seconds=20)
                assert answer["ok"], answer
            ready.set()
    one.part(repository)
    one.close()


def _spent(pid: int) -> float:
    """Return the processor time that a process has taken, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
