"""Two machines share messages, tasks and values: the cases of all servers, and those that one in memory can play."""

import os

import pytest
from support.document_cases import *  # noqa: F403
from support.document_cases import ask, both, confirm, task, value
from support.team_machines import REPOSITORY, Machine

from swarm_mcp.team import TeamUnreachable, protocol
from swarm_mcp.team.documents import Documents
from swarm_mcp.team.parts import TeamRows

pytestmark = pytest.mark.thorough


def restore(machines, team, version: int) -> None:
    """Let another server take over, without the changes after this version."""
    team.restore(REPOSITORY, version)
    team.repositories[REPOSITORY].version += 1000


def second_tree(machine) -> str:
    """Add another work tree, earlier than the first in the order of names."""
    tree = os.path.join(os.path.dirname(machine.tops[0]), "a-second-tree")
    os.makedirs(os.path.join(tree, ".git"))
    return tree


def test_a_server_that_lost_what_came_last_is_told_it_again(machines, team, laptop: Machine, sandbox, one: dict, other):
    known = ask(laptop, one)
    both(machines)
    version = team.repositories[REPOSITORY].version
    laptop.store.kv.put(one, "plan", "north")
    late = ask(laptop, one, "another")
    laptop.store.messages.send(one, other["id"], "did you see it?")
    sandbox.store.tasks.claim(other, known, ignore_unread=True)
    assert confirm(sandbox, known) == "granted"
    laptop.follow()
    restore(machines, team, version)
    both(machines, 3)
    for machine in machines:
        assert value(machine, "plan") == "north"
        assert task(machine, late).title == "another"
        assert task(machine, known).assignee == other["id"]
    assert [text for text in sandbox.mail(other) if "did you" in text] == ["did you see it?"]


def test_of_two_who_tell_it_again_the_one_that_knew_more_is_right(machines, team, laptop: Machine, sandbox, one, other):
    known = ask(laptop, one)
    both(machines)
    version = team.repositories[REPOSITORY].version
    sandbox.store.tasks.claim(other, known)
    assert confirm(sandbox, known) == "granted"
    laptop.follow()
    sandbox.store.tasks.end(other, known, "done")
    sandbox.follow()  # unknown to the laptop
    restore(machines, team, version)
    both(machines, 3)
    assert task(laptop, known).status == task(sandbox, known).status == "done"


def test_for_a_while_after_a_loss_nobody_claims(machines, team, laptop: Machine, sandbox: Machine, one: dict):
    known = ask(laptop, one)
    both(machines)
    team.grace = 30.0
    laptop.store.tasks.claim(one, known)
    assert confirm(laptop, known) == "unreachable"
    team.grace = 0.0


def test_a_server_without_documents_goes_on_with_locks_alone(machines, team, laptop: Machine, sandbox: Machine):
    team.schema = 1
    for machine in machines:
        machine.begin()
    one, other = laptop.session("one"), sandbox.session("other")
    both(machines)
    assert not laptop.following.mirror.shares
    known = ask(laptop, one)
    laptop.store.tasks.claim(one, known)
    assert confirm(laptop, known) == "local"
    laptop.store.messages.send(one, other["id"], "can you hear me?")
    laptop.take(one, "a.py")
    both(machines)
    assert sandbox.held() == [("a.py", "laptop")] and "put" not in team.calls
    team.schema = protocol.DOCUMENTS_SCHEMA  # brought up by `team init`
    for machine in machines:
        machine.following.mirror.lose()
    both(machines)
    assert task(sandbox, known).assignee == one["id"]
    assert sandbox.mail(other) == ["can you hear me?"]


def test_who_was_away_too_long_takes_everything_and_has_the_same(machines, team, laptop: Machine, sandbox, one, other):
    laptop.store.kv.put(one, "gone", "soon")
    laptop.store.kv.append(one, "log", "1")
    both(machines)
    laptop.store.kv.delete(one, "gone")
    laptop.store.kv.append(one, "log", "2")
    laptop.store.messages.send(one, other["id"], "once")
    laptop.follow()
    sandbox.store.kv.append(other, "log", "3")
    team.kept = 0
    both(machines, 3)
    assert value(sandbox, "gone") is None
    assert value(laptop, "log") == value(sandbox, "log") == "[1,2,3]"
    assert sandbox.mail(other) == ["once"]


def test_everything_is_taken_in_pieces_and_may_break_off_between_them(machines, team, monkeypatch, laptop, sandbox):
    one, other = laptop.session("one"), sandbox.session("other")
    both(machines)
    tasks = [ask(laptop, one, f"number {number}") for number in range(70)]
    sandbox.store.kv.append(other, "log", '"theirs"')
    laptop.store.kv.append(one, "log", '"ours"')
    laptop.store.messages.send(one, other["id"], "once")
    laptop.follow()
    team.kept = 0
    take, begun = Documents.take, []

    def take_some(self, row, *given) -> None:
        begun.append(row)
        if len(begun) == 60:
            raise TeamUnreachable("the agent was killed")
        take(self, row, *given)

    monkeypatch.setattr(Documents, "take", take_some)
    with pytest.raises(TeamUnreachable):
        sandbox.follow()
    assert 40 <= sandbox.ground.sql("SELECT count(*) AS n FROM tasks")[0]["n"] < 60
    monkeypatch.undo()
    sandbox.begin()
    both(machines, 3)
    assert {row["id"] for row in sandbox.ground.sql("SELECT id FROM tasks")} == set(tasks)
    assert value(laptop, "log") == value(sandbox, "log") == '["ours","theirs"]'
    assert sandbox.mail(other) == ["once"]


def test_a_task_whose_session_was_silent_for_a_lease_is_open_to_others(machines, team, laptop, sandbox, one, other):
    known = ask(laptop, one)
    both(machines)
    laptop.store.tasks.claim(one, known)
    assert confirm(laptop, known) == "granted"
    sandbox.follow()
    team.clock += protocol.SESSION_LEASE + 1
    sandbox.follow()
    sandbox.server.reap(REPOSITORY)
    sandbox.follow()
    sandbox.store.tasks.claim(other, known, ignore_unread=True)
    assert confirm(sandbox, known) == "granted"
    both(machines)
    assert task(laptop, known).assignee == other["id"]
    told = [text for text in laptop.mail(one) if known in text]
    assert len(told) == 1 and "You have it no longer" in told[0]


@pytest.mark.parametrize("is_claimed", [False, True])
def test_what_was_done_counts_though_its_session_was_let_go_first_unless_somebody_has_begun_it(
    machines, team, is_claimed: bool, laptop: Machine, sandbox: Machine
):
    one, other = laptop.session("one"), sandbox.session("other")
    known = ask(laptop, one)
    both(machines)
    laptop.store.tasks.claim(one, known)
    assert confirm(laptop, known) == "granted"
    sandbox.follow()
    laptop.store.tasks.end(one, known, "done", "it works")
    team.clock += protocol.SESSION_LEASE + 1
    sandbox.follow()
    sandbox.server.reap(REPOSITORY)
    sandbox.follow()
    assert task(sandbox, known).status == "open"
    if is_claimed:
        sandbox.store.tasks.claim(other, known, ignore_unread=True)
        assert confirm(sandbox, known) == "granted"
    both(machines)
    both(machines)
    expected = ("in_progress", None) if is_claimed else ("done", "it works")
    assert [(task(one, known).status, task(one, known).result) for one in machines] == [expected, expected]


def test_what_the_server_has_let_go_for_its_age_is_not_posted_again(machines, team, laptop, sandbox, one: dict, other):
    known = ask(laptop, one)
    both(machines)
    laptop.store.tasks.end(one, known, "cancelled")
    laptop.store.messages.send(one, other["id"], "once")
    both(machines)
    for machine in machines:
        machine.ground.sql("UPDATE tasks SET updated_at = updated_at - 90000")
    rows = laptop.there("documents")
    for row in rows:
        laptop.server.server.expire(REPOSITORY, row["kind"], row["key"])
    for machine in machines:
        machine.begin()
    both(machines)
    assert laptop.there("documents") == []
    assert sandbox.mail(other) == ["once"]


def test_another_work_tree_has_its_own_values_and_its_tasks_are_the_teams(machines, laptop: Machine, sandbox: Machine):
    other = sandbox.session("other")
    tree = second_tree(laptop)
    laptop.tops.append(tree)  # before the first one, in the order of names
    laptop.begin()
    second = laptop.session("second", directory=tree)
    both(machines)
    known = ask(laptop, second, files=[f"{tree}/src/a.py"])
    laptop.store.kv.put(second, "plan", "of the second tree")
    both(machines)
    assert value(sandbox, "plan") is None
    assert task(sandbox, known).files == [f"{sandbox.tops[0]}/src/a.py"]
    sandbox.store.tasks.claim(other, known)
    assert confirm(sandbox, known) == "granted"
    both(machines)
    here = task(laptop, known)
    assert (here.scope, here.files, here.assignee) == (tree, [f"{tree}/src/a.py"], other["id"])


def test_when_the_tree_that_has_what_others_share_goes_another_one_has_it(machines, laptop: Machine, sandbox: Machine):
    other = sandbox.session("other")
    sandbox.store.kv.put(other, "plan", "north")
    known = ask(sandbox, other)
    both(machines)
    tree = second_tree(laptop)
    first = laptop.tops[0]
    laptop.tops[:] = [tree]
    with laptop.store.database.writing():
        TeamRows(laptop.store).leave([first])
    laptop.begin()
    second = laptop.session("second", directory=tree)
    both(machines)
    assert laptop.store.kv.get(tree, "plan").value == "north"
    assert task(laptop, known).scope == tree
    sandbox.store.messages.send(other, second["id"], "over here")
    laptop.store.messages.send(second, other["id"], "over there")
    both(machines)
    assert (laptop.mail(second), sandbox.mail(other)) == (["over here"], ["over there"])


def test_who_leaves_and_joins_again_gets_no_message_twice_and_overwrites_nothing_new(machines, laptop, sandbox):
    one, other = laptop.session("one"), sandbox.session("other")
    both(machines)
    laptop.store.kv.put(one, "plan", "north")
    laptop.store.messages.send(one, other["id"], "once")
    known = ask(laptop, one)
    both(machines)
    sandbox.store.tasks.claim(other, known, ignore_unread=True)
    assert confirm(sandbox, known) == "granted"
    both(machines)
    with laptop.store.database.writing():
        TeamRows(laptop.store).leave(laptop.tops)
        TeamRows(laptop.store).set_trees({})
    laptop.server.part(REPOSITORY)
    sandbox.ground.sql("UPDATE kv SET updated_at = updated_at + 5")
    sandbox.store.kv.put(other, "plan", "south")
    sandbox.ground.sql("UPDATE kv SET updated_at = updated_at + 5")
    sandbox.follow()
    laptop.begin()
    both(machines)
    assert value(laptop, "plan") == value(sandbox, "plan") == "south"
    assert task(laptop, known).assignee == task(sandbox, known).assignee == other["id"]
    assert sandbox.mail(other) == ["once"]


def test_what_is_appended_before_the_server_first_answers_is_there_as_well(machines, laptop, sandbox, one: dict, other):
    sandbox.store.kv.append(other, "log", '"theirs"')
    sandbox.follow()
    with laptop.store.database.writing():
        TeamRows(laptop.store).leave(laptop.tops)
        TeamRows(laptop.store).set_trees({})
    laptop.server.part(REPOSITORY)
    laptop.store.kv.append(one, "log", '"ours"')
    sandbox.ground.sql("UPDATE kv SET updated_at = updated_at + 5")
    sandbox.store.kv.append(other, "log", '"later"')
    sandbox.follow()
    laptop.begin()
    both(machines)
    assert value(laptop, "log") == value(sandbox, "log") == '["theirs","later","ours"]'


def test_a_question_that_comes_while_the_server_is_away_says_so(machines):
    laptop, _ = machines
    one = laptop.session("one")
    known = ask(laptop, one)
    both(machines)
    laptop.server.cut = True
    laptop.store.tasks.claim(one, known)
    with pytest.raises(TeamUnreachable):
        confirm(laptop, known)


def test_tasks_out_of_a_team_are_no_matter_of_it(machines, tmp_path):
    laptop, _ = machines
    stranger = laptop.session("stranger", directory=str(tmp_path))
    known = ask(laptop, stranger)
    both(machines)
    assert laptop.there("documents") == []
    laptop.store.tasks.claim(stranger, known)
    assert confirm(laptop, known) == "local"


def test_what_another_program_left_in_the_store_stops_nobody(machines, laptop: Machine, sandbox: Machine, one: dict):
    top = laptop.tops[0]
    odd = "INSERT INTO tasks (id, scope, type, title, requester, status, description, created_at, changed_at)"
    laptop.ground.sql(f"{odd} VALUES ('odd', ?, 'fix', x'ff', 'r', 'open', x'00', 1.5, 7)", top)
    laptop.ground.sql(f"{odd} VALUES ('soft', ?, 'fix', 'soft', 'r', 'open', x'00', 1e300, 8)", top)
    laptop.ground.sql("INSERT INTO kv (scope, key, value) VALUES (?, 'odd', x'ff00')", top)
    laptop.ground.sql("INSERT INTO kv (scope, key, value, updated_at) VALUES (?, 'plan', 'north', 2.5)", top)
    known = ask(laptop, one)
    both(machines)
    assert task(sandbox, known).title == "Tidy up"
    assert (value(sandbox, "plan"), value(sandbox, "odd")) == ("north", None)
    laptop.begin()
    both(machines)
    assert ("task", "odd") in laptop.replica.documents.refused


def test_what_nobody_of_ours_would_say_is_passed_over(machines, team, laptop: Machine, sandbox: Machine):
    other = sandbox.session("other")
    both(machines)
    items = [
        protocol.item("task", "t", 0, {"id": "another", "status": "open"}),
        protocol.item("task", "u", 0, ["no task"]),
        protocol.item("value", "v", 0, {"value": 1}),
        protocol.item("message", "m", 0, {"recipient": other["id"], "content": 7, "sender": ""}),
        protocol.item("message", "n", 0, {"recipient": [], "content": "x", "sender": ""}),
    ]
    assert all(answer["ok"] for answer in laptop.server.put(REPOSITORY, items, 0, 0))
    both(machines)
    assert sandbox.mail(other) == []
    assert sandbox.ground.sql("SELECT 1 FROM tasks UNION ALL SELECT 1 FROM kv") == []


def test_files_of_others_stay_in_the_clone(machines, team, laptop: Machine, sandbox: Machine, one: dict):
    known = ask(laptop, one, files=[f"{laptop.tops[0]}/src/a.py"])
    both(machines)
    row = dict(next(row for row in laptop.there("documents") if row["kind"] == "task"))
    body = {**row["body"], "files": ["../../etc/passwd", "/etc/passwd", "src//b.py", "ok.py", 3]}
    tower = team.server("tower")
    tower.hello(REPOSITORY)
    assert tower.put(REPOSITORY, [protocol.item("task", known, row["version"], body)], 0, 0)[0]["ok"]
    both(machines)
    assert task(sandbox, known).files == [f"{sandbox.tops[0]}/ok.py"]
