"""A plugin without a command: a session start's words, its request to uv after these words, and the next sessions."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.fixtures import SWARM, wait_for
from support.sessions import ROOT, Ran, fault_lines, new_session, ready_store, start

from swarm_hook_core import DISTRIBUTION, __version__, coordinator, own_release
from swarm_hook_core.state import config_path

pytestmark = pytest.mark.slow

# A stand-in for uv's tool command: it notes its arguments, then runs the tool.
UV = """#!/bin/sh
echo "$PWD $*" >>{folder}/asked
[ "$1 $2 $3 $4" = "tool run --quiet --from" ] || exit 2
[ -e {folder}/offline ] && echo "error: no network" >&2 && exit 1
shift 5
[ "$1" = swarm-mcp ] && shift
exec {swarm} "$@"
"""


class Machine:
    """A PATH with Python on it, and perhaps uv, but no swarm-mcp."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.path = f"{self.bin}:/usr/bin:/bin"

    def get_uv(self) -> None:
        file = self.bin / "uv"
        file.write_text(UV.format(folder=self.folder, swarm=shlex.join(SWARM)))
        file.chmod(0o755)

    @property
    def asked(self) -> list[str]:
        """Return the requests to uv, a line each."""
        file = self.folder / "asked"
        return file.read_text().splitlines() if file.exists() else []

    def start(self, runtime: str = "claude-code", **env: str) -> Ran:
        return start(runtime, new_session(), self.folder, PATH=self.path, **env)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.delenv("SWARM_UVX")
    ready_store()
    return Machine(tmp_path)


def said(ran: Ran) -> tuple[str, str]:
    """Return the texts for the user and for the model."""
    answer = json.loads(ran.out)
    return answer.get("systemMessage", ""), answer["hookSpecificOutput"]["additionalContext"]


def test_who_has_heard_that_there_is_no_uv_hears_that_it_is_fetched(machine: Machine) -> None:
    machine.start()
    machine.get_uv()
    assert "fetched in the background" in said(machine.start())[0]


def test_uv_that_hangs_keeps_nobody_waiting(machine: Machine) -> None:
    (machine.bin / "uv").write_text(f"#!/bin/sh\necho $$ >{machine.folder}/asked\nexec sleep 300\n")
    (machine.bin / "uv").chmod(0o755)
    try:
        assert said(machine.start())[0] and said(machine.start())[1]
        wait_for(lambda: machine.asked)
    finally:
        os.kill(int(machine.asked[0]), 9)


@pytest.mark.parametrize("how", ["variable", "client's variable", "settings"])
def test_it_can_be_switched_off(machine: Machine, how: str) -> None:
    machine.get_uv()
    env = {"variable": {"SWARM_UVX": "off"}, "client's variable": {"SWARM_CC_UVX": "OFF"}}.get(how, {})
    if how == "settings":
        Path(config_path()).parent.mkdir(parents=True, exist_ok=True)
        Path(config_path()).write_text('{"uvx": "off"}')
    user, _ = said(machine.start(**env))
    assert f"pipx install {DISTRIBUTION}" in user and "fetched" not in user
    assert not machine.asked and not fault_lines()[:-1]


def test_who_switches_it_off_later_is_rid_of_what_was_fetched(machine: Machine) -> None:
    machine.get_uv()
    machine.start()
    wait_for(lambda: os.access(own_release.launcher(), os.X_OK))
    assert "this session is registered" in said(machine.start())[1]
    assert "could not be registered" in said(machine.start(SWARM_UVX="off"))[1]
    assert not os.path.exists(own_release.launcher())


def served(machine: Machine, **env: str) -> subprocess.CompletedProcess[str]:
    argv = ["/bin/sh", str(ROOT / "integrations" / "coordinator.sh"), "status", "--json"]
    everything = {**os.environ, "PATH": machine.path, **env}
    return subprocess.run(argv, env=everything, cwd=machine.folder, capture_output=True, text=True, timeout=60)


def test_server_and_commands_run_the_fetched_release_and_fetch_nothing(machine: Machine) -> None:
    machine.get_uv()
    done = served(machine)
    assert done.returncode == 1 and "pipx install swarm-locks" in done.stderr and not machine.asked
    machine.start()
    wait_for(lambda: os.access(own_release.launcher(), os.X_OK))
    assert json.loads(served(machine).stdout)["scope"]
    assert served(machine, SWARM_UVX="off").returncode == 1
    assert len(machine.asked) == 1


def test_a_copy_that_uv_has_removed_is_fetched_again(machine: Machine) -> None:
    machine.get_uv()
    launcher = Path(own_release.launcher())
    launcher.parent.mkdir(parents=True)
    launcher.write_text('#!/bin/sh\n[ -e /none/such ] || { rm -f "$0"; exit 1; }\n')
    launcher.chmod(0o755)
    assert "could not be registered" in said(machine.start())[1]
    assert not launcher.exists()
    machine.start()
    wait_for(lambda: os.access(launcher, os.X_OK))


def test_the_launcher_is_ours_and_knows_its_copy(machine: Machine) -> None:
    done = subprocess.run([*SWARM, "fetched", "--json"], capture_output=True, text=True, timeout=60)
    path = json.loads(done.stdout)["launcher"]
    assert path == own_release.launcher() and coordinator.is_ours(path)
    assert os.stat(path).st_mode & 0o077 == 0
    ran = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
    assert ran.stdout == f"swarm-mcp {__version__}\n"


def test_a_command_on_path_comes_before_what_was_fetched(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run([*SWARM, "fetched"], check=True, capture_output=True, timeout=60)
    monkeypatch.setenv("PATH", machine.path)
    assert coordinator.command() == [own_release.launcher()]
    ours = machine.bin / "swarm-mcp"
    ours.write_text("#!/bin/sh\n: swarm_mcp.cli.main\n")
    ours.chmod(0o755)
    assert coordinator.command() == [str(ours)]


def test_uv_is_found_where_its_installer_puts_it(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f".::{machine.path}")
    monkeypatch.setenv("HOME", str(machine.folder))
    monkeypatch.setattr(own_release, "PLACES", ("~/.local/bin",))
    assert own_release.uv() == ""
    place = machine.folder / ".local" / "bin"
    place.mkdir(parents=True)
    (place / "uv").symlink_to(sys.executable)
    assert own_release.uv() == str(place / "uv")


def test_where_nothing_can_be_remembered_nothing_is_fetched(machine: Machine) -> None:
    machine.get_uv()
    assert "fetched" in said(machine.start(SWARM_STATE_DIR="/dev/null/none"))[0]
    assert not machine.asked
