"""The harness ``loop`` and its built-in tools: argv, events, errors, and faults that every tool must bear."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import settings as limited
from hypothesis import strategies as st
from support.loop_fixtures import Model, Say, loop
from support.requirement import requirement

from swarm_mcp.agents.harness import events, registry
from swarm_mcp.agents.harness.outcome import Ending
from swarm_mcp.agents.harness.query import McpServer, Query
from swarm_mcp.agents.loop import session, tools


def use(name: str, folder: Path, **given: object) -> tuple[str, bool]:
    return tools.change_or_read(name, given, str(folder))


@requirement("B-11")
def test_reading(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    assert use("read_file", tmp_path, path="a.txt", start_line=2) == ("     2\ttwo\n     3\tthree", False)
    assert use("read_file", tmp_path, path="a.txt", start_line=2, end_line=2) == ("     2\ttwo", False)
    assert use("read_file", tmp_path, path="a.txt", start_line=9) == (f"error: {tmp_path}/a.txt has 3 lines", True)
    (tmp_path / "b").write_bytes(b"\0\1")
    (tmp_path / "d").mkdir()
    for path, why in (("b", "is no text"), ("d", "is a folder"), ("no", "not found"), ("", "name of a file")):
        text, error = use("read_file", tmp_path, path=path)
        assert error and why in text
    assert use("list_dir", tmp_path) == ("a.txt\nb\nd/", False)
    assert use("list_dir", tmp_path, path="d") == ("(empty)", False)


@requirement("B-11")
def test_replacing(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"x = 1\r\ny = '\xff'\r\nx = 2\r\n")
    assert use("str_replace", tmp_path, path="a.py", old_str="y =", new_str="z =")[1] is False
    assert path.read_bytes() == b"x = 1\r\nz = '\xff'\r\nx = 2\r\n", "bytes that are no text stay"
    for old, why in (("x =", "occurs 2 times"), ("q", "not found"), ("", "must not be empty")):
        text, error = use("str_replace", tmp_path, path="a.py", old_str=old, new_str="")
        assert error and why in text
    before = path.read_bytes()
    edits = [{"old_str": "x = 1", "new_str": "a"}, {"old_str": "nowhere", "new_str": "b"}]
    text, error = use("edit_file", tmp_path, path="a.py", edits=edits)
    assert error and "edit 2" in text and path.read_bytes() == before
    edits[1]["old_str"] = "x = 2"
    assert use("edit_file", tmp_path, path="a.py", edits=edits)[1] is False
    assert path.read_bytes() == b"a\r\nz = '\xff'\r\nb\r\n"


@requirement("B-11")
def test_writing(tmp_path: Path) -> None:
    assert use("write_file", tmp_path, path="x/y", content="é") == (f"wrote 2 bytes to {tmp_path}/x/y", False)
    (tmp_path / "link").symlink_to(tmp_path / "x" / "y")
    assert use("write_file", tmp_path, path="link", content="new")[1] is False
    assert (tmp_path / "x" / "y").read_text() == "new" and (tmp_path / "link").is_symlink()
    for wrong in ({"path": 3, "content": "x"}, {"path": "x", "content": "x"}, {"path": "z", "content": None}):
        text, error = use("write_file", tmp_path, **wrong)
        assert error and text.startswith("error: ")


@requirement("B-11")
def test_commands(model: Model, project: Path) -> None:
    calls = [
        ("bash", {"command": "echo out; echo err >&2; exit 3"}),
        ("bash", {"command": "pwd"}),
        ("bash", {"command": "true"}),
        ("bash", {"command": "echo begun; sleep 60", "timeout": 0.3}),
        ("bash", {"command": "(sleep 60 &) ; echo $! gone on"}),
        ("bash", {"command": ["ls"]}),
        ("bash", {}),
        ("bash", {"command": "head -c 300000 /dev/zero | tr '\\0' x"}),
    ]
    model.script = [Say("", tuple(calls)), Say("Done.")]
    ran = loop("go", "--json")
    assert ran.code == 0
    failed = [event["is_error"] for event in ran.events if event["type"] == "tool_end"]
    assert failed == [True, False, False, True, False, True, True, False]
    told = model.told()
    assert told[:4] == [
        "out\nerr\n[exit code 3]", str(project), "(no output)", "begun\n[ended after 0.3 s: that was its time limit]",
    ]  # fmt: skip
    assert told[4].endswith("gone on") and "must be a text" in told[5] and "needs command" in told[6]
    assert len(told[7]) < 110_000 and "characters left out" in told[7]


@requirement("D-18")
def test_answers_by_schema(model: Model) -> None:
    import json
    import os

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    Path(os.environ["SWARM_LOOP_CONFIG"]).write_text(json.dumps({"mcp_servers": {}, "output_schema": schema}))
    model.script = [Say("Seven."), Say('{"n": "seven"}'), Say('```json\n{"n": 7}\n```')]
    ran = loop("how many?", "--json")
    assert ran.events[-1]["structured"] == {"n": 7} and len(model.asked) == 3
    assert "no JSON" in model.asked[1]["messages"][-1]["content"][0]["text"]
    assert "required" in model.system(0)


BLOCKS = st.lists(
    st.one_of(
        st.builds(lambda text: session.Block("text", text), st.text().filter(str.strip)),
        st.builds(
            lambda name, given: session.Block("tool_call", call=session.model_call("c1", name, given)),
            st.text(),
            st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.booleans(), st.none())),
        ),
        st.builds(lambda text: session.Block("thinking", text, "c2ln"), st.text()),
    ),
    max_size=5,
)


@settings(max_examples=50)
@given(BLOCKS)
@requirement("B-20")
def test_what_is_written_is_read_again(blocks: list[session.Block]) -> None:
    text = session.render({"role": "assistant", "seq": "0001"}, session.written(blocks))
    found = session.blocks_of(session.parse(text))
    assert [block.call for block in found if block.call] == [block.call for block in blocks if block.call]
    thoughts = [(block.text, block.signature) for block in blocks if block.kind == "thinking"]
    assert [(block.text, block.signature) for block in found if block.kind == "thinking"] == thoughts


@settings(max_examples=50)
@given(st.text())
def test_any_text_is_a_message(text: str) -> None:
    message = session.parse(text)
    session.blocks_of(message)
    session.turns([message])
    head = {"role": "tool_result", "call_id": "x"}
    assert session.parse(session.render(head, text)).text == text


@pytest.mark.parametrize("given", [None, [], "", "{", "[1]", 7, '{"a": 1}'])
def test_arguments_of_any_kind(given: object) -> None:
    assert isinstance(session.model_call("c", "n", given).input, dict)


adapter = registry.get("loop")
SECRET = "hunter2-hunter2-hunter2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "private"
    made.mkdir()
    return made


@requirement("A-10")
def test_launch(folder: Path, tmp_path: Path) -> None:
    servers = {
        "swarm": McpServer("python3", ("-m", "x"), {"API_TOKEN": SECRET}, "/tmp"),
        "far": McpServer(url="http://127.0.0.1:1/mcp", headers={"Authorization": f"Bearer {SECRET}"}),
    }
    query = Query(
        "do it", str(tmp_path), mode="read-only", model="openai/gpt-x", effort="max", system_prompt="Be.",
        append_system_prompt="More.", resume_session_id="20261122-102913-1234", fork_session=True, max_turns=3,
        output_schema={"type": "object"}, mcp_servers=servers, skills=("/s/one",), additional_args=("--scope", "x"),
    )  # fmt: skip
    launch = adapter.launch(query, folder)
    assert launch.argv[-7:] == ("loop", "agent", "--json", "--resume", "20261122-102913-1234", "--scope", "x")
    assert launch.stdin == "do it" and SECRET not in " ".join(launch.argv)
    wanted = {"HARNESS_MODEL": "gpt-x", "HARNESS_PROVIDER": "openai", "HARNESS_THINKING": "max"}
    assert wanted.items() <= launch.env.items()
    path = Path(launch.env["SWARM_LOOP_CONFIG"])
    assert path.parent == folder and path.stat().st_mode & 0o777 == 0o600
    config = json.loads(path.read_text())
    assert config["mode"] == "read-only" and config["fork"] is True and config["max_turns"] == 3
    assert config["mcp_servers"]["far"]["headers"] == {"Authorization": f"Bearer {SECRET}"}
    assert SECRET not in json.dumps(dict(launch.env))


def test_the_variable_that_means_two_things(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``HARNESS_PROVIDER`` names a harness to swarm, and a model's provider to the loop."""
    for value, dropped in (("loop", True), ("openai", False)):
        monkeypatch.setenv("HARNESS_PROVIDER", value)
        drop = adapter.launch(Query("x", str(tmp_path)), folder).drop
        assert ("HARNESS_PROVIDER" in drop) is dropped


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists)


@limited(max_examples=60)
@given(st.text() | JSON.map(json.dumps) | st.dictionaries(st.text(), st.text() | st.integers()).map(json.dumps))
def test_no_line_is_too_strange(line: str) -> None:
    for event in adapter.parse(line, {}):
        json.dumps(event.to_dict())
        assert event.kind in events.KINDS


def test_events_are_taken_as_they_are() -> None:
    line = json.dumps(events.tool_end("c", "bash", "x", True)._replace(at=3.0).to_dict())
    assert adapter.parse(line, {}) == [events.tool_end("c", "bash", "x", True)._replace(at=3.0)]
    assert adapter.parse('{"type": "news", "a": 1}', {}) == [events.custom("loop.news", {"a": 1})]


def test_errors() -> None:
    failed = {"is_error": True, "error_category": "auth_failed", "output": None}
    told = ({"message": "no key", "category": "auth_failed"},)
    assert adapter.error_of(Ending(4, 0, failed, told)) == ("auth_failed", "no key")
    assert adapter.error_of(Ending(0, 0, {"is_error": False, "output": "x"})) is None
    assert adapter.error_of(Ending(1, 0, None, (), "Traceback"))[0] == "process_crashed"
    lost = {"is_error": True, "error_category": "session_not_found"}
    assert adapter.unknown_session(Ending(1, 0, lost, ({"message": "session 'x' not found", "category": ""},)))


@requirement("A-57")
def test_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_API_URL", "OPENAI_BASE_URL",
                 "HARNESS_PROVIDER"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)

    def codes(**config: object) -> list[str]:
        return [check.code for check in adapter.checks(config)]

    assert codes() == ["loop_no_provider"]
    assert codes(model="anthropic/x") == ["loop_key_missing"]
    assert codes(env={"OPENAI_API_URL": "http://127.0.0.1:1"}) == ["loop_provider"]
    assert codes(env={"HARNESS_PROVIDER": "own"}) == ["loop_provider_unseen"]
    assert "Use when" in adapter.doc and "Do not use when" in adapter.doc
