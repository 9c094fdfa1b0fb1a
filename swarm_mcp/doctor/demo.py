"""Two sessions in one folder, played through the plugin's real hook processes.

Each session is a process of its own that stands for an agent client: it starts the hook commands of a
freshly written plugin as the client would, with the client's payloads, and writes a file only when
the hook lets it. Everything happens in a temporary folder with a store of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from swarm_mcp.domain.session import Session
from swarm_mcp.installation import coordinator_command
from swarm_mcp.runtimes import NAMES, SHELL_VARIABLES, bundle, runtime
from swarm_mcp.runtimes.installed import ROOT_VARIABLES
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLIENT = """
import json, subprocess, sys
for line in sys.stdin:
    order = json.loads(line)
    done = subprocess.run(["/bin/sh", "-c", order["command"]], input=json.dumps(order["payload"]),
                          capture_output=True, text=True)
    print(json.dumps({"out": done.stdout, "err": done.stderr}), flush=True)
"""


PATTERN, ONE, OTHER = "migrations/**/*.sql", "migrations/0002.sql", "migrations/README.md"
SHELL_TRIES = (
    "for f in *.sql; do sed -i.bak 's/orders/sales/' \"$f\"; done",
    "echo 'drop table orders;' | tee schema.sql",
    "python3 -c \"open('schema.sql', 'w').write('')\"",
    "cd .. && mv shop/schema.sql shop/old.sql",
)


class PlayedSession:
    """One agent session: its client process and the hooks that process runs."""

    def __init__(self, name: str, session_id: str, folder: Path, plugin: Path, environment: dict[str, Any]):
        self.runtime, self.session_id, self.folder = name, session_id, folder
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

    def _ask(self, payload: dict[str, Any]) -> str:
        """Why the check refuses the call in `payload`; empty where it may go ahead."""
        return str(self._hook(payload).get("permissionDecisionReason", ""))

    def _hook(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Run the hook of the payload's event. Returns its answer to the client, or an empty dict."""
        order = {"command": self._commands[payload["hook_event_name"]], "payload": payload}
        self._orders.write(json.dumps(order) + "\n")
        self._orders.flush()
        answer = json.loads(self._answers.readline())
        if answer["out"].strip():
            return dict(json.loads(answer["out"])["hookSpecificOutput"])
        return {}

    def write(self, name: str, text: str) -> str:
        """Write a file as this session's tool would; why it was refused, empty where it was written."""
        path = self.folder / name
        reason = self._ask(runtime(self.runtime).write_payload(self.session_id, str(self.folder), str(path)))
        if not reason:
            path.write_text(text, encoding="utf-8")
        return reason

    def shell(self, command: str) -> str:
        """Run a command as this session's shell tool would; why it was refused, empty where it ran."""
        reason = self._ask(runtime(self.runtime).shell_payload(self.session_id, str(self.folder), command))
        if not reason:
            subprocess.run(["/bin/sh", "-c", command], cwd=self.folder, check=True)
        return reason

    def row(self, store: Store) -> Session:
        """This session as the store knows it."""
        found = store.instances.of_session(self.runtime, self.session_id)
        assert found, f"{self.runtime} has not been registered"
        return found

    def kill(self) -> None:
        """End the client as a crash would, with no hook left to run."""
        self._client.kill()
        self._client.wait()
        for pipe in (self._orders, self._answers):
            pipe.close()


def play(say: Callable[[str], None], note: Callable[[str], None]) -> bool:
    """Play the scene and tell it through `say(line)`. Returns True if every step went as it must.

    `note(doing)` announces a step that takes a moment.
    """
    note("writing the plugin")
    with tempfile.TemporaryDirectory(prefix="swarm-demo-") as name:
        root = Path(name).resolve()
        folder, plugin = root / "shop", root / "plugin"
        (folder / ".git").mkdir(parents=True)  # a scope of its own, even where temporary files lie in a repository
        (folder / "schema.sql").write_text("create table orders (id integer);\n", encoding="utf-8")
        bundle.write(plugin, local=True)
        database = root / "store" / "swarm.db"
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("SWARM_", "HERDR_"))}
        environment.update(SWARM_DB_PATH=str(database), SWARM_STATE_DIR=str(root / "state"))
        environment.pop("AGENT_IDENTITY", None)
        first = PlayedSession(NAMES[0], "5f0c2f6e-2f53-4b52-9a43-3b5f4f6c1d10", folder, plugin, environment)
        second = PlayedSession(NAMES[1], "9b41d7e2-270c-4251-afea-bde51fc291c9", folder, plugin, environment)
        try:
            return _scene(say, note, root, first, second, database)
        finally:
            first.kill()
            second.kill()


def _scene(
    say: Callable[[str], None],
    note: Callable[[str], None],
    root: Path,
    first: PlayedSession,
    second: PlayedSession,
    database: Path,
) -> bool:
    ok = True

    def short(text: str) -> str:
        return text.replace(f"{root}{os.sep}", "")

    def check(what: str, fine: bool) -> None:
        nonlocal ok
        ok = ok and fine
        say(f"   {'ok ' if fine else 'NOT'} {what}")

    say("Two sessions start in one folder (shop/), as their clients' hooks see it:")
    for session in (first, second):
        note(f"{session.runtime}: its hook registers the session")
        context = session.start()
        say(f"   {session.runtime}: {short(context.splitlines()[0]) if context else 'NOT REGISTERED'}")
        ok = ok and "registered as" in context
    say("\nThe Claude Code session locks schema.sql, giving a reason:")
    with Store(str(database)) as store:
        holder = first.row(store)
        store.locks.acquire(holder, "schema.sql", "renumbering migrations")
    before = (second.folder / "schema.sql").read_bytes()
    say('   $ swarm-mcp lock schema.sql --note "renumbering migrations"')
    say("\nThe Codex session tries to patch it. Its PreToolUse hook answers:")
    note("codex: its hook checks the write")
    begun = time.monotonic()
    reason = second.write("schema.sql", "drop table orders;\n")
    took = (time.monotonic() - begun) * 1000
    say(f"   {short(reason) or 'nothing'}")
    untouched = (second.folder / "schema.sql").read_bytes() == before
    check(f"denied in {took:.0f} ms, file untouched", bool(reason) and untouched)
    say(f"\nIt tries the shell:\n   $ {SHELL_TRIES[0]}")
    note("codex: its hook reads the commands")
    refused = [second.shell(command) for command in SHELL_TRIES]
    say(f"   {short(refused[0]).partition(': held by')[0] or 'nothing'} ...")
    untouched = (second.folder / "schema.sql").read_bytes() == before
    check(f"that, and {len(SHELL_TRIES) - 1} other ways, denied; file untouched", all(refused) and untouched)
    check("reading it is free", second.shell("grep -c 'orders' schema.sql >/dev/null") == "")
    check("another file is written as if swarm were not there", second.write("notes.md", "hello\n") == "")
    check("the holder itself writes freely", first.write("schema.sql", "create table sales (id integer);\n") == "")
    say("\nIt locks a pattern, and the Codex session waits in line for one file of it:")
    say(f"   $ swarm-mcp lock '{PATTERN}'\n   $ swarm-mcp lock {ONE} --wait 20")
    note("codex: waiting in line")
    denied, other, woken = _wait_in_line(first, second, database)
    check(f"{ONE}, which does not exist yet, is denied; {OTHER} is not", denied and other)
    writes = woken < 20 and second.write(ONE, "-- 2\n") == ""
    check(f"released, it has its lock {woken * 1000:.0f} ms later, and writes", writes)
    say("\nThe Claude Code session is killed with the lock on schema.sql still held:")
    first.kill()
    check("its lock is gone with it: the next write passes", second.write("schema.sql", "-- mine now\n") == "")
    return ok


def _wait_in_line(first: PlayedSession, second: PlayedSession, database: Path) -> tuple[bool, bool, float]:
    """Let `second` wait for a file of the pattern that `first` locks.

    Returns three values: `second` was kept from that file; it was let at another file; and the seconds between the
    release and the lock of a waiting command, infinite if it never came.
    """
    (first.folder / "migrations").mkdir()
    with Store(str(database)) as store:
        holder, waiter = first.row(store), second.row(store)
        store.locks.acquire_all(holder, request(holder, [PATTERN], as_pattern=True, note="renumbering"))
        denied, other = bool(second.write(ONE, "-- 2\n")), second.write(OTHER, "hello\n") == ""
        # The demo may run in an agent's shell, and such a shell could not act as one of these sessions.
        environment = {name: value for name, value in os.environ.items() if name not in SHELL_VARIABLES}
        environment["SWARM_DB_PATH"] = str(database)
        argv = [*coordinator_command(), "lock", ONE, "--wait", "20", "--as", waiter.id]
        waiting = subprocess.Popen(argv, cwd=second.folder, env=environment, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while not store.queue.waiting() and time.monotonic() < end:
            time.sleep(0.01)
        store.locks.release(holder, PATTERN)
        begun = time.monotonic()
        has_it = waiting.wait(30) == 0
        return denied, other, time.monotonic() - begun if has_it else float("inf")
