"""Looks at another session's change: a read before the change does not count."""

from support.world import World


def test_a_read_after_the_check_and_before_the_write_saw_nothing(world: World) -> None:
    """A hook runs before its call: meanwhile another session may read the file as it was."""
    writer, reader = world.session("claude-code"), world.session("codex")
    assert not writer.ask("Bash", {"command": "printf 'all new\\n' > notes.md"}).denied
    assert reader.bash("cat notes.md").silent
    world.write("notes.md", "all new\n")
    # another text than the writer's, so that a whole write would destroy that
    assert reader.bash("printf 'of its own\\n' > notes.md").denied
    assert reader.bash("cat notes.md").silent and reader.bash("printf 'of its own\\n' > notes.md").silent
