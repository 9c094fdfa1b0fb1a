"""Two machines as people have them: locks, waiters, and texts without the server."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from swarm_mcp.team.server import connect
from team.history.faults import stopped
from team.homes import LIMIT, Home, wait_for


def _shortly(machine: str) -> str:
    """Return a machine's name without its random part."""
    return machine.rpartition("-")[0]


@pytest.mark.promise("a lock holds on every machine of a team")
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


def test_after_a_new_epoch_known_locks_go_on_denying(tmp_path: Path, new_engine, repository: str) -> None:
    north, south = Home(tmp_path, "north"), Home(tmp_path, "south")
    try:
        for one in (north, south):
            one.run("team", "join", new_engine.dsn(), "--repository", repository)
        south.begin("s1")
        told = north.lock("src/a.py")
        assert '"deny"' in south.write("s1", "src/a.py")
        with stopped(north.agent()["pid"]):  # this machine is cut off meanwhile
            north.run("team", "init", new_engine.dsn(), "--new-epoch")

            def version() -> int:
                assert '"deny"' in south.write("s1", "src/a.py")
                assert south.run("lock", "src/a.py", "--as", "s1", code=None).returncode == 1
                return south.json("team", "status", code=None)["repositories"][0]["version"]

            wait_for(lambda: version() > 1_000_000)
            assert '"deny"' in south.write("s1", "src/a.py")
        words = ["lock", "src/a.py", "--as", told["instance_id"]]
        wait_for(lambda: '"deny"' in south.write("s1", "src/a.py") and north.json(*words)["team"].get("settled"))
        said = south.write("s1", "src/a.py")
        assert '"deny"' in said and "src/a.py is free" not in said
        north.run("unlock", "src/a.py", "--as", told["instance_id"])
        assert "src/a.py is free" in wait_for(
            lambda: (said := south.write("s1", "src/a.py")) and '"deny"' not in said and said
        )
    finally:
        for one in (north, south):
            one.end()


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


def test_status_shows_both_machines_and_leaving_undoes_everything(
    homes: tuple[Home, Home], team: str, repository: str
) -> None:
    north, south = homes
    told = wait_for(lambda: (found := north.json("team", "status", code=None))["ok"] and found)
    (one,) = told["repositories"]
    assert one["fresh"] and one["source"] == "given" and one["work_trees"] == [str(north.clone.resolve())]
    assert sorted(_shortly(row["machine"]) for row in one["machines"]) == ["north", "south"]
    south.lock("src/a.py")
    wait_for(lambda: '"deny"' in north.write("s2", "src/a.py"))

    def on_server() -> list[tuple]:
        asked = "SELECT place FROM swarm_team.locks l JOIN swarm_team.repositories r ON r.key = l.repository WHERE r.name = %s"
        with connect(team) as admin:
            return admin.execute(asked, (repository,)).fetchall()

    assert on_server()
    before = (south.clone / ".git" / "config").read_text()
    os.kill(south.agent()["pid"], signal.SIGKILL)
    assert "could not be told" not in south.run("team", "leave").stdout
    assert not on_server(), "they are given back at once, though no team agent runs"
    assert "logical" in before and "logical" not in (south.clone / ".git" / "config").read_text()
    assert south.json("team", "status")["repositories"] == []
    wait_for(lambda: north.write("s2", "src/a.py") == "")
    assert south.json("why", "src/a.py")["held"], "it is held there as before"
    north.lock("src/b.py")
    assert south.write("s3", "src/b.py") == ""


def test_status_at_a_glance_shows_which_machines_are_there_and_which_is_silent(homes: tuple[Home, Home]) -> None:
    north, south = homes
    south.begin("s1")

    def machines() -> dict:
        found = north.json("status")["team"]["machines"]
        return {_shortly(one["name"]): (one["sessions"], one["state"].partition(" ")[0]) for one in found}

    wait_for(lambda: machines() == {"north": (0, "this"), "south": (1, "there")})
    os.kill(south.agent()["pid"], signal.SIGKILL)
    wait_for(lambda: machines()["south"] == (1, "silent"))
    south.begin("s2")
    wait_for(lambda: machines()["south"] == (2, "there"))
    south.run("team", "agent", "--stop")
    wait_for(lambda: machines()["south"] == (2, "ended"))


def test_what_is_written_and_not_pushed_on_one_machine_is_told_on_the_other(homes: tuple[Home, Home]) -> None:
    north, south = homes
    north.begin("n1")
    south.begin("s1")
    assert south.write("s1", "src/a.py") == ""
    (south.clone / "src/a.py").write_text("written there")
    told = wait_for(lambda: north.write("n1", "src/a.py"))
    assert re.search(r"/src/a.py was written by claude-code \S+ on south-\S+ \d+ s ago, and that is not pushed", told)
    assert '"deny"' not in told and north.write("n1", "src/a.py") == ""


@pytest.mark.promise("without the server work goes on")
def test_without_the_server_locks_hold_here_and_say_so(tmp_path: Path, new_engine, repository: str) -> None:
    north = Home(tmp_path, "north")
    try:
        north.run("team", "join", new_engine.dsn(), "--repository", repository)
        new_engine.stop()
        told = north.lock("src/a.py")
        assert told["team"]["reachable"] is False
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
        # Its client is this process, and an agent acts for no other session.
        north.hook("session-end", "s1", hook_event_name="SessionEnd")
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
        said = north.run(*words).stderr
        assert said.startswith("swarm guard: the team's server was not heard of for")
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
