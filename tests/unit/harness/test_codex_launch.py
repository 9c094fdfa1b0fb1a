"""The start of Codex by the harness codex: argv, exclusions from argv, trust in hooks, prompts, looks."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from support.files import folder_at, program_at
from support.requirement import requirement
from support.toml_reader import reader

from swarm_mcp.agents.harness import codex as skills_of_codex
from swarm_mcp.agents.harness import codex_overrides as overrides
from swarm_mcp.agents.harness import registry
from swarm_mcp.agents.harness.adapter import PERMISSIONS, Launch
from swarm_mcp.agents.harness.bridge import TOKEN
from swarm_mcp.agents.harness.codex_overrides import configured_servers, server_overrides
from swarm_mcp.agents.harness.query import McpServer, Query
from swarm_mcp.errors import Refused
from swarm_mcp.installation import plugin_source

SESSION = "01a202bc-06da-7911-be41-5931d6aa0af3"
SECRET = "hunter2-hunter2-hunter2"

codex = registry.get("codex")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, plugin_of) -> None:
    """No codex on PATH, and the hooks of the checkout."""
    empty = folder_at(tmp_path / "empty")
    monkeypatch.setenv("PATH", str(empty))
    plugin_of("codex")


def launched(tmp_path: Path, prompt: str = "hello", **wanted: object):
    folder = folder_at(tmp_path / "run")
    return codex.launch(Query(prompt, str(tmp_path), **wanted), folder)


def said_in(argv: tuple[str, ...]) -> dict:
    """Return the ``-c`` values, read as TOML."""
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


@requirement("D-11")
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
@requirement("C-26")
def test_a_name_that_is_no_id_never_gets_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match="is no session id of codex"):
        launched(tmp_path, resume_session_id=name)


@pytest.mark.parametrize(
    ("mode", "sandbox"), [("read-only", "read-only"), ("edit", "workspace-write"), ("yolo", "danger-full-access")]
)
@requirement("C-68")
def test_modes_are_sandboxes_and_nothing_is_ever_asked(tmp_path: Path, mode: str, sandbox: str) -> None:
    argv = launched(tmp_path, mode=mode).argv
    assert argv[argv.index("-s") + 1] == sandbox
    assert said_in(argv)["approval_policy"] == "never"
    assert not [word for word in argv if word.startswith("--dangerously")]


def told_in(launch: Launch) -> str:
    """Return the addition to the system prompt, printed by a hook from a private file."""
    file = launch.env.get(overrides.WORDS)
    return json.loads(Path(file).read_text())["hookSpecificOutput"]["additionalContext"] if file else ""


def test_an_added_system_prompt_may_be_of_any_length(tmp_path: Path) -> None:
    launch = launched(tmp_path, append_system_prompt="x" * 300_000)
    assert len(told_in(launch)) == 300_000 and max(map(len, launch.argv)) < 100_000


@requirement("D-02")
def test_settings_for_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_DEFAULT_MODEL", "luna")
    schema = {"type": "object", "additionalProperties": False}
    launch = launched(tmp_path, effort="max", system_prompt="Only\nthis", append_system_prompt='"quoted"\\\n\tü',
                      output_schema=schema)  # fmt: skip
    said = said_in(launch.argv)
    assert launch.argv[launch.argv.index("-m") + 1] == "gpt-6-luna"
    assert said["model_reasoning_effort"] == "max" and told_in(launch) == '"quoted"\\\n\tü'
    assert "quoted" not in " ".join(launch.argv), "no prompt stands in a command line"
    assert Path(said["model_instructions_file"]).read_text() == "Only\nthis"
    assert json.loads(Path(launch.argv[launch.argv.index("--output-schema") + 1]).read_text()) == schema
    assert launch.argv[launch.argv.index("-o") + 1] == str(tmp_path / "run" / "answer.json")
    assert launch.env["RUST_LOG"].startswith("error,"), "a user who silences it would silence denials too"
    assert said_in(launched(tmp_path, effort="max", model="gpt-5.5").argv)["model_reasoning_effort"] == "xhigh"


@requirement("C-67")
def test_nothing_secret_is_in_argv(tmp_path: Path) -> None:
    servers = {
        "db": McpServer("run-db", ("--x",), {"DB_PASSWORD": SECRET, "PATH": "/elsewhere"}, "/srv"),
        "web": McpServer(url="https://x/mcp", headers={"Authorization": f"Bearer {SECRET}", "X-Agent-ID": "a-1"}),
    }
    launch = launched(tmp_path, prompt=f"the key is {SECRET}", mcp_servers=servers)
    assert SECRET not in "\0".join(launch.argv) and "/elsewhere" not in "\0".join(launch.argv)
    found = said_in(launch.argv)["mcp_servers"]
    db, web = found["db"], found["web"]
    assert launch.env[web["bearer_token_env_var"]] == SECRET
    assert {header: launch.env[name] for header, name in web["env_http_headers"].items()} == {"X-Agent-ID": "a-1"}
    assert [launch.env[name] for name in db["env_vars"]] == [SECRET, "/elsewhere"]
    assert (db["command"], db["cwd"], db["args"][2:]) == ("/bin/sh", "/srv", ["run-db", "--x"])
    # Secrets have names that say so, and are kept from the agent's own commands; a folder's name is not.
    secret, path = db["env_vars"]
    assert secret.endswith("_SECRET") and path.endswith("_VALUE")
    assert set(said_in(launch.argv)["shell_environment_policy"]["set"]) == {secret, web["bearer_token_env_var"]}


@requirement("D-14")
def test_the_shell_gives_a_server_its_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    odd = "a 'b' \"c\" $HOME `x` \\ \n end"
    servers = server_overrides({"s": McpServer("/usr/bin/env", ("-0",), {"ONE": odd, "TWO_KEY": "2"})}, True, {})
    table = reader().loads(servers.overrides[0])["mcp_servers"]["s"]
    done = subprocess.run([table["command"], *table["args"]], env=servers.env, capture_output=True, check=True)
    found = dict(entry.split("=", 1) for entry in done.stdout.decode().split("\0") if entry)
    assert (found["ONE"], found["TWO_KEY"]) == (odd, "2")
    assert not [name for name in found if name.startswith("SWARM_RUN_")]


@requirement("D-14")
def test_servers_are_approved_and_named_as_the_run_needs(tmp_path: Path) -> None:
    servers = {"swarm": McpServer("a"), "odd name.é": McpServer("b"), "web": McpServer(url="http://x")}
    taken = {"web": "command", "swarm": "command"}
    tables = reader().loads(server_overrides(servers, False, taken).overrides[0])["mcp_servers"]
    assert list(tables) == ["swarm", "odd_name__", "web_run"]
    assert [table.get("default_tools_approval_mode") for table in tables.values()] == ["approve", None, None]
    tables = reader().loads(server_overrides(servers, True, {}).overrides[0])["mcp_servers"]
    assert {table["default_tools_approval_mode"] for table in tables.values()} == {"approve"}
    with pytest.raises(Refused, match="cannot have a variable called 'A-B'"):
        server_overrides({"s": McpServer("a", env={"A-B": "x"})}, True, {})


def test_names_in_the_users_settings_are_seen(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[mcp_servers.a]\ncommand = "x"\n[mcp_servers."b c"]\nurl = "y"\n[mcp_servers.b.env]\nurl = "z"\n')
    assert configured_servers(str(file), str(tmp_path / "none")) == {"a": "command", "b c": "url"}


def test_hashes_are_what_codex_said_they_are() -> None:
    """Recorded from `hooks/list` of codex 0.169."""
    patch = {"type": "command", "command": 'python3 "/a b/é.py"; exit 0', "timeout": 5}
    start = {"type": "command", "command": "true", "timeout": 10}
    before = {"matcher": "^(apply_patch|Bash)$", "hooks": [patch]}
    hooks = {"PreToolUse": [before], "SessionStart": [{"hooks": [start]}]}
    source = "/<session-flags>/config.toml"
    assert overrides.hashes(hooks) == {
        f"{source}:pre_tool_use:0:0": "sha256:9caa663907994a7885a99d97c3a6a7a03b1aba9e0b6295121d47f5ce46d8b7a1",
        f"{source}:session_start:0:0": "sha256:edffedc1093fd0f2494bf54a767de01445ade4b5411eee0867184ff7aa065d48",
    }


def test_our_hooks_and_only_ours_are_trusted(tmp_path: Path) -> None:
    said = said_in(launched(tmp_path).argv)
    hooks = said["hooks"]
    state = hooks.pop("state")
    assert set(hooks) == set(json.loads((plugin_source() / "integrations/codex/hooks.json").read_text())["hooks"])
    assert {key: entry["trusted_hash"] for key, entry in state.items()} == overrides.hashes(hooks)
    assert said["plugins"] == {"swarm@swarm": {"enabled": False}} and said["features"] == {"hooks": True}
    command = hooks["PreToolUse"][0]["hooks"][0]["command"]
    assert str(plugin_source()) in command and "PLUGIN_ROOT" not in command


def test_a_folder_with_odd_signs_stays_one_word(tmp_path: Path) -> None:
    folder = tmp_path / 'a "b" $c `d`'
    (folder / "integrations/codex").mkdir(parents=True)
    hook = {"type": "command", "command": f'echo "{overrides.ROOT}/y"', "timeout": 5}
    (folder / "integrations/codex/hooks.json").write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))
    command = overrides.plugin_hooks(folder)["Stop"][0]["hooks"][0]["command"]
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
    hooks = overrides.plugin_hooks(plugin_source())
    ours, log = overrides.hashes(hooks), tmp_path / "log"
    log.touch()
    program = tmp_path / "codex"

    def write(keys: list[str]) -> None:
        program.write_text(STAND_IN.format(python=sys.executable, keys=keys, log=str(log)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    write(list(ours))
    assert set(overrides.trust_for(str(program), hooks).values()) == {"sha256:other"}
    assert set(overrides.trust_for(str(program), hooks).values()) == {"sha256:other"}
    assert log.read_text().split() == ["initialize", "hooks/list"]
    write([])  # another build, with a wrong answer
    assert overrides.trust_for(str(program), hooks) == ours
    assert overrides.trust_for(str(tmp_path / "none"), hooks) == ours


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    user = ".codex/skills"
    for place, name, text in (("run", "tidy", "TIDY"), (user, "mine", "MINE"), (user, "tidy", "NO")):
        folder = folder_at(tmp_path / place / name)
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
@requirement("A-52")
def test_a_prompt_that_begins_with_a_skill_has_its_text(skills: Path, prompt: str, begins: str, notes: int) -> None:
    found = skills_of_codex.with_skill(prompt, (str(skills / "run/tidy"),), [str(skills / ".codex/skills")])
    assert found.text.startswith(begins) and len(found.notes) == notes
    if begins.startswith("---"):
        assert found.text.endswith(f"User request: {prompt.partition(' ')[2]}") and "NO" not in found.text


@requirement("C-62", "C-64")
def test_the_model_is_told_of_skills_that_codex_does_not_find(skills: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(skills / "nothing"))
    before = sorted(str(path) for path in skills.rglob("*"))
    launch = launched(skills, append_system_prompt="Mark", skills=(str(skills / "run/tidy"),))
    said = told_in(launch)
    assert said.startswith("Mark\n\n") and f"- tidy: How to tidy (file: {skills}/run/tidy/SKILL.md)" in said
    assert "TIDY" not in said
    monkeypatch.setenv("CODEX_HOME", str(skills / ".codex"))
    assert told_in(launched(skills, skills=(str(skills / "run/tidy"),))) == ""
    assert sorted(str(path) for path in skills.rglob("*") if path.name != "words.json") == before
    assert codex.format_command("tidy") == "/tidy"
    assert "no skill called 'nope'" in launched(skills, prompt="/nope x").notes[0]


@requirement("A-57")
def test_looks_change_nothing_and_never_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder_at(tmp_path / "codex")
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


@requirement("C-15")
def test_hooks_that_would_not_run_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    program = tmp_path / "codex"
    some = [f"{overrides.SOURCE}:stop:0:0"]
    program_at(program, STAND_IN.format(python=sys.executable, keys=some, log="/dev/null"))
    found = {check.code: check for check in codex.checks({"cwd": str(tmp_path), "command": [str(program)]})}
    assert found["codex_hooks_missing"].level == "warn" and found["codex_hooks_missing"].hint
    program.write_text(f"#!{sys.executable} -S\n")
    found = {check.code: check for check in codex.checks({"cwd": str(tmp_path), "command": [str(program)]})}
    assert found["codex_hooks_unknown"].level == "warn"


def test_images(tmp_path: Path) -> None:
    argv = launched(tmp_path, images=("a.png", "/b.png")).argv
    assert [word for before, word in zip(argv, argv[1:]) if before == "-i"] == [str(tmp_path / "a.png"), "/b.png"]


@pytest.mark.parametrize(
    ("wanted", "policy", "sandbox"),
    [({"on_permission": print}, "on-request", "workspace-write"), ({"stream_text": True}, "never", "workspace-write"),
     ({"on_permission": print, "stream_text": True, "mode": "read-only"}, "never", "read-only")],
)  # fmt: skip
def test_a_run_that_asks_or_streams_goes_through_the_app_server(
    wanted: dict, policy: str, sandbox: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token of the questions is in no file and in no argv, and the model has not that server."""
    program_at(tmp_path / "empty" / "codex", "#!/bin/sh\n")
    asked = {PERMISSIONS: McpServer(url="http://127.0.0.1:1/", headers={"Authorization": "Bearer tok-1234567890"})}
    found = launched(tmp_path, mcp_servers=asked, additional_directories=("/more",), resume_session_id=SESSION,
                     fork_session=True, model="m", output_schema={"type": "object"}, **wanted)  # fmt: skip
    settings = json.loads(Path(found.argv[-1]).read_text())
    argv = settings["argv"]
    assert argv[:2] == ["codex", "app-server"] and found.stdin == "hello"
    assert (settings["method"], settings["params"]["threadId"]) == ("thread/fork", SESSION)
    assert (settings["params"]["sandbox"], settings["params"]["model"]) == (sandbox, "m")
    assert settings["turn"]["outputSchema"] == {"type": "object"}
    values = said_in(tuple(argv))
    assert values["approval_policy"] == policy and values["sandbox_workspace_write"]["writable_roots"] == ["/more"]
    assert PERMISSIONS not in values.get("mcp_servers", {})
    assert "tok-1234567890" not in Path(found.argv[-1]).read_text()
    assert settings["permissions"] == "http://127.0.0.1:1/" and found.env[TOKEN] == "Bearer tok-1234567890"


def test_a_function_of_the_caller_may_take_long(tmp_path: Path) -> None:
    servers = {name: McpServer(url="http://127.0.0.1:1/") for name in ("client_tools", "other")}
    tables = said_in(launched(tmp_path, mcp_servers=servers).argv)["mcp_servers"]
    assert [tables[name].get("tool_timeout_sec", 0) > 3600 for name in servers] == [True, False]
