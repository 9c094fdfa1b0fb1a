"""Proof of enforcement: a lock in a store made for the purpose, asked about by hooks, held by the kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from swarm_hook_core import settings
from swarm_hook_core.config import Dialect
from swarm_hook_core.environment import first_set
from swarm_hook_core.kernel import namespace
from swarm_mcp.doctor import last_fault
from swarm_mcp.runtimes import NAMES, hook_config, user_settings
from swarm_mcp.runtimes.base import Finding, Runtime
from swarm_mcp.runtimes.installed import HookCommand, Installed
from swarm_mcp.store import Store
from swarm_mcp.store.refusals import Attempt
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
            # Noted in advance, for any tool: the process that a hook starts to note a denial would outlive this folder.
            store.denials.report(canary, str(locked), peer.id, Attempt(tool=""))

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
            found.append(answer._replace(trouble=answer.trouble or complaint or last_fault(self.root / "state")))
        return found

    def wrong(self, answers: list[Answer]) -> str:
        """Return the faults of the `answers` to the questions, in words, or an empty text."""
        for question, answer in zip(self.questions, answers):
            if question.denied and DENIED not in answer.reason:
                return f"{question.what} was not denied: {answer.trouble or answer.printed[:120] or 'it was let pass'}"
            if answer.printed and not question.denied:
                return f"{question.what} was not let through: {answer.trouble or answer.printed[:120]}"
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


# Checks of the kernel's hold on locked files during unreadable commands, for `doctor` and `install --kernel`.

NAME = "kernel"
SWITCH = "swarm-mcp install --kernel"


class Ability(NamedTuple):
    """The kernel's ability for this user: `how` it holds files, or `why` it cannot, and the `mend`."""

    how: str
    why: str = ""
    mend: str = ""

    def said(self) -> str:
        """Return it as part of a line."""
        if not self.why:
            return f"works {self.how}"
        return f"does not work here: {self.why}" + (f"; mend: {self.mend}" if self.mend else "")


def ability() -> Ability:
    """Try it anew (some 30 ms), and return the result."""
    why = namespace.again()
    if why:
        return Ability("", why, namespace.mend(why))
    if sys.platform == "darwin":
        return Ability(f"as far as can be told, unverified: {namespace.UNVERIFIED}")
    return Ability("as root" if os.geteuid() == 0 else "in a user namespace")


def is_on() -> dict[str, bool]:
    """Return runtime -> True if it is switched on in this folder."""
    folder = user_settings.checkout_here()
    return {name: settings.kernel(hook_config(name).env_prefix, folder) for name in NAMES}


def overridden(wanted: bool) -> str:
    """Return the source of a setting that overrides the user's own, in a few words, or an empty text."""
    folder = user_settings.checkout_here()
    if settings.kernel("", folder) == wanted:
        return ""
    if first_set("SWARM_KERNEL"):
        return "SWARM_KERNEL"
    return user_settings.whose(settings.in_file(NAME, folder))


def finding(clients: Sequence[Runtime]) -> Finding:
    """Return the finding: is it on, does it work, and for commands of which of these `clients`?"""
    on = is_on()
    if not any(on.values()):
        text = (
            "off, which is the default: changes to locked files by unreadable commands are seen once these have ended"
        )
        return Finding(NAME, "info", text, SWITCH, {"on": []})
    found = ability()
    details: dict[str, Any] = {"on": [name for name, is_it in on.items() if is_it], "why": found.why or None}
    if found.why:
        return Finding(NAME, "warn", f"on, and {found._replace(mend='').said()}", found.mend, details)
    held, others = whose([client for client in clients if on[client.name]])
    text = f"on, and {found.said()}{said_of(held, others)}"
    is_unverified = sys.platform == "darwin"
    details.update(held=held, not_held=others)
    return Finding(NAME, "info" if is_unverified else "ok", text, details=details)


def whose(clients: Sequence[Runtime]) -> tuple[list[str], list[str]]:
    """Return the clients with held commands, and the others, each with its release if that matters."""
    about = [_said_of(client) for client in clients]
    held, others = ([name for is_held, name in about if is_held is wanted] for wanted in (True, False))
    return held, others


def said_of(held: list[str], others: list[str]) -> str:
    """Return the result of `whose` as the end of a line."""
    text = ""
    if held:
        text = f"; held: commands of {', '.join(held)}"
    return text + (f"; not held: those of {', '.join(others)}" if others else "")


def _said_of(client: Runtime) -> tuple[bool, str]:
    """Return True if commands of this client are held, and its name with a remark."""
    config = hook_config(client.name)
    if not config.kernel_versions:
        return bool(config.kernel), client.title
    release, tested = client.release(), ", ".join(config.kernel_versions)
    if release in config.kernel_versions:
        return True, f"{client.title} {release}"
    return False, f"{client.title} {release or 'of an unknown release'} (tested with {tested})"
