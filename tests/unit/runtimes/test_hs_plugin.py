"""The plugin folder of the bash harness, as the harness would call it: guard tools and hooks, without the harness."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.files import program_at
from support.fixtures import wait_for
from support.requirement import requirement
from support.sessions import ROOT, new_session, peer_locks, ready_store

from swarm_hook_core.process import start_time
from swarm_mcp.installation import interpreter
from swarm_mcp.runtimes import bundle
from swarm_mcp.runtimes.hs import plugin_files
from swarm_mcp.runtimes.users_file import put_folder, remove_folder
from swarm_mcp.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

PLUGIN = ROOT / "integrations" / "hs"
CORE_TOOL = '#!/bin/sh\necho "pid $$"\necho "flags $*"\ncat\n'
CONTENTS = plugin_files(bundle.contents(Path("/anywhere")))
CONTEXT = '{"tool_calls": [], "text": "ä \\" \\\\n", "number": 1.50}\n\n'


class Bench:
    """A session of the harness in a checkout, the plugin before a tool that says how it was called."""

    def __init__(self, folder: Path, plugin: Path = PLUGIN):
        self.repo, self.plugin = folder / "repo", plugin
        self.core, self.session = folder / "core", folder / "sessions" / "20261122-101500-4711"
        for made in (self.repo / "sub", self.core / "tools", self.session / "messages"):
            made.mkdir(parents=True)
        for name in ("write_file", "str_replace", "edit_file", "bash"):
            self.tool(name, CORE_TOOL)
        (self.session / "session.conf").write_text(f"id={self.session.name}\ncwd={self.repo}\n")
        self.env = {"HARNESS_SESSION": str(self.session), "HARNESS_SOURCES": f"{self.core}:{plugin}"}

    def tool(self, name: str, text: str) -> None:
        program_at(self.core / "tools" / name, text)

    def run(self, argv: list[str], given: bytes, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess:
        return subprocess.run(argv, input=given, capture_output=True, env={**os.environ, **self.env, **env},
                              cwd=cwd or self.repo, timeout=30, check=False)  # fmt: skip

    def call(self, name: str, given: Any, *, path: Path | None = None, **more: Any) -> subprocess.CompletedProcess:
        """Make a tool call as the harness does."""
        data = given if isinstance(given, bytes) else json.dumps(given).encode()
        return self.run([str(path or self.plugin / "tools" / name), "--exec"], data + b"\n", **more)

    def hook(self, stage: str, name: str, given: str = CONTEXT, **env: str) -> str:
        """Return the output of a hook. It must end well."""
        ran = self.run([str(self.plugin / "hooks.d" / stage / name)], given.encode(), **env)
        assert (ran.returncode, ran.stderr) == (0, b""), ran
        return ran.stdout.decode()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    ready_store()
    return Bench(tmp_path.resolve())


def copied(folder: Path) -> Path:
    """The plugin as an installation would put it there, for this test to break."""
    for name, content in CONTENTS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if content.startswith(b"#!") else 0o644)
    return folder


def write(path: object) -> dict:
    return {"path": str(path), "content": "x"}


def faults() -> list[str]:
    try:
        return Path(os.environ["SWARM_STATE_DIR"], "faults.jsonl").read_text().splitlines()
    except OSError:
        return []


def sessions() -> list[dict]:
    with Store() as store:
        return store.database.rows("SELECT s.*, i.label FROM swarm_sessions s JOIN instances i ON i.id = s.instance_id"
                          " WHERE s.runtime = 'hs'")  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("write_file", {"path": "held.md", "content": "x"}),
        ("str_replace", {"path": "./sub/../held.md", "old_str": "a", "new_str": "b"}),
        ("edit_file", {"path": "<repo>/held.md", "edits": []}),
        ("bash", {"command": "echo x | tee -a held.md"}),
    ],
)
@requirement("B-40")
def test_a_peers_file_is_refused_and_nothing_else_is_said(bench: Bench, tool: str, given: dict) -> None:
    peer_locks(bench.repo, bench.repo / "held.md", "mine", "the peer")
    given = {name: value.replace("<repo>", str(bench.repo)) if isinstance(value, str) else value
             for name, value in given.items()}  # fmt: skip
    ran = bench.call(tool, given)
    said = ran.stdout.decode()
    assert (ran.returncode, ran.stderr) == (1, b"") and "pid" not in said, ran
    assert said.startswith(f"swarm lock blocked {tool} ") and said.count("\n") == 1
    assert " for held.md: " in said and "the peer" in said and "mine" in said


def test_an_allowed_call_becomes_the_tool_below(bench: Bench) -> None:
    peer_locks(bench.repo, bench.repo / "held.md")
    given = json.dumps({**write("free.md"), "content": "END\n$HOME `id` \\n é\n" * 12000}).encode()
    given = given[:-1] + b', "raw": "\xff"}'
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    guard = [str(PLUGIN / "tools" / "write_file"), "--exec"]
    process = subprocess.Popen(guard, env={**os.environ, **bench.env}, cwd=bench.repo, **pipes)
    out, err = process.communicate(given + b"\n", timeout=60)
    head, flags, rest = out.split(b"\n", 2)
    assert (process.returncode, err, flags) == (0, b"", b"flags --exec")
    assert head == f"pid {process.pid}".encode(), "it takes the guard's place instead of running beside it"
    assert rest.rstrip(b"\n") == given
    assert bench.call("bash", {"command": "cat held.md > copy"}).returncode == 0


@requirement("B-10")
def test_other_flags_are_the_tools_own(bench: Bench) -> None:
    for flags in (["--schema"], ["--describe"], [], ["--anything", "a b"]):
        ran = bench.run([str(PLUGIN / "tools" / "bash"), *flags], b"")
        assert (ran.returncode, ran.stderr) == (0, b"") and f"flags {' '.join(flags)}\n" in ran.stdout.decode()
    (bench.core / "tools" / "str_replace").unlink()
    ran = bench.run([str(PLUGIN / "tools" / "str_replace"), "--schema"], b"")
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, b"", b""), "a tool that is not there is not offered"
    ran = bench.call("str_replace", {"path": "free.md"})
    assert (ran.returncode, ran.stdout) == (1, b"error: tool 'str_replace' not found\n")


def test_two_guards_ask_and_the_tool_runs_once(bench: Bench, tmp_path: Path) -> None:
    bench.tool("write_file", f"#!/bin/sh\necho run >> {tmp_path}/runs\ncat\n")
    other = copied(tmp_path / "installed")
    sources = f"{bench.core}:{other}:{PLUGIN}:{tmp_path}"
    assert bench.call("write_file", write("free.md"), HARNESS_SOURCES=sources).returncode == 0
    assert (tmp_path / "runs").read_text() == "run\n"
    peer_locks(bench.repo, bench.repo / "free.md")
    for plugin in (PLUGIN, other):
        path = plugin / "tools" / "write_file"
        assert bench.call("write_file", write("free.md"), path=path, HARNESS_SOURCES=sources).returncode == 1
    assert (tmp_path / "runs").read_text() == "run\n"


@requirement("B-25", "B-44")
def test_paths_count_from_the_sessions_folder(bench: Bench) -> None:
    peer_locks(bench.repo, bench.repo / "sub" / "f")
    assert bench.call("write_file", write("f"), cwd=bench.repo / "sub").returncode == 0
    assert bench.call("write_file", write("sub/f"), cwd=bench.repo / "sub").returncode == 1
    assert bench.call("bash", {"command": "echo > sub/f"}, cwd=Path("/")).returncode == 1
    # Inside a shell command the tools are on PATH by links, and take paths from where the command is.
    link = bench.session / ".tool-bin" / "write_file"
    link.parent.mkdir()
    link.symlink_to(PLUGIN / "tools" / "write_file")
    assert bench.call("write_file", write("f"), path=link, cwd=bench.repo / "sub").returncode == 1
    assert bench.call("write_file", write("sub/f"), path=link, cwd=bench.repo / "sub").returncode == 0


@requirement("B-42")
def test_ones_own_lock_is_no_obstacle(bench: Bench) -> None:
    bench.hook("start", "20-swarm")
    (me,) = sessions()
    with Store() as store:
        row = store.instances.live(me["instance_id"])
        store.locks.acquire(row, str(bench.repo / "mine.md"), "work")
    assert bench.call("write_file", write("mine.md")).returncode == 0
    other = str(bench.session.with_name("other"))
    assert bench.call("write_file", write("mine.md"), HARNESS_SESSION=other).returncode == 1


TROUBLES = ("no python", "no core", "no session", "no json", "no path", "broken store", "no lib")


def call_in(trouble: str, bench: Bench, folder: Path, **env: str) -> tuple[subprocess.CompletedProcess, bytes]:
    """Make a call of a guard with this trouble. Return it with its input."""
    peer_locks(bench.repo, bench.repo / "held.md")
    given: Any = write("held.md")
    plugin = copied(folder)
    if trouble == "no python":
        (plugin / "lib" / "python.sh").write_text("python=/nowhere/python3\n")
    elif trouble == "no core":
        shutil.rmtree(plugin / "swarm_hook_core")
    elif trouble == "no session":
        env["HARNESS_SESSION"] = ""
    elif trouble == "no json":
        given = b'{"path": "held.md'
    elif trouble == "no path":
        given = {"content": "x"}
    elif trouble == "broken store":
        Path(os.environ["SWARM_DB_PATH"]).write_bytes(b"no database at all, but quite long " * 400)
    else:
        (plugin / "lib" / "python.sh").unlink()
        (plugin / "hooks" / "guard.py").unlink()
    env["HARNESS_SOURCES"] = f"{bench.core}:{plugin}"
    ran = bench.call("write_file", given, path=plugin / "tools" / "write_file", **env)
    return ran, given if isinstance(given, bytes) else json.dumps(given).encode()


@pytest.mark.parametrize("trouble", TROUBLES)
@requirement("B-42")
def test_whatever_goes_wrong_the_call_goes_on(bench: Bench, tmp_path: Path, trouble: str) -> None:
    ran, text = call_in(trouble, bench, tmp_path / "copy")
    assert (ran.returncode, ran.stderr) == (0, b""), ran
    beside = ran.stdout.split(b"\n", 2)[2].removeprefix(text + b"\n\n")
    assert ran.stdout.split(b"\n", 2)[1] == b"flags --exec"
    if trouble == "no path":  # the store can be read, and a peer holds a lock here
        assert beside.startswith(b"\nswarm: this call could not be checked") and b"held.md" in beside
    else:
        assert beside == b"", "nothing is printed beside it"


@pytest.mark.parametrize("trouble", [name for name in TROUBLES if name != "no session"])
def test_where_a_person_wants_it_the_call_is_refused_instead(bench: Bench, tmp_path: Path, trouble: str) -> None:
    ran, _ = call_in(trouble, bench, tmp_path / "copy", SWARM_FAIL="closed")
    assert (ran.returncode, ran.stderr) == (1, b""), ran
    assert b"could not be checked" in ran.stdout and b"SWARM_FAIL is closed" in ran.stdout and b"pid" not in ran.stdout


def test_a_read_only_run_writes_nothing(bench: Bench) -> None:
    for tool, given in (("write_file", write("free.md")), ("bash", {"command": "true"})):
        ran = bench.call(tool, given, SWARM_HS_READ_ONLY="1")
        assert ran.returncode == 1 and b"may write no file" in ran.stdout and b"pid" not in ran.stdout


def test_what_a_command_changed_unseen_is_told_behind_its_result(bench: Bench) -> None:
    held, program = bench.repo / "held.md", bench.repo / "mystery"
    held.write_text("before\n")
    program.write_bytes(b"\x7fELF nobody reads this")
    program.chmod(0o755)
    bench.tool("bash", "#!/bin/sh\ncat >/dev/null\necho '{\"exit\": 0}'\necho after > held.md\nexit 3\n")
    bench.hook("start", "20-swarm")
    peer_locks(bench.repo, held, "mine", "the peer")
    ran = bench.call("bash", {"command": "./mystery"})
    said = ran.stdout.decode()
    assert ran.returncode == 3 and said.startswith('{"exit": 0}\n'), ran
    assert held.read_text() == "after\n" and str(held) in said.partition("\n")[2] and "the peer" in said
    watched = Path(os.environ["SWARM_STATE_DIR"], "watched")
    assert not watched.exists(), "the call has ended for the watch too"


@requirement("B-43")
def test_a_session_joins_is_told_and_leaves(bench: Bench) -> None:
    assert bench.hook("start", "20-swarm", SWARM_HS_LABEL="my harness") == CONTEXT
    (row,) = sessions()
    assert (row["session_id"], row["state"]) == (bench.session.name, "working")
    assert row["label"] == "my harness session:20261122"
    for system, shown in (
        ("You are.", lambda text: text.startswith("You are.\n\n")),
        (None, lambda text: text.startswith("swarm: this session")),
        ([{"type": "text", "text": "You are."}], lambda parts: parts[0]["text"] == "You are." and len(parts) == 2),
    ):
        payload = {"model": "m", "messages": [{"content": "ü\ud800"}], "n": 1.5}
        payload.update({"system": system} if system else {})
        made = json.loads(bench.hook("assemble", "40-swarm", json.dumps(payload)))
        assert shown(made["system"]) and f"instance `{row['instance_id']}`" in json.dumps(made["system"])
        assert {**made, "system": system} == {**payload, "system": system}
    peer_locks(bench.repo, bench.repo / "other")
    with Store() as store:
        store.locks.acquire(store.instances.live(row["instance_id"]), str(bench.repo / "mine"), "")
    assert bench.hook("done", "90-swarm") == CONTEXT
    wait_for(lambda: sessions() == [])  # on a busy machine a hook does not wait for all of the end
    with Store() as store:
        assert store.locks.on(str(bench.repo / "mine")) == []
        assert len(store.locks.on(str(bench.repo / "other"))) == 1
    assert not list(Path(os.environ["SWARM_STATE_DIR"]).rglob("greeting"))
    assert not [fault for fault in faults() if "no answer within" not in fault]
    bench.hook("start", "20-swarm")
    assert len(sessions()) == 1
    assert bench.hook("error", "90-swarm", '{"error": "x"}') == '{"error": "x"}' and sessions() == []


@requirement("B-19")
def test_a_sub_agent_is_a_session_of_its_own(bench: Bench) -> None:
    reserved = new_session()
    bench.hook("start", "20-swarm", SWARM_MCP_INSTANCE_ID=reserved)
    child = bench.session / ".harness" / "sessions" / "20261122-101501-4712"
    (child / "messages").mkdir(parents=True)
    (child / "session.conf").write_text(f"cwd={bench.repo}\n")
    env = {"HARNESS_SESSION": str(child), "HARNESS_PARENT_SESSION": bench.session.name}
    env["SWARM_MCP_INSTANCE_ID"] = reserved
    bench.hook("start", "20-swarm", **env)
    rows = {row["session_id"]: row["instance_id"] for row in sessions()}
    assert rows[bench.session.name] == reserved and len(set(rows.values())) == 2
    with Store() as store:
        store.locks.acquire(store.instances.live(reserved), str(bench.repo / "f"), "")
    assert bench.call("write_file", write("f"), **env).returncode == 1
    assert bench.call("write_file", write("f"), SWARM_MCP_INSTANCE_ID=reserved).returncode == 0
    bench.tool("bash", '#!/bin/sh\necho "id ${SWARM_MCP_INSTANCE_ID-none}"\n')
    assert bench.call("bash", {"command": "true"}, **env).stdout == b"id none\n", "its commands speak for itself"
    bench.hook("done", "90-swarm", **env)
    assert [row["instance_id"] for row in sessions()] == [reserved]


def test_a_session_lives_as_long_as_the_script_that_runs_it(bench: Bench, tmp_path: Path) -> None:
    script = tmp_path / "core" / "commands" / "agent"
    script.parent.mkdir()
    hook = PLUGIN / "hooks.d" / "start" / "20-swarm"
    asked = f'"$(echo "{{}}" | (x="$({hook})"; echo "$x"))"'
    program_at(script, f'#!/usr/bin/env bash\nresult={asked}\necho "$$ $result"\nsleep 30\n')
    process = subprocess.Popen([str(script), "a prompt"], env={**os.environ, **bench.env}, stdout=subprocess.PIPE,
                               text=True, start_new_session=True)  # fmt: skip
    try:
        pid, _, result = process.stdout.readline().partition(" ")
        (row,) = sessions()
        assert (int(pid), result) == (process.pid, "{}\n")
        assert (row["client_pid"], row["client_start"]) == (process.pid, start_time(process.pid))
    finally:
        os.killpg(process.pid, 9)
        process.wait()
        process.stdout.close()
    with Store() as store:
        assert [gone["id"] for gone in store.instances.gone()] == [row["instance_id"]]


@requirement("B-41")
def test_calls_that_no_guard_stands_before_are_answered_by_the_hook(bench: Bench) -> None:
    peer_locks(bench.repo, bench.repo / "held.md", "mine")
    waiting = bench.session / ".tool_dispatch"

    def given(call_id: str, name: str, tool_input: dict) -> str:
        calls = [{"id": call_id, "name": name, "input": tool_input}, {"id": "next", "name": "bash", "input": {}}]
        return json.dumps({"tool_calls": calls}) + "\n"

    def ask(text: str, **env: str) -> None:
        assert bench.hook("tool_exec", "05-swarm-lock", text, **env) == text

    ask(given("call_1", "write_file", write("held.md")))
    answer = json.loads((waiting / "call_1.json").read_text())
    assert answer["error"] is True and answer["result"].startswith("swarm lock blocked write_file")
    ask(given("call_2", "write_file", write("free.md")))
    ask(given("../../../escaped", "write_file", write("held.md")))
    shell = {"command": "echo > held.md"}
    ask(given("call_3", "bash", shell))  # the guard asks for itself
    (waiting / "call_4.json").write_text("done already")
    ask(given("call_4", "write_file", write("held.md")))
    assert sorted(path.name for path in waiting.iterdir()) == ["call_1.json", "call_4.json"]
    assert (waiting / "call_4.json").read_text() == "done already"
    ask(given("call_5", "bash", shell), HARNESS_SOURCES=f"{PLUGIN}:{bench.core}")
    assert (waiting / "call_5.json").is_file(), "a tool that stands before the guard"


@pytest.mark.parametrize("kind", ["whole", "no lib", "no core"])
@requirement("B-43")
def test_hooks_hand_on_what_they_cannot_read(bench: Bench, tmp_path: Path, kind: str) -> None:
    stages = {"tool_exec": "05-swarm-lock", "assemble": "40-swarm"}
    if kind != "whole":
        bench.plugin = copied(tmp_path / "broken")
        stages.update(start="20-swarm", done="90-swarm", error="90-swarm")
        if kind == "no lib":
            (bench.plugin / "lib" / "hook.sh").unlink()
        else:
            shutil.rmtree(bench.plugin / "swarm_hook_core")
    given_up = ("", "[]", '{"tool_calls": [3]}', "\x01\x02 \x7f{}") if kind == "whole" else ("",)
    for given in given_up:
        for stage, name in stages.items():
            assert bench.hook(stage, name, given) == given
    for stage, name in stages.items():
        assert bench.hook(stage, name, HARNESS_SESSION="") == CONTEXT


@requirement("B-01")
def test_the_guards_rank_before_all_where_the_harness_asks(bench: Bench) -> None:
    mine = str(PLUGIN)
    given = json.dumps({"sources": ["/root/core", mine, "/root/web", "/home/.harness"], "more": 1})
    made = json.loads(bench.hook("sources", "90-swarm", given))
    assert made == {"sources": ["/root/core", "/root/web", "/home/.harness", mine], "more": 1}
    assert bench.hook("sources", "90-swarm", "no json").strip() == "no json"


def test_the_plugin_is_whole_on_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "plugins" / "swarm"
    assert put_folder(folder, CONTENTS, compiled=True) is True
    assert put_folder(folder, CONTENTS, compiled=True) is False
    scripts = [path for part in ("tools", "hooks.d") for path in (folder / part).rglob("*") if path.is_file()]
    assert len(scripts) == 10 and all(os.access(path, os.X_OK) for path in scripts)
    assert all(map(Path.is_file, (folder / "tools").iterdir()))
    assert (folder / "skills" / "swarm-mcp" / "SKILL.md").is_file()
    assert f"python={interpreter()}" in (folder / "lib" / "python.sh").read_text()
    ready_store()
    bench = Bench(tmp_path.resolve(), folder)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE")
    before = set(folder.rglob("*"))
    peer_locks(bench.repo, bench.repo / "held.md")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # neither our python3 nor swarm-mcp by name
    bench.hook("start", "20-swarm")
    assert len(sessions()) == 1 and bench.call("write_file", write("held.md")).returncode == 1
    assert bench.call("bash", {"command": "echo >> held.md"}).returncode == 1 and not faults()
    assert set(folder.rglob("*")) == before, "a call writes nothing into the plugin"
    assert remove_folder(folder) and not folder.exists()
