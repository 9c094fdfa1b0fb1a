"""The harness pi without pi: recorded streams, argv, private files, sessions, hooks, and the client as installed."""

import json
import os
import stat
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from support.client_steps import done
from support.files import folder_at, program_at, text_at
from support.recordings import Recordings, named
from support.replay import replay
from support.requirement import requirement
from support.sessions import ROOT, new_session, peer_locks, ready_store

from swarm_mcp import __version__
from swarm_mcp.agents.harness.outcome import Ending
from swarm_mcp.agents.harness.pi import SWARM_TOOLS
from swarm_mcp.agents.harness.query import READ_ONLY, McpServer, Query
from swarm_mcp.agents.harness.servers import NOT_FOR_READERS
from swarm_mcp.doctor import enforcement
from swarm_mcp.installation import plugin_source
from swarm_mcp.runtimes import bundle, runtime
from swarm_mcp.runtimes.base import Runtime, Steps
from swarm_mcp.server.tools import all_tools

pytestmark = pytest.mark.slow

RECORDED = Recordings("pi")
SECRET = "hunter2-hunter2-hunter2"
SESSION = "01a202bc-06da-7911-be41-5931d6aa0af3"

pi = RECORDED.adapter


@pytest.fixture(autouse=True)
def agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, plugin_of) -> Path:
    """pi's own folder, private; the plugin of the checkout; a PATH that ends with this test's programs."""
    folder = folder_at(tmp_path / "agent")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(folder))
    monkeypatch.delenv("PI_CODING_AGENT_SESSION_DIR", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    plugin_of("pi")
    return folder


def test_the_record_does_not_repeat_the_message_so_far() -> None:
    """With each delta pi writes the whole message again, twice: kept, one long answer would fill a disk."""
    lines = [line for case in RECORDED.cases for line in RECORDED.lines(case)]
    updates = [line for line in lines if line.startswith('{"type":"message_update"')]
    assert updates
    for line in lines:
        kept = pi.recorded(line)
        if line not in updates:
            assert kept == line
            continue
        told, whole = json.loads(kept), json.loads(line)
        assert not {"message", "partial"} & {*told, *told["assistantMessageEvent"]}
        assert told["assistantMessageEvent"].items() <= whole["assistantMessageEvent"].items()
    begin = '{"type":"message_update"'
    odd = [begin, begin + "}", begin + ',"assistantMessageEvent":1}']
    seen = replay(pi, "\n".join([updates[0], *odd]).encode()).events
    assert [event.data["content"] for event in seen if event.kind == "raw_log"] == [pi.recorded(updates[0]), *odd]


def test_a_failure_that_pi_tries_again_is_no_result() -> None:
    found, _ = RECORDED.replayed("retry_denied")
    kinds = [named(event) for event in found]
    assert kinds.count("pi.auto_retry_start") == 2 and kinds.count("result") == 1 and "error" not in kinds
    assert [e.data["content"] for e in found if e.kind == "message" and e.data.get("thinking")] == ["Let me see."] * 3
    (denied,) = [event.data["data"] for event in found if named(event) == "lock_denied"]
    assert denied["call"] == "write" and denied["message"].startswith("swarm lock blocked write for <cwd>/notes.md")


def test_a_model_without_a_price_costs_an_unknown_sum() -> None:
    def answer(cost: float) -> str:
        usage = {"input": 5, "output": 2, "cacheRead": 1, "cacheWrite": 0, "cost": {"total": cost}}
        return json.dumps({"type": "message_end", "message": {"role": "assistant", "content": [], "usage": usage}})

    end = '{"type": "agent_end", "messages": []}'
    for costs, total in (((0.5, 0.25), 0.75), ((0.5, 0), None), ((0,), None), ((), None)):
        cost = RECORDED.parsed([*map(answer, costs), end])[-1].data["cost"]
        assert cost["total_cost_usd"] == total and cost["input_tokens"] == (5 * len(costs) or None), costs


def launched(tmp_path: Path, prompt: str = "hello", **wanted: object):
    folder = folder_at(tmp_path / "run")
    return pi.launch(Query(prompt, str(tmp_path), **wanted), folder)


def after(argv: tuple[str, ...], flag: str) -> list[str]:
    return [value for before, value in zip(argv, argv[1:], strict=False) if before == flag]


@requirement("C-68")
def test_a_plain_run_has_our_extension_and_nothing_dangerous(tmp_path: Path) -> None:
    made = launched(tmp_path)
    extension = str(plugin_source() / "integrations/pi/index.ts")
    assert made.argv == ("pi", "-p", "--mode", "json", "-e", extension) and Path(extension).is_file()
    assert made.stdin.strip() == "hello"
    assert json.loads(Path(made.env["SWARM_PI_SERVERS"]).read_text()) == {"mcpServers": {}}


@requirement("A-10")
def test_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = launched(tmp_path, model="a/b", effort="max", skills=("/s/one", "/s/two"), resume_session_id=SESSION,
                    additional_args=("--no-themes",), command=("npx", "pi"))  # fmt: skip
    assert made.argv[:2] == ("npx", "pi") and made.argv[-1] == "--no-themes"
    assert after(made.argv, "--model") == ["a/b"] and after(made.argv, "--thinking") == ["xhigh"]
    assert after(made.argv, "--skill") == ["/s/one", "/s/two"] and after(made.argv, "--session") == [SESSION]
    forked = launched(tmp_path, resume_session_id=SESSION, fork_session=True).argv
    assert after(forked, "--fork") == [SESSION] and "--session" not in forked
    monkeypatch.setenv("PI_DEFAULT_MODEL", "c/d")
    assert after(launched(tmp_path).argv, "--model") == ["c/d"]


@requirement("C-67")
def test_prompts_and_secrets_are_in_private_files_and_never_in_argv(tmp_path: Path) -> None:
    servers = {
        "own": McpServer("cmd", ("a",), {"TOKEN": SECRET}, cwd="/x"),
        "far": McpServer(url="http://127.0.0.1:9/mcp", headers={"Authorization": f"Bearer {SECRET}"}),
    }
    made = launched(tmp_path, system_prompt="SYS " + SECRET, append_system_prompt="APP", mcp_servers=servers)
    assert SECRET not in " ".join(made.argv)
    assert Path(after(made.argv, "--system-prompt")[0]).read_text() == "SYS " + SECRET
    assert Path(after(made.argv, "--append-system-prompt")[0]).read_text() == "APP"
    file = Path(made.env["SWARM_PI_SERVERS"])
    assert json.loads(file.read_text())["mcpServers"] == {
        "own": {"command": "cmd", "args": ["a"], "env": {"TOKEN": SECRET}, "cwd": "/x"},
        "far": {"type": "http", "url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}},
    }
    assert {stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()} == {0o600}
    assert sorted(os.listdir(tmp_path)) == ["agent", "bin", "run"]


@requirement("A-49")
def test_the_users_own_addition_to_the_system_prompt_stays(tmp_path: Path, agent: Path) -> None:
    (agent / "APPEND_SYSTEM.md").write_text("mine")
    given_files = after(launched(tmp_path, append_system_prompt="APP").argv, "--append-system-prompt")
    assert [Path(path).read_text() for path in given_files] == ["mine", "APP"]
    assert "--append-system-prompt" not in launched(tmp_path).argv  # then pi finds it by itself


def test_read_only_leaves_tools_that_write_no_file(tmp_path: Path) -> None:
    def double(number: int) -> int:
        return 2 * number

    (tools,) = after(launched(tmp_path, mode=READ_ONLY, client_tools=(double,)).argv, "--tools")
    on = set(tools.split(","))
    assert {"read", "grep", "find", "ls", "mcp__swarm__lock_file", "mcp__client_tools__double"} <= on
    assert not on & {"write", "edit", "bash", "mcp__swarm__dispatch"}
    assert set(SWARM_TOOLS) == {name for name, tool in all_tools().items() if tool.is_listed} - set(NOT_FOR_READERS)


def test_an_answer_to_pis_question_is_never_the_prompt(tmp_path: Path) -> None:
    made = launched(tmp_path, "yes\nplease", resume_session_id=SESSION)
    assert made.stdin.split("\n", 1) == ["", "yes\nplease"], "pi would take the first line for consent to a copy"


def test_what_pi_says_and_its_exit_code_give_the_error() -> None:
    def code(stderr: str = "", exit_code: int = 1, **result: object) -> str:
        return (pi.error_of(Ending(exit_code, 0, result or None, (), stderr)) or ("fine", ""))[0]

    assert code("No session found matching 'x'") == "session_not_found"
    assert code("\x1b[33mSession found in different project: /a\x1b[39m", 0) == "session_not_found"
    assert code("Stored session working directory does not exist: /gone") == "session_not_found"
    assert code("No models available. Use /login to log into a provider") == "auth_failed"
    assert code('Error: Model "x" not found. Use --list-models') == "model_not_found"
    assert code("", 0) == "process_crashed" and code("", 1) == "process_crashed"
    assert code("", 0, output="x", is_error=False) == "fine"
    assert code("", 0, output=None, is_error=True, error_category="auth_failed") == "auth_failed"
    assert pi.format_command("swarm") == "/skill:swarm"


def kept(folder: Path, cwd: Path, session: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    head = {"type": "session", "version": 3, "id": session, "cwd": str(cwd)}
    (folder / f"2026-11-22T10-00-00-000Z_{session}.jsonl").write_text(json.dumps(head) + "\n{}\n")


@requirement("A-03")
def test_a_session_can_be_continued_where_it_worked(tmp_path: Path, agent: Path, monkeypatch) -> None:
    work = folder_at(tmp_path / "work")
    mine, other = str(uuid.uuid4()), str(uuid.uuid4())
    place = "--" + str(work.resolve()).lstrip("/").replace("/", "-") + "--"
    kept(agent / "sessions" / place, work, mine)
    assert pi.can_resume(mine, str(work)) is True
    for session in (other, "", "*", "../x", "--help", mine[:8]):
        assert pi.can_resume(session, str(work)) is False, session
    assert pi.can_resume(mine, str(tmp_path)) is False
    (tmp_path / "link").symlink_to(work)
    assert pi.can_resume(mine, str(tmp_path / "link")) is True
    # One folder for all sessions: pi would open one of another folder there, and work in that.
    kept(tmp_path / "shared", tmp_path / "elsewhere", other)
    (agent / "settings.json").write_text(json.dumps({"sessionDir": str(tmp_path / "shared")}))
    assert pi.can_resume(other, str(work)) is False and pi.can_resume(mine, str(work)) is False
    monkeypatch.setenv("PI_CODING_AGENT_SESSION_DIR", str(tmp_path / "third"))
    kept(tmp_path / "third", work, other)
    assert pi.can_resume(other, str(work)) is True


@requirement("A-57")
def test_checks_see_accounts_and_broken_settings(agent: Path) -> None:
    def codes(**config: object) -> dict[str, str]:
        return {check.code: check.level for check in pi.checks(config)}

    assert codes() == {"pi_credentials_missing": "warn"}
    assert codes(env={"GROQ_API_KEY": SECRET}) == {"pi_credentials": "info"}
    (agent / "models.json").write_text(json.dumps({"providers": {"local": {}}}))
    (agent / "settings.json").write_text("{")
    assert codes() == {"pi_credentials": "info", "pi_settings_unreadable": "warn"}
    (agent / "auth.json").write_text(json.dumps({"anthropic": {"key": SECRET}}))
    assert SECRET not in str(pi.checks({"env": {"GROQ_API_KEY": SECRET}}))


def test_models_are_those_that_pi_lists(tmp_path: Path) -> None:
    assert pi.listed_models() == []
    program = tmp_path / "bin" / "pi"
    program_at(program, "#!/bin/sh\nprintf 'provider  model    context\\nmock  m-1  100K  4K\\nbig  m/2  1.5M  x\\n'\n")
    assert pi.listed_models() == [
        {"name": "mock/m-1", "short": "m-1", "context_tokens": 100_000},
        {"name": "big/m/2", "short": "m/2", "context_tokens": 1_500_000},
    ]


def test_the_check_reads_paths_as_pi_does(tmp_path: Path) -> None:
    ready_store()
    repo = tmp_path / "repo"
    (repo / "sub").mkdir(parents=True)
    peer_locks(repo, repo / "my notes.md", "mine", "the peer")
    peer_locks(repo, Path(os.environ["HOME"]) / "rc", "mine", "another")
    me = new_session()
    check = [sys.executable, "-E", "-s", "-S", str(ROOT / "integrations/hook.py"), "pi", "pre_tool_use"]

    def reason(tool: str, path: str, key: str = "path", cwd: Path = repo) -> str:
        payload = {"session_id": me, "cwd": str(cwd), "hook_event_name": "PreToolUse", "tool_name": tool,
                   "tool_input": {key: path}}  # fmt: skip
        done = subprocess.run(check, input=json.dumps(payload), text=True, capture_output=True)  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)["hookSpecificOutput"]["permissionDecisionReason"] if done.stdout else ""

    spellings = ("my notes.md", "@my notes.md", "my\u00a0notes.md", "my\u202fnotes.md", f"@{repo}/sub/../my notes.md")
    for spelled in spellings:
        assert reason("write", spelled).startswith('swarm lock blocked write for "my notes.md"'), spelled
    assert "the peer" in reason("edit", "../my notes.md", cwd=repo / "sub")
    assert "the peer" in reason("edit", "my notes.md", key="file_path")
    assert "another" in reason("write", "~/rc") and "another" in reason("write", "@~/rc")
    assert reason("write", "free.md") == "" and reason("read", "my notes.md") == ""
    assert reason("write", "@@my notes.md") == "", "pi takes one @ away"


FAKE_PI = """
import json, os, sys
folder = os.environ["PI_CODING_AGENT_DIR"]
path = os.path.join(folder, "settings.json")
settings = json.load(open(path)) if os.path.exists(path) else {}
packages = settings.setdefault("packages", [])
verb, source = sys.argv[1:3]
same = [p for p in packages if os.path.realpath(os.path.join(folder, p)) == os.path.realpath(source)]
if verb == "install":
    packages += [] if same else [os.path.relpath(source, folder)]
elif verb == "remove" and same:
    settings["packages"] = [p for p in packages if p not in same]
else:
    sys.exit("No matching package found for " + source)
json.dump(settings, open(path, "w"))
"""


def root_of(found: Runtime) -> Path | None:
    installed = found.look(Path("/nowhere"), Steps()).installed
    return installed.root if installed else None


def test_the_client_is_installed_looked_at_and_taken_out(tmp_path: Path, agent: Path) -> None:
    program = program_at(tmp_path / "bin" / "pi", f"#!{sys.executable} -IS\n{FAKE_PI}")
    place, older = tmp_path / "a place", tmp_path / "older"
    for folder in (place, older):
        bundle.write(folder, local=True)
    (agent / "settings.json").write_text(json.dumps({"theme": "dark", "packages": ["npm:other", "../older"]}))
    found = runtime("pi")
    assert found.program() == str(program) and found.traces() and root_of(found) == older
    assert len(done(found.install, place)) == 2 and done(found.install, place) == []
    settings = json.loads((agent / "settings.json").read_text())
    assert settings == {"theme": "dark", "packages": ["npm:other", "../a place"]}
    (finding,), installed = found.look(place, Steps())
    assert (finding.status, finding.message) == ("ok", f"version {__version__}, at {place}")
    assert installed and enforcement.prove(found, installed).status == "ok"
    assert {hook.event for hook in installed.commands()} >= {"PreToolUse", "PostToolUse", "SessionStart", "SessionEnd"}
    off = {"source": "../a place", "extensions": ["-integrations/pi/index.ts"]}
    (agent / "settings.json").write_text(json.dumps({"packages": [off]}))
    assert found.look(place, Steps()).findings[0].status == "fail"
    (agent / "settings.json").write_text(json.dumps({"packages": ["../a place"]}))
    (place / "integrations/pi/index.ts").unlink()
    assert found.look(place, Steps()).findings[0].status == "fail"
    assert len(done(found.uninstall)) == 1 and done(found.uninstall) == [] and not found.traces()
    assert found.look(place, Steps()).findings[0].message == "not installed" and root_of(found) is None


@pytest.mark.parametrize(
    ("source", "folder"),
    [
        ("git:github.com/me/swarm", "git/github.com/me/swarm"),
        ("git:github.com/me/swarm@v1", "git/github.com/me/swarm"),
        ("git:git@github.com:me/swarm.git", "git/github.com/me/swarm"),
        ("https://localhost:8080/me/swarm.git@v2", "git/localhost/me/swarm"),
        ("ssh://git@host.example/me/swarm", "git/host.example/me/swarm"),
    ],
)
def test_a_package_from_git_is_found_where_pi_keeps_it(agent: Path, source: str, folder: str) -> None:
    (agent / "settings.json").write_text(json.dumps({"packages": [{"source": source}]}))
    assert root_of(runtime("pi")) is None
    text_at(agent / folder / "package.json", json.dumps({"name": "swarm-mcp", "version": "0"}))
    assert root_of(runtime("pi")) == agent / folder
