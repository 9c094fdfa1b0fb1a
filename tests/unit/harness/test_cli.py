"""The commands run, runs, logs and harness, also with a harness that another installed package brings."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.files import program_at
from support.fixtures import BARE_PYTHON, FOLDERS, SWARM, Ground, wait_for
from support.harness_fixtures import is_alive
from support.listings import rows_of
from support.outside_packages import command as outside_packages_command
from support.outside_packages import installed_packages, package
from support.requirement import requirement

from swarm_mcp.agents.harness import membership, registry
from swarm_mcp.agents.harness.adapter import HarnessAdapter
from swarm_mcp.cli.output import show, show_with_list
from swarm_mcp.errors import Refused
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow


PYTHON = shlex.quote(sys.executable)
SAY = f"{PYTHON} -S -c"


def command(code: str) -> str:
    return f"{SAY} {shlex.quote(code)}"


def complaints(err: str) -> list[str]:
    """Return the lines of standard error without the progress line of a longer run."""
    return [line for line in err.splitlines() if not re.match(r"swarm-mcp run: \w+ is working \(", line)]


def timeless(shown: str) -> str:
    """Lines of a transcript, without the time that each begins with."""
    return re.sub(r"^\d\d:\d\d:\d\d  ", "", shown, flags=re.MULTILINE)


def rows(ground: Ground) -> list[dict]:
    return ground.swarm("runs", "--json").json


def test_it_prints_the_answer_and_leaves_nobody_behind(ground: Ground) -> None:
    look = "import os, sys; print(sys.stdin.read(), os.environ['SWARM_MCP_INSTANCE_ID'], os.environ['EXTRA'])"
    flags = ("--harness", "process", "--command", command(look), "--env", "EXTRA=a=b")
    done = ground.swarm("run", *flags, "hello", "there")
    (row,) = rows(ground)
    assert (done.code, complaints(done.err)) == (0, []) and done.out == f"hello there {row['instance_id']} a=b\n"
    assert row["state"] == "ended" and row["harness"] == "process" and row["cwd"] == ground.scope
    assert row["result"]["output"] == done.out.strip() and row["cost_usd"] is None
    assert ground.swarm("instances", "--json").json == []
    assert "EXTRA" not in os.environ and sorted(path.name for path in ground.repo.iterdir()) == [".git"]


def test_while_it_runs_it_is_a_session_like_any_other(ground: Ground) -> None:
    look = f"import subprocess; print(subprocess.run({[*SWARM, 'instances', '--json']!r}, stdout=-1).stdout.decode())"
    done = ground.swarm(
        "run", "--harness", "process", "--command", command(look), "--label", "team:x", "--role", "tester"
    )
    (seen,) = json.loads(done.out)
    assert seen["id"] == rows(ground)[0]["instance_id"] and seen["scope"] == ground.scope
    assert set(seen["label"].split()) >= {"role:tester", "origin:process", "team:x"}


@pytest.mark.parametrize(("code", "flags", "exit_code", "said"), [
    ("import sys; sys.exit('no paint left')", (), 1, "process_crashed: no paint left"),
    ("import time; time.sleep(30)", ("--timeout", "0.3", "--grace", "1"), 124, "timeout: "),
])  # fmt: skip
def test_a_failure_is_one_line_with_its_code(
    ground: Ground, code: str, flags: tuple, exit_code: int, said: str
) -> None:
    done = ground.swarm("run", "--harness", "process", "--command", command(code), *flags, "x")
    assert done.code == exit_code and done.out == ""
    (complaint,) = complaints(done.err)
    assert complaint.startswith(f"swarm-mcp run: {said}")
    assert f"(swarm-mcp worker logs {rows(ground)[0]['id'][:8]})" in done.err
    shown = ground.swarm("run", "--harness", "process", "--command", command(code), *flags, "--json", "x")
    assert shown.code == exit_code and shown.err == "" and shown.json["is_error"]


@pytest.mark.thorough
def test_words_from_standard_input_and_json(ground: Ground) -> None:
    backwards = command("import sys; print(sys.stdin.read()[::-1])")
    done = ground.process("run", "--harness", "process", "--command", backwards, "--json", "-", input=b"olleh")
    result = json.loads(done.out)
    assert (done.code, result["output"], result["exit_code"]) == (0, "hello", 0)
    assert set(result) >= {
        "exit_code", "signal", "timed_out", "error_message", "usage", "session_id", "session_params",
        "session_display_id", "provider", "model", "cost_usd", "result_json", "summary", "clear_session",
    }  # fmt: skip


@pytest.mark.parametrize(("argv", "why"), [
    ((), "missing the prompt"), (("--harness", "nope", "x"), 'Unknown HARNESS_PROVIDER: "nope". Supported: claude'),
    (("--mode", "wild", "x"), "unknown mode 'wild'"), (("--effort", "huge", "x"), "unknown effort"),
    (("--directory", "/none/such", "x"), "no such folder"), (("--env", "secret", "x"), "--env wants KEY=VALUE"),
    (("--schema", "/none/such", "x"), "cannot be read"), (("--role", "a b", "x"), "is not a role"),
    (("--skill", "/none/such", "--harness", "loop", "x"), "no SKILL.md"),
    (("--harness", "process", "x"), "needs a command"), (("--command", "'", "x"), "cannot be split"),
    (("--resume", "--evil", "x"), "neither a run here nor a session of claude"),
    (("--timeout", "soon", "x"), "wants seconds"),
])  # fmt: skip
@pytest.mark.sampled
def test_what_cannot_be_meant_is_refused_in_one_line(ground: Ground, argv: tuple, why: str) -> None:
    done = ground.swarm("run", *argv)
    assert done.code in (1, 2) and done.out == "" and why in done.err and done.err.count("\n") == 1
    assert "secret" not in done.err and ground.swarm("instances", "--json").json == []


def test_a_session_of_another_harness_is_not_gone_on_with(ground: Ground, store: Store) -> None:
    params = {"harness": "codex", "session_id": "s", "cwd": ground.scope}
    spec = {"scope": ground.scope, "instance_id": "i", "harness": "codex", "cwd": ground.scope, "state": "ended"}
    store.runs.begin({"id": "abc-1", **spec, "session_params": params})
    store.runs.begin({"id": "def-1", **spec})
    assert "add --harness codex" in ground.swarm("run", "--resume", "abc", "x").err
    assert "no session that could be resumed" in ground.swarm("run", "--resume", "def", "x").err


@pytest.mark.usefixtures("usual_signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.thorough
def test_a_signal_ends_the_agent_with_all_it_has_started(ground: Ground, number: int) -> None:
    code = "import subprocess, time; c = subprocess.Popen(['sleep', '60']); print(c.pid, flush=True); time.sleep(60)"
    argv = [*SWARM, "run", "--harness", "process", "--watch", "--grace", "2", "--command", command(code), "x"]
    process = subprocess.Popen(
        argv, cwd=ground.repo, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    pid = int(timeless(process.stdout.readline()))
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number and err.startswith(f"swarm-mcp run: aborted: ended by {number.name}")
    wait_for(lambda: not is_alive(pid))
    assert rows(ground)[0]["result"]["error_category"] == "aborted"
    assert ground.swarm("instances", "--json").json == []


def test_whoever_asks_for_it_cancels_it(ground: Ground, store: Store) -> None:
    argv = [*SWARM, "run", "--harness", "process", "--grace", "1", "--command", "sleep 60", "x"]
    process = subprocess.Popen(argv, cwd=ground.repo, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: any(row["state"] == "running" for row in _runs(ground)))
    (row,) = store.runs.live()
    store.runs.ask(row["id"], "cancel")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "aborted: cancelled" in err


def test_it_is_cancelled_just_after_the_machines_start_too(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A time of 0 in place of "never" was not long ago then: the first look came later."""
    with ground.store() as store:
        spec = {"scope": ground.scope, "instance_id": "i", "harness": "process", "cwd": ground.scope}
        store.runs.begin({"id": "r", **spec})
        store.runs.ask("r", "cancel")
    monkeypatch.setattr(membership, "time", SimpleNamespace(monotonic=lambda: 0.1))
    assert membership.RunRow("r").asked() == "cancel"


def _runs(ground: Ground) -> list[dict]:
    if not os.path.exists(ground.database):
        return []
    with Store(ground.database, read_only=True) as store:
        return rows_of(store.runs.walk(ground.scope))


@requirement("A-31")
def test_runs_and_their_logs(ground: Ground) -> None:
    assert ground.swarm("runs").out == "(no runs)\n"
    say = command("import sys; print('one'); print('careful', file=sys.stderr); print('two')")
    for text in ("first", "second"):
        assert ground.swarm("run", "--harness", "process", "--command", say, text).code == 0
    assert ground.swarm("run", "--harness", "process", "--command", "false", "x").code == 1
    listed = ground.swarm("runs", "--absolute").out.splitlines()  # an age is another one in the next call
    assert "[failed: process_crashed]  process  task=-" in listed[0] and "cost=unknown" in listed[0]
    assert ["[done]" in line for line in listed] == [False, True, True]
    shown, more = ground.swarm("runs", "--absolute", "--limit", "1").out.splitlines()
    assert shown == listed[0] and more.startswith("1 of 3 shown; for more: --after ")
    assert ground.swarm("runs", "--state", "running").out == "(no runs)\n"
    assert "did you mean" in ground.swarm("runs", "--state", "endet").err
    row = rows(ground)[1]
    done = ground.swarm("logs", row["id"][:8])
    assert done.code == 0
    lines = timeless(done.out).splitlines()
    assert {"one", "two", "stderr: careful"} <= set(lines) and any(line.startswith("done in ") for line in lines)
    assert done.out.splitlines()[-1] == f"run {row['id']} (process, ended), record: {row['record']}"
    shown = ground.swarm("logs", row["id"], "--json").json
    assert shown["record"] == row["record"] and {"stdout", "stderr", "result"} <= {
        e["kind"] for e in shown["transcript"]
    }
    lines = ground.swarm("logs", row["id"], "-f", "--json").out.splitlines()
    assert [json.loads(line) for line in lines] == shown["transcript"]


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="only Linux says how much memory a process had")
@pytest.mark.parametrize("flags", [[], ["-f"], ["--json"]], ids=" ".join)
@pytest.mark.thorough
def test_a_large_record_is_not_read_into_memory(ground: Ground, flags: list[str], store: Store) -> None:
    record = ground.folder / "r" / "20260101T000000Z-r.jsonl"
    record.parent.mkdir()
    line = json.dumps({"type": "raw_log", "content": "some words of output\n" * 3000, "timestamp": 1.0}) + "\n"
    number = 24 * 1024 * 1024 // len(line)
    record.write_text(line * number)
    spec = {"id": "r", "scope": ground.scope, "instance_id": "i", "harness": "process", "cwd": ground.scope}
    store.runs.begin({**spec, "record": str(record)})
    store.runs.update("r", state="ended", result={})
    tell = "sys.stderr.write(open('/proc/self/status').read()); sys.exit(code)"
    code = f"import sys; sys.path[:0] = {FOLDERS!r}; from swarm_mcp.cli.main import main; code = main(); {tell}"
    with open(ground.folder / "out", "wb") as out:
        done = subprocess.run(
            [*BARE_PYTHON, "-c", code, "logs", "r", *flags], cwd=ground.repo, stdout=out, stderr=subprocess.PIPE,
            text=True, timeout=60, check=True,
        )  # fmt: skip
    (peak,) = (int(said.split()[1]) for said in done.stderr.splitlines() if said.startswith("VmHWM:"))
    assert peak < 45_000, f"{peak} kB"
    if flags == ["--json"]:
        shown = json.loads((ground.folder / "out").read_text())
        assert list(shown) == ["run", "record", "transcript"] and len(shown["transcript"]) == number


def test_logs_as_json_of_nothing_and_of_one_entry(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    for items in ([], [{"kind": "x"}], [{"a": [1, {"b": []}]}, {}]):
        show_with_list({"run": {"id": 1}}, "transcript", iter(items))
        streamed = capsys.readouterr().out
        show({"run": {"id": 1}, "transcript": items})
        assert streamed == capsys.readouterr().out


def test_logs_follow_until_the_run_has_ended(ground: Ground) -> None:
    gate = ground.folder / "gate"
    wait = f"while not os.path.exists({str(gate)!r}): time.sleep(0.05)"
    code = f"import os, time\nprint('begun', flush=True)\n{wait}\nprint('over')"
    run = subprocess.Popen(
        [*SWARM, "run", "--harness", "process", "--command", command(code), "x"], cwd=ground.repo,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(lambda: any(row["state"] == "running" for row in _runs(ground)))
    reader = subprocess.Popen(
        [*SWARM, "logs", _runs(ground)[0]["id"], "--follow"], cwd=ground.repo, stdout=subprocess.PIPE, text=True
    )
    assert timeless(reader.stdout.readline()) == "begun\n" and reader.poll() is None
    gate.touch()
    rest, _ = reader.communicate(timeout=60)
    assert reader.returncode == 0 and "over" in rest
    assert run.communicate(timeout=60)[0] == "begun\nover\n"


def test_logs_of_what_is_not_there(ground: Ground, store: Store) -> None:
    spec = {"scope": ground.scope, "instance_id": "i", "harness": "pi", "cwd": ground.scope}
    store.runs.begin({"id": "abc-1", "task_id": "t-1", **spec})
    assert "no record yet; --follow waits" in ground.swarm("logs", "t-1").err
    assert "no run here has 'zzz'" in ground.swarm("logs", "zzz").err
    assert "run abc-1 has no record yet; --follow waits" in ground.swarm("logs").err, "the newest run"
    assert "one word too many" in ground.swarm("logs", "a", "b").err


@pytest.fixture
def installed(ground: Ground, bin_folder: Path) -> Ground:
    """A machine with a codex of some version, and nothing else."""
    program_at(bin_folder / "codex", "#!/bin/sh\necho codex-cli 9.9\n")
    return ground


@requirement("A-61")
def test_harness_list(installed: Ground) -> None:
    listed = {one["name"]: one for one in installed.swarm("harness", "list", "--json").json}
    assert set(listed) == set(registry.ADAPTERS)
    assert listed["codex"]["installed"] and listed["codex"]["version"] == "codex-cli 9.9"
    assert not listed["claude"]["installed"] and listed["process"]["installed"]
    assert listed["codex"]["capabilities"] == registry.get("codex").capabilities._asdict()
    lines = installed.swarm("harness", "list").out.splitlines()
    assert any(line.startswith("  codex  [codex-cli 9.9]  resume") for line in lines)
    assert any(line.startswith("  claude  [not installed]") for line in lines)


@requirement("C-07", "C-13")
def test_harness_doctor(installed: Ground) -> None:
    done = installed.swarm("harness", "doctor", "codex", "--json")
    assert done.json["adapter_type"] == "codex" and "version" in [check["code"] for check in done.json["checks"]]
    assert done.code == (done.json["status"] == "fail")
    assert installed.swarm("harness", "doctor", "process").out.splitlines()[1] == "process: pass"
    done = installed.swarm("harness", "doctor", "claude")
    assert done.code == 1 and "[ERROR] command_missing: there is no command claude on PATH" in done.out
    done = installed.swarm("harness", "doctor", "process", "--directory", "/none/such")
    assert done.code == 1 and "cwd_missing" in done.out
    reports = installed.swarm("harness", "doctor", "--json").json
    assert "claude" not in [report["adapter_type"] for report in reports]
    assert {"codex", "process"} <= {report["adapter_type"] for report in reports}


def test_harness_models(installed: Ground) -> None:
    models = installed.swarm("harness", "models", "claude", "--json").json
    assert models == registry.get("claude").listed_models() and all(model["name"] for model in models)
    assert set(installed.swarm("harness", "models", "--json").json) == set(registry.ADAPTERS)
    assert "  claude  " in installed.swarm("harness", "models").out


def test_a_harness_that_cannot_be_loaded_hides_no_other(installed: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.ADAPTERS, "broken", ("swarm_mcp.agents.harness.adapters.none", "X"))
    done = installed.swarm("harness", "list")
    assert done.code == 0 and "  codex  " in done.out and "broken cannot be loaded" in done.err
    assert "choose from list, doctor, models" in installed.swarm("harness", "lst").err


ADAPTER = """
from swarm_mcp.agents.harness import events
from swarm_mcp.agents.harness.adapter import HarnessAdapter, Launch


class Outside(HarnessAdapter):
    name, label = "outside", "From outside"
    instructions = "It is there already."
    doc = "Use when it is tested.\\nDo not use when it is not. No settings."

    def launch(self, query, folder):
        return Launch(("/bin/cat",), stdin="said from outside")

    def parse(self, line, state):
        return [events.message("assistant", line)]
"""


DEAF = """
from swarm_mcp.agents.harness import events
from swarm_mcp.agents.harness.adapter import HarnessAdapter, Launch


class Deaf(HarnessAdapter):
    name, label = "deaf", "Without its server"

    def launch(self, query, folder):
        return Launch(("/bin/cat",), stdin="heard")

    def parse(self, line, state):
        failed = [{"name": "files", "status": "failed", "error": "No such file"}, {"name": "web", "status": "failed"}]
        return [events.custom("deaf.mcp_failed", failed), events.message("assistant", line)]
"""


@pytest.mark.parametrize("option", [[], ["--json"]], ids=["", "--json"])
def test_a_server_that_did_not_start_is_said(ground: Ground, tmp_path: Path, monkeypatch, option: list[str]) -> None:
    (tmp_path / "deaf_harness.py").write_text(DEAF)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(registry.ADAPTERS, "deaf", ("deaf_harness", "Deaf"))
    done = ground.swarm("run", "--harness", "deaf", "x", *option)
    assert done.code == 0 and (done.json["output"] if option else done.out.strip()) == "heard"
    assert [line for line in complaints(done.err) if "server" in line] == [
        "swarm-mcp run: the MCP server files did not start: No such file",
        "swarm-mcp run: the MCP server web did not start: its client does not say why",
    ]


@pytest.fixture
def adapter_installed(tmp_path: Path) -> Path:
    return installed_packages(tmp_path)


@pytest.mark.parametrize("worked_on", [False, True])
@pytest.mark.sampled
def test_commands_and_a_supervisor_run_it(
    ground: Ground, adapter_installed: Path, tmp_path: Path, worked_on: bool
) -> None:
    """Also one that is installed for being worked on: its files are elsewhere, and `site` alone would find them."""
    if worked_on:
        package(tmp_path / "source", "outside_harness", ADAPTER, "outside = outside_harness:Outside")
        (adapter_installed / "outside.pth").write_text(f"{tmp_path / 'source'}\n")
    else:
        package(adapter_installed, "outside_harness", ADAPTER, "outside = outside_harness:Outside")
    program = outside_packages_command(adapter_installed)
    listed = {one["name"]: one for one in ground.process("harness", "list", "--json", program=program).json}
    assert listed["outside"]["label"] == "From outside" and listed["claude"]["label"] == "Claude Code"
    assert ground.process("harness", "doctor", "outside", program=program).code == 0
    done = ground.process("run", "--harness", "outside", "x", program=program)
    assert (done.code, done.out) == (0, "said from outside\n"), done
    words = ("dispatch", "Say it", "--harness", "outside", "--completion-wait", "60", "--json")
    env = {**os.environ, "SWARM_MCP_ALLOW_SPAWN": "1"}
    answer = ground.process(*words, program=program, env=env).json
    assert answer["completion"]["result"] == "said from outside", answer


def test_what_is_broken_is_said_and_breaks_no_other(ground: Ground, adapter_installed: Path) -> None:
    package(adapter_installed, "broken_harness", "import nothing_of_that_name", "broken = broken_harness:Broken")
    package(adapter_installed, "odd_harness", ADAPTER, "odd = odd_harness:Outside\nclaude = odd_harness:Outside")
    done = ground.process("harness", "list", "--json", program=outside_packages_command(adapter_installed))
    names = [one["name"] for one in done.json]
    assert names == [*registry.ADAPTERS], "a name of this package's was taken, or what is broken is listed"
    assert "broken cannot be loaded: ModuleNotFoundError" in done.err
    assert "odd cannot be loaded" in done.err and "is no adapter of a harness called 'odd'" in done.err
    assert next(one for one in done.json if one["name"] == "claude")["label"] == "Claude Code"


@pytest.mark.usefixtures("own_registry")
def test_a_name_that_is_offered_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    entry = EntryPoint("outside", f"{__name__}:Here", registry.GROUP)
    monkeypatch.setattr(registry, "_offered", lambda: {"outside": entry})
    assert registry.has("outside") and registry.names()[-1] == "outside"
    assert registry.get("outside") is registry.get("outside") and registry.get("outside").label == "Here"
    with pytest.raises(Refused, match="is there already"):
        registry.register(Here())


class Here(HarnessAdapter):
    """An adapter in this very module."""

    name, label = "outside", "Here"

    def launch(self, query, folder):
        raise NotImplementedError

    def parse(self, line, state):
        return []


def test_the_guide_shows_the_entry_point() -> None:
    page = (Path(__file__).parents[3] / "docs" / "dev" / "adding-a-harness.md").read_text()
    assert f'[project.entry-points."{registry.GROUP}"]' in page
