"""An agent does not lift the protection of others from its own shell; a person at a terminal does."""

import os
import pty
import subprocess

import pytest

from .client import Client
from .coordinator import PATIENCE

pytestmark = pytest.mark.ways("install")

# The environment keeps no variable that names the shell's owner.
BARE = "env -u CLAUDECODE -u CLAUDE_CODE_SESSION_ID -u CODEX_THREAD_ID -u CODEX_SESSION_ID -u CODEX_CI"


def typed(client: Client, *words: str) -> subprocess.CompletedProcess[str]:
    """Return the result of a command that a person types at a terminal."""
    outer, inner = pty.openpty()
    try:
        return subprocess.run(
            [str(client.ground.bin / "swarm-mcp"), *words], cwd=client.ground.checkout, env=client.ground.env,
            stdin=inner, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
    finally:
        os.close(outer)
        os.close(inner)


@pytest.mark.promise("what weakens the protection of others is a person's to do", only=("codex",))
def test_an_agent_lifts_nothing_and_a_person_may(client: Client) -> None:
    coordinator = client.ground.coordinator
    peer = coordinator.peer_lock("notes.md")
    # Its effect stands nowhere in the command.
    (client.ground.checkout / "lift.py").write_text(
        "import os\nos.environ['SWARM_MCP_ALLOW_SPAWN'] = '1'\nwords = ['auto', 'ffo'[::-1]]\n"
        "os.execvp('swarm-mcp', ['swarm-mcp', *words])\n"
    )
    commands = (
        "swarm-mcp auto off",
        f"swarm-mcp unlock notes.md --as {peer}",
        f"SWARM_MCP_INSTANCE_ID={peer} swarm-mcp unlock notes.md",
        f"{BARE} swarm-mcp unlock notes.md --as {peer}",
        f"{BARE} python3 lift.py; echo ended $?",
        f"{BARE} setsid -w nohup python3 lift.py; echo ended $?",
    )
    client.run("work", *(client.shell(command) for command in commands))
    told = client.results("work")
    assert len(told) == len(commands)
    assert [text for text in told if "person" not in text] == []
    assert coordinator.json("auto")["value"] == "keep"
    assert [lock["file"] for lock in coordinator.locks()] == [str(client.ground.checkout / "notes.md")]
    rows = coordinator.query("SELECT actor FROM events WHERE type = 'protection.attempted'")
    assert len(rows) >= 3 and peer not in [actor for (actor,) in rows], rows
    with client.held("at-work", client.shell("true"), at=0) as live:
        assert typed(client, "unlock", "notes.md", "--as", peer).returncode == 0
        done = typed(client, "auto", "off")
        level = coordinator.json("auto")["value"]
        typed(client, "auto", "--unset")  # the next test has the same home
        live.go_on()
    assert (done.returncode, level) == (0, "off"), done.stderr
    assert coordinator.locks() == []
