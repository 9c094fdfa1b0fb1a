"""A person's terminal is its own shell, or the agent's session around it; never another session."""

import json
import os
import shlex
import signal
import subprocess

import pytest
from support.fixtures import BARE_PYTHON, SWARM, Ground
from support.terminals import Terminal

from swarm_hook_core.process import start_time

pytestmark = pytest.mark.slow


@pytest.fixture
def terminals(ground: Ground):
    with Terminal(ground, "p") as p, Terminal(ground, "q") as q:
        yield p, q


def holders(ground: Ground) -> dict[str, str]:
    rows = ground.sql("SELECT file, instance_id FROM context WHERE type = 'lock'")
    return {row["file"].removeprefix(f"{ground.scope}/"): row["instance_id"] for row in rows}


def test_another_terminal_is_somebody_else(ground: Ground, terminals):
    p, q = terminals
    assert p.swarm("lock", "b.txt").code == 0
    one = p.whoami
    assert holders(ground) == {"b.txt": one}
    assert q.whoami == ""
    assert "is not registered yet" in q.swarm("deregister").err
    q.swarm("unlock", "b.txt")
    assert holders(ground) == {"b.txt": one}
    assert q.swarm("lock", "b.txt").code == 1 and q.swarm("lock", "c.txt").code == 0
    two = q.whoami
    assert two not in ("", one) and holders(ground) == {"b.txt": one, "c.txt": two}
    assert q.swarm("unlock", "b.txt", "--as", one).code == 0
    assert holders(ground) == {"c.txt": two}
    assert p.whoami == one


def test_what_is_typed_counts_from_the_folder_of_the_shell(ground: Ground, terminals):
    p, q = terminals
    (ground.repo / "sub").mkdir()
    elsewhere = ground.folder / "elsewhere"
    (elsewhere / ".git").mkdir(parents=True)
    assert p.swarm("lock", "a").code == 0
    one = p.whoami
    p.types("cd sub")
    assert p.swarm("lock", "b").code == 0
    assert holders(ground) == {"a": one, "sub/b": one}
    assert p.swarm("unlock", "b").code == 0
    p.types(f"cd {shlex.quote(str(elsewhere))}")
    assert p.swarm("lock", "c").code == 0
    assert holders(ground) == {"a": one, str(elsewhere.resolve() / "c"): one}
    assert q.swarm("lock", "a").code == 1 and q.swarm("lock", str(elsewhere / "c")).code == 1
    p.types(f"cd {shlex.quote(str(ground.repo))}")
    assert p.swarm("unlock", "a").code == 0 and p.whoami == one


def test_what_a_person_types_at_a_fresh_terminal_is_that_persons(ground: Ground, terminals):
    p, q = terminals
    assert p.swarm("lock", "b.txt").code == 0
    one = p.whoami
    assert q.swarm("request-task", "fix", "the build").code == 0
    two = q.whoami
    (task,) = ground.sql("SELECT id, requester FROM tasks")
    assert task["requester"] == two != one
    assert p.swarm("send", "--to", two, "hello").code == 0
    assert p.swarm("claim", task["id"]).code == 0
    sent = ground.sql("SELECT sender, recipient FROM messages WHERE content = 'hello'")
    assert sent == [{"sender": one, "recipient": two}]
    assert ground.sql("SELECT assignee FROM tasks") == [{"assignee": one}]


@pytest.mark.parametrize(
    "words",
    [
        ("send", "--to", "peer", "hello"), ("broadcast", "hello"), ("claim", "t"), ("request-task", "other", "do it"),
        ("kv", "set", "k", "1"), ("kv", "append", "l", "1"), ("kv", "del", "k"),
        ("prompt-peer", "peer", "--message", "hi"), ("update-task", "mine", "--status", "done"), ("unlock", "f"), ("request-lock", "held"), ("steal", "held"),
    ],
)  # fmt: skip
def test_each_verb_makes_a_fresh_shell_known(ground: Ground, monkeypatch, words: tuple[str, ...]):
    """As at a terminal: a variable may declare the environment to be trusted like one."""
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")
    peer = ground.session("peer", "peer")
    ground.lock(peer, "held")
    ground.add("tasks", id="t", scope=ground.scope, type="fix", title="T", requester=peer["id"])
    ground.swarm(*words)
    rows = ground.sql("SELECT label FROM instances WHERE id <> ?", peer["id"])
    assert rows == [{"label": "mode:gateway origin:terminal"}]


def test_a_terminal_opened_from_another_is_its_own(ground: Ground):
    """As in a terminal program started by hand: its shell descends from the first one."""
    line = shlex.join(SWARM)
    typed = f"{line} unlock b.txt; {line} lock c.txt; {line} whoami --json; :"
    program = "import subprocess, sys; subprocess.run(['sh', '-c', sys.argv[1]], start_new_session=True)"
    opened = [*BARE_PYTHON, "-c", program, typed]
    with Terminal(ground, "outer") as outer:
        assert outer.swarm("lock", "b.txt").code == 0
        done = outer.types(shlex.join(opened))
        inner = json.loads(done.out[done.out.index("{") :])["id"]
        assert holders(ground) == {"b.txt": outer.whoami, "c.txt": inner} and inner != outer.whoami


def test_in_an_agents_shell_it_is_the_agent(ground: Ground, terminals):
    p, q = terminals
    assert p.swarm("lock", "b.txt").code == 0
    agent = ground.session("s", "agent", client=(q.shell.pid, start_time(q.shell.pid)))
    assert q.whoami == agent["id"]
    assert q.swarm("lock", "c.txt").code == 0
    assert holders(ground)["c.txt"] == agent["id"]
    refused = q.swarm("steal", "b.txt", "--force", "--reason", "mine")
    assert refused.code == 1 and "only a person" in refused.err


def test_an_agent_that_nobody_has_registered_is_no_person(ground: Ground):
    with Terminal(ground, "p") as p:
        assert p.swarm("lock", "b.txt").code == 0
        of_agent = p.types(f"CLAUDECODE=1 {shlex.join([*SWARM, 'unlock', 'b.txt'])}")
        assert of_agent.code == 1 and holders(ground) == {"b.txt": p.whoami}


@pytest.mark.parametrize("runtime", ["terminal", "hold"])
def test_without_a_terminal_nobody_is_taken_for_a_person_or_a_command(ground: Ground, runtime: str):
    row = ground.session("x", "mode:gateway origin:terminal", runtime=runtime)
    ground.lock(row, "b.txt")
    done = ground.process("unlock", "b.txt", stdin=subprocess.DEVNULL)
    assert done.code == 1 and "no session is registered" in done.err
    assert holders(ground) == {"b.txt": row["id"]}


def test_a_person_who_holds_a_lock_may_use_force(ground: Ground, terminals):
    p, q = terminals
    assert p.swarm("lock", "b.txt").code == 0 and q.swarm("lock", "c.txt").code == 0
    answer = q.swarm("steal", "b.txt", "--force", "--reason", "it hangs", "--json")
    assert answer.code == 0, answer
    assert [row["holder"] for row in answer.json["taken"]] == [p.whoami]
    assert holders(ground) == {"b.txt": q.whoami, "c.txt": q.whoami}


def test_what_a_person_runs_with_hold_is_not_the_holder(ground: Ground):
    with Terminal(ground, "p") as p:
        assert p.swarm("hold", "f", "--", *SWARM, "lock", "g").code == 0
        assert holders(ground) == {"g": p.whoami}, "the shell has it, and hold is over"


def test_what_a_command_of_a_session_of_its_own_locks_is_the_shells(ground: Ground):
    program = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:], start_new_session=True))"
    alone = [*BARE_PYTHON, "-c", program]
    with Terminal(ground, "p") as p:
        assert p.types(shlex.join([*alone, *SWARM, "lock", "b.txt"])).code == 0
        assert holders(ground) == {"b.txt": p.whoami} != {"b.txt": ""}


def test_the_end_of_a_shell_ends_what_it_held(ground: Ground, terminals):
    p, q = terminals
    assert p.swarm("lock", "b.txt").code == 0
    os.kill(p.shell.pid, signal.SIGKILL)
    p.shell.wait()
    assert json.loads(q.swarm("lock", "b.txt", "--json").out)["ok"] is True
