"""Claude Code and Codex side by side: each keeps off what the other has locked."""

from __future__ import annotations

import pytest
from support.requirement import requirement

from .checks import assert_denied, assert_text
from .client import Client
from .clients import CLIENTS

# What does not hang on the way of installing runs in one of them; a few in both, as a sample.
pytestmark = pytest.mark.ways("install")

PAIRS = [(holder, writer) for holder in CLIENTS for writer in CLIENTS if holder != writer]


@pytest.mark.promise("locks hold between clients")
@pytest.mark.parametrize(("holder", "writer"), PAIRS, ids=lambda name: name)
@requirement("P-23")
def test_each_other_s_locks(both: dict[str, Client], holder: str, writer: str) -> None:
    coordinator = both[holder].ground.coordinator
    lock = both[holder].swarm_tools(("lock_file", {"file": "notes.md", "reason": "from the other kind"}))
    with both[holder].held("holding", *lock, at=len(lock)) as live:
        assert len(coordinator.locks()) == 1, both[holder].results("holding")
        both[writer].run("writing", both[writer].replace("notes.md", "line one", "line two"))
        assert_denied(both[writer], "writing", "notes.md", holder=f"held by {holder} ", note="from the other kind")
        both[writer].run("elsewhere", both[writer].create("free.md", "free\n"))
        assert_text(both[writer], "free.md", "free\n")
        live.go_on()
    both[writer].run("afterwards", both[writer].replace("notes.md", "line one", "line two"))
    assert_text(both[writer], "notes.md", "line two\n")


@pytest.mark.parametrize(("holder", "writer"), PAIRS, ids=lambda name: name)
def test_a_killed_peer_of_the_other_kind(both: dict[str, Client], holder: str, writer: str) -> None:
    coordinator = both[holder].ground.coordinator
    with both[holder].held("holding", both[holder].create("new.md", "new\n")) as live:
        (own,) = coordinator.sessions()
        coordinator.lock(own["id"], "notes.md", "never to be released")
        live.kill()
    both[writer].run("writing", both[writer].replace("notes.md", "line one", "line two"))
    assert_text(both[writer], "notes.md", "line two\n")
