"""Identities hide names and reasons from each other, but never the fact of a lock."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fixtures import Ground

from swarm_hook_core.labels import same_circle, token
from swarm_mcp.errors import LockRefused

SECRETS = ("secret-name", "secret-note", "identity:b")


@pytest.fixture
def sides(ground: Ground) -> tuple[Ground, dict, dict]:
    """A session of identity a, and one of identity b that holds a file."""
    mine = ground.session("1", "identity:a me")
    theirs = ground.session("2", "identity:b secret-name")
    ground.lock(theirs, "f", "secret-note")
    return ground, mine, theirs


def test_the_command_refuses_without_saying_who_or_why(sides):
    ground, mine, theirs = sides
    shown = ground.swarm("lock", "f", "--as", mine["id"], "--json")
    assert shown.json["active"] == {"hidden": True, "reason": "cross_identity", "file": f"{ground.scope}/f"}
    text = ground.swarm("lock", "f", "--as", mine["id"])
    assert text.code == 1 and f"{ground.scope}/f" in text.err
    for secret in (*SECRETS, theirs["id"], theirs["id"][:8]):
        assert secret not in shown.out and secret not in text.err


@pytest.mark.parametrize("command", ["locks", "inspect", "status"])
@pytest.mark.parametrize("way", ["--as", "shell", "identity"])
def test_listings_show_the_file_and_nothing_else_of_the_lock(sides, monkeypatch, command: str, way: str):
    ground, mine, _ = sides
    argv = [command, "--as", mine["id"]] if way == "--as" else [command]
    if way == "shell":
        monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "1")
    if way == "identity":
        monkeypatch.setenv("AGENT_IDENTITY", "a")
    found = ground.swarm(*argv, "--json").json
    locks = json.dumps(found if command == "locks" else found["locks"])
    assert f"{ground.scope}/f" in locks
    assert not any(secret in locks for secret in SECRETS), locks
    lines = [
        line
        for line in ground.swarm(*argv).out.splitlines()
        if line.rstrip().endswith("—") or "/f" in line or " f " in line
    ]
    assert lines and not any(secret in line for secret in SECRETS for line in lines), lines


def test_ones_own_identity_and_sessions_without_one_see_everything(sides):
    ground, _, theirs = sides
    kin, plain = ground.session("3", "identity:b kin"), ground.session("4", "plain")
    for viewer in (theirs, kin, plain):
        (lock,) = ground.swarm("locks", "--json", "--as", viewer["id"]).json
        assert (lock["owner_label"], lock["content"]) == ("identity:b secret-name", "secret-note")
    for viewer in (kin, plain):
        with pytest.raises(LockRefused) as refusal:
            ground.lock(viewer, "f")
        assert refusal.value.active["owner"]["label"] == "identity:b secret-name"


def test_hidden_locks_keep_their_pane_to_themselves(ground: Ground):
    mine = ground.session("1", "identity:a me")
    argv = [
        "register",
        "--runtime",
        "codex",
        "--session-id",
        "2",
        "--label",
        "identity:b x",
        "--lease-seconds",
        "60",
        "--pane",
        "p_9",
    ]
    theirs = ground.swarm(*argv, "--json").json
    ground.lock(theirs, "f")
    assert "p_9" not in ground.swarm("locks", "--json", "--as", mine["id"]).out
    assert "p_9" in ground.swarm("locks", "--json", "--as", theirs["id"]).out


WORD = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":"), min_size=1, max_size=6)


@given(st.lists(st.one_of(WORD, WORD.map(lambda word: f"identity:{word}"))), st.lists(WORD))
def test_the_first_identity_word_counts(words: list[str], blanks: list[str]):
    label = "  ".join(words)
    named = [word.removeprefix("identity:") for word in words if word.startswith("identity:")]
    assert token(label, "identity") == (named[0] if named else "")


@given(st.sampled_from(["", "a", "b", "A"]), st.sampled_from(["", "a", "b", "A"]))
def test_only_two_different_identities_are_strangers(mine: str, theirs: str):
    assert same_circle(mine, theirs) == same_circle(theirs, mine) == (not mine or not theirs or mine == theirs)
