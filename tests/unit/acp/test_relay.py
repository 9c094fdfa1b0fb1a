"""``swarm-mcp acp``: an editor of the tests' own, the relay as a process, and a scripted agent."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.acp_editor import AcpEditor
from support.files import text_at
from support.fixtures import SWARM, Ground, wait_for
from support.sessions import mistakes

from swarm_hook_core.process import start_time
from swarm_hook_core.state import state_dir
from swarm_mcp.agents.commands.acp import DENIED
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

FRAMES = Path(__file__).parents[2] / "data" / "acp"  # of calls of another server's `write_file`, up to the question
AGENT = [sys.executable, str(Path(__file__).parents[2] / "support" / "scripted_agent.py")]
SESSION = "6c1f2b8e-0000-4000-8000-000000000001"
OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
Editor = Callable[..., AcpEditor]


@pytest.fixture
def editor(ground: Ground) -> Iterator[Editor]:
    made: list[AcpEditor] = []

    def begin(name: str = "some-agent", argv: tuple[str, ...] = (), kind: type[AcpEditor] = AcpEditor) -> AcpEditor:
        command = [*SWARM, "acp", "--grace", "600", "--", *(argv or (*AGENT, name, SESSION))]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        process = subprocess.Popen(command, cwd=ground.repo, text=True, **pipes)  # type: ignore[call-overload]
        made.append(kind(process, ground.repo))
        return made[-1]

    yield begin
    for one in made:
        if one.process.poll() is None:
            one.close()


@pytest.fixture
def locked(ground: Ground) -> Path:
    """A file that another session holds."""
    file = text_at(ground.repo / "held.md", "one\n")
    ground.lock(ground.session("peer", "holder"), "held.md")
    return file


def write(path: Path, content: str = "two\n") -> dict:
    params = {"sessionId": SESSION, "path": str(path), "content": content}
    return {"method": "fs/write_text_file", "params": params}


def terminal(command: str) -> dict:
    return {"method": "terminal/create", "params": {"sessionId": SESSION, "command": command}}


def permission(path: Path, **call) -> dict:
    whole = {"toolCallId": "call", "kind": "edit", "locations": [{"path": str(path)}], **call}
    params = {"sessionId": SESSION, "toolCall": whole, "options": OPTIONS}
    return {"method": "session/request_permission", "params": params}


def update(path: Path, status: str) -> dict:
    diff = {"type": "diff", "path": str(path), "oldText": None, "newText": "two\n"}
    call = {"sessionUpdate": "tool_call", "toolCallId": "call", "kind": "edit", "status": status, "content": [diff]}
    return {"method": "session/update", "params": {"sessionId": SESSION, "update": call}}


def answers(editor: AcpEditor, *messages: dict) -> list[dict]:
    return list(editor.prompt(json.dumps(messages))["answers"])


def test_a_write_of_a_locked_file_is_refused_and_a_free_one_is_made(
    ground: Ground, editor: Editor, locked: Path, no_faults: None
) -> None:
    agent, free = editor(), ground.repo / "free.md"
    refused, made = answers(agent, write(locked), write(free))
    assert refused["error"]["code"] == DENIED and "result" not in refused
    assert refused["error"]["message"].startswith("swarm lock blocked fs/write_text_file for held.md: held by")
    assert "holder" in refused["error"]["message"]
    assert locked.read_text() == "one\n" and free.read_text() == "two\n" and made["result"] == {}
    assert [request["params"]["path"] for request in agent.asked] == [str(free)], "the editor saw a refused request"


def test_a_command_that_writes_a_locked_file_is_refused(ground: Ground, editor: Editor, locked: Path) -> None:
    agent = editor()
    refused, made = answers(agent, terminal("echo x > held.md"), terminal("echo x > free.md"))
    assert "swarm lock blocked terminal/create" in refused["error"]["message"]
    wait = {"method": "terminal/wait_for_exit", "params": {"sessionId": SESSION, **made["result"]}}
    assert answers(agent, wait)[0]["result"]["exitCode"] == 0
    assert locked.read_text() == "one\n" and (ground.repo / "free.md").read_text() == "x\n"


def test_a_command_in_a_terminal_of_the_editor_knows_its_session(ground: Ground, editor: Editor) -> None:
    agent = editor()
    command = f"cd {ground.repo} && {shlex.join(SWARM)} lock mine.md && {shlex.join(SWARM)} protect off > said 2>&1"
    (made,) = answers(agent, terminal(command))
    wait = {"method": "terminal/wait_for_exit", "params": {"sessionId": SESSION, **made["result"]}}
    assert answers(agent, wait)[0]["result"]["exitCode"] == 1
    assert "person" in (ground.repo / "said").read_text()
    (lock,) = ground.sql("SELECT i.label FROM context c JOIN instances i ON i.id = c.instance_id WHERE type = 'lock'")
    assert "origin:acp" in lock["label"]


def test_a_permission_is_refused_and_the_reason_read_with_the_next_prompt(
    ground: Ground, editor: Editor, locked: Path
) -> None:
    agent = editor()
    refused, allowed = answers(agent, permission(locked), permission(ground.repo / "free.md"))
    assert refused["result"] == {"outcome": {"outcome": "selected", "optionId": "no"}}
    assert allowed["result"]["outcome"]["optionId"] == "yes"
    (shown,) = [one["params"]["update"] for one in agent.heard if one.get("method") == "session/update"]
    assert shown["sessionUpdate"] == "agent_message_chunk" and "swarm lock blocked edit" in shown["content"]["text"]
    first, second = agent.prompt("[]")["prompt"], agent.prompt("[]")["prompt"]
    assert first[0]["text"].startswith("swarm lock blocked edit") and first[1]["text"] == "[]"
    assert len(second) == 1


@pytest.mark.parametrize("name", ["qwen-code", "gemini-cli"])
def test_an_agent_that_reads_reasons_gets_them_at_once(editor: Editor, locked: Path, name: str) -> None:
    agent = editor(name)
    (refused,) = answers(agent, permission(locked))
    if name == "qwen-code":
        reason = refused["error"]["message"]
    else:
        reason = refused["result"]["outcome"]["optionId"]
    assert reason.startswith("swarm lock blocked edit")
    assert agent.asked == [] and len(agent.prompt("[]")["prompt"]) == 1


def test_a_permission_for_a_call_that_was_told_before_needs_only_its_id(editor: Editor, locked: Path) -> None:
    asking = permission(locked)
    asking["params"]["toolCall"] = {"toolCallId": "call"}
    (refused,) = answers(editor(), update(locked, "pending"), asking)
    assert refused["result"]["outcome"]["optionId"] == "no"


def frames(agent: str, folder: Path, file: str) -> list[dict]:
    text = (FRAMES / f"{agent}.jsonl").read_text().replace("FOLDER/notes.md", str(folder / file))
    text = text.replace('"toolCallId": "', f'"toolCallId": "{file}-')  # each file's is a call of its own
    return [json.loads(line.replace('"SESSION"', f'"{SESSION}"')) for line in text.splitlines()]


@pytest.mark.parametrize("name", sorted(path.stem for path in FRAMES.iterdir()))
@pytest.mark.sampled
def test_another_server_s_write_of_a_locked_file_is_refused(
    ground: Ground, editor: Editor, locked: Path, no_faults: None, name: str
) -> None:
    agent = editor()
    (refused,) = answers(agent, *frames(name, ground.repo, "held.md"))
    assert refused["result"]["outcome"]["optionId"] in ("cancel", "reject", "reject_once")
    assert agent.asked == [], "the person was asked about a call that is refused"
    told = agent.prompt("[]")["prompt"][0]["text"]
    assert "swarm lock blocked" in told and "write_file for" in told and "held.md" in told, told
    (allowed,) = answers(agent, *frames(name, ground.repo, "free.md"))
    assert len(agent.asked) == 1 and allowed["result"] != refused["result"]


def test_a_question_about_a_call_with_no_input_reaches_the_person(editor: Editor, locked: Path) -> None:
    agent = editor()
    (allowed,) = answers(agent, permission(locked, kind="other", title="weigh_anchor", locations=[], rawInput={}))
    assert allowed["result"]["outcome"]["optionId"] == "yes" and len(agent.asked) == 1


def test_a_call_of_another_session_with_the_same_id_is_another_call(editor: Editor, locked: Path) -> None:
    theirs, asking = update(locked, "pending"), permission(locked)
    theirs["params"]["sessionId"] = "another"
    asking["params"]["toolCall"] = {"toolCallId": "call"}
    (allowed,) = answers(editor(), theirs, asking)
    assert allowed["result"]["outcome"]["optionId"] == "yes"


ALWAYS = {"optionId": "ever", "name": "Don't ask again for these files", "kind": "allow_always"}


class Lasting(AcpEditor):
    """An editor: its person always allows."""

    def _on_session_request_permission(self, options: list, **given: object) -> dict:
        assert ALWAYS["optionId"] in [option["optionId"] for option in options]
        return {"outcome": {"outcome": "selected", "optionId": "ever"}}


def test_always_is_told_to_the_relay_and_once_to_the_agent(ground: Ground, editor: Editor, locked: Path) -> None:
    agent = editor(kind=Lasting)
    command = {"kind": "execute", "locations": [], "title": "Run it"}
    calls = [permission(file) for file in (ground.repo / "a.md", ground.repo / "a.md", ground.repo / "b.md", locked)]
    calls += [permission(locked, **command, rawInput={"command": text}) for text in ("ls", "ls", "ls -a")]
    for one in calls:
        one["params"]["options"] = [*OPTIONS, ALWAYS]
    for name in ("a.md", "b.md"):
        calls.append(permission(ground.repo / name))
        calls[-1]["params"]["options"] = [*OPTIONS, {**ALWAYS, "name": "Allow all edits"}]
    told = [answer["result"]["outcome"]["optionId"] for answer in answers(agent, *calls)]
    assert told == ["yes", "yes", "yes", "no", "yes", "yes", "yes", "yes", "yes"]
    asked = [one["params"]["toolCall"] for one in agent.asked]
    assert [one.get("rawInput", {}).get("command") for one in asked] == [None, None, "ls", "ls -a", None]
    other = permission(ground.repo / "b.md")
    other["params"] |= {"sessionId": "another", "options": [*OPTIONS, ALWAYS]}
    answers(agent, other)
    assert len(agent.asked) == 6, "one session's answer holds for another"


def test_a_file_that_was_read_through_the_relay_is_seen(ground: Ground, editor: Editor, no_faults: None) -> None:
    for words in ("init -q .", "-c user.name=a -c user.email=a@example.org commit -qm one --allow-empty"):
        subprocess.run(["git", *words.split()], cwd=ground.repo, check=True)
    agent, file = editor(), ground.repo / "persons.md"
    file.write_text("a person's\n")

    def read(**part: int) -> dict:
        params = {"sessionId": SESSION, "path": str(file), **part}
        return {"method": "fs/read_text_file", "params": params}

    _part, refused = answers(agent, read(line=1, limit=1), write(file))
    assert "a person's work" in refused["error"]["message"] and file.read_text() == "a person's\n"
    _missing, text, made = answers(
        agent, read() | {"params": {"sessionId": SESSION, "path": "/no"}}, read(), write(file)
    )
    assert text["result"]["content"] == "a person's\n" and made["result"] == {} and file.read_text() == "two\n"


class Slow(AcpEditor):
    """An editor with a person who looks away while the file is locked by another."""

    ground: Ground

    def _on_session_request_permission(self, options: list, **given: object) -> dict:
        self.ground.lock(self.ground.session("peer", "holder"), "late.md")
        return super()._on_session_request_permission(options, **given)


def test_a_file_that_is_locked_before_the_person_allows_its_write_is_refused(ground: Ground, editor: Editor) -> None:
    Slow.ground = ground
    agent = editor(kind=Slow)
    (refused,) = answers(agent, permission(ground.repo / "late.md"))
    assert refused["result"]["outcome"]["optionId"] == "no"


def test_a_write_without_a_question_is_noted_as_the_session_s(ground: Ground, editor: Editor) -> None:
    file = text_at(ground.repo / "mine.md", "one\n")
    for words in ("init -q .", "add mine.md", "-c user.name=a -c user.email=a@example.org commit -qm one"):
        subprocess.run(["git", *words.split()], cwd=ground.repo, check=True)
    ground.session("peer", "holder")
    agent = editor()
    answers(agent, update(file, "pending"))
    file.write_text("two\n")
    answers(agent, update(file, "completed"))
    told = ground.swarm("blame", "mine.md", "--uncommitted").out
    assert "acp" in told and "two" in told, told


def test_calls_that_are_told_again_as_a_session_is_loaded_are_over(ground: Ground, editor: Editor) -> None:
    file, agent = ground.repo / "old.md", editor()
    file.write_text("two\n")
    calls = [update(file, "pending"), update(file, "completed"), update(file, "pending")]
    agent.ask("session/load", sessionId=SESSION, cwd=str(ground.repo), mcpServers=[], messages=calls)
    assert not list(Path(state_dir()).glob("traces/*/acp.*"))
    assert len(ground.sql("SELECT id FROM instances")) == 1
    answers(agent, update(file, "pending"))
    assert list(Path(state_dir()).glob("traces/*/acp.*"))


def test_its_session_is_registered_while_it_runs(ground: Ground, editor: Editor, store: Store) -> None:
    agent = editor()
    (row,) = ground.sql("SELECT label, directory FROM instances")
    assert "origin:acp" in row["label"] and row["directory"] == ground.scope
    own = store.instances.of_session("acp", SESSION)
    assert own is not None
    ground.lock(own, "mine.md")
    assert agent.close() == 7, "the agent's own exit code"
    assert ground.sql("SELECT id FROM instances") == [] and ground.sql("SELECT id FROM context") == []


def test_a_session_that_hooks_have_registered_stays_the_only_one(ground: Ground, editor: Editor, locked: Path) -> None:
    own, mine = "SELECT id FROM instances WHERE label LIKE '%origin:acp%'", ground.repo / "mine.md"
    agent = editor()
    assert ground.sql(own)
    ground.lock(ground.session(SESSION, "hooked", runtime="gemini"), "mine.md")
    refused, made = answers(agent, write(locked), write(mine))
    assert "swarm lock blocked" in refused["error"]["message"] and made["result"] == {}
    assert locked.read_text() == "one\n" and mine.read_text() == "two\n" and ground.sql(own) == []
    agent.close()
    with ground.store() as store:
        assert store.instances.of_session("gemini", SESSION) is not None


def spoken(ground: Ground, lines: list[bytes], count: int) -> tuple[list[dict], list[bytes]]:
    """Have an agent say all `lines` before it reads. Return the first `count` answers, and the lines that passed."""
    said, heard = ground.repo / "said", ground.repo / "heard"
    said.write_bytes(b"".join(line + b"\n" for line in lines))
    script = f"cat {said}; head -n {count} >{heard}"
    with subprocess.Popen(
        [*SWARM, "acp", "--", "sh", "-c", script], cwd=ground.repo, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        passed = process.stdout.read().splitlines()
    return [json.loads(line) for line in heard.read_text().splitlines()], passed


def test_a_message_that_python_does_not_parse_is_checked(ground: Ground, locked: Path) -> None:
    def odd(number: int, more: bytes, path: Path = locked) -> bytes:
        params = f'"params": {{"sessionId": "{SESSION}", "path": "{path}", "content": "'.encode()
        return b'{"id": %d, "method": "fs/write_text_file", %s%s}}' % (number, params, more)

    free = odd(5, b'"', ground.repo / "free.md")
    deep = b'", "more": ' + b"[" * 1200 + b"]" * 1200
    batch = b"[" + odd(4, b'"') + b", " + free + b"]"
    lines = [odd(1, b'\xff"'), odd(2, deep), odd(3, b'", "more": ' + b"9" * 5000), batch, b"[" + free + b"]"]
    told, passed = spoken(ground, lines, 4)
    assert [one["id"] for one in told] == [1, 2, 3, 4]
    assert all("swarm lock blocked" in one["error"]["message"] for one in told)
    assert [json.loads(line)[0]["id"] for line in passed] == [5, 5] and passed[1] == lines[-1]


def test_many_refused_writes_at_once_are_answered_in_order(ground: Ground, locked: Path) -> None:
    lines = [json.dumps({"id": number, **write(locked)}).encode() for number in range(200)]
    told, passed = spoken(ground, lines, 200)
    assert [one["id"] for one in told] == list(range(200)) and passed == []


def test_an_agent_that_does_not_read_is_ended_with_its_editor(ground: Ground) -> None:
    lines = b"x" * 100 + b"\n"
    done = subprocess.run(
        [*SWARM, "acp", "--grace", "0.2", "--", "sleep", "600"], cwd=ground.repo, input=lines * 20_000, timeout=120
    )
    assert done.returncode == 128 + signal.SIGTERM


def test_lines_pass_unchanged(ground: Ground, editor: Editor) -> None:
    odd = b"".join(b'{"id": %d}\n' % number for number in range(10_000))
    odd += b'{"id": 1.50, "z":"\\u00e9 \xff"}\nno json\n[1]\n{"method":"fs/write_text_file","id":9}\n\n{"id":[]}\nlast'
    done = subprocess.run([*SWARM, "acp", "--", "cat"], cwd=ground.repo, input=odd, capture_output=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, odd), done.stderr


def test_a_broken_store_lets_all_pass(ground: Ground, editor: Editor) -> None:
    os.makedirs(os.path.dirname(ground.database))
    Path(ground.database).write_text("garbage" * 1000)
    free = ground.repo / "free.md"
    assert answers(editor(), write(free))[0]["result"] == {} and free.read_text() == "two\n"
    assert mistakes()


def test_an_agent_that_does_not_end_is_ended_with_all_that_it_has_started(ground: Ground) -> None:
    script = "trap '' TERM; sleep 600 & echo $!; wait; sleep 600"
    process = subprocess.Popen(
        [*SWARM, "acp", "--grace", "0.5", "--", "sh", "-c", script],
        cwd=ground.repo,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin and process.stdout
    child = int(process.stdout.readline())
    process.stdin.close()
    try:
        assert process.wait(120) == 128 + signal.SIGKILL
        assert wait_for(lambda: is_over(child))
    finally:
        process.kill()
        process.stdout.close()


def is_over(pid: int) -> bool:
    return start_time(pid) in ("", "-")


def test_an_agent_ends_with_a_relay_that_is_killed(ground: Ground) -> None:
    process = subprocess.Popen(
        [*SWARM, "acp", "--", "sh", "-c", "echo $$; while :; do sleep 0.05; done"],
        cwd=ground.repo, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin and process.stdout
    agent = int(process.stdout.readline())
    process.kill()
    assert wait_for(lambda: is_over(agent), 60)
    process.communicate()


def test_signals_reach_the_agent(ground: Ground, usual_signals: None) -> None:
    process = subprocess.Popen(
        [*SWARM, "acp", "--", "sh", "-c", "trap 'exit 9' TERM; echo on; while :; do sleep 0.05; done"],
        cwd=ground.repo, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin and process.stdout and process.stdout.readline() == b"on\n"
    process.terminate()
    try:
        assert process.wait(120) == 9
    finally:
        process.kill()
        process.stdin.close()
        process.stdout.close()


def test_a_command_that_cannot_be_started(ground: Ground, tmp_path: Path) -> None:
    (tmp_path / "no-program").write_text("")
    assert ground.process("acp", "--", "no-such-agent").code == 127
    assert ground.process("acp", "--", str(tmp_path / "no-program")).code == 126
