"""The labels of sessions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.requirement import requirement

from swarm_hook_core.labels import compose, same_circle, short_session, token

ID = "abcdef12-3456-7890"
PLAIN = "claude-code platform:cli origin:claude-code session:abcdef12"


@pytest.mark.parametrize(
    ("given_facts", "label"),
    [
        ({}, PLAIN),
        ({"identity": "work"}, f"identity:work {PLAIN}"),
        (
            {"identity": "work", "mode": "gateway", "role": "planner"},
            "identity:work claude-code platform:cli mode:gateway role:planner origin:claude-code session:abcdef12",
        ),
        ({"role": "implementer"}, "claude-code platform:cli role:implementer origin:claude-code session:abcdef12"),
        ({"mode": "worker", "role": ""}, PLAIN),
        ({"platform": "telegram"}, "claude-code platform:telegram origin:claude-code session:abcdef12"),
        ({"override": "role:x topic:y", "identity": "work"}, "identity:work role:x topic:y session:abcdef12"),
        ({"override": "identity:zz role:x", "identity": "work"}, "identity:zz role:x session:abcdef12"),
        ({"override": "a session:abcdef12"}, "a session:abcdef12"),
        ({"override": "a"}, "a session:abcdef12"),
    ],
)
def test_the_words_of_a_label(given_facts: dict[str, str], label: str) -> None:
    assert compose("claude-code", ID, **given_facts) == label


@pytest.mark.parametrize(
    ("session_id", "short"),
    [
        ("", ""),
        ("session-123", "session1"),
        ("a-b", "ab"),
        ("../../etc/x", "etcx"),
        ("a b\nrole:planner", "abrolepl"),
        ("äöü１２３", ""),
        ("01a20081-270c-7251", "01a20081"),
    ],
)
def test_the_short_session(session_id: str, short: str) -> None:
    assert short_session(session_id) == short
    expected = "codex platform:cli origin:codex" + (f" session:{short}" if short else "")
    assert compose("codex", session_id) == expected


words = st.text("abcXYZ019_.-", min_size=1, max_size=12)


@given(st.text(), st.just("") | words, st.sampled_from(["worker", "gateway"]), st.just("") | words)
@requirement("P-19")
def test_a_composed_label_says_exactly_what_went_in(session_id: str, identity: str, mode: str, role: str) -> None:
    label = compose("codex", session_id, identity, mode, role)
    assert label.split(" ") == label.split(), "one blank between words, none around them"
    assert (token(label, "identity"), token(label, "role"), token(label, "origin")) == (identity, role, "codex")
    assert token(label, "mode") == ("gateway" if mode == "gateway" else "")
    assert token(label, "session") == short_session(session_id)
    assert len(label.split()) == 3 + bool(identity) + (mode == "gateway") + bool(role) + bool(short_session(session_id))


@given(st.text(), st.just("") | words, st.text().filter(str.split))
@requirement("P-19")
def test_an_override_keeps_its_words_and_gets_what_it_lacks(session_id: str, identity: str, override: str) -> None:
    label = compose("codex", session_id, identity, override=override)
    given_words, short = override.split(), short_session(session_id)
    before = [f"identity:{identity}"] if identity and not any(w.startswith("identity:") for w in given_words) else []
    after = [f"session:{short}"] if short and not any(w.startswith("session:") for w in given_words) else []
    assert (label.split(" ") if label else []) == before + given_words + after


@pytest.mark.parametrize(
    ("label", "key", "value"),
    [
        ("identity:a role:b", "identity", "a"),
        ("xidentity:a", "identity", ""),
        ("identity:", "identity", ""),
        ("role:a role:b", "role", "a"),
        ("identity:a:b", "identity", "a:b"),
        ("", "identity", ""),
        (None, "identity", ""),
    ],
)
def test_a_token(label: str, key: str, value: str) -> None:
    assert token(label, key) == value


@pytest.mark.parametrize(
    ("mine", "theirs", "shown"),
    [("", "", True), ("a", "", True), ("", "a", True), ("a", "a", True), ("a", "b", False), ("a", "A", False)],
)
def test_only_two_different_identities_hide_from_each_other(mine: str, theirs: str, shown: bool) -> None:
    assert same_circle(mine, theirs) is shown
