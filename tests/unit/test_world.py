"""The tests' own face of the product: sessions, persons and verbs act on one checkout."""

import pytest
from support.sessions import RUNTIMES
from support.world import World


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_world_has_sessions_persons_and_verbs(runtime: str, world: World) -> None:
    me, peer = world.session(runtime), world.session("codex")
    assert peer.edit("notes.md").silent and "PEER" in world.read("notes.md")
    verdict = me.bash("git checkout .")
    assert verdict.denied and "notes.md" in verdict.words and "PEER" in world.read("notes.md")
    world.commit()
    assert me.write("notes.md", "mine\n").silent and world.read("notes.md") == "mine\n"
    assert world.swarm("lock", "other.md", as_=peer).code == 0
    assert me.edit("other.md").denied and world.swarm("lock", "other.md", as_=me).code == 1
    world.write("sub/deep.md", "a person's\n")
    assert world.git("status", "--short").split() == ["M", "notes.md", "M", "sub/deep.md"]
    assert me.fire("pre_tool_use", "PreToolUse.Bash").reason == ""
