"""Both relays: the checker's answer is that of the hook alone, and where no checker may answer the hook runs alone."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.checker_client import ALONE, RELAY, WAYS, Client, client_in

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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["checkers/alone", "relay"])
def test_a_pipe_in_the_place_of_a_note_keeps_no_hook_waiting(broken_client: Client, way: str, name: str) -> None:
    broken_client.warm(way)
    broken_client.socket.unlink()
    (broken_client.state / name).unlink()
    os.mkfifo(broken_client.state / name)
    hook = broken_client.start(broken_client.edit("held.py"), way)
    assert b'"deny"' in hook.communicate(timeout=30)[0]


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
