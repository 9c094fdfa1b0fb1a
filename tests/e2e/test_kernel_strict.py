"""With uncertain commands forbidden, the kernel gives certainty: a command runs if all locks are held for it."""

import pytest

from .checks import assert_denied, assert_text, assert_untouched
from .client import Client
from .kernel_work import ON, fill, kernel_state


@pytest.mark.ways("install")
def test_strict_meets_the_kernel(client: Client) -> None:
    ground = client.ground
    fill(ground, "notes.md", "other.md")
    peer = ground.coordinator.peer_lock("notes.md")
    call = client.shell("python3 fix.py")
    probe = kernel_state(ground) / "probe"
    with client.held("work", call, call, call, at=1, env={**ON, "SWARM_STRICT": "1"}) as live:
        (told,) = client.results("work")
        assert "Read-only file system: 'notes.md'" in told
        assert_untouched(client, "notes.md")
        assert_text(client, "other.md", "spoilt\n")
        # A lock on files that do not exist yet cannot be held.
        ground.coordinator.text("lock", "later/*.md", "--note", "careful surgery", "--as", peer)
        (ground.checkout / "other.md").write_text("other\n")
        gate = client.hold("work", 2)
        live.gate.open()
        assert gate.wait_reached()
        assert_denied(client, "work", "notes.md")
        assert_untouched(client, "other.md")
        ground.coordinator.text("unlock", "later/*.md", "--as", peer)
        known = probe.read_text()
        try:
            probe.write_text(f"{known.rstrip()} it was forbidden by a test")
            gate.open()
            live.go_on()
        finally:
            probe.write_text(known)
    assert_denied(client, "work", "notes.md")
    assert_untouched(client, "other.md")
