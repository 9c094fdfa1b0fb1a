"""The cost of a hook for a very large call: ``--part large``.

Every shape of ``large_shapes`` in every size, and patches of thousands of files, are checked by the command of an
installed plugin, while another session holds 2,000 files below one folder of the checkout. The figures are of the whole
process, with its helper programs: processor time and the largest peak memory of one process. Beside it the same of
calls that write that folder as a whole, in a checkout without earlier runs of those shapes.

Each call is made three times, and the median counts: on a shared machine the processor time of one and the same process
differs by a third from run to run.

A bare interpreter runs now and then between them: if that takes much more than 10 ms, the machine is busy, and all
times are that much longer.

Limits: p99 of processor time 60 ms, memory 40 MB.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

from . import large_shapes, stores
from .plugin import Plugin, WrongAnswer, payload

CPU_MS = 60.0
MEMORY_MB = 40.0
LOCKED = 2_000
WORST = 12  # that are named
BARE_EVERY = 20  # calls
RUNS = 3  # of each call; the one in the middle counts
TIMES = 5  # each of the few calls on the folder

# Runs orders from standard input, one line each: argv, environment, folder, input file. It forks, so that a child
# starts from the few pages of this bare interpreter: otherwise its parent's memory would be counted.
_LAUNCHER = """\
import posix as os, sys
sys.path[:0] = []
for line in sys.stdin:
    argv, env, folder, given, answered = eval(line)
    pid = os.fork()
    if not pid:
        os.chdir(folder)
        os.dup2(os.open(given, os.O_RDONLY), 0)
        os.dup2(os.open(answered, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.execve(argv[0], argv, env)
    _, status, usage = os.wait4(pid, 0)
    print(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, flush=True)
"""


class LargeCalls:
    """The measurements; missed goals are in `missed`."""

    def __init__(self, plugin: Plugin, root: Path, env: dict[str, str]):
        self.plugin, self.root, self.checkout = plugin, root / "large", str(root / "large" / "checkout")
        self.bare: list[float] = []
        self.calls = 0
        self.env = {**env, "SWARM_DB_PATH": str(root / "large.db"), "PATH": "/usr/local/bin:/usr/bin:/bin"}
        self.missed: list[str] = []
        self._prepare()

    def _prepare(self) -> None:
        source = Path(self.checkout) / "src"
        source.mkdir(parents=True)
        (Path(self.checkout) / "out").mkdir()
        for number in range(LOCKED):
            (source / f"f{number}.py").write_text("a line\n")
        git = ["git", "-C", self.checkout, "-c", "user.name=x", "-c", "user.email=x@x.invalid"]
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
            subprocess.run([*git, *words], check=True, env={**self.env, "GIT_CONFIG_NOSYSTEM": "1"})
        for number in range(LOCKED):
            (source / f"f{number}.py").write_text("another line\n")
        path = self.env["SWARM_DB_PATH"]
        stores.fill_folder(path, self.checkout, LOCKED)
        for runtime in ("claude-code", "codex"):
            stores.join(path, self.checkout, runtime, f"writer-{runtime}")

    def measure(self) -> None:
        """Measure everything and print it."""
        with self._launcher() as launcher:
            found = [(name, *self._shell(launcher, text, None)) for name, text in large_shapes.commands()]
            self._report(f"{len(found)} shell commands of up to {max(large_shapes.SIZES):,} characters", found)
            shutil.rmtree(Path(self.env["SWARM_STATE_DIR"]) / "traces", ignore_errors=True)
            found = []
            for _ in range(TIMES):
                for name, text, denied in _ON_THE_FOLDER:
                    found.append((name, *self._shell(launcher, text, denied)))
                found += [(name, *self._patch(launcher, text, denied)) for name, text, denied in _patches()]
            self._report(f"calls on a folder with {LOCKED:,} locks, and on thousands of files", found)

    def _report(self, title: str, found: list[tuple[str, float, float]]) -> None:
        times = sorted(cpu for _name, cpu, _peak in found)
        p50, p99 = (times[min(len(times) - 1, int(len(times) * part))] for part in (0.5, 0.99))
        peak, bare = max(peak for _name, _cpu, peak in found), median(self.bare)
        self.bare = []
        print(f"{title}\n  processor time, ms: p50 {p50:.1f}, p99 {p99:.1f} (limit {CPU_MS:.0f}), most {times[-1]:.1f},"
              f" bare interpreter {bare:.1f}; memory, MB: most {peak:.1f} (limit {MEMORY_MB:.0f})")  # fmt: skip
        for name, cpu, memory in sorted(found, key=lambda one: -one[1])[:WORST]:
            print(f"    {cpu:6.1f} ms {memory:6.1f} MB  {name}")
        if p99 > CPU_MS:
            self.missed.append(f"{title}: {p99:.1f} ms of processor time at the 99th of 100, limit {CPU_MS:.0f}")
        if peak > MEMORY_MB:
            self.missed.append(f"{title}: {peak:.1f} MB, limit {MEMORY_MB:.0f}")
        print(flush=True)

    def _shell(self, launcher, text: str, denied: bool | None) -> tuple[float, float]:
        called = {"tool_name": "Bash", "tool_input": {"command": text}}
        return self._run(launcher, "claude-code", called, denied, text[:60])

    def _patch(self, launcher, text: str, denied: bool) -> tuple[float, float]:
        called = {"tool_name": "apply_patch", "tool_input": {"command": text}}
        return self._run(launcher, "codex", called, denied, "a patch")

    def _run(self, *call) -> tuple[float, float]:
        """Milliseconds of processor time, of the run in the middle, and the most memory in MB of any."""
        runs = [self._run_once(*call) for _ in range(RUNS)]
        return median(cpu for cpu, _peak in runs), max(peak for _cpu, peak in runs)

    def _run_once(self, launcher, runtime: str, called: dict, denied: bool | None, name: str) -> tuple[float, float]:
        given, answered = self.root / "given", self.root / "answered"
        shutil.rmtree(Path(self.env["SWARM_STATE_DIR"]) / "watched", ignore_errors=True)  # the call before has ended
        given.write_bytes(payload("PreToolUse", f"writer-{runtime}", self.checkout, **called))
        status, cpu, peak = self._ran(launcher, self.plugin.command(runtime, "PreToolUse"), given, answered)
        output = answered.read_bytes()
        self.calls += 1
        if self.calls % BARE_EVERY == 1:
            bare = [self.plugin.python, "-I", "-S", "-c", "pass"]
            self.bare.append(1000 * float(self._ran(launcher, bare, given, answered)[1]))
        said = json.loads(output)["hookSpecificOutput"] if output else {}
        if int(status) or (denied is not None and (said.get("permissionDecision") == "deny") != denied):
            raise WrongAnswer(f"{name!r}: exit status {status}, {output[:300]!r}")
        return 1000 * float(cpu), int(peak) / (1e6 if sys.platform == "darwin" else 1e6 / 1024)

    def _ran(self, launcher, argv: list[str], given: Path, answered: Path) -> list[str]:
        """Exit status, seconds of processor time and peak of one run."""
        launcher.stdin.write(repr((argv, self.env, self.checkout, str(given), str(answered))) + "\n")
        launcher.stdin.flush()
        return launcher.stdout.readline().split()

    def _launcher(self):
        argv = [self.plugin.python, "-I", "-S", "-c", _LAUNCHER]
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


# Calls that write, or could write, the folder; True for calls to deny.
_ON_THE_FOLDER = (
    ("rm -rf folder", "rm -rf src", True),
    ("a write into the folder", "echo x > src/f1999.py", True),
    ("all files by a wildcard", "sed -i s/a/b/ src/*.py", True),
    ("git checkout .", "git checkout .", True),
    ("git stash", "git stash", True),
    ("git add -A", "git add -A", True),
    ("a formatter", "black src", True),
    ("a build", "make", False),
    ("a free file in the folder", "touch src/new.txt", False),
    ("a free file beside the folder", "touch out/new.txt", False),
)


def _patches() -> list[tuple[str, str, bool]]:
    def patch(names: list[str]) -> str:
        body = "".join(f"*** Update File: {name}\n@@\n-a line\n+two lines\n" for name in names)
        return f"*** Begin Patch\n{body}*** End Patch\n"

    locked = [f"src/f{number}.py" for number in range(LOCKED)]
    free = [f"out/f{number}.py" for number in range(LOCKED)]
    return [
        ("a patch of 2,000 locked files", patch(locked), True),
        ("a patch of 2,000 free files", patch(free), False),
        ("a patch of 2,000 free files and a locked one", patch([*free, "src/f7.py"]), True),
    ]
