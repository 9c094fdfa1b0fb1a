"""The cost of supervision: a child through the runner against the same child bare, and twenty workers at once.

Goals (``--check`` exits 1 for a missed one): supervised at most 5 % longer than bare, medians of runs by turns in one
process; at most 60 MiB resident in a supervisor; of 20 workers dispatched at once with a cap of 20 every task done,
none lost, nothing left behind.

The child prints 1 000 lines in a second, as an agent does; one that prints as fast as it can shows the cost of a line.
``swarm-mcp worker run`` is the whole command, with the start of Python. If SWARM_E2E_CLIENTS names a folder with the real
clients (see ``make e2e``), these answer a prompt with a scripted model: bare, the same command supervised, and as the
harness of a dispatch with hooks, servers and skills: those are the child's own work, and are reported but not judged.
"""

import json
import os
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from statistics import median

from swarm_mcp.store import Store

from . import stores
from .plugin import Plugin, WrongAnswer

LONGER = 1.05
SUPERVISOR_MIB = 60
CROWD = 20
LINES = 1000
FLOOD = 20_000
CHILD = """
import json, sys, time
lines, seconds = int(sys.argv[1]), float(sys.argv[2])
began = time.perf_counter()
for number in range(lines):
    call = {"tool_call_id": f"call-{number // 2}", "tool_name": "Read"}
    if number % 2:
        told = {"type": "tool_end", **call, "result": "a line of a file, as long as lines are on average\\n" * 3}
    else:
        told = {"type": "tool_start", **call, "args": {"path": f"src/file-{number}.py"}}
    print(json.dumps(told), flush=seconds > 0)
    time.sleep(max(0, began + seconds * number / lines - time.perf_counter()))
"""
OFFICIAL = {"claude": "ClaudeCode", "codex": "Codex"}


class Harness:
    """The measurements, in a private home; `missed` are the goals that were not reached, in words."""

    def __init__(self, plugin: Plugin, root: Path, checkout: str, env: dict[str, str]):
        self.plugin, self.root, self.checkout = plugin, root, checkout
        self.env = {**env, "SWARM_DB_PATH": str(root / "harness.db"), "PYTHONPATH": str(root / "site")}
        self.child = str(root / "child.py")
        Path(self.child).write_text(CHILD)
        self.missed: list[str] = []

    def measure(self, runs: int) -> None:
        """Measure everything and print it."""
        print("one child                        bare ms  supervised  longer    of min  own cpu ms")
        paced, flood = self._words(LINES, 1.0), self._words(FLOOD, 0.0)
        self._compare(f"{LINES:,} lines in a second", paced, max(7, runs // 6), judged=True)
        bare, found = self._compare(f"{FLOOD:,} lines at once", flood, max(5, runs // 12), judged=False)
        print(f"a line costs {1000 * (found - bare) / FLOOD:.3f} ms where nothing else is waited for")
        self._command(paced, max(5, runs // 12))
        for name in OFFICIAL:
            self._client(name, max(7, runs // 8))
        self._crowd()

    # -------------------------------------------------------------- one child

    def _words(self, lines: int, seconds: float) -> list[str]:
        return [self.plugin.python, "-I", "-S", self.child, str(lines), str(seconds)]

    def _compare(self, name: str, argv: list[str], rounds: int, judged: bool) -> tuple[float, float]:
        """Medians of seconds, bare and supervised."""
        cases = [{"name": "bare", "argv": argv}, {"name": "supervised", "argv": argv, "harness": "process"}]
        told = self._take_turns(cases, "", rounds, self.checkout, self.env)
        return self._show(name, told, "supervised", judged)

    def _show(self, name: str, told: dict, which: str, judged: bool) -> tuple[float, float]:
        walls, others = told["walls"]["bare"], told["walls"][which]
        bare, found = median(walls), median(others)
        print(
            f"{name:30} {1000 * bare:9.0f} {1000 * found:11.0f} {found / bare:7.3f} {min(others) / min(walls):9.3f}"
            f" {1000 * median(told['cpu'][which]):11.0f}",
            flush=True,
        )
        if judged:
            self._judge(f"{name}: times as long supervised", found / bare, LONGER)
        if which == "supervised":
            self._memory(name, told["peak"])
        return bare, found

    def _take_turns(self, cases: list[dict], prompt: str, rounds: int, cwd: str, env: dict[str, str]) -> dict:
        sent = {"rounds": rounds, "cwd": cwd, "scope": cwd, "prompt": prompt, "cases": cases}
        done = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("supervising.py"))],
            input=json.dumps(sent), env=env, cwd=cwd, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            raise WrongAnswer(f"a supervised child failed: {done.stderr.strip()[-500:]}")
        return json.loads(done.stdout)

    def _command(self, argv: list[str], rounds: int) -> None:
        import shlex

        whole = [*self.plugin.coordinator, "run", "--harness", "process", "--command", shlex.join(argv), "go"]
        took: dict[str, list[float]] = {"bare": [], "run": []}
        for _ in range(rounds):
            for name, words in (("bare", argv), ("run", whole)):
                began = time.perf_counter()
                subprocess.run(
                    words, env=self.env, cwd=self.checkout, stdin=subprocess.DEVNULL, capture_output=True, check=True
                )
                took[name].append(time.perf_counter() - began)
        more = 1000 * (median(took["run"]) - median(took["bare"]))
        print(f"swarm-mcp worker run, from start to exit: {more:.0f} ms more than the child\n", flush=True)

    # ------------------------------------------------------- the real clients

    def _client(self, name: str, rounds: int) -> None:
        if not os.environ.get("SWARM_E2E_CLIENTS"):
            print(f"{name}: not measured, SWARM_E2E_CLIENTS is not set")
            return
        above = __package__.rpartition(".")[0]
        ground_of, clients, models = (
            import_module(f"{above}.e2e.{part}" if above else f"e2e.{part}") for part in ("ground", "clients", "models")
        )
        ground = ground_of.Ground(f"bench-{name}")
        try:
            client = getattr(clients, OFFICIAL[name])(ground)
            client.prepare()
            ground.models.script("bench", client.read("notes.md") if name == "claude" else client.shell("cat notes.md"))
            prompt = models.play("bench")
            plain = {
                "claude": ["claude", "-p", "--output-format", "stream-json", "--verbose"],
                "codex": ["codex", "exec", "--json", "--skip-git-repo-check", "-"],
            }[name]
            cases = [
                {"name": "bare", "argv": plain},
                {"name": "supervised", "argv": plain, "harness": "process"},
                {"name": "harness", "argv": [], "harness": name},
            ]
            env = {**ground.env, "SWARM_STATE_DIR": str(ground.root / "state"), "PYTHONPATH": self.env["PYTHONPATH"]}
            told = self._take_turns(cases, prompt, rounds, str(ground.checkout), env)
        finally:
            ground.close()
        self._show(f"{name}, the command alone", told, "supervised", judged=True)
        self._show(f"{name}, with hooks and servers", told, "harness", judged=False)

    # ------------------------------------------------------- twenty at once

    def _crowd(self) -> None:
        """Dispatch as many workers at once as there are slots; each dispatch waits for its worker's end."""
        stores.join(self.env["SWARM_DB_PATH"], self.checkout, "claude-code", "lead")
        env = {
            **self.env, "CLAUDE_CODE_SESSION_ID": "lead", "SWARM_MCP_ALLOW_SPAWN": "1", "SWARM_MAX_WORKERS": str(CROWD),
        }  # fmt: skip
        argv = self._words(LINES, 1.0)
        alone = self._at_once([argv] * CROWD, self.env)
        import shlex

        peaks: dict[int, int] = {}
        over = threading.Event()
        watch = threading.Thread(target=self._watch, args=(peaks, over))
        watch.start()
        words = [
            [*self.plugin.coordinator, "dispatch", f"Task {number}", "--harness", "process", "--command",
             shlex.join(argv), "--force-spawn", "--wait", "120", "--completion-wait", "240", "--json"]
            for number in range(CROWD)
        ]  # fmt: skip
        took = self._at_once(words, env)
        over.set()
        watch.join()
        self._settled()
        largest = max(peaks.values(), default=0)
        print(
            f"{CROWD} workers dispatched at once, each with a child of a second: {took:.1f} s until all were done"
            f" ({CROWD} such children bare: {alone:.1f} s, {os.cpu_count()} processors)"
        )
        if peaks:
            figures = [size / 2**20 for size in peaks.values()]
            print(
                f"{len(peaks)} supervisors: {median(figures):.1f} MiB resident each at most (median),"
                f" {max(figures):.1f} the largest",
                flush=True,
            )
            self._judge(f"supervisor of {CROWD}: MiB resident", largest / 2**20, SUPERVISOR_MIB)

    def _at_once(self, commands: list[list[str]], env: dict[str, str]) -> float:
        """Seconds until all have ended. Raises WrongAnswer where one failed."""
        began = time.perf_counter()
        children = [
            subprocess.Popen(words, env=env, cwd=self.checkout, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
            for words in commands
        ]  # fmt: skip
        readers = [threading.Thread(target=self._read, args=(child,)) for child in children]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        seconds = time.perf_counter() - began
        wrong = [child.said for child in children if child.returncode]
        if wrong:
            raise WrongAnswer(f"{len(wrong)} of {len(children)} failed: {wrong[0]!r}")
        return seconds

    @staticmethod
    def _read(child) -> None:
        child.said = child.communicate()[1]

    def _watch(self, peaks: dict[int, int], over: threading.Event) -> None:
        """Most memory of each supervisor so far, for as long as it can be read (Linux)."""
        with Store(self.env["SWARM_DB_PATH"], read_only=True) as store:
            while not over.wait(0.1):
                for row in store.database.rows("SELECT supervisor_pid FROM swarm_runs WHERE task_id IS NOT NULL"):
                    try:
                        status = Path(f"/proc/{row['supervisor_pid']}/status").read_text()
                    except OSError:  # the process has ended
                        continue
                    for line in status.splitlines():
                        if line.startswith("VmHWM"):
                            peaks[row["supervisor_pid"]] = int(line.split()[1]) * 1024

    def _settled(self) -> None:
        """Raises WrongAnswer where a task was lost, or anything was left behind."""
        until = time.monotonic() + 10
        with Store(self.env["SWARM_DB_PATH"], read_only=True) as store:
            while store.runs.live() and time.monotonic() < until:
                time.sleep(0.05)  # the task ends a moment before its supervisor
            tasks = store.database.rows("SELECT status FROM tasks WHERE title LIKE 'Task %'")
            runs = store.database.rows("SELECT state FROM swarm_runs WHERE task_id IS NOT NULL")
            left = store.database.rows("SELECT id FROM instances WHERE label LIKE '%role:implementer%'")
            locks = store.database.rows("SELECT file FROM context WHERE type = 'lock'")
        if [row["status"] for row in tasks] != ["done"] * CROWD or [row["state"] for row in runs] != ["ended"] * CROWD:
            raise WrongAnswer(f"of {CROWD} dispatched tasks: {tasks}, runs: {runs}")
        if left or locks:
            raise WrongAnswer(f"{len(left)} workers and {len(locks)} locks were left behind")

    # ---------------------------------------------------------------- innards

    def _memory(self, name: str, peak: int) -> None:
        print(f"{'':30} supervisor: {peak / 2**20:.1f} MiB resident at most")
        self._judge(f"{name}: supervisor's MiB resident", peak / 2**20, SUPERVISOR_MIB)

    def _judge(self, what: str, value: float, limit: float) -> None:
        if value > limit:
            self.missed.append(f"{what}: {value:.3f}, goal {limit}")
