"""Two machines of a team share messages, tasks and values through all interruptions.

Run against the server in memory (tests/unit/team) and against PostgreSQL (tests/team).
"""

import pytest

from swarm_hook_core import clock
from swarm_mcp.errors import Refused
from swarm_mcp.store import messages
from swarm_mcp.team import TeamUnreachable
from swarm_mcp.team.parts import TeamDocuments


def both(machines, rounds: int = 2) -> None:
    """Have both machines post their changes, and apply the other's."""
    for _ in range(rounds):
        for machine in machines:
            machine.follow()


def ask(machine, session, title: str = "Tidy up", **given) -> str:
    """Request a task; its id."""
    return machine.store.tasks.request(session, {"type": "fix", "title": title, **given})["task"].id


def confirm(machine, task_id: str):
    return machine.following.confirm_documents([("task", task_id)], clock.now() + 2.0)["answer"]


def task(machine, task_id: str):
    return TeamDocuments(machine.store).task(task_id)


def value(machine, key: str) -> str | None:
    row = machine.store.kv.get(machine.tops[0], key)
    return row.value if row else None


def test_a_message_reaches_a_session_of_the_other_machine_once(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    both(machines)
    laptop.store.messages.send(one, other["id"], "hello over there")
    assert laptop.mail(one) == []
    both(machines)
    both(machines)
    (told,) = sandbox.store.messages.take(other)
    assert (told.sender, told.content) == (one["id"], "hello over there")
    sandbox.store.messages.acknowledge([told.id])
    both(machines)
    assert sandbox.mail(other) == []
    sandbox.store.messages.send(other, one["id"], "and back")
    both(machines)
    assert laptop.mail(one) == ["and back"]


def test_a_broadcast_reaches_everybody_once(machines):
    laptop, sandbox = machines
    one, near, far = laptop.session("one"), laptop.session("near"), sandbox.session("far")
    both(machines)
    assert set(laptop.store.messages.broadcast(one, "all hands")) == {near["id"], far["id"]}
    both(machines)
    assert (laptop.mail(near), sandbox.mail(far), laptop.mail(one)) == (["all hands"], ["all hands"], [])


def test_messages_written_while_the_server_is_away_arrive_in_their_order(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    both(machines)
    laptop.server.cut = True
    for number in range(3):
        laptop.store.messages.send(one, other["id"], f"number {number}")
    with pytest.raises(TeamUnreachable):
        laptop.follow()
    laptop.ground.sql("DELETE FROM messages")  # as it is cleaned up after an hour
    laptop.server.cut = False
    laptop.begin()
    both(machines)
    assert sandbox.mail(other) == ["number 0", "number 1", "number 2"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_message_whose_post_breaks_off_is_neither_lost_nor_doubled(machines, when):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    both(machines)
    laptop.store.messages.send(one, other["id"], "only once")

    def die() -> None:
        raise TeamUnreachable("the agent was killed")

    getattr(laptop.server, when)["put"] = die
    with pytest.raises(TeamUnreachable):
        laptop.follow()
    laptop.begin()
    both(machines)
    both(machines)
    assert sandbox.mail(other) == ["only once"]


def test_what_is_delivered_is_not_delivered_again_by_a_replica_that_begins_anew(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    both(machines)
    laptop.store.messages.send(one, other["id"], "only once")
    both(machines)
    assert sandbox.mail(other) == ["only once"]
    sandbox.ground.sql("DELETE FROM messages")
    with sandbox.store.database.writing():
        sandbox.replica.forget()
    sandbox.begin()
    both(machines)
    assert sandbox.mail(other) == []


def test_what_a_hook_is_to_tell_it_tells_there_with_the_file_in_its_own_clone(machines):
    laptop, sandbox = machines
    other = sandbox.session("other")
    both(machines)
    there = laptop.store.instances.get(other["id"])
    with laptop.store.database.writing():
        messages.post_notice(
            laptop.store.database, there, "[auto] please release src/a.py", f"{laptop.tops[0]}/src/a.py"
        )
    both(machines)
    (row,) = sandbox.ground.sql("SELECT file FROM swarm_notices WHERE instance_id = ?", other["id"])
    assert row["file"] == f"{sandbox.tops[0]}/src/a.py"
    (notice,) = sandbox.store.notices.take(other)
    assert notice.text.startswith("[auto] please release src/a.py")


def test_identities_are_apart_across_machines_too(machines):
    laptop, sandbox = machines
    one = laptop.ground.session("laptop-red", label="claude-code identity:red")
    other = sandbox.ground.session("sandbox-blue", label="claude-code identity:blue")
    both(machines)
    with pytest.raises(Refused):
        laptop.store.messages.send(one, other["id"], "psst")
    assert laptop.store.messages.broadcast(one, "all of us") == []


def test_a_task_is_the_same_on_both_machines_with_files_of_each_ones_clone(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    files = [f"{laptop.tops[0]}/src/a.py", "/elsewhere/b.py"]
    known = ask(laptop, one, files=files, description="all of it", priority=3)
    both(machines)
    there = task(sandbox, known)
    assert there.scope == sandbox.tops[0] and there.files == [f"{sandbox.tops[0]}/src/a.py"]
    assert (there.title, there.description, there.priority, there.requester) == ("Tidy up", "all of it", 3, one["id"])
    sandbox.store.tasks.claim(other, known)
    assert confirm(sandbox, known) == "granted"
    sandbox.store.tasks.report_progress(other, known, "half way")
    both(machines)
    here = task(laptop, known)
    assert (here.status, here.assignee, here.progress_summary) == ("in_progress", other["id"], "half way")
    assert here.files == files
    record = {"summary": "done", "files_changed": ["src/a.py"], "tracker_update_skipped": "none"}
    sandbox.store.tasks.complete(other, known, record)
    both(machines)
    here = task(laptop, known)
    assert here.status == "done" and f'"files_changed":["{laptop.tops[0]}/src/a.py"]' in here.result
    (told,) = laptop.mail(one)
    assert told.startswith(f"[task:{known}] [auto] Done:")
    versions = [row["version"] for row in laptop.there("documents")]
    both(machines, 3)
    assert [row["version"] for row in laptop.there("documents")] == versions  # nothing more to say


def test_of_two_machines_that_claim_a_task_one_has_it(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    known = ask(laptop, one)
    both(machines)
    sandbox.store.tasks.claim(other, known)
    laptop.store.tasks.claim(one, known)
    assert confirm(sandbox, known) == "granted"
    assert confirm(laptop, known) == "held"
    assert task(laptop, known).assignee == other["id"]
    both(machines)
    assert task(sandbox, known).assignee == other["id"]
    assert laptop.mail(one) == [] and sandbox.mail(other) == []  # it was answered
    with pytest.raises(Refused):
        laptop.store.tasks.claim(one, known)


def test_a_claim_that_nobody_waits_for_gives_way_with_a_word(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    known = ask(laptop, one)
    both(machines)
    laptop.server.cut = True
    laptop.store.tasks.claim(one, known)  # and its verb is killed
    sandbox.store.tasks.claim(other, known)
    assert confirm(sandbox, known) == "granted"
    laptop.server.cut = False
    both(machines)
    assert task(laptop, known).assignee == task(sandbox, known).assignee == other["id"]
    (told,) = laptop.mail(one)
    assert told.startswith(f"[task:{known}] [auto]") and "in_progress by" in told


def test_a_claim_that_gave_way_before_its_verb_has_asked_is_said_once(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    known = ask(laptop, one)
    both(machines)
    sandbox.store.tasks.claim(other, known)
    assert confirm(sandbox, known) == "granted"
    laptop.store.tasks.claim(one, known)
    laptop.follow()  # another session has poked
    assert confirm(laptop, known) == "held"
    assert laptop.mail(one) == [] and laptop.store.notices.take(one) == []


def test_a_claim_that_is_taken_back_after_its_answer_was_lost_is_taken_back_there_too(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    known = ask(laptop, one)
    both(machines)
    before = laptop.ground.sql("SELECT * FROM tasks")[0]

    def lose() -> None:
        raise TeamUnreachable("the answer is lost")

    laptop.server.after["put"] = lose
    laptop.store.tasks.claim(one, known)
    with pytest.raises(TeamUnreachable):
        confirm(laptop, known)
    laptop.ground.sql(
        "UPDATE tasks SET status = ?, assignee = NULL, updated_at = ?, changed_at = changed_at + 1",
        before["status"], before["updated_at"],
    )  # fmt: skip
    laptop.begin()
    both(machines)
    assert task(laptop, known).status == task(sandbox, known).status == "open"
    sandbox.store.tasks.claim(other, known)
    assert confirm(sandbox, known) == "granted"


def test_a_task_for_a_session_elsewhere_is_told_to_it(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    both(machines)
    known = ask(laptop, one, assignee=other["id"])
    both(machines)
    (told,) = sandbox.mail(other)
    assert "New fix task for you" in told
    assert sandbox.store.tasks.claim(other, known)["task"].status == "in_progress"
    assert confirm(sandbox, known) == "granted"


def test_tasks_of_a_session_elsewhere_that_ends_are_open_again(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    known = ask(laptop, one)
    both(machines)
    sandbox.store.tasks.claim(other, known)
    assert confirm(sandbox, known) == "granted"
    both(machines)
    sandbox.store.instances.remove(other["id"])
    both(machines)
    assert (task(laptop, known).status, task(sandbox, known).status) == ("open", "open")
    laptop.store.tasks.claim(one, known, ignore_unread=True)
    assert confirm(laptop, known) == "granted"


def test_what_waits_for_a_task_begins_once_however_many_machines_see_it_end(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    first = ask(laptop, one, "first")
    second = ask(laptop, one, "second", depends_on=[first], assignee=one["id"])
    both(machines)
    assert task(sandbox, second).status == "blocked"
    sandbox.store.tasks.claim(other, first)
    assert confirm(sandbox, first) == "granted"
    sandbox.store.tasks.end(other, first, "done")
    both(machines)
    assert task(laptop, second).status == task(sandbox, second).status == "claimed"
    told = laptop.mail(one)
    assert sum("No longer blocked" in text for text in told) == 1


def test_tasks_made_while_the_server_is_away_are_posted_on_return(machines):
    laptop, sandbox = machines
    one = laptop.session("one")
    both(machines)
    laptop.server.cut = True
    known = [ask(laptop, one, f"number {number}") for number in range(3)]
    with pytest.raises(TeamUnreachable):
        laptop.follow()
    laptop.begin()
    laptop.server.cut = False
    both(machines)
    assert [task(sandbox, one_id).title for one_id in known] == ["number 0", "number 1", "number 2"]


def test_one_idempotency_key_is_one_tasks_in_the_team(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    both(machines)
    first = ask(laptop, one, idempotency_key="nightly")
    second = ask(sandbox, other, idempotency_key="nightly")
    both(machines, 3)
    for machine in machines:
        assert task(machine, first).idempotency_key == "nightly"
        assert task(machine, second).idempotency_key is None
    (told,) = sandbox.mail(other)
    assert second in told and first in told


def test_values_are_those_of_all_machines(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    laptop.store.kv.put(one, "plan", "north")
    laptop.store.kv.put(one, "identity/herdr/x", "a pane of this screen")
    both(machines)
    assert (value(sandbox, "plan"), value(sandbox, "identity/herdr/x")) == ("north", None)
    sandbox.store.kv.put(other, "plan", "south")
    both(machines)
    assert value(laptop, "plan") == "south"
    laptop.store.kv.delete(one, "plan")
    both(machines)
    assert value(sandbox, "plan") is None
    laptop.store.kv.put(one, "plan", "west")
    both(machines)
    assert value(sandbox, "plan") == "west"


def test_of_a_value_that_two_set_at_once_the_later_one_stays(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    both(machines)
    laptop.store.kv.put(one, "plan", "north")
    sandbox.store.kv.put(other, "plan", "south")
    both(machines, 3)
    assert value(laptop, "plan") == value(sandbox, "plan") == "south"  # it came to the server later


def test_what_two_append_at_once_is_all_there(machines):
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    laptop.store.kv.append(one, "log", '"first"')
    both(machines)
    laptop.store.kv.append(one, "log", "1.50")
    sandbox.store.kv.append(other, "log", '{"two": [1, 2]}')
    sandbox.store.kv.append(other, "log", '"three"')
    both(machines, 3)
    assert value(laptop, "log") == value(sandbox, "log") == '["first",1.50,{"two":[1,2]},"three"]'


def test_a_value_of_another_identity_is_not_overwritten(machines):
    laptop, sandbox = machines
    red = laptop.ground.session("laptop-red", label="claude-code identity:red")
    blue = sandbox.ground.session("sandbox-blue", label="claude-code identity:blue")
    both(machines)
    laptop.store.kv.put(red, "plan", "north")
    sandbox.store.kv.put(blue, "plan", "south")
    both(machines, 3)
    assert value(laptop, "plan") == value(sandbox, "plan") == "north"
    with pytest.raises(Refused):
        sandbox.store.kv.put(blue, "plan", "south")


def test_what_is_too_large_stays_here_and_says_so(machines):
    laptop, sandbox = machines
    one = laptop.session("one")
    laptop.store.kv.put(one, "large", "x" * 200_000)
    laptop.store.kv.put(one, "nul", "a\0b")
    laptop.store.kv.put(one, "plan", "north")
    both(machines)
    assert [value(sandbox, key) for key in ("large", "nul", "plan")] == [None, None, "north"]
    assert sorted(laptop.replica.documents.refused) == [("value", "large"), ("value", "nul")]
    laptop.store.kv.put(one, "large", "small")
    both(machines)
    assert value(sandbox, "large") == "small"
