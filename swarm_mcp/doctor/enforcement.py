"""Proof of enforcement: a lock in a store made for the purpose, and the client's own hooks asked about writes."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from swarm_hook_core.config import Dialect
from swarm_mcp.runtimes import hook_config
from swarm_mcp.runtimes.base import Finding, Runtime
from swarm_mcp.runtimes.installed import HookCommand, Installed
from swarm_mcp.store import Store
from swarm_mcp.store.attempts import Attempt
from swarm_mcp.store.sessions import Registration

ANSWER_SECONDS = 15
EVENT = "PreToolUse"
SESSION = "doctor-canary"
DENIED = "swarm lock blocked"


class Question(NamedTuple):
    """A question to a hook: `what` describes it, `denied` is the right answer, `payload` is the client's."""

    what: str
    denied: bool
    payload: dict[str, Any]


class Answer(NamedTuple):
    """The output of a hook: the `printed` text, the `reason` in it if a client reads it as a denial, the `seconds` it
    took, and its `trouble` in words. Each may be empty.
    """

    printed: str = ""
    reason: str = ""
    seconds: float = 0.0
    trouble: str = ""


class Canary:
    """A folder of its own for the proof, with a store in which a peer has locked a file of it."""

    def __init__(self, root: Path, runtime: Runtime):
        self.root, self.dialect = root, hook_config(runtime.name).dialect
        locked, free, here = root / "locked.txt", root / "free.txt", str(root)
        locked.write_text("canary\n")
        self.questions = [
            Question("a write to a locked file", True, runtime.write_payload(SESSION, here, str(locked))),
            Question("a shell command that writes a locked file", True,
                     runtime.shell_payload(SESSION, here, f"echo x | tee -a {locked.name}")),
            Question("a write to a free file", False, runtime.write_payload(SESSION, here, str(free))),
            Question("a shell command that reads a locked file", False,
                     runtime.shell_payload(SESSION, here, f"grep -c 'a > b' {locked.name} 2>/dev/null")),
        ]  # fmt: skip
        places = {"SWARM_DB_PATH": str(root / "store" / "swarm.db"), "SWARM_STATE_DIR": str(root / "state")}
        self.environment = {**os.environ, **places}
        with Store(places["SWARM_DB_PATH"]) as store:
            peer = store.instances.register(Registration(here, label="doctor", lease_seconds=600))
            asking = Registration(here, label="canary", lease_seconds=600, runtime=runtime.name, session_id=SESSION)
            canary = store.instances.register(asking)
            store.locks.acquire(peer, str(locked), "canary")
            # Noted in advance: the process that a hook starts to note a denial would outlive this folder.
            store.denials.report(canary, str(locked), peer.id, Attempt("doctor"))

    def asked_of_command(self, hook: HookCommand) -> list[Answer]:
        """Return the answers of a hook that is a command, started as the client would."""
        environment = {**self.environment, **hook.environment}
        environment.pop("SWARM_MCP_BIN", None)
        found = []
        for question in self.questions:
            begun = time.monotonic()
            try:
                done = subprocess.run(
                    ["/bin/sh", "-c", hook.command],
                    input=json.dumps(question.payload), capture_output=True, encoding="utf-8", errors="replace",
                    timeout=ANSWER_SECONDS, cwd=self.root, env=environment,
                )  # fmt: skip
            except (OSError, subprocess.TimeoutExpired) as error:
                found.append(Answer(seconds=time.monotonic() - begun, trouble=str(error)))
                continue
            answer = understood(done.stdout, self.dialect)._replace(seconds=time.monotonic() - begun)
            if answer.reason and done.returncode != self.dialect.denial_status:
                answer = answer._replace(reason="", trouble=f"it was denied with exit status {done.returncode}")
            complaint = (done.stderr.strip().splitlines() or [""])[-1]
            found.append(answer._replace(trouble=answer.trouble or complaint or self._recorded_fault()))
        return found

    def wrong(self, answers: list[Answer]) -> str:
        """Return the faults of the `answers` to the questions, in words, or an empty text."""
        for question, answer in zip(self.questions, answers):
            if question.denied and DENIED not in answer.reason:
                return f"{question.what} was not denied: {answer.trouble or answer.printed[:120] or 'it was let pass'}"
            if answer.printed and not question.denied:
                return f"{question.what} was not let through: {answer.trouble or answer.printed[:120]}"
        return ""

    def _recorded_fault(self) -> str:
        try:
            return str(json.loads((self.root / "state" / "faults.jsonl").read_text().splitlines()[-1])["fault"])
        except (OSError, ValueError, IndexError, KeyError, TypeError, RecursionError):  # no fault was recorded
            return ""


def prove(runtime: Runtime, installed: Installed) -> Finding:
    """Prove that the hooks of the client deny a write to a peer's file, and no other write."""
    name, mend = f"{runtime.name} enforcement", f"swarm-mcp install --client {runtime.name}"
    commands = [hook for hook in installed.commands() if hook.event == EVENT]
    if not commands:
        return Finding(name, "fail", f"the installed plugin has no {EVENT} hook", mend)
    details: dict[str, Any] = {}
    proven = []
    with tempfile.TemporaryDirectory(prefix="swarm-doctor-") as folder:
        canary = Canary(Path(folder).resolve(), runtime)
        for hook in commands:
            answers = canary.asked_of_command(hook)
            write, shell = (answer.seconds * 1000 for answer in answers[:2])
            details.update(command=hook.command, milliseconds=round(write, 1), shell_milliseconds=round(shell, 1))
            wrong = canary.wrong(answers)
            if wrong:
                return Finding(name, "fail", wrong, mend, details)
            proven.append(f"the installed hook in {write:.0f} ms ({shell:.0f} ms in the shell)")
    return Finding(name, "ok", f"a canary lock was denied by {' and by '.join(proven)}", details=details)


def coverage(runtime: Runtime) -> Finding:
    """Return the release in use, the tested one, and the gaps in the client's coverage."""
    name, covered, release = f"{runtime.name} coverage", runtime.coverage, runtime.release()
    if covered.gaps():
        gaps = f"not all is covered: {'; '.join(covered.gaps())}"
    else:
        gaps = "all is covered"
    if covered.verified is None:
        used = ""
        if release:
            used = f" (in use: {release})"
        text = f"unverified{used}: built from the client's documentation, never run in it; {gaps}"
        return Finding(name, "warn", text, details={"in_use": release or None, "tested": None})
    tested, details = covered.verified, {"in_use": release or None, "tested": covered.verified.version}
    if release == tested.version:
        text = f"release {release} is in use and was tested on {tested.date}; {gaps}"
    elif release:
        text = f"tested up to {tested.version}; here {release}; with {tested.version}, on {tested.date}, {gaps}"
        text += f"; what was new then: {tested.changed or 'nothing for swarm'}"
    else:
        text = f"the release in use is unknown; with {tested.version}, tested on {tested.date}, {gaps}"
        return Finding(name, "warn", text, details=details)
    mend = runtime.too_old(release)
    return Finding(name, "warn" if mend else "info", text, mend, details)


def earlier_checks(runtime: Runtime, installed: Installed) -> list[Finding]:
    """Return the finding about a plugin of an earlier release whose writes the session's MCP server checks."""
    if not installed.asks_a_server():
        return []
    text = "its hooks still ask the MCP server, which checks writes no more (--transport mcp_tool): a command stands in"
    return [Finding(f"{runtime.name} transport", "warn", text, f"swarm-mcp install --client {runtime.name}")]


def understood(text: str, dialect: Dialect) -> Answer:
    """Return the answer that a client of this dialect reads in a hook's output: only the exact object is a denial."""
    if not text.strip():
        return Answer()
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        return Answer(text, trouble=f"no client understands the hook's output: {text[:120]!r}")
    reason = next((said for said in _texts(answer) if DENIED in said), "")
    return Answer(text, reason if answer == dialect.denial(EVENT, reason) else "")


def _texts(tree: object) -> list[str]:
    """Return all texts in a JSON value."""
    if isinstance(tree, (dict, list)):
        return [text for one in (tree.values() if isinstance(tree, dict) else tree) for text in _texts(one)]
    if isinstance(tree, str):
        return [tree]
    return []
