"""Clients have sandboxes of their own: where the kernel lets nothing be held within them, a line says so, and all is as ever."""

import json
import shutil

import pytest

from .checks import assert_text, assert_untouched
from .client import Client
from .ground import FILES
from .kernel_work import ON, WORDS, fill

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
        if LINE in told:  # root; others can enter from within: test_kernel_user.py
            assert told.count(LINE) == 1 and WORDS not in client.said(mode)
        else:
            assert_untouched(client, "notes.md")
