"""The first words of a session's prompt are kept for people to read, and go with the session."""

import os

import pytest
from support.world import World

from swarm_hook_core import prompts, session_events
from swarm_hook_core.hooks import SessionEvent, session_event
from swarm_hook_core.traces import traces_dir
from swarm_mcp.store import Store


def turn(me, prompt: str, agent: str = "") -> None:
    event = SessionEvent(me.session_id, str(me.folder), "UserPromptSubmit", agent, prompt=prompt)
    session_events.takes_turn(me.core, event)


def test_the_last_prompt_is_kept_short_and_private_and_goes_with_its_session(world: World):
    me = world.session("codex")
    turn(me, "first")
    turn(me, "mend   the\ntables " + "x" * 500)
    turn(me, "of a subagent", agent="a1")
    turn(me, "")
    found = prompts.first_words("codex", me.session_id)
    assert found.startswith("mend the tables xxx") and len(found) == prompts.LONGEST
    path = prompts._path("codex", me.session_id)
    assert os.stat(path).st_mode & 0o077 == 0 and os.stat(os.path.dirname(path)).st_mode & 0o077 == 0
    session_events.ends(me.core, SessionEvent(me.session_id, str(me.folder), "SessionEnd"))
    assert prompts.first_words("codex", me.session_id) == ""


def test_words_that_a_killed_session_has_left_go_after_a_day(world: World):
    os.makedirs(traces_dir())  # as after any write
    prompts.note("codex", "old", "left")
    prompts.note("codex", "new", "there")
    os.utime(prompts._path("codex", "old"), (1, 1))
    with Store() as store:
        assert store.cleanup.some()
    assert (prompts.first_words("codex", "old"), prompts.first_words("codex", "new")) == ("", "there")


@pytest.mark.parametrize("given, found", [("mend", "mend"), (None, ""), (7, ""), (["a"], "")])
def test_a_prompt_of_another_type_is_none(given, found):
    assert session_event({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": given}).prompt == found
