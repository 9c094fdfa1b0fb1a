"""The kernel's protection in every kind of session, for every user, while processes outlive their calls."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from shlex import quote

import pytest

from swarm_mcp.play.models import play

from .checks import assert_text, assert_untouched
from .client import Client
from .clients import CLIENTS, ClaudeCode, Codex
from .ground import FILES, Ground, base_folder, client_folder, command_line, own_ground, wait_for
from .kernel_work import ON, WORDS, fill, mounts, nothing_left
from .marketplace import Marketplace

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


LINE = "swarm: the kernel does not protect the locked files of others from this command"


@pytest.mark.ways("install")
@pytest.mark.only("claude-code")
def test_within_claude_s_sandbox(client: Client) -> None:
    absent = [name for name in ("bwrap", "socat") if not shutil.which(name)]
    if absent:
        pytest.skip(f"{', '.join(absent)} not here: Claude Code's sandbox needs it")
    outside = str(client.ground.home / "outside")
    fill(client.ground, "notes.md", "other.md", outside)
    client.ground.coordinator.peer_lock("notes.md")
    settings = json.dumps({"sandbox": {"enabled": True}})
    client.run("work", client.shell("python3 fix.py"), env=ON, extra=("--settings", settings))
    told = client.last_result("work")
    assert outside in told, f"it was no sandbox: {told}"
    assert_text(client, "other.md", "spoilt\n")
    assert told.count(LINE) == 1
    assert_text(client, "notes.md", "spoilt\n")
    assert WORDS not in client.said("work")
    (client.ground.checkout / "notes.md").write_text(FILES["notes.md"])
    strict = {**ON, "SWARM_STRICT": "1"}
    client.run("strict", client.shell("python3 fix.py"), env=strict, extra=("--settings", settings))
    assert "it was not started" in client.last_result("strict")
    assert_untouched(client, "notes.md")


@pytest.mark.ways("install")
@pytest.mark.only("codex")
def test_within_codex_s_sandboxes(client: Client) -> None:
    outside = str(client.ground.home / "outside")
    fill(client.ground, "notes.md", "other.md", outside)
    client.ground.coordinator.peer_lock("notes.md")
    call = client.shell("python3 fix.py")
    for mode, written in (("read-only", FILES["other.md"]), ("workspace-write", "spoilt\n")):
        client.run(mode, call, env=ON, extra=("-s", mode))
        told = client.last_result(mode)
        assert outside in told, f"it was no sandbox: {told}"
        assert_text(client, "other.md", written)
        if LINE in told:  # root; others can enter from within: see the test of an ordinary user
            assert told.count(LINE) == 1 and WORDS not in client.said(mode)
        else:
            assert_untouched(client, "notes.md")


SESSION_HELD = "Read-only file system: 'notes.md'"


@pytest.mark.ways("install")
def test_a_session_that_is_resumed(client: Client) -> None:
    """Includes the command's exit status, its folder, its quotes, and its input."""
    ground = client.ground
    fill(ground, "notes.md", "other.md")
    (ground.checkout / "ends.py").write_text(
        'import sys\nprint(sys.argv[1:], sys.stdin.read())\nexec(open("fix.py").read())\nsys.exit(3)\n'
    )
    ground.coordinator.peer_lock("notes.md")
    quoted = """printf 'a\\nb' | python3 ends.py 'one "two"' "$HOME" '' $'it\\'s' """
    with nothing_left(ground):
        led = "cd sub && (cd .. && python3 fix.py)"
        session = client.run("work", *map(client.shell, (quoted, led, "pwd")), env=ON).session
        first, second, folder = client.results("work")
        assert SESSION_HELD in first and f"""['one "two"', '{ground.home}', '', "it's"] a\nb""" in first
        assert "xit code 3" in first or "exited with code 3" in first
        assert SESSION_HELD in second
        if isinstance(client, ClaudeCode):  # Claude Code stays in the folder of its last command
            assert folder.strip().endswith("/sub")
        client.run("again", client.shell(f"cd {ground.checkout} && python3 fix.py"), resume=session, env=ON)
    assert SESSION_HELD in client.last_result("again") and WORDS in client.said("again")
    assert_untouched(client, "notes.md")
    assert_text(client, "other.md", "spoilt\n")


@pytest.mark.ways("install")
def test_a_sub_agent(client: Client) -> None:
    """It is held as its session is. In Codex its model calls tools from a program in JavaScript, with the same hooks."""
    if isinstance(client, Codex):
        client.model = client.code_model
    fill(client.ground, "notes.md", "other.md")
    client.ground.coordinator.peer_lock("notes.md")
    client.models.script("errand", client.shell("python3 fix.py"))
    client.run("work", *client.sub_agent("errand"), env=ON)
    assert SESSION_HELD in client.last_result("errand")
    assert_untouched(client, "notes.md")
    assert_text(client, "other.md", "spoilt\n")


USER = "54321"
AS_USER = ("setpriv", "--reuid", USER, "--regid", USER, "--clear-groups")


def unlocked(folder: Path, needed: list[Path]) -> list[str]:
    """Return the words before a command that run it as USER, with its needed files in folders that only root may enter.

    That happens in a mount namespace of the command's own, without effect out here. `folder`: an empty one.
    """
    lines = ["set -e"]
    for number, (top, path) in enumerate((top, path) for path in needed if (top := closed(path))):
        kept = folder / str(number)
        kept.mkdir()
        lines.insert(1, f"mount --bind {quote(str(path))} {kept}")
        if f"mount -t tmpfs -o mode=755 e2e {quote(str(top))}" not in lines:
            lines.append(f"mount -t tmpfs -o mode=755 e2e {quote(str(top))}")
        lines.append(f"mkdir -p {quote(str(path))}; mount --move {kept} {quote(str(path))}")
    lines.append('exec "$@"')
    return ["unshare", "--mount", "sh", "-c", "\n".join(lines), "sh", *AS_USER]


def closed(path: Path) -> Path | None:
    """The folder above `path` that lets no other user in."""
    return next((folder for folder in reversed(path.parents) if not folder.stat().st_mode & 0o001), None)


@pytest.mark.parametrize("name", CLIENTS)
def test_an_ordinary_user(name: str) -> None:
    if os.geteuid():
        pytest.skip("not root: as an ordinary user all of these tests have run")
    if not shutil.which("setpriv") or subprocess.run([*AS_USER, "unshare", "-Ur", "true"]).returncode:
        pytest.skip("no setpriv here, or no user namespaces for ordinary users")
    with own_ground("user") as ground:
        client = CLIENTS[name](ground)
        client.prepare()
        Marketplace(ground, "install").install(name)
        fill(ground, "notes.md", "other.md")
        ground.coordinator.peer_lock("notes.md")
        base_folder().chmod(0o711)
        for path in (ground.root, *ground.root.rglob("*")):
            os.chown(path, int(USER), int(USER), follow_symlinks=False)
        client.models.script("work", client.shell("id -u; python3 fix.py"))
        needed = [client_folder().parent, Path(sys.prefix), Path(sys.base_prefix)]
        needed += [Path(folder).parent for folder in ground._node()]
        (ground.root / "kept").mkdir()
        before = unlocked(ground.root / "kept", needed)
        extra = ("-s", "workspace-write") if isinstance(client, Codex) else ()
        done = ground.run([*before, *client.command(play("work"), None, None, extra)], env=ON)
        assert done.returncode == 0, done.stderr or done.stdout
        told = client.last_result("work")
        assert USER in told and "Read-only file system: 'notes.md'" in told
        assert_untouched(client, "notes.md")
        assert_text(client, "other.md", "spoilt\n")
        assert WORDS in client.said("work")
