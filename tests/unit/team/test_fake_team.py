"""The server that tests of machines ask instead of PostgreSQL answers about documents as `protocol` says."""

import pytest
from support.fake_team import FakeTeam

from swarm_mcp.team.protocol import GRACE, MESSAGE, REFUSED, STALE, TASK, UNKNOWN_SESSION, VALUE, item

pytestmark = pytest.mark.thorough


def test_documents_in_memory():
    team = FakeTeam()
    laptop, sandbox = team.server("laptop"), team.server("sandbox")
    for one in (laptop, sandbox):
        one.hello("app")
        one.beat("app", 0, 0, [{"session": f"{one.machine}-s", "label": "", "lease": 60}])

    def put(machine, *given, **more):
        return machine.put("app", [item(*given, **more)], 0, 0)[0]

    first = put(laptop, VALUE, "k", 0, "a")
    assert first["ok"] and put(laptop, VALUE, "k", 0, "a") == first
    late = put(sandbox, VALUE, "k", 0, "a")
    assert (late["ok"], late["why"], late["version"], late["machine"]) == (False, STALE, first["version"], "laptop")
    assert put(sandbox, VALUE, "k", first["version"], "ab")["ok"]
    assert put(laptop, VALUE, "k", first["version"], "ab")["why"] == STALE

    task = put(laptop, TASK, "t", 0, {"status": "open", "assignee": None})["version"]
    claim = {"status": "claimed", "assignee": "sandbox-s"}
    assert put(sandbox, TASK, "t", task, {**claim, "assignee": "nobody"})["why"] == UNKNOWN_SESSION
    team.grace = 1.0
    assert put(sandbox, TASK, "t", task, claim)["why"] == GRACE
    team.grace = 0.0
    assert put(sandbox, TASK, "t", task, claim)["ok"]
    assert put(laptop, TASK, "t", task, {"status": "claimed", "assignee": "laptop-s"})["body"] == claim

    assert put(laptop, MESSAGE, "m", 0, {"sender": "sandbox-s"})["why"] == REFUSED
    sent = put(laptop, MESSAGE, "m", 0, {"sender": "laptop-s"})
    assert put(laptop, MESSAGE, "m", sent["version"], {"sender": "laptop-s"}) == sent
    assert put(laptop, MESSAGE, "m", 0, None)["why"] == REFUSED
    assert put(laptop, VALUE, "k2", 0, "\0")["why"] == REFUSED and put(laptop, VALUE, "k2", 0, "\\u0000")["ok"]

    assert put(laptop, VALUE, "k2", 1, None)["why"] == STALE
    gone = laptop.look("app")["all"]["documents"][-1]
    assert put(laptop, VALUE, "k2", gone["version"], None)["ok"] and put(laptop, VALUE, "k2", 0, None)["version"] == 0
    kinds = [change["kind"] for change in sandbox.beat("app", 1, 7)["news"]["changes"]]
    assert kinds == ["session", *["document"] * 6, "document_gone"]
    assert [row["key"] for row in sandbox.hello("app")["news"]["all"]["documents"]] == ["k", "t", "m"]
    assert "documents" not in laptop.mine("app")
