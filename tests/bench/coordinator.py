"""The cost of the coordinator: calls over stdio, commands, start, memory, and growth.

Goals (``--check`` exits 1 where one is missed): ``lock_file`` at most 1 ms above an empty tool call, both medians of one
run; ``locks --json`` and ``register`` at most twice a bare ``python3 -c pass``; an idle server below 70 MiB resident;
with 100 000 locks, tasks and messages at most 1.5 times the time at none.
"""

import sys
import time
from pathlib import Path
from statistics import median

from swarm_mcp.store import Store

from . import stores
from .plugin import Plugin, WrongAnswer
from .processes import run
from .stdio import Client

ABOVE_EMPTY_MS = 1.0
COMMAND_RATIO = 2.0
IDLE_MIB = 70
GROWTH = 1.5
LARGE = 100_000
BLOCK = 20
SPARE_TASKS = 1000  # to be claimed, in the empty store as well


class Coordinator:
    """The measurements, on two stores of one checkout: `small` with next to nothing, `large` with `LARGE` of each."""

    def __init__(self, plugin: Plugin, root: Path, checkout: str, env: dict[str, str]):
        self.plugin, self.root, self.checkout, self.env = plugin, root, checkout, env
        self.missed: list[str] = []
        self.stores = {}
        for name, size in (("none", 0), (f"{LARGE:,}", LARGE)):
            path = str(root / f"coordinator-{size}.db")
            print(f"  store with {size:,} locks, tasks and messages", file=sys.stderr, flush=True)
            stores.fill(path, checkout, size, f"{checkout}/src/locked.py")
            stores.fill_work(path, checkout, size, SPARE_TASKS)
            self.stores[name] = path

    def measure(self, runs: int) -> None:
        """Measure everything and print it."""
        self._calls(runs)
        self._commands(max(10, runs // 3))
        self._start(max(5, runs // 6))

    # ------------------------------------------------------------- over stdio

    def _calls(self, runs: int) -> None:
        print("calls over stdio, ms        median    p99    min   above the empty call")
        tools = {
            "lock_file": lambda number: {"file": f"{self.checkout}/new/{number}.py", "reason": "bench"},
            "get_file_lock": lambda number: {"file": f"{self.checkout}/src/locked.py"},
            "claim_next_task": lambda number: {"ignore_unread_messages": True},
        }
        medians: dict[tuple[str, str], float] = {}
        empty_server = [sys.executable, str(Path(__file__).with_name("empty_server.py"))]
        with Client(empty_server, self.env, self.checkout) as empty:
            servers = {name: self._server(path) for name, path in self.stores.items()}
            for server in servers.values():
                server.call("register", {"directory": self.checkout, "label": "bench"})
            for tool, arguments in tools.items():
                took: dict[str, list[float]] = {name: [] for name in ("empty", *servers)}
                # By turns, so that a slow minute falls on all of them; several in a row, as a working session calls.
                for start in range(-BLOCK, 5 * runs, BLOCK):
                    for name, server in (("empty", empty), *servers.items()):
                        called = "empty" if server is empty else tool
                        for number in range(start, start + BLOCK):
                            seconds, _ = server.call(called, {} if server is empty else arguments(number))
                            if number >= 0:
                                took[name].append(1000 * seconds)
                base = median(took["empty"])
                for name, values in took.items():
                    medians[tool, name] = median(values)
                    label = f"{tool} {name}" if name != "empty" else "an empty call"
                    above = "" if name == "empty" else f"{median(values) - base:8.2f}"
                    print(
                        f"{label:26} {median(values):7.2f} {_quantile(values, 0.99):6.2f} {min(values):6.2f}  {above}"
                    )
                if tool == "lock_file":
                    for name in servers:
                        self._judge(
                            f"lock_file, {name}: ms above the empty call", medians[tool, name] - base, ABOVE_EMPTY_MS
                        )
            for server in servers.values():
                server.close()
        for tool in tools:
            self._growth(tool, *(medians[tool, name] for name in self.stores))
        print(flush=True)

    def _server(self, path: str) -> Client:
        return Client([*self.plugin.coordinator, "serve"], {**self.env, "SWARM_DB_PATH": path}, self.checkout)

    def _growth(self, what: str, small: float, large: float) -> None:
        print(f"{what}: {large / small:.2f} times as long with {LARGE:,} of each")
        self._judge(f"{what}: growth", large / small, GROWTH)

    # --------------------------------------------------------------- commands

    def _commands(self, runs: int) -> None:
        bare = [self.plugin.python, "-c", "pass"]
        empty = str(self.root / "empty.db")
        Store(empty).close()
        locked = f"{self.checkout}/src/locked.py"
        register = ["register", "--label", "someone", "--json"]
        cases = [
            ("locks --json", ["locks", "--json"], empty),
            ("register", register, empty),
            *(
                (f"locks --file, {name}", ["locks", "--file", locked, "--json"], path)
                for name, path in self.stores.items()
            ),
            *((f"register, {name}", register, path) for name, path in self.stores.items()),
        ]
        took: dict[str, list[float]] = {name: [] for name, *_ in cases}
        bares = []
        for number in range(-1, runs):
            for name, words, path in cases:
                base = run(bare, b"", self.env, self.checkout)
                ran = run([*self.plugin.coordinator, *words], b"", {**self.env, "SWARM_DB_PATH": path}, self.checkout)
                if ran.code:
                    raise WrongAnswer(f"swarm-mcp {' '.join(words)} exited {ran.code}: {ran.output!r}")
                if number >= 0:
                    bares.append(1000 * base.seconds)
                    took[name].append(1000 * ran.seconds)
        base = median(bares)
        print(f"commands, ms                 median  ratio   (python3 -c pass: {base:.1f})")
        for name, values in took.items():
            print(f"{name:26} {median(values):8.1f} {median(values) / base:6.2f}")
        for name in ("locks --json", "register"):
            self._judge(f"{name}: times a bare python3", median(took[name]) / base, COMMAND_RATIO)
        for what in ("locks --file", "register"):
            self._growth(what, *(median(took[f"{what}, {name}"]) for name in self.stores))
        print(flush=True)

    # -------------------------------------------------------- start

    def _start(self, runs: int) -> None:
        first, second = [], []
        unused, used = (0, 0), (0, 0)
        path = next(iter(self.stores.values()))
        for _ in range(runs):
            began = time.perf_counter()
            with self._server(path) as server:
                first.append(1000 * server.first_answer)
                unused = server.memory()
                server.call("list_instances", {})
                second.append(1000 * (time.perf_counter() - began))
                time.sleep(0.3)
                used = server.memory()
        print(
            f"server start to its first answer {median(first):.0f} ms,"
            f" to the answer of a first call {median(second):.0f} ms"
        )
        for when, (resident, proportional) in (("not called yet", unused), ("after a call", used)):
            print(f"idle server, {when}: {resident / 2**20:.1f} MiB resident, {proportional / 2**20:.1f} proportional")
            self._judge(f"idle server, {when}: MiB resident", resident / 2**20, IDLE_MIB)
        print(flush=True)

    def _judge(self, what: str, value: float, limit: float) -> None:
        if value > limit:
            self.missed.append(f"{what}: {value:.2f}, goal {limit}")


def _quantile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]
