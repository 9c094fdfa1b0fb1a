"""A command that no agent runs is a person's, at a terminal and in a script; an agent's stays its session's."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.fixtures import SWARM, Done, Sleeper, wait_for
from support.screen import Played
from support.terminals import Terminal
from support.world import Agent, World

from swarm_hook_core.process import start_time
from swarm_hook_core.traces.versions.lines import Fold
from swarm_hook_core.traces.versions.notes import PERSON

pytestmark = pytest.mark.slow

BY_AGENTS = ("notes.md", "sub/deep.md")  # the file of the first agent, and of the second
ORPHAN = """
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
parent = os.getppid()
while os.getppid() == parent and parent != 1:
    pass
os.execvp(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture(params=["a script", "a terminal"])
def person(request: pytest.FixtureRequest, world: World):
    """Return a function that gives a command as a person: without a terminal, and at one."""

    def in_a_script(*words: str) -> Done:
        return world.ground.process(*words, stdin=subprocess.DEVNULL, start_new_session=True)

    def at_a_terminal(*words: str) -> Done:
        with Played([*SWARM, *words], cwd=world.repo) as played:
            code = played.ended()
        return Done(code, played.raw, played.raw)

    if request.param == "a script":
        return in_a_script
    return at_a_terminal


def agents_at_work(world: World, count: int) -> list[Agent]:
    """Let this many agents change a line each; a person changes one beside each of them, and a file alone."""
    agents = [world.session(("codex", "claude-code")[at], f"agent{at}") for at in range(count)]
    for agent, name in zip(agents, BY_AGENTS):
        agent.edit(name, "alpha", "AGENT")
    for name in BY_AGENTS:
        world.write(name, world.read(name) + "a person's\n")
    world.write("other.md", world.read("other.md").replace("beta", "a person's"))
    return agents


def as_before(world: World) -> dict[str, str]:
    return {name: world.read(name) for name in (*BY_AGENTS, "other.md")}


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("option", [[], ["--person"]], ids=["", "--person"])
@pytest.mark.sampled
def test_a_commit_has_the_persons_lines_alone(world: World, person, count: int, option: list[str]) -> None:
    agents_at_work(world, count)
    before = as_before(world)
    done = person("commit", "-m", "mine", *option)
    assert done.code == 0, done
    shown = world.git("show", "--format=", "HEAD")
    added = sorted(line for line in shown.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---"))
    assert added == ["+a person's"] * 3 + ["-beta"]
    assert world.git("diff", "HEAD").count("+AGENT") == count and as_before(world) == before


@pytest.mark.parametrize("count", [1, 2])
def test_an_undo_of_a_script_says_whose(world: World, count: int) -> None:
    agents_at_work(world, count)
    before = as_before(world)
    done = world.ground.process("undo", start_new_session=True)
    assert done.code == 1 and "--session" in done.err and "--person" in done.err and done.err.count("\n") == 1, done
    assert as_before(world) == before


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.sampled
def test_an_undo_takes_a_persons_lines_back_alone_and_is_undone(world: World, person, count: int) -> None:
    agents = agents_at_work(world, count)
    before = as_before(world)
    made = world.write("made.md", "a person's\n")
    if count < 2:
        (world.repo / "sub" / "deep.md").chmod(0o755)  # else an agent may have done it
    nothing = person("undo", "--person")
    assert nothing.code == 2 and "--all" in nothing.err, nothing
    assert as_before(world) == before
    done = person("undo", "--person", "notes.md", "made.md", "--json")
    assert done.code == 0, done
    assert world.read("notes.md") == ("AGENT" if count else "alpha") + "\nbeta\ngamma\n"
    assert not made.exists() and world.read("other.md") == before["other.md"]
    for agent in agents[:1]:
        agent.bash("cat notes.md")
        agent.edit("notes.md", "beta", "LATER")
    undo = done.out[done.out.index('"id": "') + 7 :][:8]
    assert person("undo", "--undo", undo).code == 0
    assert world.read("notes.md") == before["notes.md"].replace("beta", "LATER" if count else "beta")
    assert made.read_text() == "a person's\n"
    last = person("undo", "--person", "--all", "--json")
    assert last.code == 0
    assert "a person's" not in "".join(as_before(world).values())
    assert os.stat(world.repo / "sub" / "deep.md").st_mode & 0o111 == 0
    assert world.git("diff", "HEAD").count("+AGENT") == count
    assert world.swarm("undo", "--undo", last.out[last.out.index('"id": "') + 7 :][:8]).code == 0
    now = as_before(world)
    assert now.pop("notes.md") and all(now[name] == before[name] for name in now)
    assert made.read_text() == "a person's\n" and bool(os.stat(world.repo / "sub/deep.md").st_mode & 0o111) is (
        count < 2
    )


def test_kinds_of_a_persons_changes(world: World) -> None:
    world.session("codex", "agent")
    (world.repo / "ends.md").write_bytes(b"one\ntwo")
    (world.repo / "picture").write_bytes(b"\0one")
    world.commit()
    (world.repo / "ends.md").write_bytes(b"one\r\ntwo\nthree")
    (world.repo / "picture").write_bytes(b"\0two")
    (world.repo / "other.md").unlink()
    refused = world.swarm("undo", "--person", "--all")
    assert refused.code == 1 and "picture" in refused.out and (world.repo / "ends.md").read_bytes().endswith(b"three")
    done = world.swarm("undo", "--person", "--all", "--partial")
    assert done.code == 0
    assert (world.repo / "ends.md").read_bytes() == b"one\ntwo"
    assert world.read("other.md") == "alpha\nbeta\ngamma\n" and (world.repo / "picture").read_bytes() == b"\0two"
    assert world.swarm("undo", "--undo", done.json["id"]).code == 0
    assert (world.repo / "ends.md").read_bytes() == b"one\r\ntwo\nthree" and not (world.repo / "other.md").exists()


def test_an_agents_line_that_a_person_has_replaced_comes_back(world: World) -> None:
    agent = world.session("codex", "agent")
    agent.edit("notes.md", "alpha", "AGENT")
    agent.bash("cat notes.md")
    world.write("notes.md", "PERSON\nbeta\ngamma\n")
    assert world.swarm("undo", "--person", "notes.md").code == 0
    assert world.read("notes.md") == "AGENT\nbeta\ngamma\n"


@pytest.mark.parametrize("is_beside", [False, True], ids=["alone", "beside an agent"])
def test_lines_beside_a_persons_keep_their_ends(world: World, is_beside: bool) -> None:
    """Git converts them: the commit has others."""
    world.git("config", "core.autocrlf", "true")
    path = world.repo / "notes.md"
    path.write_bytes(b"alpha\r\nbeta\r\ngamma\r\n")
    if is_beside:
        world.session("codex", "agent").edit("notes.md", "beta", "AGENT")
    before = path.read_bytes()
    world.write("notes.md", "")
    path.write_bytes(before.replace(b"alpha", b"PERSON"))
    assert world.swarm("undo", "--person", "notes.md").code == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize("is_sure", [True, False])
def test_the_right_to_be_run_that_a_person_gave_goes(world: World, is_sure: bool) -> None:
    agent, path = world.session("codex", "agent"), world.repo / "other.md"
    before = path.stat().st_mode
    agent.edit("notes.md", "alpha", "AGENT")
    if not is_sure:
        agent.ask("Bash", {"command": "make"})  # it may write anything, and has not ended
    path.chmod(before | 0o111)
    done = world.swarm("undo", "--person", "other.md", "--partial")
    assert done.code == 0 and ("its mode" in done.out) is (not is_sure), done
    assert path.stat().st_mode == (before if is_sure else before | 0o111)


def test_what_a_person_changes_after_a_restore_is_the_persons(world: World) -> None:
    """A restore is a step of its own: lines that it brings back keep their authors."""
    agent = world.session("claude-code", "agent")
    agent.edit("notes.md", "beta\n", "AGENT\n")
    assert world.swarm("restore", "notes.md", "--person").code == 0
    assert world.read("notes.md") == "alpha\nbeta\ngamma\n"
    world.write("notes.md", "alpha\nAGENT\ngamma\n")
    (change,) = Fold(str(world.repo / "notes.md")).changes()
    assert change.authors == [PERSON]


def test_lines_that_may_be_an_agents_stand_in_the_way_of_a_persons_undo(world: World) -> None:
    agent = world.session("codex", "agent")
    assert agent.ask("Bash", {"command": "make"}).denied is False  # it may write anything, and has not ended
    world.write("notes.md", "alpha\nPERHAPS\ngamma\n")
    done = world.swarm("undo", "--person", "notes.md")
    assert done.code == 1 and "perhaps by agent" in done.out, done
    assert "PERHAPS" in world.read("notes.md")


def holders(world: World) -> dict[str, str]:
    rows = world.sql("SELECT c.file, s.runtime FROM context c JOIN swarm_sessions s USING (instance_id)")
    return {os.path.basename(row["file"]): row["runtime"] for row in rows}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("option", [[], ["--person"]], ids=["", "--person"])
def test_a_scripts_lock_is_the_persons_and_lasts_as_long_as_the_script(
    world: World, count: int, option: list[str]
) -> None:
    agents = agents_at_work(world, count)
    swarm = shlex.join(SWARM)
    script = f"{swarm} lock {shlex.join(['other.md', *option])} && {swarm} lock {shlex.join(['made.md', *option])}"
    script += f" && {swarm} unlock {shlex.join(['made.md', *option])}; echo $? > done && mv done code; read line"
    one = subprocess.Popen(["sh", "-c", script], cwd=world.repo, start_new_session=True, stdin=subprocess.PIPE)
    try:
        wait_for((world.repo / "code").exists)
        assert (world.repo / "code").read_text() == "0\n" and holders(world) == {"other.md": "terminal"}
        assert all(agent.write("other.md").denied for agent in agents)
        assert world.swarm("unlock", "other.md", as_=agents[0]).code == 1
    finally:
        one.communicate()
    assert world.swarm("locks").json == []


def test_a_script_beside_no_agent_locks_if_it_says_person(world: World) -> None:
    done = world.ground.process("lock", "other.md", start_new_session=True)
    assert done.code == 1 and "no session is registered" in done.err
    assert world.ground.process("lock", "other.md", "--person").code == 0
    assert holders(world) == {"other.md": "terminal"}


@pytest.mark.parametrize("words", [["whoami"], ["deregister"], ["diff", "--mine", "--stat"]], ids=" ".join)
def test_a_script_is_not_the_only_agent(world: World, words: list[str]) -> None:
    (agent,) = agents_at_work(world, 1)
    done = world.ground.process(*words, start_new_session=True)
    if words[0] == "diff":
        assert done.code == 0 and "a person" in done.out and "agent0" not in done.out
        return
    assert done.code == 1 and "is a person's" in done.err and done.err.count("\n") == 1
    assert agent.id[:8] in done.err and len(world.swarm("instances").json) == 1


def below(world: World, runtime: str = "codex") -> Agent:
    """Begin a session with this process as its client: the commands that it starts are that session's."""
    return world.session(runtime, "agent0", client=(os.getpid(), start_time(os.getpid())))


AS_A_PERSON = {
    "commit": ["commit", "-m", "x", "--person"], "undo": ["undo", "--person", "other.md"],
    "undo all": ["undo", "--person", "--all"], "lock": ["lock", "other.md", "--person"],
    "unlock": ["unlock", "other.md", "--person"], "unlock all": ["unlock", "--all", "--person"],
    "restore": ["restore", "other.md", "--person"], "msg": ["msg", "all", "hello", "--person"],
    "task": ["task", "request", "fix", "a title", "--person"], "kv": ["kv", "set", "key", "1", "--person"],
    "request-lock": ["request-lock", "other.md", "--person"],
    "hold": ["hold", "other.md", "--person", "--", "true"], "hold git": ["hold", "--git", "--person", "--", "true"],
    "dispatch": ["worker", "dispatch", "a title", "--no-spawn", "--person"],
    "poll": ["worker", "poll", "--for", "0.01", "--person"],
    "ui": ["ui", "organize", "--wait", "0", "--person"], "deregister": ["deregister", "--person"],
    "bootstrap": ["bootstrap", "--person"],
}  # fmt: skip
MARKS = {"claude-code": "CLAUDE_CODE_SESSION_ID", "codex": "CODEX_THREAD_ID"}


@pytest.mark.parametrize("words", AS_A_PERSON.values(), ids=AS_A_PERSON)
@pytest.mark.parametrize("how", ["below the client", "by a mark", "at a terminal", "as trusted"])
@pytest.mark.sampled
def test_an_agent_is_no_person(world: World, words: list[str], how: str) -> None:
    agent = world.session("codex", "agent0") if how == "by a mark" else below(world)
    world.write("other.md", "a person's\n")
    before, head = as_before(world), world.git("rev-parse", "HEAD")
    env = dict(os.environ)
    if how == "by a mark":
        env["CODEX_THREAD_ID"] = agent.session_id
    elif how == "as trusted":
        env["SWARM_MCP_ALLOW_SPAWN"] = "1"
    if how == "at a terminal":
        with Played([*SWARM, *words], cwd=world.repo) as played:
            code, said = played.ended(), played.screen.text
    else:
        done = world.ground.process(*words, env=env)
        code, said = done.code, done.err
        assert done.out == "" and said.count("\n") == 1
    assert code == 1 and "--person is for persons" in " ".join(said.split()), said
    assert (as_before(world), world.git("rev-parse", "HEAD"), holders(world)) == (before, head, {})
    (event,) = world.sql("SELECT actor FROM events WHERE type = 'protection.attempted'")
    assert event["actor"] == agent.id


@pytest.mark.parametrize(
    "words", [words for words in AS_A_PERSON.values() if words[0] != "undo"], ids=lambda words: words[0]
)
def test_a_person_is_not_both(world: World, words: list[str]) -> None:
    agent = world.session("codex", "agent0")
    at = words.index("--person")
    done = world.ground.swarm(*words[:at], "--as", agent.id, *words[at:])
    assert done.code == 2 and "exclude each other" in done.err and done.err.count("\n") == 1


def test_a_script_restores_writes_and_asks_as_a_person(world: World) -> None:
    (agent,) = agents_at_work(world, 1)
    assert not agent.write("notes.md", "alpha\nbeta\ngamma\nAGENT\na person's\n").denied
    done = world.ground.process("restore", "notes.md", "--person", start_new_session=True)
    assert done.code == 0 and world.read("notes.md") == "AGENT\nbeta\ngamma\na person's\n", done
    for words in (["msg", "all", "hello"], ["task", "request", "fix", "a title"], ["kv", "set", "key", "1"]):
        done = world.ground.process(*words, "--person", start_new_session=True)
        assert done.code == 0, done
    (sent,) = world.sql("SELECT runtime FROM messages JOIN swarm_sessions s ON s.instance_id = sender")
    (asked,) = world.sql("SELECT runtime FROM tasks JOIN swarm_sessions s ON s.instance_id = requester")
    assert sent["runtime"] == asked["runtime"] == "terminal"


def test_an_order_of_a_person_is_not_the_session_that_a_variable_names(world: World) -> None:
    (agent,) = agents_at_work(world, 1)
    env = {**os.environ, "SWARM_MCP_INSTANCE_ID": agent.id}

    def given(*words: str) -> Done:
        done = world.ground.process(*words, env=env, start_new_session=True)
        assert done.code == 0, (words, done)
        return done

    (held,) = given("hold", "other.md", "--person", "--", *SWARM, "locks", "--json").json
    assert held["instance_id"] != agent.id
    (own,) = given("hold", "other.md", "--", *SWARM, "locks", "--json").json
    assert own["instance_id"] == agent.id
    given("worker", "dispatch", "a title", "--no-spawn", "--person")
    given("worker", "poll", "--for", "0.01", "--person")
    (asked,) = world.sql("SELECT runtime FROM tasks JOIN swarm_sessions s ON s.instance_id = requester")
    assert asked["runtime"] == "terminal"
    given("ui", "organize", "--wait", "0", "--person")
    (order,) = world.sql("SELECT created_by FROM ui_commands")
    assert order["created_by"] != agent.id


def test_a_person_ends_the_session_of_the_own_shell(world: World) -> None:
    agents_at_work(world, 1)
    swarm = shlex.join(SWARM)
    steps = ["lock other.md --person", "hold made.md --person -- true", "bootstrap --person", "deregister --person"]
    script = " && ".join(f"{swarm} {step}" for step in steps)
    done = subprocess.run(["sh", "-c", script], cwd=world.repo, start_new_session=True, check=False)
    assert done.returncode == 0 and holders(world) == {} and len(world.swarm("instances").json) == 1
    for words in (["deregister", "--person"], ["bootstrap", "--person"]):
        done = world.ground.process(*words, start_new_session=True)
        assert done.code == 1 and "not registered yet" in done.err and done.err.count("\n") == 1, done
    assert len(world.swarm("instances").json) == 1


@pytest.mark.parametrize("runtime", MARKS)
@pytest.mark.parametrize("how", ["below the client", "orphaned", "orphaned beside another"])
@pytest.mark.sampled
def test_an_agents_command_is_its_sessions(world: World, runtime: str, how: str) -> None:
    agent = below(world, runtime) if how == "below the client" else world.session(runtime, "agent0")
    if "beside" in how:
        world.session("codex", "agent1").edit("sub/deep.md", "alpha", "OTHER")
    agent.edit("notes.md", "alpha", "AGENT")
    world.write("other.md", "a person's\n")
    words, env = [*SWARM, "commit", "-m", "mine"], dict(os.environ)
    if how == "below the client":
        subprocess.run(words, cwd=world.repo, check=True)
    else:
        env[MARKS[runtime]] = agent.session_id
        subprocess.run([sys.executable, "-c", ORPHAN, *words], cwd=world.repo, check=True, env=env)
        wait_for(lambda: "mine" in world.git("log", "-1", "--format=%s"))
    assert world.git("show", "--format=", "--name-only", "HEAD").split() == ["notes.md"]
    assert "+AGENT" in world.git("show", "HEAD") and "a person's" in world.git("diff")


@pytest.mark.parametrize(
    "marks",
    [
        {"GEMINI_CLI": "1"},
        {"CODEX_CI": "1", "CODEX_THREAD_ID": "another"},
        {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "unknown"},
    ],
    ids=["of another client", "of another thread", "of another session"],
)
@pytest.mark.parametrize("words", [["commit", "-m", "x"], ["undo"], ["lock", "other.md"]], ids=lambda words: words[0])
@pytest.mark.sampled
def test_an_agent_without_a_session_here_is_not_the_only_one(world: World, marks: dict[str, str], words) -> None:
    """Its client has no hooks, say: it is neither that session nor a person."""
    agents_at_work(world, 1)
    before = as_before(world)
    done = world.ground.process(*words, env={**os.environ, **marks})
    assert done.code == 1 and "nothing shows that agent0" in done.err and done.err.count("\n") == 1, done
    assert "mine" not in world.git("log", "--format=%s") and as_before(world) == before and holders(world) == {}


def test_an_agent_whose_client_names_no_session_is_the_only_one_of_its_client(world: World) -> None:
    agents_at_work(world, 1)
    assert world.ground.process("lock", "other.md", env={**os.environ, "CODEX_CI": "1"}).code == 0
    assert holders(world) == {"other.md": "codex"}


@pytest.fixture(params=["in another container", "unknown"])
def unseen(request: pytest.FixtureRequest, world: World) -> Agent:
    """A session at work with a client that cannot be seen from here."""
    (agent,) = agents_at_work(world, 1)
    if request.param == "unknown":
        world.sql("UPDATE swarm_sessions SET client_pid = NULL, client_start = NULL")
    else:
        world.sql("UPDATE swarm_sessions SET host = host || '1'")  # another pid namespace of this machine
    return agent


@pytest.mark.parametrize(
    "words",
    [["commit", "-m", "x"], ["undo", "--session", "agent0"], ["lock", "other.md"], *AS_A_PERSON.values()],
    ids=" ".join,
)
@pytest.mark.sampled
def test_where_it_is_uncertain_nothing_is_done(world: World, unseen: Agent, words: list[str]) -> None:
    before, head = as_before(world), world.git("rev-parse", "HEAD")
    done = world.ground.process(*words, start_new_session=True)
    assert done.code == 1 and done.out == "" and done.err.count("\n") == 1 and "agent0" in done.err, done
    assert (as_before(world), world.git("rev-parse", "HEAD"), holders(world)) == (before, head, {})


@pytest.mark.sampled
def test_where_it_is_uncertain_one_says_who_one_is(world: World, unseen: Agent) -> None:
    assert world.ground.process("lock", "notes.md", "--as", unseen.id).code == 0
    env = {**os.environ, "CODEX_THREAD_ID": unseen.session_id}
    assert world.ground.process("lock", "other.md", env=env).code == 0
    assert holders(world) == {"notes.md": "codex", "other.md": "codex"}
    trusted = {**os.environ, "SWARM_MCP_ALLOW_SPAWN": "1"}
    assert world.ground.process("commit", "-m", "mine", "sub/deep.md", "--person", env=trusted).code == 0
    with Terminal(world.ground, "terminal") as terminal:
        assert terminal.swarm("undo", "--person", "other.md").code == 1, "the agent has locked it"
        assert terminal.swarm("lock", "sub/deep.md").code == 0


def test_a_client_with_several_sessions_in_a_registered_terminal_is_not_that_terminal(world: World) -> None:
    with Terminal(world.ground, "terminal") as terminal:
        assert terminal.swarm("lock", "notes.md").code == 0
        client = (terminal.shell.pid, start_time(terminal.shell.pid))
        for name in ("one", "two"):
            world.session("pi", name, client=client)
        for words in (["whoami"], ["unlock", "notes.md"], ["commit", "-m", "x"], ["lock", "a", "--person"]):
            done = terminal.swarm(*words)
            assert done.code == 1, (words, done)
    assert "x" not in world.git("log", "--format=%s").split()


def test_a_persons_own_lock_is_not_in_the_way_of_the_undo(world: World, tmp_path: Path) -> None:
    agents_at_work(world, 1)
    with Terminal(world.ground, "terminal") as terminal:
        assert terminal.swarm("lock", "other.md").code == 0
        assert terminal.swarm("undo", "--person", "other.md").code == 0
    assert "a person's" not in world.read("other.md")


def test_a_sleeping_client_is_no_owner_of_a_script(world: World) -> None:
    with Sleeper() as client:
        world.session("claude-code", "agent0", client=client.identity)
        assert world.ground.process("lock", "other.md").code == 0
        assert holders(world) == {"other.md": "terminal"}
