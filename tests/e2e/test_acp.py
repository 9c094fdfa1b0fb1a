"""`swarm-mcp acp`: an editor of the tests' own drives real agents through it, none of them with a plugin of ours."""

import json
from collections.abc import Iterator

import pytest
from support.acp_editor import AcpEditor

from swarm_mcp.play.clients import SERVER
from swarm_mcp.play.models import play

from .checks import assert_text, assert_untouched
from .client import Call
from .ground import Ground, wait_for
from .marketplace import Marketplace
from .more import OtherClient, prepared

# The arguments that make an agent of the client. Each asks for permission before it writes, or has the editor write.
AGENTS = {
    "gemini": ("--acp", "-m", "gemini-2.5-pro"),
    "qwen": ("--acp", "-m", "scripted"),
    "opencode": ("acp",),
    "kilo": ("acp",),
    "copilot": ("--acp",),
    "grok": ("agent", "stdio"),
}
CASES = [pytest.param(name, marks=pytest.mark.xdist_group(f"acp-{name}"), id=name) for name in AGENTS]


@pytest.fixture(params=CASES)
def agent(request: pytest.FixtureRequest) -> Iterator[OtherClient]:
    with prepared(request.param) as client:
        if request.param in ("opencode", "kilo"):
            file = client.ground.home / client.settings[0]
            file.write_text(json.dumps({**json.loads(file.read_text()), "permission": {"edit": "ask", "bash": "ask"}}))
        yield client


def editor(ground: Ground, agent: OtherClient, *more: str) -> AcpEditor:
    command = ["swarm-mcp", "acp", "--", agent.executable, *AGENTS[agent.name], *more]
    return AcpEditor(ground.start(command, talk=True), ground.checkout)


def turn(editor: AcpEditor, agent: OtherClient, script: str, *calls: Call) -> None:
    """Have the agent make these calls in one turn. It may end the turn at a call that is refused."""
    agent.models.script(script, *calls)
    editor.prompt(play(script))


def test_a_locked_file_is_not_written_and_the_model_reads_why(agent: OtherClient) -> None:
    ground = agent.ground
    ground.coordinator.peer_lock("notes.md")
    with_agent = editor(ground, agent)
    (own,) = ground.coordinator.sessions()
    assert "origin:acp" in own["label"]
    turn(with_agent, agent, "edit", *agent.change("notes.md", "line one", "line two"))
    turn(with_agent, agent, "create", agent.create("free.md", "free\n"))
    assert_untouched(agent, "notes.md")
    assert_text(agent, "free.md", "free\n")
    turn(with_agent, agent, "command", agent.shell("echo spoilt > notes.md"))
    turn(with_agent, agent, "other", agent.shell("echo another > other.md"))
    assert_untouched(agent, "notes.md")
    assert_text(agent, "other.md", "another\n")
    said = agent.said("other")
    assert said.count("swarm lock blocked") >= 2 and "careful surgery" in said, said[-3000:]
    assert not [one for one in with_agent.asked if one["method"].startswith("fs/write") and "notes.md" in str(one)]
    with_agent.close()
    assert wait_for(lambda: not ground.coordinator.sessions(), 60), ground.coordinator.sessions()


def test_another_server_does_not_write_a_locked_file(agent: OtherClient) -> None:
    """OpenCode and Kilo ask for it where a person wants that; the others do by themselves."""
    ground = agent.ground
    ground.env["QWEN_CODE_LEGACY_MCP_BLOCKING"] = "1"  # else its turn begins before it has the tools of the server
    if agent.name in ("opencode", "kilo"):
        file = ground.home / agent.settings[0]
        file.write_text(json.dumps({**json.loads(file.read_text()), "permission": "ask"}))
    agent.add_server("files", SERVER["command"], SERVER["args"])
    ground.coordinator.peer_lock("notes.md")
    trusting = ("--skip-trust",) if agent.name == "gemini" else ()  # without it Gemini leaves MCP servers out
    with_agent = editor(ground, agent, *trusting)
    for script, path in (("locked", "notes.md"), ("free", "free.md")):
        given = {"path": agent.absolute(path), "content": f"{script}\n"}
        turn(with_agent, agent, script, *agent.server_tool("files", "write_file", given))
    assert_untouched(agent, "notes.md")
    assert_text(agent, "free.md", "free\n")
    assert "swarm lock blocked" in agent.said("free"), agent.said("free")[-3000:]
    asked = [one["params"] for one in with_agent.asked if one["method"] == "session/request_permission"]
    assert asked and "notes.md" not in str(asked), "the person was asked about a call that is refused"
    with_agent.close()


def test_a_lock_of_its_own_session_lets_it_write(agent: OtherClient) -> None:
    ground = agent.ground
    with_agent = editor(ground, agent)
    (own,) = ground.coordinator.sessions()
    ground.coordinator.lock(own["id"], "notes.md", "mine")
    turn(with_agent, agent, "edit", *agent.change("notes.md", "line one", "line two"))
    assert_text(agent, "notes.md", "line two\n")
    with_agent.close()
    assert wait_for(lambda: not ground.coordinator.locks(), 60), ground.coordinator.locks()


def test_gemini_with_our_plugin_is_checked_as_one_session() -> None:
    """It runs the plugin's hooks at a session's start, and none before its calls."""
    with prepared("gemini") as agent:
        Marketplace(agent.ground, "install").install("gemini")
        agent.ground.coordinator.peer_lock("notes.md")
        with_agent = editor(agent.ground, agent)
        turn(with_agent, agent, "edit", *agent.change("notes.md", "line one", "line two"))
        assert_untouched(agent, "notes.md")
        (own,) = agent.ground.coordinator.sessions()
        assert "origin:gemini" in own["label"]
        with_agent.close()


def test_the_write_lands_where_the_store_is_broken(agent: OtherClient) -> None:
    agent.ground.store.write_text("garbage" * 1000)
    with_agent = editor(agent.ground, agent)
    turn(with_agent, agent, "edit", *agent.change("notes.md", "line one", "line two"))
    assert_text(agent, "notes.md", "line two\n")
    with_agent.close()
