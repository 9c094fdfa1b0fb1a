"""`swarm-mcp watch`: a line for each event as it happens, for people and for machines, and a clean end."""

import json
import os
import pty
import select
import signal
import subprocess
import time

import pytest
from support.fixtures import SWARM, Ground

from swarm_mcp.errors import LockRefused
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

FIELDS = ["id", "at", "change", "type", "actor", "actor_label", "subject", "payload"]


class Watching:
    """A running ``watch``."""

    def __init__(self, ground: Ground, *words: str, **options):
        options.setdefault("stdout", subprocess.PIPE)
        self.process = subprocess.Popen(
            [*SWARM, "watch", *words], cwd=ground.repo, stderr=subprocess.PIPE, text=True, **options
        )
        self._received = b""

    def __enter__(self) -> "Watching":
        return self

    def __exit__(self, *_exception) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def line(self, seconds: float = 10) -> str:
        """Return the next line; fail if none comes in time."""
        while b"\n" not in self._received:
            assert not self.silent_for(seconds), "nothing was printed"
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, self.process.communicate()[1]
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        return line.decode()

    def silent_for(self, seconds: float) -> bool:
        return not self._received and not select.select([self.process.stdout], [], [], seconds)[0]

    def ended(self, seconds: float = 5) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, err


@pytest.fixture
def peer(ground: Ground) -> dict:
    return ground.session("peer", "identity:p peer")


def watching_for(ground: Ground, peer: dict, *words: str, **options) -> Watching:
    """A watch that has begun: it has told of one lock."""
    watching = Watching(ground, *words, **options)
    end = time.monotonic() + 60
    with ground.store() as store:
        while time.monotonic() < end:
            store.locks.acquire(peer, "begin")
            if select.select([watching.process.stdout], [], [], 0.2)[0]:
                store.kv.put(peer, "the last", "of the beginning")
                while "of the beginning" not in watching.line():
                    pass
                return watching
    raise AssertionError(watching.process.stderr.read() if watching.process.poll() is not None else "it never began")


def told(ground: Ground, since: str) -> list[dict]:
    """Return the events that a watch prints at once, from the time after event `since`."""
    done = ground.swarm("watch", "--since", since, "--timeout", "0", "--json")
    return [json.loads(line) for line in done.out.splitlines()]


def test_events_come_as_they_happen(ground: Ground, peer: dict):
    with watching_for(ground, peer, "--json") as watching, ground.store() as store:
        store.locks.acquire(peer, "f", "busy")
        event = json.loads(watching.line())
        assert list(event) == FIELDS
        assert {name: event[name] for name in ("change", "type", "actor", "actor_label", "subject")} == {
            "change": "lock_updates", "type": "context.lock_acquired", "actor": peer["id"],
            "actor_label": "identity:p peer", "subject": f"{ground.scope}/f",
        }  # fmt: skip
        assert event["payload"]["content"] == "busy" and abs(event["at"] - time.time()) < 10
        store.locks.acquire(peer, "g")
        assert json.loads(watching.line())["subject"] == f"{ground.scope}/g", "and nothing else between"


def test_one_line_for_each_kind_of_event(ground: Ground, peer: dict):
    with watching_for(ground, peer) as watching, ground.store() as store:
        me = ground.session("me", "identity:p me")
        who, other = f"peer {peer['id'][:8]}", f"me {me['id'][:8]}"
        assert watching.line().endswith(f"joined    {other}")
        store.locks.acquire(peer, "f", "two\nlines\x1b[31m")
        assert watching.line().endswith(f"locked    f by {who}: two\\nlines\\e[31m")
        with pytest.raises(LockRefused):
            store.locks.acquire(me, "f")
        assert f"refused   f to {other}, by lock_file: held by {who}" in watching.line()
        store.locks.release(peer, "f")
        assert watching.line().endswith(f"released  f by {who}")
        assert "message   system → " in watching.line()
        store.messages.send(peer, me["id"], "hello\nthere")
        assert watching.line().endswith(f"message   {who} → {other}: hello there")
        task = store.tasks.request(peer, {"type": "fix", "title": "Mend it"})["task"]["id"]
        assert watching.line().endswith(f"task      {task[:8]} created by {who}: Mend it, open")
        store.tasks.claim(me, task, True)
        assert watching.line().endswith(f"task      {task[:8]} claimed by {other}: in_progress")
        store.kv.put(peer, "k", "v")
        assert watching.line().endswith(f"kv        set k by {who}: v")
        store.instances.remove(me["id"])
        while not watching.line().endswith(f"left      {other}"):
            pass


def test_it_ends_when_its_time_is_over(ground: Ground, peer: dict):
    begun = time.monotonic()
    done = ground.swarm("watch", "--timeout", "0.5")
    assert time.monotonic() - begun >= 0.5
    assert done == (0, "", "")


def test_it_begins_where_it_is_told_to(ground: Ground, peer: dict):
    ground.lock(peer, "f")
    ground.lock(peer, "g")
    known = told(ground, "0")
    assert [event["type"] for event in known] == ["instance.registered", *["context.lock_acquired"] * 2]
    assert [event["id"] for event in known] == sorted(event["id"] for event in known)
    assert told(ground, str(known[1]["id"])) == known[2:]


def test_more_than_one_portion_is_told_in_order(ground: Ground, peer: dict):
    ground.sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)"
        " INSERT INTO events (scope, type, actor, subject) SELECT ?, 'kv.set', ?, 'k' || i FROM n",
        ground.scope, peer["id"],
    )  # fmt: skip
    assert [event["subject"] for event in told(ground, "1")] == [f"k{number}" for number in range(1, 1201)]


@pytest.mark.usefixtures("usual_signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(ground: Ground, peer: dict, number: signal.Signals):
    with watching_for(ground, peer) as watching:
        watching.process.send_signal(number)
        code, _out, err = watching.ended()
        assert (code, err) == (0, "")


def test_a_reader_that_leaves_ends_it(ground: Ground, peer: dict):
    with watching_for(ground, peer) as watching:
        watching.process.stdout.close()
        assert watching.process.wait(60) == 0, "also while there is nothing to write"
        assert watching.process.stderr.read() == ""


def test_a_reader_that_leaves_in_the_middle_ends_it(ground: Ground, peer: dict):
    ground.lock(peer, "f")
    done = subprocess.run(
        ["sh", "-c", '"$@" | head -1', "sh", *SWARM, "watch", "--since", "0"],
        cwd=ground.repo, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")


def test_strangers_are_not_named(ground: Ground, peer: dict, store: Store):
    stranger = ground.session("stranger", "identity:q secret-name")
    other = ground.session("other", "identity:q secret-other")
    store.locks.acquire(stranger, "f", "secret-note")
    store.messages.send(stranger, other["id"], "secret-mail")
    task = store.tasks.request(stranger, {"type": "fix", "title": "secret-title"})["task"]["id"]
    store.tasks.claim(stranger, task)
    store.kv.put(stranger, "secret-key", "secret-value")
    with pytest.raises(LockRefused):
        store.locks.acquire(peer, "f")
    store.instances.remove(other["id"])
    for more in ((), ("--json",)):
        out = ground.swarm("watch", "--since", "0", "--timeout", "0", "--as", peer["id"], *more).out
        assert "secret" not in out
        assert "/f" in out if more else "  f " in out, "that a file is held is never hidden"
    lines = ground.swarm("watch", "--since", "0", "--timeout", "0", "--as", peer["id"]).out.splitlines()
    assert any(line.endswith("locked    f by another identity") for line in lines)
    refused = f"refused   f to peer {peer['id'][:8]}, by lock_file: held by a session of another identity"
    assert any(line.endswith(refused) for line in lines)
    everything = ground.swarm("watch", "--since", "0", "--timeout", "0", "--as", stranger["id"]).out
    assert "secret-mail" in everything and "secret-value" in everything


def test_wrong_words_are_refused(ground: Ground):
    for words in (("--timeout", "soon"), ("--since", "yesterday"), ("word",)):
        done = ground.swarm("watch", *words)
        assert done.code == 2 and done.err.count("\n") == 1 and done.out == ""


def test_it_writes_to_a_terminal(ground: Ground, peer: dict):
    ours, theirs = pty.openpty()
    with Watching(ground, "--since", "0", stdout=theirs) as watching:
        os.close(theirs)
        shown = b""
        while b"waiting" not in shown:
            assert select.select([ours], [], [], 10)[0], shown
            shown += os.read(ours, 4096)
        assert b"watching" in shown and b"TIME" in shown and b"joined" in shown
        os.close(ours)
        assert watching.process.wait(60) == 0
