"""A client's questions, refusals read back from the hooks' words, and tool calls in words."""

import json
import os
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.harness_fixtures import Scripted

from swarm_hook_core import denial
from swarm_hook_core.denial import Denial as Refusal
from swarm_hook_core.lookup import Held
from swarm_hook_core.wording import holder, may_write, reason
from swarm_mcp.agents.harness import codex_stream as stream
from swarm_mcp.agents.harness.adapter import PERMISSIONS, REFUSED, Capabilities, Launch, PermissionServer, decided
from swarm_mcp.agents.harness.bridge import TOKEN, argv_of
from swarm_mcp.agents.harness.events import permission_asked
from swarm_mcp.agents.harness.narration import Call, Folder, bare, call_in_words
from swarm_mcp.agents.harness.outcome import Denial, denial_in, reason_in
from swarm_mcp.doctor import recorded_faults
from swarm_mcp.harness import PermissionAsked, PermissionRequest, Query, Refused, Run, Unsupported, events_in, typed

pytestmark = pytest.mark.slow

ASKED = PermissionRequest("Bash", {"command": "ls"})


async def later(answer: object) -> object:
    return answer


@pytest.mark.parametrize(
    ("answer", "told"),
    [(True, None), (False, REFUSED), (None, REFUSED), ("not now", "not now"), ("", REFUSED), (1, REFUSED),
     (later(True), None), (later("no"), "no")],
)  # fmt: skip
def test_only_true_allows(answer: object, told: str | None) -> None:
    assert decided(lambda _: answer, ASKED) == told


def test_an_exception_refuses_and_is_no_fault_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: PermissionRequest) -> bool:
        raise ZeroDivisionError("the caller's")

    told = decided(broken, ASKED)
    assert told is not None and told.startswith(REFUSED) and "ZeroDivisionError" in told
    assert recorded_faults() == [] and "the caller's" in caplog.text


def asked_over(server: PermissionServer, **arguments: object) -> dict:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask", "arguments": arguments}}
    request = urllib.request.Request(server.server.url, json.dumps(call).encode(),
                                     {**server.server.headers, "Content-Type": "application/json"})  # fmt: skip
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request) as answer:
        return json.loads(json.load(answer)["result"]["content"][0]["text"])


def test_the_server_answers_as_claude_code_wants_it() -> None:
    with PermissionServer(lambda request: request.tool_name == "Bash" or "only Bash") as server:
        found = asked_over(server, tool_name="Bash", input={"command": "ls"}, tool_use_id="t")
        assert found == {"behavior": "allow", "updatedInput": {"command": "ls"}}
        assert asked_over(server, tool_name="Web", input={}) == {"behavior": "deny", "message": "only Bash"}


CALLS_AND_ASKS = """
import json, os, urllib.request
server = json.loads(os.environ["PERMISSIONS"])
def ask(**arguments):
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask", "arguments": arguments}}
    request = urllib.request.Request(server["url"], json.dumps(call).encode(),
                                     {**server["headers"], "Content-Type": "application/json"})
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).read()
ask(tool_name="Early", input={}, tool_use_id="c")  # before the call is read
tell("start", "c", "Bash", {})
ask(tool_name="Bash", input={"n": 1}, tool_use_id="c", reason="why")
tell("end", "c", "Bash", "")
ask(tool_name="Web", input={})
ask(tool_name="Lost", input={}, tool_use_id="never begun")
tell("result", "done")
"""


class Asks(Scripted):
    capabilities = Capabilities(permissions=True)

    def launch(self, query: Query, folder: Path) -> Launch:
        launch = super().launch(query, folder)
        server = query.mcp_servers[PERMISSIONS]
        told = json.dumps({"url": server.url, "headers": dict(server.headers)})
        return launch._replace(env={**launch.env, "PERMISSIONS": told})


def test_each_question_is_an_event_in_its_place(tmp_path: Path) -> None:
    """Between the beginning and the end of its call, in the run's own thread, and in its record."""
    found, threads = [], set()
    run = Run(Asks(CALLS_AND_ASKS), Query("x", tmp_path, on_permission=lambda asked: asked.tool_name == "Bash" or "no"))
    run.on_event(lambda event: (found.append(event), threads.add(threading.get_ident())))
    run.result()
    kinds = [event.kind for event in found if event.kind in ("tool_start", "tool_end", "permission_asked", "result")]
    asked = [event for event in found if isinstance(event, PermissionAsked)]
    assert sorted((one.tool_name, one.is_allowed, one.answer) for one in asked) == [
        ("Bash", True, ""), ("Early", False, "no"), ("Lost", False, "no"), ("Web", False, "no"),
    ]  # fmt: skip
    assert [one.tool_name for one in asked][-1] == "Lost" and kinds[-1] == "result" and len(threads) == 1
    at = {one.tool_name: found.index(one) for one in asked}
    start, end = (
        next(at for at, event in enumerate(found) if event.kind == kind) for kind in ("tool_start", "tool_end")
    )
    assert start < at["Early"] < end and start < at["Bash"] < end
    assert asked[[one.tool_name for one in asked].index("Bash")].to_dict() | {"timestamp": 0} == {
        "type": "permission_asked", "timestamp": 0, "tool_call_id": "c", "tool_name": "Bash", "args": {"n": 1},
        "reason": "why", "is_allowed": True, "answer": "",
    }  # fmt: skip
    assert [event for event in events_in(run.record) if isinstance(event, PermissionAsked)] == asked


class Asking(Scripted):
    capabilities = Capabilities(permissions=True, images=True)


def test_a_run_has_the_server_only_with_someone_to_ask(tmp_path: Path) -> None:
    adapter = Asking("tell('result', 'done')")
    Run(adapter, Query("x", tmp_path, on_permission=lambda _: True)).result()
    Run(adapter, Query("x", tmp_path)).result()
    assert [PERMISSIONS in query.mcp_servers for query in adapter.launched] == [True, False]


@pytest.mark.parametrize("given", [{"on_permission": print}, {"images": ["a.png"]}])
def test_a_harness_that_cannot_is_not_started(given: dict, tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    with pytest.raises(Unsupported):
        Run(Scripted("tell('result', 'done')"), Query("x", tmp_path, **given)).result()


@pytest.mark.parametrize(
    "given", [{"on_permission": 7}, {"images": ["no-such.png"]}, {"images": "a.png"}, {"stream_text": 1}]
)
def test_wrong_values_are_refused_by_name(given: dict, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=next(iter(given))):
        Run(Asking("tell('result', 'done')"), Query("x", tmp_path, **given)).start()


SERVER_PROGRAM = """
import json, sys
def tell(**message): print(json.dumps(message), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    method, params = asked.get("method"), asked.get("params")
    if method == "initialize":
        print("no message")
        tell(id=asked["id"], result={})
    elif method in ("thread/start", "thread/resume"):
        if params.get("threadId") == "lost":
            tell(id=asked["id"], error={"message": "no rollout found for thread id lost"})
        else:
            tell(id=asked["id"], result={"thread": {"id": "t-1"}})
    elif method == "turn/start":
        text = params["input"][0]["text"]
        tell(id=asked["id"], result={"turn": {}})
        tell(method="turn/started", params={"threadId": "t-1"})
        tell(method="item/agentMessage/delta", params={"threadId": "other", "itemId": "x", "delta": "not ours"})
        tell(method="item/agentMessage/delta", params={"threadId": "t-1", "itemId": "m", "delta": "hel"})
        tell(method="item/started", params={"threadId": "t-1", "item": {"type": "fileChange", "id": "p", "status": "inProgress",
             "changes": [{"path": "a", "kind": {"type": "add"}, "diff": ""}]}})
        tell(id=70, method="item/fileChange/requestApproval", params={"threadId": "t-1", "itemId": "p", "reason": "why"})
    elif asked.get("id") == 70:
        tell(id=71, method="item/commandExecution/requestApproval",
             params={"threadId": "t-1", "itemId": "c", "command": "rm x", "cwd": "/w"})
        decisions = [asked["result"]["decision"]]
    elif asked.get("id") == 71:
        decisions.append(asked["result"]["decision"])
        tell(id=72, method="item/tool/requestUserInput", params={"threadId": "t-1"})
    elif asked.get("id") == 72:
        decisions.append("error" in asked)
        tell(method="thread/tokenUsage/updated", params={"threadId": "t-1", "tokenUsage": {"total":
             {"inputTokens": 9, "cachedInputTokens": 2, "outputTokens": 3}}})
        tell(method="item/completed", params={"threadId": "t-1", "item": {"type": "agentMessage", "id": "m",
             "text": text + json.dumps(decisions)}})
        tell(method="turn/completed", params={"threadId": "t-1", "turn": {"status": "completed"}})
"""


def bridged(tmp_path: Path, server: PermissionServer | None = None, **more: object) -> tuple[int, list[dict]]:
    """Run the program in front of a played app-server; its exit code and its lines."""
    settings = {
        "argv": [sys.executable, "-c", SERVER_PROGRAM],
        "method": "thread/start",
        "params": {},
        "turn": {},
        **more,
    }
    env = {"PATH": "/usr/bin:/bin", "http_proxy": "http://127.0.0.1:9"}
    if server:
        settings["permissions"] = server.server.url
        env[TOKEN] = server.server.headers["Authorization"]
    path = tmp_path / "bridge.json"
    path.write_text(json.dumps(settings))
    done = subprocess.run(argv_of("codex", str(path)), input="say ", env=env, text=True,
                          capture_output=True)  # fmt: skip
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_questions_are_passed_on_and_lines_are_those_of_exec(tmp_path: Path) -> None:
    asked: list[PermissionRequest] = []

    def decide(request: PermissionRequest) -> bool:
        asked.append(request)
        return request.tool_name == "apply_patch"

    with PermissionServer(decide) as server:
        code, lines = bridged(tmp_path, server)
    assert asked == [
        PermissionRequest("apply_patch", {"changes": [{"path": "a", "kind": "add"}]}, "why"),
        PermissionRequest("Bash", {"command": "rm x", "cwd": "/w"}),
    ]
    assert code == 0 and lines[-2]["item"]["text"] == 'say ["accept", "decline", true]'
    state: dict = {}
    told = [event for line in lines for event in stream.parse(json.dumps(line), state)]
    kinds = [event.kind if event.kind != "custom" else event.data["name"] for event in told]
    assert kinds == ["session_init", "codex.text_delta", "tool_start", "message", "result"]
    assert told[1].data["data"] == {"delta": "hel"} and told[2].data["tool_name"] == "apply_patch"
    assert stream.cost_of(state["usage"]).output_tokens == 3 and stream.cost_of(state["usage"]).input_tokens == 7


def test_nobody_to_ask_refuses(tmp_path: Path) -> None:
    code, lines = bridged(tmp_path)
    assert code == 0 and lines[-2]["item"]["text"] == 'say ["decline", "decline", true]'
    told = [typed(event) for line in lines for event in stream.parse(json.dumps(line), {})]
    assert [event for event in told if isinstance(event, PermissionAsked)] == [
        permission_asked("p", "apply_patch", {"changes": [{"path": "a", "kind": "add"}]}, "why", REFUSED),
        permission_asked("c", "Bash", {"command": "rm x", "cwd": "/w"}, "", REFUSED),
    ]


def test_a_server_that_refuses_or_ends_fails_the_turn(tmp_path: Path) -> None:
    code, lines = bridged(tmp_path, method="thread/resume", params={"threadId": "lost"})
    assert code == 1 and lines == [{"type": "turn.failed", "error": {"message": "no rollout found for thread id lost"}}]
    assert [event.data["category"] for event in stream.parse(json.dumps(lines[0]), {}) if event.kind == "error"] == [
        "session_not_found"
    ]
    code, lines = bridged(tmp_path, argv=[sys.executable, "-c", "import sys; sys.exit(4)"])
    assert (code, lines) == (4, [])


NOW = 1_790_000_000
LABEL = "identity:p claude-code platform:cli origin:claude-code session:0c0ffee0"
PATHS = st.text(st.characters(codec="utf-8").filter(str.isprintable), min_size=1)
NOTES = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF).filter(str.isprintable), max_size=150)
AROUND = st.sampled_from(
    ["{}", "PreToolUse:Edit hook error: {}", "error=Command blocked by PreToolUse hook: {}. Command: x"]
)
NAMES = st.sampled_from([LABEL, LABEL.replace("claude-code", "", 1), "identity:p terminal origin:terminal", "identity:p worker run:5f0c2f6e",
                         "identity:p hold origin:hold make tidy", "identity:p machine:laptop-3fa9c1 origin:codex session:12ab34cd"])  # fmt: skip


def lock(note: str, label: str = LABEL, **more) -> Held:
    """A lock on a file."""
    return Held("/src/x", "0c0ffee0-0000-4000-8000-000000000000", label, note, NOW - 90, **more)


def shown(note: str) -> str:
    """A note as it is shown: blanks between its words."""
    return " ".join(note.split())


@given(path=PATHS, note=NOTES, label=NAMES, around=AROUND, by=st.sampled_from(["", "sed -i s/a/b/ x", "tee (odd): for y"]),
       more=st.sampled_from([{}, {"mode": "shared"}, {"mode": "auto"}, {"agent": "a-1"}, {"expected_end": NOW + 60}]),
       within=st.booleans())  # fmt: skip
def test_a_refusal(path, note, label, around, by, more, within) -> None:
    held = lock(note, label, **more)
    words = reason("mcp__files__write", path, held, "p", NOW, by, within)
    assert denial_in(around.format(words)) == Denial(path, holder(held, "p")[0], shown(note))
    assert reason_in(around.format(words)).startswith(words)
    assert reason_in("failed: " + json.dumps([{"received": words}])) == words


@given(path=PATHS, note=NOTES, times=st.integers(3, 40))
def test_a_storm(path, note, times) -> None:
    held, refusal = lock(note), Refusal(path, lock(note), "")
    refusal.times = times
    session = SimpleNamespace(label="identity:p", instance_id="other")
    call = SimpleNamespace(client_tool="Edit", folder="")
    found = denial_in(denial._words(refusal, session, call, 90, 2, NOW))
    assert found == Denial(path, holder(held, "p")[0], "", times)


@given(path=PATHS, note=NOTES, times=st.sampled_from([0, 1, 3, 12]))
def test_a_brief_refusal(path, note, times) -> None:
    """There is room for a part of the path and of the note."""
    refusal = Refusal(path, lock(note), "x" * 2000)
    refusal.times = times
    session = SimpleNamespace(label="identity:p", instance_id="other")
    denial.shorten(refusal, session, SimpleNamespace(client_tool="Edit", folder="/src"), 600)
    found = denial_in(refusal.brief)
    assert found is not None
    assert found.file in (path, f"…{path[1 - denial.PATH :]}") and found.holder == "claude-code 0c0ffee0"
    assert shown(note).startswith(found.note.rstrip("….\\")) and found.times == max(times if times > 2 else 1, 1)


@given(note=NOTES)
def test_what_may_be_written(note) -> None:
    held = lock(note)
    assert denial_in(may_write("Bash", "its words cannot be told", held, "p", "own")) == Denial(
        "/src/x", "claude-code 0c0ffee0", shown(note)
    )


def test_another_identity_stays_unnamed() -> None:
    words = reason("Edit", "x", lock("secret"), "another", NOW)
    assert denial_in(words) == Denial("x", "a session of another identity")


@pytest.mark.parametrize("text", ["", "ok", "blocked", json.dumps({"a": 1})])
def test_what_is_none(text: str) -> None:
    assert denial_in(text) is None and reason_in(text) == ""


def test_words_that_nobody_expected_are_a_refusal_all_the_same() -> None:
    found = denial_in("swarm lock blocked Edit: as never before")
    assert found == Denial() and found.line() == "denied: a locked file"


def test_the_line() -> None:
    assert Denial("x", "lead", "mine", 3).line() == "denied: x, held by lead (mine); 3 times now"
    assert Denial("x", "lead").line() == "denied: x, held by lead"


SHOP = Folder("/src/shop")
PATCH = "*** Begin Patch\n*** Update File: /src/shop/a.py\n@@\n-one\n+two\n*** Add File: b.py\n+new\n*** End Patch\n"
LINES = ("*** Update File: a.py", "@@", "-one", "+two", "*** Add File: b.py", "+new")


@pytest.mark.parametrize(("command", "shown"), [
    ("/bin/bash -lc 'ls -la; cat x'", "ls -la; cat x"), ('bash -c "git commit -m \'x y\'"', "git commit -m 'x y'"),
    (["zsh", "-lc", "make check"], "make check"), (["git", "log", "a b"], "git log 'a b'"),
    ("bash script.sh -c x", "bash script.sh -c x"), ("make check", "make check"), ("echo 'open", "echo 'open"),
    ("bash -lc 'make' && rm x", "bash -lc 'make' && rm x"),
])  # fmt: skip
def test_the_shell_around_a_command_is_taken_off(command, shown: str) -> None:
    assert bare(command) == shown


@pytest.mark.parametrize(("name", "given", "call"), [
    ("Bash", {"command": "cd /src/shop && ls /src/shop/lib", "description": "x", "timeout": 9}, Call("$ ls lib")),
    ("exec", {"cmd": ["bash", "-lc", "cat <<X\na\nX"]}, Call("$ cat <<X", ("a", "X"))),
    ("Bash", {"command": "cd '/src/shop/'; make"}, Call("$ make")),
    ("Bash", {"command": "cd /src/shop2 && ls /other/src/shop/x"}, Call("$ cd /src/shop2 && ls /other/src/shop/x")),
    ("Edit", {"file_path": "/src/shop/a", "old_string": "x\n", "new_string": "y\nz"}, Call("Edit a", (), ("-x", "+y", "+z"), True)),
    ("edit", {"path": "a", "edits": [{"oldText": "1", "newText": "2"}, {"oldText": "3", "newText": ""}]},
     Call("edit a", (), ("-1", "+2", "-3"), True)),
    ("str_replace_based_edit_tool", {"command": "create", "path": "a", "file_text": "1\n\n2\n"},
     Call("str_replace_based_edit_tool a", (), ("+1", "+", "+2"), True)),
    ("write_file", {"filePath": "/src/shop/a", "content": "1"}, Call("write_file a", (), ("+1",), True)),
    ("apply_patch", {"patchText": PATCH}, Call("apply_patch a.py, b.py", (), LINES, True)),
    ("apply_patch", PATCH, Call("apply_patch a.py, b.py", (), LINES, True)),
    ("Bash", {"command": f"apply_patch <<'EOF'\n{PATCH}EOF\n"}, Call("Bash a.py, b.py", (), (*LINES, "EOF"), True)),
    ("apply_patch", {"changes": [{"path": "/src/shop/a", "kind": "update"}, {"path": "b"}, 3]},
     Call("apply_patch update a, change b", is_edit=True)),
    ("Read", {"file_path": "/src/shop/a", "limit": 3}, Call("Read a limit=3")),
    ("mcp__x__y", {"n": 1, "text": "see /src/shop/a"}, Call("mcp__x__y n=1 text=see a")),
    ("list", None, Call("list")), ("odd", [1, "x"], Call('odd [1, "x"]')),
])  # fmt: skip
def test_what_a_call_does(name: str, given: object, call: Call) -> None:
    assert call_in_words(name, given, SHOP) == call


def test_the_folder_by_both_its_names(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    folder = Folder(str(tmp_path / "link"))
    assert folder.short(f"{tmp_path}/link/a {tmp_path.resolve()}/real/b") == "a b"
    assert Folder("").short(f"{os.sep}a/b") == "/a/b"


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["command", "path", "content", "edits", "changes"]) | st.text(), inner),
)  # fmt: skip


@pytest.mark.slow
@given(name=st.text(), given=JSON)
def test_nothing_that_a_model_sends_is_too_odd(name: str, given: object) -> None:
    words, more, patch, _ = call_in_words(name, given, SHOP)
    json.dumps([words, more, patch])
