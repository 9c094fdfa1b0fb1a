"""The harness `claude`: recorded streams, flags and private files, error codes, checks. No client is started."""

import json
import stat
import time
from pathlib import Path

import pytest
from support.files import folder_at, text_at
from support.recordings import Recordings, data_of, ended
from support.requirement import requirement

from swarm_mcp.agents.harness.adapter import PERMISSIONS
from swarm_mcp.agents.harness.events import custom
from swarm_mcp.agents.harness.outcome import cost_of, priced
from swarm_mcp.agents.harness.query import READ_ONLY, YOLO, McpServer, Query
from swarm_mcp.agents.harness.registry import status_of
from swarm_mcp.errors import Refused

RECORDED = Recordings("claude")
CLAUDE = RECORDED.adapter
SESSION = "0b0e7a52-4f0f-4e3b-9a53-1f5b5d1c2a10"
SECRET = "tok-4f9d2c77aa31e05b66"


def test_how_long_the_api_wants_to_be_left_alone() -> None:
    """Retry-After was 30: the client waits so long and a random part more. Of its own rule nothing is told."""
    events = RECORDED.parsed(RECORDED.lines("retry_after"))
    (again,) = [data["data"] for data in data_of(events, "custom") if data["name"] == "claude.api_retry"]
    for told in (again, data_of(events, "result")[-1]):
        assert 25 < told["retry_not_before"] - time.time() < 38
    assert again["category"] == "rate_limited" and "429" in again["message"]
    for case in ("rate_limit", "overloaded", "unreachable"):
        events = RECORDED.parsed(RECORDED.lines(case))
        assert "retry_not_before" not in str(data_of(events, "custom")) + str(data_of(events, "result"))


@requirement("C-23")
def test_only_the_session_that_was_asked_for_is_unknown() -> None:
    for case in RECORDED.cases:
        unknown = CLAUDE.unknown_session(RECORDED.replayed(case)[1])
        assert unknown == (case in ("resume_unknown", "resume_not_uuid")), case


def test_the_table_reckons_what_the_client_does() -> None:
    """For a run alone in its session, the cost by our list is the client's own."""
    alone = [case for case in RECORDED.expected if not case.startswith(("resume", "compact"))]
    costs = {case: cost_of(RECORDED.expected[case]["cost"]) for case in alone}
    costs = {case: cost for case, cost in costs.items() if cost.total_cost_usd}
    assert len(costs) > 15
    for case, cost in costs.items():
        ours = priced(cost._replace(total_cost_usd=None), CLAUDE.prices, cost.model).total_cost_usd
        assert ours == pytest.approx(cost.total_cost_usd), case


def test_a_run_that_was_cut_off_has_cost_what_its_answers_took() -> None:
    """Sub-agents count; an answer that comes in several lines counts once."""
    lines = [line for line in RECORDED.lines("sub_agent") if '"type":"result"' not in line]
    state: dict = {}
    told = [event for line in lines for event in CLAUDE.parse(line, state)] + CLAUDE.finish(state)
    counted = data_of(RECORDED.parsed(RECORDED.lines("sub_agent")), "result")[-1]["cost"]
    spent = [event.data["spent"] for event in told if event.kind == "context_usage"][-1]
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    assert {name: spent[name] for name in names} == {name: counted[name] for name in names}
    assert CLAUDE.finish({}) == []


def test_what_a_session_is_told_of() -> None:
    lines = RECORDED.lines("success_write")
    (init,) = data_of(RECORDED.parsed(lines), "session_init")
    assert init["model"] == "claude-opus-5-5" and "Write" in init["tools"] and init["cwd"] == "<cwd>"
    usage = data_of(RECORDED.parsed(lines), "context_usage")
    spent = usage[-1].pop("spent")
    assert usage[-1] == {
        "context_used_tokens": 132, "context_total_tokens": 1_000_000, "output_tokens": 20, "context_percent": 0.01,
    }  # fmt: skip
    counted = data_of(RECORDED.parsed(lines), "result")[-1]["cost"]
    assert spent == {**counted, "total_cost_usd": None}  # the figures seen on the way equal the client's
    (compaction,) = data_of(RECORDED.parsed(RECORDED.lines("compact")), "compaction")
    assert compaction == {
        "pre_compact_tokens": 132, "compact_trigger": "manual", "context_total_tokens": 1_000_000,
    }  # fmt: skip
    (failed,) = [e for e in RECORDED.parsed(RECORDED.lines("mcp_tool")) if e.kind == "custom"]
    assert failed.data["name"] == "claude.mcp_failed" and failed.data["data"][0]["name"] == "bad"


def test_a_sub_agents_doings_are_marked() -> None:
    events = RECORDED.parsed(RECORDED.lines("sub_agent"))
    (call,) = [data["tool_call_id"] for data in data_of(events, "tool_start") if data["tool_name"] == "Agent"]
    write = [d for k in ("tool_start", "tool_end") for d in data_of(events, k) if d["tool_name"] == "Write"]
    assert [data["parent_tool_call_id"] for data in write] == [call, call]
    said = [data["content"] for data in data_of(events, "message") if data.get("parent_tool_call_id") == call]
    assert said == ["The script sub is over."]


def test_a_structured_answer_stays_where_a_sub_agent_in_the_background_wakes_the_model_once_more() -> None:
    again = {"type": "result", "subtype": "success", "is_error": False, "result": "The sub-agent is done, too."}
    results = data_of(RECORDED.parsed([*RECORDED.lines("structured_output"), json.dumps(again)]), "result")
    assert [result["structured"] for result in results] == [{"a": "hi"}] * 2
    (result,) = data_of(RECORDED.parsed(RECORDED.lines("json_schema")), "result")
    assert "structured" not in result, "the model never gave one"


def assistant(*content: dict, **more: object) -> str:
    return json.dumps({"type": "assistant", "message": {"id": "m", "content": list(content)}, **more})


def test_thinking_is_told_apart() -> None:
    line = assistant({"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "text", "text": "Yes."})
    assert [event.data for event in RECORDED.parsed([line])] == [
        {"role": "assistant", "content": "hm", "thinking": True}, {"role": "assistant", "content": "Yes."},
    ]  # fmt: skip
    assert RECORDED.parsed([assistant({"type": "thinking", "thinking": ""}, {"type": "text", "text": "  "})]) == []


def test_a_refused_sign_in_is_final_at_the_second_attempt() -> None:
    retry = {"type": "system", "subtype": "api_retry", "attempt": 1, "error_status": 401}
    assert [event.kind for event in RECORDED.parsed([json.dumps(retry)])] == ["custom"]
    lines = [json.dumps({**retry, "attempt": count}) for count in (1, 2, 3)]
    (error,) = data_of(RECORDED.parsed(lines), "error")
    assert error["final"] is True and error["category"] == "auth_failed"
    busy = [json.dumps({**retry, "error_status": 529, "attempt": count}) for count in (1, 2, 3)]
    assert data_of(RECORDED.parsed(busy), "error") == []


def test_a_limit_says_when_it_is_over() -> None:
    limit = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1795342248}}
    text = "You've hit your session limit"
    end = {"type": "result", "subtype": "success", "is_error": True, "result": text, "api_error_status": 429}
    (result,) = data_of(RECORDED.parsed([json.dumps(limit), json.dumps(end)]), "result")
    assert (result["error_category"], result["retry_not_before"]) == ("rate_limited", 1795342248.0)
    allowed = json.dumps({**limit, "rate_limit_info": {"status": "allowed", "resetsAt": 1795342248}})
    (result,) = data_of(RECORDED.parsed([allowed, json.dumps(end)]), "result")
    assert "retry_not_before" not in result


@requirement("A-22")
def test_the_result_tells_the_window_of_a_model_that_we_do_not_know() -> None:
    init = {"type": "system", "subtype": "init", "session_id": SESSION, "model": "own-model"}
    end = {"type": "result", "subtype": "success", "modelUsage": {"own-model": {"contextWindow": 4000}}}
    said = assistant({"type": "text", "text": "Yes."}).replace('"content"', '"usage": {"input_tokens": 90}, "content"')
    before, after = data_of(RECORDED.parsed([json.dumps(init), said, json.dumps(end)]), "context_usage")
    assert (before["context_total_tokens"], before["context_percent"]) == (None, None)
    assert (after["context_total_tokens"], after["context_percent"]) == (4000, 2.25)


@requirement("C-03")
@pytest.mark.parametrize(
    ("said", "provider"), [({"provider": "firstParty"}, "anthropic"), ({"provider": "bedrock"}, "bedrock"), ({}, None)]
)
def test_the_result_tells_who_provides_the_model(said: dict, provider: str | None) -> None:
    init = {"type": "system", "subtype": "init", "session_id": SESSION, "model": "m"}
    end = {"type": "result", "subtype": "success", "modelUsage": {"m": said, "another": {"provider": "vertex"}}}
    (result,) = data_of(RECORDED.parsed([json.dumps(init), json.dumps(end)]), "result")
    assert result.get("provider") == provider


@requirement("A-18")
def test_an_error_is_told_once() -> None:
    events = RECORDED.parsed(RECORDED.lines("max_retries"))
    assert [data["category"] for data in data_of(events, "error")] == ["auth_failed"]
    assert data_of(events, "message") == []  # it is the client speaking, not the model


@requirement("A-21", "D-08")
def test_unknown_lines_are_kept_and_others_ignored() -> None:
    (event,) = RECORDED.parsed(['{"type": "hologram", "x": 1}'])
    assert event.data == {"name": "claude.hologram", "data": {"type": "hologram", "x": 1}}
    (event,) = RECORDED.parsed(['{"type": "assistant", "message": 7}'])
    assert event.data["name"] == "claude.assistant"
    (event,) = RECORDED.parsed(
        ['{"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "never"}]}}']
    )
    assert event.data["name"] == "claude.tool_result"
    assert RECORDED.parsed(["", "plain words", "[1]", "7", '"x"', "{", "[" * 5000, '{"a": NaN']) == []


@pytest.mark.parametrize(
    ("exit_code", "stderr", "code"),
    [
        (0, "", "process_crashed"),  # SIGINT leaves 0 and no result
        (143, "", "process_crashed"),
        (-9, "", "process_crashed"),
        (1, "error: unknown option '--x'\n", "process_crashed"),
        (1, "No conversation found with session ID: x", "session_not_found"),
        (1, "Error: Session ID 1-2 is already in use.", "session_in_use"),
        (1, "Invalid API key · Please run /login", "auth_failed"),
        (1, "API Error: 529 Overloaded", "rate_limited"),
    ],
)
def test_no_result_means_failure(exit_code: int, stderr: str, code: str) -> None:
    found = CLAUDE.error_of(ended([], exit_code, stderr))
    assert found is not None and found[0] == code and found[1]


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("Prompt is too long", 400, "context_overflow"),
        ("Credit balance is too low", 400, "budget"),
        ("API Error: 500 Internal server error", 500, "rate_limited"),
        ("OAuth token revoked · Please run /login", 403, "auth_failed"),
        ("No conversation found with session ID: rate limit login", None, "session_not_found"),
        ("something else", 400, "unknown"),
        ("out of order", 503, "rate_limited"),
        ("no", 401, "auth_failed"),
    ],
)
def test_failed_results(text: str, status: int | None, code: str) -> None:
    line = {"type": "result", "subtype": "success", "is_error": True, "result": text, "api_error_status": status}
    assert CLAUDE.error_of(ended(RECORDED.parsed([json.dumps(line)]), 1)) == (code, text)


def test_a_run_killed_between_two_results_has_failed() -> None:
    events = RECORDED.parsed(RECORDED.lines("sub_agent")[:-1])
    assert CLAUDE.error_of(ended(events, 0)) is None
    for exit_code in (-15, 143):
        found = CLAUDE.error_of(ended(events, exit_code))
        assert found is not None and found[0] == "process_crashed"


@pytest.fixture
def plugin(tmp_path: Path, plugin_of) -> Path:
    """A stand-in for the bundle: writing that takes a while."""
    folder = tmp_path / "plugin"
    skill = folder_at(folder / "skills" / "swarm-mcp")
    (skill / "SKILL.md").write_text("ours")
    plugin_of("claude", folder)
    return folder


class Start:
    """A launch of a query, with its files as they are then."""

    def __init__(self, tmp_path: Path, **query: object):
        self.folder = tmp_path / "private"
        self.folder.mkdir(mode=0o700, parents=True)
        self.cwd = tmp_path / "checkout"
        self.cwd.mkdir(exist_ok=True)
        self.launch = CLAUDE.launch(Query("do it", str(self.cwd), **query), self.folder)  # type: ignore[arg-type]
        self.argv = list(self.launch.argv)
        self.servers = json.loads((self.folder / "mcp.json").read_text())["mcpServers"]

    def after(self, flag: str) -> str:
        return self.argv[self.argv.index(flag) + 1]


@requirement("C-68")
def test_the_plainest_run(plugin: Path, tmp_path: Path) -> None:
    made = Start(tmp_path)
    assert made.argv == [
        "claude", "-p", "--output-format", "stream-json", "--verbose", "--plugin-dir", str(plugin),
        "--mcp-config", str(made.folder / "mcp.json"), "--permission-mode", "acceptEdits",
        "--allowedTools", "mcp__swarm__*,mcp__plugin_swarm_swarm__*",
    ]  # fmt: skip
    assert made.launch.stdin == "do it"
    assert not [word for word in made.argv if "dangerous" in word or word == "--bare"]
    assert list(made.cwd.iterdir()) == []


@requirement("A-10", "A-33", "D-02", "D-10")
def test_everything_that_a_query_can_say(plugin: Path, tmp_path: Path) -> None:
    made = Start(
        tmp_path, model="opus-5.5", effort="high", system_prompt="be\nbrief", append_system_prompt="and kind",
        additional_directories=("/a", "/b"), resume_session_id=SESSION, fork_session=True, max_turns=7,
        output_schema={"type": "object"}, max_cost_usd=0.5, additional_args=("--chrome", "x y"),
        command=("env", "claude"),
    )  # fmt: skip
    assert made.argv[:3] == ["env", "claude", "-p"] and made.argv[-2:] == ["--chrome", "x y"]
    assert made.after("--model") == "claude-opus-5-5" and made.after("--effort") == "high"
    assert Path(made.after("--system-prompt-file")).read_text() == "be\nbrief"
    assert Path(made.after("--append-system-prompt-file")).read_text() == "and kind"
    assert made.after("--system-prompt-snapshot") == "off"
    assert made.after("--resume") == SESSION and "--fork-session" in made.argv
    where = made.argv.index("--add-dir")
    assert made.argv[where + 1 : where + 3] == ["/a", "/b"]
    assert json.loads(made.after("--json-schema")) == {"type": "object"}
    assert (made.after("--max-budget-usd"), made.after("--max-turns")) == ("0.5", "7")
    for path in made.folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


@requirement("A-12")
def test_models(plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [("", "", None), ("", "sonnet-5.5", "claude-sonnet-5-5"), ("opus", "haiku", "opus"), ("own", "", "own")]
    for number, (asked, default, wanted) in enumerate(cases):
        monkeypatch.setenv("CLAUDE_DEFAULT_MODEL", default)
        place = folder_at(tmp_path / str(number))
        made = Start(place, model=asked)
        assert (made.after("--model") if "--model" in made.argv else None) == wanted
    listed = {model["short"]: model for model in CLAUDE.listed_models()}
    assert listed["haiku-4.5"] == {"name": "claude-haiku-4-5", "short": "haiku-4.5", "context_tokens": 200_000}
    assert {price.dated for price in CLAUDE.prices.values()} == {"2026-10-10"}


@requirement("C-67", "D-13")
def test_secrets_are_in_the_environment_alone(plugin: Path, tmp_path: Path) -> None:
    servers = {
        "a.b": McpServer("tool", ("--flag",), {"API_TOKEN": SECRET, "MODE": 'x ${HOME} "y"'}, cwd="/some where"),
        "a_b": McpServer("tool", (), {"API_TOKEN": "other"}),
        "web": McpServer(url="http://127.0.0.1:1/mcp", headers={"Authorization": f"Bearer {SECRET}"}),
    }
    made = Start(tmp_path, mcp_servers=servers)
    config = (made.folder / "mcp.json").read_text()
    assert SECRET not in config and not [word for word in made.argv if SECRET in word]
    env = made.launch.env

    def value(reference: str) -> str:
        assert reference.startswith("${SWARM_RUN_") and reference.endswith("}")
        return env[reference[2:-1]]

    first, second, web = made.servers["a.b"], made.servers["a_b"], made.servers["web"]
    assert {name: value(text) for name, text in first["env"].items()} == servers["a.b"].env
    assert value(second["env"]["API_TOKEN"]) == "other"
    assert value(web["headers"]["Authorization"]) == f"Bearer {SECRET}"
    assert (web["type"], web["url"]) == ("http", "http://127.0.0.1:1/mcp")
    # A scrubber goes by how a variable's name ends.
    assert all(name.endswith("_SECRET") for name, text in env.items() if SECRET in text)
    assert first["command"] == "/bin/sh" and first["args"][-3:] == ["/some where", "tool", "--flag"]
    assert (second["command"], second["args"]) == ("tool", [])
    assert "mcp__a_b__*" in made.after("--allowedTools").split(",")


def test_a_reader_has_no_tool_that_writes(plugin: Path, tmp_path: Path) -> None:
    servers = {"swarm": McpServer("s"), "client_tools": McpServer(url="http://127.0.0.1:1"), "files": McpServer("f")}
    made = Start(tmp_path, mode=READ_ONLY, mcp_servers=servers)
    assert made.after("--permission-mode") == "dontAsk" and "--strict-mcp-config" in made.argv
    tools = made.after("--tools").split(",")
    assert not {"Write", "Edit", "NotebookEdit", "Bash", "Monitor", "Workflow", "EnterWorktree"} & set(tools)
    assert list(made.servers) == ["swarm", "client_tools"]
    assert "mcp__swarm__dispatch" in made.after("--disallowedTools")


def test_yolo_is_what_it_says(plugin: Path, tmp_path: Path) -> None:
    made = Start(tmp_path, mode=YOLO)
    assert "--dangerously-skip-permissions" in made.argv and "--permission-mode" not in made.argv
    assert "--plugin-dir" in made.argv


def test_what_a_checkout_brings_along_is_not_allowed_for_it(plugin: Path, tmp_path: Path, monkeypatch) -> None:
    from swarm_mcp.agents.harness.servers import servers_for

    cwd = folder_at(tmp_path / "checkout")
    (cwd / ".mcp.json").write_text('{"mcpServers": {"theirs": {"command": "deploy"}}}')
    given = Query("x", str(cwd), mcp_servers={"given": McpServer("g")})
    monkeypatch.setenv("SWARM_HARNESS_CLAUDE_ALLOW", "Bash(make *),WebFetch")
    made = Start(tmp_path, mcp_servers=servers_for(given))
    allowed = made.after("--allowedTools")
    assert "mcp__given__*" in allowed and "theirs" not in allowed and allowed.endswith(",Bash(make *),WebFetch")
    assert "theirs" in made.servers and "--strict-mcp-config" not in made.argv
    monkeypatch.setenv("SWARM_HARNESS_PROJECT_SERVERS", "0")
    (tmp_path / "again").mkdir()
    assert "--strict-mcp-config" in Start(tmp_path / "again").argv


@requirement("A-50", "A-53", "C-61", "C-62")
def test_skills_are_links_outside_the_checkout(plugin: Path, tmp_path: Path) -> None:
    for name, text in (("boats", "fold"), ("swarm-mcp", "ours")):
        text_at(tmp_path / name / "SKILL.md", text)
    made = Start(tmp_path, skills=(str(tmp_path / "boats"), str(tmp_path / "swarm-mcp")))
    home = Path(made.after("--add-dir")) / ".claude" / "skills"
    assert [path.name for path in home.iterdir()] == ["boats"]  # the plugin brings the other
    assert (home / "boats").is_symlink() and (home / "boats" / "SKILL.md").read_text() == "fold"
    assert made.folder in home.parents


def test_a_schema_that_no_command_line_can_hold_is_refused(plugin: Path, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="too long"):
        Start(tmp_path, output_schema={"enum": ["x" * 140_000]})


def test_the_bundle_has_what_the_flags_count_on(tmp_path: Path) -> None:
    """The real one: its server runs the same command as ours, so the client starts only one of them."""
    from swarm_mcp.agents.harness.environment import skill_folders
    from swarm_mcp.agents.harness.servers import servers_for

    query = Query("x", str(tmp_path))
    made = Start(tmp_path, mcp_servers=servers_for(query), skills=skill_folders(query))
    folder = Path(made.after("--plugin-dir"))
    (brought,) = json.loads((folder / "integrations/claude-code/mcp.json").read_text())["mcpServers"].values()
    ours = made.servers["swarm"]
    assert (ours["command"], ours["args"]) == (brought["command"], brought["args"])
    assert "--add-dir" not in made.argv and (folder / "skills/swarm-mcp/SKILL.md").is_file()


@requirement("A-03")
def test_can_resume(home: Path) -> None:
    place = home / ".claude" / "projects" / "-some-where"
    assert CLAUDE.can_resume(SESSION, "/x") is False  # no folder at all
    text_at(place / f"{SESSION}.jsonl", "{}\n")
    assert CLAUDE.can_resume(SESSION, "/x") is True
    (place / f"{SESSION}.jsonl").write_text('{"type": "mode"}\n{"cwd": "/some/where"}\n{"cwd": "/x"}\n')
    assert [CLAUDE.can_resume(SESSION, folder) for folder in ("/some/where", "/x", "")] == [True, False, True]
    (home / ".claude" / "x.jsonl").write_text("{}\n")
    for other in ("", "x", "--resume", "../../x", SESSION.replace("0", "1"), SESSION + "\n"):
        assert CLAUDE.can_resume(other, "/x") is False


def codes(**config: object) -> dict[str, str]:
    return {check.code: check.level for check in CLAUDE.checks(config)}


@requirement("A-57", "C-13", "C-14")
def test_sign_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    (lacking,) = [check for check in CLAUDE.checks({}) if check.code == "claude_not_signed_in"]
    assert lacking.level == "error"
    for way in ("/login", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY", "apiKeyHelper"):
        assert way in lacking.hint
    key = CLAUDE.checks({"env": {"ANTHROPIC_API_KEY": SECRET}})
    assert {check.code: check.level for check in key}["claude_api_key"] == "warn" and status_of(key) == "warn"
    assert SECRET not in str(key)
    assert codes(env={"CLAUDE_CODE_OAUTH_TOKEN": "x"})["claude_signed_in"] == "info"
    folder = folder_at(home / ".claude")
    (folder / ".credentials.json").write_text("{}")
    assert codes()["claude_signed_in"] == "info"
    (folder / ".credentials.json").unlink()
    (folder / ".claude.json").write_text('{"oauthAccount": {"emailAddress": "a@b"}}')
    assert codes()["claude_signed_in"] == "info"
    (folder / ".claude.json").write_text("[")
    (folder / "settings.json").write_text('{"apiKeyHelper": "x"}')
    assert codes()["claude_signed_in"] == "info"


def test_settings_that_matter(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, project = home / ".claude", tmp_path / ".claude"
    folder.mkdir()
    project.mkdir()
    assert codes()["claude_plugin_missing"] == "info"
    (folder / "settings.json").write_text('{"enabledPlugins": {"swarm@swarm": true}}')
    before = sorted((path, path.stat().st_mtime_ns) for path in home.rglob("*"))
    assert codes()["claude_plugin"] == "info"
    assert sorted((path, path.stat().st_mtime_ns) for path in home.rglob("*")) == before
    (project / "settings.json").write_text('{"disableAllHooks": true}')
    assert codes(cwd=str(tmp_path))["claude_hooks_off"] == "warn"
    assert "claude_hooks_off" not in codes()
    assert codes(additional_args=["--bare"])["claude_hooks_off"] == "warn"
    monkeypatch.delenv("IS_SANDBOX", raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert codes(mode="yolo")["claude_root"] == "warn"
    assert "claude_root" not in {**codes(), **codes(mode="yolo", env={"IS_SANDBOX": "1"})}
    (project / "settings.json").write_text("{oops")
    assert codes(cwd=str(tmp_path))["claude_settings_unreadable"] == "warn"


def test_questions_pieces_and_images(plugin: Path, tmp_path: Path) -> None:
    asked = {"mcp_servers": {PERMISSIONS: McpServer(url="http://127.0.0.1:1/")}, "on_permission": print}
    made = Start(tmp_path / "a", stream_text=True, **asked)
    assert made.after("--permission-prompt-tool") == f"mcp__{PERMISSIONS}__ask" and PERMISSIONS in made.servers
    assert PERMISSIONS not in made.after("--allowedTools"), "the model may not ask itself"
    assert "--include-partial-messages" in made.argv and made.launch.stdin == "do it"
    for mode in (READ_ONLY, YOLO):
        assert "--permission-prompt-tool" not in Start(tmp_path / mode, mode=mode, **asked).argv
    checkout = folder_at(tmp_path / "b" / "checkout")
    (checkout / "dot.png").write_bytes(b"dot")
    made = Start(tmp_path / "b", images=("dot.png",))
    assert made.after("--input-format") == "stream-json"
    text, image = json.loads(made.launch.stdin)["message"]["content"]
    assert text["text"] == "do it" and image["source"]["media_type"] == "image/png"
    assert image["source"]["data"] == "ZG90"
    (checkout / "a.txt").touch()
    with pytest.raises(Refused, match="a.txt is no picture"):
        CLAUDE.launch(Query("x", str(checkout), images=("a.txt",)), made.folder)


def test_only_the_agents_own_text_is_a_piece() -> None:
    line = {
        "type": "stream_event",
        "event": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
    }
    assert CLAUDE.parse(json.dumps(line), {}) == [custom("claude.text_delta", {"delta": "a"})]
    others = [{**line, "parent_tool_use_id": "t"}, {**line, "event": {"type": "message_stop"}},
              {**line, "event": {"delta": {"type": "input_json_delta", "partial_json": "{"}}}]  # fmt: skip
    for other in others:
        assert CLAUDE.parse(json.dumps(other), {}) == [custom("claude.stream_event", other)]


def test_a_person_or_a_function_of_the_caller_may_take_long(plugin: Path, tmp_path: Path) -> None:
    """Measured: the client gives up on a call over HTTP after 60 s, unless its server has a limit of its own."""
    names = (PERMISSIONS, "client_tools", "other")
    made = Start(tmp_path, mcp_servers={name: McpServer(url="http://127.0.0.1:1/") for name in names})
    assert [made.servers[name].get("timeout", 0) > 3_600_000 for name in names] == [True, True, False]
