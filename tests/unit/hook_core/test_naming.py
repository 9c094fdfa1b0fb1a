"""Names, labels and prompts of sessions, and the variables that hooks read."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.requirement import requirement
from support.world import World

from swarm_hook_core import environment, greetings, naming, session_events, wording
from swarm_hook_core.hooks import SessionEvent, session_event
from swarm_hook_core.naming import agent_name, holder_name, session_name
from swarm_hook_core.traces import traces_dir
from swarm_hook_core.untrusted_text import compose, same_circle, short_session, token
from swarm_mcp.store import Store

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


def turn(me, prompt: str, agent: str = "") -> None:
    event = SessionEvent(me.session_id, str(me.folder), "UserPromptSubmit", agent, prompt=prompt)
    session_events.takes_turn(me.core, event)


def test_the_last_prompt_is_kept_short_and_private_and_goes_with_its_session(world: World):
    me = world.session("codex")
    turn(me, "first")
    turn(me, "mend   the\ntables " + "x" * 500)
    turn(me, "of a subagent", agent="a1")
    turn(me, "")
    found = greetings.first_words("codex", me.session_id)
    assert found.startswith("mend the tables xxx") and len(found) == greetings.LONGEST
    path = greetings._path("codex", me.session_id)
    assert os.stat(path).st_mode & 0o077 == 0 and os.stat(os.path.dirname(path)).st_mode & 0o077 == 0
    session_events.ends(me.core, SessionEvent(me.session_id, str(me.folder), "SessionEnd"))
    assert greetings.first_words("codex", me.session_id) == ""


def test_words_that_a_killed_session_has_left_go_after_a_day(world: World, store: Store):
    os.makedirs(traces_dir())  # as after any write
    greetings.note("codex", "old", "left")
    greetings.note("codex", "new", "there")
    os.utime(greetings._path("codex", "old"), (1, 1))
    assert store.cleanup.some()
    assert (greetings.first_words("codex", "old"), greetings.first_words("codex", "new")) == ("", "there")


@pytest.mark.parametrize("given, found", [("mend", "mend"), (None, ""), (7, ""), (["a"], "")])
def test_a_prompt_of_another_type_is_none(given, found):
    assert session_event({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": given}).prompt == found


# The sources of a setting, the deciding one first, with their values, and the default.
PRECEDENCE = [
    (environment.identity, "SWARM_CC_IDENTITY=a SWARM_HERMES_IDENTITY=b AGENT_IDENTITY=c SWARM_IDENTITY=d", "a b c d -"),
    (environment.scope, "SWARM_CC_SCOPE=/a SWARM_HERMES_SCOPE=/b SWARM_MCP_SCOPE=/c", "/a /b /c -"),
    (environment.file_root, "SWARM_CC_FILE_ROOT=/a SWARM_HERMES_FILE_ROOT=/b SWARM_MCP_FILE_ROOT=/c", "/a /b /c -"),
    (environment.label_override, "SWARM_CC_LABEL=a SWARM_HERMES_LABEL=b", "a b -"),
    (environment.mode, "SWARM_CC_ROLE=gateway SWARM_ROLE=x", "gateway worker worker"),
    (environment.mode, "SWARM_CC_ROLE=x SWARM_ROLE=gateway", "worker gateway worker"),
    (lambda prefix: environment.role(prefix, "", ""), "SWARM_CC_AGENT_ROLE=A SWARM_AGENT_ROLE=b SWARM_ROLE=gateway", "a b planner -"),
    (environment.lease_seconds, "SWARM_CC_LEASE_SECONDS=5 SWARM_LEASE_SECONDS=6", "5 6 86400"),
    (lambda _prefix: environment.pane(), "HERDR_PANE_ID=p_1 HERDR_PANE=p_2", "p_1 p_2 -"),
]  # fmt: skip


@pytest.mark.parametrize(("read", "variables", "values"), PRECEDENCE)
@requirement("P-18")
def test_the_first_variable_that_is_set_wins(
    read: Callable[[str], object], variables: str, values: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []
    for setting in variables.split():
        name, _, value = setting.partition("=")
        monkeypatch.setenv(name, value)
        names.append(name)
    *found, default = values.replace("-", "").split(" ")
    for name, value in zip(names, found, strict=True):
        assert str(read("CC")) == value
        monkeypatch.setenv(name, " \t ")  # a blank one counts as unset
    assert str(read("CC")) == default


@pytest.mark.parametrize("name", ["IDENTITY", "SCOPE", "FILE_ROOT", "LABEL", "ROLE", "AGENT_ROLE", "LEASE_SECONDS"])
def test_another_runtime_s_variables_are_not_ours(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_all() -> list[object]:
        of = environment
        return [of.identity("CC"), of.scope("CC"), of.file_root("CC"), of.label_override("CC"), of.mode("CC"),
                of.role("CC", "", ""), of.lease_seconds("CC")]  # fmt: skip

    before = read_all()
    monkeypatch.setenv(f"SWARM_CODEX_{name}", "gateway" if name == "ROLE" else "7")
    assert read_all() == before
    monkeypatch.setenv(f"SWARM_CC_{name}", "gateway" if name == "ROLE" else "7")
    assert read_all() != before


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("work", "work"),
        (" work ", "work"),
        ("identity:work", "work"),
        ("A_b.c-9", "A_b.c-9"),
        ("my work", ""),
        ("a:b", ""),
        ("identity:", ""),
        ("arbeit-ü", ""),
        ("a\nrole:x", ""),
    ],
)
def test_an_identity_is_one_word(value: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_IDENTITY", value)
    assert environment.identity("CC") == name


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("60", 60), (" 60 ", 60), ("0", 0), ("-5", 0), ("", 86400), ("1.5", 86400), ("a day", 86400), ("1e3", 86400)],
)
def test_a_lease_is_whole_seconds(value: str, seconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_CODEX_LEASE_SECONDS", value)
    assert environment.lease_seconds("CODEX") == seconds


@pytest.mark.parametrize(
    ("value", "role"),
    [("Reviewer", "reviewer"), ("worker", ""), ("WORKER", ""), ("a b", ""), ("a/b", ""), ("r.e-v_9", "r.e-v_9")],
)
def test_a_role_is_one_lower_case_word(value: str, role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_CC_AGENT_ROLE", value)
    assert environment.role("CC", "", "") == role


def test_the_nearest_role_file_counts_up_to_the_scope(tmp_path: Path) -> None:
    deep = tmp_path / "scope" / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / ".swarm-role").write_text("outer\n")
    assert environment.role("CC", str(deep), "") == "outer"
    assert environment.role("CC", str(deep), str(tmp_path / "scope")) == ""
    (tmp_path / "scope" / ".swarm-role").write_text("scope\n")
    assert environment.role("CC", str(deep), str(tmp_path / "scope")) == "scope"
    (tmp_path / "scope" / "a" / ".swarm-role").write_text("\n# who works here\n\n  Tester  \nplanner\n")
    assert environment.role("CC", str(deep), str(tmp_path / "scope")) == "tester"
    assert environment.role("CC", str(deep / "not" / "there"), str(tmp_path / "scope")) == "tester"


@pytest.mark.parametrize("folder", ["", "."])
def test_a_role_file_stands_between_the_two_variables(folder: str, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / ".swarm-role").write_text("filed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SWARM_AGENT_ROLE", "general")
    assert environment.role("CC", folder, "") == ("filed" if folder else "general")
    monkeypatch.setenv("SWARM_CC_AGENT_ROLE", "own")
    assert environment.role("CC", folder, "") == "own"


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"#" * 5_000_000, b"", b"two words\n"])
def test_a_strange_role_file_is_no_role(content: bytes, tmp_path: Path) -> None:
    (tmp_path / ".swarm-role").write_bytes(content)
    assert environment.role("CC", str(tmp_path), str(tmp_path)) == ""


def test_a_role_file_that_is_a_folder_is_passed_by(tmp_path: Path) -> None:
    (tmp_path / ".swarm-role").write_text("outer")
    (tmp_path / "in" / ".swarm-role").mkdir(parents=True)
    assert environment.role("CC", str(tmp_path / "in"), "") == "outer"


def test_a_role_file_that_is_a_pipe_does_not_hold_the_hook(tmp_path: Path) -> None:
    import subprocess
    import sys

    os.mkfifo(tmp_path / ".swarm-role")
    ask = "import sys; from swarm_hook_core.environment import role; print([role('CC', sys.argv[1], sys.argv[1])])"
    try:
        done = subprocess.run(
            [sys.executable, "-c", ask, tmp_path], capture_output=True, text=True, timeout=60, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.fail("reading a .swarm-role that is a named pipe never returns")
    assert done.stdout == "['']\n"
