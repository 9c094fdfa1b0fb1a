"""A plugin that asks the checker from its client's own process: the call comes out as one of a hook that it starts."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.checker_client import ALONE, Call, Client, client_in

from swarm_hook_core import __version__

pytestmark = pytest.mark.slow

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
def client(tmp_path: Path) -> Iterator[Client]:
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


def test_it_is_denied_what_a_hook_is(client: Client) -> None:
    assert '"permissionDecision": "deny"' in asked(client, client.edit("held.py"))
    assert asked(client, client.edit("free.py")) == ""
    assert client.writes() == ["free.py"] and not client.faults()


def test_its_session_belongs_to_the_client(client: Client) -> None:
    """Between it and its client is a process of Cline's, as between a hook and the client."""
    by_hook, by_plugin = str(uuid.uuid4()), str(uuid.uuid4())
    client.ask(client.event("turn", by_hook, hook_event_name="UserPromptSubmit"), ALONE)
    asked(client, client.event("turn", by_plugin, hook_event_name="UserPromptSubmit"))
    rows = json.loads(client.swarm("instances", "--json"))
    pids = {name: row["pid"] for row in rows for name in (by_hook, by_plugin) if name[:8] in row["label"]}
    assert pids == {by_hook: os.getpid(), by_plugin: os.getpid()}


@pytest.mark.parametrize(("end", "is_answered"), [("+1000", False), ("+5000000000", True)])
def test_it_tells_for_how_long_it_waits(client: Client, end: str, is_answered: bool) -> None:
    assert bool(asked(client, client.edit("held.py"), end)) == is_answered


def test_a_socket_s_file_is_open_in_its_server(client: Client) -> None:
    """So a plugin learns that the server has made it: JavaScript is not told the peer of a socket."""
    server = int(client.socket.with_name(f"{client.socket.name}.lock").read_text())
    assert server == client.servers[0].pid
    ours = client.socket.stat()
    handles = [path.stat() for path in Path(f"/proc/{server}/fd").iterdir()]
    assert (ours.st_dev, ours.st_ino) in [(one.st_dev, one.st_ino) for one in handles]
