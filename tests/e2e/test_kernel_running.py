"""The protection follows the locks while a process outlives its call, and ends with it."""

import json
import os
import signal
from pathlib import Path

import pytest

from .checks import assert_untouched
from .client import Client
from .ground import Ground, command_line, wait_for
from .kernel_work import ON, mounts, nothing_left

# Tries the file that is named in data again and again, and writes nothing: between a file that was replaced and the hold
# on the new one is a moment.
SERVER = """\
import json, os, pathlib, time
name = json.loads(pathlib.Path("names.json").read_text())[0]
while True:
    inode = os.stat(name).st_ino
    try:
        os.close(os.open(name, os.O_WRONLY))
        word = "free"
    except OSError as error:
        word = os.strerror(error.errno)
    if os.stat(name).st_ino == inode:
        pathlib.Path("state.new").write_text(json.dumps([os.getpid(), inode, word]))
        os.replace("state.new", "state")
    time.sleep(0.02)
"""
START = """\
import os, pathlib, subprocess, sys, time
nothing = subprocess.DEVNULL
subprocess.Popen([sys.executable, "server.py"], stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
while not os.path.exists("state"):
    time.sleep(0.02)
"""
HELD, FREE = "Read-only file system", "free"


def serve(ground: Ground) -> str:
    """The command that starts the server and ends."""
    (ground.checkout / "server.py").write_text(SERVER)
    (ground.checkout / "start.py").write_text(START)
    (ground.checkout / "names.json").write_text('["notes.md"]')
    return "python3 start.py"


def server(ground: Ground) -> int:
    return int(json.loads((ground.checkout / "state").read_text())[0])


def assert_comes_to(ground: Ground, word: str) -> None:
    """The server finds notes.md, as it is now, to be so."""
    inode = (ground.checkout / "notes.md").stat().st_ino
    state = ground.checkout / "state"
    found = wait_for(lambda: json.loads(state.read_text())[1:] == [inode, word], 20)
    assert found, f"the server found {state.read_text()}, not {inode} {word}"


def upkeep_of(pid: int, ground: Ground) -> int:
    """The process that keeps the mounts in the namespace of process `pid`."""
    beside = [one for one in ground.own_processes() if one != pid and namespace_of(one) == namespace_of(pid)]
    (found,) = [one for one in beside if "enter.py" in command_line(one)]
    return found


def namespace_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:  # it has ended meanwhile
        return ""


@pytest.mark.ways("install")
def test_a_server_that_outlives_its_call(client: Client) -> None:
    ground, coordinator = client.ground, client.ground.coordinator
    peer = coordinator.peer_lock("notes.md")
    with nothing_left(ground):
        with client.held("work", client.shell(serve(ground)), at=1, env=ON) as live:
            assert_comes_to(ground, HELD)
            # The holder saves as editors do: the file that was held has gone, and its place is taken.
            (ground.checkout / "new").write_text("the holder's\n")
            os.replace(ground.checkout / "new", ground.checkout / "notes.md")
            assert_comes_to(ground, HELD)
            assert (ground.checkout / "notes.md").read_text() == "the holder's\n"
            coordinator.text("unlock", str(ground.checkout / "notes.md"), "--as", peer)
            assert_comes_to(ground, FREE)
            live.go_on()
        assert Path(f"/proc/{server(ground)}").exists(), "no end of ours ends what a command has started"
        os.kill(server(ground), signal.SIGKILL)


@pytest.mark.ways("install")
def test_whoever_is_killed(client: Client) -> None:
    """First the client is killed, then the keeper of the mounts: the server stays held, and no mount appears here."""
    ground = client.ground
    ground.coordinator.peer_lock("notes.md")
    with client.held("work", client.shell(serve(ground)), at=1, env=ON) as live:
        assert_comes_to(ground, HELD)
        live.kill()
        os.kill(upkeep_of(server(ground), ground), signal.SIGKILL)
        (ground.checkout / "state").unlink()
        assert wait_for((ground.checkout / "state").exists, 60), "the server goes on"
        assert_comes_to(ground, HELD)
        assert not mounts(ground)
        assert_untouched(client, "notes.md")
        os.remove(ground.checkout / "notes.md")  # a missing file cannot be a mount point
        os.kill(server(ground), signal.SIGKILL)
    assert wait_for(lambda: not [line for line in ground.command_lines() if "enter.py" in line], 60)
    assert not mounts(ground)
