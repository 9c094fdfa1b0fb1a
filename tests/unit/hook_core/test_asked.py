"""`swarm-mcp why` gives the check's answer for each kind of write, and leaves nothing behind."""

import json
import os
from pathlib import Path

import pytest
from support.sessions import fault_lines
from support.traced import Player, git

from swarm_mcp.cli.main import main
from swarm_mcp.locking.explaining import verdict
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

KINDS = {
    "edit": ("apply_patch", {"command": "*** Begin Patch\n*** Update File: notes.md\n@@\n-gamma\n+x\n*** End Patch\n"}),
    "overwrite": ("Bash", {"command": "echo x > notes.md"}),
    "remove": ("Bash", {"command": "rm notes.md"}),
}
# A state -> the level, and the kinds of writes that are refused.
STATES = {
    "nothing": ("keep", set()),
    "a change of a peer": ("keep", {"overwrite", "remove"}),
    "a change of a peer, below keep": ("notice", set()),
    "a change that this session has read": ("keep", set()),
    "a committed change": ("keep", set()),
    "a change of its own": ("keep", set()),
    "a write that is on its way": ("keep", {"overwrite", "remove"}),
    "a lock": ("keep", {"edit", "overwrite", "remove"}),
    "a turn of a peer": ("turn", {"edit", "overwrite", "remove"}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", STATES)
def test_what_it_says_is_what_the_check_says(state: str, kind: str, work: Path, monkeypatch, limits) -> None:
    level, refused = STATES[state]
    monkeypatch.setenv("SWARM_AUTO", level)
    limits("swarm_hook_core.traces.meetings", WAIT_SECONDS=0.05)
    me, peer = Player("codex", work, "identity:p me"), Player("codex", work, "identity:p peer")
    me.runs("cat notes.md")
    if "change" in state and "own" not in state:
        peer.edits("notes.md", "beta", "PEER")
    if "read" in state:
        me.runs("cat notes.md")
    elif "committed" in state:
        git(work, "commit", "-qam", "done")
    elif "own" in state:
        me.edits("notes.md", "beta", "MINE")
    elif "lock" in state:
        with Store() as store:
            store.locks.acquire(peer.row, str(work / "notes.md"))
    elif "turn" in state:
        peer.edits("notes.md", "beta", "PEER")
    elif "way" in state:
        assert peer.denied("Bash", {"command": "sleep 9; echo x > notes.md"}) == ""
    before = _state_files()
    with Store(read_only=True) as store:
        session = store.instances.get(me.row["id"])
        told = verdict(store, session, str(work / "notes.md"), viewer="p")
        again = verdict(store, session, str(work / "notes.md"), viewer="p")
    assert _state_files() == before, "nobody has made a call"
    assert {name for name, one in told["kinds"].items() if not one["allowed"]} == refused
    assert {name: one["allowed"] for name, one in again["kinds"].items()} == {
        name: one["allowed"] for name, one in told["kinds"].items()
    }
    assert told["allowed"] is (not refused) and bool(told["reason"]) is bool(refused)
    if refused:
        assert told["holder_id"] == peer.row["id"]
    reason = me.denied(*KINDS[kind])
    assert bool(reason) is (kind in refused), reason


def _state_files() -> dict[str, int]:
    root = Path(os.environ["SWARM_STATE_DIR"])
    return {str(path): path.stat().st_size for path in sorted(root.rglob("*")) if path.is_file()}


def test_why_says_of_each_kind_what_comes_of_it(work: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(work)
    me, peer = Player("codex", work, "identity:p me"), Player("codex", work, "identity:p peer")
    peer.edits("notes.md", "beta", "PEER")
    assert main(["why", "notes.md", "--as", me.row["id"]]) == 0
    said = capsys.readouterr().out
    name = f"peer {peer.row['id'][:8]}"
    assert f"to edit it would go ahead for me {me.row['id'][:8]}" in said
    assert (
        f"to overwrite or remove it would be refused: swarm: Write would overwrite notes.md, changed by {name}" in said
    )
    assert "the model would be told: swarm: " in said and f"was changed by {name}" in said
    assert main(["why", "notes.md", "--as", peer.row["id"]]) == 0
    assert "would go ahead" in (own := capsys.readouterr().out) and "refused" not in own
    monkeypatch.setenv("AGENT_IDENTITY", "q")
    assert main(["why", "notes.md"]) == 0
    strange = capsys.readouterr().out
    assert "a session that holds nothing" in strange and "refused" in strange and "peer" not in strange
    assert main(["why", "notes.md", "--json", "--as", me.row["id"]]) == 0
    told = json.loads(capsys.readouterr().out)["write"]
    assert told["allowed"] is False and told["kinds"]["edit"]["allowed"] is True and told["holder_id"] == peer.row["id"]
    assert fault_lines() == []
