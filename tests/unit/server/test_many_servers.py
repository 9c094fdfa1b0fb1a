"""Many servers on one store: of twenty sessions at once, and those that one process has started."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import sessions
from support.fixtures import BARE_PYTHON, SWARM, Ground
from support.serving import Server
from support.toolbox import Hands

from swarm_hook_core.lookup import glance
from swarm_hook_core.process import start_time
from swarm_hook_core.registration import DEADLINE_SECONDS
from swarm_mcp.server.app import Heartbeat

pytestmark = pytest.mark.slow


SERVERS = 20
ROUNDS = 3
SECONDS = 90  # for an answer: twenty servers start at once
FILES = 5
CHECK_SECONDS = glance.SECONDS + DEADLINE_SECONDS  # longest wait of a check for the store, and for the coordinator
ME = (os.getpid(), start_time(os.getpid()))
# A client for each server: the process above a server tells the session of its calls.
CLIENT = [*BARE_PYTHON, "-c", "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"]


class Ledger:
    """A record of all sessions' actions, from many threads, and of the sessions at work on each file now."""

    def __init__(self, folder: Path):
        self.sent: list[str] = []
        self.received: list[str] = []
        self.appended: list[str] = []
        self.claimed: list[str] = []
        self.conflicts = 0
        self.broken: list[str] = []
        self.over = threading.Event()
        self._folder = folder
        folder.mkdir()

    def work_on(self, file: str) -> None:
        """Hold `file` for a moment, as its owner. Note any other session that holds it as well."""
        try:
            (self._folder / file).touch(exist_ok=False)
        except FileExistsError:
            self.broken.append(f"{file} was held by two")
            return
        time.sleep(0.01)
        (self._folder / file).unlink()


class Session:
    """One session with its server, doing a bit of everything."""

    def __init__(self, ground: Ground, number: int, ledger: Ledger):
        self.ground, self.number, self.ledger = ground, number, ledger
        self.server = Server(ground, [*CLIENT, *SWARM, "serve"])
        self.peer = ""

    def value(self, tool: str, **arguments):
        result = self.server.ask("tools/call", {"name": tool, "arguments": arguments}, SECONDS)
        if result.get("isError") or "error" in result:
            self.ledger.broken.append(f"{tool}: {json.dumps(result)[:300]}")
        value = result.get("structuredContent")
        return value if value is not None else result["content"][0]["text"]

    def join(self) -> str:
        """Its instance id."""
        return self.value("register", directory=self.ground.scope, label=f"session {self.number}")["id"]

    def day(self) -> None:
        for turn in range(ROUNDS):
            file, mark = f"f{(self.number + turn) % FILES}", f"{self.number}.{turn}"
            if self.value("lock_file", file=file).get("ok"):
                self.ledger.work_on(file)
                self.value("unlock_file", file=file)
            else:
                self.ledger.conflicts += 1
            self.value("kv_append", key="shared", value=json.dumps(mark))
            self.ledger.appended.append(mark)
            if "sent to" in self.value("send_message", recipient=self.peer, content=mark):
                self.ledger.sent.append(mark)
            self.poll()
            self.value("request_task", type="other", title=f"task {mark}")
            got = self.value("claim_next_task")
            if got.get("task_id"):
                self.ledger.claimed.append(got["task_id"])

    def poll(self) -> None:
        # The system's notices about free files are not counted here.
        mail = self.value("poll_messages")["items"]
        self.ledger.received += [item["content"] for item in mail if item["sender"] != "system"]


def commands(ground: Ground, name: str, recipients: list[str], ledger: Ledger) -> int:
    """CLI calls as a session of its own until the servers are done; how many there were.

    It is a session of the same client as those with hooks: a variable tells its shell which.
    """
    me = ground.session(name, name, client=ME)["id"]
    shell = {**os.environ, "CLAUDE_CODE_SESSION_ID": name}
    count = 0

    def run(*words: str) -> subprocess.CompletedProcess:
        nonlocal count
        count += 1
        return subprocess.run(
            [*SWARM, *words, "--as", me], cwd=ground.repo, env=shell, capture_output=True, text=True, timeout=60
        )

    while not ledger.over.is_set() or count < 10:
        mark, file = f"{name}.{count}", f"f{count % FILES}"
        done = run("lock", file, "--json")
        if done.returncode == 0:
            ledger.work_on(file)
            done = run("unlock", file)
        elif "error" in json.loads(done.stdout):
            ledger.conflicts += 1
            done = run("locks", "--json")
        others = [
            run("kv", "append", "shared", json.dumps(mark)),
            run("send", "--to", recipients[count % len(recipients)], mark),
        ]
        ledger.appended.append(mark)
        ledger.sent.append(mark)
        ledger.broken += [f"{each.args[-4:]}: {each.stderr}" for each in (done, *others) if each.returncode]
    return count


def hooks(ground: Ground, runtime: str, ledger: Ledger) -> int:
    """A client's hooks around one session until the servers are done; how many checks there were."""
    session, count = sessions.new_session(), 0
    assert "swarm" in sessions.start(runtime, session, ground.repo).out.lower()
    while not ledger.over.is_set() or count < 5:
        count += 1
        turn = sessions.run(
            runtime, "turn", {**sessions.captured(runtime, "UserPromptSubmit", ground.repo), "session_id": session}
        )
        begun = time.monotonic()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        bare = time.monotonic() - begun
        denied = sessions.write(runtime, session, ground.repo, ground.repo / "theirs")
        passed = sessions.write(runtime, session, ground.repo, ground.repo / f"nobodys.{runtime}")
        if not denied.reason or passed.out or turn.code:
            ledger.broken.append(f"{runtime}: {denied} {passed} {turn}")
        for check in (denied, passed):
            if check.took > CHECK_SECONDS + 8 * bare + 0.5:
                ledger.broken.append(f"{runtime}: a check took {check.took:.2f} s, and bare python {bare:.2f} s")
    return count


@pytest.mark.thorough
@pytest.mark.alone("twenty servers leave the one checker of the tests no time")
def test_twenty_servers_commands_and_hooks(ground: Ground, monkeypatch):
    monkeypatch.chdir(ground.repo)
    ground.lock(ground.session("holder", "holder", client=(0, "")), "theirs")
    with Server(ground) as first:  # so that the others start as they do on every day but the first
        first.ask("tools/list")
    ledger = Ledger(ground.folder / "at work")
    with ThreadPoolExecutor(SERVERS + 4) as pool:
        made = [pool.submit(Session, ground, number, ledger) for number in range(SERVERS)]
        members = [session.result() for session in made]
        ids = list(pool.map(Session.join, members))
        assert len(set(ids)) == SERVERS, "each is a session of its own"
        for number, session in enumerate(members):
            session.peer = ids[(number + 1) % SERVERS]
        beside = [pool.submit(commands, ground, name, ids, ledger) for name in ("person", "script")]
        beside += [pool.submit(hooks, ground, runtime, ledger) for runtime in sessions.RUNTIMES]
        days = [pool.submit(session.day) for session in members]
        try:
            for day in days:
                day.result(SECONDS)
        finally:
            ledger.over.set()
        counts = [each.result(SECONDS) for each in beside]
        list(pool.map(Session.poll, members))
        assert ledger.broken == []
        assert Counter(ledger.received) == Counter(ledger.sent), "no message lost, none doubled"
        assert len(ledger.sent) > SERVERS * ROUNDS
        shared = json.loads(ground.sql("SELECT value FROM kv WHERE key = 'shared'")[0]["value"])
        assert Counter(shared) == Counter(ledger.appended)
        assert ledger.claimed and len(set(ledger.claimed)) == len(ledger.claimed), "no task claimed twice"
        assert ledger.conflicts, "the files were in dispute, or nothing has been shown"
        # Commands that a busy machine starts too late are given up, and recorded as faults; checks are not.
        assert all(counts) and not [line for line in sessions.fault_lines() if line["hook"] == "pre_tool_use"]
        for session in members:
            session.server.close_input()
        assert [session.server.ended_within(60) for session in members] == [0] * SERVERS
        assert b"".join(session.server.process.stderr.read() for session in members) == b""
        for session in members:
            session.server.__exit__()
    left = ground.sql("SELECT file FROM context WHERE type = 'lock'")
    assert left == [{"file": f"{ground.scope}/theirs"}] and ground.integrity() == "ok"


NOT_REGISTERED = "Not registered. Call register first."


def join(ground: Ground, server: Server, label: str) -> str:
    """The instance id of a server's connection that registers under `label`."""
    return server.value("register", {"directory": ground.scope, "label": label})["id"]


def kill(server: Server) -> None:
    server.process.kill()
    server.process.wait()


def holders(ground: Ground) -> list[str]:
    rows = ground.sql("SELECT instance_id FROM context WHERE type = 'lock' ORDER BY rowid")
    return [row["instance_id"] for row in rows]


@pytest.mark.thorough
def test_two_agents_of_one_program(ground: Ground):
    with Server(ground) as first, Server(ground) as second:
        one = join(ground, first, "agentA")
        assert second.text("whoami") == NOT_REGISTERED
        two = join(ground, second, "agentB")
        assert one != two
        assert first.value("lock_file", {"file": "f"})["ok"] is True
        assert second.value("lock_file", {"file": "f"})["active"]["instance_id"] == one
        assert second.value("lock_file", {"file": "g"})["ok"] is True
        second.call("unlock_file", {"file": "f"})
        assert holders(ground) == [one, two]
        first.close_input()
        assert first.ended_within(60) == 0
        assert second.value("whoami")["id"] == two and holders(ground) == [two]
        kill(second)
    assert holders(ground) == [two], "the client lives"


@pytest.mark.thorough
def test_a_server_that_is_started_again_goes_on_with_what_its_own_label_names(ground: Ground):
    with Server(ground) as first, Server(ground) as second, Server(ground) as beside:
        ids = [join(ground, first, "agentA"), join(ground, second, "agentB")]
        assert first.value("lock_file", {"file": "f"})["ok"] is True
        kill(first)
        kill(second)
        assert beside.text("whoami") == NOT_REGISTERED
        with Server(ground) as again, Server(ground) as another:
            assert again.text("whoami") == NOT_REGISTERED, "it might be either"
            assert join(ground, another, "agentC") not in ids
            assert another.value("lock_file", {"file": "f"})["active"]["instance_id"] == ids[0]
            assert join(ground, again, "agentA") == ids[0]
            assert "Unlocked" in again.text("unlock_file", {"file": "f"})
            again.close_input()
            assert again.ended_within(60) == 0
        assert ground.sql("SELECT 1 FROM instances WHERE id = ?", ids[0]) == [], "it was its own to take along"


@pytest.mark.thorough
def test_a_server_beside_the_one_that_was_killed_does_not_take_its_place(ground: Ground):
    with Server(ground) as beside:
        assert beside.text("whoami") == NOT_REGISTERED
        with Server(ground) as killed:
            one = join(ground, killed, "agentA")
            assert killed.value("lock_file", {"file": "f"})["ok"] is True
            kill(killed)
        ground.sql("UPDATE swarm_sessions SET last_seen = last_seen + 1")  # signs of life are known to the second
        assert beside.text("whoami") == NOT_REGISTERED
        assert join(ground, beside, "agentB") != one
        assert beside.value("lock_file", {"file": "f"})["active"]["instance_id"] == one


@pytest.mark.thorough
def test_what_a_server_inherits_is_kept_until_it_is_called(ground: Ground):
    with Server(ground) as killed:
        one = join(ground, killed, "agent")
        assert killed.value("lock_file", {"file": "f", "ttl_seconds": 60})["ok"] is True
        kill(killed)
    next_one = Hands(ground, client=ME)
    ground.sql("UPDATE context SET renewed = renewed - 50, wall_until = wall_until - 50")
    (before,) = ground.sql("SELECT renewed FROM context")
    (seen,) = ground.sql("UPDATE swarm_sessions SET last_seen = last_seen - 5 RETURNING last_seen")
    Heartbeat(next_one.session).beat()
    (after,) = ground.sql("SELECT renewed FROM context")
    assert after["renewed"] > before["renewed"] + 49
    assert ground.sql("SELECT last_seen FROM swarm_sessions") == [seen]
    assert next_one.value("whoami")["id"] == one and holders(ground) == [one]


def test_of_two_that_would_go_on_with_it_one_does(ground: Ground):
    with Server(ground) as killed:
        one = join(ground, killed, "agent")
        kill(killed)
    hands = [Hands(ground, client=ME), Hands(ground, client=ME)]
    found = [one_of.value("register", directory=ground.scope, label="agent")["id"] for one_of in hands]
    assert found.count(one) == 1


def test_an_instance_that_was_reserved_is_one_servers(ground: Ground, monkeypatch):
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", "reserved")
    with Server(ground) as first, Server(ground) as second:
        assert first.value("whoami")["id"] == "reserved"
        assert second.text("whoami") == NOT_REGISTERED
        assert join(ground, second, "other") != "reserved"
        kill(first)
        kill(second)
    with Server(ground) as again:
        assert again.value("whoami")["id"] == "reserved"


def test_only_its_own_leases_are_kept_by_a_server(ground: Ground):
    mine, theirs = Hands(ground, client=ME), Hands(ground, client=ME)
    for name, hands in (("a", mine), ("b", theirs)):
        row = hands.value("register", directory=ground.scope, label=name)
        with ground.store() as store:
            assert hands.session.vouched(store) == [row["id"]]


@pytest.mark.sampled
@pytest.mark.parametrize("when", ["before", "after"])
def test_hooks_of_the_client_make_it_one_session(ground: Ground, when: str):
    with Server(ground) as first, Server(ground) as second:
        if when == "after":
            one = join(ground, first, "agent")
            assert first.value("lock_file", {"file": "f"})["ok"] is True
        session = ground.session("s", "hooked", client=ME)
        assert when == "before" or session["id"] == one
        for server in (first, second):
            assert server.value("whoami")["id"] == session["id"]
            assert server.value("lock_file", {"file": "f"})["ok"] is True
        assert holders(ground) == [session["id"]]


def test_a_command_that_holds_is_no_session_of_a_server_that_it_runs(ground: Ground):
    ground.lock(ground.session("h", "origin:hold", runtime="hold", client=ME, lease_seconds=0), "f")
    with Server(ground) as server:
        assert server.text("whoami") == NOT_REGISTERED
