"""Commands that weaken the protection of others are refused to agents in any shell, and allowed to people."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from support.files import program_at, text_at
from support.fixtures import SWARM, Ground, Sleeper
from support.terminals import Terminal

from swarm_hook_core.process import start_time
from swarm_hook_core.state import config_path
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

AGENT, PEER = "agent-1", "peer-2"
VARIABLE = "SWARM_MCP_INSTANCE_ID"
# Commands that weaken protection, and the proof that nothing was done.
WEAKENS = {
    "protect off": ["protect", "off"],
    "protect notice --user": ["protect", "notice", "--user"],
    "protect --unset": ["protect", "--unset"],
    "install --no-kernel": ["install", "--no-kernel", "--client", "claude-code"],
    "uninstall": ["uninstall"],
    "guard uninstall": ["guard", "uninstall"],
    "guard install": ["guard", "install"],
    "steal": ["steal", "held", "--force", "--reason", "mine"],
}
STRENGTHENS = [
    ["protect", "turn"],
    ["auto", "keep"],
    ["protect"],
    ["uninstall", "--dry-run"],
    ["guard", "install", "--auto"],
]


@pytest.fixture(autouse=True)
def _anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swarm_hook_core.settings._last", (None, None))


@pytest.fixture
def place(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """A checkout at level `turn`, with the kernel's hold and a guard, and a peer that holds a file."""
    os.rmdir(ground.repo / ".git")
    subprocess.run(["git", "init", "-q", str(ground.repo)], check=True)
    client = program_at(tmp_path / "bin" / "claude", "#!/bin/sh\nexit 0\n")
    monkeypatch.setenv("PATH", f"{client.parent}:{os.environ['PATH']}")
    given = {"kernel": True, "checkouts": {str(ground.repo): {"auto": "turn"}}}
    text_at(Path(config_path()), json.dumps(given))
    assert ground.swarm("guard", "install", "--auto").code == 0
    ground.lock(ground.session(PEER, "identity:p peer"), "held")
    return ground


def in_shell_of(ground: Ground, monkeypatch: pytest.MonkeyPatch, label: str = "identity:p me") -> dict:
    """Register an agent's session; the test's own commands run in its shell from now on."""
    row = ground.session(AGENT, label)
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", AGENT)
    return row


def attempts(ground: Ground) -> list[dict]:
    return ground.sql("SELECT actor, subject FROM events WHERE type = 'protection.attempted'")


def state(ground: Ground) -> tuple:
    """Return everything that these commands could change."""
    hooks = sorted(path.name for path in (ground.repo / ".git" / "hooks").glob("pre-*") if path.suffix != ".sample")
    texts = [(ground.repo / ".git" / "hooks" / name).read_text() for name in hooks]
    return Path(config_path()).read_text(), texts, ground.sql("SELECT file, instance_id FROM context")


@pytest.mark.parametrize("words", WEAKENS.values(), ids=WEAKENS)
@pytest.mark.parametrize("trusted", ["", "1"], ids=["", "trusted"])
@pytest.mark.sampled
def test_an_agents_shell_weakens_nothing(place: Ground, monkeypatch, words: list[str], trusted: str):
    me = in_shell_of(place, monkeypatch)
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", trusted)
    before = state(place)
    done = place.swarm(*words)
    assert (done.code, done.out) == (1, "") and done.err.count("\n") == 1, done
    assert "person" in done.err and "terminal" in done.err
    assert state(place) == before
    (tried,) = attempts(place)
    assert tried["actor"] == me["id"] and words[0] in tried["subject"]


def test_the_refusal_is_json_where_that_is_asked_for(place: Ground, monkeypatch: pytest.MonkeyPatch):
    in_shell_of(place, monkeypatch)
    done = place.swarm("auto", "off", "--json")
    assert done.code == 1 and list(done.json) == ["error"] and done.err == ""


@pytest.mark.parametrize("words", STRENGTHENS, ids=" ".join)
def test_an_agents_shell_may_strengthen_and_ask(place: Ground, monkeypatch: pytest.MonkeyPatch, words: list[str]):
    in_shell_of(place, monkeypatch)
    if words[1:] == ["keep"]:
        Path(config_path()).write_text(json.dumps({"checkouts": {str(place.repo): {"auto": "notice"}}}))
    assert place.swarm(*words).code == 0
    assert attempts(place) == []


@pytest.mark.parametrize("words", list(WEAKENS.values()), ids=WEAKENS)
@pytest.mark.sampled
def test_a_person_may(place: Ground, monkeypatch: pytest.MonkeyPatch, words: list[str]):
    """As at a terminal: a variable gives the environment a person's rights."""
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")
    before = state(place)
    done = place.swarm(*words)
    assert "person" not in done.err, done
    if words[0] not in ("uninstall", "install"):  # their clients change nothing here
        assert done.code == 0 and state(place) != before
    assert attempts(place) == []


def test_a_script_without_a_terminal_may_while_no_agent_is_at_work(ground: Ground):
    assert ground.swarm("auto", "off").code == 0
    ground.session(PEER, "peer")
    assert ground.swarm("auto", "keep").code == 0
    done = ground.swarm("auto", "notice")
    assert done.code == 1 and "agents are at work" in done.err and "SWARM_MCP_ALLOW_SPAWN" in done.err


# Each is run in an agent's shell that is told by its processes alone: nothing in the environment says so.
WAYS = {
    "plain": "{swarm} auto off",
    "trusted": "SWARM_MCP_ALLOW_SPAWN=1 {swarm} auto off",
    "another store": "SWARM_DB_PATH=/tmp/no/such.db SWARM_MCP_ALLOW_SPAWN=1 {swarm} auto off",
    "setsid": "SWARM_MCP_ALLOW_SPAWN=1 setsid -w {swarm} auto off",
    "nohup": "SWARM_MCP_ALLOW_SPAWN=1 nohup {swarm} auto off",
    "another shell": "SWARM_MCP_ALLOW_SPAWN=1 sh -c '{swarm} auto off; exit $?'",
    "emptied": "env -i HOME=\"$HOME\" XDG_CONFIG_HOME=\"$XDG_CONFIG_HOME\" SWARM_MCP_ALLOW_SPAWN=1 {swarm} auto off",
    "a script": "{script}",
    "left alone": "(SWARM_MCP_ALLOW_SPAWN= setsid {swarm} auto off &) ; wait",
}  # fmt: skip


@pytest.mark.parametrize("line", WAYS.values(), ids=WAYS)
@pytest.mark.sampled
def test_an_agent_is_known_by_the_processes_around_it(ground: Ground, monkeypatch, tmp_path: Path, line: str):
    usual = Path(os.environ["HOME"]) / ".swarm-mcp" / "swarm.db"  # not to be set aside by a command
    monkeypatch.setenv("SWARM_DB_PATH", str(usual))
    ground.database = str(usual)
    config = Path(os.environ["HOME"]) / ".config" / "swarm-mcp" / "config.json"
    ground.session(AGENT, "me", client=(os.getpid(), start_time(os.getpid())))
    script = tmp_path / "do.sh"
    swarm = shlex.join(SWARM)
    program_at(script, f"#!/bin/sh\nunset CLAUDECODE\nSWARM_MCP_ALLOW_SPAWN=1 {swarm} auto off\n")
    # The shell that the client starts is ours; it does not become the command itself.
    text = line.format(swarm=swarm if "sh -c" not in line else swarm.replace("'", "'\\''"), script=script)
    done = subprocess.run(["/bin/sh", "-c", f"{text}; exit $?"], cwd=ground.repo, capture_output=True, timeout=120)
    assert b"person" in done.stderr, done
    assert not config.exists()


def test_at_a_persons_own_terminal_it_is_done(ground: Ground):
    ground.session(PEER, "peer")
    with Terminal(ground, "p") as terminal:
        done = terminal.swarm("auto", "off")
        assert done.code == 0 and done.out.startswith("off in")
        of_agent = terminal.types(f"CLAUDECODE=1 {shlex.join([*SWARM, 'auto', '--unset'])}")
        assert of_agent.code == 0, "which raises it"


CHANGES = {
    "unlock": ["unlock", "held"], "unlock --all": ["unlock", "--all"], "lock": ["lock", "other"],
    "renew": ["renew", "held"], "transfer": ["transfer", "held", "--to", "identity:p me"], "hold": ["hold", "x", "--", "true"],
    "request-lock": ["request-lock", "x"], "send": ["send", "--to", "identity:p me", "hello"], "broadcast": ["broadcast", "x"],
    "claim": ["claim", "t"], "update-task": ["update-task", "t", "--status", "done"], "request-task": ["request-task", "fix", "x"],
    "kv": ["kv", "set", "k", "1"], "deregister": ["deregister", "--force"], "bootstrap": ["bootstrap"], "cancel": ["cancel", "t"],
    "steal": ["steal", "held"], "restore": ["restore", "held"], "ui": ["ui", "organize"], "dispatch": ["dispatch", "do it", "--no-spawn"],
    "prompt-peer": ["prompt-peer", "--to", "identity:p me", "--message", "x"],
}  # fmt: skip
READS = [["whoami"], ["why", "held"], ["locks"], ["status"], ["log", "held"], ["tasks"], ["instances"], ["messages"]]


# `restore` looks at no variable: it is the shell's own session's.
NAMED = [
    (words, how) for words in CHANGES.values() for how in ("--as", VARIABLE) if (words[0], how) != ("restore", VARIABLE)
]


@pytest.mark.parametrize(("words", "how"), NAMED, ids=lambda one: one if isinstance(one, str) else " ".join(one))
@pytest.mark.sampled
def test_an_agents_shell_acts_as_no_other_session(ground: Ground, monkeypatch, words: list[str], how: str):
    peer = ground.session(PEER, "identity:p peer")
    ground.lock(peer, "held")
    ground.add("tasks", id="t", scope=ground.scope, type="fix", title="T", requester=peer["id"])
    me = in_shell_of(ground, monkeypatch)
    before = ground.sql("SELECT * FROM context"), ground.sql("SELECT id, status, assignee FROM tasks")
    at = words.index("--") if "--" in words else len(words)
    if how == "--as":
        words = [*words[:at], "--as", peer["id"], *words[at:]]
    else:
        monkeypatch.setenv(how, peer["id"])
    done = ground.swarm(*words)
    assert done.code == 1 and how in done.err and "another live session" in done.err, done
    assert "only a person" in done.err
    assert (ground.sql("SELECT * FROM context"), ground.sql("SELECT id, status, assignee FROM tasks")) == before
    assert [row["actor"] for row in attempts(ground)] == [me["id"]]


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_to_look_with_anothers_eyes_is_allowed(ground: Ground, monkeypatch: pytest.MonkeyPatch, words: list[str]):
    peer = ground.session(PEER, "identity:p peer")
    ground.lock(peer, "held")
    in_shell_of(ground, monkeypatch)
    if "--as" not in ground.swarm(words[0], "--help").out:
        monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", peer["id"])
    else:
        words = [*words, "--as", peer["id"]]
    assert ground.swarm(*words).code == 0 and attempts(ground) == []


def test_whom_an_agents_shell_may_act_as(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    me = in_shell_of(ground, monkeypatch)
    words = ["register", "--label", "reserved", "--lease-seconds", "600", "--json"]
    reserved = ground.swarm(*words).json
    made = ground.swarm("lock", "detached", "--detach", "--ttl", "60", "--json").json["instance_id"]
    for row, file in ((me["id"], "a"), (me["id"][:8], "b"), (reserved["id"], "c"), (made, "d")):
        assert ground.swarm("lock", file, "--as", row).code == 0, file
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", me["id"])
    assert ground.swarm("lock", "e").code == 0
    monkeypatch.delenv("SWARM_MCP_INSTANCE_ID")
    with monkeypatch.context() as person:
        person.delenv("CLAUDECODE")
        person.delenv("CLAUDE_CODE_SESSION_ID")
        theirs = ground.swarm("lock", "f", "--detach", "--ttl", "60", "--json").json["instance_id"]
        other = ground.swarm(*words).json["id"]
    ground.stranger("foreign", label="origin:other")  # of another implementation
    for row in (theirs, other, "foreign"):
        assert ground.swarm("unlock", "f", "--as", row).code == 1
    assert len(attempts(ground)) == 3


def test_a_variable_does_not_make_a_shell_another_sessions(ground: Ground):
    """The shell belongs to its client, even with another session in the client's own variable."""
    peer = ground.session(PEER, "peer")
    ground.lock(peer, "held")
    ground.session(AGENT, "me", client=(os.getpid(), start_time(os.getpid())))
    env = {**os.environ, "CLAUDE_CODE_SESSION_ID": PEER}
    assert "is not yours" in ground.process("unlock", "held", env=env).err
    words = ["deregister", "--runtime", "claude-code", "--session-id", PEER]
    assert "of another client" in ground.process(*words, env=env).err
    words = ["agent-ended", "--runtime", "claude-code", "--session-id", PEER, "--agent", "a"]
    assert "of another client" in ground.process(*words, env=env).err
    assert len(ground.sql("SELECT id FROM context")) == 1


def test_a_session_that_has_gone_is_anybodys_to_remove(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    in_shell_of(ground, monkeypatch)
    with Sleeper() as client:
        gone = ground.session("gone", "gone", client=client.identity)
    assert ground.swarm("deregister", "--as", gone["id"]).code == 0


def test_a_commit_is_its_shells_whatever_a_variable_says(place: Ground, monkeypatch: pytest.MonkeyPatch):
    in_shell_of(place, monkeypatch)
    (peer,) = place.sql("SELECT instance_id FROM context")
    (place.repo / "held").write_text("x")
    subprocess.run(["git", "add", "held"], cwd=place.repo, check=True)
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", peer["instance_id"])
    assert place.swarm("guard", "check").code == 1


def test_a_lowered_level_is_told_to_the_sessions_there(ground: Ground, monkeypatch: pytest.MonkeyPatch, store: Store):
    peer = ground.session(PEER, "peer")
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")
    ground.swarm("auto", "off")
    (event,) = ground.sql("SELECT actor, subject, scope FROM events WHERE type = 'protection.lowered'")
    assert event == {"actor": None, "subject": "protect", "scope": ground.scope}
    (notice,) = store.notices.take(peer)
    assert "the level of protection is off now, and was keep" in notice.text
    ground.swarm("auto", "turn")
    assert len(ground.sql("SELECT id FROM events WHERE type = 'protection.lowered'")) == 1


def test_people_see_what_was_tried_and_what_was_lowered(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    ground.session(PEER, "peer")
    with monkeypatch.context() as agent:
        me = in_shell_of(ground, agent)["id"][:8]
        ground.swarm("auto", "off")
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")
    ground.swarm("auto", "notice")
    lines = ground.swarm("log").out.splitlines()
    assert any("refused" in line and "swarm-mcp protect off" in line and me in line for line in lines), lines
    assert any("lowered" in line and "is notice now, and was keep" in line for line in lines), lines
    shown = ground.swarm("log", "--json").json
    assert shown["counts"]["attempted"] == shown["counts"]["lowered"] == 1
