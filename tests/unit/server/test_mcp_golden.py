"""The MCP server's answers, word for word, in every protocol version and to malformed requests."""

import json

import pytest
from support.mcp_golden import answers, conversations, place, without_tools

pytestmark = pytest.mark.slow

CONVERSATIONS = conversations()


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_answers_are_as_recorded(name: str) -> None:
    tools = json.loads(place("tools").read_text(encoding="utf-8"))
    recorded = json.loads(place(name).read_text(encoding="utf-8"))
    found = without_tools(answers(CONVERSATIONS[name]), tools)
    for now, before in zip(found, recorded):
        assert now == before
    assert len(found) == len(recorded)
