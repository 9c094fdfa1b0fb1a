"""Messages, tasks and values between two machines as people have them, with real team agents."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from team.homes import LIMIT, Home, wait_for

AWAY = "the team's server cannot be reached, so nobody can know whether another machine has claimed it"


def join(home: Home, label: str, other: Home | None = None) -> str:
    """Register a session; its id, once `other` knows it as well."""
    row = home.json("register", str(home.clone), "--label", f"identity:p {label}", "--lease-seconds", "900")
    if other is not None:
        wait_for(lambda: knows(other, row["id"]))
    return row["id"]


def knows(home: Home, session: str) -> bool:
    return any(row["id"] == session for row in home.json("instances"))


def inbox(home: Home, session: str) -> list[str]:
    """All that was ever written to a session, as its machine has it."""
    return [row["content"] for row in home.json("messages", "--to", session)]


def take(home: Home, session: str) -> list[dict]:
    """Return its unread mail, and mark it as read."""
    return home.json("bootstrap", "--as", session)["unread_messages"]


def status_of(home: Home, task: str) -> str:
    """The status of a task; empty where this machine does not know it."""
    return next((row["status"] for row in home.json("tasks") if row["id"] == task), "")


def tasks(home: Home, kind: str = "research") -> list[dict]:
    return [row for row in home.json("tasks", "--limit", "-1") if row["type"] == kind]


def start(home: Home, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "swarm_mcp", *words], cwd=home.clone, env=home.environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, team: str) -> Iterator[tuple[Home, Home]]:
    """Two machines for all tests here, with leftover tasks."""
    folder = tmp_path_factory.mktemp("work")
    made = Home(folder, "north"), Home(folder, "south")
    try:
        for one in made:
            one.run("team", "join", team, "--repository", f"work-{os.getpid()}")
        yield made
    finally:
        for one in made:
            one.end()


@pytest.fixture
def pair(shared: tuple[Home, Home]) -> Iterator[tuple[Home, str, Home, str]]:
    """Both machines with a session each that know each other."""
    north, south = shared
    ann = join(north, "role:planner mode:gateway", south)
    bob = join(south, "role:reviewer", north)
    yield north, ann, south, bob
    for home, who in ((north, ann), (south, bob)):
        home.run("deregister", "--force", "--as", who, code=None)
    wait_for(lambda: not knows(north, bob) and not knows(south, ann))


def test_a_message_comes_once_and_is_answered(pair) -> None:
    north, ann, south, bob = pair
    north.run("send", "the importer is ready", "--to", bob, "--as", ann)
    wait_for(lambda: inbox(south, bob))
    (mail,) = take(south, bob)
    assert (mail["sender"], mail["content"]) == (ann, "the importer is ready")
    south.run("send", "read it", "--to", ann, "--as", bob)
    wait_for(lambda: inbox(north, ann) == ["read it"])
    north.run("broadcast", "main is frozen", "--as", ann)
    wait_for(lambda: inbox(south, bob) == ["the importer is ready", "main is frozen"])
    assert [mail["content"] for mail in take(south, bob)] == ["main is frozen"] and take(south, bob) == []


def test_no_message_is_lost_or_doubled_where_agents_are_killed(pair) -> None:
    north, ann, south, bob = pair
    texts = [f"number {number}" for number in range(8)]
    for number, text in enumerate(texts):
        north.run("send", text, "--to", bob, "--as", ann)
        home = (north, south)[number % 2]
        agent = home.json("team", "status", code=None)["agent"]
        if agent:
            os.kill(agent["pid"], signal.SIGKILL)
    for home in (north, south):
        home.run("team", "status", code=None)
        home.run("instances")
    north.run("send", "the last", "--to", bob, "--as", ann)
    south.run("send", "to wake its agent", "--to", ann, "--as", bob)
    wait_for(lambda: "the last" in inbox(south, bob))
    assert sorted(inbox(south, bob)) == sorted([*texts, "the last"])


def test_a_message_written_without_the_server_arrives_when_it_is_back(
    tmp_path: Path, new_engine, repository: str
) -> None:
    with two(tmp_path, new_engine, repository) as (north, ann, south, bob):
        new_engine.stop()
        north.run("send", "written in a tunnel", "--to", bob, "--as", ann)
        new_engine.start()
        wait_for(lambda: inbox(south, bob) == ["written in a tunnel"])


def test_another_identity_hears_nothing(pair) -> None:
    north, ann, south, bob = pair
    eve = south.json("register", str(south.clone), "--label", "identity:q", "--lease-seconds", "900")["id"]
    wait_for(lambda: knows(north, eve))
    assert "another identity" in north.run("send", "hello", "--to", eve, "--as", ann, code=1).stderr
    north.run("broadcast", "for us", "--as", ann)
    wait_for(lambda: inbox(south, bob))
    assert inbox(south, eve) == []
    asked = north.json("request-task", "review", "ours", "--as", ann)["id"]
    wait_for(lambda: status_of(south, asked))
    assert south.run("claim", asked, "--as", eve, code=1).stderr.strip().endswith("Task not found")


def test_a_task_is_claimed_on_one_machine_only(pair) -> None:
    north, ann, south, bob = pair
    asked = [north.json("request-task", "fix", f"number {n}", "--file", "src/a.py", "--as", ann)["id"] for n in (1, 2)]
    wait_for(lambda: all(status_of(south, one) == "open" for one in asked))
    seen = south.json("task", asked[0], "--as", bob)["task"]
    assert seen["files"] == [str(south.clone.resolve() / "src" / "a.py")]
    for one in asked:
        both = [start(north, "claim", one, "--as", ann), start(south, "claim", one, "--as", bob)]
        said = [each.communicate(timeout=LIMIT)[1] for each in both]
        codes = [each.returncode for each in both]
        for number, (home, who) in enumerate(((north, ann), (south, bob))):
            while AWAY in said[number]:  # on a busy machine the server may take longer than a verb waits
                done = home.run("claim", one, "--as", who, code=None)
                codes[number], said[number] = done.returncode, done.stderr
        assert sorted(codes) == [0, 1], (codes, said)
        winner, loser, place = ((ann, south, "north"), (bob, north, "south"))[codes.index(0)]
        assert f" on {place}-" in said[codes.index(1)], said
        wait_for(lambda one=one, loser=loser: status_of(loser, one) == "in_progress")
        for home in (north, south):
            assert home.json("task", one, "--as", (ann, bob)[home is south])["task"]["assignee"] == winner


CLAIMER = """
import sys, time
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store
from swarm_mcp.locking.acquisition import claim_next
with Store() as store:
    me = store.instances.live(sys.argv[1])
    while True:
        try:
            print(claim_next(store, me, ["research"], ignore_unread=True)["task"].id, flush=True)
        except Refused:
            time.sleep(0.05)
        store.refresh()
"""


def test_of_tasks_that_two_machines_reach_for_each_is_begun_once_though_agents_are_killed(pair, tmp_path: Path) -> None:
    north, ann, south, bob = pair
    words = ["request-task", "research", "--as", ann]
    asked = {north.json(*words, f"number {number}")["id"] for number in range(12)}
    wait_for(lambda: {row["id"] for row in tasks(south)} == asked)
    claimers = [
        (home, who, tmp_path / f"{number}-{who}") for number in (1, 2) for home, who in ((north, ann), (south, bob))
    ]

    def begun(*names: str) -> list[str]:
        return [one for _, who, file in claimers if who in names for one in file.read_text().split()]

    runs = []
    for home, who, file in claimers:
        with file.open("w") as out:
            words = [sys.executable, "-c", CLAIMER, who]
            runs.append(subprocess.Popen(words, cwd=home.clone, env=home.environment, stdout=out))
    try:
        end = time.monotonic() + 2 * LIMIT
        kills = 0
        while len(begun(ann, bob)) < len(asked):
            assert time.monotonic() < end, tasks(north)
            agent = (north, south)[kills % 2].json("team", "status", code=None)["agent"]
            if agent and kills < 6:
                os.kill(agent["pid"], signal.SIGKILL)
                kills += 1
    finally:
        for run in runs:
            run.kill()
            run.wait()
    assert kills and sorted(begun(ann, bob)) == sorted(asked)
    for home in (north, south):
        wait_for(lambda home=home: all(row["status"] == "in_progress" for row in tasks(home)))
        for who in (ann, bob):
            assert {row["id"] for row in tasks(home) if row["assignee"] == who} == set(begun(who))


def test_a_task_goes_its_whole_way_over_two_machines(pair) -> None:
    north, ann, south, bob = pair
    first = north.json("request-task", "implement", "the index", "--assignee", bob, "--as", ann)["id"]
    then = north.json("request-task", "review", "the index, read", "--depends-on", first, "--as", ann)["id"]
    wait_for(lambda: status_of(south, then) == "blocked" and inbox(south, bob))
    south.run("claim", first, "--as", bob)
    wait_for(lambda: status_of(north, first) == "in_progress")
    south.run("update-task", first, "--status", "done", "--note", "merged as 4f1a", "--as", bob)
    wait_for(lambda: status_of(north, first) == "done" and status_of(north, then) == "open")
    assert north.json("task", first, "--as", ann)["task"]["result"] == "merged as 4f1a"
    assert any("merged as 4f1a" in text for text in inbox(north, ann))
    take(north, ann)
    north.run("claim", then, "--as", ann)
    wait_for(lambda: status_of(south, then) == "in_progress")
    north.run("update-task", then, "--status", "cancelled", "--as", ann)
    wait_for(lambda: status_of(south, then) == "cancelled")


def test_what_a_session_had_is_free_again_when_it_ends(pair) -> None:
    north, ann, south, bob = pair
    asked = north.json("request-task", "fix", "it", "--as", ann)["id"]
    wait_for(lambda: status_of(south, asked) == "open")
    south.run("claim", asked, "--as", bob)
    wait_for(lambda: status_of(north, asked) == "in_progress")
    south.run("deregister", "--force", "--as", bob)
    wait_for(lambda: status_of(north, asked) == "open")
    north.run("claim", asked, "--force", "--as", ann)
    wait_for(lambda: status_of(south, asked) == "in_progress")


def test_without_the_server_nothing_is_claimed_and_all_else_is_told_later(
    tmp_path: Path, new_engine, repository: str
) -> None:
    with two(tmp_path, new_engine, repository) as (north, ann, south, bob):
        mine = south.json("request-task", "fix", "claimed before", "--as", bob)["id"]
        open_one = south.json("request-task", "fix", "open", "--as", bob)["id"]
        south.run("claim", mine, "--as", bob)
        wait_for(lambda: status_of(north, mine) == "in_progress")
        new_engine.stop()
        done = south.run("claim", open_one, "--as", bob, code=1)
        assert AWAY in done.stderr and status_of(south, open_one) == "open"
        made = south.json("request-task", "fix", "made in a tunnel", "--as", bob)["id"]
        south.run("update-task", mine, "--status", "done", "--as", bob)
        new_engine.start()
        wait_for(lambda: status_of(north, mine) == "done" and status_of(north, made) == "open")
        wait_for(lambda: south.run("claim", made, "--as", bob, code=None).returncode == 0)
        wait_for(lambda: status_of(north, made) == "in_progress")


def test_a_worker_elsewhere_does_what_is_dispatched(pair) -> None:
    north, ann, south, bob = pair
    words = ["--role", "reviewer", "--message", "read src/a.py", "--completion-wait", "60", "--as", ann, "--json"]
    lead = start(north, "dispatch", "Read it", *words)
    try:
        wait_for(lambda: any("read src/a.py" in text for text in inbox(south, bob)))
        (asked,) = [row["id"] for row in south.json("tasks") if row["title"] == "Read it"]
        take(south, bob)
        south.run("claim", asked, "--as", bob)
        south.run("update-task", asked, "--status", "done", "--note", "no faults", "--as", bob)
        answer = json.loads(lead.communicate(timeout=LIMIT)[0])
    finally:
        lead.kill()
        lead.wait()
    assert (answer["status"], answer["recipient"]) == ("dispatched", bob)
    assert (answer["completion"]["status"], answer["completion"]["result"]) == ("completed", "no faults")
    again = south.json("dispatch", "Read it", "--role", "reviewer", "--no-spawn", "--as", bob)
    assert (again["status"], again["task_id"]) == ("already_terminal", asked), "an equal dispatch is the same task"


def test_a_worker_that_was_started_without_the_server_begins_when_it_is_back(
    tmp_path: Path, new_engine, repository: str
) -> None:
    with two(tmp_path, new_engine, repository) as (north, ann, south, _):
        new_engine.stop()
        words = ["--harness", "process", "--spawner", "process", "--command", "/bin/sh -c 'echo hi > begun'"]
        asked = north.json("dispatch", "Do it", *words, "--as", ann)["task_id"]
        wait_for(lambda: [row["state"] for row in north.json("task", asked, "--as", ann)["runs"]] == ["queued"])
        time.sleep(5)  # time for a wrong beginning
        assert not (north.clone / "begun").exists()
        wait_for(lambda: status_of(north, asked) != "in_progress")  # it is in progress while the server is asked
        new_engine.start()
        wait_for(lambda: (north.clone / "begun").exists() and status_of(south, asked) == "done", 2 * LIMIT)


def test_values_are_the_same_on_both_machines(pair) -> None:
    north, ann, south, bob = pair
    north.run("kv", "set", "port", "8080", "--as", ann)
    wait_for(lambda: (south.json("kv", "get", "port", "--as", bob) or {}).get("value") == "8080")
    both = [start(home, "kv", "append", "log", f'"{who}"', "--as", who) for home, who in ((north, ann), (south, bob))]
    assert [(each.communicate(timeout=LIMIT), each.returncode)[1] for each in both] == [0, 0]
    for home, who in ((north, ann), (south, bob)):
        wait_for(lambda home=home, who=who: sorted(value(home, who, "log")) == sorted([ann, bob]))
    south.run("kv", "del", "port", "--as", bob)
    wait_for(lambda: north.json("kv", "get", "port", "--as", ann) is None)


def value(home: Home, who: str, key: str) -> list[str]:
    row = home.json("kv", "get", key, "--as", who)
    found = json.loads(row["value"]) if row else []
    assert isinstance(found, list)
    return found


def test_a_lock_is_asked_for_and_handed_over_to_another_machine(homes: tuple[Home, Home]) -> None:
    north, south = homes
    north.begin("n1")
    south.begin("s1")
    held = north.json("lock", "src/a.py", "--note", "renumbering", "--as", "n1")
    wait_for(lambda: '"deny"' in south.write("s1", "src/a.py"))
    south.run("request-lock", "src/a.py", "--reason", "one index", "--as", "s1")
    said = wait_for(lambda: north.hook("turn", "n1", hook_event_name="UserPromptSubmit", prompt="go on"))
    assert "asks for your lock on src/a.py" in said and "one index" in said
    words = ("transfer", "src/a.py", "--to", south.json("whoami", "--as", "s1")["id"], "--note", "go", "--as", "n1")
    wait_for(lambda: north.run(*words, code=None).returncode == 0)  # its words may be here before it is known itself
    assert '"deny"' in north.write("n1", "src/a.py"), "it has it no more, whoever has heard of that"
    heard: list[str] = []
    wait_for(lambda: heard.append(south.write("s1", "src/a.py")) or '"deny"' not in heard[-1])
    assert "been handed the lock on" in "".join(heard) and 'It says: \\"go\\"' in "".join(heard)
    (row,) = south.json("locks")
    assert row["team_fence"] > held["team"]["fence"]
    assert '"deny"' in north.write("n1", "src/a.py")


class two:
    """Two machines with a session each on a server of the test's own."""

    def __init__(self, folder: Path, engine, repository: str):
        self.homes = Home(folder, "north"), Home(folder, "south")
        for one in self.homes:
            one.run("team", "join", engine.dsn(), "--repository", repository)

    def __enter__(self) -> tuple[Home, str, Home, str]:
        north, south = self.homes
        ann = join(north, "role:planner mode:gateway", south)
        return north, ann, south, join(south, "role:reviewer", north)

    def __exit__(self, *_: object) -> None:
        for one in self.homes:
            one.end()
