"""The settings in force, and ``swarm-mcp protect off --for``: silence in one checkout, for that time."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.altered import Clocks
from support.files import json_at
from support.sessions import ROOT, fault_lines
from support.world import World, some_time_passes

from swarm_hook_core import settings
from swarm_hook_core.settings import fail, protect, read, strict
from swarm_hook_core.state import config_path
from swarm_hook_core.traces import DEFAULT, KEEP, LEVELS, NOTICE, OFF, TURN, level
from swarm_mcp.guard.check import refusals

Write = Callable[..., Path]


@pytest.fixture
def config() -> Write:
    """Write the file, as if this process had not read it yet."""

    def write(value: object) -> Path:
        settings._last = (None, None)
        return json_at(Path(config_path()), value)

    settings._last = (None, None)
    return write


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "src").mkdir()
    return tmp_path / "repo"


def test_the_levels_are_the_same_words_in_both_places() -> None:
    assert settings.WORDS["protect"] == LEVELS == (OFF, NOTICE, KEEP, TURN) and settings.DEFAULTS["protect"] == DEFAULT


def test_the_nearest_word_counts(config: Write, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime's own variable, the general one, the checkout's, the user's, and the default."""
    monkeypatch.setenv("SWARM_CC_PROTECT", " Off ")
    monkeypatch.setenv("SWARM_PROTECT", "notice")
    config({"protect": "off", "checkouts": {str(checkout): {"protect": "turn"}}})
    assert (level("CC", str(checkout)), level("CODEX", str(checkout))) == (OFF, NOTICE)
    assert protect("CC", str(checkout)).source == "SWARM_CC_PROTECT"
    monkeypatch.setenv("SWARM_CC_PROTECT", "")
    assert protect("CC", str(checkout)).source == "SWARM_PROTECT"
    monkeypatch.delenv("SWARM_PROTECT")
    found = protect("CC", str(checkout))
    assert (found.value, found.source, found.folder) == (TURN, "checkout", str(checkout)) and level(
        "CC", str(checkout)
    ) == TURN
    assert protect("CC", str(checkout.parent)).source == "user" and level("CC", str(checkout.parent)) == OFF
    config({"checkouts": {str(checkout): {"fail": "closed"}}})
    assert protect("CC", str(checkout)).source == "default" and level("CC", str(checkout)) == KEEP
    assert fail("CC", str(checkout)).value == "closed" and fail("CC", str(checkout.parent)).value == "open"
    assert fault_lines() == []


def test_a_checkout_is_named_by_its_real_root(config: Write, checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(checkout)
    (checkout / "inner" / ".git").mkdir(parents=True)
    config({"checkouts": {f"{checkout}/": {"protect": "turn", "strict": True}, str(tmp_path): {"protect": "off"}}})
    for folder in (checkout, checkout / "src", tmp_path / "link" / "src", checkout / "not" / "there"):
        assert level("CC", str(folder)) == TURN and strict("CC", str(folder))
    assert level("CC", str(checkout / "inner")) == KEEP, "another repository"
    assert level("CC", str(tmp_path / "plain" / "folder")) == OFF, "in none: what is said of a folder above it"
    assert level("CC", "") == KEEP and level("CC", "/tmp/\0") == KEEP and not strict("CC")


@pytest.mark.parametrize("name", ["SWARM_PROTECT", "SWARM_CC_PROTECT"])
def test_an_unknown_word_counts_as_not_given_and_is_recorded_once(name: str, config: Write, monkeypatch) -> None:
    monkeypatch.setenv(name, "keeep")
    for _ in range(3):
        assert level("CC", "/") == KEEP
    (line,) = fault_lines()
    assert name in line["fault"] and "'keeep'" in line["fault"] and "notice" in line["fault"]
    config({"protect": "turn"})
    assert level("CC", "/") == TURN and len(fault_lines()) == 1
    monkeypatch.setenv(name, "on")
    assert level("CC", "/") == TURN and len(fault_lines()) == 2, "another one is news"


def test_an_unknown_word_for_one_runtime_leaves_the_general_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_CC_PROTECT", "?")
    monkeypatch.setenv("SWARM_PROTECT", "turn")
    monkeypatch.setenv("SWARM_FAIL", "Closed")
    assert level("CC", "/") == TURN and fail("CC", "/").value == "closed"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"protect": "always"}', "protect is none of off, notice, keep, turn"), ('{"protect": ["off"]}', "protect is none of"),
        ('{"fail": true}', "fail is none of open, closed"), ('{"checkouts": []}', "checkouts is no object"),
        ('{"checkouts": {"src": {}}}', "checkout 'src': not the whole path"),
        ('{"checkouts": {"/a": "turn"}}', "checkout '/a': not an object"),
        ('{"checkouts": {"/a": {"protect": 1}}}', "checkout '/a': protect is none of"),
        ('{"checkouts": {"/a": {"strict": 1}}}', "checkout '/a': strict is neither"),
        ('{"checkouts": {"/a": {"writers": []}}}', "checkout '/a': 'writers' is no setting (protect, fail, uvx, fence, merge, strict, kernel, authorship)"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_and_left_out(text: str, fault: str, config: Write) -> None:
    found = read(str(config(text)))
    (line,) = found.faults
    assert fault in line and not found.user and not any(found.checkouts.values())
    assert level("CC", "/a") == KEEP and fail("CC", "/a").value == "open"


def test_the_good_part_of_it_counts(config: Write) -> None:
    found = read(
        str(config({"protect": "off", "fail": "shut", "checkouts": {"/a": {"protect": "turn", "x": 1}, "b": {}}}))
    )
    assert (found.user, found.checkouts) == ({"protect": "off"}, {"/a": {"protect": "turn"}}) and len(found.faults) == 3


LOADED = """
import sys
sys.path.insert(0, sys.argv[1])
from swarm_hook_core.traces import level
print(level("CC", "/"), *sorted(name for name in sys.modules if name.startswith("swarm_hook_core.")))
"""


@pytest.mark.parametrize(
    ("env", "expected"), [({}, "keep"), ({"SWARM_PROTECT": "turn"}, "turn"), ({"SWARM_CC_PROTECT": "off"}, "off")]
)
def test_without_a_file_next_to_nothing_is_loaded(env: dict[str, str], expected: str, tmp_path: Path) -> None:
    words = [sys.executable, "-I", "-S", "-c", LOADED, str(ROOT)]
    done = subprocess.run(words, env={"HOME": str(tmp_path), **env}, capture_output=True, text=True, check=True)
    said, *loaded = done.stdout.split()
    assert said == expected and "swarm_hook_core.traces" in loaded
    assert not {f"swarm_hook_core.{name}" for name in ("settings", "environment", "faults")} & set(loaded)


NOTES, FOR = "notes.md", ("protect", "off", "--for", "1h")


@pytest.fixture(autouse=True)
def _a_person_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")


@pytest.mark.sampled
@pytest.mark.parametrize("runtime", ["codex", "claude-code"])
def test_nothing_is_denied_or_said_until_it_ends_by_itself(runtime: str, world: World, clocks: Clocks) -> None:
    peer, me = world.session("codex"), world.session(runtime)
    world.lock(peer, NOTES)
    peer.edit("other.md", "beta", "theirs")
    world.write("sub/deep.md", "a person's\n")
    some_time_passes()
    commands = ("git checkout .", f"rm {NOTES}", "echo x > other.md", "git stash")
    assert all(me.ask("Bash", {"command": command}).denied for command in commands)
    world.git("add", NOTES)
    (world.repo / NOTES).write_text("x\n")
    world.git("add", NOTES)
    assert refusals("pre-commit", str(world.repo))

    said = world.ground.swarm(*FOR)
    assert said.code == 0 and "checks nothing and says nothing here, locks included" in said.out
    for command in commands:
        assert me.ask("Bash", {"command": command}).silent, command
    assert me.edit(NOTES, "x", "mine").silent
    assert refusals("pre-commit", str(world.repo)) == []
    assert me.fire("session_start", "SessionStart.startup").out == ""

    clocks.ahead(wall=3601)  # the hour is over
    assert me.ask("Bash", {"command": f"rm {NOTES}"}).denied and refusals("pre-commit", str(world.repo))


def test_another_checkout_is_not_silent(world: World, tmp_path: Path) -> None:
    peer = world.session("codex")
    world.lock(peer, NOTES)
    elsewhere = world.session("claude-code", folder=tmp_path)
    assert world.ground.swarm(*FOR).code == 0
    assert elsewhere.ask("Bash", {"command": f"rm {world.repo / NOTES}"}).denied


def test_it_is_refused_to_agents(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    peer, me = world.session("codex"), world.session("claude-code")
    world.lock(peer, NOTES)
    assert me.ask("Bash", {"command": "swarm-mcp protect off --for 1h"}).denied
    monkeypatch.setenv("CLAUDECODE", "1")
    done = world.ground.swarm(*FOR)
    assert done.code == 1 and "an agent may not do that" in done.err
    assert me.ask("Bash", {"command": f"rm {NOTES}"}).denied


def test_its_own_settings_stay_protected(world: World) -> None:
    me = world.session("claude-code")
    assert world.ground.swarm(*FOR).code == 0
    assert me.ask("Bash", {"command": f"echo x > {settings.config_path()}"}).denied
