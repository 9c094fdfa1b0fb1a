"""The kernel is the second layer: predictable writes are still denied beforehand, git's above all, and told once."""

import pytest

from .checks import assert_text
from .client import Client
from .coordinator import PEER_NAME
from .kernel_work import ON, WORDS, fill, script


@pytest.mark.ways("install")
def test_git_in_a_script_and_what_can_be_told(client: Client) -> None:
    ground, checkout = client.ground, client.ground.checkout
    fill(ground, "notes.md", "other.md")
    ground.coordinator.peer_lock("notes.md")
    for file in ("notes.md", "sub/deep.md"):
        (checkout / file).write_text("half done\n")
    before = b"half done\n"
    calls = {
        "told": "echo spoilt > notes.md",
        "script": "python3 fix.py",
        "status": script(ground, "status.py", ["git", "status", "--short"]),
        "checkout": script(ground, "checkout.py", ["git", "checkout", "."]),
        "reset": script(ground, "reset.py", ["git", "reset", "--hard"]),
        "elsewhere": script(ground, "elsewhere.py", ["git", "checkout", "--", "other.md"]),
    }
    client.run("work", *map(client.shell, calls.values()), env=ON)
    told = dict(zip(calls, client.results("work"), strict=True))
    assert "swarm lock blocked" in told["told"]
    assert " M notes.md" in told["status"] and "swarm" not in told["status"]
    for name in ("checkout", "reset"):
        assert "swarm: swarm lock blocked git" in told[name] and PEER_NAME in told[name], told
    # Git has not begun: the unlocked files are unchanged, too.
    assert_text(client, "sub/deep.md", "half done\n")
    assert "swarm lock blocked" not in told["elsewhere"]
    assert_text(client, "other.md", "other\n")
    assert (checkout / "notes.md").read_bytes() == before
    last = str(client.exchanges("work")[-1].body)
    assert last.count(WORDS) == 1, "the words come once, with the call that they are about"
