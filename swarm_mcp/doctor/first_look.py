"""The check of the program in front of the check before a write: its contract, and calls through it, both ways."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from swarm_hook_core import DISTRIBUTION
from swarm_hook_core.first_look import CLIENTS, CONTRACT
from swarm_hook_core.guests import HOSTS
from swarm_hook_core.json_text import dumps
from swarm_mcp import installation
from swarm_mcp.doctor.enforcement import DENIED
from swarm_mcp.doctor.own_checks import Asked
from swarm_mcp.runtimes import runtime
from swarm_mcp.runtimes.base import Finding
from swarm_mcp.store import Store
from swarm_mcp.store.attempts import Attempt
from swarm_mcp.store.sessions import Registration

NAME = "first look"
SESSION = "doctor-canary"
SECONDS = 20.0
HANDED_OVER = 77  # exit status of the command that stands for the check
_PASSED_ON = f"import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()); sys.exit({HANDED_OVER})"


def findings(_asked: Asked) -> list[Finding]:
    """Return the finding about the program, or the reason why the check goes without it."""
    program = installation.FIRST_LOOK
    if not os.path.lexists(program):
        return [_without()]
    again = f"install it again: pipx install --force {DISTRIBUTION}"
    contract = installation.first_look_contract(program)
    if contract != str(CONTRACT):
        text = f"{program} is not used: its contract is {contract or 'unknown'}, not {CONTRACT}. The check runs without"
        return [Finding(NAME, "warn", f"{text} it", again, {"program": program, "contract": contract})]
    details = {"program": program, "contract": CONTRACT}
    for client in CLIENTS:
        with tempfile.TemporaryDirectory(prefix="first-look-") as folder:  # no name of ours in it
            try:
                fault = Canary(Path(folder).resolve(), program, client).fault()
            except (OSError, subprocess.TimeoutExpired) as error:
                fault = f"cannot be run: {error}"
        if fault:
            return [Finding(NAME, "fail", f"{program} {fault}", again, details)]
    text = (
        f"the program in C looks first, contract {CONTRACT}: a free write passes, a locked one goes to the check, which"
        " denies it"
    )
    return [Finding(NAME, "ok", text, details=details)]


def _without() -> Finding:
    try:
        with open(installation.NOT_COMPILED, encoding="utf-8") as file:
            why = file.read().strip()
    except OSError:  # a wheel for all platforms
        return Finding(NAME, "info", "the check runs in Python alone: this package was built without the program in C")
    text = f"the check runs in Python alone: when this was installed, {why}"
    return Finding(NAME, "info", text, f"mend that, and install it again: pipx install --force {DISTRIBUTION}")


class Canary:
    """A private home with a store, a repository, and two sessions at work in it."""

    def __init__(self, root: Path, program: str, client: str):
        self.program, self.client, self.home, work = program, client, root / "home", root / "work"
        (work / ".git").mkdir(parents=True)
        self.home.mkdir()
        self.here, self.free, self.locked = str(work), str(work / "free.txt"), str(work / "locked.txt")
        store_path = str(self.home / ".swarm-mcp" / "swarm.db")
        strange = ("SWARM_", "XDG_", *HOSTS)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
        self.environment = {**kept, "HOME": str(self.home), "SWARM_DB_PATH": store_path}
        with Store(store_path) as store:
            asking = Registration(self.here, label="canary", lease_seconds=600, runtime=client, session_id=SESSION)
            self.canary = store.instances.register(asking)
            self.peer = store.instances.register(Registration(self.here, label="doctor", lease_seconds=600))

    def lock(self) -> None:
        """Have the peer lock a file, and note its denial: the process that a hook starts for that would outlive us."""
        with Store(self.environment["SWARM_DB_PATH"]) as store:
            store.locks.acquire(self.peer, self.locked, "canary")
            store.denials.report(self.canary, self.locked, self.peer.id, Attempt("doctor"))

    def fault(self) -> str:
        """Return the fault of the program in words; may be empty.

        The check's own answers are asked for, too: the program has to agree with them.
        """
        self.answer_of_the_check(f"{self.here}/first.txt")  # leaves the journal that the program adds to
        status, printed = self.answer_of_the_program(self.free)
        if (status, printed) != (0, b""):
            return f"does not let a free write of {self.client} pass"
        if self.answer_of_the_check(self.free):
            return f"lets a write of {self.client} pass about which the check has words"
        self.lock()
        status, printed = self.answer_of_the_program(self.locked)
        if (status, printed) != (HANDED_OVER, self.payload(self.locked)):
            return f"does not hand a write of {self.client} to a locked file over to the check"
        if DENIED not in self.answer_of_the_check(self.locked):
            return f"hands a write of {self.client} to a locked file over, and the check does not deny it"
        return ""

    def payload(self, path: str) -> bytes:
        """Return the client's payload for a new file."""
        return dumps(runtime(self.client).write_payload(SESSION, self.here, path)).encode()

    def answer_of_the_program(self, path: str) -> tuple[int, bytes]:
        """Return the exit status and output for a new file, with a command in place of the check."""
        return self._ran(path, [sys.executable, "-I", "-S", "-c", _PASSED_ON])

    def answer_of_the_check(self, path: str) -> str:
        """Return the output of the check itself for a new file."""
        hook = [*installation.coordinator_command(), "hook", "pre-tool-use", "--runtime", self.client]
        return self._ran(path, hook, looks_first=False)[1].decode()

    def _ran(self, path: str, check: list[str], looks_first: bool = True) -> tuple[int, bytes]:
        words = check
        if looks_first:
            words = [self.program, str(CONTRACT), self.client, *check]
        done = subprocess.run(
            words, input=self.payload(path), capture_output=True, timeout=SECONDS, env=self.environment, cwd=self.here,
            check=False,
        )  # fmt: skip
        return done.returncode, done.stdout
