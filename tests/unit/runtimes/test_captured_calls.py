"""Calls captured from the clients, Codex's part of a bundle, earlier installations, and large payloads in any shell."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.files import program_at
from support.fixtures import SWARM, Ground
from support.requirement import requirement
from support.sessions import ROOT, captured, instances, new_session, peer_locks, ready_store, run, said_by

from swarm_mcp.doctor import enforcement
from swarm_mcp.runtimes import bundle, hook_config, runtime
from swarm_mcp.runtimes.base import with_fields
from swarm_mcp.runtimes.codex import files_of
from swarm_mcp.runtimes.installed import Installed
from swarm_mcp.runtimes.users_file import RECORD, read_record

pytestmark = pytest.mark.slow


OPENCODE = {
    "PreToolUse.write": "new.md",
    "PreToolUse.write.subagent": "sub.md",
    "PreToolUse.edit": "notes.md",
    "PreToolUse.apply_patch": "moved.md other.md",
    "PreToolUse.bash": "notes.md",  # with a working directory of its own
    "PreToolUse.mcp__files__write_file": "n.md",
}
# Client -> its captured calls, and the files that each of them writes.
WRITES = {
    "auggie": {
        "PreToolUse.save-file": "free.md",
        "PreToolUse.str-replace-editor": "notes.md",
        "PreToolUse.remove-files": "gone.md",
        "PreToolUse.apply_patch": "p.md",
        "PreToolUse.launch-process.cwd": "sub/sh.txt",
        "PreToolUse.write_file_files": "srv.md",
    },
    "cline": {
        "PreToolUse.editor": "free.md",
        "PreToolUse.editor.subagent": "notes.md",
        "PreToolUse.apply_patch": "other.md",
        "PreToolUse.run_commands": "a.txt",
    },
    "kimi": {
        "PreToolUse.Write": "notes2.md",
        "PreToolUse.Write.append": "rel.md",
        "PreToolUse.Edit": "notes2.md",
        "PreToolUse.Bash.cwd": "sub/here.md",
        "PreToolUse.Bash.background": "bg.md",
        "PreToolUse.Bash.subagent": "sub.txt",
        "PreToolUse.mcp__files__write_file": "srv.md",
    },
    "letta": {
        "PreToolUse.Write": "free.md",
        "PreToolUse.Edit": "notes.md",
        "PreToolUse.ApplyPatch": "p.md",
        "PreToolUse.Bash": "shell.txt",
    },
    "omp": {
        "PreToolUse.write": "new.md",
        "PreToolUse.write.subagent": "sub.md",
        "PreToolUse.edit": "notes.md",
        "PreToolUse.edit.sections": "notes.md",
        "PreToolUse.edit.patch": "p.md",
        "PreToolUse.ast_edit": "a.py",
        "PreToolUse.bash": "shell.txt",
        "PreToolUse.mcp__files_write_file": "mcp.md",
    },
    "qwen": {
        "PreToolUse.edit": "notes.md",
        "PreToolUse.write_file.subagent": "sub.md",
        "PreToolUse.run_shell_command.directory": "sub/here.md",
        "PreToolUse.run_shell_command.background": "bg.md",
        "PreToolUse.mcp__files__write_file": "srv.md",
    },
    "opencode": OPENCODE,
    "kilo": OPENCODE,
}
CAPTURED_FROM = {"kilo": "opencode"}
CASES = [(name, call, file) for name, calls in WRITES.items() for call in calls for file in calls[call].split()]


@pytest.mark.parametrize(("name", "call", "file"), CASES)
@pytest.mark.sampled
def test_a_write_is_denied_beside_a_lock_and_made_elsewhere(repo: Path, name: str, call: str, file: str):
    dialect = hook_config(name).dialect
    payload = with_fields(captured(CAPTURED_FROM.get(name, name), call, repo), dialect, {"session_id": new_session()})
    passed = run(name, "pre_tool_use", payload)
    assert (passed.code, passed.out) == (0, "")
    peer_locks(repo, repo / file)
    denied = run(name, "pre_tool_use", payload)
    assert denied.code == dialect.denial_status
    assert "swarm lock blocked" in denied.out and os.path.basename(file) in denied.out


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        ("omp", "SessionStart.startup", "PostToolUse.bash"),
        ("opencode", "SessionStart.startup", "PostToolUse.bash"),
        ("kilo", "SessionStart.startup", "PostToolUse.bash"),
        ("cline", "SessionStart", "PostToolUse.run_commands"),
    ],
)
def test_a_session_comes_and_goes_with_its_sub_agents(repo: Path, name: str, start: str, end: str):
    session, source = new_session(), CAPTURED_FROM.get(name, name)

    def told(hook: str, payload: str) -> str:
        ran = run(name, hook, {**captured(source, payload, repo), "session_id": session}, patient=True)
        assert (ran.code, ran.err) == (0, "")
        return ran.out

    assert f"is registered as `{name} " in told("session_start", start)
    assert captured(source, "SubagentStart", repo)["agent_id"] in told("subagent", "SubagentStart")
    assert told("turn", "UserPromptSubmit") == told("post_tool_use", end) == ""
    assert told("subagent", "SubagentStop") == told("turn", "Stop") == ""
    assert [row["session_id"] for row in instances()] == [session]
    assert told("session_end", "SessionEnd") == "" and instances() == []


@pytest.fixture
def marketplace(tmp_path: Path) -> Path:
    folder = tmp_path / 'an $odd `folder` "of" mine' / "marketplace"
    bundle.write(folder, local=True)
    return folder


def commands(files: dict[str, bytes]) -> dict[str, str]:
    tree = json.loads(files["integrations/codex/hooks.json"])["hooks"]
    return {event: hook["command"] for event, (group,) in tree.items() for hook in group["hooks"] if "command" in hook}


def test_it_is_small_and_whole(marketplace: Path) -> None:
    files = files_of(marketplace)
    assert len(files) < 20 and not [name for name in files if name.endswith((".py", ".sh"))]
    manifest = json.loads(files[".codex-plugin/plugin.json"])
    named = [value for value in manifest.values() if str(value).startswith("./")]
    assert named and all(any(name.startswith(value[2:]) for name in files) for value in named)
    assert all("CLAUDE_PLUGIN_ROOT" not in command for command in commands(files).values())


@requirement("P-06")
def test_its_hooks_deny_from_the_marketplace_folder(ground: Ground, marketplace: Path) -> None:
    ground.session("mine", "me", runtime="codex")
    ground.lock(ground.session("peer", "peer"), "held.py", "because")
    patch = "*** Begin Patch\n*** Add File: held.py\n+x\n*** End Patch\n"
    payload = {"session_id": "mine", "cwd": ground.scope, "hook_event_name": "PreToolUse",
               "tool_name": "apply_patch", "tool_input": {"command": patch}}  # fmt: skip
    env = {name: os.environ[name] for name in ("HOME", "PATH", "SWARM_STATE_DIR")}
    command, env["SWARM_DB_PATH"] = commands(files_of(marketplace))["PreToolUse"], ground.database
    assert "swarm lock blocked" in said_by(command, payload, env=env, cwd=ground.repo)


@pytest.mark.parametrize("gone", [bundle.ENTRY, bundle.HOOK], ids=["hook.py", "hook.sh"])
def test_a_marketplace_folder_that_is_gone_denies_nothing(marketplace: Path, gone: str) -> None:
    wired = commands(files_of(marketplace))
    (marketplace / gone).unlink()
    for event in ("PreToolUse", "PostToolUse"):
        done = subprocess.run(["/bin/sh", "-c", wired[event]], input="{}", capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, ""), (event, done)


def test_new_code_leaves_it_as_it_is_and_another_name_of_the_server_does_not(marketplace: Path) -> None:
    before = files_of(marketplace)
    (marketplace / "swarm_hook_core" / "core.py").write_text("# newer\n")
    assert files_of(marketplace) == before
    bundle.write(marketplace, local=True, servers={"codex": "swarm-locks"})
    assert files_of(marketplace) != before and set(files_of(marketplace)) == set(before)


def test_of_a_folder_that_is_not_whole_there_is_nothing(tmp_path: Path) -> None:
    assert files_of(tmp_path) == {}


STAND_IN = "integrations/stand-in.sh"
CLIENTS = ("claude-code", "codex")


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A marketplace folder as the earlier release left it."""
    folder = tmp_path / "marketplace"
    bundle.write(folder, local=True)
    record = read_record(folder)
    record["transports"] = dict.fromkeys(CLIENTS, "mcp_tool")
    record["files"] = sorted([*record["files"], STAND_IN])
    (folder / RECORD).write_text(json.dumps(record))
    (folder / STAND_IN).write_text("exec cat\n")
    for client in CLIENTS:
        path = folder / f"integrations/{client}/hooks.json"
        tree = json.loads(path.read_text())
        (group,) = tree["hooks"]["PreToolUse"]
        (hook,) = group["hooks"]
        script = f'"${{CLAUDE_PLUGIN_ROOT}}/{STAND_IN}"'
        standing_in = f" && [ -r {script} ] && exec /bin/sh {script} swarm-x '' "
        command = hook["command"].replace(" && exec ", standing_in, 1)
        group["hooks"] = [{"type": "mcp_tool", "tool": "check_write"}, {**hook, "command": command}]
        path.write_text(json.dumps(tree))
    return folder


@pytest.mark.sampled
@pytest.mark.parametrize("client", CLIENTS)
def test_doctor_names_it_and_an_install_takes_it_away(client: str, earlier: Path) -> None:
    installed = Installed(earlier, f"integrations/{client}")
    (found,) = enforcement.earlier_checks(runtime(client), installed)
    assert (found.status, found.mend) == ("warn", f"swarm-mcp install --client {client}")
    old = installed.commands()
    bundle.write(earlier, local=True)
    assert enforcement.earlier_checks(runtime(client), installed) == []
    assert not (earlier / STAND_IN).exists() and "transports" not in read_record(earlier)
    # A session that runs on keeps the old command in mind, and has it checked all the same.
    (command,) = [hook.command for hook in old if hook.event == "PreToolUse"]
    assert STAND_IN in command
    assert enforcement.prove(runtime(client), Installed(earlier, f"integrations/{client}", old)).status == "ok"


def test_install_says_that_the_option_is_gone(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program_at(tmp_path / "codex", "#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    done = ground.swarm("install", "--dry-run", "--client", "codex", "--transport", "mcp_tool")
    assert done.code == 0 and "--transport is gone" in done.err and done.err.count("\n") == 1


def test_a_plugin_of_an_earlier_release_starts_the_server() -> None:
    done = subprocess.run(
        [*SWARM, "serve", "--transport", "mcp_tool"], input=b"", capture_output=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == (b"", b"")


INTEGRATIONS = ROOT / "integrations"
SECONDS = 600.0  # 200 KB took 20 s when the scripts were quadratic, so 10 MB would take 14 hours
MEMBERS = {
    "session_id": "abc",
    "tool_name": "Write",
    "tool_input": {"file_path": "/checkout/f", "content": 'a "tool_name": "b" \\ ü\n' * 400_000},
}
PAYLOADS = {
    ", ".join(order): json.dumps({name: MEMBERS[name] for name in order}, ensure_ascii=False).encode()
    for order in itertools.permutations(MEMBERS)
}
SHELLS = {
    "dash": ["dash"],
    "bash": ["bash", "--posix"],
    "busybox": ["busybox", "sh"],
    "zsh": ["zsh", "--emulate", "sh"],
}
# The hooks of hs that read the payload into a variable.
HS_HOOKS = ("assemble/40-swarm", "sources/90-swarm", "tool_exec/05-swarm-lock")


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> list[str]:
    argv = SHELLS[request.param]
    if not shutil.which(argv[0]):
        pytest.skip(f"there is no {argv[0]}")
    return argv


def ran(argv: list[str | Path], payload: bytes, **env: str) -> bytes:
    done = subprocess.run(
        argv, input=payload, env={**os.environ, **env}, capture_output=True, check=True, timeout=SECONDS
    )
    return done.stdout


def test_the_payload_is_over_10_mb() -> None:
    assert min(map(len, PAYLOADS.values())) > 10_000_000


@pytest.mark.parametrize("order", PAYLOADS)
@pytest.mark.sampled
def test_the_launcher_without_a_python_denies_in_linear_time(shell: list[str], order: str) -> None:
    ready_store()
    hook = [*shell, INTEGRATIONS / "hook.sh", "claude-code"]
    told = json.loads(ran([*hook, "pre_tool_use", "/nowhere/python"], PAYLOADS[order], SWARM_FAIL="closed"))
    assert told["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert ran([*hook, "post_tool_use"], PAYLOADS[order]) == b""


@pytest.mark.thorough
def test_the_guards_and_hooks_of_hs_take_linear_time(shell: list[str], tmp_path: Path) -> None:
    plugin, tools = tmp_path / "hs", tmp_path / "core" / "tools"
    shutil.copytree(INTEGRATIONS / "hs", plugin)
    (plugin / "lib" / "python.sh").write_text(f"python={sys.executable}\n")
    program_at(tools / "write_file", "#!/bin/sh\nexec cat\n")
    payload = PAYLOADS["tool_input, session_id, tool_name"]
    env = {"HARNESS_SOURCES": str(tools.parent), "HARNESS_SESSION": ""}
    assert ran([*shell, plugin / "tools" / "write_file", "--exec"], payload, **env).strip() == payload
    for name in HS_HOOKS:
        ran([*shell, plugin / "hooks.d" / name], payload, **env)
