"""The work tracker as shared values have it, and profiles as files have them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from ground import Ground

from swarm_mcp.dispatch.settings import Settings, parse, profile, profile_folder
from swarm_mcp.errors import SwarmError

# ------------------------------------------------------------------ trackers


def configure(ground: Ground, name: str, value: str, owner: str | None = None) -> None:
    ground.sql(
        "INSERT INTO kv (scope, key, value, owner_identity, updated_at) VALUES (?, ?, ?, ?, 77)",
        ground.scope, f"config/work_tracker/{name}", value, owner,
    )  # fmt: skip


def test_an_identitys_own_tracker_comes_before_the_default(ground: Ground) -> None:
    row = ground.session("s", "identity:p")
    with ground.store() as store:
        assert store.tracker.of(row) is None
        configure(ground, "default", "linear:server")
        found = {"key": "config/work_tracker/default", "value": "linear:server", "updated_at": 77}
        assert store.tracker.of(row) == found
        configure(ground, "p", '{"provider": "jira"}', "identity:q")
        found = {"key": "config/work_tracker/p", "value": {"provider": "jira"}, "updated_at": 77}
        assert store.tracker.of(row) == found


def test_a_session_without_identity_has_the_default_tracker(ground: Ground) -> None:
    row = ground.session("s")
    with ground.store() as store:
        configure(ground, "", "wrong")
        configure(ground, "default", '"quoted"')
        assert store.tracker.of(row)["value"] == "quoted"


def test_a_link_is_a_shared_value(ground: Ground) -> None:
    row = ground.session("s", "identity:p")
    before = time.time() * 1000
    with ground.store() as store:
        assert store.tracker.entry(row, "linear", "t1") is None
        stored = store.tracker.link(row, "linear", "t1", "ENG-1", "https://tracker.example/1")
        assert store.tracker.entry(row, "linear", "t1") == stored
        plain = store.tracker.link(row, "linear", "t2", "ENG-2")
    (found, _) = ground.sql("SELECT * FROM kv WHERE key LIKE 'tracker/%' ORDER BY key")
    assert (found["key"], found["scope"]) == ("tracker/linear/p/t1", ground.scope)
    assert found["owner_identity"] == "identity:p"
    assert json.loads(found["value"]) == stored
    assert list(stored) == ["identifier", "url", "linked_at"]
    assert list(plain) == ["identifier", "linked_at"]
    assert before - 1 <= stored["linked_at"] <= time.time() * 1000 + 1


@pytest.mark.parametrize(("label", "provider"), [("role:x", "linear"), ("identity:p", "a/b"), ("identity:p", "")])
def test_a_link_needs_an_identity_and_a_provider(ground: Ground, label: str, provider: str) -> None:
    row = ground.session("s", label)
    with ground.store() as store:
        with pytest.raises(SwarmError):
            store.tracker.link(row, provider, "t1", "ENG-1")
        assert store.tracker.entry(row, provider, "t1") is None


@pytest.mark.parametrize("value", ["not json", "[1]", '{"identifier": 3}', "{}"])
def test_a_link_that_somebody_spoiled_is_none(ground: Ground, value: str) -> None:
    row = ground.session("s", "identity:p")
    ground.add("kv", scope=ground.scope, key="tracker/linear/p/t1", value=value)
    with ground.store() as store:
        assert store.tracker.entry(row, "linear", "t1") is None


# ------------------------------------------------------------------ profiles


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "profiles"
    folder.mkdir()
    monkeypatch.setenv("SWARM_MCP_PROFILE_DIR", str(folder))
    return folder


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"),
        ("  export   A=b  ", "b"),
        ("export\tA=b", "b"),
        ("A=", ""),
        ("A=  ", ""),
        ("A='b c'", "b c"),
        ('A="b c"', "b c"),
        ('A="b # c" # d', "b # c"),
        ("A=b # c", "b"),
        ("A=b#c", "b#c"),
        ("A=#c", ""),
        ("A=b=c", "b=c"),
        ("A=$HERE/x", "/h/x"),
        ("A=${HERE}x", "/hx"),
        ("A=${NONE:-d}", "d"),
        ("A=${EMPTY:-d}", "d"),
        ("A=${HERE:-d}", "/h"),
        ("A=${NONE}", ""),
        ("A=$NONE", ""),
        ("A='$HERE'", "$HERE"),
        ('A="$HERE"', "/h"),
        ("A=$", "$"),
        ("A=$1", "$1"),
        ("A=${", "${"),
        ("A=${a b}", "${a b}"),
        ("A=5$", "5$"),
        ("\ufeffA=b", "b"),
    ],
)
def test_a_profile_line(line: str, value: str) -> None:
    assert parse(line, {"HERE": "/h", "EMPTY": ""}) == {"A": value}


@pytest.mark.parametrize(
    "line", ["", "# A=b", "A", "=b", "1A=b", "A B=c", "A-B=c", "Ä=b", 'A="b', "A='b", 'A="b"c', "exportA", "export"]
)
def test_a_profile_line_that_says_nothing(line: str) -> None:
    assert parse(f"{line}\nB=c", {}) == {"B": "c"}


def test_a_profile_may_use_what_it_said_before() -> None:
    assert parse("A=1\nB=${A}2\nA=3\nC=$A", {"A": "9"}) == {"A": "3", "B": "12", "C": "3"}


def test_the_environment_comes_before_the_profile(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (profiles / "p.env").write_text("SWARM_SPAWNER=ui\nSWARM_WORKER_HARNESS=codex\n")
    assert (Settings("p").spawner, Settings("p").harness()) == ("ui", "codex")
    monkeypatch.setenv("SWARM_SPAWNER", "herdr")
    assert Settings("p").spawner == "herdr"
    monkeypatch.setenv("SWARM_DISPATCH_SPAWNER", "swarm-ui")
    monkeypatch.setenv("SWARM_DISPATCH_HARNESS", "hermes")
    assert (Settings("p").spawner, Settings("p").harness()) == ("swarm-ui", "hermes")


@pytest.mark.parametrize(
    ("label", "harness"),
    [("origin:claude-code", "claude"), ("origin:codex", "codex"), ("origin:thing", "claude"), ("", "claude")],
)
def test_a_worker_is_of_its_requesters_kind(profiles: Path, label: str, harness: str) -> None:
    assert Settings("p").harness(label) == harness
    assert Settings("p").spawner == "herdr"


def test_the_command_of_a_harness(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (profiles / "p.env").write_text("SWARM_HARNESS_CLAUDE='claude --model \"a b\"'\nSWARM_HARNESS_MY_ONE=x\n")
    assert Settings("p").harness_command("claude") == ["claude", "--model", "a b"]
    assert Settings("p").harness_command("my-one") == ["x"]
    assert Settings("p").harness_command("codex") == ["codex"]
    assert Settings("").harness_command("claude") == ["claude"]
    for name in ("", "a b", "../x", "x;y", "$(x)"):
        with pytest.raises(SwarmError, match="harness"):
            Settings("p").harness_command(name)
    monkeypatch.setenv("SWARM_HARNESS_CODEX", "codex 'x")
    with pytest.raises(SwarmError, match="SWARM_HARNESS_CODEX"):
        Settings("p").harness_command("codex")


def test_where_profiles_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert profile_folder() == os.path.join(os.environ["HOME"], ".config", "swarm-mcp")
    monkeypatch.setenv("SWARM_HOST_HOME", "/swarm")
    assert profile_folder() == "/swarm/.config/swarm-mcp"
    monkeypatch.setenv("HERMES_HOST_HOME", "/hermes")
    assert profile_folder() == "/hermes/.config/swarm-mcp"
    monkeypatch.setenv("XDG_CONFIG_HOME", "/xdg")
    assert profile_folder() == "/xdg/swarm-mcp"
    monkeypatch.setenv("SWARM_MCP_PROFILE_DIR", "~/there")
    assert profile_folder() == os.path.join(os.environ["HOME"], "there")


def test_a_profile_that_cannot_be_read_is_none(profiles: Path) -> None:
    (profiles.parent / "secret.env").write_text("A=b")
    os.mkfifo(profiles / "pipe.env")
    (profiles / "folder.env").mkdir()
    (profiles / "bytes.env").write_bytes(b"A=\xff\nB=c\n")
    for identity in ("../secret", "", "missing", "pipe", "folder"):
        assert profile(identity) == {}
    assert profile("bytes")["B"] == "c"
