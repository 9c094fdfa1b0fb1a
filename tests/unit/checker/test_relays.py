"""Relays and plugins that ask the checker: its answer is that of the hook alone."""

import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.checker_client import ALONE, RELAY, WAYS, Call, Client, client_in

from swarm_hook_core import __version__

pytestmark = pytest.mark.slow


# An agent's own process listens in a checker's place, and lets each call pass.
IMPOSTOR = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
os.chdir(os.path.dirname(sys.argv[1]))
listener.bind(os.path.basename(sys.argv[1]) + ".mine")
listener.listen(9)
os.replace(os.path.basename(sys.argv[1]) + ".mine", os.path.basename(sys.argv[1]))
print("listens", flush=True)
while True:
    connection = listener.accept()[0]
    try:
        connection.sendall(b"B")
        connection.recv(1 << 20)
        connection.sendall(b"0000000000")
    except OSError:
        pass
    connection.close()
"""


@pytest.mark.sampled
@pytest.mark.parametrize("way", WAYS)
def test_the_checker_answers_as_a_hook_alone_does(client: Client, way: str) -> None:
    client.warm(way)
    for call in (
        client.edit("held.py"),
        client.edit("free.py"),
        client.bash("rm held.py"),
        client.bash("echo x > new.py"),
    ):
        ours, hooks = client.ask(call, way), client.ask(call, ALONE)
        assert (ours.status, ours.is_denied, ours.alone) == (hooks.status, hooks.is_denied, [])
    assert client.writes() == ["free.py", "free.py", "new.py", "new.py"]
    assert not client.faults()


@pytest.mark.parametrize("way", WAYS)
def test_without_a_server_the_hook_runs_alone(client: Client, way: str) -> None:
    client.close()
    assert client.ask(client.edit("held.py"), way).is_denied
    assert not client.ask(client.edit("free.py"), way).output
    assert client.writes() == ["free.py"]


@pytest.mark.parametrize("way", WAYS)
def test_environment_and_folder_travel_with_the_call(client: Client, way: str) -> None:
    client.warm(way)
    target = client.ask(client.bash("rm $TARGET"), way, environment={"TARGET": "held.py"})
    folder = client.ask(client.event("pre_tool_use", hook_event_name="PreToolUse", tool_name="Bash", cwd="",
                                     tool_input={"command": "rm ../held.py"}), way, folder=client.repo / "src",
                        environment={"PWD": str(client.repo / "src")})  # fmt: skip
    elsewhere = client.ask(client.edit("held.py"), way, environment={"SWARM_DB_PATH": str(client.root / "other.db")})
    assert (target.is_denied, folder.is_denied, target.alone, folder.alone) == (True, True, [], [])
    assert (elsewhere.is_denied, elsewhere.alone) == (False, [])
    assert client.ask(client.edit("held.py"), way).is_denied  # and nothing of it is left


@pytest.mark.parametrize("way", WAYS)
def test_a_call_from_a_removed_folder_is_checked_alone(client: Client, way: str) -> None:
    client.warm(way)
    gone = client.root / "gone"
    gone.mkdir()
    script = f'cd {gone} && rmdir {gone} && exec "$@"'
    words = client.start(client.edit("held.py"), way)
    words.communicate()
    hook = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *words.args],
        input=client.edit("held.py")[1],
        env=client.environment,
        capture_output=True,
        check=True,
    )
    assert b'"deny"' in hook.stdout
    assert client.notes()[-1] == "not answered"


@pytest.mark.parametrize("way", WAYS)
def test_names_of_files_in_another_encoding_are_read_by_the_hook_alone(client: Client, way: str) -> None:
    client.warm(way)
    answer = client.ask(client.edit("held.py"), way, environment={"LC_ALL": "de_DE.ISO-8859-1"})
    assert (answer.is_denied, answer.alone) == (True, ["not answered"])
    assert not client.ask(client.edit("held.py"), way, environment={"LC_ALL": "C"}).alone


@pytest.mark.sampled
@pytest.mark.parametrize("way", WAYS)
def test_a_state_folder_with_a_long_path_has_a_checker(tmp_path: Path, way: str) -> None:
    with client_in(tmp_path, state=str(tmp_path.resolve() / ("long" * 40) / "swarm-mcp")) as client:
        assert len(str(client.socket)) > 108
        client.warm(way)
        assert client.ask(client.edit("held.py"), way).is_denied


@pytest.mark.parametrize("way", WAYS)
def test_another_release_is_not_answered(client: Client, way: str) -> None:
    client.warm(way)
    answer = client.ask(client.edit("held.py"), way, release="9.9.9")
    assert (answer.is_denied, answer.alone) == (True, ["not answered"])
    assert not client.ask(client.edit("free.py"), way, release="9.9.9").output
    assert client.writes() == ["free.py"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", ["removed", "stale", "folder", "link"])
@pytest.mark.sampled
def test_a_socket_that_is_no_checkers_leads_to_the_hook_alone(broken_client: Client, way: str, place: str) -> None:
    broken_client.warm(way)
    broken_client.socket.unlink()
    if place == "stale":
        handle = os.open(broken_client.socket.parent, os.O_RDONLY)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"/proc/self/fd/{handle}/{broken_client.socket.name}")
        os.close(handle)
    elif place == "folder":
        broken_client.socket.mkdir()
    elif place == "link":
        broken_client.socket.symlink_to("/nowhere/socket")
    answer = broken_client.ask(broken_client.edit("held.py"), way)
    assert (answer.is_denied, answer.alone) == (True, ["none"])


@pytest.mark.sampled
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("word", ["", "serve"])
def test_the_answer_of_an_agents_process_is_not_taken(broken_client: Client, way: str, word: str) -> None:
    broken_client.warm(way)
    words = [sys.executable, "-c", IMPOSTOR, str(broken_client.socket), *filter(None, [word])]
    if word:  # one that has left the client's processes: its parent is another
        words = ["/bin/sh", "-c", '"$@" & echo $!', "sh", *words]
    impostor = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert impostor.stdout
    told = impostor.stdout.readline()
    while "listens" not in told:
        pid, told = int(told), impostor.stdout.readline()
    try:
        answer = broken_client.ask(broken_client.edit("held.py"), way)
        assert (answer.is_denied, answer.alone) == (True, ["none"])
    finally:
        os.kill(pid if word else impostor.pid, signal.SIGKILL)
        impostor.communicate()


@pytest.mark.sampled
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["checkers/alone", "relay"])
def test_a_pipe_in_the_place_of_a_note_keeps_no_hook_waiting(broken_client: Client, way: str, name: str) -> None:
    broken_client.warm(way)
    broken_client.socket.unlink()
    (broken_client.state / name).unlink()
    os.mkfifo(broken_client.state / name)
    hook = broken_client.start(broken_client.edit("held.py"), way)
    assert b'"deny"' in hook.communicate(timeout=30)[0]


@pytest.mark.sampled
@pytest.mark.parametrize("way", WAYS)
def test_a_payload_of_20_megabytes_is_answered_once(client: Client, way: str) -> None:
    client.warm(way)
    call = client.tool("Write", {"file_path": str(client.repo / "held.py"), "content": "x" * 20_000_000})
    assert client.ask(call, way).is_denied


@pytest.mark.parametrize("way", WAYS)
def test_a_closed_output_ends_in_silence(client: Client, way: str) -> None:
    client.warm(way)
    hook = client.start(client.edit("held.py"), way)
    assert hook.stdout and hook.stderr
    hook.stdout.close()
    assert not hook.stderr.read()
    hook.stderr.close()
    hook.wait()
    assert client.ask(client.edit("held.py"), way).is_denied


def test_a_hook_whose_input_is_read_by_nobody_does_not_hang(broken_client: Client) -> None:
    broken_client.warm()
    broken_client.socket.unlink()
    hook = broken_client.start(("pre_tool_use", b"{" + b" " * 300_000), RELAY)
    assert hook.communicate(timeout=30)[0] == b""


# Asks as integrations/checker.ts does. Arguments: the socket, its own folder, the end of its patience, and the event.
PLUGIN = """
import os, socket, sys
place, folder, end, event = sys.argv[1:]
payload = sys.stdin.buffer.read()
words = [sys.argv_release, "claude-code", event, str(os.getpid()), end, folder]
head = b"".join(os.fsencode(word) + b"\\0" for word in [*words, *(f"{k}={v}" for k, v in os.environ.items())])
with socket.socket(socket.AF_UNIX) as checker:
    os.chdir(os.path.dirname(place))
    checker.connect(os.path.basename(place))
    assert checker.recv(1) == b"B"
    checker.sendall(b"%08x%08x" % (len(head), len(payload)) + head + payload)
    answer = b""
    while part := checker.recv(65536):
        answer += part
    sys.stdout.buffer.write(answer)
"""


@pytest.fixture
def plugins_client(tmp_path: Path) -> Iterator[Client]:
    with client_in(tmp_path) as found:
        found.warm()
        yield found


def asked(client: Client, call: Call, end: str = "+2000000000") -> str:
    """Return the checker's answer to a plugin in a process of Cline's below this client; empty if it does not answer."""
    event, payload = call
    script = client.root / "plugin-sandbox-bootstrap.js"
    script.write_text(PLUGIN.replace("sys.argv_release", repr(__version__)))
    words = [sys.executable, str(script), str(client.socket), str(client.repo), end, event]
    done = subprocess.run(words, input=payload, env=client.environment, stdout=subprocess.PIPE, check=True)
    return done.stdout[10:].decode()


def test_it_is_denied_what_a_hook_is(plugins_client: Client) -> None:
    assert '"permissionDecision": "deny"' in asked(plugins_client, plugins_client.edit("held.py"))
    assert asked(plugins_client, plugins_client.edit("free.py")) == ""
    assert plugins_client.writes() == ["free.py"] and not plugins_client.faults()


def test_its_session_belongs_to_the_client(plugins_client: Client) -> None:
    """Between it and its client is a process of Cline's, as between a hook and the client."""
    by_hook, by_plugin = str(uuid.uuid4()), str(uuid.uuid4())
    plugins_client.ask(plugins_client.event("turn", by_hook, hook_event_name="UserPromptSubmit"), ALONE)
    asked(plugins_client, plugins_client.event("turn", by_plugin, hook_event_name="UserPromptSubmit"))
    rows = json.loads(plugins_client.swarm("instances", "--json"))
    pids = {name: row["pid"] for row in rows for name in (by_hook, by_plugin) if name[:8] in row["label"]}
    assert pids == {by_hook: os.getpid(), by_plugin: os.getpid()}


@pytest.mark.parametrize(("end", "is_answered"), [("+1000", False), ("+5000000000", True)])
@pytest.mark.thorough
def test_it_tells_for_how_long_it_waits(plugins_client: Client, end: str, is_answered: bool) -> None:
    assert bool(asked(plugins_client, plugins_client.edit("held.py"), end)) == is_answered


def test_a_socket_s_file_is_open_in_its_server(plugins_client: Client) -> None:
    """So a plugin learns that the server has made it: JavaScript is not told the peer of a socket."""
    server = int(plugins_client.socket.with_name(f"{plugins_client.socket.name}.lock").read_text())
    assert server == plugins_client.servers[0].pid
    ours = plugins_client.socket.stat()
    handles = [path.stat() for path in Path(f"/proc/{server}/fd").iterdir()]
    assert (ours.st_dev, ours.st_ino) in [(one.st_dev, one.st_ino) for one in handles]
