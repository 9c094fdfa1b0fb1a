"""The demo: three scenes, played through the plugin's real hook processes.

Two processes stand for agent clients (`played_session`). Everything happens in a temporary folder with a repository,
settings and a store of its own, so that the person's settings, git identity and clients do not matter.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from swarm_mcp.domain import Session
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes import SHELL_VARIABLES, bundle, runtime
from swarm_mcp.runtimes.installed import ROOT_VARIABLES
from swarm_mcp.store import Store

# The scenes of the demo: your uncommitted lines, another agent's, and a lock.

SCHEMA, IMPORTER = "schema.sql", "importer.py"
TABLE = "create table orders (id integer);\n"
YOURS = """\
alter table orders add column total numeric;
alter table orders add column paid_at timestamp;
create index orders_total on orders (total);
create index orders_paid_at on orders (paid_at);
"""
EMPTY = "def parse(line):\n    return line\n"
THEIRS = '    return line.strip().split(";")\n'
SWEEP = "git checkout ."
OTHER_SWEEPS = ("git stash", "git reset --hard", "git restore .", f"rm {SCHEMA}")
NOTE = "renumbering migrations"
SHELL_WRITES = (
    "for f in *.sql; do sed -i.bak 's/orders/sales/' \"$f\"; done",
    f"echo 'drop table orders;' | tee {SCHEMA}",
    f"python3 -c \"open('{SCHEMA}', 'w').write('')\"",
    f"cd .. && mv shop/{SCHEMA} shop/old.sql",
)
WAIT = 60  # seconds


def lay_out(stage: Stage) -> None:
    """Make the folder with its two files."""
    stage.folder.mkdir()
    (stage.folder / SCHEMA).write_text(TABLE, encoding="utf-8")
    (stage.folder / IMPORTER).write_text(EMPTY, encoding="utf-8")


def your_work(stage: Stage) -> None:
    """Play one agent beside a person's uncommitted lines."""
    stage.git("init", "--quiet", "--template=")
    stage.git("add", ".")
    stage.git("commit", "--quiet", "--message=begin")
    (stage.folder / SCHEMA).write_text(TABLE + YOURS, encoding="utf-8")
    stage.heading("1. One agent, and your uncommitted lines")
    stage.tell(f"You have added four lines to {SCHEMA}:", SCHEMA)
    stage.shown(YOURS)
    codex = stage.session("codex")
    stage.tell("Codex would like to start over:", "Codex")
    stage.typed(SWEEP)
    stage.refused(lambda: codex.shell(SWEEP), f"{SCHEMA}: 4 lines (2 to 5)")
    stage.check("your four lines are still there", stage.text(SCHEMA) == TABLE + YOURS)
    stage.note("codex: its hook reads other commands")
    refused = all(codex.shell(command) for command in OTHER_SWEEPS)
    stage.check(f"{', '.join(OTHER_SWEEPS)}: refused too", refused)
    stage.check("an edit beside your lines passes", not codex.edit(SCHEMA, "id integer", "id bigint"))


def an_agents_work(stage: Stage) -> None:
    """Play the same beside the uncommitted lines of another agent."""
    stage.git("commit", "--quiet", "--allow-empty", "--all", "--message=orders are paid")
    claude, codex = stage.session("claude-code"), stage.session("codex")
    stage.heading("2. Two agents")
    stage.tell(f"You commit. Then Claude Code changes {IMPORTER}:", "Claude Code")
    is_written = not claude.edit(IMPORTER, "    return line\n", THEIRS)
    changed = stage.text(IMPORTER)
    stage.shown(THEIRS)
    stage.tell("Codex again:", "Codex")
    stage.typed(SWEEP)
    stage.refused(lambda: codex.shell(SWEEP), f"shop/{IMPORTER} (by claude-code 5f0c2f6e")
    stage.check("Claude Code's line is still there", is_written and stage.text(IMPORTER) == changed != EMPTY)
    stage.check(f"writing {IMPORTER} anew without having read it: refused too", bool(codex.shell(f": > {IMPORTER}")))
    own = not claude.shell(f"git checkout {IMPORTER}") and stage.text(IMPORTER) == EMPTY
    stage.check("Claude Code itself may throw its line away", own)


def a_lock(stage: Stage) -> None:
    """Play a lock, its queue, and the end of the client that holds it."""
    claude, codex = stage.session("claude-code"), stage.session("codex")
    before = stage.text(SCHEMA)
    stage.heading("3. A lock, for a file that must not change")
    stage.tell("Claude Code locks it:", "Claude Code")
    stage.typed(f'swarm-mcp lock {SCHEMA} --note "{NOTE}"')
    with Store(str(stage.store)) as store:
        store.locks.acquire(claude.row(store), SCHEMA, NOTE)
    stage.tell("Codex edits it:", "Codex")
    stage.refused(lambda: codex.edit(SCHEMA, "orders (id", "sales (id"), NOTE)
    stage.note("codex: its hook reads the commands")
    refused = all(codex.shell(command) for command in SHELL_WRITES)
    untouched = stage.text(SCHEMA) == before
    stage.check("a loop of sed -i, tee, python3 -c, mv: refused too; file untouched", refused and untouched)
    passes = not codex.shell(f"grep -c orders {SCHEMA}") and not codex.edit(IMPORTER, "line\n", "line.strip()\n")
    stage.check("reading it, and writing another file, pass", passes)
    stage.note("codex: waiting for the lock")
    woken = _wait(stage, claude, codex)
    writes = woken < WAIT and not codex.edit(SCHEMA, "orders (id", "sales (id")
    stage.check(f"Codex waits for it, has the lock {woken * 1000:.0f} ms after its release, and writes", writes)
    codex.kill()
    passes = not claude.edit(SCHEMA, "sales (id", "bills (id")
    stage.check("Codex is killed with the lock: the lock ends, and Claude Code writes", passes)


def _wait(stage: Stage, holder: PlayedSession, waiter: PlayedSession) -> float:
    """Have a command of `waiter` wait for the lock, then release it.

    Returns the seconds from the release to the end of the waiting command; infinite if it got no lock.
    """
    with Store(str(stage.store)) as store:
        argv = [*coordinator_command(), "lock", SCHEMA, "--wait", str(WAIT), "--as", waiter.row(store).id]
        waiting = subprocess.Popen(argv, cwd=stage.folder, env=stage.environment, stdout=subprocess.DEVNULL)
        end = time.monotonic() + WAIT
        while not store.queue.waiting() and time.monotonic() < end:
            time.sleep(0.01)
        store.locks.release(holder.row(store), SCHEMA)
        begun = time.monotonic()
        has_it = waiting.wait(WAIT + 10) == 0
        return time.monotonic() - begun if has_it else float("inf")


# An agent session of the demo: a process that stands for the client, and runs the plugin's real hook commands.
#
# The process starts each hook as the client would, with the client's payload. A file is written, and a command run,
# only if the hook lets it.

CLIENT = """
import json, subprocess, sys
for line in sys.stdin:
    order = json.loads(line)
    done = subprocess.run(["/bin/sh", "-c", order["command"]], input=json.dumps(order["payload"]),
                          capture_output=True, text=True)
    print(json.dumps({"out": done.stdout, "err": done.stderr}), flush=True)
"""


class PlayedSession:
    """One agent session: its client process and the hooks that process runs. `checks`: seconds of each check."""

    def __init__(self, name: str, session_id: str, folder: Path, plugin: Path, environment: dict[str, str]):
        self.runtime, self.session_id, self.folder = name, session_id, folder
        self._environment, self.checks = environment, list[float]()
        tree = json.loads((plugin / f"integrations/{name}/hooks.json").read_text(encoding="utf-8"))
        self._commands = {event: groups[0]["hooks"][0]["command"] for event, groups in tree["hooks"].items()}
        self._client = subprocess.Popen(
            [sys.executable, "-c", CLIENT],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder,
            env={**environment, **dict.fromkeys(ROOT_VARIABLES, str(plugin))},
        )  # fmt: skip
        assert self._client.stdin and self._client.stdout
        self._orders, self._answers = self._client.stdin, self._client.stdout

    def start(self) -> str:
        """Tell the hooks that the session begins. Returns the text for the model."""
        told = {"session_id": self.session_id, "cwd": str(self.folder), "source": "startup"}
        return str(self._hook({**told, "hook_event_name": "SessionStart"}).get("additionalContext", ""))

    def edit(self, name: str, old: str, new: str) -> str:
        """Replace text of a file as the session's tool would. Returns the reason of a refusal, or an empty text."""
        path = self.folder / name
        payload = runtime(self.runtime).write_payload(self.session_id, str(self.folder), str(path))
        if self.runtime == "codex":
            removed, added = (
                "\n".join(sign + line for line in text.splitlines()) for sign, text in (("-", old), ("+", new))
            )
            body = f"*** Begin Patch\n*** Update File: {path}\n@@\n{removed}\n{added}\n*** End Patch\n"
            payload["tool_input"] = {"command": body}
        else:
            payload["tool_name"] = "Edit"
            payload["tool_input"] = {"file_path": str(path), "old_string": old, "new_string": new}
        reason = self._ask(payload)
        if not reason and path.exists():
            path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        return reason

    def shell(self, command: str) -> str:
        """Run a command as the session's shell tool would. Returns the reason of a refusal, or an empty text."""
        reason = self._ask(runtime(self.runtime).shell_payload(self.session_id, str(self.folder), command))
        if not reason:
            argv = ["/bin/sh", "-c", command]
            subprocess.run(argv, cwd=self.folder, env=self._environment, check=False, capture_output=True)
        return reason

    def row(self, store: Store) -> Session:
        """Return this session as the store knows it."""
        found = store.instances.of_session(self.runtime, self.session_id)
        assert found, f"{self.runtime} has not been registered"
        return found

    def kill(self) -> None:
        """End the client as a crash would, without a hook."""
        self._client.kill()
        self._client.wait()
        for pipe in (self._orders, self._answers):
            pipe.close()

    def _ask(self, payload: dict[str, Any]) -> str:
        """Return the check's reason to refuse the call in `payload`. It is empty if the call may go ahead."""
        begun = time.monotonic()
        answer = self._hook(payload)
        self.checks.append(time.monotonic() - begun)
        return str(answer.get("permissionDecisionReason", ""))

    def _hook(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Run the hook of the payload's event. Returns its answer to the client, or an empty dict."""
        order = {"command": self._commands[payload["hook_event_name"]], "payload": payload}
        self._orders.write(json.dumps(order) + "\n")
        self._orders.flush()
        answer = json.loads(self._answers.readline())
        if answer["out"].strip():
            return dict(json.loads(answer["out"])["hookSpecificOutput"])
        return {}


WIDTH = 79  # of a line
# A person's own git settings must not matter. The last four make a commit possible without them.
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "you",
    "GIT_AUTHOR_EMAIL": "you@example.org", "GIT_COMMITTER_NAME": "you", "GIT_COMMITTER_EMAIL": "you@example.org",
}  # fmt: skip
SESSIONS = {  # client -> session id
    "claude-code": "5f0c2f6e-2f53-4b52-9a43-3b5f4f6c1d10",
    "codex": "9b41d7e2-270c-4251-afea-bde51fc291c9",
}
NEXT = (
    "swarm-mcp install   puts the plugin into the clients found here",
    "swarm-mcp doctor    proves it, with --play in the clients themselves",
    "swarm-mcp status    then shows your sessions, their locks and their refusals",
)


class Stage:
    """The folder of the demo, its sessions, and the words to its reader.

    say(line, mark, style)  prints a line; the first `mark` in it is shown in `style`
    note(doing)             announces a step that takes a moment
    """

    def __init__(self, root: Path, say: Callable[[str, str, str], None], note: Callable[[str], None]) -> None:
        self.root, self.note, self.fine = root, note, True
        self.folder = root / "shop"
        self.store = root / "store" / "swarm.db"
        self._say, self._sessions = say, dict[str, PlayedSession]()
        kept = {
            name: value
            for name, value in os.environ.items()
            # The demo may run in a git hook or in an agent's shell: neither must show.
            if name not in SHELL_VARIABLES and not name.startswith(("SWARM_", "HERDR_", "GIT_"))
        }
        kept.pop("AGENT_IDENTITY", None)
        places = {"SWARM_DB_PATH": self.store, "SWARM_STATE_DIR": root / "state", "SWARM_CONFIG_DIR": root / "config"}
        self.environment = {**kept, **GIT, **{name: str(path) for name, path in places.items()}}

    def session(self, name: str) -> PlayedSession:
        """Return the session of the client `name`. Its first use starts it, and its hook registers it."""
        if name not in self._sessions:
            self.note(f"{name}: its hook registers the session")
            started = PlayedSession(name, SESSIONS[name], self.folder, self.root / "plugin", self.environment)
            self._sessions[name] = started
            if "registered as" not in started.start():
                self.check(f"{name}: its hook registers the session", False)
        return self._sessions[name]

    def git(self, *words: str) -> None:
        """Run a git command as the person would. Raises CalledProcessError."""
        argv = ["git", "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false", *words]
        subprocess.run(argv, cwd=self.folder, env=self.environment, check=True, capture_output=True)

    def text(self, name: str) -> str:
        """Return the text of a file of the folder; empty if it is gone."""
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except OSError:  # a call that should have been refused has removed it: a check tells that
            return ""

    def heading(self, text: str) -> None:
        """Begin a scene."""
        self._say("", "", "")
        self._say(text, text, "heading")

    def tell(self, text: str, mark: str = "", style: str = "heading") -> None:
        """Say a sentence of the story."""
        self._say(f"   {text}", mark, style)

    def shown(self, text: str) -> None:
        """Show lines of a file that are not committed."""
        for line in text.splitlines():
            self._say(f"   + {line}", f"+ {line}", "good")
        self._say("", "", "")

    def typed(self, command: str) -> None:
        """Show a command."""
        self._say(f"   $ {command}", command, "heading")

    def refused(self, ask: Callable[[], str], key: str) -> None:
        """Make a call that must be refused. Show the words for the model, with `key` in bold."""
        reason = ask().replace(f"{self.root}{os.sep}", "")
        if not reason:
            self.check("refused", False)
            return
        self._say("   refused; its model reads:", "refused", "fail")
        for line in textwrap.wrap(reason, WIDTH - 5, break_on_hyphens=False, break_long_words=False):
            self._say(f"   | {line}", *((key, "heading") if key in line else ("|", "idle")))

    def check(self, claim: str, fine: bool) -> None:
        """Say whether a claim came true."""
        self.fine = self.fine and fine
        word, style = ("ok ", "ok") if fine else ("NOT", "fail")
        self._say(f"   {word} {claim}", word.strip(), style)

    def tell_time(self) -> None:
        """Say how long the checks took."""
        took = [seconds for session in self._sessions.values() for seconds in session.checks]
        self._say("", "", "")
        self._say(
            f"{len(took)} calls were checked, in {median(took) * 1000:.0f} ms each (median, on this machine).", "", ""
        )

    def close(self) -> None:
        """End all sessions."""
        for session in self._sessions.values():
            session.kill()


def play(say: Callable[[str, str, str], None], note: Callable[[str], None]) -> bool:
    """Play the scenes; `say` and `note` as for Stage. Returns True if every step went as it must."""
    title = "Three scenes, played through the plugin's real hooks in a folder of their own."
    say(title, "", "")
    note("writing the plugin")
    with tempfile.TemporaryDirectory(prefix="swarm-demo-", ignore_cleanup_errors=True) as name:
        stage = Stage(Path(name).resolve(), say, note)
        lay_out(stage)
        bundle.write(stage.root / "plugin", local=True)
        try:
            if shutil.which("git"):
                your_work(stage)
                an_agents_work(stage)
            else:
                stage.tell("git is not on PATH: the two scenes of uncommitted work are left out.")
            a_lock(stage)
            stage.tell_time()
        finally:
            stage.close()
    return stage.fine
