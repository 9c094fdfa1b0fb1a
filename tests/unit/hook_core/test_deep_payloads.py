"""Calls with input deeper than a parser can go, or huge: judged like any other, in bounded time."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fixtures import SWARM, Ground, time_limit
from support.serving import Server
from support.sessions import captured, mistakes, new_session, peer_locks, run, start

from swarm_hook_core.hooks import ToolCall, tool_call
from swarm_hook_core.json_text import LEVELS, dumps, loads, loads_outer, shallow
from swarm_hook_core.watching.records import call_key

pytestmark = pytest.mark.slow

DEPTHS = (LEVELS + 1, 450, 990, 1200, 100_000)  # too deep for our readers, for Python's parser, for any
SECONDS_PER_MEGABYTE = 3  # of processor time, at the worst; 0.01 to 0.3 where nothing else runs


def nested(depth: int, opening: str = "[", closing: str = "]", inner: str = "1") -> str:
    return opening * depth + inner + closing * depth


def tool_inputs(file: Path, deep: str) -> dict[str, tuple[str, str]]:
    """A tool and its input as JSON: each writes `file`, and has something `deep` in one place or another."""
    name, patch = (
        json.dumps(str(file)),
        json.dumps(f"*** Begin Patch\n*** Update File: {file}\n@@\n-a\n+b\n*** End Patch"),
    )
    wrapped = json.dumps('{"more": ' + deep + ', "patch": ' + patch + "}")
    return {
        "content": ("Write", f'{{"content": {deep}, "file_path": {name}}}'),
        "after the path": ("Edit", f'{{"file_path": {name}, "old_string": "", "new_string": "", "x": {deep}}}'),
        "MCP tool": ("mcp__fs__write_file", f'{{"x": {deep}, "path": {name}, "content": ""}}'),
        "edits": ("mcp__fs__edit_files", f'{{"files": [{deep}, {{"path": {name}, "x": {deep}}}]}}'),
        "JSON text": ("mcp__fs__write_file", json.dumps(f'{{"x": {deep}, "path": {name}}}')),
        "shell": ("Bash", f'{{"env": {deep}, "command": {json.dumps(f"echo x > {file}")}}}'),
        "patch": ("apply_patch", f'{{"x": {deep}, "command": {patch}}}'),
        "patch in JSON text": ("apply_patch", f'{{"command": {wrapped}}}'),
    }


@pytest.fixture
def repo(repo: Path) -> Path:
    (repo / "f.py").write_text("a\n")
    return repo


def payload_bytes(runtime: str, me: str, repo: Path, tool: str, tool_input: str) -> bytes:
    name = "PreToolUse.apply_patch" if runtime == "codex" else "PreToolUse.Write"
    whole = {**captured(runtime, name, repo), "session_id": me, "tool_name": tool, "tool_input": "HERE"}
    whole["zz"] = "last"
    return json.dumps(whole).replace('"HERE"', tool_input).encode()


def runtime_of(tool: str) -> str:
    return "codex" if tool == "apply_patch" else "claude-code"


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.thorough
def test_the_hook_denies_whatever_else_the_input_holds(repo: Path, depth: int) -> None:
    me, other = new_session(), new_session()
    peer_locks(repo, repo / "f.py")
    for one in (me, other):
        start("claude-code", one, repo)
        start("codex", one, repo)
    lists, objects = nested(depth), nested(depth, '{"a": [1, ', "]}", '"\\"]"')
    kinds = list(tool_inputs(repo / "f.py", lists))
    for deep in (lists, objects):
        for kind in kinds if depth in (990, 1200) else kinds[:3]:
            tool, tool_input = tool_inputs(repo / "f.py", deep)[kind]
            runtime = runtime_of(tool)
            ran = run(runtime, "pre_tool_use", payload_bytes(runtime, me, repo, tool, tool_input))
            assert "held by peer" in ran.reason, (kind, ran)
    tool, tool_input = tool_inputs(repo / "free.py", lists)["content"]
    assert run("claude-code", "pre_tool_use", payload_bytes("claude-code", me, repo, tool, tool_input)).out == ""
    assert mistakes() == []


def test_the_command_denies_it_too_and_the_server_refuses_to_read_it(ground: Ground) -> None:
    ground.session("S")
    peer = ground.session("peer")
    file = Path(ground.scope) / "f.py"
    assert ground.swarm("lock", str(file), "--as", peer["id"]).code == 0
    given = {"runtime": "claude-code", "session_id": "S", "cwd": ground.scope, "tool_name": "mcp__fs__write_file"}
    assert "held by" in checked(filled(given, tool_inputs(file, nested(1200))["MCP tool"][1]))
    with Server(ground) as server:
        for number, depth in enumerate(DEPTHS, 1000):  # by its own id, and the server goes on
            answer = asked(server, number, "tools/call", filled({"name": "kv_set", "arguments": {}}, nested(depth)))
            assert "isError" in answer or answer["error"]["message"] == "the request nests too deeply to be read"
        assert server.ask("ping") == {}


def test_half_a_character_in_the_content_opens_no_file(ground: Ground) -> None:
    ground.session("S")
    peer, file = ground.session("peer"), Path(ground.scope) / "f.py"
    assert ground.swarm("lock", str(file), "--as", peer["id"]).code == 0
    given = {"runtime": "claude-code", "session_id": "S", "cwd": ground.scope, "tool_name": "Write"}
    tool_input = json.dumps({"file_path": str(file), "content": "a \ud800 b \udc00\udfff \U0001f600"})
    assert "held by" in checked(filled(given, tool_input))
    with Server(ground) as server:
        call = filled({"name": "kv_set", "arguments": given}, tool_input)
        assert "not valid UTF-8" in str(asked(server, 1000, "tools/call", call))


def checked(payload: str) -> str:
    """Return the answer of `swarm-mcp hook` to a payload."""
    argv = [*SWARM, "hook", "pre-tool-use", "--runtime", "claude-code"]
    done = subprocess.run(argv, input=payload, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    return done.stdout


def filled(value: dict[str, Any], tool_input: str) -> str:
    """`value` as JSON, with the JSON `tool_input` in the innermost object at its end."""
    text = json.dumps(value)
    body = text.rstrip("}")
    return f'{body}{"" if body.endswith("{") else ", "}"tool_input": {tool_input}{text[len(body) :]}'


def asked(server: Server, number: int, method: str, parameters: str) -> dict[str, Any]:
    line = f'{{"jsonrpc": "2.0", "id": {number}, "method": "{method}", "params": {parameters}}}\n'
    server.process.stdin.write(line.encode())
    server.process.stdin.flush()
    return server.answer_to(number, 60)


@pytest.mark.parametrize("wants", ["[" * 100_000, "7", "[7]", "\x1b", '[{"file": 7}]'])
@pytest.mark.sampled
def test_a_spoilt_row_of_the_line_opens_no_file(ground: Ground, wants: str) -> None:
    """A denial counts the waiters; another program's value there must not make the check fail."""
    me, peer = ground.session("S"), ground.session("peer")
    file = Path(ground.scope) / "f.py"
    with ground.store() as store:
        store.locks.acquire(peer, str(file))
        with store.database.writing():
            store.database.change(
                "INSERT INTO swarm_waiters (instance_id, scope, host, pid, start, mode, wants, since)"
                " VALUES (?, ?, '', 0, '', 'exclusive', ?, 0)",
                (peer["id"], ground.scope, wants),
            )
    given = {"runtime": "claude-code", "session_id": "S", "cwd": ground.scope, "tool_name": "Write"}
    assert "held by" in checked(json.dumps({**given, "tool_input": {"file_path": str(file), "content": ""}}))
    assert ground.swarm("lock", str(file), "--as", me["id"]).code == 1
    assert ground.swarm("lock", "other.py", "--as", me["id"]).code == 0


def test_an_end_finds_its_beginning_however_each_was_read() -> None:
    deep = nested(LEVELS - 1)
    as_text = call_key("codex", ToolCall("t", f'{{"a": {deep}}}', "s"))
    whole = loads_outer(f'{{"session_id": "s", "tool_name": "t", "tool_input": {{"a": {deep}}}}}')
    assert isinstance(whole, dict) and call_key("codex", tool_call(whole)) == as_text


@pytest.mark.parametrize("digits", [399, 400, 5000, 1_000_000])
def test_a_number_of_many_digits_is_no_reason_to_stop_reading(digits: int) -> None:
    value = loads('{"a": ' + "9" * digits + ', "b": [-' + "9" * digits + "]}")
    assert isinstance(value, dict) and set(value) == {"a", "b"}
    assert json.loads(dumps(value))["a"] in (10**399 - 1, None)


OPENINGS = [
    ("[", "]"),
    ('{"a":', "}"),
    ('[ 1,\n{\t"}\\"]\\\\": ', "} ]"),
    ('[[],{},"[",', ',"]"]'),
    ('{"a":{},"\\\\":', ',"b":[]}'),
]
SIBLINGS = ["", "0,", "[],", '{"a":[{"b":"\\""}]},', '"]]]]",', '"\\\\",', "[[[[1]]]],", '"\\u00e9\udc80",']


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(OPENINGS), st.integers(1, 3000)), max_size=5),
    st.sampled_from(SIBLINGS), st.integers(0, 5_000), st.booleans(),
)  # fmt: skip
def test_any_depth_and_width_is_read_in_time(layers: list, sibling: str, width: int, first: bool) -> None:
    deep = "1"
    for (opening, closing), depth in layers:
        deep = nested(depth, opening, closing, deep)
    wide = f"[{sibling * width}0]"
    inner = f"{deep}, {wide}" if first else f"{wide}, {deep}"
    judge(f'{{"tool_input": {{"x": [{inner}], "path": "/p", "pages": [{{"path": "/q"}}]}}, "cwd": "/c"}}')


def judge(text: str) -> None:
    """Read `text`, with known fields, within the time for its size."""
    begun = time.process_time()
    value: Any = loads_outer(text)
    took = time.process_time() - begun
    assert took < time_limit(5) + SECONDS_PER_MEGABYTE * len(text) / 1e6
    assert value["cwd"] == "/c" and value["tool_input"]["path"] == "/p"
    assert value["tool_input"]["pages"] == [{"path": "/q"}]
    assert depth_of(value) <= LEVELS + 1
    try:
        expected = json.loads(text, strict=False)
    except RecursionError:
        return
    if depth_of(expected) <= LEVELS:
        assert value == expected


def depth_of(value: Any) -> int:
    depth, level = 0, [value]
    while level := [one for one in level if isinstance(one, (dict, list))]:
        depth += 1
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    return depth


@given(st.integers(0, LEVELS - 1), st.sampled_from(OPENINGS), st.sampled_from(SIBLINGS[1:]))
def test_what_is_not_deep_stays_as_it_is(depth: int, brackets: tuple[str, str], sibling: str) -> None:
    text = nested(min(depth, 20), *brackets, inner=f"[{sibling * 3}1]")
    assert shallow(text, LEVELS) == text


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a\\"":'])
def test_what_does_not_end_is_no_payload(opening: str) -> None:
    for text in (opening * 100_000, nested(2000, opening, "", '"') + "a" * 100_000):
        with pytest.raises(ValueError):
            loads_outer(text)


SHAPES = {
    "deep": lambda size: nested(size // 6, '{"a":', "}"),
    "escapes": lambda size: nested(size // 8, '{"a\\n":', "}"),
    "wide in deep": lambda size: nested(2000, inner="[]," * (size // 3) + "1"),
    "wide beside deep": lambda size: nested(2000) + "," + "[]," * (size // 3) + "1",
    "objects beside deep": lambda size: nested(2000) + "," + '{"a":1},' * (size // 8) + "1",
    "a text beside deep": lambda size: nested(2000) + ',"' + "\\\\\\n" * (size // 4) + '"',
    "at the border": lambda size: nested(LEVELS - 3, inner="[[[]]]," * (size // 7) + "1") + "," + nested(2000),
}


@pytest.mark.parametrize(
    ("megabytes", "shapes"),
    [
        pytest.param(0.2, list(SHAPES), id="all"),
        pytest.param(100, ["deep", "escapes"], id="100 MB", marks=pytest.mark.thorough),
    ],
)
def test_a_huge_input_is_read_in_time(megabytes: float, shapes: list[str]) -> None:
    for shape in map(SHAPES.__getitem__, shapes):  # those that are wide would take gigabytes once they are read
        judge(
            f'{{"tool_input": {{"x": [{shape(int(megabytes * 10**6))}], "path": "/p", "pages": [{{"path": "/q"}}]}}, "cwd": "/c"}}'
        )
