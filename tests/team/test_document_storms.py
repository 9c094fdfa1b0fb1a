"""Storms of three machines over PostgreSQL: a few seeds; ``SWARM_STORMS=200`` for more."""

import contextlib
import json
import os
import time
from pathlib import Path

import pytest
from support.document_cases import ask, both, confirm, task, value
from support.document_storm import Storm
from support.team_machines import Machine

from swarm_mcp.team import TeamUnreachable
from team.servers import PostgreSQL


@pytest.mark.parametrize("seed", range(int(os.environ.get("SWARM_STORMS", "3"))))
def test_a_storm(tmp_path: Path, team: str, repository: str, seed: int) -> None:
    Storm(tmp_path, seed, PostgreSQL(team), repository).run(steps=120)


def test_what_a_server_that_takes_over_has_not_got_is_told_to_it_again(tmp_path: Path, new_engine, repository) -> None:
    """PostgreSQL is promoted from a copy without the latest changes."""
    team = PostgreSQL(new_engine.dsn())
    machines = [Machine(tmp_path / name, name, team, repository) for name in ("laptop", "sandbox")]
    laptop, sandbox = machines
    one, other = laptop.session("one"), sandbox.session("other")
    both(machines)
    early = ask(laptop, one, "early")
    laptop.store.kv.append(one, "log", '"first"')
    laptop.store.messages.send(one, other["id"], "before")
    both(machines)
    standby = new_engine.copy(tmp_path / "standby" / "data")
    late = ask(laptop, one, "late")
    laptop.store.messages.send(one, other["id"], "posted, and lost there")
    laptop.follow()
    laptop.store.kv.append(one, "log", '"second"')
    sandbox.store.tasks.claim(other, early, ignore_unread=True)
    assert confirm(sandbox, early) == "granted"
    laptop.follow()
    new_engine.stop()
    laptop.store.kv.append(one, "log", '"third"')
    sandbox.store.kv.append(other, "log", '"fourth"')
    try:
        standby.promote()
        for machine in machines:
            machine.following.mirror.lose()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.suppress(TeamUnreachable):
                both(machines)
                if task(sandbox, late) and not any(machine.replica.documents.differences() for machine in machines):
                    break
            time.sleep(0.2)
        both(machines)
        for machine in machines:
            assert task(machine, early).assignee == other["id"]
            assert task(machine, late).title == "late"
            assert sorted(json.loads(value(machine, "log"))) == ["first", "fourth", "second", "third"]
        assert sandbox.mail(other) == ["before", "posted, and lost there"]
    finally:
        for machine in machines:
            machine.close()
        standby.stop()
