"""Settings for an identity: its profile file, and the environment before it."""

import os
from pathlib import Path

import pytest

from swarm_mcp.errors import SwarmError
from swarm_mcp.runtimes.user_settings import Settings, parse, profile, profile_folder


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
    assert Settings("p").spawner == "process"


def test_the_harness_of_the_environment_comes_before_the_requesters_kind(profiles: Path, monkeypatch) -> None:
    monkeypatch.setenv("HARNESS_PROVIDER", "pi")
    assert Settings("p").harness("origin:codex") == "pi"
    monkeypatch.setenv("SWARM_WORKER_HARNESS", "loop")
    assert Settings("p").harness("origin:codex") == "loop"


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
