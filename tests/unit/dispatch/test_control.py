"""Cancelling, pausing, resuming; going on with the session of an earlier run; and the person at a terminal."""

import json
import os
import pty
import subprocess
from pathlib import Path
from unittest.mock import Mock

import pytest
from support.fixtures import SWARM, Ground, wait_for
from support.requirement import requirement
from support.supervised import GATEWAY, alive, child_of, dispatch, over, reaches, task
from support.task_fixtures import refused

from swarm_mcp.agents.dispatch import processes
from swarm_mcp.agents.dispatch.dispatch import Dispatch
from swarm_mcp.agents.dispatch.processes import GO_ON, Assignment, Processes, query_of
from swarm_mcp.agents.dispatch.request import DispatchRequest, SpawnFailed, may_use_yolo
from swarm_mcp.agents.dispatch.supervision import Progress, Supervisor, result_text, supervise
from swarm_mcp.agents.harness import events, registry
from swarm_mcp.agents.harness.adapter import Capabilities, Process
from swarm_mcp.agents.harness.conclusion import ResumableSession, serialize
from swarm_mcp.agents.harness.outcome import RunResult
from swarm_mcp.doctor import recorded_faults
from swarm_mcp.domain import Task
from swarm_mcp.errors import Refused
from swarm_mcp.runtimes import SHELL_VARIABLES
from swarm_mcp.server.tool import Call
from swarm_mcp.server.tools import all_tools
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow

FOR_EVER = "echo $$ > pid; sleep 600 & wait"


@pytest.fixture
def running(ground: Ground, lead: dict) -> dict:
    """A dispatch with an endless worker."""
    answer = dispatch(ground, lead, script=FOR_EVER)
    answer["child"] = child_of(ground, answer)
    return answer


@requirement("A-35")
def test_a_cancelled_task_ends_its_worker(ground: Ground, lead: dict, running: dict, store: Store) -> None:
    store.tasks.end(lead, running["task_id"], "cancelled")
    wait_for(lambda: not alive(running["child"]), 3)
    row = over(ground, running)
    assert (row["result"]["error_category"], row["result"]["error_message"]) == ("aborted", "the task was cancelled")
    assert task(ground, running)["status"] == "cancelled"
    assert ground.sql("SELECT * FROM instances WHERE id = ?", running["instance_id"]) == []


def test_the_command_says_when_the_worker_has_ended(ground: Ground, lead: dict, running: dict) -> None:
    done = ground.swarm("cancel", running["task_id"][:8], "--wait", "10", "--as", lead["id"])
    assert (done.code, done.out) == (0, f"task {running['task_id']} cancelled; its worker has ended\n")
    assert not alive(running["child"])
    done = ground.swarm("cancel", running["task_id"], "--as", lead["id"], "--json")
    assert (done.code, done.json) == (1, {"error": "Task is already cancelled"})


def test_only_requester_and_worker_may_cancel_or_pause(ground: Ground, lead: dict, running: dict, store: Store) -> None:
    other = ground.session("other", GATEWAY)
    stranger = ground.session("stranger", "identity:q mode:gateway")
    for verb in (processes.cancel, processes.pause, processes.resume):
        if verb is not processes.resume:
            with refused("only the session that asked for it"):
                verb(store, other, running["task_id"])
        with refused("Task not found"):
            verb(store, stranger, running["task_id"])
    with refused("not paused"):
        processes.resume(store, lead, running["task_id"])
    store.instances.remove(lead["id"])
    assert processes.cancel(store, other, running["task_id"])["worker"], "nobody else is left to say it"
    reaches(ground, running, "cancelled")


def test_a_task_without_a_worker_of_ours_cannot_be_paused(ground: Ground, lead: dict, store: Store) -> None:
    worker = ground.session("w", "identity:p role:implementer")
    answer = dispatch(ground, lead, spawn=False)
    assert answer["recipient"] == worker["id"]
    with refused("dispatch --resume"):
        processes.pause(store, lead, answer["task_id"])
    assert processes.cancel(store, lead, answer["task_id"])["worker"] is False
    with refused("Task not found"):
        processes.cancel(store, lead, "")


def test_a_run_without_a_task_is_asked_itself(ground: Ground, lead: dict, store: Store) -> None:
    spec = {"id": "r1", "scope": ground.scope, "instance_id": lead["id"], "harness": "process", "cwd": ground.scope}
    store.runs.begin(spec)
    assert processes.cancel(store, lead, "r1")["run_id"] == "r1"
    assert store.runs.get("r1")["control"] == "cancel"
    with refused("cannot be paused"):
        processes.pause(store, lead, "r1")


@requirement("A-32")
def test_a_paused_worker_keeps_its_task_and_goes_on(ground: Ground, lead: dict, store: Store) -> None:
    script = 'cat >> told; echo "got half of it"; echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done; echo whole'
    answer = dispatch(ground, lead, script=script)
    child = child_of(ground, answer)
    tools = all_tools()

    class Session:
        def instance(self, _store, _meta) -> dict:
            return lead

    call = Call(store, Session(), {})
    given = {"task_id": answer["task_id"]}
    assert tools["pause_task"].call(call, given).value["status"] == "pausing"
    wait_for(lambda: not alive(child))
    held = wait_for(lambda: (row := task(ground, answer))["blocked_reason"] and row)
    assert (held["status"], held["assignee"]) == ("in_progress", answer["instance_id"])
    assert held["blocked_reason"] == f"paused by session {lead['id'][:8]}"
    wait_for(lambda: store.runs.get(answer["run_id"])["state"] == "paused")
    with refused("paused already"):
        processes.pause(store, lead, answer["task_id"])
    assert store.instances.live(answer["instance_id"])
    (ground.repo / "go").touch()
    tools["resume_task"].call(call, given)
    assert reaches(ground, answer, "done")["result"].endswith("whole")
    first, again = (ground.repo / "told").read_text().split("You are worker")[1:]
    assert "interrupted" not in first and "got half of it" in again, "its successor is told how far it was"


def test_a_paused_worker_can_be_cancelled(ground: Ground, lead: dict, running: dict, store: Store) -> None:
    processes.pause(store, lead, running["task_id"])
    wait_for(lambda: store.runs.get(running["run_id"])["state"] == "paused")
    processes.cancel(store, lead, running["task_id"])
    over(ground, running)
    assert task(ground, running)["status"] == "cancelled"


class Talker(Process):
    """A command with resumable sessions: the one to resume is named in ``TALKER``."""

    name = "talker"
    session_pattern = r"s[0-9]+"
    capabilities = Capabilities(resume=True)

    def launch(self, query, folder):
        made = super().launch(query, folder)
        return made._replace(env={"TALKER": query.resume_session_id or "new"})


@pytest.fixture
def talker(own_registry: None) -> None:
    registry.register(Talker())


def assignment(ground: Ground, lead: dict, task_id: str, script: str, **given) -> Assignment:
    words = {"role": "implementer", "harness": "talker", "cwd": ground.scope, "label": "identity:p role:implementer"}
    words.update(message="Do it", command=("/bin/sh", "-c", script), lock="/__swarm/spawn/none", **given)
    return Assignment(
        scope=ground.scope, task_id=task_id, requester_id=lead["id"], requester_label=lead["label"],
        **{"run_id": "r1", "instance_id": "w1", **words},
    )  # fmt: skip


@requirement("A-32", "C-55")
def test_a_resumed_task_continues_its_session(ground: Ground, lead: dict, talker: None, store: Store) -> None:
    init = json.dumps({"type": "session_init", "session_id": "s7"})
    made = store.tasks.request(lead, {"type": "implement", "title": "T"})["task"]
    killed = {"scope": ground.scope, "task_id": made["id"], "instance_id": "w0", "harness": "talker"}
    session = serialize(ResumableSession("talker", "s7", ground.scope))
    store.runs.begin({"id": "r0", **killed, "cwd": ground.scope, "state": "ended", "session_params": session})
    script = f"cat > told; echo '{init}'; echo with $TALKER"
    Supervisor(store, assignment(ground, lead, made["id"], script)).carry_out()
    ended = store.tasks.get(ground.scope, made["id"])
    assert (ended["status"], ended["result"]) == ("done", "with s7")
    assert store.runs.get("r1")["session_params"]["session_id"] == "s7"
    assert GO_ON in (ground.repo / "told").read_text()
    other = store.tasks.request(lead, {"type": "implement", "title": "Other"})["task"]
    given = assignment(ground, lead, other["id"], script, run_id="r2", instance_id="w2")
    Supervisor(store, given).carry_out()
    assert store.tasks.get(ground.scope, other["id"])["result"] == "with new"
    assert GO_ON not in (ground.repo / "told").read_text()


def test_resume_finds_the_task_and_asks_nobody_else(ground: Ground, lead: dict) -> None:
    answer = dispatch(ground, lead, "Long work", spawn=False, message="the first words")
    ground.session("idle", "identity:p")
    given = {"script": "cat > told; echo ok", "resume": answer["task_id"][:6], "completion_wait_seconds": 20}
    again = dispatch(ground, lead, "", **given)
    assert (again["task_id"], again["status"]) == (answer["task_id"], "spawned")
    assert again["completion"]["result"] == "ok"
    assert "the first words" in (ground.repo / "told").read_text()
    assert dispatch(ground, lead, "", **given)["status"] == "already_terminal"
    done = ground.swarm("dispatch", "words", "--resume", answer["task_id"], "--as", lead["id"])
    assert done.code == 2 and "--resume" in done.err


@requirement("A-31", "A-36")
def test_progress_is_told_now_and_then_and_not_over_the_workers_own_words() -> None:
    now = [100.0]
    progress = Progress("codex", clock=lambda: now[0])
    silent = Task({"progress_summary": None, "progress_updated_at": None})
    assert progress.due(silent, 0) == "", "there is nothing to say yet"
    progress.listen(events.session_init("s", model="m"))
    progress.listen(events.tool_start("1", "Edit", {}))
    progress.listen(events.message("assistant", "Half\nof it", thinking=True))
    assert progress.due(silent, 0) == "1 tool call, the last Edit"
    progress.listen(events.message("assistant", "Half\nof it"))
    progress.listen(events.Event("context_usage", {"context_percent": 41.6}))
    mine = Task({"progress_summary": "1 tool call, the last Edit", "progress_updated_at": 0})
    assert progress.due(mine, 1) == ""
    now[0] += 31
    assert progress.due(mine, 31) == "Half of it (1 tool call, the last Edit; 42 % of its context used)"
    now[0] += 31
    theirs = Task({"progress_summary": "Nearly there", "progress_updated_at": 60})
    assert progress.due(theirs, 62) == ""
    now[0] += 31
    assert progress.due(theirs, 400), "what the worker said is long ago"


def test_progress_takes_whatever_a_harness_says() -> None:
    progress = Progress("process")
    for event in (
        events.Event("context_usage", {"context_percent": "much"}),
        events.Event("context_usage", {"context_percent": [1]}),
        events.Event("tool_start", {"tool_name": "a name\nof\x1b[2J " + "n" * 100_000}),
        events.Event("message", {"role": "assistant", "content": ["w" * 100_000]}),
    ):
        progress.listen(event)
    assert len(progress.summary()) <= 300 and "\n" not in progress.summary()


@requirement("A-37")
def test_the_result_text_of_a_task() -> None:
    made = RunResult("r", "codex", is_error=True, error_category="rate_limited", error_message="try\nlater")
    assert result_text(made) == "rate_limited: try later; it passes, and the same work may be dispatched again"
    assert result_text(made._replace(retry_not_before=0.5)).endswith("after 1970-01-01T00:00:00Z")
    assert result_text(RunResult("r", "codex", output=" fine ")) == "fine"
    assert result_text(RunResult("r", "codex"))
    assert len(result_text(RunResult("r", "codex", output="x" * 40000))) == 30000


@requirement("C-02")
def test_the_query_for_a_task(ground: Ground, lead: dict) -> None:
    given = assignment(ground, lead, "t1", "true", run={"model": "m", "mode": "read-only", "timeout_seconds": 5.0})
    row = Task(id="t1", type="fix", title="T", depends_on=["t0"])
    query = query_of(given, Process(), row, None, "half")
    assert (query.model, query.mode, query.timeout_seconds, query.task_id) == ("m", "read-only", 5.0, "t1")
    assert query.env["SWARM_WAKE_REASON"] == "task_resumed" and query.env["SWARM_LINKED_TASK_IDS"] == "t0"
    assert "half" in query.prompt and "Do it" in query.prompt
    first = query_of(given, Process(), row, approval=9).env
    assert first["SWARM_WAKE_REASON"] == "task_assigned" and "SWARM_APPROVAL_ID" not in query.env
    assert (first["SWARM_APPROVAL_ID"], first["SWARM_APPROVAL_STATUS"]) == ("9", "approved")


def at_terminal(ground: Ground, *argv: str, **env: str) -> tuple[int, str, list[dict]]:
    """The command with a terminal for its standard error: exit code, output, and the shells that are registered."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", '"$@"; echo "ended $?"; read wait', "sh", *SWARM, *argv], cwd=ground.repo,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, **env},
            start_new_session=True,
        )  # fmt: skip
        out = b""
        while b"ended" not in out:
            part = os.read(process.stdout.fileno(), 65536)
            assert part, out
            out += part
        shells = ground.sql("SELECT * FROM instances WHERE label LIKE '%origin:terminal%'")
        process.communicate(b"\n", timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    said, _, code = out.decode().rpartition("ended ")
    return int(code), said, shells


def test_the_shell_of_a_person_is_a_gateway_as_long_as_it_lives(ground: Ground, store: Store) -> None:
    peer = ground.session("claude", "role:reviewer origin:claude-code")
    code, out, shells = at_terminal(ground, "dispatch", "Do it", "--no-spawn", "--json")
    answer = json.loads(out)
    (shell,) = shells
    assert (code, answer["status"], shell["label"]) == (0, "no_worker", "mode:gateway origin:terminal")
    assert task(ground, answer)["requester"] == shell["id"]
    assert store.instances.live(shell["id"]) is None, "the shell has ended"
    assert [row["id"] for row in store.instances.in_scope(ground.scope)] == [peer["id"]]


@pytest.mark.parametrize("env", [{"CLAUDECODE": "1"}, {"CODEX_THREAD_ID": "x"}])
def test_an_agents_shell_is_no_person(ground: Ground, env: dict) -> None:
    ground.session("claude", "role:reviewer")
    ground.session("codex", "role:reviewer")
    code, _, shells = at_terminal(ground, "dispatch", "Do it", "--no-spawn", **env)
    assert (code, shells) == (1, [])


@pytest.mark.sampled
@pytest.mark.parametrize("others", [0, 1, 2])
def test_a_script_without_a_terminal_dispatches_as_its_own_shell(others: int, ground: Ground) -> None:
    """As `run` does, with any others in the scope; but in no mode that only a person chooses, nor for an agent."""
    for number in range(others):
        ground.session(str(number), "role:reviewer")
    words = ("dispatch", "Do it", "--no-spawn", "--json")
    quiet = {name: value for name, value in os.environ.items() if name not in SHELL_VARIABLES}
    done = ground.process(*words, stdin=subprocess.DEVNULL, env=quiet)
    assert (done.code, done.json["status"]) == (0, "no_worker"), done
    requester = ground.sql("SELECT * FROM instances WHERE id = ?", done.json["task"]["requester"])
    assert [row["label"] for row in requester] == ["mode:gateway origin:terminal"]
    refused = ground.process(*words, "--mode", "yolo", stdin=subprocess.DEVNULL, env=quiet)
    assert refused.code == 1 and "for a person at a terminal" in refused.json["error"]
    agent = ground.process(*words, stdin=subprocess.DEVNULL, env={**quiet, "CLAUDECODE": "1"})
    assert agent.code == 1


@pytest.mark.parametrize("others", [0, 1, 2])
def test_a_script_without_a_terminal_requests_a_task_in_its_own_name(others: int, ground: Ground) -> None:
    for number in range(others):
        ground.plain(f"role:reviewer worker-{number}")  # such a row names no client
    words = ("task", "request", "fix", "the build", "--json")
    quiet = {name: value for name, value in os.environ.items() if name not in SHELL_VARIABLES}
    done = ground.process(*words, stdin=subprocess.DEVNULL, env=quiet)
    assert (done.code, done.json["status"]) == (0, "open"), done
    requester = ground.sql("SELECT * FROM instances WHERE id = ?", done.json["task"]["requester"])
    assert [row["label"] for row in requester] == ["mode:gateway origin:terminal"]
    agent = ground.process(*words, stdin=subprocess.DEVNULL, env={**quiet, "CLAUDECODE": "1"})
    assert agent.code == 1 or others == 1, agent


@requirement("C-68")
def test_only_a_person_may_do_without_the_harness_s_own_checks(ground: Ground, lead: dict, store: Store) -> None:
    pretender = ground.session("p", "mode:gateway origin:terminal")
    person = ground.session("shell", "mode:gateway origin:terminal", runtime="terminal")
    for row, may in ((lead, False), (pretender, False), (person, True)):
        assert may_use_yolo(store.instances.live(row["id"])) is may


@pytest.mark.parametrize(
    "mode, given, words",
    [
        ("read-only", {}, "of mode edit"),
        ("read-only", {"mode": "yolo"}, "of mode yolo"),
        ("read-only", {"mode": "read-only", "harness": "process"}, "nothing would keep it from writing"),
        ("read-only", {"spawner": "swarm-ui"}, "of mode edit"),
        ("edit", {"mode": "yolo"}, "of mode yolo"),
        ("edit", {"command": "id"}, "which command"),
        ("read-only", {"mode": "read-only"}, ""),
        ("edit", {}, ""),
        ("yolo", {"mode": "yolo", "command": "true"}, ""),
    ],
)
def test_a_worker_starts_none_with_a_wider_mode(
    ground: Ground, lead: dict, monkeypatch: pytest.MonkeyPatch, mode: str, given: dict, words: str, store: Store
) -> None:
    """It need only call itself a gateway to dispatch; its workers have at most its own rights."""
    monkeypatch.setenv("SWARM_ALLOW_YOLO", "1")
    monkeypatch.setenv("SWARM_HARNESS_PROCESS", "true")
    worker = ground.session("worker", "mode:gateway role:implementer")
    record = ground.repo.parent / "record.jsonl"
    record.write_text(json.dumps({"type": "metadata", "mode": mode}) + "\n{}\n")
    spec = {"id": "r1", "scope": ground.scope, "instance_id": worker["id"], "harness": "process", "cwd": "/"}
    given = {"harness": "claude", "spawner": "process", "force_spawn": True, **given}
    store.runs.begin({**spec, "record": str(record)})
    if words.startswith("nothing"):
        with pytest.raises(Refused, match=words):
            Dispatch(worker, DispatchRequest("In turn", **given))
        return
    dispatch = Dispatch(worker, DispatchRequest("In turn", **given))
    if not words:
        monkeypatch.setattr(Processes, "start", started := Mock(side_effect=SpawnFailed("not in this test")))
        assert dispatch.advance(store)["status"] == "spawn_failed" and started.called
        return
    with pytest.raises(Refused, match=words):
        dispatch.advance(store)
    assert store.database.rows("SELECT id FROM tasks") == []


def test_nobody_gives_work_to_a_persons_shell(ground: Ground, lead: dict) -> None:
    ground.session("shell", "mode:gateway origin:terminal", runtime="terminal")
    assert dispatch(ground, lead, spawn=False)["status"] == "no_worker"


@pytest.mark.thorough
def test_a_supervisor_wants_an_assignment(ground: Ground) -> None:
    for text in (b"", b"{", b"[]", b'{"scope": 1}', b"\xff"):
        done = ground.process("work", input=text)
        assert done.code == 1 and "assignment" in done.err and "Traceback" not in done.err
    done = ground.process("work", "--from", str(ground.folder / "none"))
    assert done.code == 1 and "assignment cannot be read" in done.err
    assert not Path(ground.database).exists()


@pytest.mark.parametrize("step", ["carry_out", "_work", "__init__"])
def test_a_supervisor_that_dies_leaves_a_fault(
    step: str, ground: Ground, lead: dict, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    def broken(*_given: object) -> None:
        raise ZeroDivisionError("a bug")

    made = store.tasks.request(lead, {"type": "fix", "title": "port it"})["task"]
    monkeypatch.setattr(Supervisor, step, broken)
    with pytest.raises(ZeroDivisionError):
        supervise(assignment(ground, lead, made.id, "true", harness="process"))
    (fault,) = recorded_faults()
    assert made.id in str(fault) and "ZeroDivisionError: a bug" in str(fault)


def test_a_supervisor_that_cannot_join_leaves_a_fault(ground: Ground, lead: dict, store: Store) -> None:
    other = ground.session("other")
    made = store.tasks.request(lead, {"type": "fix", "title": "port it"})["task"]
    given = assignment(ground, lead, made.id, "true", harness="process", instance_id=other["id"])
    done = ground.process("work", input=given.to_text().encode())
    assert done.code == 1 and "another session's" in done.err
    (fault,) = recorded_faults()
    assert made.id in str(fault) and "another session's" in str(fault)
