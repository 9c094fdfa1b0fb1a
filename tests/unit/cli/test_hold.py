"""``swarm-mcp hold``: a command that runs while locks are held."""

import os
import signal
import subprocess
import sys

import pytest
from support.fixtures import FOLDERS, SWARM, Ground, wait_for

from swarm_hook_core import lookup
from swarm_hook_core.process import host_id, start_time
from swarm_mcp.cli.commands.hold import Hold
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

# Prints a line at its start, and the signal that ended it.
WAITING = "while :; do sleep 0.05; done"
PATIENT = f"trap 'echo TERM >> said; exit 9' TERM; echo begun >> said; {WAITING}"
STUBBORN = f"trap 'echo TERM >> said' TERM; echo begun >> said; {WAITING}"


@pytest.fixture(autouse=True)
def place(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWARM_DB_PATH", ground.database)


def hold(ground: Ground, *argv: str, **options) -> subprocess.Popen:
    """The command, begun."""
    given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*SWARM, "hold", *argv], cwd=ground.repo, **{**given, **options})


def said(ground: Ground) -> str:
    file = ground.repo / "said"
    return file.read_text() if file.exists() else ""


def begun(ground: Ground) -> None:
    wait_for(lambda: "begun" in said(ground))


def ended(process: subprocess.Popen) -> tuple[int, str]:
    """Exit code and complaint."""
    err = process.communicate(timeout=60)[1]
    return process.returncode, err


def locks(ground: Ground) -> list[dict]:
    return ground.sql("SELECT file, agent, instance_id, mode FROM context WHERE type = 'lock'")


def test_while_it_runs_the_locks_are_held(ground: Ground):
    peer = ground.session("peer")
    script = "echo begun > said; read line; echo $line; exit 7"
    held = hold(ground, "a", "src", "--shared", "--note", "why", "--", "sh", "-c", script, stdin=subprocess.PIPE)
    begun(ground)
    shared = [(f"{ground.scope}/{name}", "shared") for name in ("a", "src")]
    assert [(row["file"], row["mode"]) for row in locks(ground)] == shared
    refused = ground.swarm("lock", "src/deep", "--as", peer["id"])
    assert refused.code == 1 and "(hold)" in refused.err and ': "why"' in refused.err
    late = ground.swarm("hold", "a", "--as", peer["id"], "--", "true")
    assert late.code == 75 and late.err.startswith("hold failed: File is already locked") and late.err.count("\n") == 1
    out, err = held.communicate("through\n", timeout=60)
    assert (held.returncode, out, err) == (7, "through\n", "")
    assert locks(ground) == [] and [row["id"] for row in ground.sql("SELECT id FROM instances")] == [peer["id"]]


@pytest.mark.parametrize(
    ("argv", "code", "why"),
    [
        (("f", "--", "no-such-program"), 127, "no-such-program: No such file"),
        (("f", "--", "./plain"), 126, "./plain: Permission denied"),
        (("f",), 2, "missing the command"),
        (("f", "--"), 2, "missing the command"),
        (("--", "true"), 2, "missing the path to hold"),
        (("f", "--git", "--", "true"), 2, "--git is not for `swarm-mcp hold FILE"),
        (("f", "--wait", "x", "--", "true"), 2, "--wait wants seconds"),
        (("f", "--as", "nobody", "--", "true"), 1, "nobody"),
    ],
)
def test_what_cannot_be(ground: Ground, argv, code, why):
    (ground.repo / "plain").write_text("")
    done = ground.swarm("hold", *argv)
    assert done.code == code and why in done.err and done.err.count("\n") == 1
    assert not os.path.exists(ground.database) or (locks(ground), ground.sql("SELECT id FROM instances")) == ([], [])


def test_killed_it_frees_the_locks_and_ends_the_command(ground: Ground):
    held = hold(ground, "f", "--", "sh", "-c", f"echo $$ > pid; {PATIENT}")
    begun(ground)
    child = int((ground.repo / "pid").read_text())
    held.kill()
    ended(held)
    assert ground.swarm("lock", "f", "--wait", "60", "--as", ground.session("peer")["id"]).code == 0
    wait_for(lambda: start_time(child) in ("", "-"))
    assert "TERM" in said(ground)


def test_killed_as_soon_as_its_command_begins_it_ends_the_command(ground: Ground):
    for _ in range(3):
        held = hold(ground, "f", "--", "sh", "-c", f"kill -9 $PPID; {PATIENT}")
        assert ended(held)[0] == -9, "the command has our pipe too, so that this waits for both"


def test_a_fault_of_hold_itself_ends_the_command_too(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    def fail(_self):
        wait_for((ground.repo / "pid").exists)
        raise RuntimeError("a fault")

    monkeypatch.setattr(Hold, "_look", fail)
    assert ground.swarm("hold", "f", "--", "sh", "-c", "echo $$ > part; mv part pid; exec sleep 600").code == 3
    child = int((ground.repo / "pid").read_text())
    wait_for(lambda: start_time(child) in ("", "-"))


def test_signals_are_passed_on(ground: Ground):
    held = hold(ground, "f", "--", "sh", "-c", PATIENT)
    begun(ground)
    held.send_signal(signal.SIGTERM)
    assert ended(held)[0] == 9 and "TERM" in said(ground) and locks(ground) == []
    assert ground.process("hold", "f", "--", "sh", "-c", "kill -9 $$").code == 128 + 9


def test_a_signal_in_the_first_moment_of_the_command_is_passed_on(ground: Ground):
    for _ in range(3):
        done = ground.process("hold", "f", "--", "sh", "-c", f"trap 'exit 9' TERM; kill -TERM $PPID; {WAITING}")
        assert done.code == 9, done
    assert locks(ground) == []


@pytest.mark.parametrize("script", [PATIENT, STUBBORN])
def test_a_lost_lock_ends_the_command(ground: Ground, script: str, store: Store):
    held = hold(ground, "f", "g", "--grace", "0.3", "--", "sh", "-c", script)
    begun(ground)
    thief = ground.session("thief")
    store.transfers.steal(thief, "g", "it hangs", force=True)
    code, err = ended(held)
    assert code == 76 and f"hold: {ground.scope}/g is no longer held" in err and "TERM" in said(ground)
    assert [lock["instance_id"] for lock in locks(ground)] == [thief["id"]], "the other one is given back"


def test_stopped_past_its_lease_it_has_lost(ground: Ground):
    held = hold(ground, "f", "--ttl", "3", "--grace", "0.3", "--", "sh", "-c", PATIENT)
    begun(ground)
    (taken,) = ground.sql("SELECT renewed FROM context")
    wait_for(lambda: ground.sql("SELECT renewed FROM context")[0]["renewed"] > taken["renewed"], 60)
    os.kill(held.pid, signal.SIGSTOP)
    peer = ground.session("peer")
    assert ground.swarm("lock", "f", "--wait", "60", "--as", peer["id"]).code == 0
    os.kill(held.pid, signal.SIGCONT)
    assert ended(held)[0] == 76
    assert [row["instance_id"] for row in locks(ground)] == [peer["id"]], "what another has by now is not released"


def test_ended_while_it_waits_it_leaves_nothing(ground: Ground, store: Store):
    ground.lock(ground.session("peer"), "f")
    held = hold(ground, "f", "--wait", "20", "--", "sh", "-c", "echo ran > said")
    wait_for(lambda: ground.database and os.path.exists(ground.database) and ground.sql("SELECT 1 FROM swarm_waiters"))
    held.terminate()
    assert ended(held)[0] == 128 + 15 and said(ground) == ""
    # a process that ends while it joins may leave a void row
    assert store.queue.waiting() == []
    assert len(ground.sql("SELECT id FROM instances")) == 1


def test_waiting_ends_with_the_lock(ground: Ground, store: Store):
    peer = ground.session("peer")
    ground.lock(peer, "f")
    held = hold(ground, "f", "--wait", "20", "--", "echo", "got")
    wait_for(lambda: ground.sql("SELECT 1 FROM swarm_waiters"))
    store.locks.release(peer, "f")
    assert held.communicate(timeout=60)[0] == "got\n" and held.returncode == 0


def test_in_a_session_it_is_one_of_its_agents(ground: Ground, store: Store):
    me = ground.session("me", "me")
    ground.lock(me, "src/mine.py")
    inside = (
        f"import os, sys; sys.path[:0] = {FOLDERS!r}\n"
        "from swarm_hook_core.lookup import Peers\n"
        "from swarm_hook_core.lookup.sqlite import StoreReader\n"
        "import time\n"
        f"peers = Peers(StoreReader({ground.database!r}), 'somebody', time.time())\n"
        f"keys = [{ground.scope + '/src'!r}]\n"
        "print(len(peers.on(keys)))"
    )
    script = f'echo begun > said; {sys.executable} -c "$0"; exec sleep 20'
    held = hold(ground, "src", "--as", me["id"], "--", "sh", "-c", script, inside)
    begun(ground)
    row = next(row for row in locks(ground) if row["agent"])
    assert row["instance_id"] == me["id"]
    assert row["agent"] == lookup.hold_agent(held.pid, start_time(held.pid), host_id())
    second = ground.swarm("hold", "src", "--as", me["id"], "--", "true")
    assert second.code == 75, "two of one session exclude each other"
    assert held.stdout.readline() == "0\n", "what it runs may write there"
    peer = ground.session("peer")
    assert ground.swarm("lock", "src/x", "--as", peer["id"]).code == 1
    held.kill()
    held.communicate()
    store.activity.sweep()
    (mail,) = store.messages.take(peer)
    assert "is free: the command for which me" in mail["content"]
    assert ground.swarm("hold", "src", "--as", me["id"], "--wait", "60", "--", "true").code == 0
    assert [row["file"] for row in locks(ground)] == [f"{ground.scope}/src/mine.py"]
