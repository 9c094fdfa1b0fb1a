"""A session that several clients have open lasts until the last of them has gone, and each ends for itself alone."""

import sqlite3
import subprocess
import sys
import time

import pytest
from support.fixtures import Ground, Sleeper
from support.store_files import make

from swarm_hook_core.lookup import Peers
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.process import host_id, start_time
from swarm_mcp.errors import LockRefused

pytestmark = pytest.mark.slow

KEY = ("--runtime", "codex", "--session-id", "s")


@pytest.fixture
def two():
    """The processes of two clients."""
    with Sleeper() as first, Sleeper() as second:
        yield first, second


def join(ground: Ground, client: Sleeper, *words: str) -> dict:
    """The session's row, once that client has told of it as its hooks do."""
    argv = ("register", *KEY, "--lease-seconds", "86400", "--client", f"{client.pid}:{client.started}", *words)
    return ground.swarm(*argv, "--json").json


def leave(ground: Ground, client: Sleeper) -> dict:
    return ground.swarm("deregister", *KEY, "--client", f"{client.pid}:{client.started}", "--json").json


def hooks_see(ground: Ground, file: str) -> list[str]:
    """Return the holders of `file` that a check of another session's write finds."""
    found = Peers(StoreReader(ground.database), "somebody", time.time()).on([file])
    return sorted({held.instance_id for held in found})


def held_by(ground: Ground) -> str:
    """Return the holder of f, the same for the coordinator and the hooks; empty for a free file."""
    peer = ground.session("peer", "peer", client=(1, start_time(1)))
    seen = hooks_see(ground, f"{ground.scope}/f")
    try:
        ground.lock(peer, "f")
    except LockRefused as refusal:
        assert [refusal.active["instance_id"]] == seen
        return seen[0]
    assert seen == []
    return ""


@pytest.mark.parametrize("first_to_go", [0, 1])
@pytest.mark.parametrize("how", ["killed", "ended"])
def test_a_lock_stays_until_the_last_client_has_gone(ground: Ground, two, how: str, first_to_go: int):
    session = join(ground, two[0])
    ground.lock(session, "f")
    assert join(ground, two[1])["id"] == session["id"]
    goes, stays = two[first_to_go], two[1 - first_to_go]

    def end(client: Sleeper) -> None:
        if how == "ended":
            assert leave(ground, client)["ok"] is True
        client.end()

    end(goes)
    assert held_by(ground) == session["id"]
    assert join(ground, stays, "--state", "working")["id"] == session["id"]
    assert held_by(ground) == session["id"]
    end(stays)
    assert held_by(ground) == ""


def test_it_is_one_session_to_each_client_and_goes_when_it_is_ended_for_all(ground: Ground, two):
    session = join(ground, two[0])
    join(ground, two[1])
    with ground.store() as store:
        for client in two:
            assert [row["id"] for row in store.instances.of_client(*client.identity)] == [session["id"]]
    join(ground, two[0])
    join(ground, two[0])
    (row,) = ground.sql("SELECT client_pid, other_clients FROM swarm_sessions")
    assert row == {"client_pid": two[0].pid, "other_clients": f"{two[1].pid}:{two[1].started}"}
    assert ground.swarm("deregister", *KEY, "--json").json["ok"] is True
    assert ground.sql("SELECT id FROM instances") == ground.sql("SELECT * FROM swarm_sessions") == []


@pytest.mark.parametrize("others", ["garbage", ":::", "9" * 20 + ":1", "-5:x 4.5:y", b"\xff\xfe", 4.5])
def test_a_list_of_clients_that_is_spoilt_stops_nobody(ground: Ground, two, others):
    session = join(ground, two[0])
    ground.lock(session, "f")
    ground.sql("UPDATE swarm_sessions SET other_clients = ?", others)
    assert held_by(ground) == session["id"]
    assert join(ground, two[1])["id"] == session["id"]
    ground.sql("UPDATE swarm_sessions SET other_clients = ?", others)
    two[1].end()
    assert held_by(ground) == ""
    assert leave(ground, two[1])["ok"] is True


def test_a_number_that_is_no_process_proves_nothing(ground: Ground, two):
    session = join(ground, two[0])
    ground.lock(session, "f")
    ground.sql("UPDATE swarm_sessions SET client_pid = ?", 1 << 40)
    assert held_by(ground) == session["id"]


def test_a_client_that_has_gone_is_not_kept(ground: Ground, two):
    join(ground, two[0])
    two[0].end()
    join(ground, two[1])
    assert ground.sql("SELECT other_clients FROM swarm_sessions") == [{"other_clients": None}]


def test_a_client_elsewhere_is_followed_and_not_waited_for(ground: Ground, two):
    """An invisible client, such as one in a container that is no more, must not keep the session's locks."""
    session = join(ground, two[0])
    ground.lock(session, "f")
    ground.sql("UPDATE swarm_sessions SET host = 'another/boot/pid'")
    join(ground, two[1])
    assert ground.sql("SELECT host, other_clients FROM swarm_sessions") == [{"host": host_id(), "other_clients": None}]
    assert leave(ground, two[1])["ok"] is True and held_by(ground) == ""


def test_a_terminal_that_closes_takes_its_own_client_alone(ground: Ground, two):
    """One client is a shared daemon with a terminal, the other a process in the foreground."""
    session = join(ground, two[0])
    ground.lock(session, "f")
    with Sleeper() as terminal:
        join(ground, two[1], "--state", "idle")
        ground.sql("UPDATE swarm_sessions SET terminal_pid = ?, terminal_start = ?", *terminal.identity)
    assert held_by(ground) == session["id"]
    leave(ground, two[1])
    assert held_by(ground) == session["id"], "the terminal was the other client's"
    two[0].end()
    assert held_by(ground) == ""


def test_a_session_that_is_silent_lapses_whichever_of_its_clients_lives(ground: Ground, two):
    session = join(ground, two[0])
    ground.lock(session, "f")
    join(ground, two[1])
    two[1].end()
    assert held_by(ground) == session["id"]
    ground.sql("UPDATE swarm_sessions SET last_seen = last_seen - 90000")
    assert held_by(ground) == ""


def test_a_second_client_in_another_repository_frees_nothing(ground: Ground, two):
    session = join(ground, two[0])
    ground.lock(session, "f")
    elsewhere = ground.folder / "elsewhere"
    (elsewhere / ".git").mkdir(parents=True)
    assert join(ground, two[1], "--directory", str(elsewhere))["id"] == session["id"]
    assert held_by(ground) == session["id"]
    join(ground, two[0])
    assert held_by(ground) == session["id"]


def test_a_session_that_works_through_the_other_clients_end_goes_on(ground: Ground, two):
    session = join(ground, two[0])
    join(ground, two[1])
    two[1].end()
    assert ground.lock(session, "f")["instance_id"] == session["id"]
    two[0].end()
    with pytest.raises(Exception, match="no longer registered"):
        ground.lock(session, "g")


@pytest.mark.parametrize("shape", ["version-3", "version-4"])
def test_hooks_read_a_file_in_which_a_session_has_one_client(ground: Ground, two, shape: str):
    make(ground, shape)
    connection = sqlite3.connect(ground.database)
    place = (ground.scope, ground.scope, ground.scope, ground.scope)
    for name, client in (("a", two[0]), ("b", two[1])):
        connection.execute(
            "INSERT INTO instances (id, scope, directory, root, file_root, pid, adopted) VALUES (?, ?, ?, ?, ?, 1, 0)",
            (name, *place),
        )
        connection.execute(
            "INSERT INTO swarm_sessions (runtime, session_id, instance_id, host, client_pid, client_start, state,"
            " last_seen, lease_seconds) VALUES ('codex', ?, ?, ?, ?, ?, 'idle', ?, 86400)",
            (name, name, host_id(), *client.identity, int(time.time())),
        )
        file = f"{ground.scope}/{name}"
        connection.execute(
            "INSERT INTO context (id, scope, instance_id, file, type, content, path_key)"
            " VALUES (?, ?, ?, ?, 'lock', '', ?)",
            (f"lock-{name}", ground.scope, name, file, file),
        )
    connection.commit()
    connection.close()
    two[0].end()
    assert hooks_see(ground, f"{ground.scope}/a") == [] and hooks_see(ground, f"{ground.scope}/b") == ["b"]
    below = Peers(StoreReader(ground.database), "somebody", time.time()).under([ground.scope])
    assert [held.instance_id for held in below] == ["b"]
    ground.store().close()
    assert hooks_see(ground, f"{ground.scope}/a") == [] and hooks_see(ground, f"{ground.scope}/b") == ["b"]


def test_a_hook_whose_client_is_killed_under_it_does_not_bring_the_session_back(ground: Ground, two):
    """The end of a turn is told by a hook that may start just as the terminal is closed."""
    client, _ = two
    me = join(ground, client)
    ground.lock(me, "f")
    client.end()
    told = ground.swarm("register", *KEY, "--lease-seconds", "86400", "--state", "idle", "--json").json
    assert told["id"] == me["id"] and held_by(ground) == ""


ORPHAN = """
import subprocess, sys
command = 'while [ ! -e "$0" ]; do sleep 0.05; done; exec "$@"'
subprocess.Popen(["sh", "-c", command, *sys.argv[1:]], stdin=subprocess.DEVNULL)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux, where a program can be given orphans")
def test_what_has_no_parent_left_names_no_client(tmp_path):
    """Also where another program than process 1 is given such processes, as systemd's is for a person's session."""
    show = "import sys; sys.path[:0] = %r; from swarm_hook_core import process; print(process.client_process()[0])"
    adopt = (
        "import ctypes, os, subprocess, sys\n"
        "assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0 and ctypes.CDLL(None).prctl(15, b'systemd', 0, 0, 0) == 0\n"
        "subprocess.run([sys.executable, '-c', sys.argv[1], *sys.argv[2:]], check=True)\n"
        "open(sys.argv[2], 'w').close()\n"
        "os.wait()"
    )
    done = subprocess.run(
        [sys.executable, "-c", adopt, ORPHAN, str(tmp_path / "go"), sys.executable, "-c", show % sys.path],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("0\n", "")
