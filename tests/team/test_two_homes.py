"""Two machines as people have them: private homes, a clone of one repository in each, the commands and hooks as installed.

Each home has its own state, store and team agent; the server is shared.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_mcp.team.memberships import machine_shortly

NAME = "example.org/app"
LIMIT = 60.0


class Home:
    """A machine: a private home with a clone in it, which has joined as `server` says."""

    def __init__(self, root: Path, name: str):
        self.root, self.name, self.clone = root / name, name, root / name / "clone"
        self.clone.mkdir(parents=True)
        for words in (
            ["init", "-q", "-b", "main"],
            ["remote", "add", "origin", f"https://{NAME}.git"],
            ["-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "--allow-empty", "-m", "first"],
        ):
            subprocess.run(["git", "-C", str(self.clone), *words], check=True, capture_output=True)
        (self.clone / "src").mkdir()
        for file in ("src/a.py", "src/b.py", "notes"):
            (self.clone / file).write_text(file)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SWARM_", "CLAUDE", "XDG_"))}
        places = {
            "SWARM_STATE_DIR": "state",
            "SWARM_DB_PATH": "store/swarm.db",
            "SWARM_CONFIG_DIR": "config",
            "HOME": "",
        }
        given = {name: str(self.root / place) for name, place in places.items()}
        return {**kept, **given, "SWARM_UVX": "off", "SWARM_TEAM_MACHINE": self.name, "SWARM_MCP_ALLOW_SPAWN": "1"}

    def run(self, *words: str, code: int | None = 0, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "swarm_mcp", *words],
            input=stdin, capture_output=True, text=True, cwd=self.clone, timeout=LIMIT, env={**self.environment, **env},
        )  # fmt: skip
        assert code is None or done.returncode == code, (self.name, words, done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *words: str, code: int | None = 0) -> dict:
        found = json.loads(self.run(*words, "--json", code=code).stdout)
        assert isinstance(found, dict)
        return found

    def hook(self, event: str, session: str, **payload: object) -> str:
        told = {"session_id": session, "cwd": str(self.clone), **payload}
        return self.run("hook", event, "--runtime", "claude-code", stdin=json.dumps(told)).stdout

    def begin(self, session: str) -> str:
        """Begin a session of Claude Code's, which lives as long as this test does; its instance."""
        self.run(
            "register", "--runtime", "claude-code", "--session-id", session, "--client-pid", str(os.getpid()),
            code=None,
        )  # fmt: skip
        self.hook("session-start", session, hook_event_name="SessionStart", source="startup")
        return session

    def write(self, session: str, file: str, **env: str) -> str:
        """What the hook says of a write; empty where it lets it pass."""
        told = {"session_id": session, "cwd": str(self.clone), "hook_event_name": "PreToolUse", "tool_name": "Write",
                "tool_input": {"file_path": str(self.clone / file), "content": ""}}  # fmt: skip
        return self.run("hook", "pre-tool-use", "--runtime", "claude-code", stdin=json.dumps(told), **env).stdout

    def agent(self) -> dict:
        """What its team agent says of itself."""
        found = self.json("team", "status", code=None)["agent"]
        assert isinstance(found, dict)
        return found

    def lock(self, *files: str, **options: str) -> dict:
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        return self.json("lock", *files, "--detach", "--ttl", "300", *words)

    def end(self) -> None:
        self.run("team", "leave", code=None)
        self.run("team", "agent", "--stop", code=None)


@pytest.fixture
def homes(tmp_path: Path, team: str, repository: str) -> Iterator[tuple[Home, Home]]:
    """Two machines that have joined as one repository."""
    made = Home(tmp_path, "north"), Home(tmp_path, "south")
    try:
        for one in made:
            one.run("team", "join", team, "--repository", repository)
        yield made
    finally:
        for one in made:
            one.end()


def wait_for(condition, seconds: float = 20.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "in vain"
        time.sleep(0.1)
    return found


def test_a_lock_taken_on_one_machine_denies_on_the_other_until_it_is_released(homes: tuple[Home, Home]) -> None:
    north, south = homes
    told = north.lock("src/a.py", note="renumbering")
    assert told["team"]["settled"] is True and told["team"]["fence"] > 0
    south.begin("s1")
    denial = south.write("s1", "src/a.py")
    assert '"deny"' in denial and "renumbering" in denial and " on north-" in denial
    assert south.write("s1", "src/b.py") == ""
    why = south.json("why", "src/a.py")
    assert why["write"]["allowed"] is False
    done = south.run("lock", "src/a.py", "--as", "s1", code=None)
    assert done.returncode == 1 and " on north-" in done.stderr
    north.run("unlock", "src/a.py", "--as", told["instance_id"])
    wait_for(lambda: south.write("s1", "src/a.py") == "")


@pytest.mark.parametrize("wanted", ["src/", "*.py", "src/**", "."])
def test_folders_and_patterns_hold_there_too(homes: tuple[Home, Home], wanted: str) -> None:
    north, south = homes
    assert north.lock(wanted)["team"]["settled"] is True
    south.begin("s1")
    assert '"deny"' in south.write("s1", "src/a.py")
    assert ('"deny"' in south.write("s1", "notes")) is (wanted == ".")


def test_who_waits_on_another_machine_is_next(homes: tuple[Home, Home]) -> None:
    north, south = homes
    held = north.lock("src/a.py")
    waits = subprocess.Popen(
        [sys.executable, "-m", "swarm_mcp", "lock", "src/a.py", "--detach", "--ttl", "300", "--wait", "40", "--json"],
        cwd=south.clone, env=south.environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        wait_for(lambda: north.json("why", "src/a.py")["waiting"])
        north.run("unlock", "src/a.py", "--as", held["instance_id"])
        told = json.loads(waits.communicate(timeout=LIMIT)[0])
    finally:
        waits.kill()
        waits.wait()
    assert told["ok"] and told["team"]["fence"] > held["team"]["fence"]


def test_status_shows_both_machines_and_leaving_undoes_everything(homes: tuple[Home, Home]) -> None:
    north, south = homes
    told = north.json("team", "status")
    (one,) = told["repositories"]
    assert (
        told["ok"] and one["fresh"] and one["source"] == "given" and one["work_trees"] == [str(north.clone.resolve())]
    )
    assert sorted(machine_shortly(row["machine"]) for row in one["machines"]) == ["north", "south"]
    south.lock("src/a.py")
    wait_for(lambda: '"deny"' in north.write("s2", "src/a.py"))
    before = (south.clone / ".git" / "config").read_text()
    south.run("team", "leave")
    assert "logical" in before and "logical" not in (south.clone / ".git" / "config").read_text()
    assert south.json("team", "status")["repositories"] == []
    wait_for(lambda: north.write("s2", "src/a.py") == "")
    assert south.json("why", "src/a.py")["held"], "it is held there as before"
    north.lock("src/b.py")
    assert south.write("s3", "src/b.py") == ""


def test_without_the_server_locks_hold_here_and_say_so_within_two_seconds(
    tmp_path: Path, new_engine, repository: str
) -> None:
    north = Home(tmp_path, "north")
    try:
        north.run("team", "join", new_engine.dsn(), "--repository", repository)
        new_engine.stop()
        begun = time.monotonic()
        told = north.lock("src/a.py")
        took = time.monotonic() - begun
        assert told["team"]["reachable"] is False and took < 2.0 + 3.0, (
            took
        )  # and what a command takes on a busy machine
        north.begin("s1")
        wait_for(lambda: not north.json("team", "status", code=None)["repositories"][0]["fresh"])
        assert "has not heard from the server" in north.write("s1", "src/b.py")
        assert north.write("s1", "src/b.py") == ""
        assert '"deny"' in north.write("s1", "src/b.py", SWARM_STRICT="1")
        assert '"deny"' in north.write("s1", "src/a.py")
        done = north.run("team", "status", code=1)
        assert "not fresh" in done.stdout
        new_engine.start()
        wait_for(lambda: north.json("team", "status", code=None)["ok"])
        assert north.write("s1", "src/b.py") == ""
        assert north.json("lock", "src/a.py", "--as", told["instance_id"])["team"]["settled"] is True
    finally:
        north.end()


def test_the_guard_says_where_a_push_could_not_be_asked_about(tmp_path: Path, new_engine, repository: str) -> None:
    north = Home(tmp_path, "north")
    try:
        north.run("team", "join", new_engine.dsn(), "--repository", repository)
        words = ["guard", "check", "--hook", "pre-push", "--remote", "origin"]
        assert north.run(*words).stderr == ""
        new_engine.stop()
        wait_for(lambda: not north.json("team", "status", code=None)["repositories"][0]["fresh"])
        begun = time.monotonic()
        said = north.run(*words).stderr
        assert said.startswith("swarm guard: the team's server was not heard of for")
        assert time.monotonic() - begun < 2.0 + 3.0
    finally:
        north.end()


def test_doctor_proves_it(homes: tuple[Home, Home]) -> None:
    north, _ = homes
    done = north.run("doctor", "--no-clients", "--json", code=None)
    found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert found["team"]["status"] == "ok", found["team"]
    assert found["team proof"]["status"] == "ok", found["team proof"]


def test_an_agent_that_is_killed_is_started_again_by_whoever_needs_it(homes: tuple[Home, Home]) -> None:
    north, south = homes
    os.kill(north.agent()["pid"], signal.SIGKILL)
    told = north.lock("src/a.py")
    if "settled" not in told["team"]:  # on a busy machine it may take longer than a verb waits
        words = ["lock", "src/a.py", "--as", told["instance_id"]]
        wait_for(lambda: north.json(*words)["team"].get("settled"))
    south.begin("s1")
    assert '"deny"' in south.write("s1", "src/a.py")
    with contextlib.suppress(ProcessLookupError):
        os.kill(south.agent()["pid"], signal.SIGKILL)
    south.begin("s2")
    wait_for(lambda: south.json("team", "status", code=None)["ok"])
