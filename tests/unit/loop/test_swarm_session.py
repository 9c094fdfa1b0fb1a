"""The loop among other sessions: registered, checked, held by the kernel, given the swarm's tools; and its end."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.files import text_at
from support.fixtures import wait_for
from support.harness_fixtures import is_alive
from support.kernel_calls import says
from support.loop_fixtures import ANTHROPIC, MAIN, OPENAI, Model, Say, executable, loop, sessions, tool
from support.requirement import requirement
from support.sessions import instances, mistakes, peer_locks
from support.traced import git

from swarm_hook_core.kernel import namespace
from swarm_mcp.agents.loop.swarm_session import CONFIG
from swarm_mcp.cli.main import main
from swarm_mcp.store import Store

pytestmark = pytest.mark.slow


WRITE = ("write_file", {"path": "held.txt", "content": "mine"})


@pytest.mark.parametrize("way", [(ANTHROPIC, "1"), (OPENAI, "0")], ids=["anthropic-stream", "openai-whole"])
def test_a_locked_file_stays_as_it_is_and_the_model_is_told(
    model: Model, project: Path, monkeypatch: pytest.MonkeyPatch, way: tuple[str, str]
) -> None:
    monkeypatch.setenv("HARNESS_PROVIDER", way[0])
    monkeypatch.setenv("HARNESS_STREAM", way[1])
    held = text_at(project / "held.txt", "theirs")
    peer = peer_locks(project, held, "in the middle of it", "peer-label")
    edit = ("edit_file", {"path": str(held), "edits": [{"old_str": "theirs", "new_str": "mine"}]})
    replace = ("str_replace", {"path": "./sub/../held.txt", "old_str": "theirs", "new_str": "mine"})
    shell = ("bash", {"command": "echo mine > held.txt"})
    free = ("write_file", {"path": "free.txt", "content": "mine"})
    model.script = [Say("", (WRITE, edit, replace, shell, free)), Say("Done.")]
    assert loop("go").code == 0
    assert held.read_text() == "theirs" and (project / "free.txt").read_text() == "mine"
    *denied, wrote = model.told()
    assert len(denied) == 4 and wrote.startswith("wrote")
    for text in denied:
        assert text.startswith("swarm lock blocked ") and "peer-label" in text
    said = ["in the middle of it" in text for text in denied]
    assert said == [True, True, False, False] and "denied 4 times" in denied[-1], "it has read that twice"
    assert [row["id"] for row in instances()] == [peer["id"]], "the session has left"


def test_a_session_is_registered_while_it_runs(model: Model, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_LOOP_AGENT_ROLE", "implementer")
    model.script = [Say("", (("bash", {"command": "swarm-mcp whoami --json; swarm-mcp lock mine.txt"}),)), Say("Done.")]
    seen = []
    original = model.next
    model.next = lambda *given: (seen.append(instances()), original(*given))[1]  # type: ignore[method-assign]
    ran = loop("go", "--json")
    (row,) = seen[0]
    assert row["label"].startswith("loop platform:cli role:implementer origin:loop session:")
    assert (row["runtime"], row["session_id"]) == ("loop", ran.events[0]["session_id"])
    assert (row["client_pid"], row["directory"]) == (os.getpid(), str(project))
    assert row["id"] in model.system() and row["id"] in model.told()[0]
    assert instances() == []
    with Store() as store:
        assert store.database.rows("SELECT * FROM context WHERE type = 'lock'") == []


def test_a_command_that_nobody_can_read_is_watched(model: Model, project: Path) -> None:
    held = text_at(project / "held.txt", "theirs")
    executable(project / "build", '#!/usr/bin/awk -f\nBEGIN { print "mine" > "held.txt" }\n')
    peer_locks(project, held, label="peer-label")
    model.script = [Say("", (("bash", {"command": "./build"}),)), Say("Done.")]
    assert loop("go").code == 0
    assert held.read_text() == "mine\n", model.told()
    notice, change = model.told()[0].removeprefix("(no output)\n").split("\n", 1)
    assert "(`build`: " in notice and "held.txt" in notice and "peer-label" in change and "changed" in change


def test_own_locks_do_not_hinder(model: Model, project: Path) -> None:
    lock = ("bash", {"command": "swarm-mcp lock held.txt"})
    model.script = [Say("", (lock,)), Say("", (WRITE,)), Say("Done.")]
    assert loop("go").code == 0
    assert (project / "held.txt").read_text() == "mine"


def test_a_store_out_of_reach_lets_the_run_go_on(model: Model, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = text_at(project.parent / "file", "")
    monkeypatch.setenv("SWARM_DB_PATH", str(blocked / "swarm.db"))
    model.script = [Say("", (WRITE,)), Say("Done.")]
    assert loop("go").code == 0
    assert (project / "held.txt").exists() and "could not be registered" in model.system()


def test_a_guarding_plugin_is_left_to_it(model: Model, project: Path) -> None:
    """With the harness plugin, its tools check; ours neither register nor check again."""
    plugin = Path(os.environ["HARNESS_HOME"]) / "plugins" / "swarm"
    executable(plugin / "hooks.d" / "tool_exec" / "05-swarm-lock", "#!/bin/sh\ncat\n")
    tool(plugin, "write_file", "cat > /dev/null; echo passed on")
    peer = peer_locks(project, project / "held.txt")
    model.script = [Say("", (WRITE,)), Say("Done.")]
    assert loop("go").code == 0
    assert model.told() == ["passed on"]
    assert [row["id"] for row in instances()] == [peer["id"]]


@requirement("A-48")
def test_a_server_that_does_not_come_up_is_left_out(model: Model, project: Path) -> None:
    servers = {
        "gone": {"command": "/no/such/program"},
        "dumb": {"command": "false"},
        "far": {"url": "http://127.0.0.1:9/"},
    }
    Path(os.environ["SWARM_LOOP_CONFIG"]).write_text(json.dumps({"mcp_servers": servers}))
    ran = loop("go", "--json")
    assert ran.code == 0
    failed = [event["data"]["name"] for event in ran.events if event["type"] == "custom"]
    assert failed == ["dumb", "far", "gone"]


def test_python_functions_over_http(model: Model, project: Path) -> None:
    from swarm_mcp.agents.harness.servers import ToolServer

    def double(number: int) -> int:
        """Twice a number."""
        return 2 * number

    with ToolServer((double,)) as served:
        server = served.server
        config = {"mcp_servers": {"client_tools": {"url": server.url, "headers": dict(server.headers)}}}
        Path(os.environ["SWARM_LOOP_CONFIG"]).write_text(json.dumps(config))
        model.script = [Say("", (("mcp__client_tools__double", {"number": 21}),)), Say("Done.")]
        assert loop("go").code == 0
    assert model.told() == ["42"]


@requirement("D-22")
def test_read_only(model: Model, project: Path) -> None:
    packs = Path(os.environ["HARNESS_HOME"])
    tool(packs, "sneaky", "touch sneaked")
    (project / "a.txt").write_text("text")
    calls = (WRITE, ("bash", {"command": "touch b"}), ("sneaky", {}), ("read_file", {"path": "a.txt"}))
    model.script = [Say("", calls), Say("Done.")]
    assert loop("go", "--mode", "read-only").code == 0
    assert sorted(path.name for path in project.iterdir()) == [".git", "a.txt"]
    assert model.tools() == ["agent", "list_dir", "read_file", "skill"]
    *refused, read = model.told()
    assert all("read-only" in text for text in refused) and read == "     1\ttext"


def test_an_agent_below_one_that_only_reads_only_reads(model: Model, project: Path) -> None:
    """By its command line; the private file of the run does not contain it."""
    call = ("agent", {"prompt": "the small task"})
    model.script = [Say("", (call,)), Say("", (WRITE,)), Say("small answer"), Say("Done.")]
    assert loop("go", "--mode", "read-only").code == 0
    assert "write_file" not in model.tools(1)
    assert sorted(path.name for path in project.iterdir()) == [".git"]


@requirement("B-11", "B-19")
def test_an_agent_of_its_own(model: Model, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_MCP_INSTANCE_ID", "11111111-2222-4333-8444-555555555555")
    seen = []

    def answer(body: dict, headers: dict):
        seen.append((json.dumps(body["messages"]), instances()))
        if "the small task" in seen[-1][0] and "toolu" not in seen[-1][0]:
            return Say("small answer")
        return Say("Done.") if "small answer" in seen[-1][0] else Say("", (("agent", {"prompt": "the small task"}),))

    model.next = answer  # type: ignore[method-assign]
    ran = loop("the large task", "--json")
    assert ran.code == 0, ran.err
    end = next(event for event in ran.events if event["type"] == "tool_end")
    assert (end["result"], end["is_error"]) == ("small answer", False)
    during = next(rows for text, rows in seen if "the small task" in text and "toolu" not in text)
    assert len(during) == 2 and len({row["session_id"] for row in during}) == 2
    assert {row["id"] for row in during} > {"11111111-2222-4333-8444-555555555555"}
    (session,) = sessions()
    (child,) = (session / ".harness" / "sessions").iterdir()
    assert f"parent={session.name}" in (child / "session.conf").read_text()
    assert instances() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["TERM", "KILL"])
def test_nothing_outlives_it(model: Model, project: Path, number: int) -> None:
    command = "sleep 300 & echo $! > pid; trap '' TERM; wait"
    model.script = [Say("", (("bash", {"command": command}),)), Say("Done.")]
    program = [sys.executable, "-c", MAIN, "loop", "--json"]
    child = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert child.stdin
    child.stdin.write(b"go")
    child.stdin.close()
    reader_lines: list[bytes] = []
    assert child.stdout
    reader = threading.Thread(target=lambda: reader_lines.extend(child.stdout), daemon=True)  # type: ignore[arg-type]
    reader.start()
    wait_for(lambda: (project / "pid").exists() and (project / "pid").read_text().strip())
    pid = int((project / "pid").read_text())
    child.send_signal(number)
    code = child.wait(60)
    reader.join(60)
    child.stdout.close()
    wait_for(lambda: not is_alive(pid))
    if number == signal.SIGTERM:
        assert code == 143
        last = json.loads(reader_lines[-1])
        assert (last["type"], last["error_category"]) == ("result", "aborted")
    assert main(["cleanup"]) == 0
    assert instances() == []


BUILD = '#!/usr/bin/awk -f\nBEGIN { print "mine" > "free.txt"; print "mine" > "held.txt" }\n'


@pytest.fixture
def held(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWARM_KERNEL", "1")
    file = text_at(project / "held.txt", "theirs")
    executable(project / "build", BUILD)
    peer_locks(project, file, label="identity:p the-holder")
    return file


def result(model: Model, command: str = "./build") -> str:
    """Return the model's result of a command."""
    model.script = [Say("", (("bash", {"command": command}),)), Say("Done.")]
    assert loop("go").code == 0
    (told,) = model.told()
    return told


def needs_the_kernel() -> None:
    why = namespace.again()
    if why:
        pytest.skip(f"the kernel holds nothing here: {why}")


def test_a_locked_file_is_kept_and_the_model_is_told(model: Model, project: Path, held: Path) -> None:
    needs_the_kernel()
    told = result(model, "./build; exit 3")
    assert held.read_text() == "theirs" and (project / "free.txt").read_text() == "mine\n"
    assert "Read-only file system" in told and "[exit code 3]" in told
    assert "swarm: the kernel kept this command" in told and "the-holder" in told
    left = os.listdir(Path(os.environ["SWARM_STATE_DIR"]) / "kernel")
    assert left == ["probe"], "no plan of a call that is over"
    assert mistakes() == []


def test_git_in_a_script_asks_first(model: Model, project: Path, held: Path) -> None:
    needs_the_kernel()
    (project / ".git").rmdir()
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    text = 'BEGIN { system("command -v git; git rm -q held.txt; git status --short") }'
    executable(project / "build", f"#!/usr/bin/awk -f\n{text}\n")
    told = result(model)
    assert "integrations/kernel/git\n" in told and "swarm: swarm lock blocked git (" in told, told
    assert "\n M build\n" in told and held.read_text() == "theirs", "what only looks runs"


def test_strict_lets_it_run_where_all_is_held(model: Model, held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_the_kernel()
    monkeypatch.setenv("SWARM_STRICT", "1")
    assert "Read-only file system" in result(model) and held.read_text() == "theirs"
    says("Operation not permitted")
    assert result(model).startswith("swarm lock blocked Bash: it may write") and held.read_text() == "theirs"


def test_it_is_off_unless_a_person_wants_it(model: Model, held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says()
    monkeypatch.delenv("SWARM_KERNEL")
    result(model)
    assert held.read_text() == "mine\n"


def test_a_plugin_s_shell_is_none_of_ours(model: Model, project: Path, held: Path, monkeypatch) -> None:
    """It is compared afterwards, and strictness denies it."""
    says()
    tool(project / ".harness", "bash", "./build; echo built")
    told = result(model)
    assert "built" in told and held.read_text() == "mine\n" and "the kernel" not in told.lower()
    monkeypatch.setenv("SWARM_STRICT", "1")
    assert result(model).startswith("swarm lock blocked Bash: it may write")


def test_it_starts_its_commands_itself() -> None:
    assert CONFIG.kernel == "directly"
