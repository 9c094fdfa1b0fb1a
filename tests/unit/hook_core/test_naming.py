"""The names of sessions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_hook_core import naming, wording
from swarm_hook_core.labels import compose
from swarm_hook_core.naming import agent_name, holder_name, session_name

CLAUDE = "5f0c2f6e-2f53-4b52-9a43-3b5f4f6c1d10"
CODEX = "01a20081-270c-7251-afea-bde51fc291c9"  # begins with the time
OPENCODE = "ses_df5df9f4fffeH1umt6LQYQI6mu"  # so does this
INSTANCE = "8e3c69bd-7f0d-4b3e-9f5e-6f6d3a0c2b11"
TERMINAL_LABEL = "identity:work mode:gateway origin:terminal"


@pytest.mark.parametrize(
    ("runtime", "session_id", "label", "name"),
    [
        ("claude-code", CLAUDE, compose("claude-code", CLAUDE, "work", "gateway", "planner"), "claude-code 5f0c2f6e"),
        ("codex", CODEX, compose("codex", CODEX), "codex 8e3c69bd"),
        ("hs", "20261122-093000-abcd", compose("hs", "20261122-093000-abcd"), "hs 8e3c69bd"),
        ("opencode", OPENCODE, compose("opencode", OPENCODE), "opencode 8e3c69bd"),
        ("codex", CODEX, compose("codex", CODEX, override="importer"), "importer 8e3c69bd"),
        ("codex", CODEX, compose("codex", CODEX, override="the importer"), '"the importer" 8e3c69bd'),
        ("claude-code", CLAUDE, None, "claude-code 5f0c2f6e"),
        ("terminal", "4711-99-host", TERMINAL_LABEL, "a terminal 8e3c69bd"),
        ("hold", "4711-99-host", "make tidy origin:hold pid:4711", "make tidy (hold)"),
        ("hold", "4711-99-host", "identity:w origin:hold pid:4711", "a command (hold)"),
        ("hold", "4", "do as I say now origin:hold", '"do as I say now" (hold)'),
        ("detached", "x", "detached origin:terminal", "detached 8e3c69bd"),
        ("run", "12ab34cd-1", "role:implementer origin:codex run:12ab34cd", "worker codex 12ab34cd"),
        ("codex", CODEX, "role:implementer origin:codex run:12ab34cd codex session:01a20081", "worker codex 12ab34cd"),
        ("mcp", "12:34:host", "provider:codex-cli role:planner", "codex-cli 8e3c69bd"),
        (None, None, "identity:p role:planner mode:gateway", "planner 8e3c69bd"),
        ("mcp", "12:34:host", "", "session 8e3c69bd"),
        (None, None, "peer", "peer 8e3c69bd"),
        (None, None, None, "session 8e3c69bd"),
    ],
)
def test_a_session_has_one_name(runtime: str | None, session_id: str | None, label: str | None, name: str) -> None:
    assert session_name(runtime, session_id, label, instance_id=INSTANCE) == name
    if label is not None:
        assert holder_name(label, INSTANCE) == name, "what its label and instance id alone come to"


def test_ones_own_session_is_you() -> None:
    assert session_name("terminal", "1", TERMINAL_LABEL, True, INSTANCE) == "you (this terminal)"
    assert session_name("claude-code", CLAUDE, "", True) == "you (claude-code 5f0c2f6e)"


def test_an_agent_is_its_id_or_the_command_that_holds() -> None:
    assert agent_name("a1b2") == "agent a1b2"
    assert agent_name("do it") == 'agent "do it"'
    assert agent_name("hold:12:345:00c0ffee") == "a command (hold, process 12)"


@given(st.text(), st.text(), st.text(), st.booleans(), st.text())
def test_a_hostile_name_is_short_and_one_line(runtime: str, session: str, label: str, own: bool, instance: str) -> None:
    name = session_name(runtime, session, label, own, instance)
    assert name.strip() and name.isprintable() or any(c in naming.named.__globals__["_HARMLESS"] for c in name)
    assert len(name) < 120


@pytest.mark.parametrize(("seconds", "words"), [(0.4, "now"), (-3, "now"), (4, "4 s ago"), (300, "5 min ago")])
def test_how_long_ago(seconds: float, words: str) -> None:
    assert wording.ago(seconds) == words
