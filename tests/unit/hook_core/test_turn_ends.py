"""Level `turn`: the end of a turn as clients' events tell it, and processes that count in files without locks."""

import random
import subprocess
import time
from pathlib import Path

import pytest
from support import turns
from support.fixtures import BARE_PYTHON, FOLDERS, wait_for
from support.sessions import captured, mistakes, new_session, ready_store, run, start, subagent_payload
from support.traced import checkout

from swarm_mcp.domain import AUTO
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow


MISSING = "/nowhere/swarm-mcp"
PLACES = {"PATH": "/usr/bin:/bin", "SWARM_MCP_BIN": MISSING}


@pytest.fixture(params=["claude-code", "codex"])
def runtime(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def session(runtime: str, repo: Path) -> str:
    me = new_session()
    assert start(runtime, me, repo).context
    return me


def write(runtime: str, me: str, file: Path, agent: str = "") -> None:
    turns.write((runtime, me), str(file), agent)


def tell(runtime: str, me: str, event: str, repo: Path, **env: str) -> None:
    hook = {"SessionEnd": "session_end"}.get(event, "turn")
    ran = run(runtime, hook, {**captured(runtime, event, repo), "session_id": me}, env)
    assert (ran.code, ran.err) == (0, "")


def held(*files: Path) -> list[str | None]:
    with Store() as store:
        return [lock.mode for file in files for lock in store.locks.on(str(file))]


@pytest.mark.parametrize("event", ["Stop", "UserPromptSubmit", "SessionEnd"])
@pytest.mark.sampled
def test_a_file_is_free_when_its_turn_ends(runtime: str, event: str, repo: Path) -> None:
    me = session(runtime, repo)
    write(runtime, me, repo / "f")
    assert held(repo / "f") == [AUTO]
    tell(runtime, me, event, repo)
    assert turns.held() == [] and held(repo / "f") == []


@pytest.mark.parametrize("event", ["Stop", "UserPromptSubmit", "SessionEnd"])
@pytest.mark.sampled
def test_where_the_coordinator_is_missing_the_hook_notes_the_end(runtime: str, event: str, repo: Path) -> None:
    me, peer = session(runtime, repo), session(runtime, repo)
    write(runtime, me, repo / "f"), write(runtime, peer, repo / "g")
    tell(runtime, me, event, repo, **PLACES)
    assert turns.holders() == [peer]


def test_what_an_agent_has_ends_with_the_agent(runtime: str, repo: Path) -> None:
    me = session(runtime, repo)
    write(runtime, me, repo / "f"), write(runtime, me, repo / "g", agent="a1")
    tell(runtime, me, "Stop", repo)
    assert held(repo / "f", repo / "g") == [AUTO]
    write(runtime, me, repo / "h", agent="a1")
    ran = run(runtime, "subagent", subagent_payload("SubagentStop", me, "a1", repo))
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    wait_for(lambda: turns.held() == [] and held(repo / "g", repo / "h") == [])


@pytest.mark.alone("a checker has the coordinator of its own installation")
def test_without_a_coordinator_an_agent_s_turn_ends_all_the_same(runtime: str, repo: Path) -> None:
    me = session(runtime, repo)
    write(runtime, me, repo / "f"), write(runtime, me, repo / "g", agent="a1")
    run(runtime, "subagent", subagent_payload("SubagentStop", me, "a1", repo), PLACES)
    assert [one.agent for one in turns.held()] == [""]


def test_being_told_that_claude_code_waits_for_a_prompt_ends_a_turn(repo: Path, store: Store) -> None:
    me = session("claude-code", repo)
    tell("claude-code", me, "UserPromptSubmit", repo)
    write("claude-code", me, repo / "f")
    payload = {**captured("claude-code", "Notification.idle_prompt", repo), "session_id": me}
    for other in ("permission_prompt", ""):  # the turn goes on
        run("claude-code", "turn", {**payload, "notification_type": other})
        assert turns.holders() == [me]
    assert run("claude-code", "turn", payload).out == ""
    assert turns.held() == []
    assert [row.state for row in store.database.rows("SELECT state FROM swarm_sessions")] == ["idle"]


def test_an_interrupted_turn_of_codex_ends_at_once(repo: Path) -> None:
    me = session("codex", repo)
    write("codex", me, repo / "f")
    tell("codex", me, "Interrupt", repo)
    assert turns.held() == []


def test_what_the_next_turn_writes_while_the_end_of_the_last_is_told_stays(repo: Path) -> None:
    me = session("claude-code", repo)
    turns.write(("claude-code", me), str(repo / "f"), ago=-60)
    tell("claude-code", me, "Stop", repo)
    assert turns.holders() == [me]


def test_a_session_that_goes_on_after_compacting_is_in_its_turn_still(runtime: str, repo: Path) -> None:
    me = session(runtime, repo)
    write(runtime, me, repo / "f")
    assert start(runtime, me, repo, "compact").context
    assert held(repo / "f") == [AUTO]


FILES = 3
WORKERS = 5

WORKER = f"""
import json, os, random, sys
sys.path[:0] = {FOLDERS!r}
from support.sessions import hook_core, join, new_session
from swarm_hook_core import session_events
from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.process import start_time
from swarm_mcp.hooks.session_hooks import StoreRegistrar
from swarm_mcp.store import Store, driver

work, log, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.getppid = os.getpid  # this process is its session's client: what the session holds is free once it is killed
chance, core, me = random.Random(seed), hook_core("codex"), new_session()
core.driver = driver.load()
with Store() as store:
    join(store, work, session_id=me, client=(os.getpid(), start_time(os.getpid())))
acknowledged = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def passes(tool, given):
    verdict = core.check(ToolCall(tool, given, me, work))
    return verdict is None or verdict.denial is None

def read(name):
    assert passes("Bash", {{"command": "cat " + name}})
    return int(open(os.path.join(work, name)).read().split()[0])

def write(name, value):
    text = f"{{value + 1}} {{me}}\\n"
    patch = f"*** Begin Patch\\n*** Add File: {{name}}\\n+{{text}}*** End Patch\\n"
    if not passes("apply_patch", {{"command": patch}}):
        os.write(acknowledged, b"-")
        return
    scratch = os.path.join(work, f".git/{{os.getpid()}}")
    with open(scratch, "w") as file:
        file.write(text)
    os.replace(scratch, os.path.join(work, name))
    os.write(acknowledged, b"+")

while True:
    name, *others = chance.sample([f"count-{{place}}" for place in range({FILES})], {FILES})
    old = read(name)
    for other in others[:chance.randrange({FILES})]:
        write(other, read(other))
    write(name, old)  # others may have written it meanwhile
    registrar = StoreRegistrar("codex")
    session_events.turn(core.config, SessionEvent(me, work, "Stop"), registrar)
    registrar.close()
"""


def counted(work: Path, logs: Path, writes: int, kills: int) -> tuple[int, int, int]:
    """``(counts in the files, writes that were made, denials)`` after so many writes, and kills in between."""
    chance, number, running = random.Random(7), 0, []

    def start() -> None:
        nonlocal number
        number += 1
        words = [*BARE_PYTHON, "-c", WORKER, str(work), str(logs / str(number)), str(number)]
        with (logs / f"{number}.err").open("wb") as complaints:
            running.append(subprocess.Popen(words, stderr=complaints))

    def logged(letter: bytes) -> int:
        return sum(file.read_bytes().count(letter) for file in logs.iterdir() if file.suffix != ".err")

    try:
        for _ in range(WORKERS):
            start()
        killed, before, last = 0, 0, time.monotonic()
        while (done := logged(b"+")) < writes or killed < kills:
            assert all(process.poll() is None for process in running), "\n".join(
                file.read_text()[-2000:] for file in logs.glob("*.err")
            )
            if done > before:
                before, last = done, time.monotonic()
            assert time.monotonic() - last < 120, "nobody gets on"
            if killed < kills and done >= killed * writes // (kills + 1):
                process = running.pop(chance.randrange(WORKERS))
                process.kill()
                process.wait()
                killed += 1
                start()
            time.sleep(0.02)
    finally:
        for process in running:
            process.kill()
            process.wait()
    total = sum(int((work / f"count-{place}").read_text().split()[0]) for place in range(FILES))
    return total, logged(b"+"), logged(b"-")


@pytest.mark.parametrize(
    ("writes", "kills"), [(100, 3), pytest.param(10_000, 40, marks=pytest.mark.thorough)], ids=["short", "long"]
)
def test_no_count_is_lost_at_turn(writes: int, kills: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_AUTO", "turn")
    ready_store()
    logs = tmp_path / "logs"
    logs.mkdir()
    work = checkout(tmp_path.resolve() / "work", *(f"count-{place}" for place in range(FILES)))
    for place in range(FILES):
        (work / f"count-{place}").write_text("0\n")
    total, made, denied = counted(work, logs, writes, kills)
    # A process killed between its write and its note of it leaves the count unknown; at the end all are killed.
    assert made <= total <= made + kills + WORKERS
    assert denied, "they must have met"
    assert not [line for line in mistakes() if "somebody else was writing" not in line["fault"]]
    assert len(turns.held()) <= FILES + kills
