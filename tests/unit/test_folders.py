"""Our folders: the hook core's standard-library twin names the same ones as platformdirs, on every platform."""

import ntpath
import os
import sys
from types import SimpleNamespace

import platformdirs
import platformdirs.macos
import platformdirs.unix
import platformdirs.windows
import pytest

from swarm_hook_core import state
from swarm_mcp.installation import marketplace_folder

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
def test_the_marketplace_is_in_the_same_folder_without_platformdirs(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on("linux", environment, monkeypatch)
    usual = marketplace_folder()
    monkeypatch.setitem(sys.modules, "platformdirs", None)  # its import fails
    assert marketplace_folder() == usual
