"""The shell in front of the hooks: the interpreter that it finds, and the release that it fetches with uv."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.files import folder_at, program_at, text_at
from support.fixtures import SWARM, wait_for
from support.listings import lines_of
from support.sessions import (
    ROOT,
    RUNTIMES,
    Ran,
    captured,
    fault_lines,
    hook_core,
    new_session,
    peer_locks,
    ready_store,
    said_by,
    start,
    wired_command,
    write_payload,
)

from swarm_hook_core import DISTRIBUTION, __version__, coordinator
from swarm_hook_core.state import config_path, store_path
from swarm_mcp.installation import interpreter
from swarm_mcp.runtimes import bundle

pytestmark = pytest.mark.slow


REAL = interpreter()
TOOLS = ("sh", "cat", "mkdir", "mv")  # the launcher itself needs them


both = pytest.mark.parametrize("runtime", RUNTIMES)


class Machine:
    """A PATH of one's own, with nothing on it but a few tools."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.state = folder / "state of mine"
        self.env = {**os.environ, "PATH": str(folder / "bin"), "SWARM_STATE_DIR": str(self.state)}
        (folder / "bin").mkdir()
        for name in TOOLS:
            (folder / "bin" / name).symlink_to(shutil.which(name, path="/usr/bin:/bin") or "/missing")

    def program(self, name: str, body: str) -> Path:
        return program_at(self.folder / "bin" / name, f"#!/bin/sh\n{body}\n")

    def python(self, name: str) -> Path:
        """A command of this name that runs this very Python, and notes each start."""
        return self.program(name, f'echo {name} >>"{self.folder}/starts"\nexec {REAL} "$@"')

    def starts(self) -> list[str]:
        path = self.folder / "starts"
        found = lines_of(path)
        path.unlink(missing_ok=True)
        return found

    def remembered(self) -> str | None:
        path = self.state / "python"
        return path.read_text() if path.exists() else None

    def plugin(self) -> list[Path]:
        return sorted(path for path in (self.folder / "plugin").rglob("*") if "__pycache__" not in path.parts)

    def run(self, runtime: str, event: str, payload: dict[str, Any]) -> str:
        """Return the output of the wired hook. It must leave nothing on standard error, and end well."""
        return said_by(wired_command(runtime, event), payload, env=self.env)

    def start(self, runtime: str, session: str) -> dict[str, str]:
        """Return a session start's words for the user and the model."""
        payload = {**captured(runtime, "SessionStart.startup", self.folder), "session_id": session}
        answer = json.loads(self.run(runtime, "SessionStart", payload))
        assert set(answer) <= {"systemMessage", "hookSpecificOutput"}
        inner = answer["hookSpecificOutput"]
        assert set(inner) == {"hookEventName", "additionalContext"} and inner["hookEventName"] == "SessionStart"
        return {"user": answer.get("systemMessage", ""), "model": inner["additionalContext"]}

    def write(self, runtime: str, session: str) -> str:
        """Return the answer to a write to the file ``f``."""
        return self.run(runtime, "PreToolUse", write_payload(runtime, session, self.folder, str(self.folder / "f")))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    ready_store()
    made = Machine(tmp_path)
    # A copy of the plugin with a launcher that looks into no place but PATH.
    copy = tmp_path / "plugin"
    bundle.write(copy)
    launcher = copy / bundle.HOOK
    text = launcher.read_text()
    assert "/usr/bin/python3" in text
    launcher.write_text(text.replace("/usr/bin/python3 /usr/local/bin/python3 /opt/homebrew/bin/python3", ""))
    monkeypatch.setattr("support.sessions.ROOT", copy)
    return made


@both
def test_an_interpreter_is_looked_for_once(machine: Machine, runtime: str) -> None:
    machine.python("python3")
    me, plugin = new_session(), machine.plugin()
    machine.start(runtime, me)
    assert machine.remembered() == f"{REAL}\n" and machine.starts() == ["python3"]
    peer_locks(machine.folder, machine.folder / "f")
    assert "swarm lock blocked" in machine.write(runtime, me)
    assert machine.start(runtime, me) and machine.starts() == [], "the real interpreter is started at once"
    assert oct(machine.state.stat().st_mode & 0o777) == "0o700"
    assert machine.plugin() == plugin, "a client distrusts a plugin that changes, but for compiled modules"


@pytest.mark.parametrize(
    "first",
    {
        "too old": 'case "$*" in *version_info*) exit 0 ;; esac; exit 1',
        "a stub": "echo 'xcode-select: note: no developer tools were found' >&2; exit 1",
        "Python 2": "echo SyntaxError >&2; exit 1",
        "says something else": "echo /nowhere/python",
    }.items(),
    ids=lambda pair: pair[0],
)
def test_what_cannot_run_the_hooks_is_passed_over(first: tuple[str, str], machine: Machine) -> None:
    machine.program("python3", first[1])
    machine.python("python3.11")
    me = new_session()
    peer_locks(machine.folder, machine.folder / "f")
    assert "swarm lock blocked" in machine.write("codex", me), "also where no session's start has looked"
    assert machine.remembered() == f"{REAL}\n"
    assert "registered" in machine.start("codex", me)["model"]


def test_the_interpreter_of_our_own_command_serves_as_well(machine: Machine) -> None:
    program_at(machine.folder / "bin" / "swarm-mcp", f"#!{sys.executable}\nimport swarm_mcp.cli.main\n")
    machine.start("codex", new_session())
    assert machine.remembered() == f"{REAL}\n"


def test_a_state_folder_that_cannot_be_made_costs_a_search_and_nothing_else(machine: Machine) -> None:
    machine.python("python3")
    machine.env["SWARM_STATE_DIR"] = "/dev/null/nowhere"
    peer_locks(machine.folder, machine.folder / "f")
    assert "swarm lock blocked" in machine.write("codex", new_session())
    assert machine.starts() == ["python3"]


def test_an_interpreter_is_found_where_path_is_unset(machine: Machine) -> None:
    """The shell then has a PATH of its own, and a Python that it starts by a bare name cannot say where it is."""
    if not subprocess.run(["/bin/sh", "-c", "command -v python3"], env={}, capture_output=True).stdout:
        pytest.skip("no python3 where a shell looks by itself")
    del machine.env["PATH"]
    peer_locks(machine.folder, machine.folder / "f")
    assert "swarm lock blocked" in machine.write("codex", new_session())
    assert os.path.isfile((machine.remembered() or "").strip())


@both
def test_a_payload_is_read_where_path_has_no_tools(machine: Machine, runtime: str) -> None:
    machine.env["PATH"] = "/nowhere"
    assert machine.write(runtime, new_session()) == ""
    assert "NOT enforced" in machine.start(runtime, new_session())["user"]


@pytest.mark.parametrize("kind", ["gone", "broken"])
def test_an_installed_plugin_whose_interpreter_has_gone_says_so(kind: str, machine: Machine) -> None:
    machine.python("python3")  # is not asked: the check before a write starts the one that was installed
    bundle.write(machine.folder / "plugin", local=True, force=True)
    real = machine.program("uninstalled", "exit 127")
    if kind == "gone":
        real.unlink()
    for name in ("integrations/codex/hooks.json", bundle.LAUNCHER):
        naming = machine.folder / "plugin" / name
        naming.write_text(naming.read_text().replace(REAL, str(real)))
    told = machine.start("codex", new_session())
    assert all("NOT enforced" in words and "swarm-mcp install" in words for words in told.values())
    assert str(real) in told["user"] and machine.starts() == []


def reason(said: str) -> str:
    inner = json.loads(said)["hookSpecificOutput"]
    assert (inner["hookEventName"], inner["permissionDecision"]) == ("PreToolUse", "deny")
    return str(inner["permissionDecisionReason"])


@both
def test_without_any_interpreter_a_write_is_denied_where_a_person_wants_it(machine: Machine, runtime: str) -> None:
    machine.env["SWARM_FAIL"] = "closed"
    told = reason(machine.write(runtime, new_session()))
    for words in ("no Python", "SWARM_FAIL is closed", "Nothing was written", "start the client without SWARM_FAIL"):
        assert words in told
    for event in ("UserPromptSubmit", "Stop", "PostToolUse", "SessionEnd"):
        payload = captured(runtime, event.replace("PostToolUse", "PreToolUse.Bash"), machine.folder)
        assert machine.run(runtime, event, {**payload, "session_id": new_session()}) == ""
    machine.env["SWARM_FAIL"] = "open"
    assert machine.write(runtime, new_session()) == ""
    machine.env[f"SWARM_{hook_core(runtime).config.env_prefix}_FAIL"] = "Closed"
    assert "no Python" in reason(machine.write(runtime, new_session()))
    machine.env["PATH"] = "/nowhere"
    assert "no Python" in reason(machine.write(runtime, new_session()))
    os.remove(store_path())
    assert machine.write(runtime, new_session()) == "", "nobody has ever used swarm"


@pytest.mark.parametrize(
    ("settings", "denied"),
    [
        ({"fail": "closed"}, True), ({"fail": "open"}, False), ({"auto": "off"}, False),
        ({"checkouts": {"HERE": {"fail": "closed"}}}, True), ({"checkouts": {"/elsewhere": {"fail": "closed"}}}, True),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.sampled
def test_without_any_interpreter_a_wish_for_denials_counts_anywhere_in_the_settings(
    settings: dict[str, Any], denied: bool, indent: int | None, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = machine.folder / "a checkout"
    (here / ".git").mkdir(parents=True)
    path = Path(config_path())
    text_at(path, json.dumps(settings, indent=indent).replace("HERE", str(here)))
    monkeypatch.chdir(here)
    said = machine.write("codex", new_session())
    assert bool(said) is denied and (not denied or "config.json" in reason(said))
    machine.env["SWARM_FAIL"] = "open"
    assert machine.write("codex", new_session()) == ""


@pytest.mark.parametrize("shell", ["bash", "dash", "busybox", "zsh"])
def test_any_shell_will_do(shell: str, machine: Machine) -> None:
    found = shutil.which(shell)
    if not found:
        pytest.skip(f"no {shell} on this machine")
    machine.python("python3")
    (machine.folder / "bin" / "sh").unlink()
    started = f"{found} sh " if shell == "busybox" else f"{found} "
    command = wired_command("codex", "SessionStart").replace("/bin/sh ", started)
    payload = json.dumps({**captured("codex", "SessionStart.startup", machine.folder), "session_id": new_session()})
    done = subprocess.run(["/bin/sh", "-c", command], input=payload, capture_output=True, text=True, env=machine.env)
    assert (done.returncode, done.stderr) == (0, "") and "registered" in done.stdout


# A stand-in for uv's tool command: it notes its arguments, then runs the tool.
UV = """#!/bin/sh
echo "$PWD $*" >>{folder}/asked
[ "$1 $2 $3 $4" = "tool run --quiet --from" ] || exit 2
[ -e {folder}/offline ] && echo "error: no network" >&2 && exit 1
shift 5
[ "$1" = swarm-mcp ] && shift
exec {swarm} "$@"
"""


class BareMachine:
    """A PATH with Python on it, and perhaps uv, but no swarm-mcp."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.path = f"{self.bin}:/usr/bin:/bin"

    def get_uv(self) -> None:
        program_at(self.bin / "uv", UV.format(folder=self.folder, swarm=shlex.join(SWARM)))

    @property
    def asked(self) -> list[str]:
        """Return the requests to uv, a line each."""
        file = self.folder / "asked"
        return lines_of(file)

    def start(self, runtime: str = "claude-code", **env: str) -> Ran:
        return start(runtime, new_session(), self.folder, PATH=self.path, **env)


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BareMachine:
    monkeypatch.delenv("SWARM_UVX")
    ready_store()
    return BareMachine(tmp_path)


def said(ran: Ran) -> tuple[str, str]:
    """Return the texts for the user and for the model."""
    answer = json.loads(ran.out)
    return answer.get("systemMessage", ""), answer["hookSpecificOutput"]["additionalContext"]


def test_who_has_heard_that_there_is_no_uv_hears_that_it_is_fetched(bare_machine: BareMachine) -> None:
    bare_machine.start()
    bare_machine.get_uv()
    assert "fetched in the background" in said(bare_machine.start())[0]


def test_uv_that_hangs_keeps_nobody_waiting(bare_machine: BareMachine) -> None:
    program_at(bare_machine.bin / "uv", f"#!/bin/sh\necho $$ >{bare_machine.folder}/asked\nexec sleep 300\n")
    try:
        assert said(bare_machine.start())[0] and said(bare_machine.start())[1]
        wait_for(lambda: bare_machine.asked)
    finally:
        os.kill(int(bare_machine.asked[0]), 9)


@pytest.mark.parametrize("how", ["variable", "client's variable", "settings"])
def test_it_can_be_switched_off(bare_machine: BareMachine, how: str) -> None:
    bare_machine.get_uv()
    env = {"variable": {"SWARM_UVX": "off"}, "client's variable": {"SWARM_CC_UVX": "OFF"}}.get(how, {})
    if how == "settings":
        text_at(Path(config_path()), '{"uvx": "off"}')
    user, _ = said(bare_machine.start(**env))
    assert f"pipx install {DISTRIBUTION}" in user and "fetched" not in user
    assert not bare_machine.asked and not fault_lines()[:-1]


def test_who_switches_it_off_later_is_rid_of_what_was_fetched(bare_machine: BareMachine) -> None:
    bare_machine.get_uv()
    bare_machine.start()
    wait_for(lambda: os.access(coordinator.launcher(), os.X_OK))
    assert "this session is registered" in said(bare_machine.start())[1]
    assert "could not be registered" in said(bare_machine.start(SWARM_UVX="off"))[1]
    assert not os.path.exists(coordinator.launcher())


def served(machine: BareMachine, **env: str) -> subprocess.CompletedProcess[str]:
    argv = ["/bin/sh", str(ROOT / "integrations" / "coordinator.sh"), "status", "--json"]
    everything = {**os.environ, "PATH": machine.path, **env}
    return subprocess.run(argv, env=everything, cwd=machine.folder, capture_output=True, text=True, timeout=60)


def test_server_and_commands_run_the_fetched_release_and_fetch_nothing(bare_machine: BareMachine) -> None:
    bare_machine.get_uv()
    done = served(bare_machine)
    assert done.returncode == 1 and "pipx install swarm-locks" in done.stderr and not bare_machine.asked
    bare_machine.start()
    wait_for(lambda: os.access(coordinator.launcher(), os.X_OK))
    assert json.loads(served(bare_machine).stdout)["scope"]
    assert served(bare_machine, SWARM_UVX="off").returncode == 1
    assert len(bare_machine.asked) == 1


def test_a_copy_that_uv_has_removed_is_fetched_again(bare_machine: BareMachine) -> None:
    bare_machine.get_uv()
    launcher = Path(coordinator.launcher())
    program_at(launcher, '#!/bin/sh\n[ -e /none/such ] || { rm -f "$0"; exit 1; }\n')
    assert "could not be registered" in said(bare_machine.start())[1]
    assert not launcher.exists()
    bare_machine.start()
    wait_for(lambda: os.access(launcher, os.X_OK))


def test_the_launcher_is_ours_and_knows_its_copy(bare_machine: BareMachine) -> None:
    done = subprocess.run([*SWARM, "fetched", "--json"], capture_output=True, text=True, timeout=60)
    path = json.loads(done.stdout)["launcher"]
    assert path == coordinator.launcher() and coordinator.is_ours(path)
    assert os.stat(path).st_mode & 0o077 == 0
    ran = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
    assert ran.stdout == f"swarm-mcp {__version__}\n"


def test_a_command_on_path_comes_before_what_was_fetched(bare_machine: BareMachine, monkeypatch) -> None:
    subprocess.run([*SWARM, "fetched"], check=True, capture_output=True, timeout=60)
    monkeypatch.setenv("PATH", bare_machine.path)
    assert coordinator.command() == [coordinator.launcher()]
    ours = program_at(bare_machine.bin / "swarm-mcp", "#!/bin/sh\n: swarm_mcp.cli.main\n")
    assert coordinator.command() == [str(ours)]


def test_uv_is_found_where_its_installer_puts_it(bare_machine: BareMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f".::{bare_machine.path}")
    monkeypatch.setenv("HOME", str(bare_machine.folder))
    monkeypatch.setattr(coordinator, "PLACES", ("~/.local/bin",))
    assert coordinator.uv_path() == ""
    place = folder_at(bare_machine.folder / ".local" / "bin")
    (place / "uv").symlink_to(sys.executable)
    assert coordinator.uv_path() == str(place / "uv")


def test_where_nothing_can_be_remembered_nothing_is_fetched(bare_machine: BareMachine) -> None:
    bare_machine.get_uv()
    assert "fetched" in said(bare_machine.start(SWARM_STATE_DIR="/dev/null/none"))[0]
    assert not bare_machine.asked
