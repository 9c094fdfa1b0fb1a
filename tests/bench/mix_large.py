"""The mix of `--part mix` after much work, ``--part mix-large``, and many sessions at once, ``--part crowd``.

The checkout has seen 20,000 edits by six sessions that go on, none committed, in 300 files; or a million locks on other files;
or fifty sessions, and each has written a file and locked it. The edits are made by the code that a checker runs, in processes
that stand for the clients. The goals are those of `mix`; only the last installation is measured.

In a crowd each session is a client with its own server and checker. All work in one checkout, each on its own file: an edit, a
command that reads, a command that writes, and a pause. Goals: no error, and no hook that takes a second.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from support.listings import lines_of

from .installations import Installation
from .mix import PEER, Client, Ground, State
from .mix_calls import LINES
from .plugin import WrongAnswer, payload

EDITS, SESSIONS, FILES = 20_000, 6, 300
LOCKS = 1_000_000
MANY = 50
CROWD, CROWD_SECONDS, PAUSE_SECONDS = 200, 180, 20.0
AT_ONCE = 4  # sessions that begin
LONGEST_SECONDS = 1.0
MB_OF_A_SESSION = 90  # client, server and checker: no more sessions than fit this machine's free memory
TESTS = str(Path(__file__).parents[1])

# The client of a session that edits. Its standard input names the session and the edits; it lives until that is closed.
_EDITOR = """
import json, os, sys, types
from swarm_mcp.checker import checkers_dir, process
told = json.loads(sys.stdin.readline())
os.makedirs(checkers_dir(), mode=0o700, exist_ok=True)
checker = process.Checker(f"editor-{os.getpid()}")
surroundings = [f"{name}={value}".encode() for name, value in os.environ.items()]
def check(event, **fields):
    sent = {"session_id": told["session"], "cwd": told["folder"], "hook_event_name": event, **fields}
    call = types.SimpleNamespace(
        payload=json.dumps(sent).encode(), client="codex", event="pre_tool_use", environment=surroundings,
        folder=told["folder"].encode(), pid=os.getpid(), parent=os.getpid(), demand=lambda: None)
    status, output = checker.result(call)
    if status or "deny" in output:
        sys.exit(f"{status}, {output}")
for number in range(told["edits"]):
    name = told["files"][number % len(told["files"])]
    line = f"edit {number} of {told['session']}"
    patch = f"*** Begin Patch\\n*** Update File: {name}\\n@@\\n+{line}\\n*** End Patch\\n"
    check("PreToolUse", tool_name="apply_patch", tool_input={"command": patch}, tool_use_id=f"{number}")
    with open(f"{told['folder']}/{name}", "a") as file:
        file.write(line + "\\n")
print("done", flush=True)
sys.stdin.read()
"""

# A process that fills a store and is the client of the sessions in it.
_FILL = """
import sys
from bench import stores
stores.fill(sys.argv[1], sys.argv[2], int(sys.argv[3]), "")
print("done", flush=True)
sys.stdin.read()
"""

# One session of a crowd: a client that starts its server, begins, says ``done``, and works from the time it is told.
_MEMBER = """
import json, os, random, subprocess, sys, time
told = json.loads(sys.stdin.readline())
server = subprocess.Popen(told["serve"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
environment = {**os.environ, **told["variables"]}
def hook(command, sent):
    ran = subprocess.run(command, input=sent.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    if ran.returncode or b'"deny"' in ran.stdout or ran.stderr:
        wrong.append(f"status {ran.returncode}, {ran.stdout!r}, {ran.stderr!r}")
took, wrong = [], []
end = time.monotonic() + 300
def has_socket():
    try:
        return any(name.startswith(f"{os.getpid()}-") and "." not in name for name in os.listdir(told["checkers"]))
    except FileNotFoundError:  # no server has begun
        return False
while not has_socket():
    if time.monotonic() > end:
        sys.exit("the server has no checker")
    time.sleep(0.1)
hook(*told["start"])
hook(*told["events"][0][:2])
print("done", flush=True)
time.sleep(max(0, float(sys.stdin.readline()) + random.random() * told["pause"] - time.time()))
end = time.monotonic() + told["seconds"]
while time.monotonic() < end:
    for command, sent, writes in told["events"]:
        began = time.monotonic()
        hook(command, sent)
        took.append(time.monotonic() - began)
        if writes:
            with open(told["file"], "a") as file:
                file.write("one line more\\n")
    time.sleep(told["pause"])
print(json.dumps({"took": took, "wrong": wrong}), flush=True)
server.communicate()
sys.stdin.read()
"""


def _add_files(ground: Ground, count: int) -> list[str]:
    names = [f"part/f{number}.py" for number in range(count)]
    os.makedirs(f"{ground.checkout}/part")
    for name in names:
        Path(ground.checkout, name).write_text(LINES)
    ground.git("add", ".")
    ground.git("commit", "-qm", "parts")
    return names


def _living(ground: Ground, words: list[str], told: str, **env: str) -> subprocess.Popen[str]:
    """Start a process that says ``done`` and then lives as long as the state."""
    process = subprocess.Popen(
        words, env={**ground.env, **env}, cwd=ground.checkout, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin
    process.stdin.write(told)
    process.stdin.flush()
    ground.at_end(process.communicate)
    return process


def _wait_done(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        assert process.stdout
        if process.stdout.readline() != "done\n":
            raise WrongAnswer("a state could not be prepared")


def edited(ground: Ground) -> None:
    """Have sessions make many edits, each in files of its own."""
    names = _add_files(ground, FILES)
    processes = []
    for number in range(SESSIONS):
        session = f"{PEER}-{number}"
        client = Client()
        ground.at_end(client.close)
        ground.of_peer(client, "SessionStart", session, source="startup")
        told = {
            "session": session, "folder": ground.checkout, "files": names[number::SESSIONS], "edits": EDITS // SESSIONS,
        }  # fmt: skip
        words = [sys.executable, "-c", _EDITOR]
        processes.append(_living(ground, words, json.dumps(told) + "\n"))
    _wait_done(processes)


def locked(ground: Ground) -> None:
    """Have fifty sessions hold many locks."""
    store = f"{ground.home}/.swarm-mcp/swarm.db"
    os.makedirs(os.path.dirname(store), mode=0o700)
    words = [sys.executable, "-c", _FILL, store, ground.checkout, str(LOCKS)]
    _wait_done([_living(ground, words, "", PYTHONPATH=TESTS)])


def crowded(ground: Ground) -> None:
    """Have many sessions each write a file and lock it."""
    for name in _add_files(ground, MANY):
        client = Client()
        ground.at_end(client.close)
        session = f"{PEER}-{name}"
        ground.of_peer(client, "SessionStart", session, source="startup")
        ground.change(client, session, name)
        ground.lock(client, session, name)


LARGE = (
    State(f"after {EDITS:,} edits", edited),
    State(f"{LOCKS:,} locks", locked),
    State(f"{MANY} sessions", crowded),
)


class Crowd:
    """Many sessions at work at once; missed goals are in `missed`."""

    def __init__(self, installed: list[Installation], root: Path):
        self.installation, self.root = installed[-1], root / "crowd"
        self.root.mkdir()
        self.missed: list[str] = []

    def measure(self) -> None:
        """Have them work, and print the time of their hooks."""
        sessions = min(CROWD, int(_free_mb() / MB_OF_A_SESSION))
        ground = Ground(self.root, self.installation, "claude-code")
        try:
            names = _add_files(ground, sessions)
            processes: list[subprocess.Popen[str]] = []
            while len(processes) < sessions:  # agents are not started at once
                begun = names[len(processes) : len(processes) + AT_ONCE]
                beginning = [
                    _living(ground, [sys.executable, "-c", _MEMBER], self._told(ground, name)) for name in begun
                ]
                _wait_done(beginning)
                processes += beginning
            begin = time.time() + 1
            print(f"  {sessions} sessions have begun", file=sys.stderr, flush=True)
            for process in processes:
                assert process.stdin
                process.stdin.write(f"{begin}\n")
                process.stdin.flush()
            found = [json.loads(process.stdout.readline()) for process in processes if process.stdout]
        finally:
            ground.close()
            os.chdir(self.root)
        self._show(sessions, found, ground)

    def _told(self, ground: Ground, name: str) -> str:
        edit = {"file_path": f"{ground.checkout}/{name}", "old_string": "file", "new_string": "text"}
        calls = [
            ("Edit", edit),
            ("Bash", {"command": f"grep -n text {name} | head -20"}),
            ("Bash", {"command": f"touch {name}"}),
        ]
        events = []
        for tool, given in calls:
            for event in ("PreToolUse", "PostToolUse"):
                if ground.wants(event, tool):
                    fields: dict[str, Any] = {"tool_name": tool, "tool_input": given, "tool_use_id": f"{name}-{tool}"}
                    if event == "PostToolUse":
                        fields["tool_response"] = {"stdout": "", "stderr": "", "interrupted": False}
                    sent = payload(event, name, ground.checkout, **fields).decode()
                    events.append([ground.installation.command("claude-code", event), sent, tool == "Edit"])
        start = payload("SessionStart", name, ground.checkout, source="startup").decode()
        told = {
            "serve": [ground.installation.script, "serve"], "events": events, "file": name, "seconds": CROWD_SECONDS,
            "start": [ground.installation.command("claude-code", "SessionStart"), start], "pause": PAUSE_SECONDS,
            "variables": ground.installation.variables("claude-code"), "checkers": str(ground.state / "checkers"),
        }  # fmt: skip
        return json.dumps(told) + "\n"

    def _show(self, sessions: int, found: list[dict[str, Any]], ground: Ground) -> None:
        took = sorted(seconds for of in found for seconds in of["took"])
        wrong = [what for of in found for what in of["wrong"]]
        faults = ground.state / "faults.jsonl"
        lines = lines_of(faults)
        alone = ground.reasons()
        errors = len(wrong) + len(lines)
        print(f"{sessions} sessions, {CROWD_SECONDS} s: {len(took)} hooks, {len(alone)} alone, {errors} errors")
        print("alone: " + ", ".join(f"{count} {why}" for why, count in Counter(alone).most_common()))
        print(
            f"seconds of a hook: median {took[len(took) // 2]:.3f}, p99 {took[len(took) * 99 // 100]:.3f}, most {took[-1]:.3f}"
            f"  (load {os.getloadavg()[0]:.1f})\n"
        )
        self.missed += [f"crowd: {what}" for what in [*wrong, *lines][:5]]
        if took[-1] > LONGEST_SECONDS:
            self.missed.append(f"crowd: a hook took {took[-1]:.2f} s, goal {LONGEST_SECONDS:g}")
        if sessions < CROWD:
            self.missed.append(f"crowd: {sessions} sessions fit into the memory, {CROWD} were wanted")


def _free_mb() -> float:
    """Return the memory that is free for further processes."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 1024
    raise WrongAnswer("this machine does not tell its free memory")
