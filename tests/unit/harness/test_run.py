"""The runner, with small children of Python and sh for harnesses."""

import gc
import json
import os
import signal
import stat
import threading
import time
from pathlib import Path

import pytest
from support.harness_fixtures import MAKERS, OTHER, SESSION, Scripted, gone_within, is_alive, kinds, run_of, seen_of
from support.requirement import requirement

from swarm_mcp.agents.harness import environment, events, registry
from swarm_mcp.agents.harness.adapter import Launch
from swarm_mcp.agents.harness.events import Event, retry
from swarm_mcp.agents.harness.outcome import AuthError, Cost, HarnessError, NotInstalled
from swarm_mcp.agents.harness.query import McpServer, Query
from swarm_mcp.agents.harness.run import Run, ended_by_signals
from swarm_mcp.doctor import recorded_faults
from swarm_mcp.errors import Refused, SwarmError

pytestmark = pytest.mark.slow

GOOD = f"""
tell("init", {SESSION!r})
tell("start", "c1", "Read", {{"path": "a"}})
tell("end", "c1", "Read", "text")
tell("say", "I have read it")
tell("result", "all done", False, {{"total_cost_usd": 0.5, "input_tokens": 10, "output_tokens": 3}})
"""


def lines_of(run) -> list[dict]:
    return [json.loads(line) for line in Path(run.record).read_text().splitlines()]


@requirement("A-05", "A-07", "C-03")
def test_a_run_from_start_to_end(tmp_path):
    adapter = Scripted(GOOD)
    run = run_of(adapter, tmp_path, task_id="task-1234567")
    assert run.session_id is None and run.child is None
    result, seen = seen_of(run)
    assert kinds(seen) == ["session_init", "tool_start", "tool_end", "message", "result"]
    assert seen[-1].data["output"] == "all done" and seen[-1].data["cost"]["total_cost_usd"] == 0.5
    assert (result.exit_code, result.signal, result.is_error, result.output) == (0, None, False, "all done")
    assert result.session_id == run.session_id == SESSION and result.attempts == 1 and not result.clear_session
    assert result.session_params["cwd"] == str(tmp_path) and result.session_params["harness"] == "scripted"
    assert result.cost == result.session_cost == Cost(0.5, 10, 3)
    assert result.run_id == run.run_id and json.dumps(result.to_dict())
    assert not adapter.folders[0].exists() and os.listdir(environment.place()) == []


@requirement("A-19", "A-20", "A-30", "A-38", "A-39", "C-20")
def test_the_record_has_metadata_first_and_every_event(tmp_path):
    adapter = Scripted(GOOD + 'print("a warning", file=sys.stderr)')
    metas = []
    run = run_of(adapter, tmp_path, task_id="task-1234567", env={"API_TOKEN": "tttttttttttttttt", "PLAIN": "shown"})
    run.on_meta(lambda found: metas.append((found, run.child)))
    _, seen = seen_of(run)
    path = Path(run.record)
    assert path.parent.name == run.run_id and path.name.endswith("-task-123.jsonl")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    first, *others = lines_of(run)
    assert first["type"] == "metadata" and first["adapter"] == "scripted" and first["cwd"] == str(tmp_path)
    assert first["env"]["API_TOKEN"] == "[REDACTED]" and first["env"]["PLAIN"] == "shown" and first["prompt"] == "do it"
    assert first["task_id"] == "task-1234567" and first["run_id"] == run.run_id
    shown = [{**e.to_dict(), "type": "stderr" if e.kind == "raw_stderr" else e.kind} for e in seen]
    assert others == shown and "stderr" in [line["type"] for line in others]
    assert sum(line["type"] == "raw_log" for line in others) == 5
    assert len(metas) == 1 and metas[0][1] is None, "told before there was a child"


@requirement("A-02", "A-06")
def test_start_returns_at_once_and_listeners_are_told_in_order(tmp_path):
    told: list[tuple[str, str]] = []

    def broken(event):
        raise RuntimeError("a listener's own fault")

    gate = tmp_path / "gate"
    wait = f"\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    run = run_of(Scripted(GOOD + wait), tmp_path)
    run.on_event(lambda e: told.append(("a", e.kind))).on_event(broken).on_event(lambda e: told.append(("b", e.kind)))
    run.start()
    assert run.wait(0) is None
    gate.touch()
    assert run.wait(60)
    assert [word for who, word in told if who == "a"] == [word for who, word in told if who == "b"]
    assert told[0][0] == "a" and told[1] == ("b", told[0][1])


def test_the_prompt_comes_on_standard_input_whole(tmp_path):
    prompt = "é\n" * 200_000
    script = "text = sys.stdin.buffer.read(); tell('result', str(len(text)))"
    assert seen_of(run_of(Scripted(script), tmp_path, prompt))[0].output == str(len(prompt.encode()))
    # One that never reads does not hold anything up, nor does one that closes its input.
    assert seen_of(run_of(Scripted("tell('result', 'unread')"), tmp_path, prompt))[0].output == "unread"


@requirement("A-09", "A-11")
def test_environment_and_folder_of_the_child(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/settings")
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", "the-parents")
    monkeypatch.setenv("WITHOUT", "x")
    names = ["CLAUDECODE", "CLAUDE_CONFIG_DIR", "SWARM_MCP_INSTANCE_ID", "SWARM_RUN_ID", "A", "B", "WITHOUT", "odd.n%%"]
    script = f"tell('result', json.dumps([os.getcwd(), *map(os.environ.get, {names!r})]))"
    adapter = Scripted(script, env={"B": "adapter"}, drop=("WITHOUT",))
    run = run_of(adapter, tmp_path, env={"A": "query", "B": "query", "odd.n%%": "kept"}, instance_id="mine")
    found = json.loads(seen_of(run)[0].output)
    assert found == [str(tmp_path), None, "/settings", "mine", run.run_id, "query", "adapter", None, "kept"]
    assert os.environ.get("A") is None


@requirement("D-17")
def test_client_tools_and_servers_are_merged_before_the_launch(tmp_path):
    def double(number: int) -> int:
        """Twice the number."""
        return 2 * number

    adapter = Scripted(GOOD)
    others = {"user": McpServer("x"), "client_tools": McpServer("y")}
    seen_of(run_of(adapter, tmp_path, client_tools=(double,), mcp_servers=others))
    servers = adapter.launched[0].mcp_servers
    assert {"swarm", "user", "client_tools"} <= set(servers) and servers["client_tools"].url.startswith(
        "http://127.0.0.1:"
    )
    assert any(folder.endswith("swarm-mcp") for folder in adapter.launched[0].skills)


class Retrying(Scripted):
    """Says that it tries again: why, and not before when."""

    def parse(self, line: str, state: dict) -> list[Event]:
        word, *rest = json.loads(line)
        return [retry("scripted.retry", {}, *rest)] if word == "again" else [MAKERS[word](*rest)]


AGAIN = "tell('again', 'the API answered 429', 'rate_limited', time.time() + 30); "


@pytest.mark.parametrize(
    "then, last",
    [("", "custom"), ("tell('say', 'a word')", "message"), ("tell('start', 'c', 'Read', {})", "tool_start")],
)
def test_a_timeout_names_the_last_retrys_error(tmp_path, then: str, last: str):
    """Unless the model has answered since."""
    run = run_of(Retrying(AGAIN + then + "\ntime.sleep(60)"), tmp_path, grace_seconds=0.3)
    run.on_event(lambda event: event.kind == last and run._stop.give("timeout", "it took too long"))
    result, _ = seen_of(run)
    said = last == "custom"
    assert (result.error_category, result.timed_out) == ("timeout", True)
    words = "it took too long" + "; it was trying again after rate_limited: the API answered 429" * said
    assert result.error_message == words
    assert (result.retry_not_before is not None) is said
    assert not said or 20 < result.retry_not_before - time.time() <= 30


def test_notes_and_errors_of_the_adapter_are_heard(tmp_path):
    class Noting(Scripted):
        def parse_stderr(self, line, state):
            return [events.custom("noting.heard", [line, state["query"].cwd, bool(state["folder"])])]

    adapter = Noting(GOOD + "print('said', file=sys.stderr)", notes=("take note",))
    _, seen = seen_of(run_of(adapter, tmp_path))
    assert [e.data["content"] for e in seen if e.kind == "raw_stderr"] == ["take note", "said"]
    assert [e.data["data"] for e in seen if e.kind == "custom"] == [["said", str(tmp_path), True]]


@pytest.mark.parametrize(
    "script, code, category",
    [
        ("sys.exit(3)", 3, "process_crashed"),
        ("os.kill(os.getpid(), 11)", -11, "process_crashed"),
        ("print('Error: 401 Unauthorized', file=sys.stderr); sys.exit(1)", 1, "auth_failed"),
        ("tell('result', 'HTTP 429: too many requests', True)", 0, "rate_limited"),
        ("tell('result', 'it went wrong', True)", 0, "unknown"),
        ("tell('error', 'prompt is too long', 'context_overflow'); sys.exit(1)", 1, "context_overflow"),
    ],
)
@requirement("A-20", "C-59", "D-04")
@pytest.mark.sampled
def test_failures_have_a_code_and_a_message(tmp_path, script, code, category):
    result, seen = seen_of(run_of(Scripted(script), tmp_path))
    assert (result.exit_code, result.error_category) == (code, category)
    assert result.is_error and result.error_message and "\n" not in result.error_message
    assert kinds(seen)[-1] == "result" and kinds(seen).count("result") == 1
    assert [e.data["category"] for e in seen if e.kind == "error"] == [category]


@requirement("C-28")
def test_what_nobody_understood_is_kept(tmp_path):
    script = "print('garbage'); print('more', file=sys.stderr); sys.exit(1)"
    result, _ = seen_of(run_of(Scripted(script), tmp_path))
    assert result.result_json == {"stdout": "garbage", "stderr": "more"}


def test_a_program_that_is_not_there(tmp_path):
    class Missing(Scripted):
        def launch(self, query, folder):
            return Launch(("no-such-program-here", "-p"))

    result, seen = seen_of(run_of(Missing(), tmp_path))
    assert result.error_category == "not_installed" and "Install scripted." in result.error_message
    assert result.exit_code is None and kinds(seen) == ["error", "result"]


@requirement("D-05")
def test_failures_as_exceptions(tmp_path):
    query = Query("do it", str(tmp_path))
    assert Run(Scripted(GOOD), query).result().output == "all done"
    for script, kind, code in (
        ("sys.exit(1)", HarnessError, "process_crashed"),
        ("sys.exit(127)", NotInstalled, "not_installed"),
        ("print('not logged in', file=sys.stderr); sys.exit(1)", AuthError, "auth_failed"),
    ):
        with pytest.raises(kind) as caught:
            Run(Scripted(script), query).result()
        assert (caught.value.code, caught.value.harness) == (code, "scripted")
        assert caught.value.instructions == "Install scripted."


def test_an_adapter_that_raises_ends_no_run(tmp_path):
    class Broken(Scripted):
        def parse(self, line, state):
            raise KeyError("parse")

        def finish(self, state):
            raise KeyError("finish")

        def error_of(self, ending):
            raise KeyError("error_of")

    result, seen = seen_of(run_of(Broken(GOOD), tmp_path))
    assert not result.is_error and kinds(seen)[-1] == "result"
    assert "broken" not in kinds(seen) and kinds(seen).count("custom") == 6

    class Unlaunched(Scripted):
        def launch(self, query, folder):
            raise Refused("the harness needs a model")

    result, seen = seen_of(run_of(Unlaunched(), tmp_path))
    assert result.error_message == "the harness needs a model" and kinds(seen) == ["error", "result"]
    assert os.listdir(environment.place()) == []


@requirement("D-23")
def test_a_bug_inside_still_ends_the_run(tmp_path):
    class Broken(Scripted):
        def model(self, query):
            raise KeyError("model")

    class Staying:
        instance_id = "i"

        def join(self):
            pass

        def leave(self):
            raise KeyError("leave")

    result, seen = seen_of(run_of(Broken(GOOD), tmp_path))
    assert result.is_error and "KeyError" in result.error_message and kinds(seen)[-1] == "result"
    result, _ = seen_of(run_of(Scripted(GOOD), tmp_path, membership=Staying()))
    assert not result.is_error and result.output == "all done"
    assert len(recorded_faults()) == 2 and os.listdir(environment.place()) == []


@requirement("A-16")
def test_open_tool_calls_are_closed_and_the_last_words_stand_in(tmp_path):
    script = 'tell("start", "c1", "Bash", {}); tell("say", "I was about to"); os.kill(os.getpid(), 15)'
    result, seen = seen_of(run_of(Scripted(script), tmp_path))
    assert kinds(seen) == ["session_init", "tool_start", "message", "tool_end", "error", "result"]
    assert [e for e in seen if e.kind == "tool_end"][0].data["is_error"]
    assert result.output == "I was about to" and result.signal == 15


@requirement("A-17")
def test_only_the_last_result_counts_and_it_comes_last(tmp_path):
    script = 'tell("result", "one"); tell("say", "more"); tell("result", "two", False)'
    result, seen = seen_of(run_of(Scripted(script), tmp_path))
    assert kinds(seen) == ["session_init", "message", "result"] and result.output == "two"


def test_without_a_membership_the_child_does_not_start(tmp_path):
    class Refusing:
        instance_id = "i"

        def join(self):
            raise SwarmError("no room")

        def leave(self):
            raise AssertionError("it never joined")

    adapter = Scripted(GOOD)
    result, _ = seen_of(run_of(adapter, tmp_path, membership=Refusing()))
    assert result.is_error and result.error_message == "no room" and adapter.launched == []


@pytest.mark.parametrize("script", [GOOD, "sys.exit(1)", "time.sleep(60)"])
def test_membership_begins_before_and_ends_after(tmp_path, script):
    told = []
    bound = tmp_path / "bound"
    script = f"while not os.path.exists({str(bound)!r}): time.sleep(0.01)\n{script}"

    class Member:
        instance_id = "member-1"

        def join(self):
            told.append("join")

        def bind(self, pid, started):
            told.append(f"bind {is_alive(pid)}")
            bound.touch()

        def leave(self):
            told.append("leave")

    adapter = Scripted(script)
    seen_of(run_of(adapter, tmp_path, membership=Member(), timeout_seconds=2))
    assert told == ["join", "bind True", "leave"] and adapter.launched[0].instance_id == "member-1"


@requirement("C-21", "C-69")
def test_a_timeout_holds_even_against_one_who_ignores_it(tmp_path):
    script = 'signal.signal(15, signal.SIG_IGN); tell("say", "no"); time.sleep(60)'
    result, seen = seen_of(run_of(Scripted(script), tmp_path, timeout_seconds=1.5, grace_seconds=0.3))
    assert result.timed_out and result.signal == signal.SIGKILL and result.error_category == "timeout"
    assert result.output == "no" and kinds(seen)[-1] == "result"


@requirement("A-08")
def test_abort_is_heard_at_once_and_only_once(tmp_path):
    script = 'tell("init", "s"); tell("start", "c", "Bash", {}); time.sleep(60)'
    run = run_of(Scripted(script), tmp_path)
    seen: list = []
    started = threading.Event()
    run.on_event(lambda e: (seen.append(e), e.kind == "tool_start" and started.set()))
    run.start()
    assert started.wait(60)
    pid, _ = run.child
    for _ in range(3):
        run.abort("told so")
    result = run.wait(60)
    assert result and result.error_category == "aborted" and result.error_message == "told so" and not is_alive(pid)
    assert kinds(seen) == ["session_init", "tool_start", "tool_end", "error", "result"]
    run.abort()
    assert run.wait(0) == result and run.child is None


@requirement("D-06")
def test_aborted_before_it_began(tmp_path):
    run = run_of(Scripted(GOOD), tmp_path)
    run.abort("never mind")
    result, seen = seen_of(run)
    assert result.error_category == "aborted" and result.exit_code is None and kinds(seen) == ["error", "result"]


def test_an_abort_that_comes_too_late_changes_nothing(tmp_path):
    run = run_of(Scripted(GOOD), tmp_path)
    run.on_event(lambda e: e.kind == "result" and run.abort())
    result, _ = seen_of(run)
    assert not result.is_error


@requirement("C-21")
def test_the_whole_group_and_what_left_it_go_too(tmp_path):
    script = """
import subprocess
pids = [subprocess.Popen(["sleep", "60"], start_new_session=new).pid for new in (False, True)]
tell("say", json.dumps(pids)); time.sleep(60)
"""
    run = run_of(Scripted(script), tmp_path, grace_seconds=2)
    seen: list = []
    run.on_event(lambda e: e.kind == "message" and (seen.append(json.loads(e.data["content"])), run.abort()))
    run.start()
    assert run.wait(60) and gone_within(seen[0], 60)


def test_what_a_child_leaves_behind_is_ended_and_told(tmp_path):
    script = """
import subprocess
tell("result", json.dumps(subprocess.Popen(["sleep", "60"], start_new_session=True).pid))
"""
    result, seen = seen_of(run_of(Scripted(script), tmp_path))
    assert not result.is_error and gone_within([int(result.output)], 60)
    assert [e.data for e in seen if e.kind == "custom"] == [{"name": "swarm.leftovers_ended", "data": {"processes": 1}}]


@requirement("A-58")
def test_calling_the_same_tool_for_ever_ends_the_run(tmp_path):
    script = """
for i in range(60):
    tell("start", str(i), "Read", {"path": "a", "deep": {"b": 1, "a": 2}})
    tell("end", str(i), "Read", "same")
time.sleep(60)
"""
    result, seen = seen_of(run_of(Scripted(script), tmp_path))
    assert result.error_category == "tool_loop" and "15 times" in result.error_message
    assert [e.data["name"] for e in seen if e.kind == "custom"] == ["swarm.tool_loop_warning"]


def test_an_error_that_is_final_ends_the_run(tmp_path):
    result, _ = seen_of(run_of(Scripted('tell("final", "refused", "auth_failed"); time.sleep(60)'), tmp_path))
    assert (result.error_category, result.error_message) == ("auth_failed", "refused")


def test_a_signal_to_the_supervisor_aborts(tmp_path):
    run = run_of(Scripted('tell("say", "on"); time.sleep(60)'), tmp_path)
    run.on_event(lambda e: e.kind == "message" and os.kill(os.getpid(), signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)
    with ended_by_signals(run) as came:
        result, _ = seen_of(run)
    assert result.error_category == "aborted" and "SIGTERM" in result.error_message and came == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is before


def params(cwd, session=SESSION, harness="scripted", **cost) -> dict:
    return {"harness": harness, "session_id": session, "cwd": str(cwd), "cost": cost}


def test_a_session_is_continued_and_costs_its_own_part(tmp_path):
    adapter = Scripted(GOOD)
    before = params(tmp_path, total_cost_usd=0.2, input_tokens=4, output_tokens=3)
    result, _ = seen_of(run_of(adapter, tmp_path, previous=before))
    assert adapter.launched[0].resume_session_id == SESSION and not result.clear_session
    assert result.cost == Cost(0.3, 6, 0) and result.session_cost == Cost(0.5, 10, 3)
    assert result.session_params["cost"]["total_cost_usd"] == 0.5


@pytest.mark.parametrize(
    "before, forget",
    [
        (params("/"), False),
        (params(".", harness="other"), False),
        (params(".", session="--dangerously-skip"), True),
        (params(".", session="../../x"), True),
    ],
)
@requirement("C-54")
def test_a_session_that_must_not_be_continued_begins_anew(tmp_path, before, forget):
    adapter = Scripted(GOOD)
    before = {**before, "cwd": before["cwd"].replace(".", str(tmp_path))}
    result, seen = seen_of(run_of(adapter, tmp_path, previous=before))
    assert adapter.launched[0].resume_session_id == "" and result.clear_session is forget and not result.is_error
    assert [e.data["category"] for e in seen if e.kind == "error"] == ["session_not_found"]


def test_a_session_that_the_harness_knows_to_be_gone(tmp_path):
    class Knowing(Scripted):
        def can_resume(self, session_id, cwd):
            return False

    adapter = Knowing(GOOD)
    result, _ = seen_of(run_of(adapter, tmp_path, resume_session_id=SESSION))
    assert adapter.launched[0].resume_session_id == "" and result.clear_session and result.attempts == 1


UNKNOWN = f"""
tell("result", None, True, None)
print("No conversation found with session ID: {SESSION}", file=sys.stderr); sys.exit(1)
"""


@requirement("A-34", "C-24", "C-57")
def test_an_unknown_session_is_tried_once_more_afresh(tmp_path):
    adapter = Scripted(UNKNOWN, GOOD.replace(SESSION, OTHER))
    run = run_of(adapter, tmp_path, previous=params(tmp_path, total_cost_usd=0.2))
    first = run.record
    result, seen = seen_of(run)
    assert [query.resume_session_id for query in adapter.launched] == [SESSION, ""]
    assert result.clear_session and result.attempts == 2 and result.session_id == OTHER and not result.is_error
    assert result.cost.total_cost_usd == 0.5 and run.record != first and Path(first).exists()
    assert kinds(seen).count("result") == 1 and kinds(seen).count("session_init") == 1
    assert adapter.folders[0] != adapter.folders[1]
    assert [line["type"] for line in lines_of(run)][0] == "metadata"
    # And not a second time.
    adapter = Scripted(UNKNOWN)
    result, _ = seen_of(run_of(adapter, tmp_path, resume_session_id=SESSION))
    assert len(adapter.launched) == 2 and result.error_category == "session_not_found" and result.session_params is None


@requirement("C-24")
def test_no_second_attempt_after_an_abort(tmp_path):
    script = "signal.signal(15, lambda *_: sys.exit(print('No session found', file=sys.stderr) or 1)); time.sleep(60)"
    adapter = Scripted(script)
    result, _ = seen_of(run_of(adapter, tmp_path, resume_session_id=SESSION, timeout_seconds=0.5))
    assert len(adapter.launched) == 1 and result.timed_out


@requirement("C-57")
def test_another_session_than_the_one_asked_for_is_noticed(tmp_path):
    script = GOOD.replace(SESSION, OTHER)
    before = params(tmp_path, total_cost_usd=0.2)
    result, seen = seen_of(run_of(Scripted(script), tmp_path, previous=before))
    assert result.clear_session and result.session_id == OTHER and not result.is_error
    assert result.cost.total_cost_usd == 0.5
    assert [e.data["category"] for e in seen if e.kind == "error"] == ["session_not_found"]
    # A copy is meant to be another one.
    result, seen = seen_of(run_of(Scripted(script), tmp_path, previous=before, fork_session=True))
    assert not result.clear_session and "error" not in kinds(seen)


@requirement("A-56")
def test_dollars_from_the_table_where_the_harness_gives_tokens(tmp_path):
    script = f"""
tell("init", {SESSION!r})
cost = {{"input_tokens": 1000000, "cache_read_tokens": 10, "output_tokens": 100000, "model": "vendor/priced-1-high"}}
tell("result", "done", False, cost)
"""
    assert seen_of(run_of(Scripted(script), tmp_path))[0].cost.total_cost_usd == 2.000001
    result, _ = seen_of(run_of(Scripted(script.replace("priced", "unheard")), tmp_path))
    assert result.cost.total_cost_usd is None and result.to_dict()["cost_usd"] is None


@requirement("A-40", "C-20", "C-60")
def test_a_secret_appears_nowhere(tmp_path, monkeypatch):
    from_parent, from_query, from_server = (f"{word}-{'q9w8e7r6' * 3}" for word in ("parent", "query", "server"))
    shape = "ghp_" + "a1B2" * 9
    monkeypatch.setenv("ANTHROPIC_API_KEY", from_parent)
    script = f"""
everything = os.environ["ANTHROPIC_API_KEY"] + " " + os.environ["MY_PASSWORD"] + " {from_server} \\n{shape}"
tell("init", {SESSION!r})
tell("start", "c", "Bash", {{"command": everything, everything: [everything]}})
tell("end", "c", "Bash", everything)
print(everything, file=sys.stderr)
tell("say", everything)
tell("result", everything, True, {{"model": everything, "total_cost_usd": 1}}, provider=everything)
sys.exit(1)
"""
    adapter = Scripted(script)
    run = run_of(
        adapter, tmp_path, f"use {from_query} and {shape}", env={"MY_PASSWORD": from_query},
        mcp_servers={"s": McpServer(url="http://127.0.0.1:9/", headers={"Authorization": f"Bearer {from_server}"})},
    )  # fmt: skip
    said: list[str] = []
    run.on_log(lambda stream, line: said.append(line)).on_meta(lambda found: said.append(json.dumps(found)))
    result, seen = seen_of(run)
    said += [Path(run.record).read_text(), json.dumps(result.to_dict()), repr(seen)]
    for secret in (from_parent, from_query, from_server, shape):
        assert not any(secret in text for text in said), secret
    assert "[REDACTED:ANTHROPIC_API_KEY]" in result.output and "[REDACTED:github_token]" in result.output


def test_a_session_named_like_a_secret_is_not_told(tmp_path, monkeypatch):
    secret = "q9w8e7r6" * 3
    monkeypatch.setenv("DEPLOY_TOKEN", secret)
    run = run_of(Scripted('tell("init", os.environ["DEPLOY_TOKEN"]); tell("result", "done")'), tmp_path)
    result, _ = seen_of(run)
    assert run.session_id == result.session_id == "[REDACTED:DEPLOY_TOKEN]"
    assert secret not in json.dumps(result.to_dict())


@requirement("A-39")
@pytest.mark.thorough
def test_runs_leave_no_open_files(tmp_path):
    def handles() -> int:
        gc.collect()
        return len(os.listdir("/dev/fd"))

    seen_of(run_of(Scripted(GOOD), tmp_path))
    before = handles()
    for _ in range(3):
        seen_of(run_of(Scripted(GOOD), tmp_path))
    assert handles() <= before


@pytest.mark.parametrize("name", ["claude", "codex", "pi", "gemini", "opencode", "loop", "acp", "process"])
@pytest.mark.sampled
def test_a_line_that_nests_deeply_ends_no_run(tmp_path, name):
    """Of each kind of line that the harness prints, every part in turn: too deep to be read, and just not."""
    real, kinds_seen, found = registry.get(name), set(), []
    for file in sorted((Path(__file__).parents[2] / "data" / "golden" / name).glob("*.jsonl")):
        for line in file.read_text().splitlines():
            told = json.loads(line) if line.startswith("{") else {}
            if told and (kind := repr([told.get("type"), told.get("subtype")])) not in kinds_seen:
                kinds_seen.add(kind)
                found += _with_deep_parts(told)
    found = found or ['{"type": "x", "deep": HERE}']
    (tmp_path / "lines").write_text("\n".join(found))

    class Both(Scripted):
        def parse(self, line, state):
            return super().parse(line, state) if line.startswith('["') else real.parse(line, {})

    script = """
for line in open("lines"):
    for depth in (300, 960):
        print(line.strip().replace('"HERE"', "[" * depth + "]" * depth), flush=True)
"""
    result, seen = seen_of(run_of(Both(script + GOOD), tmp_path), 60)
    assert (result.exit_code, result.is_error, result.output) == (0, False, "all done"), result
    assert not [fault for fault in recorded_faults() if "Recursion" in str(fault)]


def _with_deep_parts(told: dict) -> list[str]:
    """The lines that `told` becomes with something deep in the place of each of its parts, two levels down."""
    lines = []
    for name, value in told.items():
        lines.append(json.dumps({**told, name: "HERE"}))
        if isinstance(value, dict):
            lines += [json.dumps({**told, name: {**value, inner: "HERE"}}) for inner in value]
    return lines


@pytest.mark.thorough
def test_endless_output_is_survived(tmp_path):
    script = "import os\nfor _ in range(300): os.write(1, b'x' * 65536)\nos.write(1, b'\\nlast\\nyyyyyyyyyy\\r\\n')"
    adapter = registry.get("process")
    run = run_of(adapter, tmp_path, command=("python3", "-c", script))
    result, seen = seen_of(run)
    raw = [e.data["content"] for e in seen if e.kind == "raw_log"]
    assert [len(line) for line in raw] == [4 * 1024 * 1024, 4, 10] and len(result.output) <= 30000
    assert [e.data["name"] for e in seen if e.kind == "custom"][:1] == ["swarm.line_cut"]


@requirement("A-09")
def test_a_log_file_has_what_the_record_has(tmp_path: Path) -> None:
    """One more file for callers with logs of their own: of each attempt, and private."""
    log = tmp_path / "mine.jsonl"
    adapter = Scripted("sys.exit('No session found')", GOOD)
    run = run_of(adapter, tmp_path, log_file=str(log), resume_session_id=SESSION)
    result, _ = seen_of(run)
    assert result.attempts == 2 and log.stat().st_mode & 0o777 == 0o600
    records = sorted(Path(result.record).parent.glob("*.jsonl"), key=lambda path: (len(path.name), path.name))
    assert log.read_text() == "".join(path.read_text() for path in records) and len(records) == 2
    with pytest.raises(Refused, match="log_file .*none/such: there is no such folder"):
        run_of(Scripted(GOOD), tmp_path, log_file=str(tmp_path / "none" / "such")).start()
    assert not recorded_faults(), "it is the caller's"


@requirement("A-09", "C-17")
def test_a_child_is_told_of_its_round_and_of_whoever_had_it_started(tmp_path: Path) -> None:
    look = "tell('say', ' '.join(os.environ.get('SWARM_' + n, '-') for n in ('ITERATION', 'API_URL', 'API_KEY')))"
    query = {"iteration": 3, "api_url": "http://127.0.0.1:1", "api_key": "hunter2-hunter2"}
    result, _ = seen_of(run_of(Scripted(look), tmp_path, **query))
    assert result.output == "3 http://127.0.0.1:1 [REDACTED:SWARM_API_KEY]"
    assert "hunter2-hunter2" not in Path(result.record).read_text()
    result, _ = seen_of(run_of(Scripted(look), tmp_path))
    assert result.output == "- - -"


@requirement("C-03")
def test_what_a_cost_is_of(tmp_path: Path) -> None:
    """A harness that counts a session: of a bare id the run's own part is not known, or its own record tells it."""
    script = f"tell('init', '{SESSION}'); tell('result', 'x', False, {{'total_cost_usd': 0.5}})"
    bare, _ = seen_of(run_of(Scripted(script), tmp_path, resume_session_id=SESSION))
    assert (bare.usage_basis, bare.cost.total_cost_usd, bare.session_cost.total_cost_usd) == ("per_run", None, 0.5)
    known, _ = seen_of(run_of(Scripted(script), tmp_path, previous=bare.session_params))
    assert (known.usage_basis, known.cost.total_cost_usd) == ("per_run", 0.0)

    class Recorded(Scripted):
        def session_cost(self, session_id: str) -> Cost:
            return Cost(0.2)  # a person has continued it since

    recorded, _ = seen_of(run_of(Recorded(script), tmp_path, resume_session_id=SESSION))
    assert recorded.cost.total_cost_usd == 0.3
    first, _ = seen_of(run_of(Scripted(script), tmp_path))
    assert first.usage_basis == first.to_dict()["usage_basis"] == "per_run"


@requirement("A-12", "A-30")
def test_one_model_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPTED_DEFAULT_MODEL", "usual")
    monkeypatch.setenv("MODEL_OVERRIDE", "for-all")
    asked = [Scripted(GOOD).model(run_of(Scripted(GOOD), tmp_path, model=model)._query) for model in ("", "own")]
    assert asked == ["for-all", "own"]
    monkeypatch.delenv("MODEL_OVERRIDE")
    assert Scripted(GOOD).model(run_of(Scripted(GOOD), tmp_path)._query) == "usual"


def test_a_run_that_is_cut_off_has_cost_what_was_seen_and_the_next_one_its_own_part(tmp_path):
    """The harness counts a session's whole life, the run that was cut off too (as Claude Code does)."""

    class PerRun(Scripted):
        cumulative = frozenset({"cost"})

    def told(cost: dict) -> str:
        return f"tell('init', '{SESSION}', ); tell('result', 'x', False, {cost!r})"

    tokens = {"input_tokens": 1_000_000, "output_tokens": 100_000, "model": "priced-1"}  # $2 by the table
    first, _ = seen_of(run_of(PerRun(told({**tokens, "total_cost_usd": 2.0})), tmp_path))
    assert first.cost.total_cost_usd == 2.0
    half = {**tokens, "input_tokens": 500_000}  # $1.50
    script = f"tell('init', '{SESSION}'); tell('spent', {tokens!r}); tell('spent', {half!r}); time.sleep(60)"
    run = run_of(PerRun(script), tmp_path, previous=first.session_params, grace_seconds=2.0)
    run.on_event(lambda event: run.abort("enough") if event.data.get("spent") == half else None)
    cut, _ = seen_of(run)
    assert cut.error_category == "aborted" and cut.cost.input_tokens == 500_000
    assert (cut.cost.total_cost_usd, cut.session_cost.total_cost_usd) == (1.5, 3.5)
    last, _ = seen_of(run_of(PerRun(told({**tokens, "total_cost_usd": 5.5})), tmp_path, previous=cut.session_params))
    assert last.cost.total_cost_usd == 2.0
