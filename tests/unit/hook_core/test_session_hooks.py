"""The hooks of a session's life in an installed plugin: the coordinator runs them itself, in one interpreter."""

import io
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.altered import Failing
from support.sessions import (
    RUNTIMES,
    captured,
    fault_lines,
    instances,
    mistakes,
    new_session,
    peer_locks,
    ready_store,
    wired_command,
)

from swarm_mcp.errors import StoreUnavailable
from swarm_mcp.hooks import process as hook_process
from swarm_mcp.hooks.session_hooks import StoreRegistrar
from swarm_mcp.installation import interpreter
from swarm_mcp.runtimes import bundle
from swarm_mcp.store import Store, notices

pytestmark = pytest.mark.slow
both = pytest.mark.parametrize("runtime", RUNTIMES)


class Installed:
    """A plugin as `swarm-mcp install` makes it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.launcher = folder / bundle.LAUNCHER
        bundle.write(folder, local=True)

    def tell(self, runtime: str, session: str, name: str, **env: str) -> str:
        """Return the hook's answer to the captured payload `name`, started as the client does."""
        payload = {**captured(runtime, name, self.folder.parent), "session_id": session}
        command = wired_command(runtime, name.partition(".")[0])
        done = subprocess.run(
            ["/bin/sh", "-c", command], input=json.dumps(payload), capture_output=True, text=True, timeout=60,
            env={**os.environ, **env},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def forbid_own_hook(self) -> None:
        """Have the plugin's own hook script fail where it is started."""
        (self.folder / bundle.ENTRY).write_text("raise SystemExit('a second interpreter')\n")

    def launch(self, command: str) -> None:
        """Make this the coordinator."""
        self.launcher.write_text(f"#!/bin/sh\nexec {command}\n")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    ready_store()
    made = Installed(tmp_path / "a plugin")
    monkeypatch.setattr("support.sessions.ROOT", made.folder)
    return made


def row_of(session: str) -> dict[str, Any] | None:
    return next((row for row in instances() if row["session_id"] == session), None)


def words_of(answer: str) -> str:
    return str(json.loads(answer)["hookSpecificOutput"]["additionalContext"])


@both
def test_a_session_s_life_needs_one_interpreter_for_each_hook(installed: Installed, runtime: str) -> None:
    installed.forbid_own_hook()
    me, peer = new_session(), peer_locks(installed.folder.parent, installed.folder.parent / "held", note="mine")
    told = words_of(installed.tell(runtime, me, "SessionStart.startup"))
    row = row_of(me)
    assert row and row["state"] == "idle" and row["id"] in told
    assert "Locked now" in told and "mine" in told, "the summary of its scope"
    assert installed.tell(runtime, me, "UserPromptSubmit") == ""
    assert (row_of(me) or {})["state"] == "working"
    assert installed.tell(runtime, me, "Stop") == ""
    assert (row_of(me) or {})["state"] == "idle"
    assert installed.tell(runtime, me, "SessionEnd") == ""
    assert [one["id"] for one in instances()] == [peer["id"]] and fault_lines() == []


@both
def test_the_client_is_found_behind_the_launcher(installed: Installed, runtime: str) -> None:
    me = new_session()
    installed.tell(runtime, me, "SessionStart.startup")
    assert (row_of(me) or {})["client_pid"] == os.getpid()


@both
def test_a_notice_is_told_once_it_has_been_written(installed: Installed, runtime: str) -> None:
    installed.forbid_own_hook()
    me = new_session()
    installed.tell(runtime, me, "SessionStart.startup")
    with Store() as store, store.database.writing():
        row = store.instances.of_session(runtime, me)
        assert row
        notices.post(store.database, row, "word of a lock")
    command = wired_command(runtime, "UserPromptSubmit")
    payload = json.dumps({**captured(runtime, "UserPromptSubmit", installed.folder.parent), "session_id": me})
    subprocess.run(["/bin/sh", "-c", f"({command}) >/dev/full"], input=payload, text=True, check=True)
    assert fault_lines()[-1]["hook"] == "turn", "its client could not be told"
    assert "word of a lock" in words_of(installed.tell(runtime, me, "UserPromptSubmit"))
    assert installed.tell(runtime, me, "UserPromptSubmit") == ""


@both
def test_a_chosen_coordinator_comes_before_the_installed_one(installed: Installed, runtime: str) -> None:
    chosen = installed.folder.parent / "chosen"
    chosen.write_text('#!/bin/sh\necho \'{"id": "someone"}\'\n')
    chosen.chmod(0o755)
    me = new_session()
    assert "someone" in installed.tell(runtime, me, "SessionStart.startup", SWARM_MCP_BIN=str(chosen))
    assert row_of(me) is None


@both
def test_a_coordinator_that_cannot_begin_leaves_it_to_the_plugin_s_own_hook(installed: Installed, runtime: str) -> None:
    installed.launch(f"{interpreter()} -I -S -c 'import swarm_mcp'")  # without the folders it is in
    me = new_session()
    assert "registered" in words_of(installed.tell(runtime, me, "SessionStart.startup")), "it is named in the record"
    assert installed.tell(runtime, me, "Stop") == ""
    assert (row_of(me) or {})["state"] == "idle" and fault_lines() == []


@both
def test_a_coordinator_that_is_killed_is_recorded_and_not_asked_again(installed: Installed, runtime: str) -> None:
    installed.launch("/bin/sh -c 'cat >/dev/null; kill -9 $$'")
    me = new_session()
    told = words_of(installed.tell(runtime, me, "SessionStart.startup"))
    assert "could not be registered (swarm-mcp was killed by signal 9)" in told and row_of(me) is None
    for name in ("UserPromptSubmit", "Stop", "SessionEnd"):
        assert installed.tell(runtime, me, name) == ""
    assert [line["hook"] for line in fault_lines()] == ["session_start", "turn", "turn", "session_end"]


@pytest.mark.parametrize("name", ["SessionStart.startup", "UserPromptSubmit", "SessionEnd"])
def test_a_coordinator_that_hangs_has_no_more_than_its_time(installed: Installed, name: str) -> None:
    launcher = installed.launcher.read_text()
    slow = "import swarm_mcp.hooks.process, time; swarm_mcp.hooks.process.run = lambda *a: time.sleep(60); from swarm_mcp.cli"
    installed.launcher.write_text(launcher.replace("from swarm_mcp.cli", slow))
    script = installed.folder / bundle.HOOK
    text = script.read_text()
    assert all(f"within={seconds} ;;" in text for seconds in ("5", "2", "0.9"))
    for seconds in ("5", "2", "0.9"):  # to save them here
        text = text.replace(f"within={seconds} ;;", "within=0.4 ;;")
    script.write_text(text)
    answer = installed.tell("codex", new_session(), name)
    assert ("could not be registered" in answer) is (name == "SessionStart.startup")
    assert [line["fault"] for line in fault_lines()] == ["no answer within its time"]


def test_the_launcher_gives_the_coordinator_the_time_that_the_core_gives_it() -> None:
    from swarm_hook_core import lifecycle

    given = {
        "session_start": lifecycle.START_SECONDS, "turn": lifecycle.TURN_SECONDS, "session_end": lifecycle.END_SECONDS,
    }  # fmt: skip
    text = (Path(__file__).parents[3] / "integrations" / "hook.sh").read_text()
    assert all(f"{event}) within={seconds:g} ;;" in text for event, seconds in given.items())


@both
def test_a_store_out_of_reach_costs_the_session_nothing(installed: Installed, runtime: str) -> None:
    ready_store().write_bytes(b"no database at all, but long enough to be looked at" * 100)
    me = new_session()
    assert "could not be registered" in words_of(installed.tell(runtime, me, "SessionStart.startup"))
    assert installed.tell(runtime, me, "UserPromptSubmit") == "" == installed.tell(runtime, me, "SessionEnd")
    assert {line["hook"] for line in fault_lines()} >= {"session_start", "turn", "session_end"}


@both
def test_a_payload_that_is_no_object_is_a_fault_and_no_more(installed: Installed, runtime: str) -> None:
    command = wired_command(runtime, "UserPromptSubmit")
    done = subprocess.run(["/bin/sh", "-c", command], input="[1, 2", capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(mistakes()) == 1 and mistakes()[0]["hook"] == "turn"


def test_a_store_that_cannot_be_closed_is_a_fault_and_the_hook_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: Failing
) -> None:
    """With another exit status the plugin's own hook would run too, without a payload."""
    ready_store()

    failing(StoreRegistrar, "close", StoreUnavailable("the disk is full"))
    me = new_session()
    payload = json.dumps({**captured("codex", "Stop", tmp_path), "session_id": me})
    monkeypatch.setattr("sys.stdin", io.StringIO(payload))
    assert hook_process.run("turn", "codex") == 0
    assert row_of(me) and [line["hook"] for line in fault_lines()] == ["turn"]


@pytest.mark.parametrize(
    "words",
    [["turn"], ["turn", "--runtime", "codex", "--within", "soon"], ["subagent", "--runtime", "codex", "--within", "1"]],
)
def test_other_command_lines_are_read_as_those_of_any_verb(words: list[str]) -> None:
    assert hook_process.as_wired(words) is None
