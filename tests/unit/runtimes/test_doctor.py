"""The doctor: its checks, their order, and that it tells a lock that holds from one that does not."""

import errno
import json
import os
import shlex
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.files import folder_at, program_at, text_at
from support.fixtures import Ground, Sleeper
from support.requirement import requirement

import swarm_mcp
from swarm_hook_core import denial, state, traces
from swarm_mcp.doctor import enforcement, own_checks
from swarm_mcp.installation import coordinator_command, interpreter, marketplace_folder
from swarm_mcp.runtimes import NAMES, bundle, runtime
from swarm_mcp.runtimes.codex import files_of
from swarm_mcp.runtimes.installed import HookCommand, Installed
from swarm_mcp.runtimes.users_file import put_folder
from swarm_mcp.store import schema

pytestmark = pytest.mark.slow

CONTRACT = [
    "binary", "database", "scope", "live_instances", "stale_instances", "skill_discovery", "plugin_discovery", "env",
]  # fmt: skip

FAKE_CLAUDE = """
import json, os, sys
state = json.load(open({state!r}))
words = [word for word in sys.argv[1:] if word != "--json"]
if words[:2] == ["plugin", "list"]:
    print(json.dumps(state["plugins"]))
elif words[:3] == ["plugin", "marketplace", "list"]:
    print("[]")
else:
    sys.exit("unexpected: " + " ".join(words))
"""
FAKE_CODEX = """
import json, sys
state = json.load(open({state!r}))
if sys.argv[1:] != ["app-server"]:
    sys.exit("unexpected: " + " ".join(sys.argv[1:]))
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        hooks = state["hooks"] if request["method"] == "hooks/list" else []
        result = {{"data": [{{"hooks": hooks, "warnings": [], "errors": []}}]}}
        print(json.dumps({{"id": request["id"], "result": result}}), flush=True)
"""


def checks(ground: Ground, *argv: str) -> dict[str, dict]:
    """Every check by its name; the exit code is held against them."""
    done = ground.swarm("doctor", "--json", *argv)
    report = done.json
    failed = [check for check in report["checks"] if check["status"] == "fail"]
    assert done.code == int(bool(failed)) and report["ok"] is not bool(failed) and report["failed"] == len(failed)
    assert all(check["status"] in ("ok", "info", "warn", "fail") for check in report["checks"])
    return {check["name"]: check for check in report["checks"]}


def test_the_contracts_checks_come_first_and_in_order(ground: Ground, bin_folder):
    found = checks(ground)
    assert list(found)[:8] == CONTRACT
    assert {"sqlite", "faults"} <= set(found)
    assert found["clients"]["status"] == "info"
    assert list(checks(ground, "--no-clients"))[:8] == CONTRACT


def test_a_new_house_is_in_order_and_looking_builds_nothing(ground: Ground, bin_folder):
    found = checks(ground)
    assert not [check for check in found.values() if check["status"] in ("fail", "warn")]
    assert found["database"]["status"] == "info" and not os.path.exists(os.path.dirname(ground.database))
    assert swarm_mcp.__version__ in found["binary"]["message"]


def test_text_has_a_line_for_each_and_the_mending_of_what_is_wrong(ground: Ground, bin_folder):
    text_at(Path(ground.database), "no database")
    done = ground.swarm("doctor")
    assert done.code == 1 and done.err == ""
    lines = done.out.splitlines()
    for name in CONTRACT:
        assert [line for line in lines if line.split("] ")[-1].startswith(f"{name}: ")], name
    at = next(number for number, line in enumerate(lines) if "[FAIL] database: " in line)
    assert lines[at + 1].strip().startswith("mend: ") and ground.database in lines[at + 1]
    assert "failed" in lines[-1]


def test_the_database_check_tells_readable_from_writable(ground: Ground, bin_folder):
    ground.session("s")
    check = checks(ground)["database"]
    assert check["status"] == "ok" and check["details"]["path"] == ground.database
    assert check["details"]["size_bytes"] == os.path.getsize(ground.database)
    ground.sql("PRAGMA user_version = 2")
    check = checks(ground)["database"]
    assert check["status"] == "fail" and "version 2" in check["message"]


@pytest.mark.parametrize(
    ("harm", "status", "words"),
    [
        ("DROP INDEX swarm_lock_key_idx", "warn", "there is no index swarm_lock_key_idx"),
        ("DROP TABLE swarm_team_documents", "warn", "there is no table swarm_team_documents"),
        ("ALTER TABLE context DROP COLUMN takes", "warn", "context has no column takes"),
        ("", "ok", "readable and writable"),
    ],
)
def test_the_database_check_names_what_the_store_lacks(ground: Ground, bin_folder, harm: str, status: str, words: str):
    ground.session("s1")
    if harm:
        ground.sql(harm)
    check = checks(ground)["database"]
    assert check["status"] == status and words in check["message"], check


def test_the_database_check_finds_damaged_pages(ground: Ground, bin_folder):
    ground.session("s1")
    (found,) = ground.sql("SELECT rootpage FROM sqlite_master WHERE name = 'swarm_lock_key_idx'")
    ground.sql("PRAGMA wal_checkpoint(TRUNCATE)")
    with open(ground.database, "r+b") as file:
        file.seek((found["rootpage"] - 1) * schema.PAGE_BYTES)
        file.write(b"\xff" * 64)
    check = checks(ground)["database"]
    assert check["status"] == "fail" and check["details"]["damage"], check


def test_scope_says_where_it_comes_from(ground: Ground, bin_folder, monkeypatch: pytest.MonkeyPatch):
    def source(*argv: str) -> str:
        return checks(ground, *argv)["scope"]["details"]["scope_source"]

    assert source() == "git_root"
    monkeypatch.setenv("SWARM_MCP_SCOPE", "/env")
    assert source() == "env"
    assert source("--scope", "/flag") == "flag"
    monkeypatch.delenv("SWARM_MCP_SCOPE")
    outside = folder_at(ground.folder / "outside")
    told = {check["name"]: check for check in ground.swarm("doctor", "--json", cwd=outside).json["checks"]}["scope"]
    assert (told["status"], told["details"]["scope_source"], told["details"]["git_root"]) == (
        "warn",
        "cwd_fallback",
        None,
    )


def test_live_quiet_and_gone_sessions_are_told_apart(ground: Ground, bin_folder):
    live = ground.session("live", "one")
    ground.stranger("quiet", heartbeat=int(time.time()) - 45)
    with Sleeper() as client:
        gone = ground.session("gone", "two", client=client.identity)
    found = checks(ground)
    assert found["live_instances"]["details"]["count"] == 2
    assert {row["id"] for row in found["live_instances"]["details"]["instances"]} == {live["id"], "quiet"}
    stale = found["stale_instances"]
    assert (stale["status"], stale["details"]["count"], stale["details"]["gone"]) == ("warn", 1, [gone["id"]])
    assert stale["mend"] == "swarm-mcp cleanup"
    ground.backdate(live, 3600)
    ground.swarm("cleanup")
    ground.sql("DELETE FROM instances WHERE id = 'quiet'")
    found = checks(ground)
    assert found["stale_instances"]["status"] == "ok" and found["live_instances"]["details"]["count"] == 1


def test_recorded_faults_are_shown(ground: Ground, bin_folder):
    assert checks(ground)["faults"]["status"] == "ok"
    state.record("codex", "pre_tool_use", "first\nfault")
    state.record("claude-code", "turn", "second fault")
    check = checks(ground)["faults"]
    assert check["status"] == "warn" and "second fault" in check["message"] and "claude-code" in check["message"]
    assert check["details"]["log"] == state.fault_log() and "2 " in check["message"]
    assert "second fault" in ground.swarm("doctor").out


def test_a_state_folder_that_cannot_be_written_is_found(ground: Ground, bin_folder, monkeypatch, tmp_path: Path):
    assert checks(ground)["state"]["status"] == "ok"
    place = Path(traces.traces_dir()) / "1.2"
    (place / "codex.one").mkdir(parents=True)
    check = checks(ground)["state"]
    assert check["status"] == "fail" and "codex.one is no ordinary file" in check["message"] and check["mend"]
    (place / "codex.one").rmdir()
    (place / "codex.one").write_text("")
    assert checks(ground)["state"]["status"] == "ok"
    monkeypatch.setenv("SWARM_STATE_DIR", str(tmp_path / "file"))
    (tmp_path / "file").write_text("not a folder\n")
    check = checks(ground)["state"]
    assert check["status"] == "fail" and "Not a directory" in check["message"], check
    assert (tmp_path / "file").read_text() == "not a folder\n"


def test_a_full_disk_is_found(ground: Ground, bin_folder, monkeypatch: pytest.MonkeyPatch):
    folder = Path(os.environ["SWARM_STATE_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    with monkeypatch.context() as patch:
        patch.setattr(own_checks, "write_all", lambda *_given: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        found = own_checks.finding()
    assert found.status == "fail" and f"{folder}: full" in found.message
    assert own_checks.finding().status == "ok" and not list(folder.glob("probe*"))


def test_old_faults_are_history(ground: Ground, bin_folder):
    state.record("codex", "turn", "long ago")
    path = Path(state.fault_log())
    row = json.loads(path.read_text())
    path.write_text(json.dumps({**row, "at": row["at"] - 2 * 86400}) + "\n")
    assert checks(ground)["faults"]["status"] == "ok"


@pytest.mark.parametrize(
    "line",
    [b'{"at":"x","runtime":1,"hook":2,"fault":3}', b"[]", b"{", b"\xff\xfe", b'{"at":null}', b'{"at":1e400}', b"",
     b"[" * 5000,
     b'{"at": 99999999999, "runtime": ["x"], "hook": null, "fault": {"a": 1}}'],
)  # fmt: skip
def test_an_odd_fault_log_does_not_make_the_doctor_ill(ground: Ground, bin_folder, line: bytes):
    state.record("codex", "turn", "real fault")
    with open(state.fault_log(), "ab") as log:
        log.write(line + b"\n")
    assert checks(ground)["faults"]["status"] in ("ok", "warn")


def test_the_environment_is_shown(ground: Ground, bin_folder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGENT_IDENTITY", "work")
    check = checks(ground)["env"]
    assert check["status"] == "info" and check["details"]["AGENT_IDENTITY"] == "work"
    assert check["details"]["SWARM_DB_PATH"] == ground.database


def test_an_installed_folder_that_differs_is_told(ground: Ground, bin_folder):
    assert checks(ground)["plugin_discovery"]["status"] == "info"
    bundle.write(marketplace_folder(), local=True)
    assert checks(ground)["plugin_discovery"]["status"] == "ok"
    (marketplace_folder() / "LICENSE").write_text("changed")
    check = checks(ground)["plugin_discovery"]
    assert (check["status"], check["mend"], check["details"]["different"]) == ("warn", "swarm-mcp install", ["LICENSE"])


class Fakes:
    """Stand-ins for the two clients, with the plugin installed from the real marketplace folder."""

    def __init__(self, bin_folder: Path, folder: Path):
        self.bin, self.folder = bin_folder, folder
        bundle.write(marketplace_folder(), local=True)

    def put(self, name: str, program: str, state: dict) -> None:
        path = text_at(self.folder / f"{name}.json", json.dumps(state))
        script = text_at(self.bin / name, f"#!{sys.executable} -IS\n" + program.format(state=str(path)))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)

    def claude(self, **changes) -> Path:
        """Install Claude Code; it runs the plugin in place. Return the plugin's root."""
        plugin = {"id": "swarm@swarm", "version": swarm_mcp.__version__, "enabled": True, "errors": [],
                  "readFromFolder": str(marketplace_folder())}  # fmt: skip
        self.put("claude", FAKE_CLAUDE, {"plugins": [{**plugin, **changes}] if changes.get("id", "x") else []})
        return marketplace_folder()

    def codex(self, trust: str = "trusted") -> Path:
        """Install Codex; it runs its own copy. Return the copy's root."""
        copy = Path(os.environ["CODEX_HOME"], "plugins/cache/swarm/swarm", swarm_mcp.__version__)
        if not copy.exists():
            put_folder(copy, files_of(marketplace_folder()))
        wired = json.loads((copy / "integrations/codex/hooks.json").read_text())["hooks"]
        hooks = [
            {"key": event, "pluginId": "swarm@swarm", "eventName": event[0].lower() + event[1:], "enabled": True,
             "trustStatus": trust, "currentHash": "h",
             "command": groups[0]["hooks"][0]["command"].replace("${CLAUDE_PLUGIN_ROOT}", str(copy))}
            for event, groups in wired.items()
        ]  # fmt: skip
        self.put("codex", FAKE_CODEX, {"hooks": hooks})
        return copy


@pytest.fixture
def fakes(bin_folder: Path, tmp_path: Path) -> Fakes:
    return Fakes(bin_folder, tmp_path)


HOOK = "integrations/hook.py"


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_a_canary_proves_that_locks_hold(ground: Ground, fakes: Fakes, name: str):
    fakes.claude() if name == "claude-code" else fakes.codex()
    found = checks(ground)
    assert found[f"{name} plugin"]["status"] == "ok", found
    proof = found[f"{name} enforcement"]
    assert proof["status"] == "ok" and "ms" in proof["message"], proof
    assert bundle.ENTRY in proof["details"]["command"] and proof["details"]["milliseconds"] > 0
    assert not os.path.exists(ground.database)


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("", "the release in use is unknown; with %s"), ("codex-cli %s", "release %s is in use and was tested on"),
        ("codex-cli 99.1.2-beta", "tested up to %s; here 99.1.2-beta; with %s"),
    ],
)  # fmt: skip
def test_the_release_in_use_is_named_beside_the_one_that_was_tested(bin_folder: Path, says: str, words: str) -> None:
    client = runtime("codex")
    tested = client.coverage.verified.version
    program_at(bin_folder / "codex", f"#!/bin/sh\necho '{says.replace('%s', tested)}'\n")
    found = enforcement.coverage(client)
    assert words.replace("%s", tested) in found.message and found.details["tested"] == tested


DENY_ALL = (
    'print(\'{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",'
    ' "permissionDecisionReason": "swarm lock blocked everything"}}\')'
)


TAMPERED = [
    "", "import sys; sys.exit(2)", "raise RuntimeError('broken hook')", "print('swarm lock blocked')",
    DENY_ALL, DENY_ALL.replace('{"hookSpecificOutput"', '{"decision": "block", "hookSpecificOutput"'),
    DENY_ALL.replace('"deny"', '"allow"'), "print('{\"hookSpecificOutput\": 5}')", "print('[1]')", "print('{}')",
    "print('log line'); " + DENY_ALL, "import sys; sys.stdout.buffer.write(b'\\xff\\xfe')",
]  # fmt: skip


@pytest.mark.parametrize("name", ["claude-code", "codex"])
@pytest.mark.thorough
def test_a_tampered_hook_is_found_out(ground: Ground, fakes: Fakes, name: str):
    root = fakes.claude() if name == "claude-code" else fakes.codex()
    proofs = []
    for tampered in TAMPERED:
        (marketplace_folder() / HOOK).write_text(tampered)
        proofs.append(enforcement.prove(runtime(name), Installed(root, f"integrations/{name}")))
    assert [(proof.status, text) for proof, text in zip(proofs, TAMPERED) if proof.status != "fail"] == []
    shown = checks(ground)[f"{name} enforcement"]
    assert (
        (shown["status"], shown["mend"]) == ("fail", proofs[-1].mend) == ("fail", f"swarm-mcp install --client {name}")
    )


def test_a_hook_that_is_not_there_is_found_out(ground: Ground, fakes: Fakes):
    root = fakes.claude()
    (root / HOOK).unlink()
    assert checks(ground)["claude-code enforcement"]["status"] == "fail"
    (root / "integrations/claude-code/hooks.json").write_text('{"hooks": {}}')
    assert checks(ground)["claude-code enforcement"]["status"] == "fail"


@pytest.mark.parametrize("text", [None, "{", "[]", '{"hooks": 5}', '{"hooks": {"PreToolUse": [{"matcher": "x"}]}}'])
@pytest.mark.sampled
def test_a_broken_hooks_file_is_a_finding_and_no_bug(ground: Ground, fakes: Fakes, text: str | None):
    path = fakes.claude() / "integrations/claude-code/hooks.json"
    path.unlink() if text is None else path.write_text(text)
    done = ground.swarm("doctor", "--json")
    assert done.code == 1 and done.err == "", done
    assert [
        check for check in done.json["checks"] if check["status"] == "fail" and check["name"].startswith("claude-code")
    ]


@requirement("P-28")
def test_untrusted_disabled_and_missing_plugins_are_told(ground: Ground, fakes: Fakes):
    fakes.codex(trust="untrusted")
    found = checks(ground)
    assert found["codex hooks"]["status"] == "fail" and "untrusted" in found["codex hooks"]["message"]
    fakes.claude(enabled=False)
    assert checks(ground)["claude-code plugin"]["status"] == "fail"
    fakes.claude(id="")
    found = checks(ground)
    assert found["claude-code plugin"]["message"] == "not installed" and "claude-code enforcement" not in found


def test_a_client_that_does_not_answer_is_a_finding(ground: Ground, fakes: Fakes):
    fakes.put("claude", "import sys; sys.exit('cannot start')", {})
    fakes.put("codex", "import sys; sys.exit('cannot start')", {})
    found = checks(ground)
    assert "fail" in {found["claude-code plugin"]["status"]}
    assert all("Traceback" not in check["message"] for check in found.values())


def test_the_proof_leaves_nothing_behind(ground: Ground, fakes: Fakes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    scratch = folder_at(tmp_path / "scratch")
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    fakes.claude()
    ground.session("s")
    before = ground.sql("SELECT * FROM instances"), ground.sql("SELECT * FROM events")
    assert checks(ground)["claude-code enforcement"]["status"] == "ok"
    assert list(scratch.iterdir()) == []
    assert before == (ground.sql("SELECT * FROM instances"), ground.sql("SELECT * FROM events"))


@pytest.mark.parametrize("name", NAMES)
def test_the_proof_starts_no_process_that_outlives_its_folder(name: str, tmp_path: Path, monkeypatch):
    """A denial that is known already is not noted once more: nothing is started that opens the store."""
    canary = enforcement.Canary(tmp_path, runtime(name))
    line = shlex.join([*coordinator_command(), "hook", "pre-tool-use", "--runtime", name])
    answers = canary.asked_of_command(HookCommand(enforcement.EVENT, line, {}))
    monkeypatch.setenv("SWARM_STATE_DIR", canary.environment["SWARM_STATE_DIR"])
    noted = [line["event"] for line in denial.all_counts()]
    assert canary.wrong(answers) == "" and noted == [False, False]


LIBRARIES = ("platformdirs", "sqlite_utils", "jsonschema", "pysqlite3")


@pytest.mark.parametrize("kind", ["missing", "broken", "something else"])
@pytest.mark.thorough
def test_without_its_libraries_it_still_says_what_is_wrong(kind: str, ground: Ground, fakes: Fakes, tmp_path: Path):
    fakes.claude()
    ground.session("s")
    folders = [str(Path(__file__).resolve().parents[3])]
    if kind != "missing":
        for name in LIBRARIES:
            (tmp_path / "broken" / name).mkdir(parents=True)
            text = "raise ImportError('cannot open shared object file')" if kind == "broken" else ""
            (tmp_path / "broken" / name / "__init__.py").write_text(text)
        folders.insert(0, str(tmp_path / "broken"))
    code = f"import sys; sys.path[:0] = {folders!r}; from swarm_mcp.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [interpreter(), "-I", "-S", "-B", "-c", code, "doctor", "--json"], capture_output=True, text=True,
        cwd=ground.scope, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, ""), done
    found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert list(found)[:8] == CONTRACT
    assert "internal error" not in done.stdout and "Traceback" not in done.stdout
    libraries = found["libraries"]
    assert libraries["status"] == "fail" and "again" in libraries["mend"], libraries
    assert all(name in libraries["message"] for name in ("sqlite-utils", "jsonschema", "platformdirs"))
    assert found["binary"]["status"] == "ok"
    assert found["database"]["status"] == "ok", "an existing store needs none of them"
    assert found["claude-code enforcement"]["status"] == "ok", "nor does a new one"
