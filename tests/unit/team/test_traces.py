"""A session hears that one on another machine has written the file that it is about to write, and not pushed that."""

import os
import re
import threading
import time
from pathlib import Path

import pytest
from support.altered import Limits
from support.document_cases import both
from support.fixtures import wait_for
from support.sessions import mistakes, run, start, write, write_payload
from support.team_machines import REPOSITORY, Machine
from support.world import git

from swarm_hook_core.traces import place_of
from swarm_mcp.answers.people import People
from swarm_mcp.answers.work import edits
from swarm_mcp.doctor import recorded_faults
from swarm_mcp.team import agent
from swarm_mcp.team import traces as subject
from swarm_mcp.view.overview.now import now

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


class Side:
    """One machine, with a clone of the same remote and sessions with running hooks."""

    def __init__(self, machine: Machine, remote: Path):
        self.machine = machine
        self.top = Path(machine.tops[0])
        (self.top / ".git").rmdir()
        git(remote.parent, "clone", "-q", str(remote), str(self.top))
        self._env = {"SWARM_DB_PATH": machine.ground.database}

    def session(self, name: str, **env: str) -> str:
        """A session of Claude Code that has begun; its id."""
        found = f"{self.machine.name}-{name}-0000-0000"
        start("claude-code", found, self.top, **self._env, **env)
        return found

    def write(self, session: str, file: str, text: str = "changed\n", **env: str) -> str:
        """Return its hook's text about a write, and write the file."""
        said = write("claude-code", session, self.top, self.top / file, **self._env, **env).out
        (self.top / file).parent.mkdir(exist_ok=True)
        (self.top / file).write_text(text)
        return said

    def shell(self, session: str, command: str) -> str:
        payload = {**write_payload("claude-code", session, self.top, "f"), "tool_name": "Bash"}
        return run("claude-code", "pre_tool_use", {**payload, "tool_input": {"command": command}}, self._env).out

    def end(self, session: str) -> None:
        self.machine.ground.sql("DELETE FROM instances WHERE id IN (SELECT instance_id FROM swarm_sessions"
                                " WHERE session_id = ?)", session)  # fmt: skip
        self.machine.ground.sql("DELETE FROM swarm_sessions WHERE session_id = ?", session)

    def journals(self) -> list[str]:
        """Names of journals of sessions elsewhere."""
        place = place_of(str(self.top))
        return sorted(one for one in os.listdir(place) if one.startswith("team.")) if os.path.isdir(place) else []


@pytest.fixture
def sides(machines, tmp_path: Path, limits: Limits) -> tuple[Side, Side]:
    limits(subject, PAUSE_SECONDS=0.0, PATIENCE_SECONDS=20.0, GIT_SECONDS=0.0)
    remote, first = tmp_path / "remote.git", tmp_path / "first"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(remote))
    git(tmp_path, "clone", "-q", str(remote), str(first))
    (first / "src").mkdir()
    for name in ("src/a.py", "b.py"):
        (first / name).write_text("first\n")
    (first / ".gitignore").write_text("secret\n")
    git(first, "add", ".")
    git(first, "commit", "-q", "-m", "first")
    git(first, "push", "-q", "origin", "HEAD:main")
    laptop, sandbox = (Side(machine, remote) for machine in machines)
    return laptop, sandbox


def files(machine: Machine) -> dict[str, list[str]]:
    """Return the server's traces: files by machine."""
    return {
        row["machine"]: sorted(row["body"]["files"]) for row in machine.there("documents") if row["kind"] == "trace"
    }


def test_a_session_is_told_once_of_what_another_machine_has_not_pushed(sides: tuple[Side, Side], machines):
    laptop, sandbox = sides
    me, they = laptop.session("one"), sandbox.session("two")
    assert sandbox.write(they, "src/a.py") == ""
    both(machines)
    told = laptop.write(me, "src/a.py")
    assert re.search(r"/src/a.py was written by claude-code \S+ on sandbox \d+ s ago, and that is not pushed", told)
    assert '"deny"' not in told
    assert laptop.write(me, "src/a.py") == "", "it is told once"
    assert laptop.write(me, "b.py") == "" and mistakes() == []
    other = laptop.session("other")
    assert "written by claude-code sandbox" in laptop.shell(other, "echo x >> src/a.py")
    assert laptop.shell(other, "cat src/a.py") == ""


def test_it_hears_of_it_anew_only_after_a_while(sides: tuple[Side, Side], machines):
    laptop, sandbox = sides
    me, they = laptop.session("one"), sandbox.session("two")
    sandbox.write(they, "b.py")
    both(machines)
    assert laptop.write(me, "b.py")
    place = Path(place_of(str(laptop.top)))
    (own,) = place.glob("claude-code.*")
    told = own.read_bytes()
    (at,) = [line.split(b" ")[0] for line in told.splitlines() if b" heard " in line]
    own.write_bytes(told.replace(at, b"%d" % (time.time_ns() - 700 * 10**9)))
    assert "written by" in laptop.write(me, "b.py")


def test_a_commit_does_not_end_it_and_a_push_does(sides: tuple[Side, Side], machines):
    laptop, sandbox = sides
    they = sandbox.session("two")
    sandbox.write(they, "src/a.py")
    both(machines)
    assert files(machines[0]) == {"sandbox": ["src/a.py"]}
    git(sandbox.top, "commit", "-q", "-a", "-m", "changed")
    both(machines)
    assert files(machines[0]) == {"sandbox": ["src/a.py"]}
    assert "not pushed" in laptop.write(laptop.session("one"), "src/a.py")
    git(laptop.top, "checkout", "-q", "--", "src/a.py")  # nothing of this machine's own is left there to be overwritten
    git(sandbox.top, "push", "-q", "origin", "HEAD:main")
    both(machines)
    assert "sandbox" not in files(machines[0])
    assert laptop.journals() == [] and laptop.write(laptop.session("late"), "src/a.py", "x") == ""


def test_what_was_undone_is_nothing_to_tell(sides: tuple[Side, Side], machines):
    laptop, sandbox = sides
    they = sandbox.session("two")
    sandbox.write(they, "src/a.py")
    both(machines)
    git(sandbox.top, "checkout", "-q", "--", "src/a.py")
    both(machines)
    assert files(machines[0]) == {} and laptop.journals() == []


def test_files_that_git_ignores_and_those_outside_are_not_told(sides: tuple[Side, Side], machines, tmp_path: Path):
    _, sandbox = sides
    they = sandbox.session("two")
    sandbox.write(they, "secret")
    sandbox.write(they, "new.py")
    sandbox.write(they, str(tmp_path / "outside"))
    both(machines)
    assert files(machines[0]) == {"sandbox": ["new.py"]}


def test_it_ends_with_its_session_and_with_its_age(sides: tuple[Side, Side], machines, monkeypatch: pytest.MonkeyPatch):
    laptop, sandbox = sides
    they = sandbox.session("two")
    sandbox.write(they, "b.py")
    both(machines)
    assert laptop.journals()
    sandbox.end(they)
    both(machines)
    assert files(machines[0]) == {} and laptop.journals() == []
    three = sandbox.session("three")
    sandbox.shell(three, "cat b.py")  # what the other one has left counts as a person's work
    assert '"deny"' not in sandbox.write(three, "b.py", "once more\n")
    both(machines)
    assert files(machines[0]) == {"sandbox": ["b.py"]}
    monkeypatch.setitem(subject.KEPT, "trace", -1.0)
    both(machines)
    assert files(machines[0]) == {}


def test_at_level_off_nothing_is_told_and_nobody_hears_of_anything(sides: tuple[Side, Side], machines):
    laptop, sandbox = sides
    they = sandbox.session("two")
    sandbox.write(they, "b.py", SWARM_AUTO="off")
    both(machines)
    assert files(machines[0]) == {}
    sandbox.write(they, "b.py")
    both(machines)
    assert laptop.write(laptop.session("one"), "b.py", SWARM_AUTO="off") == ""


def test_a_clone_that_leaves_hears_nothing_more(sides: tuple[Side, Side], machines):
    laptop, sandbox = sides
    sandbox.write(sandbox.session("two"), "b.py")
    both(machines)
    assert laptop.journals()
    agent._settle_trees(machines[0].store, {str(laptop.top): REPOSITORY})
    assert laptop.journals()
    agent._settle_trees(machines[0].store, {})
    assert laptop.journals() == [] and laptop.write(laptop.session("one"), "b.py") == ""


def test_nobody_waits_for_a_git_that_takes_long(sides: tuple[Side, Side], machines, monkeypatch, limits: Limits):
    _, sandbox = sides
    sandbox.write(sandbox.session("two"), "b.py")
    limits(subject, PATIENCE_SECONDS=0.01)
    go_on, asked = threading.Event(), subject.Traces._asked

    def slow(self):
        assert go_on.wait(60)
        return asked(self)

    monkeypatch.setattr(subject.Traces, "_asked", slow)
    both(machines)
    both(machines)
    assert files(machines[0]) == {}
    go_on.set()
    wait_for(lambda: (both(machines), files(machines[0]))[1] == {"sandbox": ["b.py"]})


def test_where_the_journals_cannot_be_looked_at_the_agent_goes_on(sides: tuple[Side, Side], machines, failing):
    _, sandbox = sides
    sandbox.write(sandbox.session("two"), "b.py")
    failing(subject.Traces, "_asked", ZeroDivisionError)
    both(machines)
    assert files(machines[0]) == {} and [one["hook"] for one in recorded_faults()] == ["traces"]


def test_those_who_look_on_see_it_too(sides: tuple[Side, Side], machines):
    laptop, sandbox = sides
    me, they = laptop.session("one"), sandbox.session("two")
    laptop.write(me, "b.py")
    sandbox.write(they, "b.py")
    both(machines)
    found = edits(machines[0].store, str(laptop.top), People(machines[0].store))
    assert sorted(one.name.partition(" on ")[2] for one in found if one.path == str(laptop.top / "b.py")) == [
        "",
        "sandbox",
    ]
    shown = now(machines[0].store, str(laptop.top), People(machines[0].store), found)
    assert [(Path(one.path).name, one.conflict) for one in shown.files] == [("b.py", "changed by several")]


def label(side: Side, which: str, word: str) -> None:
    assert side.machine.ground.sql(f"UPDATE instances SET label = label || ' {word}' WHERE {which} RETURNING id")


def test_another_identity_is_not_named(sides: tuple[Side, Side], machines):
    laptop, sandbox = sides
    they = sandbox.session("two")
    sandbox.write(they, "b.py")
    both(machines)
    label(laptop, "label LIKE '%machine:sandbox%'", "identity:theirs")
    mine = laptop.session("one")
    label(laptop, "label NOT LIKE '%machine:%'", "identity:mine")
    assert "written by a session of another identity" in laptop.write(mine, "b.py")


def test_an_agent_that_begins_anew_makes_the_journals_what_the_store_says(sides: tuple[Side, Side], machines):
    laptop, sandbox = sides
    they = sandbox.session("two")
    sandbox.write(they, "b.py")
    both(machines)
    (name,) = laptop.journals()
    place = Path(place_of(str(laptop.top)))
    (place / name).write_bytes(b"torn")
    (place / "team.gone").write_bytes(b"of nobody")
    machines[0].begin()
    both(machines)
    assert laptop.journals() == [name] and b" far " in (place / name).read_bytes()


@pytest.mark.parametrize("body", [
    [], {}, {"files": 3}, {"files": {"": 1, "../x": 1, "a/../b": 1, "/x": 1, "x\n": "1", "y": -1, "z": 2**40}},
])  # fmt: skip
def test_what_another_machine_says_wrongly_is_passed_over(sides: tuple[Side, Side], machines, body):
    laptop, _ = sides
    both(machines)
    machines[1].server.put(REPOSITORY, [subject.item("trace", "s", 0, body)], 0, 0)
    both(machines)
    assert laptop.journals() == [] and mistakes() == []


def test_a_file_that_is_written_all_the_time_is_told_now_and_then(sides: tuple[Side, Side], machines):
    _, sandbox = sides
    they = sandbox.session("two")
    versions = []
    for number in range(3):
        sandbox.write(they, "b.py", f"{number}\n")
        both(machines)
        versions += [row["version"] for row in machines[0].there("documents") if row["kind"] == "trace"]
    assert len(set(versions)) == 1
