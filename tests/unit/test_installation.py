"""This installation and its folders; the tests' own world and mix of calls."""

import importlib.metadata
import json
import ntpath
import os
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import platformdirs
import platformdirs.macos
import platformdirs.unix
import platformdirs.windows
import pytest
from bench.mix_calls import COUNTED, calls
from support.sessions import RUNTIMES
from support.world import World

from swarm_hook_core import state
from swarm_mcp.cli import extras
from swarm_mcp.installation import marketplace_folder
from swarm_mcp.runtimes import base

PYTHON = shlex.quote(sys.executable)
PIPX = {"main_package": {"package": "swarm-locks", "suffix": "_next"}}
# The file that the installer left in the environment -> the command, for an installation from {source}.
INSTALLERS = {
    "uv": ("uv-receipt.toml", "", "uv tool install {parts}"),
    "pipx": ("pipx_metadata.json", json.dumps(PIPX), "pipx inject swarm-locks_next 'textual>=1'"),
    "an older pipx": ("pipx_metadata.json", "[]", "pipx inject swarm-locks 'textual>=1'"),
    "pip": ("pyvenv.cfg", "", f"{PYTHON} -m pip install {{extra}}"),
    "a plugin's uv": ("no pip", "", "uv tool install {parts}"),
}


@pytest.mark.parametrize("installer", INSTALLERS)
@pytest.mark.parametrize("is_from_a_folder", [True, False])
def test_a_part_is_added_by_the_installer_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installer: str, is_from_a_folder: bool
) -> None:
    clone = tmp_path / "a clone"
    clone.mkdir()

    class Found:
        def read_text(self, name: str) -> str | None:
            return json.dumps({"url": clone.as_uri(), "dir_info": {}}) if is_from_a_folder else None

    needs = [
        "jsonschema>=4",
        "jinja2>=3; extra == 'page'",
        "textual>=1; extra == 'top'",
        'psycopg[binary]>=3; extra == "team"',
    ]

    def found(name: str) -> Found:
        """Only the page's packages are there, and ours."""
        if name in ("textual", "psycopg"):
            raise importlib.metadata.PackageNotFoundError
        return Found()

    monkeypatch.setattr("swarm_mcp.cli.extras.distribution", found)
    monkeypatch.setattr("swarm_mcp.cli.extras.requires", lambda name: needs)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    sign, text, command = INSTALLERS[installer]
    (tmp_path / sign).write_text(text)
    if sign == "no pip":
        monkeypatch.setattr("swarm_mcp.cli.extras.find_spec", lambda name: None)
    source = str(clone) if is_from_a_folder else "swarm-locks"
    expected = command.format(extra=shlex.quote(f"{source}[top]"), parts=shlex.quote(f"{source}[page,top]"))
    assert extras.extra_command("top") == expected


def test_the_part_s_packages_are_those_of_the_record() -> None:
    assert any(one.startswith("textual") for one in extras._needed_by("top"))
    assert extras._needed_by("no such part") == []


NODE = """\
(node:7) Warning: something is old
file:///opt/pi/dist/main.js:12
    throw new Error("x")
    ^

Error: this Node.js is too old: 20 is needed
    at main (file:///opt/pi/dist/main.js:12:11)
    at async run (node:internal/modules/run_main:94:5) {
  code: 'TOO_OLD'
}

Node.js v18.20.1
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (NODE, "Error: this Node.js is too old: 20 is needed"),
        ("WARNING: proceeding\nError: no such plugin\n", "Error: no such plugin"),
        ('Traceback (most recent call last):\n  File "x.py", line 1\n    import y\nModuleNotFoundError: No module named y',
         "ModuleNotFoundError: No module named y"),
        ("one\nit is not logged in\n", "it is not logged in"), ("    at a (b:1:2)\n", "at a (b:1:2)"), ("", ""),
    ],
)  # fmt: skip
def test_what_a_client_complains_of_is_the_error_and_not_its_stack(text: str, line: str) -> None:
    assert base._complaint(text) == line


NAME = "swarm-mcp"
VARIABLES = (
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "LOCALAPPDATA",
    "SWARM_STATE_DIR",
    "SWARM_CONFIG_DIR",
)
XDG = {"XDG_STATE_HOME": "/x/state", "XDG_CONFIG_HOME": "/x/config", "XDG_DATA_HOME": "/x/data"}
# sys.platform, platformdirs' class, environment
CASES = [
    ("linux", platformdirs.unix.Unix, {}),
    ("linux", platformdirs.unix.Unix, XDG),
    ("linux", platformdirs.unix.Unix, dict.fromkeys(XDG, "")),
    ("linux", platformdirs.unix.Unix, dict.fromkeys(XDG, "  ")),
    ("linux", platformdirs.unix.Unix, dict.fromkeys(XDG, "relative/folder")),
    ("darwin", platformdirs.macos.MacOS, {}),
    ("darwin", platformdirs.macos.MacOS, XDG),
    ("darwin", platformdirs.macos.MacOS, dict.fromkeys(XDG, "relative/folder")),
    ("win32", platformdirs.windows.Windows, {"LOCALAPPDATA": r"C:\Users\dana\AppData\Local"}),
    ("win32", platformdirs.windows.Windows, {"LOCALAPPDATA": r"D:\Profiles\dana", **XDG}),
]


def on(platform: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the hook core, and platformdirs' class for Windows, see this platform and environment."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(sys, "platform", platform)
    if platform == "win32":
        windows = SimpleNamespace(name="nt", environ=os.environ, path=ntpath)
        monkeypatch.setattr(state, "os", windows)
        monkeypatch.setattr(platformdirs.windows, "os", windows)
        monkeypatch.setattr(platformdirs.windows, "get_win_folder", platformdirs.windows.get_win_folder_from_env_vars)


@pytest.mark.parametrize(("platform", "dirs", "environment"), CASES)
def test_the_hook_core_names_the_folders_of_platformdirs(
    platform: str,
    dirs: type[platformdirs.PlatformDirs],
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        on(platform, environment, patch)
        ours = (state.state_dir(), state.config_dir(), state.data_dir())
        theirs = (
            dirs(NAME).user_state_dir,
            dirs(NAME).user_config_dir,
            dirs(NAME, appauthor=False).user_data_dir,  # on Windows without the second folder of the name
        )
    assert ours == theirs


@pytest.mark.parametrize("environment", [{}, XDG])
def test_the_marketplace_is_in_the_same_folder_without_platformdirs(environment: dict[str, str], monkeypatch) -> None:
    on("linux", environment, monkeypatch)
    usual = marketplace_folder()
    monkeypatch.setitem(sys.modules, "platformdirs", None)  # its import fails
    assert marketplace_folder() == usual


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_world_has_sessions_persons_and_verbs(runtime: str, world: World) -> None:
    me, peer = world.session(runtime), world.session("codex")
    assert peer.edit("notes.md").silent and "PEER" in world.read("notes.md")
    verdict = me.bash("git checkout .")
    assert verdict.denied and "notes.md" in verdict.words and "PEER" in world.read("notes.md")
    world.commit()
    assert me.write("notes.md", "mine\n").silent and world.read("notes.md") == "mine\n"
    assert world.swarm("lock", "other.md", as_=peer).code == 0
    assert me.edit("other.md").denied and world.swarm("lock", "other.md", as_=me).code == 1
    world.write("sub/deep.md", "a person's\n")
    assert world.git("status", "--short").split() == ["M", "notes.md", "M", "sub/deep.md"]
    assert me.fire("pre_tool_use", "PreToolUse.Bash").reason == ""


@pytest.mark.parametrize(("client", "number"), [("claude-code", 81), ("codex", 65)])
def test_calls_have_the_weights_that_were_counted(client: str, number: int) -> None:
    found = calls(client)
    assert len(found) == number
    assert sum(call.weight for call in found) == pytest.approx(1)
    totals = [sum(counts) for counts in zip(*COUNTED[client].values(), strict=True)]
    for kind, counts in COUNTED[client].items():
        share = sum(count / total for count, total in zip(counts, totals, strict=True)) / 2
        assert sum(call.weight for call in found if call.kind == kind) == pytest.approx(share), kind
