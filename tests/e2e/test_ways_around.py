"""Ways around the checks, in a real client: wrappers, commit hooks, lists of names, names that are no files, kills."""

import pytest

from .checks import assert_text
from .client import Client
from .test_own_commit import asked

pytestmark = [pytest.mark.ways("install"), pytest.mark.only("claude-code")]

LOSING = (
    "doppler run -- git stash",
    "rtk git checkout -- .",
    "git status --porcelain | awk '{print $2}' | xargs rm -f",
    "git add own.md && git commit -m own",
)


def test_each_is_refused_and_nothing_is_lost(client: Client) -> None:
    checkout, ground = client.ground.checkout, client.ground
    for name in ("user.name", "user.email"):
        ground.git(checkout, "config", name, "t@t")
    hook = checkout / ".git/hooks/post-commit"
    hook.write_text("#!/bin/sh\ngit checkout -- .\n")
    hook.chmod(0o755)
    before = asked(client, "rev-parse", "HEAD")
    change = client.replace("notes.md", "line one", "FIRST")
    first = [change, *client.swarm_tools(("lock_file", {"file": "name:port:3000", "reason": "dev server"}))]
    with client.held("first", *first, client.create("last.md", "x\n"), at=len(first)) as live:
        live.gate.wait_reached()
        ((pid,),) = ground.coordinator.query("SELECT client_pid FROM swarm_sessions WHERE runtime <> 'mcp'")
        commands = (*LOSING, f"kill -9 {pid}", "swarm-mcp lock --name port:3000")
        client.run("second", client.create("own.md", "mine\n"), *map(client.shell, commands))
        told = client.results("second")[-len(commands) :]
        for command, result in zip(LOSING, told):
            assert "notes.md" in result and "swarm:" in result, (command, result)
        assert "post-commit" in told[3], told[3]
        assert "would end a process of" in told[4] and str(pid) in told[4], told[4]
        assert "name:port:3000 by" in told[5] and "dev server" in told[5], told[5]
        assert_text(client, "notes.md", "FIRST\n")
        assert asked(client, "rev-parse", "HEAD") == before
        live.go_on()
    assert_text(client, "last.md", "x\n")
