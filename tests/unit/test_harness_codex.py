"""The harness codex without Codex: recorded streams, argv, what never may be in argv, trust, prompts, looks."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_mcp.bundle import plugin_source
from swarm_mcp.errors import Refused
from swarm_mcp.harness import events, plugin, registry, toml_words
from swarm_mcp.harness.adapters import codex_errors, codex_hooks, codex_models, codex_prompt, codex_record
from swarm_mcp.harness.adapters.codex_servers import configured, rendered
from swarm_mcp.harness.outcome import Ending
from swarm_mcp.harness.query import HarnessQuery, McpServer
from swarm_mcp.harness.replay import replay
from swarm_mcp.harness.usage import cost_of, priced

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "codex"
CASES = sorted(path.name[: -len(".jsonl")] for path in GOLDEN.glob("*.jsonl"))
EXPECTED = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))
SESSION = "01a202bc-06da-7911-be41-5931d6aa0af3"
SECRET = "hunter2-hunter2-hunter2"

codex = registry.get("codex")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No codex on PATH, and the hooks of the checkout."""
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.setattr(plugin, "plugin_folder", plugin_source)


def replayed(case: str) -> tuple[list[events.Event], Ending]:
    lines = (GOLDEN / f"{case}.jsonl").read_text(encoding="utf-8").splitlines()
    meta = json.loads((GOLDEN / f"{case}.meta.json").read_text(encoding="utf-8"))
    state: dict = {}
    found = [event for line in lines for event in codex.parse(line, state)]
    found += [event for line in meta["stderr"].splitlines() for event in codex.parse_stderr(line, state)]
    found += codex.finish(state)
    results = [event.data for event in found if event.kind == events.RESULT]
    errors = tuple(event.data for event in found if event.kind == events.ERROR)
    code = meta["rc"]
    return found, Ending(code, max(0, -code), results[-1] if results else None, errors, meta["stderr"])


def launched(tmp_path: Path, prompt: str = "hello", **wanted: object):
    folder = tmp_path / "run"
    folder.mkdir(exist_ok=True)
    return codex.launch(HarnessQuery(prompt, str(tmp_path), **wanted), folder)


def settings(argv: tuple[str, ...]) -> dict:
    """What the ``-c`` values say, read as TOML."""
    toml = reader()
    found: dict = {}
    for before, value in zip(argv, argv[1:], strict=False):
        if before == "-c":
            path, _, text = value.partition("=")
            *parents, last = path.split(".")
            table = found
            for name in parents:
                table = table.setdefault(name, {})
            table.update({last: toml.loads(f"x = {text}")["x"]})
    return found


def reader():
    if sys.version_info >= (3, 11):
        import tomllib

        return tomllib
    return pytest.importorskip("tomli", reason="Python 3.10 has no TOML reader of its own: pip install tomli")


# --------------------------------------------------------------------------------------------- the stream


@pytest.mark.parametrize("case", CASES)
def test_recorded_streams_become_the_expected_events(case: str) -> None:
    found, ending = replayed(case)
    kinds = [event.kind + (f":{event.data['name']}" if event.kind == "custom" else "") for event in found]
    shown = {
        "events": kinds,
        "tools": [[event.data["tool_name"], event.data["is_error"]] for event in found if event.kind == "tool_end"],
        "output": (ending.result or {}).get("output"),
        "input_tokens": ((ending.result or {}).get("cost") or {}).get("input_tokens"),
        "error": list(codex.error_of(ending) or []),
        "unknown_session": codex.unknown_session(ending),
    }
    assert shown == EXPECTED[case]
    for event in found:
        assert json.loads(json.dumps(event.to_dict()))["type"] == event.kind


def test_every_recorded_stream_is_expected() -> None:
    assert sorted(EXPECTED) == CASES and len(CASES) == 35


@pytest.mark.parametrize("case", CASES)
def test_recorded_runs_come_to_one_result(case: str) -> None:
    meta = json.loads((GOLDEN / f"{case}.meta.json").read_text(encoding="utf-8"))
    found = replay(codex, (GOLDEN / f"{case}.jsonl").read_bytes(), meta["stderr"].encode(), meta["rc"])
    kinds = [event.kind for event in found.events]
    assert kinds.count(events.RESULT) == 1 and kinds[-1] == events.RESULT
    assert kinds.count(events.TOOL_START) == kinds.count(events.TOOL_END)
    assert kinds.count(events.SESSION_INIT) <= 1
    code = (EXPECTED[case]["error"] or [None])[0]
    assert (found.result.is_error, found.result.error_category) == (code is not None, code)
    assert bool(found.result.error_message) is found.result.is_error


LINES = [line for case in CASES for line in (GOLDEN / f"{case}.jsonl").read_text(encoding="utf-8").splitlines()]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
TYPES = ("thread.started", "turn.completed", "turn.failed", "error", "item.started", "item.updated", "item.completed")
ITEMS = ("command_execution", "file_change", "mcp_tool_call", "web_search", "agent_message", "todo_list", "error", "x")
FIELDS = ("message", "usage", "error", "thread_id", "text", "changes", "result", "arguments", "id", "status", "query")


@st.composite
def mangled(draw: st.DrawFn) -> str:
    line = draw(st.sampled_from(LINES))
    at, to = sorted((draw(st.integers(0, len(line))), draw(st.integers(0, len(line)))))
    return line[:at] + draw(st.text(max_size=4)) + line[to:]


@st.composite
def strange(draw: st.DrawFn) -> str:
    item = {"type": draw(st.sampled_from(ITEMS)), **draw(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6))}
    native = {"item": item, **draw(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4))}
    return json.dumps({**native, "type": draw(st.sampled_from(TYPES))})


@given(st.lists(st.sampled_from(LINES) | mangled() | strange() | st.text(), max_size=12))
def test_no_line_makes_the_parser_raise(lines: list[str]) -> None:
    state: dict = {}
    found = [event for line in lines for event in (*codex.parse(line, state), *codex.parse_stderr(line, state))]
    begun: set = set()
    whole = replay(codex, "\n".join(lines).encode("utf-8", "replace"))
    assert [event.kind for event in whole.events].count(events.RESULT) == 1
    for event in found + codex.finish(state):
        assert event.kind in events.KINDS
        json.dumps(event.to_dict())
        if event.kind == events.TOOL_START:
            begun.add(event.data["tool_call_id"])
        if event.kind == events.TOOL_END:
            assert event.data["tool_call_id"] in begun
    assert sum(event.kind == events.SESSION_INIT for event in found) <= 1


def test_what_is_new_becomes_custom() -> None:
    (found,) = codex.parse('{"type": "thread.renamed", "name": "x"}', {})
    assert found.data == {"name": "codex.thread.renamed", "data": {"type": "thread.renamed", "name": "x"}}
    (item,) = codex.parse('{"type": "item.completed", "item": {"id": "1", "type": "hologram"}}', {})
    assert item.data["name"] == "codex.hologram"


def test_a_denial_is_read_from_standard_error() -> None:
    line = (
        "2026-11-22T10:17:38Z ERROR codex_core::tools::router: error=Command blocked by PreToolUse hook: swarm lock "
        "blocked apply_patch for /x/a. Command: b.md: held by lead. Command: *** Begin Patch"
    )
    (found,) = codex.parse_stderr(line, {})
    assert found.data["name"] == "lock_denied"
    assert found.data["data"]["message"] == "swarm lock blocked apply_patch for /x/a. Command: b.md: held by lead"
    (other,) = codex.parse_stderr("x: Tool call blocked by PreToolUse hook: not on Fridays. Tool: mcp__a__b", {})
    assert (other.data["name"], other.data["data"]["call"]) == ("codex.hook_denied", "mcp__a__b")
    assert codex.parse_stderr("ERROR something else", {}) == []


# ------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Codex ran out of room in the model's context window. Start a new thread", "context_overflow"),
        ("Your access token could not be refreshed. Please log out and sign in again.", "auth_failed"),
        ("unexpected status 503 Service Unavailable", "rate_limited"),
        ("Error: thread/fork: thread/fork failed: no rollout found for thread id x (code -32600)", "session_not_found"),
        ("something quite different", "unknown"),
    ],
)
def test_messages_have_codes(text: str, code: str) -> None:
    assert codex_errors.category_of(text) == code


def test_only_a_completed_turn_is_a_success() -> None:
    good = {"output": "x", "is_error": False}
    assert codex.error_of(Ending(0, result=good)) is None
    assert codex.error_of(Ending(1, result=good)) == ("process_crashed", "codex exited 1")
    assert codex.error_of(Ending(0))[0] == "unknown"
    assert codex.error_of(Ending(-9, 9)) == ("process_crashed", "codex was ended by signal 9")
    # An error that was got over is no failure.
    assert codex.error_of(Ending(0, result=good, errors=({"message": "429"},))) is None


def test_when_to_try_again() -> None:
    now = time.mktime((2026, 11, 22, 15, 0, 0, 0, 0, -1))
    assert codex_errors.not_before("or try again at Nov 23rd, 2026 3:30 PM.", now) == now + 86400 + 1800
    assert codex_errors.not_before("try again at 4:00 PM.", now) == now + 3600
    assert codex_errors.not_before("try again at 2:00 PM.", now) == now + 23 * 3600
    assert codex_errors.not_before("Please try again in 1 day 2 hours 5 minutes.", now) == now + 93900
    assert codex_errors.not_before("try again in 1.5s", now) == now + 1.5
    assert codex_errors.not_before("try again later", now) is None
    state: dict = {}
    (line,) = [text for text in (GOLDEN / "quota.jsonl").read_text().splitlines() if "turn.failed" in text]
    assert codex.parse(line, state)[-1].data["retry_not_before"] == time.mktime((2100, 1, 1, 0, 0, 0, 0, 0, -1))


# --------------------------------------------------------------------------------------------------- argv


def test_argv_says_everything_before_resume(tmp_path: Path) -> None:
    launch = launched(tmp_path, resume_session_id=SESSION, additional_directories=("/a", "/b"), model="sol")
    argv = launch.argv
    assert argv[:9] == ("codex", "exec", "--json", "--skip-git-repo-check", "-s", "workspace-write", "-C",
                        str(tmp_path), "--add-dir")  # fmt: skip
    assert argv[9:14] == ("/a", "--add-dir", "/b", "-m", "gpt-6.1-sol")
    assert argv[-3:] == ("resume", SESSION, "-") and launch.stdin == "hello"
    fork = launched(tmp_path, resume_session_id=SESSION, fork_session=True).argv
    assert fork[-3:] == ("fork", SESSION, "-")
    assert launched(tmp_path, additional_args=("--ephemeral",)).argv[-2:] == ("--ephemeral", "-")
    assert launched(tmp_path, command=("npx", "codex")).argv[:3] == ("npx", "codex", "exec")


@pytest.mark.parametrize("name", ["not-a-session", "--last", "../x", SESSION + "x", SESSION.upper()])
def test_a_name_that_is_no_id_never_gets_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match="is no session id of codex"):
        launched(tmp_path, resume_session_id=name)


@pytest.mark.parametrize(
    ("mode", "sandbox"), [("read-only", "read-only"), ("edit", "workspace-write"), ("yolo", "danger-full-access")]
)
def test_modes_are_sandboxes_and_nothing_is_ever_asked(tmp_path: Path, mode: str, sandbox: str) -> None:
    argv = launched(tmp_path, mode=mode).argv
    assert argv[argv.index("-s") + 1] == sandbox
    assert settings(argv)["approval_policy"] == "never"
    assert not [word for word in argv if word.startswith("--dangerously")]


def test_settings_for_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_DEFAULT_MODEL", "luna")
    schema = {"type": "object", "additionalProperties": False}
    launch = launched(tmp_path, effort="max", system_prompt="Only\nthis", append_system_prompt='"quoted"\\\n\tü',
                      output_schema=schema)  # fmt: skip
    said = settings(launch.argv)
    assert launch.argv[launch.argv.index("-m") + 1] == "gpt-6-luna"
    assert said["model_reasoning_effort"] == "max" and said["developer_instructions"] == '"quoted"\\\n\tü'
    assert Path(said["model_instructions_file"]).read_text() == "Only\nthis"
    assert json.loads(Path(launch.argv[launch.argv.index("--output-schema") + 1]).read_text()) == schema
    assert launch.argv[launch.argv.index("-o") + 1] == str(tmp_path / "run" / "answer.json")
    assert launch.drop == ("RUST_LOG",)
    assert settings(launched(tmp_path, effort="max", model="gpt-5.5").argv)["model_reasoning_effort"] == "xhigh"


def test_nothing_secret_is_in_argv(tmp_path: Path) -> None:
    servers = {
        "db": McpServer("run-db", ("--x",), {"DB_PASSWORD": SECRET, "PATH": "/elsewhere"}, "/srv"),
        "web": McpServer(url="https://x/mcp", headers={"Authorization": f"Bearer {SECRET}", "X-Agent-ID": "a-1"}),
    }
    launch = launched(tmp_path, prompt=f"the key is {SECRET}", mcp_servers=servers)
    assert SECRET not in "\0".join(launch.argv) and "/elsewhere" not in "\0".join(launch.argv)
    found = settings(launch.argv)["mcp_servers"]
    db, web = found["db"], found["web"]
    assert launch.env[web["bearer_token_env_var"]] == SECRET
    assert {header: launch.env[name] for header, name in web["env_http_headers"].items()} == {"X-Agent-ID": "a-1"}
    assert [launch.env[name] for name in db["env_vars"]] == [SECRET, "/elsewhere"]
    assert (db["command"], db["cwd"], db["args"][2:]) == ("/bin/sh", "/srv", ["run-db", "--x"])
    # What is secret is called so, and kept from the agent's own commands; a folder's name is not.
    secret, path = db["env_vars"]
    assert secret.endswith("_SECRET") and path.endswith("_VALUE")
    assert set(settings(launch.argv)["shell_environment_policy"]["set"]) == {secret, web["bearer_token_env_var"]}


def test_the_shell_gives_a_server_its_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess

    monkeypatch.setenv("PATH", os.defpath)
    odd = "a 'b' \"c\" $HOME `x` \\ \n end"
    servers = rendered({"s": McpServer("/usr/bin/env", ("-0",), {"ONE": odd, "TWO_KEY": "2"})}, True, {})
    table = reader().loads(servers.overrides[0])["mcp_servers"]["s"]
    done = subprocess.run([table["command"], *table["args"]], env=servers.env, capture_output=True, check=True)
    found = dict(entry.split("=", 1) for entry in done.stdout.decode().split("\0") if entry)
    assert (found["ONE"], found["TWO_KEY"]) == (odd, "2")
    assert not [name for name in found if name.startswith("SWARM_RUN_")]


def test_servers_are_approved_and_named_as_the_run_needs(tmp_path: Path) -> None:
    servers = {"swarm": McpServer("a"), "odd name.é": McpServer("b"), "web": McpServer(url="http://x")}
    taken = {"web": "command", "swarm": "command"}
    tables = reader().loads(rendered(servers, False, taken).overrides[0])["mcp_servers"]
    assert list(tables) == ["swarm", "odd_name__", "web_run"]
    assert [table.get("default_tools_approval_mode") for table in tables.values()] == ["approve", None, None]
    tables = reader().loads(rendered(servers, True, {}).overrides[0])["mcp_servers"]
    assert {table["default_tools_approval_mode"] for table in tables.values()} == {"approve"}
    with pytest.raises(Refused, match="cannot have a variable called 'A-B'"):
        rendered({"s": McpServer("a", env={"A-B": "x"})}, True, {})


def test_names_in_the_users_settings_are_seen(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[mcp_servers.a]\ncommand = "x"\n[mcp_servers."b c"]\nurl = "y"\n[mcp_servers.b.env]\nurl = "z"\n')
    assert configured(str(file), str(tmp_path / "none")) == {"a": "command", "b c": "url"}


# -------------------------------------------------------------------------------------------------- hooks


def test_hashes_are_what_codex_said_they_are() -> None:
    """Recorded from `hooks/list` of codex 0.169."""
    patch = {"type": "command", "command": 'python3 "/a b/é.py"; exit 0', "timeout": 5}
    start = {"type": "command", "command": "true", "timeout": 10}
    before = {"matcher": "^(apply_patch|Bash)$", "hooks": [patch]}
    hooks = {"PreToolUse": [before], "SessionStart": [{"hooks": [start]}]}
    source = "/<session-flags>/config.toml"
    assert codex_hooks.hashes(hooks) == {
        f"{source}:pre_tool_use:0:0": "sha256:9caa663907994a7885a99d97c3a6a7a03b1aba9e0b6295121d47f5ce46d8b7a1",
        f"{source}:session_start:0:0": "sha256:edffedc1093fd0f2494bf54a767de01445ade4b5411eee0867184ff7aa065d48",
    }


def test_our_hooks_and_only_ours_are_trusted(tmp_path: Path) -> None:
    said = settings(launched(tmp_path).argv)
    hooks = said["hooks"]
    state = hooks.pop("state")
    assert set(hooks) == set(json.loads((plugin_source() / "integrations/codex/hooks.json").read_text())["hooks"])
    assert {key: entry["trusted_hash"] for key, entry in state.items()} == codex_hooks.hashes(hooks)
    assert said["plugins"] == {"swarm@swarm": {"enabled": False}} and said["features"] == {"hooks": True}
    command = hooks["PreToolUse"][0]["hooks"][0]["command"]
    assert str(plugin_source()) in command and "PLUGIN_ROOT" not in command


def test_a_folder_with_odd_signs_stays_one_word(tmp_path: Path) -> None:
    import subprocess

    folder = tmp_path / 'a "b" $c `d`'
    (folder / "integrations/codex").mkdir(parents=True)
    hook = {"type": "command", "command": f'echo "{codex_hooks.ROOT}/y"', "timeout": 5}
    (folder / "integrations/codex/hooks.json").write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))
    command = codex_hooks.wired(folder)["Stop"][0]["hooks"][0]["command"]
    said = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True).stdout
    assert said == f"{folder}/y\n"


STAND_IN = """#!{python} -S
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    hooks = [{{"key": key, "currentHash": "sha256:other"}} for key in {keys}]
    if "id" in asked:
        print(json.dumps({{"id": asked["id"], "result": {{"data": [{{"hooks": hooks}}]}}}}), flush=True)
        open({log!r}, "a").write(asked["method"] + "\\n")
"""


def test_each_build_is_asked_once(tmp_path: Path) -> None:
    hooks = codex_hooks.wired(plugin_source())
    ours, log = codex_hooks.hashes(hooks), tmp_path / "log"
    log.touch()
    program = tmp_path / "codex"

    def write(keys: list[str]) -> None:
        program.write_text(STAND_IN.format(python=sys.executable, keys=keys, log=str(log)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    write(list(ours))
    assert set(codex_hooks.trust_for(str(program), hooks).values()) == {"sha256:other"}
    assert set(codex_hooks.trust_for(str(program), hooks).values()) == {"sha256:other"}
    assert log.read_text().split() == ["initialize", "hooks/list"]
    write([])  # another build, which does not answer as it should
    assert codex_hooks.trust_for(str(program), hooks) == ours
    assert codex_hooks.trust_for(str(tmp_path / "none"), hooks) == ours


# -------------------------------------------------------------------------------------------------- skills


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    user = ".codex/skills"
    for place, name, text in (("run", "tidy", "TIDY"), (user, "mine", "MINE"), (user, "tidy", "NO")):
        folder = tmp_path / place / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: How to {name}\n---\n{text}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("prompt", "begins", "notes"),
    [
        ("/tidy the desk", "---\nname: tidy", 0),
        ("$tidy the desk", "---\nname: tidy", 0),
        ("/mine now", "---\nname: mine", 0),
        ("$mine now", "$mine now", 0),  # Codex knows it
        ("/tmp is full", "/tmp is full", 1),
        ("/usr/bin is full", "/usr/bin is full", 0),
        ("look at /tidy", "look at /tidy", 0),
        ("/../tidy x", "/../tidy x", 0),
    ],
)
def test_a_prompt_that_begins_with_a_skill_has_its_text(skills: Path, prompt: str, begins: str, notes: int) -> None:
    found = codex_prompt.resolved(prompt, (str(skills / "run/tidy"),), [str(skills / ".codex/skills")])
    assert found.text.startswith(begins) and len(found.notes) == notes
    if begins.startswith("---"):
        assert found.text.endswith(f"User request: {prompt.partition(' ')[2]}") and "NO" not in found.text


def test_the_model_is_told_of_skills_that_codex_does_not_find(skills: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(skills / "nothing"))
    before = sorted(str(path) for path in skills.rglob("*"))
    launch = launched(skills, append_system_prompt="Mark", skills=(str(skills / "run/tidy"),))
    said = settings(launch.argv)["developer_instructions"]
    assert said.startswith("Mark\n\n") and f"- tidy: How to tidy (file: {skills}/run/tidy/SKILL.md)" in said
    assert "TIDY" not in said
    monkeypatch.setenv("CODEX_HOME", str(skills / ".codex"))
    assert "developer_instructions" not in settings(launched(skills, skills=(str(skills / "run/tidy"),)).argv)
    assert sorted(str(path) for path in skills.rglob("*")) == before
    assert codex.format_command("tidy") == "/tidy"
    assert "no skill called 'nope'" in launched(skills, prompt="/nope x").notes[0]


# ------------------------------------------------------------------------------------- record and costs


def record(home: Path, cwd: str, *lines: dict) -> Path:
    path = home / "sessions/2026/11/22" / f"rollout-2026-11-22T10-10-06-{SESSION}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    first = {"type": "session_meta", "payload": {"id": SESSION, "cwd": cwd}}
    path.write_text("".join(json.dumps(line) + "\n" for line in (first, *lines)) + "torn {", encoding="utf-8")
    return path


def count(total: int) -> dict:
    info = {"last_token_usage": {"total_tokens": total}, "model_context_window": 258400}
    return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}


def test_the_record_tells_model_and_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "wrong"))
    home = tmp_path / "home"
    empty = {"type": "event_msg", "payload": {"type": "token_count", "info": None}}
    record(home, "/x", {"type": "turn_context", "payload": {"model": "gpt-6-sol"}}, count(55), empty, count(25840))
    query = HarnessQuery("x", "/x", env={"CODEX_HOME": str(home)}, output_schema={})
    state: dict = {"query": query, "folder": str(tmp_path)}
    usage = {"input_tokens": 1_000_000, "cached_input_tokens": 400_000, "cache_write_input_tokens": 100_000,
             "output_tokens": 10_000}  # fmt: skip
    for native in ({"type": "thread.started", "thread_id": SESSION}, {"type": "turn.completed", "usage": usage}):
        codex.parse(json.dumps(native), state)
    (tmp_path / "answer.json").write_text('{"a": 1}')
    context, result = codex.finish(state)
    assert context.data == {"context_used_tokens": 25840, "context_total_tokens": 258400, "context_percent": 10.0,
                            "output_tokens": 10_000}  # fmt: skip
    assert result.data["structured"] == {"a": 1} and result.data["model"] == "gpt-6-sol"
    cost = cost_of(result.data["cost"])
    assert (cost.input_tokens, cost.cache_read_tokens, cost.cache_write_tokens) == (500_000, 400_000, 100_000)
    # 0.5 M at $2, 0.4 M at $0.20, 0.1 M at $2.50, 0.01 M at $10.
    assert priced(cost, codex.prices, None).total_cost_usd == pytest.approx(1.0 + 0.08 + 0.25 + 0.10)
    assert priced(cost._replace(model="gpt-99"), codex.prices, None).total_cost_usd is None


def test_only_a_session_of_this_folder_can_be_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "ho[m]e"))
    record(tmp_path / "ho[m]e", str(tmp_path))
    (tmp_path / "link").symlink_to(tmp_path)
    assert codex.can_resume(SESSION, str(tmp_path)) and codex.can_resume(SESSION, str(tmp_path / "link"))
    assert codex.can_resume(SESSION, "")
    for session, cwd in ((SESSION, "/"), (SESSION[:-1] + "4", ""), ("", ""), ("*", ""), ("--last", ""), ("../x", "")):
        assert codex.can_resume(session, cwd) is False


def test_a_record_that_is_no_record_tells_nothing(tmp_path: Path) -> None:
    path = record(tmp_path, "/x", {"type": "turn_context", "payload": []}, {"type": "token_count"})
    assert codex_record.told(str(path)) == codex_record.Told()
    path.write_text('{"type": "event_msg"')
    assert codex_record.folder_of(str(path)) is None


def test_models_and_prices_agree() -> None:
    assert set(codex.models.values()) <= set(codex.prices) == set(codex_models.WINDOWS)
    for price in codex.prices.values():
        assert time.strptime(price.dated, "%Y-%m-%d") and price.cached < price.input < price.output
    listed = {entry["name"]: entry for entry in codex.listed_models()}  # no codex on PATH
    assert listed["gpt-6.1-sol"] == {"name": "gpt-6.1-sol", "short": "sol", "context_tokens": 272_000}


# ------------------------------------------------------------------------------------------------- checks


def test_looks_change_nothing_and_never_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "codex"
    home.mkdir()
    monkeypatch.setenv("CODEX_HOME", str(home))
    for name in ("OPENAI_API_KEY", "CODEX_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def codes(**config: object) -> dict[str, str]:
        return {check.code: check.level for check in codex.checks({"cwd": str(tmp_path), **config})}

    assert codes() == {"codex_signed_out": "warn", "codex_plugin_missing": "info"}
    (home / "config.toml").write_text('[model_providers.x]\nenv_key = "X_KEY"\n[mcp_servers.swarm]\nurl = "http://x"\n')
    before = sorted(os.walk(tmp_path))
    found = codes(env={"X_KEY": "k"})
    assert found["codex_provider_key"] == "info" and found["codex_server_renamed"] == "warn"
    assert "codex_key" in codes(env={"CODEX_API_KEY": "k"})
    assert sorted(os.walk(tmp_path)) == before
    (home / "auth.json").write_text("{}")
    assert "codex_signed_in" in codes(command="no-such-codex")
    assert codes(env={"CODEX_HOME": str(tmp_path / "none")}) == {"codex_home_missing": "error"}


def test_hooks_that_would_not_run_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    program = tmp_path / "codex"
    some = [f"{codex_hooks.SOURCE}:stop:0:0"]
    program.write_text(STAND_IN.format(python=sys.executable, keys=some, log="/dev/null"))
    program.chmod(0o755)
    found = {check.code: check for check in codex.checks({"cwd": str(tmp_path), "command": [str(program)]})}
    assert found["codex_hooks_missing"].level == "warn" and found["codex_hooks_missing"].hint
    program.write_text(f"#!{sys.executable} -S\n")
    found = {check.code: check for check in codex.checks({"cwd": str(tmp_path), "command": [str(program)]})}
    assert found["codex_hooks_unknown"].level == "warn"


def test_the_doc_says_when() -> None:
    assert "\nUse when " in codex.doc and "\nDo not use when " in codex.doc


# --------------------------------------------------------------------------------------------------- TOML


WRITABLE = st.recursive(
    st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.text(), WRITABLE)
def test_what_is_written_as_toml_is_read_back(name: str, value: object) -> None:
    toml = reader()
    line = f"{toml_words.key(name)} = {toml_words.word(value)}"
    assert "\n" not in line and "\0" not in line
    assert toml.loads(line) == {name: value}


HALVES = st.characters(min_codepoint=0xD700, max_codepoint=0xE100, categories=("Cs", "Lo", "Co"))


@given(st.text(alphabet=HALVES, min_size=1))
def test_halves_of_characters_become_something_that_can_be_written(value: str) -> None:
    read = reader().loads(f"x = {toml_words.word(value)}")["x"]
    assert len(read) == len(value) and read.encode()


@pytest.mark.parametrize("value", [None, object(), {"a": None}, 1 << 63, b"x"])
def test_what_cannot_be_written_is_refused(value: object) -> None:
    with pytest.raises(Refused):
        toml_words.word(value)


@pytest.mark.parametrize("path", ["", "a.", "a b", 'a."b.c"', "é"])
def test_a_setting_has_a_plain_name(path: str) -> None:
    with pytest.raises(Refused):
        toml_words.override(path, 1)
