"""The command beside the server's check: it rests while the session's server lives, and checks where it does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.fixtures import Sleeper
from support.sessions import ROOT, captured, hooks_by_tool, new_session, ready_store, run, start

from swarm_hook_core.process import start_time
from swarm_mcp.runtimes import bundle, transport
from swarm_mcp.runtimes.base import UNCHECKED

SCRATCH = {"claude-code": "swarm-cc", "codex": "swarm-codex"}


class StandIn:
    """The command beside the tool, as the client runs it, with a command that prints its input."""

    def __init__(self, runtime: str, root: Path):
        self.runtime, self.root = runtime, root
        script = root / transport.STAND_IN
        script.parent.mkdir(parents=True)
        (script.parent / runtime).mkdir()
        for name in (transport.STAND_IN, bundle.HOOK, UNCHECKED, f"integrations/{runtime}/runtime.py"):
            shutil.copy(ROOT / name, root / name)
        (hook,) = [hook for hook in hooks_by_tool(runtime) if hook["type"] == "command"]
        before, _, _ = str(hook["command"]).partition(' /bin/sh "${CLAUDE_PLUGIN_ROOT}/integrations/hook.sh"')
        assert before != hook["command"], hook
        self.command = before.replace("${CLAUDE_PLUGIN_ROOT}", str(root)) + " cat; exit 0"

    def run(self, session: str, shell: str = "/bin/sh", **env: str) -> str:
        """Return the command's standard input, or an empty text if it did not run."""
        self.given = json.dumps({"session_id": session, "tool_input": "ü" * 70_000, "end": "of it"}, ensure_ascii=False)
        own = {"CLAUDE_CODE_SESSION_ID": session} if self.runtime == "claude-code" else {}
        done = subprocess.run(
            [shell, "-c", self.command], input=self.given, capture_output=True, text=True, check=True, timeout=60,
            env={**os.environ, **own, **env},
        )  # fmt: skip
        assert done.stderr == ""
        return done.stdout

    def mark(self, session: str, text: str, state: str = "") -> None:
        folder = Path(state or os.environ["SWARM_STATE_DIR"], SCRATCH[self.runtime], session)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "server").write_text(text)


@pytest.fixture
def stand_in(runtime: str, tmp_path: Path) -> StandIn:
    return StandIn(runtime, tmp_path / "a plugin")


ALIVE = f"{os.getpid()} {start_time(os.getpid())}\n"


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_it_rests_while_the_server_lives(stand_in: StandIn, shell: str) -> None:
    me = new_session()
    stand_in.mark(me, ALIVE)
    assert stand_in.run(me, shell) == ""


def test_it_runs_the_check_where_no_server_is_known(stand_in: StandIn) -> None:
    assert stand_in.run(new_session()) == stand_in.given
    stand_in.mark(new_session(), ALIVE)
    assert stand_in.run(new_session()) == stand_in.given, "the server of another session"


def test_it_runs_the_check_once_the_server_has_died(stand_in: StandIn) -> None:
    me = new_session()
    with Sleeper() as server:
        stand_in.mark(me, f"{server.pid} {server.started}\n")
        assert stand_in.run(me) == ""
    assert stand_in.run(me) == stand_in.given


def test_it_runs_the_check_beside_a_living_server_where_a_write_must_not_pass_unchecked(stand_in: StandIn) -> None:
    """A server that hangs says nothing, and the client then lets the write pass."""
    ready_store()
    me = new_session()
    stand_in.mark(me, ALIVE)
    stand_in.command = stand_in.command.replace(" cat;", f" /bin/sh -c cat {stand_in.runtime} pre_tool_use;")
    prefix = {"claude-code": "CC", "codex": "CODEX"}[stand_in.runtime]
    assert stand_in.run(me) == ""
    for variable in ("SWARM_FAIL", f"SWARM_{prefix}_FAIL"):
        assert stand_in.run(me, **{variable: "closed"}) == stand_in.given


HERE = str(os.getpid())


@pytest.mark.parametrize("text", ["", "\n", "x y\n", "HERE\n", "HERE 1\n", "0 0\n", "999999999 5\n", "1; exit 0"])
def test_what_proves_nothing_counts_as_no_server(stand_in: StandIn, text: str) -> None:
    text = text.replace("HERE", HERE)
    if not os.path.isdir("/proc/self") and text.startswith(HERE):
        return  # without /proc a start time cannot be compared, and the process does live
    me = new_session()
    stand_in.mark(me, text)
    assert stand_in.run(me) == stand_in.given


@pytest.mark.parametrize("session", ["", "../../etc", "a b", "$(id)", "x/y", "*"])
def test_odd_sessions_are_checked(stand_in: StandIn, session: str) -> None:
    assert stand_in.run(session) == stand_in.given


def test_it_looks_where_the_server_writes(stand_in: StandIn, home: Path) -> None:
    me = new_session()
    stand_in.mark(me, ALIVE, str(home / ".local/state/swarm-mcp"))
    assert stand_in.run(me, SWARM_STATE_DIR="") == ""
    if sys.platform != "darwin":
        assert stand_in.run(me, SWARM_STATE_DIR="", XDG_STATE_HOME="") == ""
    assert stand_in.run(me, SWARM_STATE_DIR="elsewhere") == stand_in.given, "relative: not its to resolve"


def test_the_end_of_a_session_takes_the_word_away(stand_in: StandIn, tmp_path: Path) -> None:
    ready_store()
    me, runtime = new_session(), stand_in.runtime
    start(runtime, me, tmp_path)
    stand_in.mark(me, ALIVE)
    run(runtime, "session_end", {**captured(runtime, "SessionEnd", tmp_path), "session_id": me})
    assert not Path(os.environ["SWARM_STATE_DIR"], SCRATCH[runtime], me).exists()
