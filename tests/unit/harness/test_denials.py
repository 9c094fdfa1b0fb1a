"""The facts of a refusal are read back from the hooks' words, in every form."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_hook_core import denial, storms
from swarm_hook_core.denial import Denial as Refusal
from swarm_hook_core.lookup import Held
from swarm_hook_core.wording import holder, may_write, reason
from swarm_mcp.agents.harness.denials import Denial, denial_in, reason_in

pytestmark = pytest.mark.slow

NOW = 1_790_000_000
LABEL = "identity:p claude-code platform:cli origin:claude-code session:0c0ffee0"
PATHS = st.text(st.characters(codec="utf-8").filter(str.isprintable), min_size=1)
NOTES = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF).filter(str.isprintable), max_size=150)
AROUND = st.sampled_from(
    ["{}", "PreToolUse:Edit hook error: {}", "error=Command blocked by PreToolUse hook: {}. Command: x"]
)
NAMES = st.sampled_from([LABEL, LABEL.replace("claude-code", "", 1), "identity:p terminal origin:terminal", "identity:p worker run:5f0c2f6e",
                         "identity:p hold origin:hold make tidy", "identity:p machine:laptop-3fa9c1 origin:codex session:12ab34cd"])  # fmt: skip


def lock(note: str, label: str = LABEL, **more) -> Held:
    """A lock on a file."""
    return Held("/src/x", "0c0ffee0-0000-4000-8000-000000000000", label, note, NOW - 90, **more)


def shown(note: str) -> str:
    """A note as it is shown: blanks between its words."""
    return " ".join(note.split())


@given(path=PATHS, note=NOTES, label=NAMES, around=AROUND, by=st.sampled_from(["", "sed -i s/a/b/ x", "tee (odd): for y"]),
       more=st.sampled_from([{}, {"mode": "shared"}, {"mode": "auto"}, {"agent": "a-1"}, {"expected_end": NOW + 60}]),
       within=st.booleans())  # fmt: skip
def test_a_refusal(path, note, label, around, by, more, within) -> None:
    held = lock(note, label, **more)
    words = reason("mcp__files__write", path, held, "p", NOW, by, within)
    assert denial_in(around.format(words)) == Denial(path, holder(held, "p")[0], shown(note))
    assert reason_in(around.format(words)).startswith(words)
    assert reason_in("failed: " + json.dumps([{"received": words}])) == words


@given(path=PATHS, note=NOTES, times=st.integers(3, 40))
def test_a_storm(path, note, times) -> None:
    held, refusal = lock(note), Refusal(path, lock(note), "")
    refusal.times = times
    session = SimpleNamespace(label="identity:p", instance_id="other")
    found = denial_in(storms._words(refusal, session, "Edit", 90, 2, NOW))
    assert found == Denial(path, holder(held, "p")[0], "", times)


@given(path=PATHS, note=NOTES, times=st.sampled_from([0, 1, 3, 12]))
def test_a_brief_refusal(path, note, times) -> None:
    """There is room for a part of the path and of the note."""
    refusal = Refusal(path, lock(note), "x" * 2000)
    refusal.times = times
    session = SimpleNamespace(label="identity:p", instance_id="other")
    denial.shorten(refusal, session, SimpleNamespace(client_tool="Edit", folder="/src"), 600)
    found = denial_in(refusal.brief)
    assert found is not None
    assert found.file in (path, f"…{path[1 - denial.PATH :]}") and found.holder == "claude-code 0c0ffee0"
    assert shown(note).startswith(found.note.rstrip("….\\")) and found.times == max(times if times > 2 else 1, 1)


@given(note=NOTES)
def test_what_may_be_written(note) -> None:
    held = lock(note)
    assert denial_in(may_write("Bash", "its words cannot be told", held, "p", "own")) == Denial(
        "/src/x", "claude-code 0c0ffee0", shown(note)
    )


def test_another_identity_stays_unnamed() -> None:
    words = reason("Edit", "x", lock("secret"), "another", NOW)
    assert denial_in(words) == Denial("x", "a session of another identity")


@pytest.mark.parametrize("text", ["", "ok", "blocked", json.dumps({"a": 1})])
def test_what_is_none(text: str) -> None:
    assert denial_in(text) is None and reason_in(text) == ""


def test_words_that_nobody_expected_are_a_refusal_all_the_same() -> None:
    found = denial_in("swarm lock blocked Edit: as never before")
    assert found == Denial() and found.line() == "denied: a locked file"


def test_the_line() -> None:
    assert Denial("x", "lead", "mine", 3).line() == "denied: x, held by lead (mine); 3 times now"
    assert Denial("x", "lead").line() == "denied: x, held by lead"
