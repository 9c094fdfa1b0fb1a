"""The plugin's cost for a write in the real clients, from the model's answer to the client's next request.

The models are scripted, on loopback. For each client three sessions live side by side: without the plugin, with its
check by ``command``, and by ``mcp_tool``. They write in turn, one file each, and are held at a gate in between; a peer
holds a lock in each store. Beside each write of ``command`` its hook runs alone, as the client starts it: through the
user's shell in Codex, through ``/bin/sh`` in Claude Code.

Goal: by ``command`` the median of a write grows by at most 1.3 times the median of the hook's own process. ``cpu`` is
the processor time of a write, the client's own included (Linux), the figure that a busy machine disturbs least. A
client without a folder in SWARM_E2E_CLIENTS (see ``make e2e``) is not measured.
"""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from e2e.client import Client
from e2e.clients import CLIENTS
from e2e.ground import Ground
from e2e.marketplace import Kind, Marketplace
from e2e.models import Gate, Step, play

from .plugin import RUNTIMES, WrongAnswer, write_payload
from .processes import run

WRITES = 20
LIMIT = 1.3
PROGRAMS = {"claude-code": "claude", "codex": "codex"}
WAYS: dict[str, Kind] = {"no plugin": "none", "command": "install", "mcp_tool": "mcp_tool"}
SCRIPT = "writes"
TEXT = "a line of a file of ordinary length\n" * 20
START_SECONDS, SETTLE_SECONDS, WRITE_SECONDS = 60.0, 5.0, 30.0


class Session:
    """One session of a client that writes a file on command, with the time of each write."""

    def __init__(self, name: str, way: str, folder: Path) -> None:
        self.way, self.kind = way, WAYS[way]
        self.ground = Ground("bench", with_swarm=self.kind != "none", clients=folder)
        self.client: Client = CLIENTS[name](self.ground)
        self.marketplace = Marketplace(self.ground, self.kind)
        self.gates = [Gate() for _ in range(WRITES + 3)]
        self.seconds: list[float] = []
        self.own_seconds: list[float] = []
        self.own_cpu: list[float] = []
        self._cpu = 0.0

    def start(self) -> None:
        """Install the plugin, have a peer lock a file, and begin: the model is about to ask for the first write."""
        self.client.prepare()
        self.marketplace.install(self.client.name)
        if self.kind != "none":
            self.ground.coordinator.peer_lock("locked.md")
            self.own_hook()  # the first one is of an unknown session
            self.own_seconds.clear()
            self.own_cpu.clear()
        names = [*(f"file-{number}.md" for number in range(WRITES + 1)), "locked.md"]
        steps = [
            Step((self.client.create(name, TEXT),), gate=gate) for name, gate in zip(names, self.gates, strict=False)
        ]
        self.ground.models.script(SCRIPT, *steps, Step(text="That is all.", gate=self.gates[-1]))
        self.ground.start(self.client.command(play(SCRIPT), None, None, ()))
        if not self.gates[0].wait_reached(START_SECONDS):
            raise WrongAnswer(f"{self.client.name}, {self.way}: the session never asked its model")

    def settle(self) -> None:
        """Wait until the client's further processes have started; count from here."""
        self.write(0)
        self.seconds.clear()
        until, before = time.monotonic() + SETTLE_SECONDS, -1.0
        while before != self._cpu_so_far() and time.monotonic() < until:
            before = self._cpu_so_far()
            time.sleep(0.3)
        self._cpu = -self._cpu_so_far()

    def write(self, number: int) -> None:
        """Let the model ask for write `number`; wait until the client comes back with its result."""
        began = time.perf_counter()
        self.gates[number].open()
        if not self.gates[number + 1].wait_reached(WRITE_SECONDS):
            raise WrongAnswer(f"{self.client.name}, {self.way}: write {number} never ended")
        self.seconds.append(time.perf_counter() - began)

    def own_hook(self) -> None:
        """Run the hook of a write alone, as the client starts it."""
        (command,) = (hook["command"] for hook in self._hooks("PreToolUse") if hook["type"] == "command")
        shell = self.ground.env["SHELL"] if self.client.name == "codex" else "/bin/sh"
        cwd = str(self.ground.checkout)
        sent = write_payload(self.client.name, "beside", cwd, f"{cwd}/file-0.md")
        env = {**self.ground.env, "CLAUDE_PLUGIN_ROOT": str(self._plugin)}
        ran = run([shell, "-c", command.replace("${CLAUDE_PLUGIN_ROOT}", str(self._plugin))], sent, env, cwd)
        if ran.code or ran.output:
            raise WrongAnswer(f"{self.client.name}: a free file got {ran.output!r}, status {ran.code}")
        self.own_seconds.append(ran.seconds)
        self.own_cpu.append(ran.cpu)

    def end(self) -> None:
        """Take stock of processor time; with the plugin the last write, of the locked file, has to be denied."""
        self._cpu += self._cpu_so_far()
        landed = [(self.ground.checkout / f"file-{number}.md").is_file() for number in range(WRITES + 1)]
        if not all(landed):
            raise WrongAnswer(f"{self.client.name}, {self.way}: {landed.count(False)} writes did not land")
        if self.kind != "none":
            self.write(WRITES + 1)
            self.seconds.pop()
            if (self.ground.checkout / "locked.md").exists():
                raise WrongAnswer(f"{self.client.name}, {self.way}: a write of a locked file was not denied")

    def close(self) -> None:
        self.marketplace.close()
        self.ground.close()

    @property
    def milliseconds(self) -> float:
        """Of a write, at the median."""
        return 1000 * median(self.seconds)

    @property
    def cpu(self) -> float:
        """Milliseconds of processor time for each write; 0 where that cannot be told."""
        return self._cpu / WRITES

    def hooks_of_a_write(self) -> list[str]:
        """Return the events with hooks around a write."""
        tree = json.loads((self._plugin / "integrations" / self.client.name / "hooks.json").read_text())["hooks"]
        tool = RUNTIMES[self.client.name]
        return [
            event for event, groups in tree.items() for group in groups if re.search(group.get("matcher", "$."), tool)
        ]

    @property
    def _plugin(self) -> Path:
        return self.ground.home / ".local/share/swarm-mcp/marketplace"

    def _hooks(self, event: str) -> list[dict]:
        tree = json.loads((self._plugin / "integrations" / self.client.name / "hooks.json").read_text())
        return [hook for group in tree["hooks"][event] for hook in group["hooks"]]

    def _cpu_so_far(self) -> float:
        """Milliseconds that the client's processes have used so far, those that have ended included."""
        ticks = 0
        for pid in self.ground.own_processes() if os.path.isdir("/proc/self") else ():
            try:
                told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile, and counts in its parent
            ticks += sum(map(int, told[11:15]))
        return 1000 * ticks / os.sysconf("SC_CLK_TCK")


class Clients:
    """The measurements; `missed` are the goals that were not reached, in words."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def measure(self) -> None:
        """Measure each client that is there, one after another."""
        folder = Path(os.environ.get("SWARM_E2E_CLIENTS") or "/nonexistent") / ".bin"
        for name, program in PROGRAMS.items():
            if (folder / program).exists():
                self._client(name, folder)
            else:
                print(f"{name}: not measured, no {program} in the folder that SWARM_E2E_CLIENTS names\n")

    def _client(self, name: str, folder: Path) -> None:
        with ExitStack() as stack:
            sessions = []
            for way in WAYS:
                session = Session(name, way, folder)
                stack.callback(session.close)
                session.start()
                sessions.append(session)
            for session in sessions:
                session.settle()
            for number in range(1, WRITES + 1):
                for session in sessions:
                    if session.kind == "install":
                        session.own_hook()
                    session.write(number)
            for session in sessions:
                session.end()
            self._show(name, *sessions)

    def _show(self, name: str, none: Session, command: Session, tool: Session) -> None:
        own, own_cpu = 1000 * median(command.own_seconds), 1000 * median(command.own_cpu)
        print(f"{name + ', ms a write':24} median   added     cpu   added   of the hook's own process, of its cpu")
        for session in (none, command, tool):
            line = f"{session.way:24} {session.milliseconds:6.1f}"
            if session is none:
                print(f"{line}         {session.cpu:7.1f}")
                continue
            added, more = session.milliseconds - none.milliseconds, session.cpu - none.cpu
            print(f"{line} {added:7.1f} {session.cpu:7.1f} {more:7.1f}   {added / own:.2f}  {more / own_cpu:.2f}")
        print(
            f"{'its hook alone':24} {own:6.1f}         {own_cpu:7.1f}   (hooks of a write: {', '.join(command.hooks_of_a_write())})"
        )
        ratio = (command.milliseconds - none.milliseconds) / own
        if ratio > LIMIT:
            self.missed.append(f"{name}: a write takes {ratio:.2f} times the hook's own process more, limit {LIMIT}")
        won = command.milliseconds - tool.milliseconds
        print(
            f"mcp_tool against command: {won:+.1f} ms a write won, {command.cpu - tool.cpu:+.1f} of processor time\n",
            flush=True,
        )
