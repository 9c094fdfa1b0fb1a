"""``swarm-mcp protect off --for``: everything of swarm is silent in that checkout, for that time, by a person's word."""

import pytest
from support.altered import Clocks
from support.world import World, some_time_passes

from swarm_hook_core import settings
from swarm_mcp.guard.check import refusals

NOTES, FOR = "notes.md", ("protect", "off", "--for", "1h")


@pytest.fixture(autouse=True)
def _a_person_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")


@pytest.mark.parametrize("runtime", ["codex", "claude-code"])
def test_nothing_is_denied_or_said_until_it_ends_by_itself(runtime: str, world: World, clocks: Clocks) -> None:
    peer, me = world.session("codex"), world.session(runtime)
    world.lock(peer, NOTES)
    peer.edit("other.md", "beta", "theirs")
    world.write("sub/deep.md", "a person's\n")
    some_time_passes()
    commands = ("git checkout .", f"rm {NOTES}", "echo x > other.md", "git stash")
    assert all(me.ask("Bash", {"command": command}).denied for command in commands)
    world.git("add", NOTES)
    (world.repo / NOTES).write_text("x\n")
    world.git("add", NOTES)
    assert refusals("pre-commit", str(world.repo))

    said = world.ground.swarm(*FOR)
    assert said.code == 0 and "checks nothing and says nothing here, locks included" in said.out
    for command in commands:
        assert me.ask("Bash", {"command": command}).silent, command
    assert me.edit(NOTES, "x", "mine").silent
    assert refusals("pre-commit", str(world.repo)) == []
    assert me.fire("session_start", "SessionStart.startup").out == ""

    clocks.ahead(wall=3601)  # the hour is over
    assert me.ask("Bash", {"command": f"rm {NOTES}"}).denied and refusals("pre-commit", str(world.repo))


def test_another_checkout_is_not_silent(world: World, tmp_path) -> None:
    peer = world.session("codex")
    world.lock(peer, NOTES)
    elsewhere = world.session("claude-code", folder=tmp_path)
    assert world.ground.swarm(*FOR).code == 0
    assert elsewhere.ask("Bash", {"command": f"rm {world.repo / NOTES}"}).denied


def test_it_is_refused_to_agents(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    peer, me = world.session("codex"), world.session("claude-code")
    world.lock(peer, NOTES)
    assert me.ask("Bash", {"command": "swarm-mcp protect off --for 1h"}).denied
    monkeypatch.setenv("CLAUDECODE", "1")
    done = world.ground.swarm(*FOR)
    assert done.code == 1 and "an agent may not do that" in done.err
    assert me.ask("Bash", {"command": f"rm {NOTES}"}).denied


def test_its_own_settings_stay_protected(world: World) -> None:
    me = world.session("claude-code")
    assert world.ground.swarm(*FOR).code == 0
    assert me.ask("Bash", {"command": f"echo x > {settings.config_path()}"}).denied
