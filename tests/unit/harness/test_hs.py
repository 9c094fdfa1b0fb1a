"""The harness hs without hs: recorded output, sessions as folders, a worker's plugin, the client as installed."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.client_steps import done
from support.files import folder_at, program_at, text_at
from support.replay import Replayed, replay
from support.requirement import requirement
from support.sessions import ROOT

from swarm_mcp.agents.harness import hs as hs_session
from swarm_mcp.agents.harness import outcome, registry
from swarm_mcp.agents.harness.outcome import Ending
from swarm_mcp.agents.harness.query import READ_ONLY, Query
from swarm_mcp.doctor import enforcement
from swarm_mcp.errors import ClientFailed, Refused
from swarm_mcp.runtimes import bundle, runtime
from swarm_mcp.runtimes.base import Steps

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parents[2] / "data" / "golden" / "harness"
SESSION = "20261121-233628-23380"
hs = registry.get("hs")


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin_of) -> Path:
    """The harness's own folder, private; an installation of it that never runs; the plugin of the checkout."""
    root = tmp_path / "opt" / "harness"
    for name in ("core/tools", "core/hooks.d/start", "openai/providers"):
        (root / "plugins" / name).mkdir(parents=True)
    (root / "bin").mkdir()
    (root / "VERSION").write_text("0.3.0\n")
    program = program_at(root / "bin" / "hs", "#!/bin/sh\nexit 1\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "hs").symlink_to(program)
    for name in [name for name in os.environ if name.startswith("HARNESS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path / "own"))
    plugin_of("hs")
    return tmp_path / "own"


def message(name: str, text: str = "", **facts: str) -> str:
    role = name.partition("-")[2]
    head = {"role": role, "seq": name[:4], "timestamp": "2026-11-21T23:29:06+00:00", **facts}
    return "---\n" + "".join(f"{key}: {value}\n" for key, value in head.items()) + f"---\n{text}\n"


def session(folder: Path, cwd: Path, **messages: str) -> Path:
    (folder / "messages").mkdir(parents=True)
    (folder / "session.conf").write_text(f"id={folder.name}\nmodel=m\ncwd={cwd}\nparent=\n")
    for name, text in messages.items():
        (folder / "messages" / f"{name}.md").write_text(text)
    return folder


def replayed(case: str, **query: str) -> Replayed:
    meta = json.loads((GOLDEN / f"{case}.meta.json").read_text())
    asked = Query("go", str(GOLDEN), run_id="r", **query)
    return replay(hs, (GOLDEN / f"{case}.jsonl").read_bytes(), meta["stderr"].encode(), meta["rc"], asked)


def kinds(found: Replayed) -> list[str]:
    return [event.kind for event in found.events if not event.kind.startswith("raw_")]


@pytest.mark.parametrize(
    ("case", "error", "output"),
    [
        ("success_write", None, "Done."),
        ("resume_unknown", None, "Hello from the scripted model."),
        ("auth", ("auth_failed", "openai API error: Incorrect API key provided: sk-mock."), ""),
        ("no_provider", ("unknown", "provider 'nope' not found"), ""),
        ("sigterm", ("process_crashed", "the process was ended by signal 15"), ""),
    ],
)
@requirement("B-46")
def test_recorded_runs_end_as_they_ended(case: str, error: tuple | None, output: str) -> None:
    found = replayed(case)
    result = found.result
    assert (result.error_category, result.error_message) == (error or (None, None))
    assert (result.is_error, result.output) == (bool(error), output)
    assert re.fullmatch(hs.session_pattern, result.session_id or "")
    assert kinds(found)[0] == "session_init" and kinds(found).count("result") == 1 and kinds(found)[-1] == "result"
    if case in ("auth", "no_provider"):
        assert result.error_message == error[1] and "error" in kinds(found)


def test_a_resumed_run_is_known_by_the_session_it_was_to_continue() -> None:
    found = replayed("resume_ok", resume_session_id=SESSION)
    assert (found.result.session_id, found.result.output) == (SESSION, "Hello from the scripted model.")
    assert not found.unknown_session


@requirement("B-46")
def test_an_answer_that_begins_like_a_failure_is_an_answer(tmp_path: Path, own: Path) -> None:
    words = "error: that is the word you asked for"
    session(own / "sessions" / SESSION, tmp_path, **{
        "0001-user": message("0001-user", "say it"),
        "0002-assistant": message("0002-assistant", words, stop="end", tokens_in="7", tokens_out="3", model="gpt-4o",
                                  provider="openai"),
    })  # fmt: skip
    told = f"session: {SESSION}\nprovider: openai\nmodel: gpt-4o\n".encode()
    query = Query("say it", str(tmp_path), run_id="r")
    found = replay(hs, f"{words}\n".encode(), told, 0, query)
    assert (found.result.is_error, found.result.output) == (False, words)
    assert found.result.cost._replace(model=None) == outcome.Cost(None, 7, 3, num_turns=1)
    assert (found.result.model, found.result.provider) == ("gpt-4o", "openai")
    assert replay(hs, b"error: no choices in response\n", told, 0, query).result.error_category == "unknown"


@pytest.mark.parametrize(
    ("stdout", "stderr", "code", "category"),
    [
        (b"error: ANTHROPIC_API_KEY not set \xe2\x80\x94 run: hs auth set anthropic\n", b"", 0, "auth_failed"),
        (b"error: anthropic API error: rate_limit_error: slow down\n", b"", 0, "rate_limited"),
        (b"error: openai API error: maximum context length is 8192\n", b"", 0, "context_overflow"),
        (b"", b"[harness] safety: exceeded max iterations\n", 0, "budget"),
        (b"", b"harness: required: jq\n", 1, "process_crashed"),
        (b"", b"", 0, "process_crashed"),
    ],
)
@requirement("B-46")
def test_failures_are_read_from_what_it_says(stdout: bytes, stderr: bytes, code: int, category: str) -> None:
    result = replay(hs, stdout, stderr, code).result
    assert (result.is_error, result.error_category) == (True, category) and result.error_message


@requirement("B-21")
def test_messages_become_events(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "messages", tmp_path / "s" / "messages")
    reading = hs_session.Reading(str(tmp_path / "s"))
    told = [(event.kind, event.data) for event in reading.news()]
    assert [kind for kind, _ in told] == [
        "message", "tool_start", "tool_start", "context_usage", "tool_end", "tool_end", "message", "context_usage",
    ]  # fmt: skip
    assert told[0][1] == {"role": "assistant", "content": "Writing."}
    assert told[1][1]["args"] == {"path": "notes.md", "content": "hi\n"} and told[1][1]["tool_name"] == "write_file"
    refused, written = told[4][1], told[5][1]
    assert refused["is_error"] and refused["result"].startswith("swarm lock blocked") and not written["is_error"]
    calls = [told[place][1]["tool_call_id"] for place in (1, 2)]
    assert calls == [refused["tool_call_id"], written["tool_call_id"]]
    assert (reading.last_words, reading.stop, reading.turns) == ("Done.", "end", 2)
    assert reading.cost("m")[1:5] == (200, 40, None, None)
    assert reading.news() == [], "each is told once"


def test_what_is_old_or_not_whole_is_not_told(tmp_path: Path) -> None:
    folder = session(tmp_path / SESSION, tmp_path, **{"0001-user": message("0001-user", "old"),
                     "0002-assistant": message("0002-assistant", "old words", stop="end")})  # fmt: skip
    reading = hs_session.Reading(str(folder), 2)
    assert reading.news() == []
    (folder / "messages" / "0003-assistant.md").write_text("---\nrole: assistant\nseq")
    assert reading.news() == []
    text = "```thinking signature=abc\nhm\n```\nNew.\n\n```tool_call id=c name=bash\n{broken\n```"
    (folder / "messages" / "0003-assistant.md").write_text(message("0003-assistant", text, stop="tool_calls"))
    assert [(event.kind, event.data.get("content"), event.data.get("args")) for event in reading.news()] == [
        ("message", "hm", None), ("message", "New.", None), ("tool_start", None, "{broken"),
    ]  # fmt: skip
    shown = "Look:\n```tool_call id=x name=y\n{}\n```"
    (folder / "messages" / "0004-assistant.md").write_text(message("0004-assistant", shown, stop="end"))
    assert [event.kind for event in reading.news()] == ["message"], "a block in prose is no call"


LINES = (
    "---", "role: assistant", "```tool_call id=a name=b", "```thinking", "```", "{}", "stop: tool_calls", "tokens_in: x"
)  # fmt: skip


@given(st.text(st.characters(blacklist_categories=("Cs",))), st.lists(st.sampled_from(LINES)))
def test_no_message_breaks_the_reading(text: str, lines: list[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "messages"))
        for name, content in (("0001-assistant.md", text), ("0002-x.md", "\n".join(lines)),
                              ("0003-y.md", "---\nrole: assistant\n---\n" + "\n".join(lines))):  # fmt: skip
            Path(folder, "messages", name).write_text(content, encoding="utf-8")
        reading = hs_session.Reading(folder)
        assert all(json.dumps(event.to_dict()) for event in reading.news())
        assert (reading.error(), hs_session.settings(folder)) == ("", {})


@given(st.binary(max_size=400), st.binary(max_size=400), st.integers(-15, 130))
def test_whatever_it_prints_there_is_one_result(stdout: bytes, stderr: bytes, code: int) -> None:
    assert kinds(replay(hs, stdout, stderr, code)).count("result") == 1


@requirement("B-22")
def test_where_sessions_are(tmp_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = folder_at(tmp_path / "project" / "a" / "b")
    assert hs_session.folder_of("s", str(deep), {}) == str(own / "sessions" / "s")
    (tmp_path / "project" / ".harness" / "sessions").mkdir(parents=True)
    assert hs_session.folder_of("s", str(deep), {}) == str(tmp_path / "project" / ".harness" / "sessions" / "s")
    monkeypatch.setenv("HARNESS_SESSIONS", "/elsewhere")
    assert hs_session.folder_of("s", str(deep), {}) == "/elsewhere/s"
    monkeypatch.setenv("HARNESS_PARENT_SESSION", "parent")  # a sub-agent's are its parent's own
    assert hs_session.folder_of("s", str(deep), {}).startswith(str(tmp_path / "project"))


@requirement("A-03")
def test_only_a_session_of_this_folder_can_be_resumed(tmp_path: Path, own: Path) -> None:
    session(own / "sessions" / SESSION, tmp_path)
    assert hs.can_resume(SESSION, str(tmp_path)) is True
    assert hs.can_resume(SESSION, str(tmp_path / "bin")) is False
    assert [hs.can_resume(other, str(tmp_path)) for other in ("20990101-000000-1", "", "..")] == [False] * 3
    assert not [bad for bad in ("--x", "../../x", "new words", SESSION + "\n") if re.fullmatch(hs.session_pattern, bad)]


@requirement("B-24", "C-62")
def test_a_worker_gets_the_plugin_beside_the_bundled_ones(tmp_path: Path, own: Path) -> None:
    skill = folder_at(tmp_path / "review")
    own.mkdir()
    query = Query("do it", str(tmp_path), append_system_prompt="Be brief.", skills=(str(skill),), model="m-1",
                         effort="high", max_turns=7, mode=READ_ONLY, env={"HARNESS_PROVIDER": "openai"})  # fmt: skip
    folder = folder_at(tmp_path / "private")
    launch = hs.launch(query, folder)
    assert (launch.argv, launch.stdin) == (("hs", "agent"), "do it")
    root = Path(launch.env["HARNESS_ROOT"])
    assert root.is_relative_to(folder) and (root / "VERSION").read_text() == "0.3.0\n"
    assert (root / "bin" / "hs").samefile(tmp_path / "opt" / "harness" / "bin" / "hs")
    assert sorted(path.name for path in (root / "plugins").iterdir()) == ["core", "openai", "swarm"]
    ours = root / "plugins" / "swarm"
    assert os.access(ours / "tools" / "write_file", os.X_OK) and (ours / "hooks.d" / "sources" / "90-swarm").is_file()
    assert (ours / "skills" / "review").samefile(skill)
    assert (ours / "prompts" / "500-run.md").read_text() == "Be brief."
    said = {name: launch.env.get(name) for name in ("HARNESS_MODEL", "HARNESS_THINKING", "HARNESS_MAX_TURNS")}
    assert said == {"HARNESS_MODEL": "m-1", "HARNESS_THINKING": "high", "HARNESS_MAX_TURNS": "7"}
    assert launch.env["SWARM_HS_READ_ONLY"] == "1"
    assert launch.env["PATH"].endswith(os.environ["PATH"]) and list(own.iterdir()) == []


def test_a_harness_whose_root_cannot_be_told_runs_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "bin" / "hs").unlink()
    program_at(tmp_path / "bin" / "hs", "#!/bin/sh\nexec somewhere/else\n")
    launch = hs.launch(Query("x", str(tmp_path)), tmp_path)
    assert launch.argv == ("hs", "agent") and "HARNESS_ROOT" not in launch.env
    (check,) = [check for check in hs.checks({"cwd": str(tmp_path)}) if check.code == "unguarded"]
    assert check.level == "warn" and "HARNESS_ROOT" in check.hint


def test_a_session_is_named_and_what_it_had_is_not_told_again(tmp_path: Path, own: Path) -> None:
    session(own / "sessions" / SESSION, tmp_path, **{"0001-user": message("0001-user", "old"),
            "0002-assistant": message("0002-assistant", "Old words.", stop="end", tokens_in="5")})  # fmt: skip
    query = Query("go on", str(tmp_path), resume_session_id=SESSION)
    assert hs.launch(query, tmp_path).argv == ("hs", "agent", SESSION)
    (own / "sessions" / SESSION / "messages" / "0003-user.md").write_text(message("0003-user", "go on"))
    new = message("0004-assistant", "New words.", stop="end", tokens_in="9", tokens_out="1")
    (own / "sessions" / SESSION / "messages" / "0004-assistant.md").write_text(new)
    state: dict = {"query": query, "folder": tmp_path}
    told = hs.parse("New words.", state) + hs.finish(state)
    assert [event.data["content"] for event in told if event.kind == "message"] == ["New words."]
    assert told[-1].data["cost"].input_tokens == 9


def test_there_are_no_options(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no options"):
        hs.launch(Query("x", str(tmp_path), additional_args=("--fast",)), tmp_path)


def test_a_child_that_was_killed_has_crashed() -> None:
    assert hs.error_of(Ending(None, 9)) == ("process_crashed", "the process was ended by signal 9")
    assert hs.error_of(Ending(0, 0, {"output": "x", "is_error": False})) is None


@requirement("A-57", "C-15")
def test_checks_name_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = {check.code: check.level for check in hs.checks({"cwd": str(tmp_path)})}
    assert found == {"bash_missing": "error", "jq_missing": "error", "curl_missing": "error", "no_provider": "warn",
                     "guarded": "info"}  # fmt: skip
    monkeypatch.setenv("OPENAI_API_URL", "http://127.0.0.1:1/v1/chat/completions")
    assert {check.code: check.level for check in hs.checks({})}["provider"] == "info"


@pytest.fixture
def marketplace(tmp_path: Path) -> Path:
    bundle.write(tmp_path / "marketplace", local=True)
    return tmp_path / "marketplace"


@pytest.mark.thorough
def test_install_doctor_and_uninstall(marketplace: Path, own: Path) -> None:
    found = runtime("hs")
    assert found.program() and not found.traces() and done(found.uninstall) == []
    assert [finding.message for finding in found.look(marketplace, Steps()).findings] == ["not installed"]
    assert done(found.install, marketplace) == [f"put the plugin into {own / 'plugins' / 'swarm'}"]
    assert done(found.install, marketplace) == [] and found.traces()
    assert [finding.status for finding in found.look(marketplace, Steps()).findings] == ["ok", "ok"]
    installed = found.install(marketplace, Steps())
    proof = enforcement.prove(found, installed)
    assert proof.status == "ok" and enforcement.earlier_checks(found, installed) == [], proof
    guard = own / "plugins" / "swarm" / "tools" / "write_file"
    guard.chmod(0o644)
    assert [finding.status for finding in found.look(marketplace, Steps()).findings][0] == "fail"
    assert enforcement.prove(found, installed).status == "fail"
    guard.unlink()
    assert (
        "differ" in found.look(marketplace, Steps()).findings[0].message
        or found.look(marketplace, Steps()).findings[0].status == "fail"
    )
    installed = found.install(marketplace, Steps())
    (own / "tools").mkdir()
    assert done(found.uninstall) and sorted(path.name for path in own.iterdir()) == ["tools"], "the user's own stays"


@requirement("B-45", "C-15")
def test_a_tool_before_the_guard_is_a_warning(marketplace: Path, tmp_path: Path, own: Path, monkeypatch) -> None:
    found = runtime("hs")
    found.install(marketplace, Steps())
    project = tmp_path / "project"
    local = project / ".harness" / "tools" / "write_file"
    local.parent.mkdir(parents=True)
    (project / "sub").mkdir()
    monkeypatch.chdir(project / "sub")
    monkeypatch.setenv("PWD", str(project / "sub"))
    local.write_text("#!/bin/sh\n")
    assert found.look(marketplace, Steps()).findings[-1].status == "ok", "it cannot be executed"
    local.chmod(0o755)
    shadow = found.look(marketplace, Steps()).findings[-1]
    assert shadow.status == "warn" and shadow.details == {"shadowed_by": [str(local)]} and str(local) in shadow.mend
    shutil.copy(ROOT / "integrations" / "hs" / "tools" / "write_file", local)
    assert found.look(marketplace, Steps()).findings[-1].status == "ok", "a copy of the guard is one"
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    local.write_text("#!/bin/sh\n")
    assert {check.code for check in hs.checks({"cwd": str(project / "sub")})} >= {"guard_shadowed"}


def test_a_folder_of_somebody_else_is_left_alone(marketplace: Path, own: Path) -> None:
    theirs = text_at(own / "plugins" / "swarm" / "tools" / "bash", "#!/bin/sh\n# mine\n")
    with pytest.raises(ClientFailed, match="not ours"):
        runtime("hs").install(marketplace, Steps())
    assert done(runtime("hs").uninstall) == [] and theirs.read_text().endswith("# mine\n")


def test_other_programs_called_hs_are_not_it(tmp_path: Path, own: Path) -> None:
    (tmp_path / "bin" / "hs").unlink()
    program_at(tmp_path / "bin" / "hs", "#!/bin/sh\n")
    assert runtime("hs").program() == ""
    own.mkdir()
    assert runtime("hs").program() == str(tmp_path / "bin" / "hs"), "who has its folder has it"
