"""Claims as a check meets them: locks of sessions that are there."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from support.sessions import new_session

from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.lookup import Peers
from swarm_hook_core.traces import claims
from swarm_hook_core.traces.claimed import Claimed
from swarm_mcp.store import Store
from swarm_mcp.store.sessions import Registration

KEY = "/r/a.py"


def joined(store: Store, folder: Path, runtime: str = "codex") -> tuple[str, str]:
    """A session's own id and that of its instance."""
    session_id = new_session()
    row = store.instances.register(Registration(str(folder), runtime=runtime, session_id=session_id))
    return session_id, row.id


def claimed(store: Store, session_id: str, agent: str = "") -> Claimed:
    call = ToolCall("Edit", {}, session_id, agent=agent)
    return Claimed("codex", call, store.as_hooks_read_it(), time.time_ns())


def test_a_claim_of_another_session_is_met_as_a_lock_of_its_instance(tmp_path: Path) -> None:
    with Store() as store:
        (me, _), (peer, holder) = joined(store, tmp_path), joined(store, tmp_path)
        theirs, mine = claimed(store, peer), claimed(store, me)
        theirs.claim([(KEY, KEY)])
        mine.claim([(KEY, KEY), ("/r/b", "/r/b")])
        assert [one.key for one in mine.own] == ["/r/b"]
        (held,) = Peers(mine.reader, "x", time.time())._live(mine.on([KEY, "/r/b"]))
        assert (held.file, held.instance_id, held.mode, held.note) == (KEY, holder, "auto", "editing it in this turn")
        assert [held.file for held in theirs.under(["/r"])] == ["/r/b"]
        mine.take_back()
        later = claimed(store, peer)
        assert later.under(["/r"]) == [] and later.on([KEY]) == []


def test_what_one_agent_has_claimed_is_another_one_s_of_its_session(tmp_path: Path) -> None:
    with Store() as store:
        me, own_id = joined(store, tmp_path)
        one, other = claimed(store, me, "a"), claimed(store, me, "b")
        one.claim([(KEY, KEY)])
        (held,) = Peers(other.reader, own_id, time.time(), "b")._live(other.on([KEY]))
        assert (held.instance_id, held.agent) == (own_id, "a")


def test_who_has_met_a_claim_is_denied_though_it_ends_meanwhile(tmp_path: Path) -> None:
    """Else it would write without a claim of its own, and a third session could claim the file."""
    with Store() as store:
        (me, _), (peer, _) = joined(store, tmp_path), joined(store, tmp_path)
        theirs, mine = claimed(store, peer), claimed(store, me)
        theirs.claim([(KEY, KEY)])
        mine.claim([(KEY, KEY)])
        theirs.take_back()
        assert len(mine.on([KEY])) == 1 and mine.on(["/r/b"]) == []


def test_a_folder_is_not_claimed(tmp_path: Path) -> None:
    with Store() as store:
        (me, _) = joined(store, tmp_path)
        mine = claimed(store, me)
        mine.claim([(str(tmp_path), str(tmp_path))])
        assert mine.own == [] and claims.standing() == []


@pytest.mark.parametrize("how", ["never registered", "left"])
def test_a_claim_of_a_session_that_is_not_there_is_void(how: str, tmp_path: Path) -> None:
    with Store() as store:
        (me, _), (peer, instance_id) = joined(store, tmp_path), joined(store, tmp_path)
        claimed(store, peer if how == "left" else new_session()).claim([(KEY, KEY)])
        if how == "left":
            store.instances.remove(instance_id)
        mine = claimed(store, me)
        assert mine.on([KEY]) == []
        mine.claim([(KEY, KEY)])
        assert len(mine.own) == 1 and [one.session_id for one in claims.standing()] == [me]
