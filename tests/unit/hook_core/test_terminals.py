"""The holder of a lock: a person's terminal, an agent's session around a shell, or one of a session's agents."""

import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from support.fixtures import BARE_PYTHON, SWARM, Ground, wait_for
from support.sessions import Ran, after, alterations, begun, captured, join, mistakes, new_session, run, start
from support.terminals import Terminal

from swarm_hook_core.lookup import SOME_AGENT, Peers
from swarm_hook_core.lookup.sqlite import StoreReader
from swarm_hook_core.process import start_time
from swarm_hook_core.state import store_path
from swarm_hook_core.watching import records
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

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
@pytest.mark.sampled
def test_each_verb_makes_a_fresh_shell_known(ground: Ground, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]):
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


SUBAGENTS = {"claude-code": "PreToolUse.Write.subagent", "codex": "PreToolUse.apply_patch.subagent"}


@pytest.fixture
def repo(repo: Path) -> Path:
    (repo / "sa.md").write_text("theirs\n")
    return repo


def lock(runtime: str, session: str, *files: Any, **given: Any) -> dict[str, Any]:
    """A lock that this session takes, or one of its agents; the session's row."""
    with Store() as store:
        row = store.instances.of_session(runtime, session)
        assert row
        store.locks.acquire_all(row, request(row, [str(file) for file in files], note="surgery", **given))
        return row


def written(runtime: str, session: str, repo: Path, agent: str) -> Ran:
    """A write of ``sa.md``, as the client's own subagent makes it; by the main thread where `agent` is empty."""
    payload = {**captured(runtime, SUBAGENTS[runtime], repo), "session_id": session}
    assert payload["agent_id"], "both clients say which of a session's agents calls"
    payload["agent_id"] = agent
    if not agent:
        del payload["agent_id"], payload["agent_type"]
    return run(runtime, "pre_tool_use", payload)


@pytest.fixture
def me(runtime: str, repo: Path) -> str:
    session = new_session()
    assert start(runtime, session, repo).context
    return session


@pytest.mark.parametrize("files", [("sa.md",), ("*.md",), ("",)])
@pytest.mark.sampled
def test_what_an_agent_holds_stops_its_siblings_and_the_main_thread(
    runtime: str, repo: Path, me: str, files: tuple[str, ...], store: Store
) -> None:
    given = {"as_pattern": True} if "*" in files[0] else {}
    lock(runtime, me, *(str(repo / file) for file in files), agent="a1", **given)
    assert written(runtime, me, repo, "a1").out == ""
    for agent in ("", "a2"):
        reason = written(runtime, me, repo, agent).reason
        assert (
            "held by another agent of your session (agent a1) (" in reason and '; note: "surgery"; locked' in reason
        ), reason
        assert "leave it to that agent" in reason and "message the holder" not in reason
    row = store.instances.of_session(runtime, me)
    assert row and store.messages.peek(row) == [], "nobody is told to wait for himself"
    assert mistakes() == []


def test_a_peer_s_agent_is_named_in_the_denial(runtime: str, repo: Path, me: str, store: Store) -> None:
    peer = join(store, repo, "renumbering")
    store.locks.acquire_all(peer, request(peer, [str(repo / "sa.md")], agent="b7"))
    for agent in ("", "b7"):  # the same word is another's agent in another session
        assert f"held by agent b7 of renumbering {peer['id'][:8]} (" in written(runtime, me, repo, agent).reason


def test_an_agent_s_lock_in_the_store_keeps_others_from_one_too(runtime: str, repo: Path, me: str) -> None:
    row = lock(runtime, me, repo / "sa.md", agent="a1")
    view = StoreReader(store_path())
    key = str(repo / "sa.md")

    def seen(own_id: str, agent: str) -> tuple[bool, bool, bool]:
        peers = Peers(view, own_id, time.time(), agent)
        return bool(peers.on([key])), bool(peers.under([str(repo)])), peers.any()

    assert seen(row["id"], "a1") == (False, False, True)
    assert seen(row["id"], "a2") == seen(row["id"], "") == seen("somebody", "a1") == (True, True, True)
    assert seen(row["id"], SOME_AGENT) == (False, False, True), "nobody says which: it may be the holder itself"


def test_many_locks_of_one_s_own_hide_no_sibling_s(runtime: str, repo: Path, me: str) -> None:
    row = lock(runtime, me, *(f"{repo}/many/{number}" for number in range(20)), agent="a1")
    lock(runtime, me, repo / "many" / "zz", agent="a2")
    peers = Peers(StoreReader(store_path()), row["id"], time.time(), "a1")
    assert [held.agent for held in peers.under([str(repo)], 5)] == ["a2"]


def test_locks_of_agents_that_may_be_the_caller_say_that_there_are_more(runtime: str, repo: Path, me: str) -> None:
    row = lock(runtime, me, *(f"{repo}/many/{number}" for number in range(20)), agent="a1")
    peers = Peers(StoreReader(store_path()), row["id"], time.time(), SOME_AGENT)
    assert peers.first_under([str(repo)], 5) == ([], True)
    assert peers.all_under([str(repo)], 5) == []


def test_what_a_sibling_changes_unseen_is_told_and_what_the_holder_does_is_not(
    runtime: str, repo: Path, me: str
) -> None:
    lock(runtime, me, repo / "sa.md", agent="a1")
    payload = begun(runtime, me, repo)
    (repo / "sa.md").write_text("mine\n")
    said = after(runtime, payload)
    assert 'sa.md changed, which agent a1 of your session has locked: "surgery"' in said and "Tell that agent" in said
    rows = wait_for(lambda: alterations())
    assert rows[0]["holder_id"] == rows[0]["writer_id"]
    (repo / "sa.md").write_text("theirs\n")
    payload = begun(runtime, me, repo)
    assert written(runtime, me, repo, "a1").out == ""  # the holder's own write, while the other's call runs
    (repo / "sa.md").write_text("the holder's\n")
    assert after(runtime, payload) == ""


def test_own_marks_tell_agents_apart(repo: Path) -> None:
    file, when = str(repo / "sa.md"), 10**18
    (Path(records.watched_dir())).mkdir(parents=True)
    records.mark_own("s", [file], "call", when, "a1")

    def acted(agent: str) -> bool:
        return records.acted("s", file, when - 5, when, when + 5, agent)

    assert (acted(""), acted("a1"), acted("a2")) == (True, True, False)
    records.mark_own("s", [], "other", when)
    assert (acted("a2"), acted("a1")) == (False, True)
    lines = (Path(records.acting_dir()) / "s").read_text().splitlines()
    assert [len(line.split()) for line in lines] == [4, 3], "what has no agent reads as it always did"
    assert json.dumps(lines)
