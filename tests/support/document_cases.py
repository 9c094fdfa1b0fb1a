"""Two machines of a team: messages, tasks and values of one are those of the other, whatever comes between.

Run against the server in memory (tests/unit/team) and against PostgreSQL (tests/team).
"""

from __future__ import annotations

import pytest

from swarm_hook_core import clock
from swarm_mcp.errors import Refused, TeamUnreachable


def both(machines, rounds: int = 2) -> None:
    """Both machines have posted what they have, and heard of the other's."""
    for _ in range(rounds):
        for machine in machines:
            machine.follow()


def ask(machine, session, title: str = "Tidy up", **given) -> str:
    """Request a task; its id."""
    return machine.store.tasks.request(session, {"type": "fix", "title": title, **given})["task"].id


def confirm(machine, task_id: str):
    return machine.following.confirm_documents([("task", task_id)], clock.now() + 2.0)["answer"]


def task(machine, task_id: str):
    return machine.store.team_documents.task(task_id)


def value(machine, key: str) -> str | None:
    row = machine.store.kv.get(machine.tops[0], key)
    return row.value if row else None


# ------------------------------------------------------------------------ messages


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
        laptop.store.notices.post(there, "[auto] please release src/a.py", f"{laptop.tops[0]}/src/a.py")
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
