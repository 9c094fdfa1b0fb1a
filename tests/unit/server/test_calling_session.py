"""The session of a call by a plugin that can name it only in an argument."""

import pytest

from swarm_mcp.agents.harness.environment import without_session
from swarm_mcp.server.calling_session import with_session

SETTING = "SWARM_MCP_SESSION_ARGUMENT"


def test_a_server_that_the_plugin_has_started_heeds_the_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "1")
    given = {"file": "f", "_session": "ses_1"}
    assert with_session(given, {"progressToken": 1}) == ({"file": "f"}, {"progressToken": 1, "sessionId": "ses_1"})
    assert with_session({"_session": 7}, {}) == ({}, {})
    assert with_session({"file": "f"}, {"sessionId": "x"}) == ({"file": "f"}, {"sessionId": "x"})


def test_every_other_passes_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SETTING, raising=False)
    assert with_session({"_session": "ses_1", "file": "f"}, {}) == ({"file": "f"}, {})
    assert without_session({SETTING: "1", "HOME": "/h"}) == {"HOME": "/h"}, "a worker's server is another"
