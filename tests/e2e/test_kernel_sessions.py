"""In every kind of session, commands are held, and work as before otherwise."""

import pytest

from .checks import assert_text, assert_untouched
from .client import Client
from .clients import ClaudeCode, Codex
from .kernel_work import ON, WORDS, fill, nothing_left

HELD = "Read-only file system: 'notes.md'"


@pytest.mark.ways("install")
def test_a_session_that_is_resumed(client: Client) -> None:
    """Includes the command's exit status, its folder, its quotes, and its input."""
    ground = client.ground
    fill(ground, "notes.md", "other.md")
    (ground.checkout / "ends.py").write_text(
        'import sys\nprint(sys.argv[1:], sys.stdin.read())\nexec(open("fix.py").read())\nsys.exit(3)\n'
    )
    ground.coordinator.peer_lock("notes.md")
    quoted = """printf 'a\\nb' | python3 ends.py 'one "two"' "$HOME" '' $'it\\'s' """
    with nothing_left(ground):
        led = "cd sub && (cd .. && python3 fix.py)"
        session = client.run("work", *map(client.shell, (quoted, led, "pwd")), env=ON).session
        first, second, folder = client.results("work")
        assert HELD in first and f"""['one "two"', '{ground.home}', '', "it's"] a\nb""" in first
        assert "xit code 3" in first or "exited with code 3" in first
        assert HELD in second
        if isinstance(client, ClaudeCode):  # Claude Code stays in the folder of its last command
            assert folder.strip().endswith("/sub")
        client.run("again", client.shell(f"cd {ground.checkout} && python3 fix.py"), resume=session, env=ON)
    assert HELD in client.last_result("again") and WORDS in client.said("again")
    assert_untouched(client, "notes.md")
    assert_text(client, "other.md", "spoilt\n")


@pytest.mark.ways("install")
def test_a_sub_agent(client: Client) -> None:
    """It is held as its session is. In Codex its model calls tools from a program in JavaScript, with the same hooks."""
    if isinstance(client, Codex):
        client.model = client.code_model
    fill(client.ground, "notes.md", "other.md")
    client.ground.coordinator.peer_lock("notes.md")
    client.models.script("errand", client.shell("python3 fix.py"))
    client.run("work", *client.sub_agent("errand"), env=ON)
    assert HELD in client.last_result("errand")
    assert_untouched(client, "notes.md")
    assert_text(client, "other.md", "spoilt\n")
