"""The price of a write in the real clients, from the model's answer to the client's next request: ``--part clients``.

The models are scripted, on loopback. For each client sessions live side by side: without the plugin, with a hook before
each write that does nothing (``exit 0``), and with each installation (``--of``). In each round every session writes one new
file, in an order that rotates; the figures are medians of the differences within a round. Beside each session a peer has
written another file and holds a lock; that it is denied, or not by the hook that does nothing, is checked in the end.

``cpu`` is the processor time of a write, the client's own included (Linux), the figure that a busy machine disturbs least. A
client without a folder in SWARM_E2E_CLIENTS (see ``make e2e``) is not measured. Goals: of the last installation, against the
hook that does nothing, `GOALS`.
"""

import json
import os
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from e2e.appserver import trust_hooks
from e2e.client import Client
from e2e.clients import CLIENTS
from e2e.ground import Ground
from e2e.marketplace import Kind, Marketplace

from swarm_mcp.play.models import Gate, Step, play

from .installations import HOOKS, Installation
from .plugin import WrongAnswer, payload
from .processes import run

GOALS = {"claude-code": 6.0, "codex": 6.0}  # milliseconds
PROGRAMS = {"claude-code": "claude", "codex": "codex"}
NO_PLUGIN, NOTHING = "no plugin", "exit 0"
SCRIPT, PEER, LOCKED = "writes", "peer", "locked.md"
TEXT = "a line of a file of ordinary length\n" * 20
START_SECONDS, SETTLE_SECONDS, WRITE_SECONDS = 60.0, 5.0, 30.0


class Session:
    """One session of a client that writes a file on command, with the time of each write in milliseconds."""

    def __init__(self, name: str, way: str, installation: Installation, folder: Path, writes: int) -> None:
        self.way, self.writes = way, writes
        self.has_plugin = way != NO_PLUGIN
        self.ground = Ground("bench", with_swarm=self.has_plugin, clients=folder)
        del self.ground.env["SWARM_UVX"]  # as a user has it
        if self.has_plugin:
            command = self.ground.bin / "swarm-mcp"
            command.unlink()
            command.symlink_to(installation.script)
        self.client: Client = CLIENTS[name](self.ground)
        kind: Kind = "install" if self.has_plugin else "none"
        self.marketplace = Marketplace(self.ground, kind)
        self.gates = [Gate() for _ in range(writes + 3)]
        self.ms: list[float] = []
        self._cpu = 0.0

    def start(self) -> None:
        """Install the plugin, have a peer write and lock, and begin: the model is about to ask for the first write."""
        self.client.prepare()
        self.marketplace.install(self.client.name)
        if self.has_plugin:
            self._peer()
        if self.way == NOTHING:
            self._do_nothing()
        names = [*(f"file-{number}.md" for number in range(self.writes + 1)), LOCKED]
        steps = [
            Step((self.client.create(name, TEXT),), gate=gate) for name, gate in zip(names, self.gates, strict=False)
        ]
        self.ground.models.script(SCRIPT, *steps, Step(text="That is all.", gate=self.gates[-1]))
        self.ground.start(self.client.command(play(SCRIPT), None, None, ()))
        if not self.gates[0].wait_reached(START_SECONDS):
            raise WrongAnswer(f"{self.client.name}, {self.way}: the session never asked its model")

    def _peer(self) -> None:
        """Have a session of Codex write another file, and lock one."""
        ground, cwd = self.ground, str(self.ground.checkout)
        plugin = ground.home / ".local/share/swarm-mcp/marketplace"
        tree = json.loads((plugin / HOOKS["codex"]).read_text())["hooks"]
        patch = "*** Begin Patch\n*** Update File: other.md\n@@\n other\n+a peer's line\n*** End Patch\n"
        tool = {"tool_name": "apply_patch", "tool_input": {"command": patch}, "tool_use_id": "call-1"}
        for event, fields in {"SessionStart": {"source": "startup"}, "PreToolUse": tool}.items():
            (hook,) = (hook for group in tree[event] for hook in group["hooks"])
            ran = run(["/bin/sh", "-c", hook["command"]], payload(event, PEER, cwd, **fields), ground.env, cwd)
            if ran.code or b'"deny"' in ran.output:
                raise WrongAnswer(f"the peer's {event}: status {ran.code}, {ran.output!r}")
        (ground.checkout / "other.md").write_text("other\na peer's line\n")
        done = ground.run(["swarm-mcp", "lock", LOCKED], env={"CODEX_THREAD_ID": PEER})
        if done.returncode:
            raise WrongAnswer(f"the peer's lock: {done.stdout}{done.stderr}")

    def _do_nothing(self) -> None:
        """Put a command that does nothing in the place of the check before a write."""
        for path in self.ground.home.rglob("hooks.json"):
            tree = json.loads(path.read_text())
            for group in tree.get("hooks", {}).get("PreToolUse", ()):
                for hook in group["hooks"]:
                    hook["command"] = "exit 0"
            path.write_text(json.dumps(tree))
        if self.client.name == "codex":
            trust_hooks(self.ground)

    def settle(self) -> None:
        """Wait until the client's further processes have started; count from here."""
        self.write(0)
        self.ms.clear()
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
        self.ms.append(1000 * (time.perf_counter() - began))

    def end(self) -> None:
        """Take stock of processor time; the last write, of the locked file, is denied by an installation alone."""
        self._cpu += self._cpu_so_far()
        landed = [(self.ground.checkout / f"file-{number}.md").is_file() for number in range(self.writes + 1)]
        if not all(landed):
            raise WrongAnswer(f"{self.client.name}, {self.way}: {landed.count(False)} writes did not land")
        self.write(self.writes + 1)
        self.ms.pop()
        if (self.ground.checkout / LOCKED).exists() != (self.way in (NO_PLUGIN, NOTHING)):
            raise WrongAnswer(f"{self.client.name}, {self.way}: a write of a locked file was answered wrongly")

    def close(self) -> None:
        """End the client, and remove its files."""
        self.marketplace.close()
        self.ground.close()

    @property
    def cpu(self) -> float:
        """Milliseconds of processor time for each write; 0 where that cannot be told."""
        return self._cpu / self.writes

    def added(self, other: "Session") -> float:
        """Return the median of the differences to the writes of another session in the same rounds."""
        return median(mine - theirs for mine, theirs in zip(self.ms, other.ms, strict=True))

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

    def __init__(self, installed: list[Installation]) -> None:
        self.installed = installed
        self.missed: list[str] = []

    def measure(self, writes: int) -> None:
        """Measure each client that is there, one after another."""
        folder = Path(os.environ.get("SWARM_E2E_CLIENTS") or "/nonexistent") / ".bin"
        # A check looks closer at a path with our name: it may be a protected one.
        os.environ.setdefault("SWARM_E2E_ROOT", f"/var/tmp/bench-{os.getuid()}")
        for name, program in PROGRAMS.items():
            if (folder / program).exists():
                self._client(name, folder, writes)
            else:
                print(f"{name}: not measured, no {program} in the folder that SWARM_E2E_CLIENTS names\n")

    def _client(self, name: str, folder: Path, writes: int) -> None:
        ways = {NO_PLUGIN: self.installed[-1], NOTHING: self.installed[-1]}
        ways.update({installation.name: installation for installation in self.installed})
        with ExitStack() as stack:
            sessions = []
            for way, installation in ways.items():
                session = Session(name, way, installation, folder, writes)
                stack.callback(session.close)
                session.start()
                sessions.append(session)
            for session in sessions:
                session.settle()
            for number in range(1, writes + 1):
                turn = number % len(sessions)
                for session in sessions[turn:] + sessions[:turn]:
                    session.write(number)
            for session in sessions:
                session.end()
            self._show(name, sessions)

    def _show(self, name: str, sessions: list[Session]) -> None:
        none, nothing, *_ = sessions
        load = f"n = {none.writes}, load {os.getloadavg()[0]:.1f}"
        print(f"{name + ', ms a write':24} median  to none  to exit 0     min     cpu  to exit 0   ({load})")
        for session in sessions:
            print(
                f"{session.way:24} {median(session.ms):6.1f} {session.added(none):8.1f} {session.added(nothing):10.1f}"
                f" {min(session.ms):7.1f} {session.cpu:7.1f} {session.cpu - nothing.cpu:10.1f}",
                flush=True,
            )
        print()
        added = sessions[-1].added(nothing)
        if added > GOALS[name]:
            self.missed.append(f"{name}, {sessions[-1].way}: a write takes {added:.1f} ms more, goal {GOALS[name]:g}")
